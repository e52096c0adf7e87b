"""What crosses to the compiled searches and back: names, wishes to stop, and errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

import pytest

from onchip import _core
from onchip.planners.packing.buffers import ALL_RULES


def packed(stop: Callable[[int], object] | None) -> _core.Packed:
    """Two buffers that are live together in room for one: every try of the repair is asked about."""
    return _core.pack_by_blame(
        buffers=[_core.PackBuffer(live=[(0, 2)], size=8, alignment=1, offset=None)] * 2,
        capacity=8,
        rules=_core.PackRules(**asdict(ALL_RULES)),
        seed=0,
        tries=50,
        limits=_core.Limits(stop=stop),
    )


@pytest.mark.parametrize("isoa", ["", "Paper", "papers", "\ud800", 1, None])
def test_an_unknown_name_is_refused(isoa: object) -> None:
    options = {"batch_weights": "held", "halo": "lines", "residency": "none"} | {
        "weight_tile": True,
        "blocks": True,
    }
    _core.FusionOptions(**options, isoa="paper")
    with pytest.raises(TypeError):
        _core.FusionOptions(**options, isoa=isoa)


@pytest.mark.parametrize("name", asdict(ALL_RULES))
def test_a_field_that_is_not_named_is_refused(name: str) -> None:
    with pytest.raises(TypeError):
        _core.PackRules(**{key: value for key, value in asdict(ALL_RULES).items() if key != name})


def test_a_buffer_that_is_never_live_is_refused() -> None:
    for live in ([], [(2, 2)], [(0, 3), (2, 4)]):
        with pytest.raises(ValueError, match="live range"):
            _core.PackBuffer(live=live, size=8, alignment=1, offset=None)


def test_a_search_goes_on_until_it_is_told_to_stop() -> None:
    told: list[int] = []
    assert packed(lambda done: bool(told.append(done))).extent == 16
    assert told
    assert told[0] == 0
    assert packed(None).offsets == packed(lambda done: True).offsets


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_the_caller_raises_comes_back(error: type[BaseException]) -> None:
    def stop(done: int) -> bool:
        raise error("enough")

    with pytest.raises(error, match="enough"):
        packed(stop)


def test_an_answer_that_is_neither_true_nor_false_is_an_error() -> None:
    with pytest.raises((TypeError, RuntimeError)):
        packed(lambda done: "yes")
