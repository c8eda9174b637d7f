"""Two processes of one distributed program, for real: gloo on the CPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch.distributed

from torch_diode.files.tables import write_table
from torch_diode.hardware import detect
from torch_diode.integration.ranks import Ranks
from torch_diode.types.candidate import ATEN, ONEDNN, Candidate
from torch_diode.types.problem import MMShape
from torch_diode.types.table import Table, TableEntry

PROGRAM = """
import sys, warnings
import torch, torch.distributed as dist
import torch_diode as td

rank, store, *tables = int(sys.argv[1]), *sys.argv[2:]
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)

def told_in_three_compiles(table):
    torch.compiler.reset()
    td.enable(td.LookupTable.load(table))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for rows in (8, 16, 24):
            torch.compile(torch.mm, dynamic=False)(torch.rand(rows, 8), torch.rand(8, 8))
            dist.barrier()
    return [str(w.message) for w in told if "rank" in str(w.message)]

assert told_in_three_compiles(tables[2]) == []
(message,) = told_in_three_compiles(tables[rank])
print(message)
assert message.removeprefix("torch-diode: ") in td.status().notes
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.skipif(not torch.distributed.is_gloo_available(), reason="torch without gloo")
def test_ranks_with_other_tables_are_told_once_each_by_name(tmp_path: Path) -> None:
    tables = {"a.json": (ATEN,), "b.json": (ONEDNN,), "same.json": (ATEN, ONEDNN)}
    for name, templates in tables.items():
        entries = tuple(TableEntry(Candidate(template)) for template in templates)
        row = (detect("cpu").name, MMShape("mm", 8, 8, 8, dtype="float32"), entries)
        write_table(Table((row,)), tmp_path / name)
    (tmp_path / "program.py").write_text(PROGRAM)
    arguments = [tmp_path / "store", *(tmp_path / name for name in tables)]
    ranks = [
        subprocess.Popen(
            [sys.executable, tmp_path / "program.py", str(rank), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    for rank, process in enumerate(ranks):
        own, other = ("a.json", "b.json") if rank == 0 else ("b.json", "a.json")
        output, errors = process.communicate(timeout=240)
        assert process.returncode == 0, errors
        said = f"rank {rank} decides with table {own}, rank {1 - rank} with table {other}: they may"
        assert said in output


def test_a_program_that_is_not_distributed_has_nothing_to_compare() -> None:
    assert Ranks().compare("fingerprint", "table") == ""
