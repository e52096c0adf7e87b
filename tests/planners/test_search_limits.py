"""One clock for every search: parts of the time, time that is over, and who may stop it."""

from __future__ import annotations

import contextlib
import signal
from dataclasses import dataclass, replace

import pytest

from onchip.planners import limits as module
from onchip.planners.limits import NO_LIMITS, Limits


@dataclass
class Clock:
    now: float = 100.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


def test_time_passes_from_when_the_limits_are_made(clock: Clock) -> None:
    ten = Limits(10.0)
    clock.now += 4
    assert (ten.spent(), ten.left(), ten.over()) == (4, 6, False)
    clock.now += 8
    assert (ten.left(), ten.over()) == (0, True)
    assert replace(ten, seed=1).left() == 0  # another seed has no more time


def test_parts_of_what_is_left_and_of_all_the_time(clock: Clock) -> None:
    ten = Limits(10.0, seed=7, memory_limit=5)
    clock.now += 4
    half = ten.share(0.5)
    assert (half.left(), half.seed, half.memory_limit) == (3, 7, 5)
    assert ten.until(0.5).left() == 1
    assert ten.until(0.3).left() == 0
    assert ten.at_most(2.0).left() == 2
    assert ten.at_most(20.0).left() == 6
    assert ten.patient(60.0) is ten
    clock.now += 1
    assert (half.left(), ten.anew(3.0).left()) == (2, 3)


def test_without_a_time_limit_time_is_never_over(clock: Clock) -> None:
    clock.now += 1e9
    assert (NO_LIMITS.left(), NO_LIMITS.over()) == (None, False)
    assert NO_LIMITS.share(0.1) is NO_LIMITS.until(0.1) is NO_LIMITS
    assert NO_LIMITS.at_most(5.0).left() == 5
    assert NO_LIMITS.patient(60.0).left() == 60


def test_limits_are_those_that_options_have() -> None:
    @dataclass
    class Some:
        time_limit: float | None = 0.0
        seed: int = 3

    made = Limits.of(Some())
    assert (made.time_limit, made.seed, made.memory_limit) == (0.0, 3, Limits().memory_limit)
    assert Limits.of(object()) == Limits()


def test_ctrl_c_is_a_wish_that_stays_and_the_callers_own_is_heard_too() -> None:
    wish = False
    with Limits(cancelled=lambda: wish).interruptible() as limits:
        assert not limits.over()
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert limits.stopped()
        assert limits.over()
        assert limits.left() is None
    with Limits(cancelled=lambda: wish).interruptible() as limits:
        wish = True
        assert limits.stopped()


def test_what_is_said_reaches_who_wants_to_hear() -> None:
    said: list[str] = []
    Limits(progress=said.append).say("ten states")
    Limits().say("to nobody")
    assert said == ["ten states"]
