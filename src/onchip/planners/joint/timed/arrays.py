"""The axes of every leaf on the sides of the array: those with which its products take the fewest cycles.

The cycles of all steps together are a product over the sides and the axes on none, as each axis is cut by
loops of its own: so every choice for a leaf is priced at once, whatever the loops do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod

from onchip.check.nest_tree import Path
from onchip.check.nests import Layout
from onchip.machines.tile_rates import TileRates
from onchip.network.axes import Cut
from onchip.plans import Leaf, Loop, Nest

__all__ = ["arrays_of", "choices", "laid", "outputs_of"]

Array = tuple[tuple[int, ...], ...]
Extents = Sequence[Mapping[int, int]]
"""By axis, how often a turn has so many indices."""


def choices(cut: Cut, tiles: TileRates) -> Iterator[Array]:
    """Yield all ways to lay an operator's axes on the sides of an array: nest-array says which are legal."""
    axes = [axis for axis, size in enumerate(cut.axes) if size > 1]
    follows = [
        {*use.axes, *(window.axis for window in use.slides if window is not None)}
        for use in (*cut.reads, *cut.constants)
    ]
    fits = [
        (None, *(n for n, side in enumerate(tiles.sides) if (axis in cut.sums) == (side.kind == "sum")))
        for axis in axes
    ]
    for chosen in product(*fits):
        sides = tuple(
            tuple(axis for axis, on in zip(axes, chosen, strict=True) if on == n)
            for n in range(len(tiles.sides))
        )
        out = [on for side, on in zip(tiles.sides, sides, strict=True) if side.kind == "out"]
        if tiles.own_operands or all(
            sum(any(axis in used for axis in on) for on in out) <= 1 for used in follows
        ):
            yield sides


def _cycles_of(cut: Cut, array: Array, extents: Extents, products: int, tiles: TileRates) -> int:
    """Return the cycles of all steps with so many products for every index: those of blocks, and of products.

    Steps that go on with a sum begin its blocks again.
    """
    blocks, sums = outputs_of(cut, array, extents, tiles), 1
    on = {axis for side in array for axis in side}
    for axis in range(cut.outputs, len(extents)):
        sums *= 1 if axis in on else sum(n * size for size, n in extents[axis].items())
    for side, own in zip(tiles.sides, array, strict=False):
        sums *= 1 if side.kind == "out" else _fills(own, extents, side.size)
    begun = prod(sum(of.values()) for of in extents[cut.outputs :])
    return blocks * (tiles.block_cycles * begun + products * sums)


def outputs_of(cut: Cut, array: Array, extents: Extents, tiles: TileRates) -> int:
    """Return the blocks of outputs of all steps that make them once: a block fills the sides for outputs."""
    on = {axis for side in array for axis in side}
    found = prod(
        sum(n * size for size, n in extents[axis].items()) for axis in range(cut.outputs) if axis not in on
    )
    for side, own in zip(tiles.sides, array, strict=False):
        found *= _fills(own, extents, side.size) if side.kind == "out" else 1
    return found


def _fills(axes: Sequence[int], extents: Extents, size: int) -> int:
    """Return how often all turns of axes fill a side."""
    found = 0
    for combined in product(*(extents[axis].items() for axis in axes)):
        found += prod(n for _, n in combined) * -(-prod(length for length, _ in combined) // size)
    return found


def arrays_of(layout: Layout, tiles: TileRates, products: Sequence[int]) -> dict[str, tuple[Array, int]]:
    """Return by operator the best sides for its axes, and the cycles of its blocks and products in all steps.

    `products` are those of an index of each operator of the group; without any it lies on no array.
    """
    found: dict[str, tuple[Array, int]] = {}
    for path in layout.paths:
        cut = layout.axes.operators[path.at]
        if not products[path.at]:
            found[cut.name] = (), 0
            continue
        extents = _extents(layout, path)
        ways = enumerate(choices(cut, tiles))
        best = min((_cycles_of(cut, way, extents, products[path.at], tiles), n, way) for n, way in ways)
        found[cut.name] = best[2], best[0]
    return found


def laid(nest: Nest, arrays: Mapping[str, tuple[Array, int]]) -> Nest:
    """Return the nest with these axes on the sides of the array."""

    def item(one: Loop | Leaf) -> Loop | Leaf:
        if isinstance(one, Leaf):
            array = arrays[one.operator][0]
            return replace(one, array=array if any(array) else ())
        return replace(one, body=tuple(map(item, one.body)))

    return replace(nest, body=tuple(map(item, nest.body)))


def _extents(layout: Layout, path: Path) -> Extents:
    """Return the indices of a leaf's turns along each axis, and how often they come."""
    cut = layout.axes.operators[path.at]
    windows = {w.where: w for w in layout.windows}
    found: list[Counter[int]] = [Counter({size: 1}) for size in cut.axes]
    for turn in path.turns:
        axis = turn.over[path.at]
        slid = windows.get(turn.where) if turn in path.loops else None
        if slid is not None:
            found[axis] = Counter(slid.made[path.at].lengths)
            continue
        cut_more: Counter[int] = Counter()
        for size, n in found[axis].items():
            full, rest = divmod(size, turn.tile)
            if full:
                cut_more[turn.tile] += n * full
            if rest:
                cut_more[rest] += n
        found[axis] = cut_more
    return found
