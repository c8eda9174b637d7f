"""Tables of the live benchmarks' results in Markdown, for the README and the documentation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from _cpu_variants import DIODE as CPU_DIODE
from _cpu_variants import TUNED as CPU_TUNED
from _selection import DEFAULT, DIODE, LOG_NORMAL, PLAIN, REAL_MODELS, TUNED

from torch_diode.types.candidate import ATEN

CPU_VARIANTS = {
    "torch-diode": "torch-diode",
    "frozen": "freezing",
    "max-autotune, frozen": "`max-autotune`, freezing",
    "torch-diode, frozen": "torch-diode, freezing",
    "onnxruntime": "ONNX Runtime",
    "openvino": "OpenVINO",
    "zentorch": "AMD zentorch",
}
"""Titles of the variants; those that were not measured have no column."""
_MEANS = ("geomean", "models")
_CHIPS = {"nvidia-h200": "NVIDIA H200", "amd-zen5": "AMD Zen 5"}
Results = dict[str, Any]


def summary_table(selection: Results, models: Results | None, cpu: Results) -> str:
    """One row per hardware and kind of work, the README's table, with its footnotes."""
    lines = [
        "| time of torch-diode, geometric mean | over plain | over `max-autotune` | compile time "
        "over plain | `max-autotune`'s |",
        "| --- | --- | --- | --- | --- |",
        *_gpu_rows(selection, models),
    ]
    notes = ["Below 1 torch-diode is faster. Plain is `torch.compile`"]
    if models and models["summary"]["models"]:
        notes[0] += ", with CUDA graphs for whole models on the GPU"
    notes[0] += "; on the CPU, float32, `max-autotune` also has constant weights (freezing)."
    for name, found in cpu["summary"].items():
        lines.append(_cpu_row(cpu, name, found))
        notes += _behind(cpu, name, found)
        notes += _peers(name, found)
    return "\n".join([*lines, "", " ".join(notes)])


def _gpu_rows(selection: Results, models: Results | None) -> Iterator[str]:
    found, chip = selection["summary"]["all"], _CHIPS[selection["hardware"]]
    seconds = selection["summary"]["compile seconds"]
    over_plain = found[f"{DIODE} over {ATEN}"]
    cells = [
        number(over_plain["geomean"], 2),
        number(found[f"{DIODE} over {DEFAULT}"]["geomean"], 2),
        number(seconds[f"{DIODE} over {PLAIN}"], 1),
        number(seconds[f"{DEFAULT} over {PLAIN}"], 0),
    ]
    yield f"| {chip}: {over_plain['problems']} matmuls alone | {' | '.join(cells)} |"
    if models and models["summary"]["models"]:
        means = models["summary"]["geomean"]
        own = means["compile over reduce-overhead"]
        cells = [
            number(means["gpu over reduce-overhead"], 2),
            number(means.get("gpu over max-autotune"), 2),
            number(own, 1),
            number(own * means.get("max-autotune compile over", math.nan), 0),
        ]
        yield f"| {chip}: {len(models['summary']['models'])} whole models | {' | '.join(cells)} |"


def _cpu_row(cpu: Results, name: str, found: Results) -> str:
    times = found["time over plain"]["geomean"]
    seconds = found["compile seconds over plain"]["geomean"]
    tuned = _geomean_over(found["time over plain"], CPU_DIODE, CPU_TUNED)
    cells = [
        number(times[CPU_DIODE], 2),
        number(tuned, 2),
        number(seconds[CPU_DIODE], 1),
        number(seconds.get(CPU_TUNED), 1),
    ]
    models, threads = found["time over plain"]["models"][CPU_DIODE], _threads(name)
    return f"| {_CHIPS[cpu['hardware']]}, {threads}: {models} whole models | {' | '.join(cells)} |"


def _threads(name: str) -> str:
    return "1 thread" if name == "1 threads" else name


def _geomean_over(times: Results, variant: str, other: str) -> float | None:
    """Geometric mean of one variant over another, of the models that ran both."""
    rows = [row for name, row in times.items() if name not in _MEANS]
    logs = [math.log(row[variant] / row[other]) for row in rows if variant in row and other in row]
    return math.exp(math.fsum(logs) / len(logs)) if logs else None


