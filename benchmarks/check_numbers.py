"""Check of the numbers in the README, the documentation and the cards against the results files.

    python benchmarks/check_numbers.py     # exit code 1, and a line for each number that is wrong

Measured numbers stand in tables that `front_page.py` writes, in cards that commands write, and in
few sentences. So this checks that the tables are up to date, that each number of a model's card is
in its JSON, that a data card's counts are those of the files, that the sentences still hold, and
that no other decimal number has been written into a page by hand.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from _attention_scores import scores
from front_page import BEGIN, END, README, TABLES, made, put_in

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
CARDS = sorted((ROOT / "trained_models").glob("*/*/*.md"))
DATA_CARDS = sorted((ROOT / "diode_datasets").glob("*/*/README.md"))
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
A_LOG = "experiments.md"
"""What single experiments found on the way is in no results file."""
NOT_MEASURED = re.compile(
    r"(?:torch|Python|Version|from|triton|CUDA|Coming from|to|release) v?\d+\.\d+(?:\.\d+)*"
    r"|0\.1\.1|0\.2\.0|Regret@1 of 1\.02|within 1\.\d+ times|\d\.\d times the fastest"
)
"""Releases, a definition's example, and the rule by which more samples are taken."""
_CARD_NUMBER = re.compile(r"(?<![\w.])\d+\.\d+(?:e[+-]\d+)?%?(?!\.?\d)")
_DECIMAL = re.compile(r"(?<![\w./-])\d+\.\d+(?![\w.]*\w/)")


def sentences() -> dict[tuple[str, str], Callable[[], bool]]:
    """What pages say in words, by page and words: whether the results still bear it out."""
    selection, overhead = _results("selection_live"), _results("compile_overhead")
    rate, seconds = _results("collection_rate"), selection["summary"]["compile seconds"]
    with_kernel = seconds["diode over plain, a template compiled"] - 1
    kernel_s = with_kernel * seconds["plain, mean"]
    decision_us = overhead["decision"]["aten first"]["new, in a lowering"]["wall_us_median"]
    alone = {card["hardware"] for card in map(_card, CARDS) if card.get("decides_alone")}
    zen5 = next(card for card in map(_card, CARDS) if card["hardware"] == "amd-zen5")
    several = seconds["max-autotune over diode max-autotune"]
    attention = scores(_results("cpu_attention")["rows"])
    rule = json.loads((ROOT / "trained_models/sdpa/amd-zen5/kernel.json").read_text("utf-8"))
    taken = {threads: found["taken"] for threads, found in attention.items()}
    return {
        ("README.md", "A decision takes a millisecond"): lambda: decision_us < 2000,
        ("README.md", "about half a second each"): lambda: 0.25 < kernel_s < 0.75,
        ("README.md", "decides alone on an H200 and on an AMD Zen 5 with 1 or 2 threads"): lambda: (
            alone == {"nvidia-h200", "amd-zen5"} and set(zen5["threads"]) == {1, 2}
        ),
        ("docs/answers.md", "A decision takes a millisecond"): lambda: decision_us < 2000,
        ("docs/answers.md", "half a second each"): lambda: 0.25 < kernel_s < 0.75,
        ("docs/answers.md", "becomes several times faster"): lambda: several > 2,
        ("docs/answers.md", "AMD Zen 5, 1 and 2 threads"): lambda: set(zen5["threads"]) == {1, 2},
        ("docs/measuring.md", "is timed at least 80 times faster"): lambda: rate["ratio"] >= 80,
        ("docs/decisions.md", "on an AMD Zen 5 from 9 queries on"): (
            lambda: rule["scores"] == attention and rule["within"]["queries"][0] == 9
        ),
        ("docs/decisions.md", "at a third of ATen's time with 2 threads, less than half with"): (
            lambda: taken["2 threads"]["over ATen"] < 0.35 and taken["1 threads"]["over ATen"] < 0.5
        ),
        ("docs/decisions.md", "never more than four fifths"): (
            lambda: max(score["worst"] for score in taken.values()) < 0.8
        ),
        ("docs/settings.md", "otherwise about five"): lambda: (
            4 <= selection["summary"]["kernels benchmarked"]["diode max-autotune"] < 6
        ),
    }


