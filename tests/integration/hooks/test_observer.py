from __future__ import annotations

import pytest
import torch

from torch_diode.integration import registration
from torch_diode.integration.capture.fake_gpu import Input, lower
from torch_diode.integration.hooks.observer import Observer


def test_an_observer_leaves_torchs_choice_as_it_was(fake_h200):
    plain = lower(torch.mm, [Input((256, 512)), Input((512, 384))])
    with Observer().installed():
        watched = lower(torch.mm, [Input((256, 512)), Input((512, 384))])
    assert watched.kernels == plain.kernels


def test_while_it_looks_on_torchs_caches_are_not_shared():
    keys = registration._registration.cache_keys
    assert keys.fingerprint([]) == ""
    seen = set()
    for _ in range(2):
        with Observer().installed():
            seen.add(keys.fingerprint([]))
    assert len(seen) == 2
    assert "" not in seen


def test_afterwards_torch_is_as_it_was_even_after_a_fault():
    from torch._inductor.virtualized import V, _choices

    before = type(V.choices)
    with pytest.raises(KeyError), Observer().installed():
        raise KeyError
    assert type(V.choices) is before
    assert "_get_handler" not in vars(_choices)