def _behind(cpu: Results, name: str, found: Results) -> Iterator[str]:
    """A sentence where max-autotune beats all of torch-diode's ways by more than a twentieth."""
    slower = []
    for model, row in found["time over plain"].items():
        if model in _MEANS or CPU_TUNED not in row:
            continue
        best = min(value for way, value in row.items() if way.startswith(CPU_DIODE))
        if best > 1.05 * row[CPU_TUNED]:
            slower.append(f"{model} ({best:.2f} against {row[CPU_TUNED]:.2f} of plain)")
    if slower:
        yield (
            f"With {_threads(name)} of {_CHIPS[cpu['hardware']]}, `max-autotune` is still ahead in "
            f"{', '.join(slower)}."
        )


def _peers(name: str, found: Results) -> Iterator[str]:
    """A sentence on other engines, where they were measured."""
    means = found["time over plain"]["geomean"]
    peers = [
        f"{CPU_VARIANTS[peer]} {means[peer]:.2f}"
        for peer in ("onnxruntime", "openvino", "zentorch")
        if peer in means
    ]
    if peers:
        frozen = means.get("torch-diode, frozen")
        own = f"; torch-diode with freezing {frozen:.2f}" if frozen else ""
        yield f"Other engines with {_threads(name)}, over plain: {', '.join(peers)}{own}."


def gpu_tables(selection: dict[str, Any], models: dict[str, Any] | None) -> str:
    """Single matmuls and whole models on a GPU, in Markdown."""
    found = selection["summary"]
    lines = [
        f"| {selection['gpu'].partition(',')[0]}, torch {selection['torch']} | {LOG_NORMAL} sizes "
        f"| shapes of {REAL_MODELS} |",
        "| --- | --- | --- |",
    ]
    ratios = (
        (DIODE, "best", "torch-diode's GPU time over the best known"),
        (DIODE, ATEN, "over ATen, which a plain `torch.compile` runs"),
        (DIODE, DEFAULT, "over what `max-autotune` picks"),
        (TUNED, "best", "torch-diode with `max-autotune`, over the best known"),
        (DEFAULT, "best", "`max-autotune` without torch-diode, over the best known"),
    )
    for method, over, text in ratios:
        lines.append(f"| {text} | {_both(found, method, over)} |")
        if (method, over) == (DIODE, "best"):
            lines.append(f"| its 99th percentile; the worst | {_tails(found, method, over)} |")
    seconds, tried = found["compile seconds"], found["kernels benchmarked"]
    shown = [number(seconds[f"{m}, mean"], 2) for m in (PLAIN, DIODE, TUNED, DEFAULT)]
    lines += [
        "",
        "| to compile one matmul, caches empty | plain | torch-diode "
        "| torch-diode, `max-autotune` | `max-autotune` |",
        "| --- | --- | --- | --- | --- |",
        f"| seconds, mean | {' | '.join(shown)} |",
        *_over_plain(seconds),
        f"| kernels benchmarked, mean | 0 | 0 | {number(tried[TUNED], 1)} "
        f"| {number(tried[DEFAULT], 1)} |",
    ]
    if models and models["summary"]["models"]:
        lines += ["", *_of_models(models)]
    return "\n".join(lines)


def _both(found: dict[str, Any], method: str, over: str) -> str:
    """Mean ratio on both sets, with the number of problems, since not all methods ran on all."""
    parts = (found[name][f"{method} over {over}"] for name in (LOG_NORMAL, REAL_MODELS))
    return " | ".join(
        f"{part['geomean']:.3f} ({part['problems']})" if part["problems"] else "–" for part in parts
    )


def _tails(found: dict[str, Any], method: str, over: str) -> str:
    parts = (found[name][f"{method} over {over}"] for name in (LOG_NORMAL, REAL_MODELS))
    return " | ".join(f"{number(p['p99'], 2)}; {number(p['most'], 2)}" for p in parts)


