"""Writes the lists that Inductor's max-autotune times by default, for machines without Triton.

`python workflows/default_lists.py`, after a new torch release has been added to `tasks.py`.
"""

from torch_diode.files.tables import write_table
from torch_diode.hardware import find
from torch_diode.integration.capture.default_configs import default_candidates
from torch_diode.integration.capture.default_lists import KEPT, KEPT_CHIP, large_problem
from torch_diode.integration.hooks.torch_compat import installed_versions
from torch_diode.types.problem import OPS
from torch_diode.types.table import Table, TableEntry


def default_lists() -> Table:
    rows = []
    for problem in [large_problem(op, *k) for op in OPS for k in ((), (1,))]:
        listed = default_candidates(problem, find(KEPT_CHIP))
        entries = tuple(TableEntry(c) for c in listed if c.config is not None)
        rows += [(KEPT_CHIP, problem, entries)] if entries else []
    return Table(tuple(rows), (("torch", installed_versions()["torch"]),))


if __name__ == "__main__":
    write_table(default_lists(), KEPT)
