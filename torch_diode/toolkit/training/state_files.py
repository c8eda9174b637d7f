"""The files that a killed training continues from, beside the model it will be."""

from __future__ import annotations

import glob
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class StateFiles:
    """Those of a model and of its teachers."""

    model: Path
    teachers: int

    @property
    def own(self) -> Path:
        """The model's."""
        return self.model.with_name(f"{self.model.name}.state")

    @property
    def of_teachers(self) -> list[Path]:
        """One for each teacher."""
        numbers = range(1, self.teachers + 1)
        return [self.model.with_name(f"{self.model.name}.teacher-{i}") for i in numbers]

    def there(self) -> list[Path]:
        """All that exist; a run that was stopped may have had more teachers."""
        names = (glob.escape(self.model.name) + end for end in (".state", ".teacher-*"))
        return [path for name in names for path in sorted(self.model.parent.glob(name))]

    def continued(self) -> list[Path]:
        """Those that exist and that this run continues from."""
        return [path for path in self.there() if path in (self.own, *self.of_teachers)]

    def remove(self) -> None:
        """Delete all that exist."""
        for path in self.there():
            path.unlink()