def _over_plain(seconds: dict[str, Any]) -> Iterator[str]:
    """Rows of compile time over plain torch's, in all and by whether a kernel is compiled."""
    over, compiled = f"{DIODE} over {PLAIN}", seconds["a template compiled"]
    tuned = (number(seconds[f"{method} over {PLAIN}"], 1) for method in (TUNED, DEFAULT))
    yield f"| over plain, geometric mean | 1 | {number(seconds[over], 2)} | {' | '.join(tuned)} |"
    parts = (
        ("ATen kept", "ATen stays", seconds["problems"] - compiled, seconds["share of ATen"]),
        ("a template compiled", "a kernel is compiled", compiled, 1 - seconds["share of ATen"]),
    )
    for name, text, count, share in parts:
        ratio = number(seconds[f"{over}, {name}"], 2)
        yield f"| where {text} ({share:.0%}; {count} timed) | 1 | {ratio} | | |"


def number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _of_models(models: dict[str, Any]) -> Iterator[str]:
    found, means = models["summary"]["models"], models["summary"]["geomean"]
    ratios = (
        ("gpu over reduce-overhead", "GPU time over `reduce-overhead`", 3),
        ("gpu over max-autotune", "over `max-autotune`", 3),
        ("compile over reduce-overhead", "compile time over `reduce-overhead`", 2),
        ("max-autotune compile over", "`max-autotune`'s compile time over torch-diode's", 1),
        ("memory over reduce-overhead", "peak memory over `reduce-overhead`", 2),
    )
    columns = [each for each in ratios if means.get(each[0]) is not None]
    seen = {name: sum(row.get(name) is not None for row in found.values()) for name in means}
    titles = [
        "whole models, torch-diode with `reduce-overhead`",
        *(title for _, title, _ in columns),
    ]
    yield f"| {' | '.join(titles)} |"
    yield f"| {' | '.join('---' for _ in titles)} |"
    for name, row in {**found, "geometric mean": means}.items():
        cells = [number(row.get(column), digits) for column, _, digits in columns]
        if "noise" in row:
            cells[0] += f" ± {row['noise']:.3f}"
        else:
            few = (f" (of {seen[name]})" if seen[name] < len(found) else "" for name, *_ in columns)
            cells = [cell + text for cell, text in zip(cells, few, strict=True)]
        yield f"| {name} | {' | '.join(cells)} |"


def cpu_tables(results: Results) -> str:
    """Whole models on a CPU over plain torch.compile, a table per number of threads."""
    parts = []
    for name, found in results["summary"].items():
        times, seconds = found["time over plain"], found["compile seconds over plain"]
        shown = {way: title for way, title in CPU_VARIANTS.items() if way in times["geomean"]}
        chip = f"{_CHIPS[results['hardware']]}, {_threads(name)}, torch {results['torch']}"
        rows = {model: row for model, row in times.items() if model not in _MEANS}
        lines = [
            f"| {chip}, float32: time over plain | {' | '.join(shown.values())} |",
            f"| --- |{' --- |' * len(shown)}",
        ]
        for model, row in {**rows, "geometric mean": times["geomean"]}.items():
            lines.append(f"| {model} | {_cells(row, shown)} |")
        lines.append(f"| compile seconds over plain | {_cells(seconds['geomean'], shown)} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _cells(row: dict[str, float], shown: dict[str, str]) -> str:
    return " | ".join(number(row.get(variant), 2) for variant in shown)


def cpu_selection_table(results: Results) -> str:
    """Single matmuls on a CPU, a row per number of threads, kind of weight and dtype."""
    columns = {
        "torch-diode over plain": "torch-diode over plain",
        "torch-diode over best": "torch-diode over the best",
        "plain over best": "plain over the best",
        "max-autotune over best": "`max-autotune` over the best",
    }
    found = results["summary"]
    shown = {n: t for n, t in columns.items() if any(n in part for part in found.values())}
    lines = [
        f"| {_CHIPS[results['hardware']]}, single matmuls | problems | "
        f"{' | '.join(shown.values())} |",
        f"| --- | --- |{' --- |' * len(shown)}",
    ]
    for name, part in found.items():
        cells = (number(part.get(column, {}).get("geomean"), 3) for column in shown)
        lines.append(f"| {name} | {part['problems']} | {' | '.join(cells)} |")
    return "\n".join(lines)
