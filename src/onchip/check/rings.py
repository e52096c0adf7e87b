"""A group in rings of rows: its scratch, the bytes that it fetches, and its multiply-accumulates.

docs/plan-program.md says how such a group runs. Everything is derived by running the rule of
`ring_order` on the network's geometry, in mirrored coordinates if the group runs in reverse.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod

from onchip.check.parts import Part, up
from onchip.check.ring_order import Node, drive, pyramid
from onchip.check.rules import broken
from onchip.check.tiles import access_in, map_in
from onchip.network import Network
from onchip.network.access import Access
from onchip.network.maps import Map, Maps
from onchip.network.windows import Range
from onchip.plans import Group, Rings

__all__ = ["MOST_SWEEPS", "Band", "RingRun", "Strip", "rings_of"]

MOST_SWEEPS = 1 << 21
"""The most lines of a group, over all strips: no real network has more, and more takes minutes."""

MOST_STAGES = 200
"""The most stages of a group: no network has more in a row, and each may be a nested call."""

ACCUMULATOR = 4
"""Bytes in which a pool over a whole map adds up a channel."""


@dataclass(frozen=True, slots=True)
class Band:
    """One operator's part in a sweep: it makes `rows` of its output."""

    piece: Access
    rows: Range


@dataclass(frozen=True, slots=True)
class Strip:
    """A stage in one strip: the columns of every tensor it touches, and the order in which it makes them.

    `columns` are those of its output and of its inputs. `order` are (operator, column) of a stage that
    sweeps column by column; it is empty if it sweeps whole rows.
    """

    columns: Mapping[int, Range]
    order: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class RingRun:
    """The run of a group in rings. Windows, rows and columns are mirrored if `reverse`.

    `pieces` are each stage's operators; `bands[s][b]` are the parts of its operators in its sweep b. A strip
    makes the sweeps in `order`, (stage, sweep) each; `strips[i][s]` is stage s in strip i.

    The scratch holds the `row_rings`, the `column_rings` of one stage at a time, 4 bytes for each channel
    that a stage with `accumulates` adds up (`sums`) and the largest `workspace` of an operator: `need` bytes.
    `crossing` are the bytes of every streamed input that are fetched, `macs` the multiply-accumulates,
    including those that are repeated.
    """

    maps: Mapping[int, Map]
    pieces: tuple[tuple[Access, ...], ...]
    bands: tuple[tuple[tuple[Band, ...], ...], ...]
    order: tuple[tuple[int, int], ...]
    strips: tuple[tuple[Strip, ...], ...]
    accumulates: tuple[bool, ...]
    reverse: bool
    row_rings: tuple[Part, ...]
    column_rings: tuple[tuple[Part, ...], ...]
    sums: int
    workspace: int
    crossing: Mapping[int, int]
    macs: int

    @property
    def parts(self) -> tuple[Part, ...]:
        """The rings in the scratch: all row rings, and the column rings of the stage with the largest."""
        return (*self.row_rings, *max(self.column_rings, key=_bytes))

    @property
    def need(self) -> int:
        """Bytes of scratch."""
        return _bytes(self.parts) + self.sums + self.workspace


def _bytes(parts: Sequence[Part]) -> int:
    return sum(part.bytes for part in parts)


def rings_of(maps: Maps, group: Group, streamed: Collection[int], *, alignment: int) -> RingRun:
    """Derive the run of a group in rings that fetches the tensors `streamed` itself.

    Raises `Broken`: `rings-stages`, `rings-sizes` or `rings-fetched` for an invalid group, `group-unproved`
    where the geometry says too little.
    """
    network, rings = maps.network, group.tiling
    assert isinstance(rings, Rings)
    pieces = _stages(maps, group, rings)
    flat = [piece for stage in pieces for piece in stage]
    made = {t: map_in(maps, t) for piece in flat for t in (*piece.reads, *piece.writes)}
    _sizes(network, group, rings, made, flat)
    if rings.traversal == "reverse":
        pieces = tuple(tuple(_mirrored(piece) for piece in stage) for stage in pieces)
    _fetched_columns(network, group, rings, pieces, streamed)
    return _run(network, rings, pieces, made, streamed, alignment)


# -- validation ------------------------------------------------------------------------------------------


