"""Chains of modules: each finds its input where the one before left its output, or the first that cannot."""

from __future__ import annotations

import random
from dataclasses import fields, replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.planners.branches.handover import Problem, Stuck, chain
from onchip.planners.branches.region_body import ALL_RULES, RegionRules
from onchip.planners.branches.regions import Piece, Placed
from oracles import regions
from oracles.handover import first_stuck

EXACT = replace(ALL_RULES, quick=False)
NONE = RegionRules(**dict.fromkeys((f.name for f in fields(RegionRules)), False))


@st.composite
def modules(draw: st.DrawFn, capacity: int, alignment: int) -> Problem:
    """An input, an output in parts, and what lives beside them; now and then one of the first two is not."""
    steps = draw(st.integers(1, 3))
    pieces = []
    size, offset = draw(st.integers(1, 3)), 0
    for k in range(draw(st.integers(1, 2))):
        start = draw(st.integers(0, steps - 1))
        pieces.append(Piece(f"o{k}", size * alignment, start, steps, None, "out", offset))
        offset += (size + draw(st.integers(0, 1))) * alignment
        size = draw(st.integers(1, 2))
    for k in range(draw(st.integers(0, 2))):
        start = draw(st.integers(0, steps - 1))
        end = draw(st.integers(start + 1, steps))
        at = alignment * draw(st.integers(0, 3)) if draw(st.integers(0, 4)) == 0 else None
        pieces.append(Piece(f"t{k}", draw(st.integers(1, 3 * alignment)), start, end, at))
    kind = draw(st.integers(0, 9))
    end = draw(st.integers(1, steps))
    if kind == 0:  # the input is a part of the output: an identity branch that is not copied
        given = Piece("in", draw(st.integers(1, 2)) * alignment, 0, steps, None, "out", offset)
    else:
        given = Piece("in", draw(st.integers(1, 4)) * alignment, 0, end)
    pieces.append(given)
    return Problem(tuple(pieces), None if kind == 1 else len(pieces) - 1, None if kind == 2 else "out")


@st.composite
def chains(draw: st.DrawFn) -> tuple[list[Problem], int, int]:
    alignment = draw(st.sampled_from([1, 1, 2]))
    capacity = draw(st.integers(5, 9)) * alignment
    return [draw(modules(capacity, alignment)) for _ in range(draw(st.integers(1, 4)))], capacity, alignment


def legal(problems: list[Problem], found: tuple[Placed, ...], capacity: int, alignment: int) -> None:
    handed = None
    for problem, placed in zip(problems, found, strict=True):
        assert regions.wrong(problem.pieces, placed.addresses, placed.bases, capacity, alignment) is None
        if problem.input is not None and handed is not None:
            assert placed.addresses[problem.input] == handed
        handed = None if problem.output is None else placed.bases[problem.output]


def agrees(problems: list[Problem], capacity: int, alignment: int, rules: RegionRules) -> None:
    found = chain(problems, capacity, alignment, rules=rules)
    stuck = first_stuck(problems, capacity, alignment)
    if isinstance(found, Stuck):
        assert found.proved
        assert found.module == stuck
        legal(problems[: found.module], found.placed, capacity, alignment)
    else:
        assert stuck is None
        legal(problems, found, capacity, alignment)


@pytest.mark.thorough
@given(chains(), st.sampled_from([ALL_RULES, EXACT, NONE]))
@settings(max_examples=150)
def test_stuck_exactly_where_trying_all_bases_is(
    problem: tuple[list[Problem], int, int], rules: RegionRules
) -> None:
    agrees(*problem, rules)


def relay(capacity: int, sizes: list[int], between: list[int]) -> list[Problem]:
    """Modules that only hand over: module m turns sizes[m] into sizes[m + 1] with between[m] beside both."""
    return [
        Problem(
            (
                Piece("in", sizes[m], 0, 2),
                Piece("out", sizes[m + 1], 1, 2, None, "out", 0),
                Piece("work", between[m], 1, 2),
            ),
            0,
            "out",
        )
        for m in range(len(sizes) - 1)
    ]


def test_maps_that_fill_the_memory_take_turns() -> None:
    problems = relay(10, [6, 4, 6, 3, 7, 3], [0, 0, 1, 0, 0])
    found = chain(problems, 10, 1)
    assert isinstance(found, tuple)
    legal(problems, found, 10, 1)


def test_the_earliest_module_without_room_is_named() -> None:
    problems = relay(10, [6, 4, 6, 3, 7, 4, 2], [0] * 6)
    found = chain(problems, 10, 1)
    assert isinstance(found, Stuck)
    assert (found.module, found.proved) == (4, True)
    legal(problems[:4], found.placed, 10, 1)


def test_a_choice_is_taken_back_modules_later() -> None:
    # The third module leaves one byte in the middle for its input; nobody would put it there unasked.
    hold = [
        Problem((Piece("a", 2, 0, 1, None, "out"),), None, "out"),
        Problem((Piece("in", 2, 0, 2), Piece("b", 1, 1, 2, None, "out")), 0, "out"),
        Problem((Piece("in", 1, 0, 1), Piece("low", 5, 0, 1, 0), Piece("high", 4, 0, 1, 6)), 0, None),
    ]
    agrees(hold, 10, 1, ALL_RULES)
    found = chain(hold, 10, 1)
    assert isinstance(found, tuple)
    assert found[1].bases == {"out": 5}  # there is no other


@pytest.mark.parametrize("seed", range(6))
def test_chains_of_real_sizes_are_decided(seed: int) -> None:
    rnd = random.Random(seed)
    sizes = [rnd.randint(100, 500) * 1024 for _ in range(20)]
    room = 1 << 20
    problems = relay(room, sizes, [max(0, room - a - b) // 2 for a, b in pairwise(sizes)])
    found = chain(problems, room, 64)
    assert isinstance(found, tuple)
    legal(problems, found, room, 64)


def test_without_an_output_before_it_the_input_lies_anywhere() -> None:
    one = Problem((Piece("in", 10, 0, 1),), 0)
    found = chain([one, one], 10, 1)
    assert isinstance(found, tuple)
    assert chain([], 10, 1) == ()


def test_no_nodes_leave_it_undecided() -> None:
    problems = relay(10, [6, 4, 6, 3], [0, 0, 1])
    found = chain(problems, 10, 1, most_nodes=0, rules=EXACT)
    assert isinstance(found, Stuck)
    assert (found.module, found.proved, found.placed) == (0, False, ())


@pytest.mark.parametrize("problem", [(1, None), (-1, None), (None, "other")])
def test_what_is_no_input_or_output_is_refused(problem: tuple[int | None, str | None]) -> None:
    with pytest.raises(ValueError, match="to be the"):
        Problem((Piece("a", 1, 0, 1, None, "out"),), *problem)
