"""Settings of all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A shared or slow machine must not decide whether a test passes.
settings.register_profile(
    "project", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("project")
