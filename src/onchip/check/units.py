"""The units that a `run` executes: operators and declared groups, reduced to reads, writes and memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from onchip.base.units import MAX_BYTES
from onchip.check.boxes import boxed
from onchip.check.nests import Layout, nested
from onchip.check.parts import Part
from onchip.check.rings import RingRun, rings_of
from onchip.check.row_memory import RowsRun, rows_run
from onchip.check.rules import broken
from onchip.check.tiles import Banded, Tiles, tiles_of
from onchip.network import Network, bits, mask
from onchip.network.maps import Maps
from onchip.plans import Boxes, Group, Instruction, Nest, Rings, Rows, Run

__all__ = ["Unit", "macs_of", "streams_of", "units_of"]

MAX_FETCHED = 10**18
"""The most bytes of weights that a group fetches; more is a mistake, and does not fit a file's integers."""


@dataclass(frozen=True, slots=True)
class Unit:
    """An operator, or a group used like one. Tensors are ids of roots, never of views.

    `workspace` is the size of its scratch, before alignment; `taken_bytes` those of them that inner
    tensors and resident weights take, the rest being room for streamed pieces; `weights` the bytes of
    weights that its run fetches. A tiled group streams all `crossing` tensors, with the bytes that cross;
    `parts` are the parts of its scratch. `rings` is the run of a group in rings, `banded` of one in
    bands; `nest` are the places in the scratch of one in a nest, whose `parts` are those that live at its
    worst moment. `rows` is the run of one by rows.
    """

    name: str
    operators: tuple[int, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    inner: tuple[int, ...]
    workspace: int
    taken_bytes: int
    weights: int
    group: bool
    crossing: Mapping[int, int] | None = None
    parts: tuple[Part, ...] = ()
    rings: RingRun | None = None
    banded: Banded | None = None
    nest: Layout | None = None
    rows: RowsRun | None = None


def streams_of(program: Iterable[Instruction]) -> dict[str, Collection[str]]:
    """Return by unit the tensors that its run (the first, if a program has several) streams."""
    found: dict[str, Collection[str]] = {}
    for step in program:
        if isinstance(step, Run):
            found.setdefault(step.operator, tuple(t for t, _ in step.streaming))
    return found


def units_of(
    network: Network,
    groups: Sequence[Group],
    *,
    alignment: int,
    weights_resident: bool,
    pinned: Collection[int] = (),
    streamed: Mapping[str, Collection[str]] | None = None,
    maps: Maps | None = None,
    accumulator: int | None = None,
) -> dict[str, Unit]:
    """Return every unit by name: the groups, and the operators outside groups.

    The weights of `pinned` operators are on chip throughout, so their runs fetch none and their scratch holds
    none. `streamed` gives, by group, the tensors that its run streams. A group in rings has a ring for each.
    The other operands of a group in tiles are whole; one that `streamed` lacks streams all operands. `maps`
    are the maps of the network, if the caller has them. Sums of a nest that are not complete take
    `accumulator` bytes (None: those of an element). Raises `Broken` for a bad group.
    """
    member: dict[int, str] = {}
    units: dict[str, Unit] = {}
    maps = maps or Maps(network)
    for group in groups:
        if group.name in units or group.name in network.operator_id:
            broken("group-name", f"{group.name} is declared already")
        ids = _members(network, group, member)
        stream = (streamed or {}).get(group.name)
        units[group.name] = _group_unit(maps, group, ids, alignment, weights_resident, stream, accumulator)
    for op in network.operators:
        if op.id not in member:
            reads, writes = tuple(bits(network.reads[op.id])), tuple(bits(network.writes[op.id]))
            weights = 0 if op.id in pinned else op.weight_bytes
            taken = min(weights, op.workspace) if weights_resident else 0
            units[op.name] = Unit(op.name, (op.id,), reads, writes, (), op.workspace, taken, weights, False)
    return units


def macs_of(network: Network, units: Iterable[Unit]) -> int | None:
    """Return the multiply-accumulates if each unit runs once; None if a group in tiles may repeat some.

    A nest repeats what windows make it: its other loops go along axes of the operators inside, and none that
    stays together.
    """
    total = 0
    for unit in units:
        run = unit.rings or unit.nest or unit.rows
        if unit.crossing is not None and run is None:
            return None
        own = sum(network.operators[op].work for op in unit.operators)
        total += own if run is None else run.macs
    return total


def _members(network: Network, group: Group, member: dict[int, str]) -> tuple[int, ...]:
    if not group.operators or len(set(group.operators)) < len(group.operators) or group.subgroups < 1:
        broken("group-members", f"group {group.name} is empty, names an operator twice or has no subgroup")
    for name in group.operators:
        op = network.operator_id.get(name)
        if op is None:
            broken("unknown-operator", f"group {group.name} names {name}, which the network does not have")
        if op in member:
            broken("group-overlap", f"{name} is in group {member[op]} and in group {group.name}")
        member[op] = group.name
    return tuple(network.operator_id[name] for name in group.operators)


def _group_unit(
    maps: Maps,
    group: Group,
    ids: tuple[int, ...],
    alignment: int,
    weights_resident: bool,
    streamed: Collection[str] | None,
    accumulator: int | None,
) -> Unit:
    network, inside = maps.network, mask(ids)
    _convex(network, group, inside)
    written = read = 0
    for op in ids:
        written |= network.writes[op]
        read |= network.reads[op]
    inner = tuple(
        t
        for t in bits(written & read & ~network.output_roots)
        if not network.readers[t]
        & ~inside  # an output that nothing reads leaves the group, like one read outside
    )
    weights = _fetched(network, group, ids)
    known = {t for name in streamed or () if (t := network.tensor_id.get(name)) is not None}
    rings: RingRun | None = None
    banded: Banded | None = None
    nest: Layout | None = None
    by_rows: RowsRun | None = None
    crossing: Mapping[int, int] | None = None
    parts: tuple[Part, ...] = ()
    if isinstance(group.tiling, Rings):
        stream = frozenset(t for t in known if read >> t & 1)
        rings = rings_of(maps, group, stream, alignment=alignment)
        need, crossing, parts = rings.need, rings.crossing, rings.parts
    elif isinstance(group.tiling, Boxes):
        boxes = boxed(
            network,
            group,
            group.tiling,
            ids,
            known if streamed is not None else None,
            alignment,
            weights_resident,
        )
        need, crossing, parts, weights = boxes.need, boxes.crossing, boxes.parts, boxes.weights
    elif isinstance(group.tiling, Nest):
        run = nested(network, group, ids, known if streamed is not None else None, alignment, accumulator)
        need, crossing, parts, weights = run.layout.extent, run.crossing, run.parts, run.weights
        nest = run.layout
    elif isinstance(group.tiling, Rows):
        leaves = tuple(bits(written & ~mask(inner)))
        by_rows = rows_run(network, group, ids, None if streamed is None else tuple(known), leaves)
        need, crossing = by_rows.need, by_rows.crossing
    elif group.tiling is not None:
        order = [op for op in network.order if inside >> op & 1]
        escaping = frozenset(bits(written & ~mask(inner)))
        operands = escaping.union(bits(read & ~written))
        tiles = tiles_of(
            maps, group, order, escaping, whole=frozenset() if streamed is None else operands - known,
            alignment=alignment, weights_resident=weights_resident,
        )  # fmt: skip
        _refilled(network, group, ids, tiles)
        need, crossing, parts, banded = tiles.need, tiles.crossing, tiles.parts, tiles.banded
    elif group.subgroups > 1:
        broken(
            "group-unproved",
            f"group {group.name} runs in {group.subgroups} subgroups; without a tiling only 1 is proved",
        )
    else:
        need = _untiled_need(network, group, ids, inner, alignment, weights_resident)
    if not need <= group.scratch_bytes <= MAX_BYTES:
        live = f", as addresses go: {nest.need:,} live at once" if nest and nest.need < need else ""
        broken(
            "group-scratch",
            f"group {group.name} states {group.scratch_bytes:,} bytes and needs {need:,}{live}",
        )
    return Unit(
        group.name,
        ids,
        tuple(bits(read & ~written)),
        tuple(bits(written & ~mask(inner))),
        inner,
        group.scratch_bytes,
        need,
        weights,
        True,
        crossing,
        parts,
        rings,
        banded,
        nest,
        by_rows,
    )


def _untiled_need(
    network: Network,
    group: Group,
    ids: tuple[int, ...],
    inner: tuple[int, ...],
    alignment: int,
    weights_resident: bool,
) -> int:
    """Return the bytes that a group of one subgroup holds: inner tensors, resident weights, one workspace."""
    resident = {network.operator_id[name] for name in group.resident_weights}
    need = sum(-(-network.tensors[t].bytes // alignment) * alignment for t in inner)
    need += sum(network.operators[op].weight_bytes for op in resident)
    # With resident weights a workspace includes them: those of `resident` are counted already.
    return need + max(
        network.operators[op].workspace
        - (network.operators[op].weight_bytes if weights_resident and op in resident else 0)
        for op in ids
    )


def _refilled(network: Network, group: Group, ids: Iterable[int], tiles: Tiles) -> None:
    """Refuse unless weights that are not resident are fetched as often as the tiles ask for."""
    refills: Mapping[str, int] = dict(group.refills)
    for op in map(network.operators.__getitem__, ids):
        times = refills.get(op.name, 1)
        if op.weight_bytes and op.name not in group.resident_weights and times != tiles.refills:
            broken(
                "tiling-refills",
                f"group {group.name} fetches the weights of {op.name} {tiles.refills:,} times, not {times:,}",
            )


def _fetched(network: Network, group: Group, ids: Iterable[int]) -> int:
    """Return the bytes of weights that a group fetches: each operator's as often as it is refilled."""
    refills: Mapping[str, int] = dict(group.refills)
    names = set(group.operators)
    wrong = [name for name in (*refills, *group.resident_weights) if name not in names]
    wrong += [name for name, times in group.refills if times < 1]
    wrong += [name for name in group.resident_weights if refills.get(name, 1) != 1]
    total = sum(network.operators[op].weight_bytes * refills.get(network.operators[op].name, 1) for op in ids)
    if wrong:
        broken("group-weights", f"group {group.name}: {wrong[0]} cannot be refilled or kept so")
    if total > MAX_FETCHED:
        broken("group-weights", f"group {group.name} fetches an absurd {total:,} bytes")
    return total


def _convex(network: Network, group: Group, inside: int) -> None:
    """Refuse a group if an operator outside depends on it and is needed by it."""
    after = 0  # operators outside that depend on a member, found in topological order
    for op in network.order:
        before = network.predecessors[op]
        if inside >> op & 1:
            if before & after:
                through = network.operators[next(bits(before & after))].name
                broken(
                    "group-not-convex", f"a path leaves group {group.name}, passes {through} and comes back"
                )
        elif before & (inside | after):
            after |= 1 << op
