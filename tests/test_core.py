"""What crosses to the compiled searches and back: names, wishes to stop, and errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

import pytest

from onchip import _core
from onchip.planners.packing.buffers import ALL_RULES


def packed(stop: Callable[[int], object] | None) -> _core.PackDecision:
    """Buffers that the first order of first fit does not pack: the repair asks after it."""
    lives = [(4, 7), (5, 6), (1, 2), (0, 3), (1, 5), (4, 6), (5, 7), (2, 4)]
    sizes = [6, 8, 3, 8, 2, 1, 7, 7]
    return _core.pack_decide(
        buffers=[
            _core.PackBuffer(live=[live], size=size, alignment=1, offset=None)
            for live, size in zip(lives, sizes, strict=True)
        ],
        capacity=22,
        rules=_core.PackRules(**asdict(ALL_RULES)),
        seed=0,
        effort=_core.PackEffort(
            greedy=False, search=False, repair=True, nodes=None, last_nodes=None, share=1.0
        ),
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
    assert packed(lambda done: bool(told.append(done))).status == "packed"
    assert told
    assert told[0] == 0
    assert packed(lambda done: True).status == "unknown"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_the_caller_raises_comes_back(error: type[BaseException]) -> None:
    def stop(done: int) -> bool:
        raise error("enough")

    with pytest.raises(error, match="enough"):
        packed(stop)


def test_an_answer_that_is_neither_true_nor_false_is_an_error() -> None:
    with pytest.raises((TypeError, RuntimeError)):
        packed(lambda done: "yes")
