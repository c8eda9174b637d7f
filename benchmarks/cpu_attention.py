"""Scaled dot-product attention on this machine's CPU: torch-diode's C++ kernel against ATen's.

    python benchmarks/cpu_attention.py --threads 2 --problems 100 --seed 2 --minutes 8

Half of the problems are those of models, half are drawn at random: sizes log-uniform, with and
without masks, causal, decoding with few queries. Both kernels are called as a compiled graph calls
them, interleaved, with their operands in the cache, except the keys and values of a decoding step,
which come from memory. Float32, no gradients. The machine should have nothing else to do.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from _attention_scores import scores
from _live import RESULTS, made_with, save

from torch_diode.collection.timers.cpu import CpuTimer
from torch_diode.hardware import detect
from torch_diode.heuristics.cpu_attention import shipped_rule
from torch_diode.heuristics.questions import CpuAttention
from torch_diode.integration.cpu.build_attention import ATEN_ATTENTION, build_attention

MOST_FLOPS = 1.2e10
DECODING = 15
"""Queries up to which keys and values come from memory."""
ROUNDS = ((math.inf, 6), (math.inf, 12))


@dataclass(frozen=True)
class Problem:
    """One attention; `mask` as in the question."""

    batch: int
    heads: int
    queries: int
    keys: int
    head_dim: int
    causal: bool = False
    mask: str = "none"

    @property
    def flops(self) -> float:
        """Multiplications and additions of both products."""
        return 4.0 * self.batch * self.heads * self.queries * self.keys * self.head_dim


MODELS = (
    *(Problem(b, 12, 128, 128, 64) for b in (1, 4)),  # BERT-base
    Problem(2, 12, 128, 128, 64, mask="keys"),
    Problem(8, 12, 384, 384, 64, mask="keys"),
    *(Problem(1, 12, n, n, 64, causal=True) for n in (128, 512, 1024)),  # GPT-2, prefill
    *(Problem(1, 12, 1, n, 64) for n in (129, 513, 1024)),  # and decoding
    Problem(1, 12, 197, 197, 64),  # ViT-B/16
    Problem(8, 12, 197, 197, 64),
    Problem(1, 16, 577, 577, 64),
    Problem(1, 6, 1500, 1500, 64),  # Whisper-tiny
    Problem(1, 8, 1500, 1500, 64),
    Problem(1, 6, 1, 1500, 64),
    *(Problem(1, 8, n, n, 64, mask="full") for n in (32, 128, 512)),  # T5-small
    Problem(1, 8, 32, 128, 64, mask="full"),
    Problem(1, 32, 256, 256, 128, causal=True),  # Llama
    *(Problem(1, 32, 1, n, 128) for n in (256, 2048)),
    Problem(2, 8, 4096, 77, 40),  # Stable Diffusion, to a text
    Problem(2, 8, 1024, 1024, 80),
    Problem(64, 3, 49, 49, 32, mask="full"),  # Swin
    Problem(1, 12, 50, 50, 64),  # CLIP
    Problem(1, 8, 77, 77, 64, causal=True),
    Problem(32, 12, 16, 16, 32),
    *(Problem(b, 12, 8, 1024, 64) for b in (1, 4)),  # a few tokens at a time
    *(Problem(1, 32, m, 2048, 128) for m in (8, 16)),
)


def drawn(count: int, seed: int) -> list[Problem]:
    """Problems at random."""
    generator = random.Random(seed)

    def size(low: int, high: int) -> int:
        return round(math.exp(generator.uniform(math.log(low), math.log(high))))

    found: list[Problem] = []
    while len(found) < count:
        queries = size(1, 2048) if generator.random() < 0.85 else generator.randint(1, 8)
        causal = generator.random() < 0.25
        keys = queries if causal or generator.random() < 0.6 else size(1, 4096)
        problem = Problem(
            size(1, 16),
            size(1, 32),
            queries,
            keys,
            generator.choice([16, 32, 40, 48, 64, 64, 64, 72, 80, 96, 128, 128, 160, 256]),
            causal,
            "none" if causal else generator.choice(["none", "none", "keys", "full"]),
        )
        if 1e4 < problem.flops < MOST_FLOPS:
            found.append(problem)
    return found


def operands(problem: Problem) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, Any]:
    """Random operands, laid out as a model's linears leave them, and the mask or None."""
    p = problem

    def states(rows: int) -> torch.Tensor:
        return torch.randn(p.batch, rows, p.heads, p.head_dim).transpose(1, 2)

    sizes = {"keys": (p.batch, 1, 1, p.keys), "full": (1, p.heads, p.queries, p.keys)}
    mask = torch.randn(sizes[p.mask]) if p.mask in sizes else None
    return states(p.queries), states(p.keys), states(p.keys), mask


