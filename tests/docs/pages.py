"""The pages, and the blocks of code in them."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    str(path.relative_to(ROOT))
    for pattern in (
        "*.md",
        "docs/*.md",
        "examples/**/*.md",
        "diode_datasets/**/README.md",
        "workflows/*.md",
    )
    for path in ROOT.glob(pattern)
)
_BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>run[^>]*?) -->\n)?```(?P<language>python|bash)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_CONDITION = re.compile(r"(needs|unless)=(\w+)")


@dataclass(frozen=True)
class Block:
    """A block of code; `conditions` are pairs such as ("needs", "gpu")."""

    page: str
    language: str
    code: str
    runs: bool
    conditions: tuple[tuple[str, str], ...]

    def applies(self, things: set[str]) -> bool:
        """True if it runs on a machine that has these things."""
        kept = ((thing in things) == (word == "needs") for word, thing in self.conditions)
        return self.runs and all(kept)

    def needs(self, thing: str) -> bool:
        """True if it runs only where there is such a thing."""
        return ("needs", thing) in self.conditions


def blocks(page: str) -> list[Block]:
    """All Python and shell blocks of a page, in order."""
    return blocks_in((ROOT / page).read_text(encoding="utf-8"), page)


def blocks_in(text: str, page: str = "") -> list[Block]:
    """The same of a text."""
    found = []
    for match in _BLOCK.finditer(text):
        mark = match["mark"] or ""
        conditions = tuple(_CONDITION.findall(mark))
        if mark and mark.split() != ["run", *(f"{word}={thing}" for word, thing in conditions)]:
            raise ValueError(f"{page}: got <!-- {mark} -->; expected run, needs=… and unless=…")
        found.append(Block(page, match["language"], match["code"], bool(mark), conditions))
    return found
