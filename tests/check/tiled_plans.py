"""Plans with one tiled group: the rest of the network runs operator by operator, everything through DRAM."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from random import Random

from cell_machine import CellMachine, Counts, Lack

from map_networks import MapNetwork, random_map_network, random_stretch
from onchip.check import certify
from onchip.chip import Chip
from onchip.network import Network
from onchip.plan import Alloc, Blocks, Free, Group, Instruction, Load, Plan, Run, Scratch, Store, Tiling

__all__ = [
    "Blocked",
    "Tiled",
    "blocked_plan",
    "drawn_blocks",
    "drawn_group",
    "plan_of",
    "program_of",
    "random_blocks",
    "random_choice",
    "random_tiled",
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
) -> Tiled:
    """The group with the least scratch that the cell machine can run in. Raises `Lack` when it cannot."""
    machine = CellMachine(drawn, members, tiling)
    counts = machine.execute()
    scratch, cell = 0, {t: drawn.shapes[t][2] * drawn.element[t] for t in machine.tensors}
    for t in machine.tensors:
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
    crossing = [*machine.external, *machine.escaping]
    return Tiled(drawn, group, tuple((t, counts.crossed[t] * cell[t]) for t in crossing), counts, machine)


def program_of(network: Network, group: Group, streaming: tuple[tuple[str, int], ...]) -> list[Instruction]:
    """Every operator outside the group loads its inputs and stores its outputs."""
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
                program += [Scratch(group.name, 0), Run(group.name, streaming)]
            else:
                at = 0
                for kind, some in ((Load, reads), (Alloc, dict.fromkeys(writes))):
                    for t in some:
                        program.append(kind(t, at))
                        at += up(network.tensors[network.tensor_id[t]].bytes, 64)
                program.append(Run(network.operators[i].name))
                program += [Store(t) for t in writes]
                program += [Free(t) for t in (*reads, *writes)]
            made |= writes
            left = [v for v in left if v not in together]
            break
    return program


def plan_of(tiled: Tiled | Blocked, alignment: int, chip: Chip | None = None) -> Plan:
    """The certified plan. Raises `IllegalPlan` when the checker thinks otherwise."""
    network, group = tiled.drawn.network, tiled.group
    return certify(
        network, chip or Chip("c", alignment), 1 << 30, program_of(network, group, tiled.streaming),
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
        try:
            tiled = drawn_group(drawn, members, tiling, alignment or drawn_alignment, resident)
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


def drawn_blocks(drawn: MapNetwork, name: str, blocks: Blocks, alignment: int) -> Blocked | None:
    """The group of operator `name` with the least scratch; None when nothing is known of its windows."""
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
    scratch = up(window * drawn.element[x], alignment) + up(block * size, alignment)
    scratch += up(weight_slice(drawn, machine, name, blocks), alignment)
    refills = ((name, tiles),) if part.weights and not blocks.keep_weights else ()
    group = Group("tiled", (name,), scratch, tiles, refills, (), blocks)
    whole = network.tensors[network.tensor_id[y]].bytes
    return Blocked(drawn, group, ((x, crossed * drawn.element[x]), (y, whole)))


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
        found = drawn_blocks(drawn, op.name, Blocks(*sizes, rng.random() < 0.3), alignment)
        if found is not None:
            return found, alignment


def blocked_plan(rng: Random) -> Plan:
    """A legal plan with a group in blocks."""
    found, alignment = random_blocks(rng)
    return plan_of(found, alignment)
