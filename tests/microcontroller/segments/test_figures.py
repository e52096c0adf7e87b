"""What the planner reckons of a group is what the checker derives, and what a tagged memory allows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.base.errors import IllegalPlan
from onchip.check import certify
from onchip.check.rings import rings_of
from onchip.machines.chip import Chip
from onchip.microcontroller.segments.group import StageChoice, figures
from onchip.microcontroller.segments.layers import Layers, layers_of
from onchip.microcontroller.segments.sweep import columns_of, most_at_once
from onchip.network import Network
from onchip.network.maps import Maps
from onchip.plans import Alloc, Group, Load, Rings, Run, Scratch, Store
from ring_networks import chains, groups


def choices(network: Network, rings: Rings) -> list[StageChoice]:
    """The stages as the planner names them: layers by their place in the running order."""
    place = {network.operators[op].name: i for i, op in enumerate(network.order)}
    return [StageChoice(tuple(place[name] for name in s.operators), s.rows) for s in rings.stages]


def known(network: Network, rings: Rings) -> Layers:
    found = layers_of(network)
    assert not isinstance(found, str)
    return found.mirrored() if rings.traversal == "reverse" else found


@pytest.mark.thorough
@given(st.data())
@settings(max_examples=100)
def test_the_planner_reckons_what_the_checker_derives(data: st.DataObject) -> None:
    network = data.draw(chains())
    group = data.draw(groups(network))
    streamed = ("t0",) if data.draw(st.booleans()) else ()
    rings = group.tiling
    assert isinstance(rings, Rings)
    first = rings.stages[0].operators
    if streamed and all(op.name in first or 0 not in op.inputs for op in network.operators):
        rings = replace(rings, fetched=data.draw(st.sampled_from(("rows", "columns"))))
    run = rings_of(Maps(network), replace(group, tiling=rings), [0] if streamed else [], alignment=1)
    found = figures(
        known(network, rings),
        choices(network, rings),
        strips=rings.strips,
        streamed=0 if streamed else None,
        fetched=rings.fetched,
    )
    assert found.scratch == run.need
    assert found.macs == run.macs
    assert found.crossing == sum(run.crossing.values())


@pytest.mark.thorough
@given(st.data())
@settings(max_examples=300)
def test_columns_at_once_are_those_that_going_through_the_stage_finds(data: st.DataObject) -> None:
    """The quick way and the slow one, for stages of any layers in a row, with their input fetched or not."""
    network = data.draw(chains())
    net = layers_of(network)
    assert not isinstance(net, str)
    if data.draw(st.booleans()):
        net = net.mirrored()
    first, last = sorted(data.draw(st.tuples(*(2 * [st.integers(0, len(net.layers) - 1)]))))
    stage = [layer for layer in net.layers[first : last + 1] if not layer.adds_up] or [net.layers[first]]
    width = net.maps[stage[-1].makes].columns
    left, right = sorted(data.draw(st.tuples(st.integers(0, width), st.integers(0, width))))
    inside = {layer.makes for layer in stage}
    read = [t for layer in stage for t in layer.reads if t not in inside]
    fetched = read[:1] if data.draw(st.booleans()) else []
    quick, slow = (
        most_at_once(stage, (left, right), fetched),
        columns_of(stage, (left, right), fetched).at_once,
    )
    assert {t: n for t, n in quick.items() if n} == {t: n for t, n in slow.items() if n}


def accepted(network: Network, group: Group, by: int) -> bool:
    """Whether the checker lets the output lie over the input, `by` bytes below it."""
    x, y = network.tensors[0], network.tensors[network.outputs[0]]
    size = x.bytes + y.bytes + 1
    program = [Load(x.name, size), Alloc(y.name, size - by, x.name, by)]
    program += [Scratch(group.name, 4 * size), Run(group.name), Store(y.name)]  # type: ignore[list-item]
    try:
        certify(
            network, Chip("c", 1), 1 << 30, program, status="feasible", lower_bound_bytes=0, seconds=0,
            groups=[replace(group, scratch_bytes=1 << 20)],
        )  # fmt: skip
    except IllegalPlan as refused:
        return refused.rule != "overlap-unsafe"
    return True


@pytest.mark.thorough
@given(st.data())
@settings(max_examples=40)
def test_the_planner_lets_a_group_lie_where_the_checker_does_and_nowhere_else(data: st.DataObject) -> None:
    """At every distance from beside to beside: negative ones, and those between two that lose a byte."""
    network = data.draw(chains(side=5, channels=3, steps=data.draw(st.booleans())))
    group = data.draw(groups(network, strips=False))
    rings = group.tiling
    assert isinstance(rings, Rings)
    found = figures(known(network, rings), choices(network, rings), resident=0).distances
    assert found is not None
    x, y = network.tensors[0].bytes, network.tensors[network.outputs[0]].bytes
    legal = found if rings.traversal == "forward" else found.mirrored(x, y)
    every = range(-x - 1, y + 2)
    for by in every if len(every) < 60 else data.draw(st.lists(st.sampled_from(every), max_size=40)):
        assert (by in legal) == accepted(network, group, by)
