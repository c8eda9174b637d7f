"""Scores of the rule for a CPU's attention, as its file has them, from the rows of a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

Row = dict[str, Any]


def _taken(row: Row) -> bool:
    return bool(row["chosen"] != "aten")


GROUPS: dict[str, Callable[[Row], bool]] = {
    "taken": _taken,
    "no mask": lambda row: _taken(row) and row["mask"] == "none" and not row["causal"],
    "causal": lambda row: _taken(row) and row["causal"],
    "a mask per key": lambda row: _taken(row) and row["mask"] == "keys",
    "a mask per query and key": lambda row: _taken(row) and row["mask"] == "full",
    "2 to 8 queries": lambda row: 2 <= row["queries"] <= 8,
    "1 query": lambda row: row["queries"] == 1,
}


def scores(rows: Sequence[Row]) -> dict[str, dict[str, Row]]:
    """By threads and group: problems, and the time over ATen's, in the mean and at worst."""
    return {
        f"{threads} threads": {
            name: _score([r["ratio"] for r in rows if r["threads"] == threads and belongs(r)])
            for name, belongs in GROUPS.items()
        }
        for threads in sorted({row["threads"] for row in rows}, reverse=True)
    }


def _score(ratios: Sequence[float]) -> Row:
    if not ratios:
        return {"problems": 0}
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return {"problems": len(ratios), "over ATen": round(mean, 2), "worst": round(max(ratios), 2)}
