"""The front of bytes, time and scratch of all nests with few loops, against force."""

from __future__ import annotations

from collections import Counter

import pytest

from onchip.network import bits
from onchip.planners.joint.timed.compiled import FrontRules, compiled_for
from oracles.front_trial import front_trial
from timed_plans import TILES, WORDED


def test_fronts_are_those_of_force() -> None:
    found = Counter[str]()
    for seed in range(40):
        found += front_trial(seed, 600)
    assert found["groups"] > 8
    assert found["plans by force"] > 2 * found["plans of fronts"]


@pytest.mark.parametrize("rule", ["floors", "idle", "second"])
def test_every_rule_leaves_nests_out_and_none_of_the_front(rule: str) -> None:
    network = WORDED.network
    group = compiled_for(network, (0, 1), frozenset(bits(network.input_roots | network.output_roots)), TILES)
    assert group is not None
    with_it, without = (group.front(1, rules=FrontRules(**{**ALONE, rule: on})) for on in (True, False))
    figures = [[(one.bytes, one.time, one.scratch) for one in found.found] for found in (with_it, without)]
    assert figures[0] == figures[1]
    assert with_it.complete
    assert without.complete
    assert with_it.prices < without.prices


ALONE = dict.fromkeys(("floors", "idle", "second"), False)


def test_the_worked_example_is_on_no_better_front() -> None:
    """The nest of docs/nest-times.md, with one loop: 113 ns, 80 bytes, 72 of scratch."""
    network = WORDED.network
    group = compiled_for(network, (0, 1), frozenset(bits(network.input_roots | network.output_roots)), TILES)
    assert group is not None
    found = group.front(1)
    assert any(one.bytes <= 80 and one.time <= 113_000 and one.scratch <= 72 for one in found.found)
    in_room = group.front(1, room=60)
    assert {(o.bytes, o.time, o.scratch) for o in in_room.found} == {
        (o.bytes, o.time, o.scratch) for o in found.found if o.scratch <= 60
    }


def test_an_idle_loop_along_windows_with_strides_pays_where_the_scratchpad_limits_steps() -> None:
    """Of seed 653 the fastest nest has one: its steps leave out rows that a longer one reads."""
    assert front_trial(653)["groups"] == 1


def test_a_search_that_ends_early_says_so() -> None:
    network = WORDED.network
    group = compiled_for(network, (0, 1), frozenset(bits(network.input_roots | network.output_roots)), TILES)
    assert group is not None
    assert not group.front(2, most=50).complete


def test_no_plan_is_below_the_bound_where_finer_axes_lie_on_two_sides() -> None:
    """An axis of 6 is one of 2 and one of 3 in the group, and multipliers have operands of their own."""
    assert front_trial(4086)["groups"] == 1


def test_a_loop_over_two_operators_lets_a_transfer_begin_sooner() -> None:
    """Of seed 20,535 two nests of the front have one in which nothing has its home."""
    assert front_trial(20_535)["groups"] == 1
