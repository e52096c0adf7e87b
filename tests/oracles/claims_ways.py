"""Every way in which a group of operators can run that the plan program can say, priced by the checker.

Nothing here knows what a tiling costs: the checker derives scratch and crossing bytes from the network and
the tiling (docs/plan-program.md), and every tiling of small sizes is asked for: bands of all heights and
numbers of images, all sets of streamed tensors, of resident weights, of whole operands; blocks and boxes of
all sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import permutations, product

from onchip.check.bands import bands_of
from onchip.check.blocks import block_tiles
from onchip.check.boxes import boxed
from onchip.check.parts import Part, up
from onchip.check.rules import Broken
from onchip.check.streaming import crossing_bytes
from onchip.check.tiles import access_in, tiles_of
from onchip.check.units import units_of
from onchip.network import Network, bits, mask
from onchip.network.access import Access
from onchip.network.maps import Maps
from onchip.plans import Blocks, Boxes, Group, Tiling

__all__ = ["Space", "Way", "Ways", "convex_groups"]


@dataclass(frozen=True)
class Space:
    """What is looked at: T_c, and forms that a claim may leave out."""

    channels: int
    images: bool = False
    """Any number of images at a time in several bands too; else one, or several whole ones."""

    rows: int = 1
    """T_h: bands have as many base rows or more."""

    whole_in_blocks: bool = False
    """Blocks with a whole operand."""

    workspace_streams: bool = True
    """An operator with a workspace streams what its scratch holds."""


@dataclass(frozen=True)
class Way:
    """One way to run the operators `members`, with what it streams, its scratch and what it fetches.

    `streamed` are (tensor, bytes that cross); `group` is None for an operator that runs as it is.
    """

    members: int
    streamed: tuple[tuple[int, int], ...]
    scratch: int
    weights: int
    group: Group | None = None

    @property
    def cost(self) -> int:
        """Bytes that its run moves to and from DRAM."""
        return self.weights + sum(n for _, n in self.streamed)


def convex_groups(network: Network) -> Iterator[int]:
    """Every set of operators that no path leaves and enters again, connected or not."""
    for members in range(1, 1 << len(network.operators)):
        after = 0
        convex = True
        for v in network.order:
            before = network.predecessors[v]
            if members >> v & 1:
                convex = convex and not before & after
            elif before & (members | after):
                after |= 1 << v
        if convex:
            yield members


@dataclass
class Ways:
    """The ways of every group of a network; those that another beats in scratch and bytes are left out."""

    network: Network
    alignment: int
    space: Space
    known: dict[int, list[Way]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.maps = Maps(self.network)

    def of(self, members: int) -> list[Way]:
        """All ways of a group, for every choice of what is whole."""
        if members not in self.known:
            found = [*self._as_it_is(members), *self._bands(members)]
            if members.bit_count() == 1:
                found += [*self._blocks(members), *self._boxes(members)]
            self.known[members] = _least(found)
        return self.known[members]

    def operands(self, members: int) -> tuple[int, int]:
        """(read from outside, leaving) of a group."""
        read = written = 0
        for v in bits(members):
            read |= self.network.reads[v]
            written |= self.network.writes[v]
        inner = mask(
            t
            for t in bits(written & read & ~self.network.output_roots)
            if not self.network.readers[t] & ~members
        )
        return read & ~written, written & ~inner

    def names(self, members: int) -> tuple[str, ...]:
        return tuple(self.network.operators[v].name for v in self.network.order if members >> v & 1)

    def _as_it_is(self, members: int) -> Iterator[Way]:
        if members.bit_count() > 1:
            return
        v = members.bit_length() - 1
        op = self.network.operators[v]
        scratch = up(op.workspace, self.alignment)
        yield Way(members, (), scratch, op.weight_bytes)
        if not op.workspace or not self.space.workspace_streams:
            return
        unit = units_of(self.network, (), alignment=self.alignment, weights_resident=False)[op.name]
        operands = [*bits(self.network.reads[v] | self.network.writes[v])]
        for chosen in range(1, 1 << len(operands)):
            streamed = tuple(t for i, t in enumerate(operands) if chosen >> i & 1)
            try:
                crossing = crossing_bytes(self.network, unit, streamed)
            except Broken:
                continue
            yield Way(members, tuple((t, crossing[t]) for t in streamed), scratch, op.weight_bytes)

    # -- bands -------------------------------------------------------------------------------------------

    def _bands(self, members: int) -> Iterator[Way]:
        order = [v for v in self.network.order if members >> v & 1]
        try:
            pieces = [access_in(self.maps, v, "g") for v in order]
        except Broken:
            return
        tensors = {t for piece in pieces for t in (*piece.reads, *piece.writes)}
        found = {t: self.maps.of(t) for t in tensors}
        images = min(m.images for m in found.values() if m is not None)
        rows = {t: m.rows for t, m in found.items() if m is not None}
        thick = [t for t, m in found.items() if m is not None and m.channels > self.space.channels]
        reads, leaving = self.operands(members)
        for height in range(self.space.rows, max(self.space.rows, *rows.values()) + 1):
            try:
                bands = bands_of(pieces, rows, set(bits(leaving)), set(), height, "g").count
            except Broken:
                return
            for together in range(1, images + 1):
                if not self.space.images and together > 1 and bands > 1:
                    continue
                for chosen in range(1 << len(thick)):
                    streamed = tuple(t for i, t in enumerate(thick) if chosen >> i & 1)
                    tiling = Tiling(
                        height,
                        tuple(self.network.tensors[t].name for t in streamed),
                        self.space.channels,
                        together,
                    )
                    subgroups = -(-images // together) * bands
                    group = Group("g", self.names(members), 0, subgroups, (), (), tiling)
                    yield from self._banded(members, order, pieces, group, reads | leaving, mask(streamed))
            if bands == 1:
                return

    def _banded(
        self,
        members: int,
        order: Sequence[int],
        pieces: Sequence[Access],
        group: Group,
        operands: int,
        sliced: int,
    ) -> Iterator[Way]:
        """One tiling with every choice of whole operands and resident weights."""
        _, leaving = self.operands(members)
        try:
            tiles = tiles_of(
                self.maps, group, order, set(bits(leaving)), whole=frozenset(), alignment=self.alignment,
                weights_resident=False,
            )  # fmt: skip
        except Broken:
            return
        buffers = {part.tensor: part.bytes for part in tiles.parts if part.tensor is not None}
        free = list(bits(operands & ~sliced))
        for held, scratch, weights in _residencies(
            pieces, self.space.channels, self.alignment, tiles.refills
        ):
            refills = tuple((p.name, tiles.refills) for p in pieces if p.weights and p.name not in held)
            for chosen in range(1 << len(free)):
                whole = {t for i, t in enumerate(free) if chosen >> i & 1}
                need = scratch + sum(n for t, n in buffers.items() if t not in whole)
                streamed = tuple((t, n) for t, n in tiles.crossing.items() if t not in whole)
                made = Group(group.name, group.operators, need, group.subgroups, refills, held, group.tiling)
                yield Way(members, streamed, need, weights, made)

    # -- blocks and boxes -----------------------------------------------------------------------------------

    def _blocks(self, members: int) -> Iterator[Way]:
        op = self.network.operators[members.bit_length() - 1]
        if op.workspace:
            return
        try:
            piece = access_in(self.maps, op.id, "g")
        except Broken:
            return
        if not piece.windowed:
            return
        (x,), (y,) = piece.reads, piece.writes
        read, made = self.maps.of(x), self.maps.of(y)
        assert read is not None
        assert made is not None
        deepest = min(self.space.channels, read.channels)
        ranges = [range(1, n + 1) for n in (made.rows, made.columns, made.channels, deepest)]
        kept = (False, True) if piece.weights else (False,)
        for rows, columns, out, deep, keep in product(*ranges, kept):
            blocks = Blocks(rows, columns, out, deep, keep)
            tiles = made.images * -(-made.rows // rows) * -(-made.columns // columns)
            group = Group("g", (op.name,), 0, tiles, (), (), blocks)
            try:
                parts, _, refills, crossing = block_tiles(
                    self.network, group, blocks, [piece], {x: read, y: made}, frozenset(), self.alignment
                )
            except Broken:
                continue
            yield from self._with_whole(members, group, parts, crossing, refills, op.weight_bytes, (x, y))

    def _with_whole(
        self,
        members: int,
        group: Group,
        parts: Sequence[Part],
        crossing: dict[int, int],
        refills: int,
        weights: int,
        operands: tuple[int, ...],
    ) -> Iterator[Way]:
        for chosen in range(1 << len(operands) if self.space.whole_in_blocks else 1):
            whole = {t for i, t in enumerate(operands) if chosen >> i & 1}
            need = sum(part.bytes for part in parts if part.tensor not in whole)
            streamed = tuple((t, n) for t, n in crossing.items() if t not in whole)
            fetched = ((group.operators[0], refills),) if weights else ()
            made = Group(group.name, group.operators, need, group.subgroups, fetched, (), group.tiling)
            yield Way(members, streamed, need, refills * weights, made)

    def _boxes(self, members: int) -> Iterator[Way]:
        op = self.network.operators[members.bit_length() - 1]
        if op.reach is None or op.workspace:
            return
        extents = op.reach.extents
        for sizes in product(*(range(1, n + 1) for n in extents)):
            count = 1
            for n, size in zip(extents, sizes, strict=True):
                count *= -(-n // size)
            for order in permutations(range(len(extents))):
                group = Group("g", (op.name,), 0, count, (), (), Boxes(sizes, order))
                try:
                    boxes = boxed(self.network, group, group.tiling, (op.id,), None, self.alignment, False)  # type: ignore[arg-type]
                except Broken:
                    continue
                made = Group("g", (op.name,), boxes.need, count, (), (), group.tiling)
                yield Way(members, tuple(boxes.crossing.items()), boxes.need, boxes.weights, made)


def _residencies(
    pieces: Sequence[Access], channels: int, alignment: int, refills: int
) -> Iterator[tuple[tuple[str, ...], int, int]]:
    """(operators whose weights stay, bytes of weights in the scratch, bytes fetched) of every choice."""
    heavy = [piece for piece in pieces if piece.weights]
    for chosen in range(1 << len(heavy)):
        held = [p for i, p in enumerate(heavy) if chosen >> i & 1]
        rest = [p for i, p in enumerate(heavy) if not chosen >> i & 1]
        need = sum(up(p.weights, alignment) for p in held)
        need += max((up(p.kernel.part(p.weights, channels, channels), alignment) for p in rest), default=0)
        fetched = sum(p.weights for p in held) + refills * sum(p.weights for p in rest)
        yield tuple(p.name for p in held), need, fetched


def _least(ways: list[Way]) -> list[Way]:
    """Those that no other with the same streamed tensors beats in scratch and in bytes."""
    by: dict[int, list[Way]] = {}
    for way in sorted(ways, key=lambda w: (w.scratch, w.cost)):
        kept = by.setdefault(mask(t for t, _ in way.streamed), [])
        if not kept or way.cost < kept[-1].cost:
            kept.append(way)
    return [way for kept in by.values() for way in kept]
