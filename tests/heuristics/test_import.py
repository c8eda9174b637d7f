import subprocess
import sys

import pytest

import torch_diode.heuristics


def test_heuristics_are_imported_without_torch_and_only_tables_import_pyarrow():
    program = (
        "import sys\n"
        "from torch_diode.heuristics import AnalyticalHeuristic, Chain, ModelHeuristic, heuristic\n"
        "assert 'pyarrow' not in sys.modules\n"
        "import torch_diode.candidates, torch_diode.heuristics.testing.conformance\n"
        "heavy = {'torch', 'triton', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(f'imports {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_public_name_exists():
    for name in torch_diode.heuristics.__all__:
        assert hasattr(torch_diode.heuristics, name)
        assert name in dir(torch_diode.heuristics)
    with pytest.raises(AttributeError, match="unheard"):
        torch_diode.heuristics.unheard  # noqa: B018
