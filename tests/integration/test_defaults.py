"""The heuristic used where nobody names one."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch

from tests.integration.cases import CONFIG, inputs
from torch_diode.integration import registration
from torch_diode.integration.defaults import default_heuristic
from torch_diode.integration.guard import DiodeWarning
from torch_diode.integration.lowering import lower
from torch_diode.integration.settings import Settings
from torch_diode.types.hardware import Hardware


@pytest.mark.usefixtures("h200")
def test_a_table_named_in_the_environment_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch_diode.files.tables import write_table
    from torch_diode.types.candidate import Candidate
    from torch_diode.types.problem import MMShape
    from torch_diode.types.table import Table, TableEntry

    problem = MMShape.from_key("mm:384x512x640:bfloat16:nn")
    entry = TableEntry(Candidate("triton::mm", CONFIG), 5.0)
    path = tmp_path / "table.json"
    write_table(Table((("nvidia-h200", problem, (entry,)),)), path)
    monkeypatch.setenv("TORCH_DIODE_TABLE", str(path))
    registration.register_on_import()
    assert lower(torch.mm, inputs("mm")).configs[0]["BLOCK_M"] == CONFIG.block_m
    assert lower(torch.bmm, inputs("bmm")).kernels == ["bmm"]
    assert registration.explain()[0].source == "table"


@pytest.mark.usefixtures("h200")
def test_an_unreadable_table_falls_back_with_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_DIODE_TABLE", "/nowhere/table.json")
    registration.register_on_import()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            assert lower(torch.mm, inputs("mm")).kernels == ["mm"]
    (warning,) = [w for w in caught if w.category is DiodeWarning]
    assert "/nowhere/table.json" in str(warning.message)
    assert registration.status().counters.fallbacks.total() == 2


def test_nothing_to_go_by_is_none() -> None:
    unknown = Hardware("nobody-knows-me", "cuda", "sm_10")
    assert default_heuristic(unknown, Settings()) is None


@pytest.mark.usefixtures("h200")
def test_the_shipped_model_decides_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_DIODE_MODEL", "shipped")
    registration.register_on_import()
    lower(torch.mm, inputs("mm"))
    (decision,) = registration.explain()
    assert decision.source == "model nvidia-h200"
    assert decision.winner.predicted_us is not None
    assert any("model trained under torch 2.11" in note for note in registration.status().notes)


@pytest.mark.usefixtures("h200")
def test_a_strict_user_gets_no_model_of_another_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_DIODE_MODEL", "shipped")
    monkeypatch.setenv("TORCH_DIODE_STRICT", "1")
    registration.register_on_import()
    assert lower(torch.mm, inputs("mm")).kernels == ["mm"]
    assert registration.status().counters.abstentions.total() == 1


def test_no_model_decides_unasked() -> None:
    from torch_diode.hardware import known

    assert default_heuristic(known("nvidia-h200"), Settings()) is None
