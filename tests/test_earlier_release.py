"""Names of release 0.1.1 are refused with the new ones."""

import importlib
import re
from pathlib import Path

import pytest

import torch_diode
from torch_diode import MMShape, TritonGEMMConfig, _earlier_release
from torch_diode.types.errors import InvalidValueError

PAGE = Path(__file__).parents[1] / "docs/coming_from_0_1_1.md"


def test_a_module_that_is_gone_names_what_to_import():
    with pytest.raises(ModuleNotFoundError, match="now in torch_diode itself: MMShape, Triton"):
        importlib.import_module("torch_diode.types.matmul_types")
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'torch_diode\.nothing'"):
        importlib.import_module("torch_diode.nothing")


def test_every_module_that_is_gone_is_on_the_page():
    page = PAGE.read_text(encoding="utf-8")
    for module, names in _earlier_release._MODULES.items():
        (row,) = re.findall(rf"^- `{re.escape(module)}`:(.*)$", page, re.MULTILINE)
        for name in re.findall(r"\w+", names):
            if name in torch_diode.__all__:
                assert name in row


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: MMShape(M=1, N=1, K=1, M_dtype="float16"), "expected dtype, a text such as"),
        (lambda: MMShape(B=1, out_size=(1, 1)), "expected op, M, N, K and B"),
        (lambda: TritonGEMMConfig(name="mm", grid=1, block_m=64), "follows from the problem"),
    ],
)
def test_an_argument_that_is_gone_names_the_new_way(make, said):
    with pytest.raises(InvalidValueError, match=f"of torch-diode 0.1.1; .*{said}"):
        make()


@pytest.mark.parametrize(
    ("package", "name", "now"),
    [(p, n, now) for p, names in _earlier_release._NAMES.items() for n, now in names.items()],
)
def test_a_name_that_is_gone_names_what_there_is(package, name, now):
    with pytest.raises(ImportError, match=rf"{name}: of torch-diode 0\.1\.1; now torch_diode\."):
        exec(f"from {package} import {name}", {})
    assert now.partition("(")[0] in torch_diode.__all__


def test_a_package_still_has_the_names_that_are_not_gone():
    from torch_diode.integration import BaseIntegration, MatmulIntegration
    from torch_diode.model import ModelWrapper

    assert issubclass(MatmulIntegration, BaseIntegration)
    assert ModelWrapper is torch_diode.ModelWrapper
