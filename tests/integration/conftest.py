"""Torch is restored after every test."""

from typing import Any

import pytest

from torch_diode.integration import registration

pytest.importorskip("triton", reason="Inductor's CUDA lowering needs triton")


@pytest.fixture(scope="session", autouse=True)
def cache_dir(tmp_path_factory):
    """Generated code goes to a folder of its own."""
    path = tmp_path_factory.mktemp("inductor")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(path))
        patch.setenv("TRITON_CACHE_DIR", str(path / "triton"))
        yield path


@pytest.fixture(autouse=True)
def off(monkeypatch):
    """Each test starts with torch-diode off, no model and a registration of its own."""
    monkeypatch.setenv("TORCH_DIODE_MODEL", "none")
    registration.disable()
    fresh = registration.Registration()
    monkeypatch.setattr(registration, "_registration", fresh)
    yield
    fresh.disable()


@pytest.fixture
def benchmarked(monkeypatch):
    """The lists of choices Inductor would have benchmarked; all of them tie."""
    from torch._inductor.select_algorithm import AlgorithmSelectorCache

    from torch_diode.integration.autotune.clean_benchmark import CleanBenchmark

    lists: list[list[Any]] = []

    def precompile(self, choices, *args, **kwargs):
        lists.append(choices)
        return dict

    def lookup(self, choices, *args, **kwargs):
        return dict.fromkeys(choices, 1.0)

    # Called where there is more than one choice.
    monkeypatch.setattr(AlgorithmSelectorCache, "make_precompile_fn", precompile)
    monkeypatch.setattr(AlgorithmSelectorCache, "lookup", lookup)
    # Without a GPU there is nothing to time.
    monkeypatch.setattr(CleanBenchmark, "_takes", lambda *_: False)
    return lists
