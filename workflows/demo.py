#!/usr/bin/env python3
"""Demo for any machine: a transformer compiled and run here, with and without torch-diode; then the
kernels torch.compile would run for it on an H200, and the quality of those choices.

T5-small's encoder runs on this machine's GPU, or on its CPU if there is none. Then Inductor lowers
it as on an H200, where nothing runs: the trained model decides about each matmul, and its choices
are compared with times measured on an H200.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import demo_cpu
import demo_gpu
import torch
from t5_encoder import INNER, LAYERS, TOKENS, WIDTH, Encoder
from torch.func import functional_call

import torch_diode as td
from torch_diode.cli.console.output import print_table
from torch_diode.hardware import known
from torch_diode.integration.capture.fake_gpu import Input, lower, pretend
from torch_diode.integration.deciding.record import Decision
from torch_diode.report.build import report
from torch_diode.types.errors import DiodeError

ROOT = Path(__file__).resolve().parents[1]
HARDWARE = "nvidia-h200"
RECORDED = ROOT / "diode_datasets" / "matmul" / HARDWARE / "validation"
PARTS = {
    ("mm", WIDTH, WIDTH): "q, k, v, o",
    ("mm", INNER, WIDTH): "up",
    ("mm", WIDTH, INNER): "down",
    ("bmm", TOKENS, 64): "q · kᵀ",
    ("bmm", 64, TOKENS): "weights · v",
}
"""Role of a matmul in the transformer, by op, N and K."""


@dataclass(frozen=True)
class Truth:
    """Measured times of one problem, in microseconds."""

    times: dict[td.Candidate, float]

    @property
    def best(self) -> td.Candidate:
        """Time of the fastest candidate."""
        return min(self.times, key=self.times.__getitem__)

    @property
    def aten(self) -> float:
        """Time of the vendor's library."""
        return self.times[td.Candidate("aten")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "report.html")
    output = parser.parse_args().output
    if torch.cuda.is_available():
        demo_gpu.show()
    else:
        demo_cpu.show()
    print(
        "\n4. On an NVIDIA H200, which need not be here. Inductor lowers the same program as there,"
        "\n   in bfloat16, and torch-diode chooses; the times were measured on one:\n"
    )
    decisions = decide()
    truths = recorded({decision.problem for decision in decisions})
    show(decisions, truths)
    sum_up(decisions, truths)
    if truths:
        output.parent.mkdir(parents=True, exist_ok=True)
        scores = report(RECORDED, output, overwrite=True).validation.evaluation.model["all"][0]
        print(
            f"   Over all {scores.problems:,} problems measured there, its choices take "
            f"{scores.geomean:.3f} times the best. A report\n   of them, for a browser: {output}"
        )
    print(
        "\nNext, a program of your own: measure its matmuls here, run it with what was found, see "
        "why:\n\n    torch-diode tune program.py\n    torch-diode run program.py\n"
        "    torch-diode explain program.py"
    )


def decide() -> list[Decision]:
    """Lower the encoder with the trained model enabled, and return the decisions."""
    with torch.device("meta"):
        encoder = Encoder()
    state = {**dict(encoder.named_parameters()), **dict(encoder.named_buffers())}
    weights = [Input(tuple(value.shape), _dtype(value)) for value in state.values()]

    def run(tokens: torch.Tensor, *values: torch.Tensor) -> torch.Tensor:
        return functional_call(encoder, dict(zip(state, values, strict=True)), (tokens,))

    model = td.ModelHeuristic(td.load_model("matmul", hardware=HARDWARE), f"model {HARDWARE}")
    before = len(td.explain())
    with pretend(known(HARDWARE)), td.using(model), torch.no_grad():
        lower(run, [Input((1, TOKENS), torch.int64), *weights])
    return td.explain()[before:]


def _dtype(value: torch.Tensor) -> torch.dtype:
    return torch.bfloat16 if value.is_floating_point() else value.dtype


def recorded(problems: set[td.MMShape]) -> dict[td.MMShape, Truth]:
    """Measured times of these problems; empty without the data."""
    if not RECORDED.is_dir():
        return {}
    dataset = td.load_dataset(RECORDED)
    groups = dataset.problems
    found = {}
    for number, row in enumerate(groups.first.tolist()):
        problem = dataset.problem(row)
        if problem in problems:
            timings = dataset.take(groups.ids == number)
            times = {t.candidate: t.time_us for t in timings if t.time_us is not None}
            found[problem] = Truth(times)
    return found


def show(decisions: list[Decision], truths: dict[td.MMShape, Truth]) -> None:
    """Print a line per kind of matmul: choice, its time, ATen's and the best."""
    counts = Counter(decision.problem for decision in decisions)
    rows = []
    for decision in {d.problem: d for d in decisions}.values():
        problem, winner = decision.problem, decision.winner
        truth = truths.get(problem)
        rows.append(
            (
                counts[problem],
                PARTS.get((problem.op, problem.N, problem.K), ""),
                f"{problem.op} {'x'.join(map(str, _sizes(problem)))} {problem.layout}",
                str(winner.candidate),
                truth and truth.times.get(winner.candidate),
                truth and truth.aten,
                truth and truth.times[truth.best],
            )
        )
    names = ("×", "part", "problem", "torch-diode runs", "µs", "ATen µs", "best µs")
    print_table(names, rows, right="rlllrrr")


def _sizes(problem: td.MMShape) -> tuple[int, ...]:
    sizes = (problem.M, problem.N, problem.K)
    return (problem.B, *sizes) if problem.B > 1 else sizes


def sum_up(decisions: list[Decision], truths: dict[td.MMShape, Truth]) -> None:
    """Print the totals of all matmuls against ATen and the best."""
    ranked = sum(decision.ranked for decision in decisions)
    took = statistics.median(decision.microseconds for decision in decisions)
    print(
        f"\n   {len(decisions)} matmuls in {LAYERS} layers, decided among {ranked:,} candidates in "
        f"{took:,.0f} µs each (median)."
    )
    if not truths:
        print(f"   {RECORDED} is missing: no measured times to compare with.")
        return
    timed = [
        (truth, truth.times[decision.winner.candidate])
        for decision in decisions
        if (truth := truths.get(decision.problem)) and decision.winner.candidate in truth.times
    ]
    ours = sum(chosen for _, chosen in timed)
    aten = sum(truth.aten for truth, _ in timed)
    best = sum(truth.times[truth.best] for truth, _ in timed)
    print(
        f"   {len(timed)} of them are in the data (the others show a dash), which the model was "
        f"not trained on:\n   they take {aten:.0f} µs with ATen, {ours:.0f} with torch-diode's "
        f"choices, {best:.0f} with the best of all kernels."
    )


if __name__ == "__main__":
    try:
        main()
    except DiodeError as fault:
        print(f"error: {fault}", file=sys.stderr)
        sys.exit(2)
