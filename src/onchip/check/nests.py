"""A group that runs as a nest of loops: what is legal, its scratch, and its bytes. docs/nests.md is the law.

Everything follows from the plan's loops and the axes of the operators: `nest_tree` walks the loops,
`nest_homes` finds where buffers live, `nest_windows` how far windows take a turn, `nest_sizes` what that
makes. Here bytes are added up, and every buffer gets its place in the scratch.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from math import prod

from onchip.check.nest_copies import give_ways, owned_bytes, prove_late, prove_spilled
from onchip.check.nest_homes import Home, UseAt, homes_of
from onchip.check.nest_places import offsets_of
from onchip.check.nest_reads import prove_replaced
from onchip.check.nest_sizes import Sizes
from onchip.check.nest_sums import Widths
from onchip.check.nest_tree import Path, paths_of
from onchip.check.nest_windows import Windows, windows_of
from onchip.check.parts import Part, up
from onchip.check.rules import Broken, broken
from onchip.network import Network, bits, mask
from onchip.network.axes import GroupAxes, axes_of
from onchip.plans import Group, Nest

__all__ = ["Layout", "Nested", "Place", "layout_of", "leaving_of", "nested"]

MOST_BYTES = 10**18
"""More bytes are a mistake, and do not fit a file's integers."""


@dataclass(frozen=True, slots=True)
class Place:
    """A buffer of a nest in the scratch.

    `home` says which item of every body leads to the body in which it lives; for a private use also which
    leaf it is. `deep` are the loops above, and the slices of that leaf. Along its sides it holds up to
    `sides` indices in a turn. It takes `bytes`, rounded up, at `offset` of the scratch, from the leaf `first`
    on up to `last`, counted in the order in which they run. `uses` are the uses that find it there,
    (operator's position in the group, number of `Cut.uses`): also those of operands in whose place it is
    written. Along the side `ring` it keeps what the next turn of the loop around its home needs again, and
    lives in all of that loop's body; it is None for all that is new in every turn. `crosses` are its bytes to
    and from DRAM in all turns together, 0 for what stays inside. An element takes `width` bytes there.
    What sums carry is `carried` beside them.
    """

    buffer: int
    home: tuple[int, ...]
    deep: int
    sides: tuple[int, ...]
    bytes: int
    offset: int
    first: int
    last: int
    uses: tuple[UseAt, ...]
    crosses: int
    width: int
    ring: int | None = None
    carried: bool = False
    copies: int = 1


