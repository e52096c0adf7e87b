"""A partition as a plan program: one group after the other, each in the scratchpad by itself."""

from __future__ import annotations

from collections.abc import Sequence

from onchip.network import Network, bits
from onchip.planners.fusion.boxes import crossing_in_boxes
from onchip.planners.fusion.cost import GroupCost, whole_scratch
from onchip.planners.fusion.problem import FusionProblem
from onchip.planners.fusion.rows import bands_of, halo_rows, walk, walked_rows
from onchip.planners.fusion.streams import legal
from onchip.plans import Alloc, Boxes, Free, Group, Instruction, Load, Run, Scratch, Store, Tiling

__all__ = ["crossing", "declare", "group_names", "in_order", "passes_whole", "program", "why_not"]


def in_order(network: Network, groups: Sequence[GroupCost]) -> tuple[GroupCost, ...]:
    """Return the groups in an order in which they can run; raises ValueError if they wait for each other."""
    done, waiting, result = 0, list(groups), list[GroupCost]()
    while waiting:
        for g in waiting:
            before = 0
            for v in bits(g.members):
                before |= network.predecessors[v]
            if not before & ~(done | g.members):
                break
        else:
            raise ValueError("the groups wait for each other")
        waiting.remove(g)
        result.append(g)
        done |= g.members
    return tuple(result)


def group_names(network: Network, groups: Sequence[object]) -> tuple[str, ...]:
    """Return a name for every group that no operator has: g0, g1, ... with the underscores necessary."""
    prefix = "g"
    while any(name.startswith(prefix) and name[len(prefix) :].isdigit() for name in network.operator_id):
        prefix += "_"
    return tuple(f"{prefix}{i}" for i in range(len(groups)))


def program(
    problem: FusionProblem, groups: Sequence[GroupCost]
) -> tuple[tuple[Instruction, ...], tuple[Group, ...]]:
    """Return the program that runs `groups`, given in an order in which they can run, and their declarations.

    A group's tensors live in its scratch; an operator without known windows is loaded and stored whole if it
    fits.
    """
    instructions: list[Instruction] = []
    declared = []
    for name, g in zip(group_names(problem.network, groups), groups, strict=True):
        if passes_whole(problem, g.members, g):
            instructions += _whole(problem, g)
            continue
        declared.append(declare(problem, name, g))
        instructions += [Scratch(name, 0), Run(name, crossing(problem, g))]
    return tuple(instructions), tuple(declared)


def declare(problem: FusionProblem, name: str, g: GroupCost) -> Group:
    """Return the declaration of a group that runs in tiles."""
    network = problem.network
    ops = sorted(bits(g.members), key=problem.position.__getitem__)
    with_weights = [v for v in ops if network.operators[v].weight_bytes and not isinstance(g.blocks, Boxes)]
    refills = g.weight_fetches
    tiling = g.blocks or Tiling(
        g.rows, tuple(network.tensors[t].name for t in bits(g.streamed)), problem.channel_tile, g.images
    )
    return Group(
        name,
        tuple(network.operators[v].name for v in ops),
        g.scratch_bytes,
        g.subgroups,
        tuple((network.operators[v].name, refills) for v in with_weights if not g.resident >> v & 1),
        tuple(network.operators[v].name for v in with_weights if g.resident >> v & 1),
        tiling,
    )


def crossing(problem: FusionProblem, g: GroupCost, whole: int = 0) -> tuple[tuple[str, int], ...]:
    """Return every external input and escaping output of a group that is not `whole` on chip (bitset), with
    the bytes that cross."""
    network = problem.network
    external, escaping = problem.external(g.members), problem.escaping(g.members)
    result = {t: network.tensors[t].bytes for t in bits((external | escaping) & ~whole)}
    if isinstance(g.blocks, Boxes):
        op = network.operators[g.members.bit_length() - 1]
        sizes = [t.bytes for t in network.tensors]
        result |= crossing_in_boxes(op, g.blocks, sizes, network.root)
    elif g.blocks is not None:
        result[next(bits(external))] += g.halo_bytes
    else:
        bands = bands_of(problem, g.members)
        assert bands is not None
        for t, again in halo_rows(problem, bands, g.streamed, g.rows).items():
            shape = problem.maps[t]
            assert shape is not None
            result[t] += problem.batch * shape.channels * shape.row_bytes * again
    return tuple((network.tensors[t].name, size) for t, size in result.items())


def passes_whole(problem: FusionProblem, members: int, way: GroupCost) -> bool:
    """Return whether an operator runs whole, in no tiles."""
    return problem.operators[members.bit_length() - 1].form == "opaque" and way.blocks is None


def _whole(problem: FusionProblem, g: GroupCost) -> list[Instruction]:
    """Return the instructions of a whole operator: operands pass through its workspace if only that fits."""
    network = problem.network
    v = g.members.bit_length() - 1
    op = network.operators[v]
    instructions: list[Instruction] = []
    top = 0
    ways = (0, *problem.operators[v].streams)
    passing = next(some for some in ways if whole_scratch(problem, v, some) <= g.scratch_bytes)
    for t in bits(network.reads[v] & ~passing):
        instructions.append(Load(network.tensors[t].name, top))
        top += problem.round_up(network.tensors[t].bytes)
    for t in bits(network.writes[v] & ~passing):
        instructions.append(Alloc(network.tensors[t].name, top))
        top += problem.round_up(network.tensors[t].bytes)
    if op.workspace:
        instructions.append(Scratch(op.name, top))
    instructions.append(
        Run(op.name, tuple((network.tensors[t].name, network.tensors[t].bytes) for t in bits(passing)))
    )
    instructions += [Store(network.tensors[t].name) for t in bits(network.writes[v] & ~passing)]
    touched = (network.reads[v] | network.writes[v]) & ~passing
    return instructions + [Free(network.tensors[t].name) for t in bits(touched)]


def why_not(problem: FusionProblem, groups: Sequence[GroupCost]) -> str:
    """Return why a partition cannot be executed, in a few words; empty if it can."""
    o = problem.options
    if o.batch_weights == "shared":
        return "shared weights need the whole batch at once, in the buffers of one image"
    if not o.weight_tile:
        return "refilled weights have no place in the scratchpad"
    if o.halo == "recompute":
        return "held rows are counted as made anew"
    if o.isoa in ("channelwise", "off") and o.halo != "paper":
        return ""
    for g in groups:
        bands = bands_of(problem, g.members)
        if bands is None or g.blocks is not None:
            continue
        if not legal(problem, bands, g.streamed):
            return "streamed tensors wait for each other"
        rows = walked_rows(problem, bands, g.streamed, g.rows)
        for band in walk(problem, bands, g.streamed, g.rows):
            for x, (before, low, high) in band.items():
                if high - low > rows[x]:
                    return "a buffer has fewer rows than a band needs"
                if o.halo == "paper" and bands.external >> x & g.streamed >> x & 1 and low < before:
                    return "rows that cross again are not counted"
    return ""
