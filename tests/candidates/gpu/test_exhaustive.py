import pytest

from torch_diode.candidates.gpu.exhaustive import exhaustive_configs
from torch_diode.types.candidate import TRITON_TEMPLATES


@pytest.mark.parametrize(
    ("template", "count"),
    [("triton::mm", 1400), ("triton::bmm", 1400), ("triton::mm_persistent_tma", 1000)],
)
def test_a_template_has_as_many_configs_as_inductor_lists(template, count):
    assert len(exhaustive_configs(template, "cuda")) == count


@pytest.mark.parametrize("kind", ["cuda", "rocm"])
@pytest.mark.parametrize("template", TRITON_TEMPLATES)
def test_no_config_comes_twice(template, kind):
    configs = list(exhaustive_configs(template, kind))
    assert len(set(configs)) == len(configs)


def test_amd_has_configs_with_its_own_fields_set():
    configs = exhaustive_configs("triton::mm", "rocm")
    assert set(configs.fields["kpack"].tolist()) == {1, 2}
    assert set(configs.fields["num_stages"].tolist()) == {2}
    short = configs.fields["block_k"] <= 16
    assert set(configs.fields["kpack"][short].tolist()) == {1}


@pytest.mark.parametrize(("template", "kind"), [("triton::mm", "cpu"), ("triton::unheard", "cuda")])
def test_there_is_nothing_where_inductor_has_no_exhaustive_list(template, kind):
    assert len(exhaustive_configs(template, kind)) == 0
