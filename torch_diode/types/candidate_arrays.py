"""Candidates as arrays, one array per field, for hot paths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from torch_diode.types.candidate import CONFIG_FIELDS, KEY_FIELDS, Candidate, config_of, pack
from torch_diode.types.errors import InvalidValueError

NUMBER_FIELDS = (*CONFIG_FIELDS, "split_k")
Numbers = npt.NDArray[np.int32]
Keys = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Candidates:
    """A structure of arrays. Fields that a candidate does not have are 0, `split_k` is then 1."""

    templates: tuple[str, ...]
    """The distinct templates; `template` holds indices into it."""
    template: Numbers
    fields: Mapping[str, Numbers]

    def __post_init__(self) -> None:
        sizes = {len(self.template), *(len(values) for values in self.fields.values())}
        if len(sizes) != 1 or set(self.fields) != set(NUMBER_FIELDS):
            raise InvalidValueError(
                f"Candidates: got fields {sorted(self.fields)} of lengths {sorted(sizes)}; "
                f"expected {sorted(NUMBER_FIELDS)}, all of one length"
            )

    @classmethod
    def of(cls, candidates: Iterable[Candidate]) -> Candidates:
        """From objects."""
        items = list(candidates)
        templates = tuple(dict.fromkeys(item.template for item in items))
        number = {template: i for i, template in enumerate(templates)}
        fields = {
            f: np.array([getattr(c.config, f, 0) for c in items], dtype=np.int32)
            for f in CONFIG_FIELDS
        }
        fields["split_k"] = np.array([c.split_k for c in items], dtype=np.int32)
        codes = np.array([number[c.template] for c in items], dtype=np.int32)
        return cls(templates, codes, fields)

    def __len__(self) -> int:
        return len(self.template)

    def __getitem__(self, index: int) -> Candidate:
        found = self._objects.get(index)
        if found is None:
            numbers = (int(self.fields[f][index]) for f in NUMBER_FIELDS)
            found = _candidate(self.templates[self.template[index]], *numbers)
            self._objects[index] = found
        return found

    @cached_property
    def _objects(self) -> dict[int, Candidate]:
        """Candidates by row, as far as asked for: those that win do so again and again."""
        return {}

    def __iter__(self) -> Iterator[Candidate]:
        columns = [self.fields[f].tolist() for f in NUMBER_FIELDS]
        for template, *numbers in zip(self.template.tolist(), *columns, strict=True):
            yield _candidate(self.templates[template], *numbers)

    def is_template(self, name: str) -> npt.NDArray[np.bool_]:
        """Mask of the candidates of this template."""
        if name not in self.templates:
            return np.zeros(len(self), dtype=bool)
        return np.asarray(self.template == self.templates.index(name))

    @cached_property
    def first_rows(self) -> dict[str, int]:
        """By template, the row of its first candidate; without templates that have none."""
        codes = self.template.tolist()
        return {self.templates[code]: codes.index(code) for code in dict.fromkeys(codes)}

    @cached_property
    def keys(self) -> tuple[Keys, Keys]:
        """The two keys of each candidate, as in `Candidate.keys`."""
        zeros = np.zeros(len(self), np.int64)
        first, second = (pack(self.fields, names, zeros) for names in KEY_FIELDS)
        return first, second

    def position(self, candidate: Candidate) -> int | None:
        """The row of a candidate, None where there is none."""
        if candidate.template not in self.templates:
            return None
        template = self.templates.index(candidate.template)
        (first, second), (keys, others) = candidate.keys, self.keys
        for row in (keys == first).nonzero()[0].tolist():
            if others[row] == second and self.template[row] == template:
                return int(row)
        return None

    def take(self, rows: npt.NDArray[np.integer] | npt.NDArray[np.bool_]) -> Candidates:
        """The candidates at these positions (or under this mask), in this order."""
        fields = {name: values[rows] for name, values in self.fields.items()}
        return Candidates(self.templates, self.template[rows], fields)

    @classmethod
    def concat(cls, parts: Iterable[Candidates]) -> Candidates:
        """Concatenate."""
        items = list(parts)
        templates = tuple(dict.fromkeys(name for part in items for name in part.templates))
        codes = [
            np.array([templates.index(n) for n in part.templates], dtype=np.int32)[part.template]
            for part in items
            if len(part)
        ]
        fields = {
            name: np.concatenate([np.zeros(0, np.int32), *(part.fields[name] for part in items)])
            for name in NUMBER_FIELDS
        }
        return cls(templates, np.concatenate([np.zeros(0, np.int32), *codes]), fields)


@lru_cache(maxsize=2**16)
def _candidate(template: str, *numbers: int) -> Candidate:
    # Cached: the same few thousand candidates recur.
    fields = dict(zip(NUMBER_FIELDS, numbers, strict=True))
    return Candidate(template, config_of(template, fields), fields["split_k"])
