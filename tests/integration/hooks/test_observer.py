import pytest
import torch
from torch._inductor.virtualized import V, _choices

from tests.integration.cases import inputs
from torch_diode.integration import registration
from torch_diode.integration.capture.fake_gpu import lower
from torch_diode.integration.hooks.observer import Observer


@pytest.mark.usefixtures("fake_h200")
def test_an_observer_does_not_change_torchs_choice():
    plain = lower(torch.mm, inputs("mm"))
    with Observer().installed(registration._registration):
        assert lower(torch.mm, inputs("mm")).kernels == plain.kernels


def test_torchs_caches_are_not_shared_while_observing():
    keys = registration._registration.cache_keys
    texts = {keys.fingerprint([])}
    for _ in range(2):
        with Observer().installed(registration._registration):
            texts.add(keys.fingerprint([]))
    assert len(texts) == 3
    assert "" in texts


def test_torch_is_restored_after_an_error_too():
    before = type(V.choices)
    with pytest.raises(KeyError), Observer().installed(registration._registration):
        raise KeyError
    assert type(V.choices) is before
    assert "_get_handler" not in vars(_choices)
