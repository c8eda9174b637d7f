"""Decisions of a model on a CPU's measured problems, as a compile would take them.

A compile offers different candidates: without freezing ATen and oneDNN, in a frozen graph packed
weights and templates too. The decisions go through the heuristic and the policy of a compile.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from torch_diode.candidates.cpu.libraries import PLAIN
from torch_diode.hardware import with_threads
from torch_diode.heuristics import policy
from torch_diode.heuristics.model import ModelHeuristic
from torch_diode.model.evaluation.over_plain import Decided, OverPlain, over_plain
from torch_diode.model.evaluation.regret import problem_slices
from torch_diode.types.candidate import CPP_GEMM, LIBRARIES, PACKED

if TYPE_CHECKING:
    from torch_diode.heuristics.base import Heuristic
    from torch_diode.model.features.table import FeatureTable
    from torch_diode.model.wrapper import ModelWrapper
    from torch_diode.types.dataset import Dataset
    from torch_diode.types.hardware import Hardware

OFFERS: Mapping[str, tuple[str, ...]] = {
    "unfrozen": PLAIN,
    "frozen": (*PACKED, CPP_GEMM),
    "all": (*LIBRARIES, CPP_GEMM),
}
"""Templates that compiles offer, by the kind of compile, and all of them together."""

Decisions = dict[str, dict[str, OverPlain]]
"""Summaries by offer and slice."""


def decisions_over_plain(
    model: ModelWrapper, table: FeatureTable, dataset: Dataset, hardware: Hardware
) -> Decisions:
    """Take the decisions of each offer on a table's problems, and summarise them over plain
    torch's."""
    heuristic = ModelHeuristic(model)
    result = {}
    for offer, templates in OFFERS.items():
        decided = decide(heuristic, table, dataset, hardware, templates)
        if len(decided):
            problems = table.group[decided.chosen]
            slices = problem_slices(table.arrays.take(problems), table.roofline[problems])
            shown = {name: mask for name, mask in slices.items() if _is_shown(name)}
            result[offer] = over_plain(table, decided, shown)
    return result


def _is_shown(name: str) -> bool:
    """Operations, precisions, and precisions by layout and threads."""
    return name.startswith("precision=") or (name.startswith("op=") and "," not in name)


def decide(
    heuristic: Heuristic,
    table: FeatureTable,
    dataset: Dataset,
    hardware: Hardware,
    templates: tuple[str, ...],
) -> Decided:
    """Decide each problem that has a choice among these templates, plain torch's among them."""
    rows = table.rows
    candidates = dataset.candidates(rows)
    codes = [i for i, name in enumerate(candidates.templates) if name in templates]
    offered = np.isin(candidates.template, codes)
    order = np.flatnonzero(offered)
    order = order[np.argsort(table.group[order], kind="stable")]
    threads = table.arrays.threads.astype(int)
    found = []
    for part in np.split(order, np.flatnonzero(np.diff(table.group[order])) + 1):
        space = candidates.take(part)
        plain = space.is_template(policy.plain_choice(space))
        if len(part) < 2 or not plain.any():
            continue
        chip = with_threads(hardware, int(threads[table.group[part[0]]]))
        ranking = heuristic.rank(dataset.problem(int(rows[part[0]])), space, chip)
        chosen = plain.argmax()
        if ranking is not None:
            chosen = policy.single_choice_order(ranking, space)[0]
        found.append((part[chosen], part[plain.argmax()], part[table.time_us[part].argmin()]))
    chosen_rows, plain_rows, best_rows = np.array(found, np.int64).reshape(-1, 3).T
    return Decided(chosen_rows, plain_rows, best_rows)
