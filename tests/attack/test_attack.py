"""A short attack with a fixed seed; `python3 tasks.py attack --minutes 15` is a long one."""

import pytest

from tests.attack import processes
from tests.attack.__main__ import attack
from tests.attack.groups import commands, fill
from tests.attack.sandbox import Attacker, Case, OutsideError, sandbox

CASES = 150
"""As many as take less than a minute."""


def test_no_case_ends_with_a_traceback_a_lost_file_or_a_wrong_result():
    table, faults = attack(seed=1, minutes=5, most=CASES)
    assert not faults, "\n\n".join(faults)
    assert table.splitlines()[-1].split() == ["all", str(CASES)]


@pytest.fixture(scope="module")
def attacker():
    with sandbox() as home:
        fill(home)
        with Attacker(home) as attacker:
            yield attacker


@pytest.mark.parametrize("name", [action.__name__ for action in processes.ACTIONS])
def test_many_processes_threads_or_decisions_do_not_disturb_each_other(name, attacker):
    case = Case("processes", name, (name,), {}, {"TORCH_DIODE": "1"}, "several_processes")
    outcome = attacker.outcome(case)
    assert not outcome.fault, outcome.fault


def test_every_command_is_attacked():
    assert {"collect", "explain", "rank", "table build", "train"} <= set(commands())


@pytest.mark.parametrize(
    "arguments",
    [
        ("stats", "/etc/passwd"),
        ("convert", "c.json", "-o/tmp/x.parquet"),
        ("convert", "c.json", "--output=../../x.parquet"),
        ("convert", "c.json", "--output", "~/x.parquet"),
        ("convert", "c.json", "--output", "out/x.parquet"),
    ],
)
def test_a_case_that_leads_out_of_its_directory_is_refused_before_it_runs(arguments):
    with sandbox() as home:
        (home / "case").mkdir()
        (home / "case" / "out").symlink_to("/tmp")
        with Attacker(home) as attacker, pytest.raises(OutsideError):
            attacker.outcome(Case("command lines", "outside", arguments))