def wrong_numbers() -> Iterator[str]:
    """A line for each number that is not what was measured."""
    yield from _outdated_tables()
    for (page, words), holds in sentences().items():
        if words not in " ".join((ROOT / page).read_text(encoding="utf-8").split()):
            yield f"{page}: does not say {words!r} any more; correct `sentences`"
        elif not holds():
            yield f"{page}: {words!r} is not what the results say"
    for page in PAGES:
        if page.name != A_LOG:
            yield from by_hand(page.read_text(encoding="utf-8"), str(page.relative_to(ROOT)))
    for card in CARDS:
        yield from not_in_card(card.read_text(encoding="utf-8"), _card(card), card)
    for card in DATA_CARDS:
        yield from miscounted(card.read_text(encoding="utf-8"), card)


def _outdated_tables() -> Iterator[str]:
    summary, tables = made()
    text = README.read_text(encoding="utf-8")
    if put_in(text, summary) != text:
        yield "README.md: not the results' table; run benchmarks/front_page.py"
    if not TABLES.is_file() or TABLES.read_text(encoding="utf-8") != tables:
        yield f"{TABLES.relative_to(ROOT)}: not the results' tables; run benchmarks/front_page.py"


def by_hand(text: str, page: str) -> Iterator[str]:
    """Decimal numbers of a page's prose; code and tables written by script are passed over."""
    text = re.sub(f"{BEGIN}.*?{END}", "", text, flags=re.DOTALL)
    text = re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"`[^`\n]*`|\]\([^)]*\)", "", text)
    for line in text.splitlines():
        for number in _DECIMAL.findall(NOT_MEASURED.sub("", line)):
            yield f"{page}: {number} is written by hand; take it from results, or leave it out"


def not_in_card(text: str, card: dict[str, Any], path: Path) -> Iterator[str]:
    """Decimal numbers in a model card's tables that its JSON does not have."""
    known = [abs(value) for value in _numbers(card)]
    for line in text.splitlines():
        for number in _CARD_NUMBER.findall(line) if line.startswith("|") else ():
            scale = 100 if number.endswith("%") else 1
            mantissa, _, exponent = number.rstrip("%").partition("e")
            digits = len(mantissa.partition(".")[2]) - int(exponent or 0)
            value = float(number.rstrip("%"))
            if not any(abs(scale * each - value) <= 0.51 * 10.0**-digits for each in known):
                yield f"{path.relative_to(ROOT)}: {number} is not in {path.stem}.json"


def miscounted(text: str, path: Path) -> Iterator[str]:
    """Files of a data card whose number of timings is another one."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        files = re.findall(r"`([\w/-]+\.parquet)`", cells[0])
        if not files or len(cells) < 3:
            continue
        told = re.match(r"[\d,]+", cells[2])
        for file in files:
            rows = pq.ParquetFile(path.parent / file).metadata.num_rows
            if told is None or int(told[0].replace(",", "")) != rows:
                yield f"{path.relative_to(ROOT)}: {file} has {rows:,} timings, not {cells[2]}"


def _numbers(data: Any) -> Iterator[float]:
    if isinstance(data, dict | list):
        for value in data.values() if isinstance(data, dict) else data:
            yield from _numbers(value)
    elif isinstance(data, int | float) and not isinstance(data, bool):
        yield float(data)


def _card(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.with_suffix(".json").read_text(encoding="utf-8")))


def _results(name: str) -> dict[str, Any]:
    return dict(json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8")))


def main() -> int:
    faults = list(wrong_numbers())
    print("\n".join(faults) or "All numbers are those of the results.")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
