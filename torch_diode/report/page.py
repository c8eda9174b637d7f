"""The page: one HTML file with its style, script and data, which loads nothing.

The data may come from untrusted files. It is embedded as JSON in which no tag can begin or end, the
script shows it as text only, and the page's security policy lets no other script run and nothing be
loaded.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch_diode.files.atomic import write_text

_FOLDER = Path(__file__).parent
SCRIPTS = ("page.js", "charts.js", "map.js", "lookup.js", "start.js")


def write_page(
    path: str | os.PathLike[str], data: Mapping[str, Any], overwrite: bool = True
) -> None:
    """Write the page to a file atomically."""
    write_text(path, page(data), overwrite)


def page(data: Mapping[str, Any]) -> str:
    """The page's text."""
    script = "\n".join(_text(name) for name in SCRIPTS)
    parts = {
        "policy": _policy(script, _text("page.css")),
        "style": _text("page.css"),
        "data": inert_json(data),
        "script": script,
    }
    # In one pass, so that placeholders within the data stay as they are.
    return re.sub("%%([a-z]+)%%", lambda place: parts[place[1]], _text("page.html"))


def inert_json(data: Mapping[str, Any]) -> str:
    """JSON without any character that HTML gives a meaning to."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _policy(script: str, style: str) -> str:
    hashes = {"script-src": script, "style-src": style}
    rules = ["default-src 'none'", "base-uri 'none'", "form-action 'none'"]
    for rule, text in hashes.items():
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        rules.append(f"{rule} 'sha256-{digest}'")
    return "; ".join(rules)


def _text(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
