#!/usr/bin/env python3
"""Fail if a model is not good enough: `gate.py scores.json 1.05`, with the output of `torch-diode
validate-model --json`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

path, limit = sys.argv[1], float(sys.argv[2])
scores = json.loads(Path(path).read_text(encoding="utf-8"))["scores"]
regret = scores["model"]["all"][0]["geomean"]
if regret > limit:
    sys.exit(f"regret@1 is {regret:.4f}; at most {limit:.4f} is allowed")
if scores["worse_than_aten"]:
    sys.exit(f"ATen alone is better in: {', '.join(scores['worse_than_aten'])}")
print(f"regret@1 {regret:.4f}, limit {limit:.4f}; better than ATen alone everywhere")
