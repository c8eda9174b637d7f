"""Environments of other runtimes, made once under a cache folder.

Each sees this interpreter's packages, torch and transformers among them, and adds its own: no
release that a peer asks for can disturb torch-diode's environment, nor another peer's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import torch

_RELEASE = torch.__version__.partition("+")[0].rpartition(".")[0]
PACKAGES = {
    "onnxruntime": ("onnxruntime", "onnx", "onnxscript"),
    "openvino": ("openvino",),
    # Built for one release of torch; the others are not among its dependencies.
    "zentorch": (f"zentorch=={_RELEASE}.*", "deprecated", "safetensors"),
}


def cache_folder() -> Path:
    """Folder of the environments."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "torch-diode" / "peers"


def environment(peer: str, folder: Path) -> tuple[Path | None, str]:
    """The interpreter of a peer's environment, or the reason why there is none."""
    home = folder / f"{peer}-torch-{_RELEASE}"
    python = home / "bin" / "python"
    stamp = home / "complete"
    if stamp.exists():
        return python, ""
    print(f"installing {' '.join(PACKAGES[peer])} in {home}", flush=True)
    venv.create(home, with_pip=True, clear=True)
    place = next((home / "lib").glob("python*")) / "site-packages"
    (place / "torch.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    ended = subprocess.run([*pip, *PACKAGES[peer]], capture_output=True, text=True, check=False)
    if ended.returncode:
        said = (ended.stderr.strip() or "no message").splitlines()[-1]
        return None, f"pip: {said}"[:400]
    stamp.touch()
    return python, ""


def environments(peers: list[str], folder: Path) -> tuple[dict[str, Path], dict[str, str]]:
    """Interpreters of these peers, and the reasons for those without one."""
    found: dict[str, Path] = {}
    faults: dict[str, str] = {}
    for peer in peers:
        python, fault = environment(peer, folder)
        if python is None:
            faults[peer] = fault
            print(f"{peer}: {fault}", file=sys.stderr)
        else:
            found[peer] = python
    return found, faults
