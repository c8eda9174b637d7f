from __future__ import annotations

import subprocess
import sys

import torch_diode.heuristics


def test_the_room_can_be_imported_without_torch() -> None:
    program = (
        "import sys, torch_diode.heuristics, torch_diode.heuristics.conformance\n"
        "import torch_diode.candidates\n"
        "heavy = {'torch', 'triton', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(f'imports {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_public_name_is_there() -> None:
    for name in torch_diode.heuristics.__all__:
        assert hasattr(torch_diode.heuristics, name)