def _stages(maps: Maps, group: Group, rings: Rings) -> tuple[tuple[Access, ...], ...]:
    network = maps.network
    names = tuple(name for stage in rings.stages for name in stage.operators)
    if names != group.operators or any(not stage.operators for stage in rings.stages):
        broken("rings-stages", f"the stages of group {group.name} are not its operators, cut into pieces")
    if len(rings.stages) > MOST_STAGES:
        broken("group-unproved", f"group {group.name} has more than {MOST_STAGES} stages")
    ids = [network.operator_id[name] for name in names]
    place = {op: i for i, op in enumerate(ids)}
    for op in ids:
        late = [network.producer[t] for t in network.operators[op].inputs]
        if any(p in place and place[p] >= place[op] for p in late if p is not None):
            broken("rings-stages", f"group {group.name} names {network.operators[op].name} too early")
        if network.operators[op].geometry is not None and not _lies_by_pixels(network, op):
            broken("group-unproved", f"group {group.name}: {network.operators[op].name} is not in NHWC")
    stages, at = [], 0
    for stage in rings.stages:
        part = ids[at : at + len(stage.operators)]
        at += len(part)
        handed = [t for op in part for t in network.operators[op].outputs if _leaves(network, t, part)]
        if handed != list(network.operators[part[-1]].outputs):
            broken(
                "rings-stages",
                f"a stage of group {group.name} hands on other than what {stage.operators[-1]} makes",
            )
        stages.append(tuple(access_in(maps, op, group.name) for op in part))
    last = network.operators[ids[-1]].outputs
    inside = set(ids)
    for op in ids:
        for t in network.operators[op].outputs:
            if t not in last and _leaves(network, t, inside):
                broken("rings-stages", f"group {group.name} gives away more than its last operator's output")
    return tuple(stages)


def _leaves(network: Network, tensor: int, inside: Collection[int]) -> bool:
    """Return whether a tensor made inside is read outside, is a network output, or is read by nothing."""
    readers = [op.id for op in network.operators if network.readers[tensor] >> op.id & 1]
    return not readers or bool(network.output_roots >> tensor & 1) or any(op not in inside for op in readers)


def _lies_by_pixels(network: Network, operator: int) -> bool:
    g = network.operators[operator].geometry
    if g is None or g.layout == "NHWC" or len(g.output) != 4 or len(g.input) != 4:
        return True
    return all(prod(shape[2:]) == 1 or shape[1] == 1 for shape in (g.input, g.output))


def _sizes(
    network: Network, group: Group, rings: Rings, maps: Mapping[int, Map], pieces: Sequence[Access]
) -> None:
    width = maps[pieces[-1].writes[0]].columns
    if min(rings.strips, *(stage.rows for stage in rings.stages)) < 1 or rings.strips > width:
        broken("rings-sizes", f"group {group.name} has a band of no row, or not from 1 to {width} strips")
    if any(m.images != 1 for m in maps.values()):
        broken("group-unproved", f"group {group.name} runs in rings, and has several images")
    lines = sum(max(maps[t].plane) for piece in pieces for t in piece.writes)
    if lines * rings.strips > MOST_SWEEPS:
        broken("group-unproved", f"group {group.name} runs in absurdly many sweeps")
    if group.resident_weights or any(times != 1 for _, times in group.refills) or group.subgroups != 1:
        broken(
            "rings-stages", f"group {group.name} runs in rings, and not once, with its weights fetched once"
        )
    for piece in pieces:
        if any(network.operators[piece.id].inputs.count(t) > 1 for t in piece.reads):
            broken("group-unproved", f"{piece.name} reads a tensor twice")


def _fetched_columns(
    network: Network,
    group: Group,
    rings: Rings,
    pieces: Sequence[Sequence[Access]],
    streamed: Collection[int],
) -> None:
    for t in streamed:
        if network.output_roots >> t & 1 or any(t in piece.writes for stage in pieces for piece in stage):
            broken("streaming-unproved", f"group {group.name} runs in rings, and streams what it makes")
        later = any(t in piece.reads for stage in pieces[1:] for piece in stage)
        if rings.fetched == "columns" and later:
            name = network.tensors[t].name
            broken("rings-fetched", f"group {group.name} fetches columns of {name} for a later stage")


def _mirrored(piece: Access) -> Access:
    """Return the same relation with rows and columns counted from the other end."""
    operands = (replace(o, rows=o.rows.mirrored(), columns=o.columns.mirrored()) for o in piece.operands)
    return replace(piece, operands=tuple(operands))


# -- the run ---------------------------------------------------------------------------------------------


def _accumulates(network: Network, stage: Sequence[Access], maps: Mapping[int, Map]) -> bool:
    """Return whether a stage ends in a pool over a whole map, which adds up the map's pixels as they come."""
    piece = stage[-1]
    if piece.form != "channelwise" or maps[piece.writes[0]].plane != (1, 1):
        return False
    g = network.operators[piece.id].geometry
    assert g is not None
    (operand,) = piece.operands
    whole = [(window.before, window.span) == (0, window.size) for window in (operand.rows, operand.columns)]
    return g.kind == "pool" and all(whole) and set(g.dilation) <= {1}


