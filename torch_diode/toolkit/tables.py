"""Lookup tables: of a dataset's fastest candidates, or of a model's decisions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from torch_diode.candidates import candidate_space
from torch_diode.candidates.gpu.eligibility import plain_templates
from torch_diode.files.tables import read_table
from torch_diode.hardware import detect, find
from torch_diode.heuristics import policy
from torch_diode.heuristics.model import ModelHeuristic
from torch_diode.model.registry import model_file
from torch_diode.toolkit.datasets import DatasetSource, read_all, select_timings, source_name
from torch_diode.toolkit.decisions import OFFERS
from torch_diode.toolkit.progress import Progress, ProgressCallback, log_progress
from torch_diode.types.candidate import Candidate
from torch_diode.types.dataset import Dataset, single_hashes
from torch_diode.types.errors import EmptySelectionError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.schema import CANDIDATE_NAMES, GROUP_NAMES
from torch_diode.types.table import Row, Table, TableEntry
from torch_diode.types.timing import Prediction, Timing

if TYPE_CHECKING:
    from torch_diode.model.wrapper import ModelWrapper

MOST_GAP = 2
"""Successive measured M of one range differ by at most this factor: between them nothing was
measured."""


def build_table(
    dataset: DatasetSource,
    k: int = 1,
    hardware: str | None = None,
    ops: Sequence[str] = (),
    progress: ProgressCallback = log_progress,
    *,
    threads: int = 0,
    ranges: bool = False,
) -> Table:
    """A lookup table of the k fastest candidates of every problem.

    `threads` selects a CPU's timings with so many. With `ranges`, problems that differ only in M
    become one row as far as one candidate is within noise of the best of each: then those that
    are, fastest on average first.
    """
    whole = read_all(dataset, progress=progress)
    timings = select_timings(whole, hardware, ops, source_name(dataset))
    if threads:
        timings = timings.take(timings.values("threads") == threads)
        if not len(timings):
            raise EmptySelectionError(
                f"{source_name(dataset)}: got no timing with {threads} threads; expected some"
            )
    table = Table.from_dataset(timings, k)
    return Table(tuple(_joined(table, timings, k)), table.provenance) if ranges else table


_Timings = dict[Candidate, tuple[Timing, float]]


def _joined(table: Table, dataset: Dataset, k: int) -> Iterator[Row]:
    """The rows, those that one range holds for joined."""
    near = _near_best(dataset)
    by_sizes: dict[tuple[str, MMShape], list[Row]] = {}
    for row in table:
        by_sizes.setdefault((row[0], replace(row[1], M=1)), []).append(row)
    for rows in by_sizes.values():
        run: list[Row] = []
        shared: set[Candidate] = set()
        for row in rows:
            also = shared & near[row[:2]].keys()
            if also and row[1].M <= MOST_GAP * run[-1][1].M:
                run, shared = [*run, row], also
            else:
                yield from _as_range(run, shared, near, dataset, k)
                run, shared = [row], set(near[row[:2]])
        yield from _as_range(run, shared, near, dataset, k)


def _near_best(dataset: Dataset) -> dict[tuple[str, MMShape], _Timings]:
    """The candidates of each problem that the noise of both times leaves equal to its best, with
    the log of their ratio to it."""
    pairs = dataset.group((*GROUP_NAMES, *CANDIDATE_NAMES))
    best = dataset.take(pairs.fastest(dataset.values("time_us")))
    times = best.values("time_us").astype(np.float64)
    noise = np.nan_to_num(best.values("spread"))
    ids, first = best.problems.ids, best.problems.fastest(times)
    least, most = np.zeros((2, len(best.problems)))
    least[ids[first]], most[ids[first]] = times[first], times[first] * (1 + noise[first])
    near = times * (1 - noise) <= most[ids]
    ratios = np.log(times / least[ids])
    found: dict[tuple[str, MMShape], _Timings] = {}
    for timing, ratio in zip(best.take(near), ratios[near].tolist(), strict=True):
        found.setdefault((timing.hardware, timing.problem), {})[timing.candidate] = timing, ratio
    return found


def _as_range(
    run: list[Row],
    shared: set[Candidate],
    near: dict[tuple[str, MMShape], _Timings],
    dataset: Dataset,
    k: int,
) -> Iterator[Row]:
    if len(run) < 2:
        yield from run
        return

    def mean_ratio(candidate: Candidate) -> tuple[float, str]:
        ratios = [near[row[:2]][candidate][1] for row in run]
        return sum(ratios) / len(ratios), str(candidate)

    hardware, problem, _ = run[-1]
    timings = [near[hardware, problem][c][0] for c in sorted(shared, key=mean_ratio)[:k]]
    span = (run[0][1].M, problem.M)
    yield hardware, problem, tuple(TableEntry.of_timing(t, dataset, span) for t in timings)


def build_table_from_model(
    model: str | os.PathLike[str],
    problems: Iterable[MMShape],
    k: int = 1,
    hardware: str | None = None,
    progress: ProgressCallback = log_progress,
    *,
    threads: int = 0,
) -> Table:
    """A lookup table of a model's decisions: for every problem the k candidates that a compile
    would take first, with predicted times.

    `hardware` is by default the model's own; on a CPU a row has those of plain and of frozen
    graphs, which offer different ones. Problems that the model abstains on are left out.
    """
    wrapper, chip = _load(os.fspath(model), hardware, threads)
    heuristic = ModelHeuristic(wrapper)
    known = wrapper.metadata
    hashes = single_hashes(known.template_hashes)
    rows: list[Row] = []
    left_out: list[str] = []
    for problem in dict.fromkeys(problems):
        decisions = {p.candidate: p.predicted_us for p in _decisions(heuristic, problem, chip, k)}
        if decisions:
            entries = (TableEntry(c, us, hashes.get(c.template)) for c, us in decisions.items())
            rows.append((chip.name, problem, tuple(entries)))
        else:
            reason = heuristic.why_abstained(problem, candidate_space(problem, chip), chip)
            left_out.append(f"{problem}: {reason}")
    if not rows:
        example = f", such as {left_out[0]}" if left_out else ""
        raise EmptySelectionError(
            f"{model}: got {len(left_out):,} problems, and decides none of them{example}"
        )
    if left_out:
        progress(Progress(message=f"{len(left_out):,} problems left out, such as {left_out[0]}"))
    facts = {"torch": ", ".join(known.torch), "triton": ", ".join(known.triton)}
    facts |= {"model": Path(model).stem, "threads": str(chip.threads or "")}
    return Table(tuple(rows), tuple((name, text) for name, text in facts.items() if text))


def _load(model: str, hardware: str | None, threads: int) -> tuple[ModelWrapper, Hardware]:
    """The model and the chip to decide for."""
    from torch_diode.model.checkpoint import load_model

    named = None if hardware is None else find(hardware, threads)
    wrapper = load_model(model_file(model, named or detect()))
    known = wrapper.metadata
    chip = named or find(known.hardware, threads or max(known.threads, default=0))
    wrapper.require(chip)
    return wrapper, chip


def _decisions(
    heuristic: ModelHeuristic, problem: MMShape, chip: Hardware, k: int
) -> Iterator[Prediction]:
    """The first k candidates of a plain compile, and on a CPU of one with frozen weights."""
    on_cpu = chip.kind == "cpu"
    kinds = (OFFERS["unfrozen"], OFFERS["frozen"]) if on_cpu else (plain_templates(problem),)
    for templates in kinds:
        space = candidate_space(problem, chip, templates)
        ranking = heuristic.rank(problem, space, chip)
        if ranking is not None:
            ranking = policy.adjust_for_compile(ranking, space, fixed_sizes=True, extra_us=0.0)
            for row in policy.single_choice_order(ranking, space)[:k].tolist():
                yield ranking.prediction(space, row)


def merge_tables(tables: Sequence[Path]) -> Table:
    """One table of several files, by the rules of `Table.merge`."""
    return Table.merge([read_table(path) for path in tables])
