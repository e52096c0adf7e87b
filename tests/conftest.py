"""Shared fixtures. Tests assert legality and objective, never addresses or an order among equals."""

from __future__ import annotations

import gc
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# No wall clock in tests: a busy machine must not fail a property.
settings.register_profile("onchip", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("onchip")

# A shell that starts the tests in the background has them ignore Ctrl-C, and what they start would, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SHARED = Path(__file__).resolve().parents[1].parent / "shared"
"""Reference networks that lie beside a developer's checkout; a stranger's clone does not have them."""


@pytest.fixture(scope="session")
def shared() -> Path:
    """The reference data, or skip: nothing essential depends on it."""
    if not SHARED.is_dir():
        pytest.skip("no reference data beside this checkout")
    return SHARED


def pytest_collection_finish() -> None:
    """Leave the thousands of collected tests out of every later garbage collection."""
    gc.collect()
    gc.freeze()
