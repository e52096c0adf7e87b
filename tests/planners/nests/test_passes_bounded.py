"""Passes are chosen one by one under the bound: with the bound and without it as few bytes cross."""

from __future__ import annotations

from random import Random

import pytest

from nest_groups import group_of, named, random_nest_case
from onchip.network.axes import GroupAxes
from onchip.planners.nests import NestRules, NestSearch, scratch_of
from onchip.plans.nest import leaves
from oracles.nest_trial import operands_of
from oracles.nest_windows import sliding_network
from oracles.residuals import residual_network


def random_group(rng: Random, kind: str) -> tuple[GroupAxes, list[int], list[int], int | None]:
    """A group, the buffers that leave it, those that are whole, and the width of its sums."""
    if kind == "plain":
        case = random_nest_case(rng, rng.choice((3, 4)), (2, 3))
        return case.group, sorted(case.leaving), sorted(case.whole), case.accumulator
    network = residual_network(rng, rng.choice((3, 4))) if kind == "residual" else sliding_network(rng, 3, 4)
    group, _, leaving = operands_of(network)
    leave = [i for i, b in enumerate(group.buffers) if b.maker is not None and b.tensor in leaving]
    return group, leave, [], rng.choice((None, 4))


@pytest.mark.parametrize("kind", ["plain", "residual", "windows"])
def test_passes_are_left_out_without_loss(kind: str) -> None:
    won = 0
    for seed in range(12):
        rng = Random(f"{kind} {seed}")
        group, leaving, whole, accumulator = random_group(rng, kind)
        for long_passes in (False, True):
            searches = [
                NestSearch(
                    group, leaving, spine=seed % 2, windows=1, passes=passes, long_passes=long_passes,
                    accumulator=accumulator, rules=NestRules(bounds=bounds),
                )
                for passes, bounds in ((3, True), (3, False), (0, True))
            ]  # fmt: skip
            for room in sorted(rng.randint(2, sum(b.bytes for b in group.buffers)) for _ in range(4)):
                on, off, none = (search.best(whole, room) for search in searches)
                assert (on and on.bytes) == (off and off.bytes), (seed, long_passes, room)
                won += on is not None and (none is None or on.bytes < none.bytes)
    assert won > 0  # else passes did nothing here


@pytest.mark.parametrize("passes", [1, 2, 3])
def test_a_pass_changes_which_operand_has_the_output_in_its_place(passes: int) -> None:
    # Alone `op` writes over A, and B counts beside it. With A made in a pass it writes over B.
    group = group_of(
        "m=4 d=4 q=10",
        [
            "ob: B(m,d) = x(m,d) | m d",
            "oa: A(m,d) = u(m,d)",
            "op: Y(m,d) = A(m,d) B(m,d) W(m,*q)",
            "oc: z(m) = Y(m,*d) | m",
        ],
    )
    on, off = (
        NestSearch(group, [], spine=0, passes=passes, rules=NestRules(bounds=bounds))
        for bounds in (True, False)
    )
    for room in range(30, 45):
        one, other = on.best(named(group, "x z"), room), off.best(named(group, "x z"), room)
        assert (one and one.bytes) == (other and other.bytes), room
    found = on.best(named(group, "x z"), 30)
    assert found is not None  # as the operand and the output count as one as long as the pass runs
    assert found.scratch == scratch_of(group, [], named(group, "x z"), found.nest)


@pytest.mark.parametrize("kind", ["plain", "residual"])
def test_nests_with_passes_take_what_the_law_says(kind: str) -> None:
    over_in_passes = 0
    for seed in range(30):
        rng = Random(f"law of {kind} {seed}")
        group, leaving, whole, accumulator = random_group(rng, kind)
        search = NestSearch(group, leaving, spine=seed % 3, windows=1, passes=3, accumulator=accumulator)
        for room in sorted(rng.randint(2, sum(b.bytes for b in group.buffers)) for _ in range(4)):
            found = search.best(whole, room)
            if found is None:
                continue
            needed = scratch_of(group, leaving, whole, found.nest, accumulator=accumulator)
            assert found.scratch == needed, (seed, room)
            over_in_passes += any(
                leaf.over is not None and loops and loops[-1].tile == 1
                for loops, leaf in leaves(found.nest.body)
            )
    assert over_in_passes > 0
