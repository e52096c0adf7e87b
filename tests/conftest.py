"""Shared fixtures. Tests assert legality and objective, never addresses or an order among equals."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# No wall clock in tests: a busy machine must not fail a property.
settings.register_profile("onchip", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("onchip")

SHARED = Path(__file__).resolve().parents[1].parent / "shared"
"""Reference networks that lie beside a developer's checkout; a stranger's clone does not have them."""


@pytest.fixture(scope="session")
def shared() -> Path:
    """The reference data, or skip: nothing essential depends on it."""
    if not SHARED.is_dir():
        pytest.skip("no reference data beside this checkout")
    return SHARED
