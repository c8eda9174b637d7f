import pytest

from tests.integration.cases import CONFIG
from tests.integration.forced import Forced
from tests.samples import H200
from torch_diode.integration import registration
from torch_diode.integration.capture.default_configs import default_candidates
from torch_diode.integration.hooks import torch_compat
from torch_diode.types.problem import MMShape

if torch_compat.matmul_hook() != torch_compat.FINALIZE_HOOK:
    pytest.skip("torch 2.9 lists configs in another way", allow_module_level=True)


@pytest.mark.parametrize(
    "problem",
    [
        MMShape("mm", 512, 4096, 4096, transpose_b=True),
        MMShape("addmm", 333, 257, 129),
        MMShape("bmm", 128, 128, 64, B=8),
        MMShape("baddbmm", 128, 128, 64, B=8, dtype="float16", transpose_b=True),
        MMShape("mm", 512, 512, 512, dtype="float32", transpose_a=True),
    ],
    ids=str,
)
def test_inductors_default_list_has_aten_and_about_twenty_configs(problem):
    found = default_candidates(problem, H200)
    assert found[0].template == "aten"
    assert 15 <= len(found) <= 40
    assert len(set(found)) == len(found)


def test_the_list_depends_on_the_sizes():
    small = default_candidates(MMShape("mm", 16, 32, 512), H200)
    large = default_candidates(MMShape("mm", 4096, 4096, 512), H200)
    assert max(small.fields["block_m"]) < max(large.fields["block_m"])


def test_the_list_is_inductors_own_also_where_torch_diode_decides():
    problem = MMShape("mm", 512, 512, 512)
    expected = default_candidates(problem, H200)
    with registration.using(Forced(CONFIG)):
        assert list(default_candidates(problem, H200)) == list(expected)
        assert registration.status().enabled
