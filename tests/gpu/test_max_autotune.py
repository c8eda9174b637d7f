"""max-autotune with torch-diode: few candidates, timed by a clock with no launch in it."""

from typing import Any

import pytest
import torch

if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

from tests.integration.forced import Forced
from torch_diode.integration import registration
from torch_diode.integration.autotune.clean_benchmark import clean_benchmark
from torch_diode.integration.autotune.feedback import add_feedback, candidate_of
from torch_diode.types.candidate import ATEN, TritonGEMMConfig

SLOW = TritonGEMMConfig(32, 32, 16, num_stages=1, num_warps=2)
"""Several times slower than ATen on this problem, however it is measured."""


def test_the_few_are_timed_without_their_launches_and_atens_call_is_no_handicap():
    torch.compiler.reset()
    a = torch.randn(4096, 1152, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(1152, 1152, device="cuda", dtype=torch.bfloat16)
    bias = torch.randn(1152, device="cuda", dtype=torch.bfloat16)
    expected = torch.addmm(bias, a, b.t())  # and the library's workspace, which stays
    heard: list[dict[Any, tuple[float, int]]] = []

    def listen(timings, *_):
        measured = {c: clean_benchmark.measured.get(c) for c in timings}
        heard.append({c: (m.time_us, m.repeats) for c, m in measured.items() if m is not None})
        assert len(heard[-1]) == len(timings)

    undo = add_feedback(listen)
    before = torch.cuda.memory_allocated()
    try:
        with registration.using(Forced(SLOW), top=3), torch.no_grad():
            options: dict[str, Any] = {"max_autotune": True, "fx_graph_cache": False}
            compiled: Any = torch.compile(torch.addmm, options=options)
            found = compiled(bias, a, b.t())
    finally:
        undo()
    assert ((found - expected).float().norm() / expected.float().norm()).item() < 0.01
    (times,) = heard
    candidates = {choice: candidate_of(choice) for choice in times}
    best = min(times, key=lambda choice: times[choice][0])
    best_candidate = candidates[best]
    assert best_candidate.template == ATEN
    # 22 on an H200.
    vendor = min(t for c, (t, _) in times.items() if getattr(candidates[c], "template", "") == ATEN)
    assert vendor < 60
    assert times[best][1] > 10
    del found
    assert torch.cuda.memory_allocated() - before < 2 << 20
