"""Parameters of which the largest are a campaign."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pytest

__all__ = ["with_campaign"]


def with_campaign(names: Iterable[str], large: Collection[str]) -> list[object]:
    """Return the names as parameters of a test, those of `large` only for `pytest -m campaign`."""
    return [pytest.param(name, marks=pytest.mark.campaign) if name in large else name for name in names]
