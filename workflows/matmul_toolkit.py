#!/usr/bin/env python3
"""The command line under its historic name: the same program as `torch-diode`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from torch_diode.cli import main

if __name__ == "__main__":
    main()
