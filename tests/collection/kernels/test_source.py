"""Sources of kernels are torch's templates, with sizes and config as parameters."""

import itertools
import re

import pytest

pytest.importorskip("triton")

from torch._inductor.kernel.mm_common import load_kernel_template

from tests.collection.kernels.test_library import KINDS
from torch_diode.collection.kernels.library import BMM, MM, PERSISTENT_TMA, jit_function
from torch_diode.collection.kernels.source import SourceKey, TemplateChangedError, TemplateSource
from torch_diode.integration.capture.template_source import TEMPLATES, render, template_source

LAYOUTS = list(itertools.product((False, True), repeat=2))
TEMPLATE_FILES = {MM: "triton_mm", BMM: "triton_bmm", PERSISTENT_TMA: "triton_persistent_tma_mm"}


def _lines_for_all_kernels(template: str) -> list[str]:
    """The template's lines that no condition of the templating language guards."""
    plain = re.sub(r"{%-? if.*?{%-? endif %}", "", template, flags=re.DOTALL)
    plain = re.sub(r"{{.*?}}", "{{}}", plain, flags=re.DOTALL)
    return [line.strip() for line in plain.splitlines() if line.strip() and "{{" not in line]


@pytest.mark.parametrize(("template", "op", "bias"), KINDS)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_every_layout_renders_with_sizes_and_config_as_parameters(template, op, bias, dtype):
    for (a, b), even_k in itertools.product(LAYOUTS, (False, True)):
        source = template_source(SourceKey(template, op, dtype, a, b, bias, even_k))
        assert "BLOCK_M : tl.constexpr" not in source.text
        assert "BLOCK_M: tl.constexpr" in source.text
        assert "units_m, units_n, units_k" in source.text
        assert jit_function(source).__name__ == source.name


@pytest.mark.parametrize("template", [MM, BMM, PERSISTENT_TMA])
def test_the_text_is_that_of_torchs_template(template):
    op = "bmm" if template == BMM else "mm"
    text = template_source(SourceKey(template, op, "bfloat16", False, True, "none", False)).text
    ours = {line.strip() for line in text.splitlines()}
    plain = _lines_for_all_kernels(load_kernel_template(TEMPLATE_FILES[template]))
    missing = [line for line in plain if line not in ours]
    assert len(plain) > 25
    assert all(line.startswith("if ") for line in missing), missing


def test_sizes_too_large_for_32_bits_render_with_64():
    key = SourceKey(MM, "mm", "bfloat16", False, True, "none", True, index_bits=64)
    assert "INDEX_DTYPE : tl.constexpr = tl.int64" in template_source(key).text


def test_an_unknown_branch_in_a_template_is_refused():
    key = SourceKey(MM, "mm", "bfloat16", False, True, "none", True)
    text = render(TEMPLATES[MM], key).replace(
        "    pid = ", "    if K > 7:\n        pass\n    pid = "
    )
    with pytest.raises(TemplateChangedError, match="K > 7"):
        TemplateSource.from_rendered(key, text)
