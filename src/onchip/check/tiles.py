"""A group that runs in bands of rows: its scratch, and the bytes that cross to and from DRAM.

docs/plan-program.md says how such a group runs. Everything is derived from the network's geometry, the
tiling that the plan states, and the operands that its run streams: the others are whole.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from onchip.check.bands import Bands, bands_of
from onchip.check.blocks import block_tiles
from onchip.check.channel_passes import Order, prove_passes
from onchip.check.parts import Part, up
from onchip.check.rules import broken
from onchip.network import Network
from onchip.network.access import Access, access_of
from onchip.network.maps import Map, Maps
from onchip.plans import Blocks, Boxes, Group, Nest, Rings, Rows, Tiling

__all__ = ["Banded", "Tiles", "access_in", "map_in", "tiles_of"]


@dataclass(frozen=True, slots=True)
class Banded:
    """The run of a group in bands: its operators, their maps, the rows of every band, and the order in it.

    A sub-group takes `together` of all images. Of the weights of operators `by_tiles` the scratch never holds
    all, but a tile at a time: those of `channels` output channels, for `channels` of the input channels that
    they sum over.
    """

    pieces: tuple[Access, ...]
    maps: Mapping[int, Map]
    bands: Bands
    order: Order
    together: int
    channels: int
    by_tiles: frozenset[int]


@dataclass(frozen=True, slots=True)
class Tiles:
    """A group in tiles: the parts of its scratch, its refills of weights that it does not keep, and the bytes
    of every operand that crosses (those that are not whole). `banded` is the run of one in bands."""

    parts: tuple[Part, ...]
    subgroups: int
    refills: int
    crossing: Mapping[int, int]
    banded: Banded | None = None

    @property
    def need(self) -> int:
        """Bytes of all parts."""
        return sum(part.bytes for part in self.parts)


def tiles_of(
    maps: Maps,
    group: Group,
    order: Sequence[int],
    escaping: Collection[int],
    *,
    whole: Collection[int],
    alignment: int,
    weights_resident: bool,
) -> Tiles:
    """Derive the tiles of a tiled group whose operators come in topological `order`.

    `whole` are the operands that its run does not stream: they have no part of the scratch. Raises `Broken`
    for anything unproved or impossible.
    """
    network, tiling = maps.network, group.tiling
    assert tiling is not None
    assert not isinstance(tiling, Boxes | Rings | Nest | Rows)
    for op in map(network.operators.__getitem__, order):
        if op.workspace > (op.weight_bytes if weights_resident else 0):
            broken("group-unproved", f"group {group.name} runs in tiles, and {op.name} has a workspace")
    pieces = [access_in(maps, op, group.name) for op in order]
    found = {t: map_in(maps, t) for piece in pieces for t in (*piece.reads, *piece.writes)}
    if isinstance(tiling, Blocks):
        return Tiles(*block_tiles(network, group, tiling, pieces, found, whole, alignment))
    return _banded(network, group, tiling, pieces, found, escaping, whole, alignment)


def access_in(maps: Maps, operator: int, group: str) -> Access:
    """Return the access relation of an operator. Raises `Broken` (`group-unproved`) if it is unknown."""
    found = access_of(maps, operator)
    if isinstance(found, str):
        broken("group-unproved", f"group {group} runs in tiles, and {found}")
    return found


def map_in(maps: Maps, tensor: int) -> Map:
    """Return the map of a tensor that an operator with an access relation reads or writes."""
    found = maps.of(tensor)
    assert found is not None  # `access_of` knows the maps of all operands
    return found


def _banded(
    network: Network,
    group: Group,
    tiling: Tiling,
    pieces: Sequence[Access],
    maps: Mapping[int, Map],
    escaping: Collection[int],
    whole: Collection[int],
    alignment: int,
) -> Tiles:
    images = next(iter(maps.values())).images  # of every map: `Maps.batch`
    if min(tiling.rows, tiling.channels, tiling.images) < 1 or tiling.images > images:
        broken(
            "tiling-sizes",
            f"group {group.name} has bands of {tiling.rows:,} rows, slices of {tiling.channels:,} channels "
            f"and {tiling.images:,} of {images:,} images at a time",
        )
    streamed = set()
    for name in tiling.streamed:
        t = network.tensor_id.get(name)
        if t is None or t not in maps:
            broken("tiling-streamed", f"group {group.name} neither reads nor writes {name}")
        if t in whole:
            broken("tiling-operands", f"the tiling of {group.name} streams {name}, and its run does not")
        streamed.add(t)
    order = prove_passes(network, pieces, streamed, group.name)
    rows = {t: m.rows for t, m in maps.items()}
    bands = bands_of(pieces, rows, escaping, streamed, tiling.rows, group.name)
    subgroups = -(-images // tiling.images) * bands.count
    if group.subgroups != subgroups:
        broken(
            "tiling-subgroups", f"group {group.name} runs in {subgroups:,} subgroups, not {group.subgroups:,}"
        )
    most, again = bands.needs()
    parts = []
    for t, m in maps.items():
        if t in whole:
            continue
        channels = min(m.channels, tiling.channels) if t in streamed else m.channels
        size = up(tiling.images * channels * most[t] * m.columns * m.element, alignment)
        parts.append(Part(network.tensors[t].name, size, t))
    parts += _weights(group, tiling, pieces, alignment)
    written = {t for piece in pieces for t in piece.writes}
    crossing = {
        t: network.tensors[t].bytes for t in maps if (t not in written or t in escaping) and t not in whole
    }
    for t in crossing.keys() - written:
        m = maps[t]
        crossing[t] += images * m.channels * again[t] * m.columns * m.element
    by_tiles = frozenset(
        piece.id
        for piece in pieces
        if piece.name not in group.resident_weights and _tile(piece, tiling) < piece.weights
    )
    banded = Banded(tuple(pieces), maps, bands, order, tiling.images, tiling.channels, by_tiles)
    return Tiles(tuple(parts), subgroups, subgroups, crossing, banded)


def _weights(group: Group, tiling: Tiling, pieces: Sequence[Access], alignment: int) -> list[Part]:
    """Return the weights in the scratch: the resident ones, and the largest tile of the refilled ones."""
    parts, tile = [], Part("", 0)
    for piece in pieces:
        if piece.name in group.resident_weights:
            parts.append(Part(piece.name, up(piece.weights, alignment), kept=True))
        else:
            size = up(_tile(piece, tiling), alignment)
            tile = max(tile, Part(piece.name, size), key=lambda part: part.bytes)
    return [*parts, tile]


def _tile(piece: Access, tiling: Tiling) -> int:
    """Return the bytes of weights that are present at a time, unless all are kept."""
    return piece.kernel.part(piece.weights, tiling.channels, tiling.channels)