@dataclass(frozen=True, slots=True)
class Layout:
    """The scratch of a nest: its places, the bytes at its worst moment, and those up to its last byte.

    `entries` says for every leaf, in the order in which they run, how often the nest, each loop around the
    leaf and each of its slices begins a turn: what has `deep` of them above it is begun `entries[leaf][deep]`
    times. `windows` are the loops along which windows slide, outer ones first; in them homes are known by
    their numbers in `places`. `macs` are the multiply-accumulates of the group, with what is made again.
    `accumulators` are places beside those of outputs: partial sums, or what these carry, lie there until they
    are complete. `paths` are the leaves in the order in which they run, each with all around it, and
    `homes` those of the places.
    """

    axes: GroupAxes
    places: tuple[Place, ...]
    need: int
    extent: int
    entries: tuple[tuple[int, ...], ...]
    windows: tuple[Windows, ...]
    macs: int
    accumulators: tuple[Place, ...] = ()
    paths: tuple[Path, ...] = field(default=(), repr=False)
    homes: tuple[Home, ...] = field(default=(), repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Nested:
    """A group in a nest: its scratch, what lives at the worst moment, and the bytes that cross."""

    layout: Layout
    parts: tuple[Part, ...]
    crossing: Mapping[int, int]
    weights: int

    @property
    def moved(self) -> int:
        """All bytes that cross: those of tensors and of weights."""
        return sum(self.crossing.values()) + self.weights


def layout_of(
    network: Network,
    group: Group,
    *,
    streamed: Collection[int] | None = None,
    alignment: int = 1,
    accumulator: int | None = None,
) -> Layout:
    """Return the places of all buffers of a group that runs as a nest, in bytes of its scratch.

    `streamed` are the ids of the tensors that its run streams, by default all operands; the others lie whole
    on chip. Sums that are not complete take `accumulator` bytes, None: those of an element. The group's
    `scratch_bytes` are not read. Raises `IllegalPlan` for a nest that is not legal.
    """
    try:
        ids = [network.operator_id[name] for name in group.operators]
        return nested(network, group, ids, streamed, alignment, accumulator).layout
    except Broken as problem:
        raise problem.illegal() from None


def nested(
    network: Network,
    group: Group,
    ids: Sequence[int],
    streamed: Collection[int] | None,
    alignment: int,
    accumulator: int | None = None,
) -> Nested:
    """Derive the scratch and the crossing bytes of a group in a nest. Raises `Broken` if it is not legal."""
    nest = group.tiling
    assert isinstance(nest, Nest)
    if group.subgroups != 1 or group.refills or group.resident_weights:
        broken(
            "nest-alone",
            f"group {group.name} runs as a nest, and states subgroups, refills or resident weights besides",
        )
    inside = set(ids)
    axes = axes_of(network, [v for v in network.order if v in inside])
    if isinstance(axes, str):
        broken("group-unproved", f"group {group.name} runs as a nest, and {axes}")
    leaving = leaving_of(network, inside)
    operands = leaving.union(b.tensor for b in axes.buffers if b.tensor is not None and b.maker is None)
    whole = frozenset() if streamed is None else operands.difference(streamed)
    paths = paths_of(group.name, nest, axes)
    homes = homes_of(group.name, nest, axes, paths, leaving, whole)
    give_ways(group.name, nest, axes, homes)
    windows = windows_of(group.name, axes, paths, homes, leaving)
    prove_replaced(group.name, axes, paths, homes, windows)
    sizes = Sizes(axes, homes, windows)
    prove_spilled(group.name, axes, homes, sizes)
    prove_late(group.name, axes, homes, leaving, sizes)
    widths = Widths(group.name, axes, paths, homes, sizes, accumulator)
    crossing = dict.fromkeys(sorted(operands - whole), 0)
    weights, crosses = 0, [0] * len(homes)
    for n, home in enumerate(homes):
        buffer = axes.buffers[home.buffer]
        moved, once = sizes.moved(n)
        if buffer.maker is None:
            crosses[n] = moved
        elif buffer.tensor in leaving:  # partial sums come back, but for the first ones
            crosses[n] = once + 2 * (moved - once) // buffer.element * widths.element[n]
        if buffer.tensor is None:
            weights += crosses[n]
        elif crosses[n]:
            crossing[buffer.tensor] += crosses[n]
    if max((weights, *crossing.values())) >= MOST_BYTES:
        broken("group-unproved", f"group {group.name} moves an absurd number of bytes")
    macs = sum(sizes.work(at, network.operators[cut.operator].work) for at, cut in enumerate(axes.operators))
    if macs >= MOST_BYTES:
        broken("group-unproved", f"group {group.name} makes an absurd number of indices again")
    places, need, worst = _laid_out(paths, homes, sizes, widths, crosses, alignment)
    extent = max((place.offset + place.bytes for place in places), default=0)
    begun = tuple(tuple(sizes.entries(path.turns[:n]) for n in range(len(path.turns) + 1)) for path in paths)
    beside = places[len(homes) :]
    layout = Layout(
        axes, places[: len(homes)], need, extent, begun, tuple(windows.values()), macs, beside, paths,
        tuple(homes),
    )  # fmt: skip
    parts = tuple(_part(axes, place, sums=place in beside) for place in worst)
    return Nested(layout, parts, crossing, weights)


def leaving_of(network: Network, inside: Collection[int]) -> frozenset[int]:
    """Return the tensors that the operators write and that leave the group: outputs, and what others read."""
    members, leaving = mask(inside), 0
    for v in inside:
        for t in bits(network.writes[v]):
            readers = network.readers[t]
            if not readers or readers & ~members:
                leaving |= 1 << t
        leaving |= network.writes[v] & network.output_roots
    return frozenset(bits(leaving))


def _laid_out(
    paths: Sequence[Path],
    homes: Sequence[Home],
    sizes: Sizes,
    widths: Widths,
    crosses: Sequence[int],
    alignment: int,
) -> tuple[tuple[Place, ...], int, list[Place]]:
    """Return the places of all homes and then of accumulators, the bytes at the worst moment, and the places
    that live then.
    """
    ordered = [path.items for path in paths]  # as they run, which is their lexical order
    order = {path.at: path.items for path in paths}
    made: list[Place] = []
    for n, home in enumerate(homes):
        deep, width, held = len(home.body), widths.element[n], sizes.held(n)
        items = [order[at][: deep + 1] for at, _ in (*home.uses, *home.guests)]
        least, most = (min(items), max(items)) if home.ring is None else (home.body, home.body)
        first, last = bisect_left(ordered, least), bisect_left(ordered, _behind(most)) - 1
        ring = None if home.ring is None else sizes.windows[home.ring].side[n]
        uses, size = (*home.uses, *home.guests), up(prod(held) * width, alignment)
        if home.copies > 1:
            new: int | None = None
            if home.ring is not None and ring is not None:
                rows = max(sizes.windows[home.ring].moved[n].lengths, default=0)
                new = prod(held) // max(held[ring], 1) * rows
            size = owned_bytes(home, held, new, width, alignment)
            first, last = 0, len(paths) - 1
        made.append(
            Place(
                home.buffer, home.body, len(home.above), held, size, 0, first, last, uses, crosses[n], width,
                ring, copies=home.copies,
            )
        )  # fmt: skip
    for some in widths.accumulators:
        first, last = bisect_left(ordered, some.items), bisect_left(ordered, _behind(some.items)) - 1
        use = (some.maker, len(sizes.axes.operators[some.maker].uses) - 1)
        body = some.items if len(some.items) == len(order[some.maker]) else some.items[:-1]
        width = widths.wide(some.buffer) * (some.values or 1)
        size = up(prod(some.sides) * width, alignment)
        made.append(
            Place(
                some.buffer, body, some.deep, some.sides, size, 0, first, last, (use,), 0, width,
                carried=some.values > 0,
            )
        )  # fmt: skip
    live = [0] * (len(paths) + 1)
    for place in made:
        live[place.first] += place.bytes
        live[place.last + 1] -= place.bytes
    need = list(accumulate(live[:-1]))
    offsets = offsets_of([(p.bytes, p.first, p.last) for p in made], len(paths), max(need))
    found = tuple(replace(place, offset=at) for place, at in zip(made, offsets, strict=True))
    moment = need.index(max(need))
    return found, max(need), [place for place in found if place.first <= moment <= place.last]


def _behind(items: tuple[int, ...]) -> tuple[int, ...]:
    """Return the least way to an item that is behind all in this one."""
    return (*items[:-1], items[-1] + 1)


def _part(axes: GroupAxes, place: Place, *, sums: bool) -> Part:
    buffer = axes.buffers[place.buffer]
    if sums:
        return Part(f"{'state' if place.carried else 'sums'} of {buffer.name}", place.bytes)
    if buffer.tensor is not None:
        return Part(buffer.name, place.bytes, buffer.tensor)
    return Part(axes.operators[place.uses[0][0]].name, place.bytes, kept=place.bytes >= buffer.bytes)
