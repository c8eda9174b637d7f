"""Cache entries are shared by equal heuristics only, across processes too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo.utils import counters
from torch._inductor import compile_fx

from tests.integration.cases import CONFIG
from tests.integration.forced import FunctionHeuristic
from torch_diode.heuristics.base import Heuristic
from torch_diode.integration import registration
from torch_diode.integration.hooks import cache_key
from torch_diode.integration.hooks.fallback import DiodeWarning

OTHER_PROCESS = """
import json
import torch
from tests.integration.hooks import test_cache_key
from torch_diode.hardware import known
from torch_diode.integration import registration
from torch_diode.integration.capture.fake_gpu import lower, pretend
from tests.integration.cases import CONFIG, inputs
from tests.integration.forced import Forced
registration.enable(Forced(CONFIG))
hit = test_cache_key.compiled_from_cache()
with pretend(known("nvidia-h200")):
    configs = lower(torch.mm, inputs("mm")).configs
print(json.dumps({"hit": hit, "configs": configs}))
"""


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.mm(a, b)


def compiled_from_cache() -> bool:
    """Compile a small program on the CPU; True if it came from a cache on disk."""
    torch._dynamo.reset()
    counters.clear()
    torch.compile(product)(torch.ones(8, 8), torch.ones(8, 8))
    graphs, autograd = counters["inductor"], counters["aot_autograd"]
    hits = graphs["fxgraph_cache_hit"] + autograd["autograd_cache_hit"]
    misses = graphs["fxgraph_cache_miss"] + autograd["autograd_cache_miss"]
    assert hits + misses > 0, "no cache was used"
    return hits > 0


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    with torch._inductor.config.patch(fx_graph_cache=True, force_disable_caches=False):
        yield tmp_path
    torch._dynamo.reset()


def with_fingerprint(fingerprint: str) -> Heuristic:
    return FunctionHeuristic(lambda candidates: None, fingerprint)


def test_an_entry_is_reused_by_an_equal_heuristic_only(fresh: Path) -> None:
    assert not compiled_from_cache()
    assert compiled_from_cache()
    with registration.using(with_fingerprint("one")):
        assert not compiled_from_cache(), "plain torch's entry was served to a heuristic"
        assert compiled_from_cache()
    with registration.using(with_fingerprint("two")):
        assert not compiled_from_cache(), "one heuristic's entry was served to another"
    with registration.using(with_fingerprint("one"), mode="single"):
        assert not compiled_from_cache(), "one mode's entry was served to another"
    with registration.using(with_fingerprint("one")):
        assert compiled_from_cache()
    assert compiled_from_cache(), "plain torch's own entry is gone"


def test_without_a_heuristic_plain_torchs_entries_are_shared(fresh: Path) -> None:
    compiled_from_cache()
    registration.enable()
    assert compiled_from_cache()


def test_caches_of_other_tools_see_the_heuristic_in_the_portable_config(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config: Any = torch._inductor.config
    plain, own = config.save_config_portable(), dict(vars(config))
    seen = []
    for fingerprint in ("one", "two", "one"):
        with registration.using(with_fingerprint(fingerprint)):
            portable = config.save_config_portable(ignore_private_configs=False)
            json.dumps(portable["torch_diode"])
            seen.append(config.save_config_portable())
            with monkeypatch.context() as patch:
                patch.setattr(compile_fx, "fx_compile_mode", compile_fx.FxCompileMode.SERIALIZE)
                assert config.save_config_portable() == plain, "torch reads it back as options"
    assert seen[0] == seen[2]
    assert len({options["torch_diode"] for options in seen}) == 2
    assert {**seen[1], "torch_diode": ""} == {**plain, "torch_diode": ""}
    assert (config.save_config_portable(), dict(vars(config))) == (plain, own)
    with registration.using(with_fingerprint("one"), mode="observe"):
        assert config.save_config_portable() == plain


def test_a_gpu_that_is_not_initialised_yet_keeps_other_tools_from_reusing_but_not_torch(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with registration.using(with_fingerprint("one")):
        compiled_from_cache()
        known = torch._inductor.config.save_config_portable()
        monkeypatch.setattr(cache_key, "current_devices", lambda: None)
        assert torch._inductor.config.save_config_portable() != known
        assert compiled_from_cache(), "torch's own key has the fingerprint of the graph's devices"


def in_another_process() -> dict[str, Any]:
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", OTHER_PROCESS],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


@pytest.mark.slow
def test_a_second_process_with_the_same_heuristic_reuses_and_chooses_alike(fresh: Path) -> None:
    first, second = in_another_process(), in_another_process()
    assert not first["hit"]
    assert second["hit"]
    assert first["configs"] == second["configs"]
    assert second["configs"][0]["BLOCK_M"] == CONFIG.block_m


def test_a_heuristic_whose_fingerprint_fails_reuses_nothing(fresh: Path) -> None:
    class Broken(FunctionHeuristic):
        def fingerprint(self) -> str:
            raise OSError("the file is gone")

    with registration.using(Broken(lambda candidates: None)):
        with pytest.warns(DiodeWarning, match="the file is gone"):
            first = compiled_from_cache()
        assert not first
        assert not compiled_from_cache()
