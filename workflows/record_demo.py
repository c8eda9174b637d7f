#!/usr/bin/env python3
"""Recording of the demo as an SVG, for the README: runs it on this machine and draws its output.

    python workflows/record_demo.py            # writes docs/demo.svg

The machine should have nothing else to do, since the demo measures.
"""

from __future__ import annotations

import argparse
import io
import re
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

from torch_diode.files.atomic import write_text

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 100
COMMAND = "python3 tasks.py demo"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "demo.svg")
    output = parser.parse_args().output
    start = time.monotonic()
    demo = [sys.executable, "workflows/demo.py", "--output", "build/report.html"]
    ended = subprocess.run(demo, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    write_text(output, drawing(ended.stdout, time.monotonic() - start))


def drawing(printed: str, seconds: float) -> str:
    """What was printed, as a terminal of 100 columns shows it; without fonts from elsewhere."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), highlight=False)
    console.print(Text.assemble(("$ ", "green"), (COMMAND, "bold")))
    for line in printed.rstrip().splitlines():
        heading = re.match(r"\d\. [^.]+\.", line)
        text = Text(line)
        if heading:
            text.stylize("bold cyan", 0, heading.end())
        elif "with torch-diode " in line or line.startswith("    torch-diode "):
            text.stylize("bold green")
        console.print(text, soft_wrap=True)
    console.print(Text(f"({seconds:.0f} s, once the environment is there)", "dim"))
    svg = console.export_svg(title="torch-diode", unique_id="demo")
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


if __name__ == "__main__":
    main()
