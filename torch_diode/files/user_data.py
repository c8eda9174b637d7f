"""The user's data directory: what torch-diode measured on this machine and looks for by default."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HOME_VARIABLE = "TORCH_DIODE_HOME"
_NAME = "torch-diode"


def user_data() -> Path:
    """`TORCH_DIODE_HOME`, or the platform's place for a program's data."""
    if home := os.environ.get(HOME_VARIABLE):
        return Path(home).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local") / _NAME
    if sys.platform == "darwin":
        return Path.home() / "Library/Application Support" / _NAME
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / _NAME
