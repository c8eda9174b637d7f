"""A long attack: `python -m tests.attack --minutes 15`; every case's seed is in its name."""

import argparse
import itertools
import sys
import time
from collections import Counter, defaultdict

from tests.attack.groups import draw, fill
from tests.attack.sandbox import Attacker, Case, Outcome, sandbox

_REPORTED = 1000
"""Cases after which a long run shows where it is."""


def attack(seed: int, minutes: float, most: int | None = None) -> tuple[str, list[str]]:
    """Run cases for so long; a table of their ends by group, and the faults."""
    ends: dict[str, Counter[str]] = defaultdict(Counter)
    faults: list[str] = []
    with sandbox() as home:
        fill(home)
        with Attacker(home) as attacker:
            end = time.monotonic() + 60 * minutes
            for number, case in enumerate(itertools.islice(draw(seed, home), most)):
                if time.monotonic() > end:
                    break
                if number and number % _REPORTED == 0:
                    print(_table(ends), flush=True)
                outcome = attacker.outcome(case)
                ends[case.group][outcome.end] += 1
                if outcome.fault:
                    faults.append(_describe(case, outcome))
                    print(faults[-1], flush=True)
        if faults:
            print(f"The directories of these cases are in {home}")
    return _table(ends), faults


def _describe(case: Case, outcome: Outcome) -> str:
    line = " ".join(map(repr, case.arguments))
    return f"{outcome.end}: {case.group}, {case.name}: {dict(case.environ)} {line}\n{outcome.fault}"


def _table(ends: dict[str, Counter[str]]) -> str:
    lines = [
        f"{group:20} {counts.total():6,}  "
        + ", ".join(f"{n:,} {name}" for name, n in counts.most_common())
        for group, counts in ends.items()
    ]
    total = sum((counts for counts in ends.values()), Counter())
    return "\n".join([*lines, f"{'all':20} {total.total():6,}"])


def main() -> None:
    """Attack for so many minutes, and end with exit code 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--cases", type=int, help="stop after so many")
    given = parser.parse_args()
    print(f"Seed {given.seed}", flush=True)
    table, faults = attack(given.seed, given.minutes, given.cases)
    print(f"\n{table}\n{len(faults)} faults")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
