"""Settings of all tests."""

from __future__ import annotations

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
