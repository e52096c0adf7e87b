"""From groups to a plan program, certified like every other."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from onchip.base.errors import Infeasible
from onchip.base.short_names import short_names
from onchip.check import certify
from onchip.microcontroller.segments.chain import Chain, GroupChoice
from onchip.microcontroller.segments.claim import space_of
from onchip.microcontroller.segments.frontier import Choice, chain_of, choose
from onchip.microcontroller.segments.options import SegmentOptions
from onchip.microcontroller.segments.place import Placed, Traversal
from onchip.network import Network, Operator
from onchip.planners.limits import Limits
from onchip.plans import (
    Alloc,
    Free,
    Group,
    Instruction,
    Load,
    Plan,
    PlanChip,
    Rings,
    Run,
    Scratch,
    Stage,
    Store,
)

__all__ = ["plan", "plan_of", "too_little"]


def plan(
    network: Network,
    ram_bytes: int,
    options: SegmentOptions | None = None,
    limits: Limits | None = None,
) -> Plan:
    """Return the plan that `options.objective` asks for, within `ram_bytes`.

    `limits` override those in `options`. Raises `Infeasible` when `ram_bytes` is too little, `ModelError` for
    a network whose operators are not layers over maps of pixels, or that has several inputs.
    """
    started, options = time.monotonic(), options or SegmentOptions()
    chain = chain_of(network)
    choice = choose(chain, ram_bytes, options, limits or Limits.of(options))
    if choice.bytes > ram_bytes:
        raise too_little(chain, choice, ram_bytes)
    return plan_of(chain, choice, ram_bytes, options, time.monotonic() - started)


def plan_of(
    chain: Chain, choice: Choice, ram_bytes: int, options: SegmentOptions, seconds: float = 0.0
) -> Plan:
    """Return the certified program of a choice of groups, such as a point of a front."""
    groups, placed = choice.groups, choice.placed
    network = _turned(chain, groups, placed.traversals)
    fused = [
        _fused(network, chain, group, f"fused{i}", traversal)
        for i, (group, traversal) in enumerate(zip(groups, placed.traversals, strict=True))
    ]
    return certify(
        network,
        PlanChip("mcu"),
        ram_bytes,
        _program(chain, network, groups, fused, placed),
        status="optimal" if choice.bytes <= choice.least else "feasible",
        lower_bound_bytes=0,
        peak_lower_bound_bytes=choice.least,
        options={
            "planner": "segments",
            "objective": "peak",
            "segments": options.objective,
            "input": options.input,
        },
        space=space_of(options),
        seconds=seconds,
        groups=[group for group in fused if group is not None],
    )


def too_little(chain: Chain, choice: Choice, has: int) -> Infeasible:
    """Return the error that so many bytes are too few for this choice; it names the largest group."""
    worst = max(choice.groups, key=chain.bytes_needed)
    network = chain.net.network
    layer = chain.net.layers[worst.end - 1]
    tensors = [] if worst.fetched else [network.tensors[chain.entering(worst.first)]]
    tensors.append(network.tensors[layer.makes])
    short = short_names(t.name for t in network.tensors)
    return Infeasible(
        needs=choice.bytes,
        has=has,
        operator=network.operators[layer.operator].name,
        tensors=tuple((short[t.name], t.bytes) for t in tensors),
    )


def _turned(chain: Chain, groups: Sequence[GroupChoice], traversals: Sequence[Traversal]) -> Network:
    """Return the network with each operator's direction."""
    network = chain.net.network
    way = {
        chain.net.layers[i].operator: traversal
        for group, traversal in zip(groups, traversals, strict=True)
        for i in range(group.first, group.end)
        if group.alone
    }
    return replace(network, operators=tuple(_one_turned(op, way.get(op.id)) for op in network.operators))


def _one_turned(op: Operator, traversal: Traversal | None) -> Operator:
    if traversal is None or op.geometry is None:
        return op
    return replace(op, geometry=replace(op.geometry, traversal=traversal))


def _fused(
    network: Network,
    chain: Chain,
    group: GroupChoice,
    name: str,
    traversal: Traversal,
) -> Group | None:
    if group.alone:
        return None

    def named(i: int) -> str:
        return network.operators[chain.net.layers[i].operator].name

    stages = tuple(Stage(tuple(map(named, stage.layers)), stage.rows) for stage in group.stages)
    return Group(
        name,
        tuple(op for stage in stages for op in stage.operators),
        group.way(traversal).scratch,
        tiling=Rings(stages, group.strips, group.fetched or "rows", traversal),
    )


def _program(
    chain: Chain,
    network: Network,
    groups: Sequence[GroupChoice],
    fused: Sequence[Group | None],
    placed: Placed,
) -> list[Instruction]:
    def name(t: int) -> str:
        return network.tensors[t].name

    made: list[Instruction] = []
    at = placed.input
    if not groups[0].fetched:
        made.append(Load(name(chain.input), at))
    where = zip(groups, fused, placed.outputs, placed.scratches, placed.traversals, strict=True)
    for group, unit, output, scratch, traversal in where:
        source, target = chain.entering(group.first), chain.net.layers[group.end - 1].makes
        who = network.operators[chain.net.layers[group.first].operator].name if unit is None else unit.name
        size, result = network.tensors[source].bytes, network.tensors[target].bytes
        apart = group.fetched or output + result <= at or output >= at + size
        made.append(
            Alloc(name(target), output) if apart else Alloc(name(target), output, name(source), at - output)
        )
        if group.way(traversal).scratch:
            made.append(Scratch(who, scratch))
        streamed = ((name(source), group.way(traversal).crossing),) if group.fetched else ()
        made.append(Run(who, streamed))
        if not group.fetched and apart:
            made.append(Free(name(source)))
        at = output
    last = name(chain.net.layers[-1].makes)
    return [*made, Store(last), Free(last)]
