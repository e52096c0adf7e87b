"""Plans with one tiled group: the rest of the network runs operator by operator, everything through DRAM."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import dataclass, replace
from random import Random

from cell_machine import CellMachine, Counts, Lack

from map_networks import MapNetwork, random_map_network, random_stretch
from onchip.check import certify
from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.plans import Alloc, Blocks, Free, Group, Instruction, Load, Plan, Run, Scratch, Store, Tiling

__all__ = [
    "Blocked",
    "Tiled",
    "blocked_plan",
    "drawn_blocks",
    "drawn_group",
    "operands_of",
    "plan_of",
    "program_of",
    "random_blocks",
    "random_choice",
    "random_tiled",
    "random_whole",
    "tiled_plan",
]


@dataclass(frozen=True)
class Tiled:
    """A tiled group as the cell machine finds it: its declaration and the bytes that its run streams."""

    drawn: MapNetwork
    group: Group
    streaming: tuple[tuple[str, int], ...]
    counts: Counts
    machine: CellMachine | None


def up(size: int, alignment: int) -> int:
    return (size + alignment - 1) // alignment * alignment


def weight_tile(
    drawn: MapNetwork, machine: CellMachine, name: str, channels: int, of: int | None = None
) -> int:
    """Bytes of an operator's weights for some output channels, with as many input channels (or `of`)."""
    part = next(p for p in machine.parts if p.name == name)
    g, w = part.geometry, part.weights
    (c, h, columns), made = drawn.shapes[part.reads[0]], drawn.shapes[part.writes[0]][0]
    if not w:
        return 0
    sums = {
        "conv": (c // g.groups, g.kernel[0] * g.kernel[1] if g.kernel else 1),
        "depthwise": (1, g.kernel[0] * g.kernel[1] if g.kernel else 1),
        "fully_connected": (c, h * columns),
    }
    if g.kind not in sums or (g.kind == "depthwise" and made == c):
        return -(-w * min(channels, made) // made)
    inputs, taps = sums[g.kind]
    width = max(1, w // (made * inputs * taps))
    rest = max(0, w - width * made * inputs * taps)
    tile = width * min(channels, made) * min(channels if of is None else of, inputs) * taps
    return min(w, tile + -(-rest * min(channels, made) // made))


def drawn_group(
    drawn: MapNetwork,
    members: tuple[str, ...],
    tiling: Tiling,
    alignment: int,
    resident: tuple[str, ...] = (),
    whole: Collection[str] = (),
) -> Tiled:
    """The group with the least scratch that the cell machine can run in. Raises `Lack` when it cannot.

    Of `whole` those are taken that are operands, and not streamed by channel.
    """
    machine = CellMachine(drawn, members, tiling, whole)
    counts = machine.execute()
    scratch, cell = 0, {t: drawn.shapes[t][2] * drawn.element[t] for t in machine.tensors}
    for t in machine.tensors:
        if t in machine.whole:
            continue
        channels = drawn.shapes[t][0]
        if t in tiling.streamed:
            channels = min(channels, tiling.channels)
        scratch += up(tiling.images * channels * counts.rows[t] * cell[t], alignment)
    weights = {p.name: p.weights for p in machine.parts}
    scratch += sum(up(weights[name], alignment) for name in resident)
    refilled = [name for name in members if name not in resident and weights[name]]
    tiles = [weight_tile(drawn, machine, name, tiling.channels) for name in refilled]
    scratch += up(max(tiles, default=0), alignment)
    refills = tuple((name, counts.subgroups) for name in refilled)
    group = Group("tiled", members, scratch, counts.subgroups, refills, resident, tiling)
    crossing = [t for t in (*machine.external, *machine.escaping) if t not in machine.whole]
    return Tiled(drawn, group, tuple((t, counts.crossed[t] * cell[t]) for t in crossing), counts, machine)


def program_of(
    network: Network, group: Group, streaming: tuple[tuple[str, int], ...], over: tuple[str, str, int] | None
) -> list[Instruction]:
    """Every operator outside the group loads its inputs and stores its outputs; so does the group the whole
    ones. `over`: the second lies that many bytes above the first, which is written over it."""
    names = [t.name for t in network.tensors]
    inside = {network.operator_id[name] for name in group.operators}
    program: list[Instruction] = []
    left, made = list(network.order), {names[t] for t, p in enumerate(network.producer) if p is None}
    while left:
        for i in left:
            together = [v for v in network.order if v in inside] if i in inside else [i]
            writes = {names[t] for v in together for t in network.operators[v].outputs}
            reads = dict.fromkeys(names[t] for v in together for t in network.operators[v].inputs)
            if not set(reads) - writes <= made:
                continue
            if i in inside:
                mine, stay = group.name, operands_of(network, group) - {t for t, _ in streaming}
            else:
                mine, stay = network.operators[i].name, {*reads, *writes}
            at, run = 1 << 20, Run(mine, streaming if i in inside else ())
            left_behind = set[str]()
            for t in [t for t in reads if t in stay - writes]:
                program.append(Load(t, at))
                if i in inside and over is not None and t == over[1]:
                    program.append(Alloc(over[0], at - over[2], t, over[2]))
                    left_behind = set(over[:2])
                    at += 1 << 16
                at += up(network.tensors[network.tensor_id[t]].bytes, 1 << 16)
            for t in (writes & stay) - left_behind:
                program.append(Alloc(t, at))
                at += up(network.tensors[network.tensor_id[t]].bytes, 1 << 16)
            program += [Scratch(mine, 0), run] if i in inside else [run]
            program += [Store(t) for t in writes & stay]
            gone = set() if over is None or i not in inside else {over[1]}
            program += [Free(t) for t in ({*reads, *writes} & stay) - gone]
            made |= writes
            left = [v for v in left if v not in together]
            break
    return program


def operands_of(network: Network, group: Group) -> set[str]:
    """Names of what a group reads and does not make, and of what leaves it."""
    ids = {network.operator_id[name] for name in group.operators}
    ops = [network.operators[i] for i in ids]
    read, made = {t for op in ops for t in op.inputs}, {t for op in ops for t in op.outputs}
    outside = {t for op in network.operators if op.id not in ids for t in op.inputs}
    leaving = {t for t in made if t in network.outputs or t in outside or t not in read}
    return {network.tensors[t].name for t in (read - made) | leaving}


def random_whole(rng: Random, drawn: MapNetwork, members: tuple[str, ...], tiling: Tiling) -> set[str]:
    """Some of a group's operands, not those that its tiling streams."""
    part = rng.choice((0.0, 0.3, 0.7, 1.0))
    found = operands_of(drawn.network, Group("", members, 0)) - set(tiling.streamed)
    return {t for t in sorted(found) if rng.random() < part}


def plan_of(
    tiled: Tiled | Blocked,
    alignment: int,
    chip: Chip | None = None,
    over: tuple[str, str, int] | None = None,
) -> Plan:
    """The certified plan. Raises `IllegalPlan` when the checker thinks otherwise."""
    network, group = tiled.drawn.network, tiled.group
    return certify(
        network, chip or Chip("c", alignment), 1 << 30, program_of(network, group, tiled.streaming, over),
        status="feasible", lower_bound_bytes=0, seconds=0, groups=[group],
    )  # fmt: skip


def random_choice(rng: Random, **how: float) -> tuple[MapNetwork, tuple[str, ...], Tiling, int]:
    """A network, operators of it, a tiling and an alignment: good ones and bad ones."""
    drawn = random_map_network(rng, rng.choice((3, 5, 7)), most_rows=rng.choice((4, 9)), **how)  # type: ignore[arg-type]
    network = drawn.network
    members = random_stretch(rng, network)
    ids = [network.operator_id[name] for name in members]
    touched = sorted({t for i in ids for t in (*network.operators[i].inputs, *network.operators[i].outputs)})
    part = rng.choice((0.0, 0.3, 0.6))
    streamed = [network.tensors[t].name for t in touched if rng.random() < part]
    rng.shuffle(streamed)
    forms = [network.operators[i] for i in ids]
    whole = {t for op in forms if op.geometry and op.geometry.kind == "rowwise" for t in op.inputs}
    if rng.random() < 0.5:  # else most such tilings are no good
        streamed = [t for t in streamed if network.tensor_id[t] not in whole]
    tiling = Tiling(
        rng.choice((1, 1, 2, 3)), tuple(streamed[:4]), rng.randint(1, 3), rng.randint(1, drawn.images)
    )
    return drawn, members, tiling, rng.choice((1, 1, 4))


def random_tiled(rng: Random, *, alignment: int | None = None) -> tuple[Tiled, int]:
    """A tiled group that can run, and the alignment of its chip."""
    while True:
        drawn, members, tiling, drawn_alignment = random_choice(rng, opaque=0)
        resident = tuple(name for name in members if rng.random() < 0.3)
        whole = random_whole(rng, drawn, members, tiling)
        try:
            tiled = drawn_group(drawn, members, tiling, alignment or drawn_alignment, resident, whole)
        except Lack:
            continue
        return tiled, alignment or drawn_alignment


def tiled_plan(rng: Random, chip: Chip | None = None) -> Plan:
    """A legal plan with a tiled group."""
    tiled, alignment = random_tiled(rng, alignment=None if chip is None else chip.alignment_bytes)
    spare = rng.choice((0, 0, 7))
    group = replace(tiled.group, scratch_bytes=tiled.group.scratch_bytes + spare)
    return plan_of(replace(tiled, group=group), alignment, chip)


# -- blocks: a single operator, the bytes counted window by window -------------------------------------------


@dataclass(frozen=True)
class Blocked:
    """A group of one operator in blocks, as counting every window finds it."""

    drawn: MapNetwork
    group: Group
    streaming: tuple[tuple[str, int], ...]


def drawn_blocks(
    drawn: MapNetwork, name: str, blocks: Blocks, alignment: int, whole: Collection[int] = ()
) -> Blocked | None:
    """The group of operator `name` with the least scratch; None when nothing is known of its windows.

    Operand 0 (what it reads) and 1 (what it makes) may be whole.
    """
    network = drawn.network
    try:
        machine = CellMachine(drawn, (name,), Tiling(1))
    except Lack:
        return None
    part = machine.parts[0]
    g, x, y = part.geometry, part.reads[0], part.writes[0]
    if g.kind not in ("conv", "depthwise", "pool", "fully_connected", "pad"):
        return None
    (c, h, w), (channels, rows, columns) = drawn.shapes[x], drawn.shapes[y]

    def cells(axis: int, first: int, count: int, size: int) -> int:
        """Input positions along an axis between the first and the last that a tile reads."""
        if g.kind == "fully_connected":
            return size
        stride, before = (g.stride or (1, 1))[axis], g.padding[axis] if g.padding else 0
        span = ((g.kernel or (1, 1))[axis] - 1) * (g.dilation or (1, 1))[axis]
        ends = [(o * stride - before, o * stride - before + span + 1) for o in range(first, first + count)]
        return max(min(max(b for _, b in ends), size), 0) - min(max(min(a for a, _ in ends), 0), size)

    each = channels if g.kind in ("pool", "pad") or (g.kind == "depthwise" and c == channels) else 0
    groups = g.groups if g.kind == "conv" else c if g.kind == "depthwise" else 1
    window = crossed = tiles = 0
    out = range(0, channels, blocks.output_channels)
    for first, top, left in itertools.product(
        out, range(0, rows, blocks.rows), range(0, columns, blocks.columns)
    ):
        made = range(first, min(first + blocks.output_channels, channels))
        read = len(made) if each else len({o * groups // channels for o in made}) * (c // groups)
        high = cells(0, top, min(blocks.rows, rows - top), h)
        wide = cells(1, left, min(blocks.columns, columns - left), w)
        high, wide = max(0, high), max(0, wide)
        crossed += drawn.images * read * high * wide
        window = max(window, min(blocks.channels, read) * high * wide)
        tiles += drawn.images if first == 0 else 0
    size = drawn.element[y]
    block = min(blocks.output_channels, channels) * min(blocks.rows, rows) * min(blocks.columns, columns)
    scratch = 0 if 0 in whole else up(window * drawn.element[x], alignment)
    scratch += 0 if 1 in whole else up(block * size, alignment)
    scratch += up(weight_slice(drawn, machine, name, blocks), alignment)
    refills = ((name, tiles),) if part.weights and not blocks.keep_weights else ()
    group = Group("tiled", (name,), scratch, tiles, refills, (), blocks)
    streaming = ((x, crossed * drawn.element[x]), (y, network.tensors[network.tensor_id[y]].bytes))
    return Blocked(drawn, group, tuple(pair for i, pair in enumerate(streaming) if i not in whole))


def weight_slice(drawn: MapNetwork, machine: CellMachine, name: str, blocks: Blocks) -> int:
    """Bytes of the weights of one slice of a block, or of all its slices when they are kept."""
    inputs = 10**9 if blocks.keep_weights else blocks.channels
    return weight_tile(drawn, machine, name, blocks.output_channels, inputs)


def random_blocks(rng: Random) -> tuple[Blocked, int]:
    """A group in blocks that can run, and the alignment of its chip."""
    while True:
        drawn = random_map_network(rng, 4, opaque=0)
        op = rng.choice(drawn.network.operators)
        sizes = [rng.choice((1, 1, 2, 3, 8)) for _ in range(4)]
        alignment = rng.choice((1, 4))
        whole = {i for i in (0, 1) if rng.random() < 0.3}
        found = drawn_blocks(drawn, op.name, Blocks(*sizes, rng.random() < 0.3), alignment, whole)
        if found is not None:
            return found, alignment


def blocked_plan(rng: Random) -> Plan:
    """A legal plan with a group in blocks."""
    found, alignment = random_blocks(rng)
    return plan_of(found, alignment)
