"""Entry point of the group `torch.backends`, which torch calls at the end of `import torch`.

With `TORCH_DIODE_AUTOLOAD=1` it imports torch_diode, which registers itself; without, it does
nothing. It is a module of its own because importing anything of torch_diode's would register. Part
of the distribution `torch-diode` only.
"""

import os
import sys


def autoload() -> None:
    """Import torch_diode if the environment asks for it; raises nothing, or torch's import would
    fail."""
    switch = os.environ.get("TORCH_DIODE_AUTOLOAD", "").strip().lower()
    if switch in ("", "0", "false", "off", "no"):
        return
    try:
        if switch not in ("1", "true", "on", "yes"):
            raise ValueError(f"got {switch!r}; expected 1 or 0")
        # Inductor's workers compile for another process, which decides and has the cache.
        if f"torch{os.sep}_inductor{os.sep}" not in sys.argv[0]:
            import torch_diode  # noqa: F401
    except Exception as fault:  # noqa: BLE001
        _report(f"torch-diode: TORCH_DIODE_AUTOLOAD: {type(fault).__name__}: {fault}")


def _report(text: str) -> None:
    try:
        sys.stderr.write(text + "\n")
    except Exception:  # noqa: BLE001 - standard error is closed
        return
