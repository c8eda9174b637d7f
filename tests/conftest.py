"""Settings of all tests."""

from __future__ import annotations

import os

# Tests run one on each core. With threads of their own on top, programs wait for one another's: a
# training run of two seconds takes a minute. Before torch is imported, and for what tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

import torch_diode

# A shared or slow machine must not decide whether a test passes.
settings.register_profile(
    "project", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("project")


@pytest.fixture(scope="session", autouse=True)
def torch_as_it_is() -> None:
    """Importing torch-diode turns it on; tests that hold it against torch need torch alone."""
    torch_diode.disable()
