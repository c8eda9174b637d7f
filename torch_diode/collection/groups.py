"""Problems with the candidates to time on each, in groups that share kernels."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from torch_diode.collection.kernels.launch import Launcher
from torch_diode.collection.kernels.library import KernelInfeasibleError, KernelLibrary, KernelSpec
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.problem import MMShape

Task = tuple[MMShape, Candidates]


@dataclass(frozen=True)
class Group:
    """Problems that are timed one after the other, and share most of their kernels."""

    name: str
    tasks: tuple[Task, ...]
    specs: tuple[KernelSpec, ...]
    """The kernels they need, each once."""

    @classmethod
    def of(cls, name: str, tasks: Sequence[Task], library: KernelLibrary) -> Group:
        """A group of these problems, its kernels found."""
        launcher = Launcher(library)
        found: dict[KernelSpec, None] = {}
        for problem, candidates in tasks:
            for candidate in candidates:
                if candidate.config is not None:
                    with contextlib.suppress(KernelInfeasibleError):
                        found[launcher.spec_for(problem, candidate)] = None
        return cls(name, tuple(tasks), tuple(found))
