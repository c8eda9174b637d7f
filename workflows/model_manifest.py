"""Writes the manifest of the shipped models: what a wheel has to carry, with sizes and hashes.

`python workflows/model_manifest.py [output.json]`; `packaging/check_wheels.py` compares it with
what an installed wheel has.
"""

import sys
from pathlib import Path
from typing import Any

from torch_diode.files.json import dumps, write_json
from torch_diode.model.registry import FOLDER, ModelRegistry

ROOT = Path(__file__).resolve().parent.parent
_DEPTH = 3


def manifest(folder: Path = ROOT / FOLDER) -> dict[str, Any]:
    """The models of a folder, with paths below it and without their cards."""
    models = ModelRegistry([folder]).manifest()["models"]
    for entry in models:
        entry["path"] = Path(entry["path"]).relative_to(folder).as_posix()
        del entry["card"]
    return {"version": 1, "models": models}


if __name__ == "__main__":
    if len(sys.argv) > 1:
        write_json(sys.argv[1], manifest(), _DEPTH)
    else:
        print(dumps(manifest(), _DEPTH))
