"""The arena against a dictionary with an owner for every single byte."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onchip.run.arena import Arena, Claim

SIZE = 24
RANGES = st.tuples(st.integers(0, SIZE), st.integers(0, SIZE)).map(lambda p: (min(p), max(p)))
STEPS = st.lists(st.tuples(st.sampled_from(["reserve", "release", "write"]), RANGES, st.sampled_from("abc")))


@pytest.mark.thorough
@given(STEPS, RANGES)
def test_every_byte_has_the_owner_and_the_value_that_it_should(
    steps: list[tuple[str, tuple[int, int], str]], asked: tuple[int, int]
) -> None:
    arena = Arena(SIZE)
    owner: list[str | None] = [None] * SIZE
    value = [0xFF] * SIZE
    for n, (kind, (start, end), who) in enumerate(steps):
        if kind == "reserve":
            arena.reserve(start, end, Claim(who, n))
            owner[start:end], value[start:end] = [who] * (end - start), [0xFF] * (end - start)
        elif kind == "write":
            arena.write(start, np.full(end - start, n % 200, np.uint8), Claim(who, n))
            owner[start:end], value[start:end] = [who] * (end - start), [n % 200] * (end - start)
        else:
            arena.release(start, end, who)
            for i in range(start, end):
                if owner[i] == who:
                    owner[i], value[i] = None, 0xFF
    assert arena.bytes.tolist() == value
    found = [claim.owner if claim else None for a, b, claim in arena.pieces(0, SIZE) for _ in range(a, b)]
    assert found == owner
    start, end = asked
    strange = [i for i in range(start, end) if owner[i] not in ("a", "b")]
    intruder = arena.intruder(start, end, "a", "b")
    assert (intruder is None) == (not strange)
    assert intruder is None or intruder[0] <= strange[0] < intruder[1]


def test_poison_is_no_number_at_any_address() -> None:
    arena = Arena(64)
    for kind in (np.float16, np.float32, np.float64):
        for start in range(8):
            assert np.isnan(arena.read(start, start + 32).view(kind)).all()