def _run(
    network: Network,
    rings: Rings,
    pieces: tuple[tuple[Access, ...], ...],
    maps: Mapping[int, Map],
    streamed: Collection[int],
    alignment: int,
) -> RingRun:
    flat = [piece for stage in pieces for piece in stage]
    last = flat[-1].writes[0]
    height = {t: m.rows for t, m in maps.items()}
    width = {t: m.columns for t, m in maps.items()}
    accumulates = tuple(_accumulates(network, stage, maps) for stage in pieces)
    by_columns = frozenset(streamed) if rings.fetched == "columns" else frozenset[int]()

    # Rows.
    bands: list[list[tuple[Band, ...]]] = []
    kept: list[list[dict[int, Range]]] = []  # the lines that each sweep of a stage needs in column rings
    nodes = [Node(t, [(y, y + 1) for y in range(height[t])], {}) for t in streamed if t not in by_columns]
    fetchers = len(nodes)
    for stage, told, adds in zip(pieces, rings.stages, accumulates, strict=True):
        node, sweeps, inside = _row_node(stage, told.rows, adds, height, by_columns)
        nodes.append(node)
        bands.append(sweeps)
        kept.append(inside)
    order, ring = drive(nodes)
    fetches = [nodes[i].makes for i, _ in order if i < fetchers]
    order = [(i - fetchers, band) for i, band in order if i >= fetchers]

    # Columns.
    strips: list[tuple[Strip, ...]] = []
    most_rows, columns_at_once, widest = (dict.fromkeys(maps, 0) for _ in range(3))
    fetched_rows = dict.fromkeys(by_columns, 0)
    crossing = dict.fromkeys(streamed, 0)
    pixels: dict[int, int] = dict.fromkeys((piece.id for piece in flat), 0)
    swept = [[0] * len(stage) for stage in pieces]
    for s, band in order:
        for i, part in enumerate(bands[s][band]):
            swept[s][i] += part.rows[1] - part.rows[0]
        for t, (first, end) in kept[s][band].items():
            most_rows[t] = max(most_rows[t], end - first)
            if t in by_columns:
                fetched_rows[t] += end - first
    step = -(-width[last] // rings.strips)
    for left in range(0, width[last], step):
        across = pyramid(flat, last, (left, min(left + step, width[last])), rows=False)
        found = []
        for s, stage in enumerate(pieces):
            inner_columns = len(stage) > 1 or bool(by_columns & {t for piece in stage for t in piece.reads})
            body = _swept(stage, accumulates[s])
            strip, at_once, count = _strip(body, across, by_columns, by_column=inner_columns)
            found.append(strip)
            for t, n in at_once.items():
                columns_at_once[t] = max(columns_at_once[t], n)
            for i, piece in enumerate(stage):
                pooled = i == len(body)  # one pixel
                pixels[piece.id] += swept[s][i] * (1 if pooled else count.get(piece.writes[0], 0))
            for t in by_columns:
                crossing[t] += fetched_rows[t] * count.get(t, 0) * maps[t].channels * maps[t].element
        strips.append(tuple(found))
        for t, (first, end) in across.items():
            widest[t] = max(widest[t], end - first)
        for t in fetches:
            first, end = across.get(t, (0, 0))
            crossing[t] += (end - first) * maps[t].channels * maps[t].element

    handed = [*(t for t in streamed if t not in by_columns), *(stage[-1].writes[0] for stage in pieces[:-1])]
    parts = [_part(network, maps, t, ring[t], widest[t], alignment) for t in handed]
    inner = [
        [
            _part(network, maps, t, most_rows[t], columns_at_once[t], alignment)
            for t in _in_column_rings(_swept(stage, adds), by_columns)
        ]
        for stage, adds in zip(pieces, accumulates, strict=True)
    ]
    work = max(network.operators[piece.id].workspace for piece in flat)
    sums = sum(
        ACCUMULATOR * maps[stage[-1].writes[0]].channels
        for stage, adds in zip(pieces, accumulates, strict=True)
        if adds
    )
    return RingRun(
        maps,
        pieces,
        tuple(map(tuple, bands)),
        tuple(order),
        tuple(strips),
        accumulates,
        rings.traversal == "reverse",
        tuple(parts),
        tuple(map(tuple, inner)),
        up(sums, alignment),
        up(work, alignment),
        crossing,
        sum(_work(network, maps, piece, pixels[piece.id]) for piece in flat),
    )


def _swept(stage: Sequence[Access], adds: bool) -> Sequence[Access]:
    """Return the operators of a stage that sweep its bands: all but a pool that takes pixels as they come."""
    return stage[:-1] if adds and len(stage) > 1 else stage


def _in_column_rings(stage: Sequence[Access], by_columns: Collection[int]) -> list[int]:
    read = dict.fromkeys(t for piece in stage for t in piece.reads)
    inner = {piece.writes[0] for piece in stage[:-1]} | set(by_columns)
    return [t for t in read if t in inner]


def _row_node(
    stage: Sequence[Access],
    rows: int,
    adds: bool,
    height: Mapping[int, int],
    by_columns: Collection[int],
) -> tuple[Node, list[tuple[Band, ...]], list[dict[int, Range]]]:
    """Return a stage along the rows, its operators' bands in each sweep, and the lines in column rings."""
    y = stage[-1].writes[0]
    body = _swept(stage, adds)
    last = body[-1].writes[0]
    if adds and len(stage) == 1:
        (x,) = stage[0].reads
        size = height[x]
        lines = [(0, 0)] * (size - 1) + [(0, 1)]
        sweeps = [{x: (row, row + 1)} for row in range(size)]
        parts: list[tuple[Band, ...]] = [(Band(stage[0], made),) for made in lines]
    else:
        lines = [(first, min(first + rows, height[last])) for first in range(0, height[last], rows)]
        sweeps = [pyramid(body, last, band, rows=True) for band in lines]
        if adds:
            lines = [(0, 0)] * (len(lines) - 1) + [(0, 1)]
        parts = [
            (
                *(Band(piece, need.get(piece.writes[0], (0, 0))) for piece in body),
                *(Band(piece, made) for piece in stage[len(body) :]),
            )
            for need, made in zip(sweeps, lines, strict=True)
        ]
    inside = {t for piece in stage for t in piece.writes} | set(by_columns)
    outer = dict.fromkeys(t for piece in stage for t in piece.reads if t not in inside)
    needs = {t: [need.get(t, (0, 0)) for need in sweeps] for t in outer}
    inner = [{t: need[t] for t in need if t in inside and t not in (y, last)} for need in sweeps]
    return Node(y, lines, needs), parts, inner


def _strip(
    stage: Sequence[Access],
    across: Mapping[int, Range],
    by_columns: Collection[int],
    *,
    by_column: bool,
) -> tuple[Strip, dict[int, int], dict[int, int]]:
    """Return a stage in a strip, the most columns at once in each ring, and the columns made of each."""
    y = stage[-1].writes[0]
    mine = pyramid(stage, y, across.get(y, (0, 0)), rows=False)
    if not by_column:
        first, end = mine[y]
        return Strip(mine), {}, {y: end - first}
    read = {t for piece in stage for t in piece.reads}
    nodes = [Node(t, _single(mine.get(t, (0, 0))), {}) for t in by_columns if t in read]
    fetchers = len(nodes)
    for piece in stage:
        lines = _single(mine.get(piece.writes[0], (0, 0)))
        needs = {
            operand.tensor: [
                (operand.columns.start(first), operand.columns.end(end)) if first < end else (0, 0)
                for first, end in lines
            ]
            for operand in piece.operands
        }
        nodes.append(Node(piece.writes[0], lines, needs))
    order, most = drive(nodes)
    count = dict.fromkeys(most, 0)
    columns = []
    for i, band in order:
        count[nodes[i].makes] += 1
        if i >= fetchers:
            columns.append((i - fetchers, nodes[i].bands[band][0]))
    most.pop(y)
    return Strip(mine, tuple(columns)), most, count


def _single(lines: Range) -> list[Range]:
    return [(line, line + 1) for line in range(*lines)]


def _part(
    network: Network, maps: Mapping[int, Map], tensor: int, rows: int, columns: int, alignment: int
) -> Part:
    m = maps[tensor]
    size = up(rows * columns * m.channels * m.element, alignment)
    return Part(network.tensors[tensor].name, size, tensor, 1, m.channels, rows, columns)


def _work(network: Network, maps: Mapping[int, Map], piece: Access, pixels: int) -> int:
    """Return the multiply-accumulates for that many pixels of an operator's output, rounded up."""
    share = Fraction(network.operators[piece.id].work, prod(maps[piece.writes[0]].plane)) * pixels
    return -(-share.numerator // share.denominator)