def measured(problem: Problem, timer: CpuTimer) -> dict[str, Any]:
    """Times of both kernels, with the difference of their results over their size."""
    query, key, value, mask = operands(problem)
    ours = build_attention(query, key, value, mask, problem.causal)

    def aten() -> torch.Tensor:
        result: torch.Tensor = ATEN_ATTENTION(
            query, key, value, 0.0, problem.causal, attn_mask=mask
        )[0]
        return result

    expected = aten()
    difference = float((ours() - expected).norm() / expected.norm())
    cached = [query] if problem.queries <= DECODING else [query, key, value]
    timer.keep_cached(lambda: [each.sum() for each in cached])
    own, plain = timer.measure([ours, aten], ROUNDS)
    return {
        **asdict(problem),
        "us": own.time_us,
        "aten_us": plain.time_us,
        "ratio": round(own.time_us / plain.time_us, 4),
        "spread": max(own.spread, plain.spread),
        "difference": difference,
    }


def chosen(row: dict[str, Any], hardware: Any) -> str:
    """The kernel that the shipped rule takes."""
    rule = shipped_rule(hardware)
    sizes = {name: row[name] for name in Problem.__dataclass_fields__}
    question = CpuAttention(hardware=hardware, default="aten", **sizes)
    return (rule.answer(question) if rule else None) or "aten"


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Ratios over ATen's time as the rule decides, and of the kernel wherever it can run."""
    decided = [row["ratio"] if row["chosen"] != "aten" else 1.0 for row in rows]
    best = [min(row["ratio"], 1.0) for row in rows]

    def mean(values: list[float]) -> float:
        return round(math.exp(sum(map(math.log, values)) / len(values)), 4)

    return {
        "problems": len(rows),
        "over_aten": mean(decided),
        "over_aten_worst": max(decided),
        "over_best": mean([a / b for a, b in zip(decided, best, strict=True)]),
        "always_ours_over_aten": mean([row["ratio"] for row in rows]),
        "kept_aten": sum(row["chosen"] == "aten" for row in rows),
        "largest_difference": max(row["difference"] for row in rows),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--problems", type=int, default=100, help="drawn at random")
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=8)
    parser.add_argument("--output", type=Path, default=RESULTS / "cpu_attention.json")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    hardware = detect("cpu")
    timer = CpuTimer(options.seed, hardware.l3_bytes)
    problems = [*MODELS, *drawn(options.problems, options.seed)]
    random.Random(options.seed).shuffle(problems)
    end = time.monotonic() + 60 * options.minutes
    rows = []
    for problem in problems:
        if time.monotonic() > end:
            break
        row = measured(problem, timer)
        row |= {"threads": options.threads, "chosen": chosen(row, hardware)}
        rows.append(row)
        print(f"{problem}: {row['us']:.1f} us, ATen {row['aten_us']:.1f}, {row['ratio']:.2f}")
    before = json.loads(options.output.read_text()) if options.output.exists() else {}
    rows += [row for row in before.get("rows", ()) if row["threads"] != options.threads]
    counts = sorted({row["threads"] for row in rows})
    found = {str(n): summary([row for row in rows if row["threads"] == n]) for n in counts}
    print(json.dumps(found, indent=1))
    head = made_with(hardware.name, options.seed)
    head["commands"] = [*before.get("commands", ()), *head["commands"]]
    head |= {"summary": found, "scores": scores(rows)}
    save(options.output, {**head, "rows": rows})


if __name__ == "__main__":
    main()
