"""When a tensor that was made in parts counts as equal to the reference."""

from __future__ import annotations

import numpy as np
import pytest

from onchip.base.errors import Mismatch
from onchip.run.compare import Comparison, largest_difference


def comparison(*, approximate: bool) -> Comparison:
    """A network of a tensor of magnitude 1, and one where nearly everything cancelled out."""
    found = Comparison(
        {0: np.array([1.0], np.float32), 1: np.array([0.0, 1e-6], np.float32)}, {0: "large", 1: "small"}, None
    )
    if approximate:
        found.make_approximate(1)
    return found


def test_what_cancels_out_may_differ_by_a_rounding_error_of_what_went_in() -> None:
    comparison(approximate=True).same(1, np.array([8e-9, 1e-6], np.float32), "here")


@pytest.mark.parametrize(("value", "approximate"), [(1e-6, True), (8e-9, False)])
def test_more_than_that_and_exact_tensors_are_refused(value: float, approximate: bool) -> None:
    with pytest.raises(Mismatch, match="small"):
        comparison(approximate=approximate).same(1, np.array([value, 1e-6], np.float32), "here")


@pytest.mark.parametrize("at", [0, 5, 1 << 16, (1 << 16) + 2])
def test_a_difference_is_found_in_every_piece(at: int) -> None:
    """What is no number on both sides, or the same infinity, does not differ."""
    expected = np.zeros((1 << 16) + 3, np.float32)
    expected[[1, 2, -1]] = np.nan, np.inf, -np.inf
    found = expected.copy()
    assert largest_difference(found, expected) == 0
    if np.isfinite(expected[at]):
        found[at] = 0.25
        assert largest_difference(found, expected) == 0.25
    found[at] = np.nan
    assert largest_difference(found, expected) == np.inf
