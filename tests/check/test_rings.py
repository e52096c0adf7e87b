"""Groups in rings: what the checker derives against a machine that has a tag in every byte."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.base.errors import IllegalPlan
from onchip.check import certify
from onchip.check.rings import RingRun, rings_of
from onchip.check.rules import Broken
from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.network.maps import Maps
from onchip.plans import Alloc, Group, Instruction, Load, Plan, Rings, Run, Scratch, Store
from oracles.ring_machine import RingMachine, Sizes, map_of
from ring_networks import chains, groups


def run_of(network: Network, group: Group, streamed: tuple[str, ...] = ()) -> RingRun:
    ids = [network.tensor_id[name] for name in streamed]
    return rings_of(Maps(network), group, ids, alignment=1)


def certified(
    network: Network, group: Group, by: int | None, *, streamed: tuple[str, ...] = (), exact: bool = True
) -> Plan:
    """A plan of one group over the graph input `t0`; by None beside it."""
    run = run_of(network, group, streamed)
    group = replace(group, scratch_bytes=run.need if exact else group.scratch_bytes)
    x, y = network.tensors[0], network.tensors[network.outputs[0]]
    size = x.bytes + y.bytes + abs(by or 0)
    program: list[Instruction] = []
    crossing = {network.tensors[t].name: n for t, n in run.crossing.items()}
    if x.name not in streamed:
        program.append(Load(x.name, size))
    if by is None or x.name in streamed:
        program.append(Alloc(y.name, 0))
    else:
        program.append(Alloc(y.name, size - by, x.name, by))
    program += [Scratch(group.name, 3 * size), Run(group.name, tuple(crossing.items())), Store(y.name)]
    return certify(
        network, Chip("c", 1), 3 * size + run.need, program, status="feasible", lower_bound_bytes=0,
        seconds=0, groups=[group],
    )  # fmt: skip


@pytest.mark.thorough
@given(st.data())
@settings(max_examples=120)
def test_rings_lose_no_row_and_none_could_be_smaller(data: st.DataObject) -> None:
    network = data.draw(chains())
    group = data.draw(groups(network))
    streamed = ("t0",) if data.draw(st.booleans()) else ()
    if streamed and data.draw(st.booleans()):
        group = replace(group, tiling=replace(group.tiling, fetched="columns"))  # type: ignore[type-var]
        assert isinstance(group.tiling, Rings)
        first = group.tiling.stages[0].operators
        if any(op.name not in first and 0 in op.inputs for op in network.operators):
            with pytest.raises(Broken):
                run_of(network, group, streamed)
            return
    run = run_of(network, group, streamed)
    machine = RingMachine(network, group, streamed)
    sizes = sizes_of(run)
    assert not machine.lost(sizes)
    assert run.macs == macs(network, machine)
    assert {network.tensors[t].name: n for t, n in run.crossing.items()} == machine.fetched
    rows = {network.tensors[network.operators[network.operator_id[stage.operators[-1]]].outputs[0]].name:
            stage.rows for stage in group.tiling.stages}  # fmt: skip
    for name in sizes.rows:
        size = sizes.rows[name]
        # A ring of no more than a band may hold rows that nobody reads.
        if sizes.columns[name] and size > max(1, rows.get(name, 1)):
            assert machine.lost(replace(sizes, rows={**sizes.rows, name: size - 1})), name
    for name in (part.name for stage in run.column_rings for part in stage if part.bytes):
        if sizes.columns[name] > 1:
            less = {**sizes.columns, name: sizes.columns[name] - 1}
            assert machine.lost(replace(sizes, columns=less)), name


def macs(network: Network, machine: RingMachine) -> int:
    total = 0
    for op in network.operators:
        assert op.geometry is not None
        height, width, _ = map_of(op.geometry.output)
        total += op.work * machine.pixels[op.name] // (height * width)
    return total


def sizes_of(run: RingRun) -> Sizes:
    sizes = Sizes()
    for part in run.row_rings:
        sizes.rows[part.name], sizes.columns[part.name] = part.rows, part.columns
    for stage in run.column_rings:
        for part in stage:
            sizes.columns[part.name] = part.columns
    return sizes


@pytest.mark.thorough
@given(st.data())
@settings(max_examples=60)
def test_a_group_lies_over_its_input_as_far_as_the_machine_says_and_no_byte_further(
    data: st.DataObject,
) -> None:
    network = data.draw(chains(side=5, channels=3, steps=True))
    group = data.draw(groups(network))
    machine = RingMachine(network, group)
    sizes = sizes_of(run_of(network, group))
    x, y = network.tensors[0].bytes, network.tensors[network.outputs[0]].bytes
    safe = [not machine.lost(sizes, "t0", by) for by in range(-x, y + 1)]
    assert safe[-1]
    least = y - safe[::-1].index(False) + 1 if False in safe else -x
    close = sorted({least - 1, least, least + 1, data.draw(st.integers(-x, y))})
    for by in close:
        if -x <= by <= y:
            assert refusal(network, group, by) == (None if safe[by + x] else "overlap-unsafe")


def refusal(network: Network, group: Group, by: int) -> str | None:
    try:
        certified(network, group, by)
    except IllegalPlan as refused:
        return refused.rule
    return None


@given(st.data())
@settings(max_examples=40)
def test_a_scratch_one_byte_too_small_is_refused(data: st.DataObject) -> None:
    network = data.draw(chains())
    group = data.draw(groups(network))
    plan = certified(network, group, None)
    [stated] = plan.groups
    less = replace(stated, scratch_bytes=stated.scratch_bytes - 1)
    with pytest.raises(IllegalPlan) as refused:
        certified(network, less, None, exact=False)
    assert refused.value.rule == "group-scratch"
