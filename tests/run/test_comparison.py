"""When a tensor that was made in parts counts as equal to the reference."""

from __future__ import annotations

import numpy as np
import pytest

from onchip.base.errors import Mismatch
from onchip.run.compare import Comparison


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
