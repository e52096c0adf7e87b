"""Groups and synthetic profiles of random networks whose operators not every unit supports."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.base.errors import ProfileError
from onchip.machines.soc import SoC, Unit
from onchip.multi_dnn.grouping import LayerGroup, layer_groups
from onchip.multi_dnn.synthetic import synthetic_profile
from onchip.network import Network
from strategies import random_network

TYPES = ("Conv", "Conv+Relu", "Gemm", "Softmax", "LRN", "Resize", "Softmax+Relu")
WORDS = ("softmax", "LRN", "Resize", "gemm", "Relu_")


@st.composite
def typed_networks(draw: st.DrawFn) -> Network:
    """A random network whose operators have types and work."""
    rng = Random(draw(st.integers(0, 10**9)))
    network = random_network(rng, 9)
    operators = tuple(
        replace(op, type=rng.choice(TYPES), macs=rng.randint(0, 9) * 10**6) for op in network.operators
    )
    return replace(network, operators=operators)


units = st.lists(st.sets(st.sampled_from(WORDS)), min_size=1, max_size=3).map(
    lambda rows: tuple(
        Unit(f"u{n}", unsupported=tuple(sorted(row)), macs_per_second=1e12 / (n + 1), gb_per_second=9.0 - n)
        for n, row in enumerate(rows)
    )
)


def supported(network: Network, operator: int, unit: Unit) -> bool:
    """By the words of its type, without regard to case."""
    words = {word.lower() for word in network.operators[operator].type.split("+")}
    return not words & {word.lower().rstrip("_") for word in unit.unsupported}


def reached(network: Network, start: int) -> set[int]:
    """What needs something that `start` writes, directly or not."""
    found: set[int] = set()
    for operator in network.order:
        before = {network.producer[t] for t in network.operators[operator].inputs}
        if before & (found | {start}):
            found.add(operator)
    return found


@settings(max_examples=80, deadline=None)
@given(typed_networks(), units, st.integers(1, 9))
def test_groups_are_convex_and_run_where_all_of_their_operators_do(
    network: Network, given_units: tuple[Unit, ...], most: int
) -> None:
    groups = layer_groups(network, given_units, most=most)
    assert sorted(op for group in groups for op in group.operators) == [*range(len(network.operators))]
    after = [reached(network, op.id) for op in network.operators]
    for group in groups:
        inside = {*group.operators}
        for op in inside:
            outside = after[op] - inside
            assert not any(after[other] & inside for other in outside)  # no way leaves and comes back
        for unit in given_units:
            assert group.runs_on(unit) == all(supported(network, op, unit) for op in inside)


@settings(max_examples=80, deadline=None)
@given(typed_networks(), units)
def test_operators_that_a_unit_lacks_are_kept_apart_while_groups_are_left(
    network: Network, given_units: tuple[Unit, ...]
) -> None:
    def where(group: LayerGroup) -> tuple[bool, ...]:
        return tuple(group.runs_on(unit) for unit in given_units)

    pieces = layer_groups(network, given_units, most=99)
    stretches = [sum(len(g.operators) for g in same) for _, same in groupby(pieces, key=where)]
    few = layer_groups(network, given_units, most=len(stretches))
    assert [len(group.operators) for group in few] == stretches


@settings(max_examples=80, deadline=None)
@given(typed_networks(), units, st.integers(1, 9))
def test_a_synthetic_profile_has_a_time_where_a_group_runs_and_no_other(
    network: Network, given_units: tuple[Unit, ...], most: int
) -> None:
    soc = SoC("own", given_units, 10.0, 9.0)
    groups = layer_groups(network, given_units, most=most)
    runs = [[group.runs_on(unit) for unit in given_units] for group in groups]
    if not all(map(any, runs)):
        with pytest.raises(ProfileError, match="runs on no unit"):
            synthetic_profile(network, soc, most=most)
        return
    profile = synthetic_profile(network, soc, most=most)
    assert [[ms is not None for ms in group.ms] for group in profile.groups] == runs
    names = [network.operators[op].name for group in groups for op in group.operators]
    assert [name for group in profile.groups for name in group.layers] == names
    for group, entry in zip(profile.groups, groups, strict=True):
        assert (group.output == "") == (entry.handed_on is None)
        for unit, ms, asked in zip(given_units, group.ms, group.gb_per_second, strict=True):
            assert 0 <= asked <= (unit.gb_per_second or 0)
            assert ms is None or ms > 0
            assert asked == 0 or ms is not None


@settings(max_examples=40, deadline=None)
@given(typed_networks(), units)
def test_fewer_groups_take_as_long(network: Network, given_units: tuple[Unit, ...]) -> None:
    free = tuple(replace(unit, unsupported=()) for unit in given_units)
    soc = SoC("own", free, 10.0, 9.0)
    one, many = (synthetic_profile(network, soc, most=most) for most in (1, 99))
    for unit in range(len(free)):
        assert one.total_ms(unit) == pytest.approx(many.total_ms(unit))
