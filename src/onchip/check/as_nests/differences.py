"""The differences between a group in tiles and the same group in a nest, each with its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import prod

from onchip.check.as_nests.convert import AsNest
from onchip.check.parts import up
from onchip.check.units import Unit
from onchip.network import Network
from onchip.plans import Blocks, Boxes, Group, Tiling

__all__ = ["DIFFERENCES", "OF_BYTES", "differences"]

DIFFERENCES: dict[str, str] = {
    "plain": "no loops run as the tiling does: everything is there at once",
    "together": "what stays together is not cut, and all of it is there",
    "steps": "windows that go on by parts of an index take several at a time",
    "pieces": "pieces end where an axis does that another use cuts",
    "held": "channels that cannot pass slice by slice are all there",
    "at-once": "what the first band makes in full and later bands read in slices is there in full",
    "rows": "rows that nobody reads are made where no loop goes over bands",
    "shift": "a concat takes channels of an operand in other turns than its other readers",
    "apart": "uses that need other parts of a tensor from outside have buffers of their own",
    "constants": "weights of which nothing says the sides are there whole; each constant is rounded up",
    "sums": "sums that are not complete, or what they carry, take room",
    "addresses": "places in the scratch need more than what lives at once",
    "padding": "a side of one element is not cut: it comes for pieces that lie in padding, too",
    "slices": "constants that a loop does not cut come again in its turns",
    "lives": "buffers hold only what somebody still needs",
    "unread": "rows that no window reads do not cross",
    "once": "weights of what runs before the bands come once",
}
"""Each by its name; the last three take less."""

OF_BYTES = frozenset({
    "plain", "together", "steps", "pieces", "held", "shift", "apart", "padding", "slices", "unread", "once",
})  # fmt: skip
"""Those by which other bytes may cross; the rest are of the scratch alone."""


def differences(network: Network, group: Group, unit: Unit, made: AsNest, alignment: int) -> tuple[str, ...]:
    """Return the reasons, names of `DIFFERENCES`, why a group costs other bytes in its nest or other scratch.

    `unit` is the group as the checker derives it, in tiles. A difference without a reason is `unknown`.
    """
    found = {*made.otherwise, *_of_scratch(network, group, unit, made, alignment), *_of_bytes(unit, made)}
    if made.otherwise:
        found.discard("unknown")
    return tuple(name for name in (*DIFFERENCES, "unknown") if name in found)


def _of_scratch(network: Network, group: Group, unit: Unit, made: AsNest, alignment: int) -> Iterator[str]:
    layout = made.cost.layout
    axes, before = layout.axes, Counter[int]()
    for part in unit.parts:
        if part.tensor is not None:
            before[part.tensor] += part.bytes
    after, constants = Counter[int](), Counter[int]()
    for place in layout.places:
        buffer = axes.buffers[place.buffer]
        if buffer.tensor is None:
            constants[axes.operators[place.uses[0][0]].operator] += place.bytes
        else:
            after[buffer.tensor] += up(prod(place.sides) * buffer.element, alignment)
        if place.width > buffer.element:
            yield "sums"
    if layout.accumulators:
        yield "sums"
    yield from (_larger(group, unit, made, t) for t in after if after[t] > before[t])
    most = sum(part.bytes for part in unit.parts if part.tensor is None)
    names = {cut.name for cut in axes.operators}
    worst = sum(p.bytes for p in made.cost.parts if p.tensor is None and p.name in names)
    if worst > most or any(n > _tile(network, group, unit, op, alignment) for op, n in constants.items()):
        yield "constants"
    if layout.extent > layout.need:
        yield "addresses"
    there = sum(after.values()) + sum(constants.values())
    smaller = any(after[t] < before[t] for t in before) or max(constants.values(), default=0) < most
    if layout.need < there or smaller:
        yield "lives"


def _larger(group: Group, unit: Unit, made: AsNest, t: int) -> str:
    """Return the reason why a tensor's buffers are larger in the nest."""
    if t in made.held:
        return "held"
    if t in _apart(made):
        return "apart"
    if isinstance(group.tiling, Blocks | Boxes):
        return "padding"
    assert unit.banded is not None
    bands = unit.banded.bands
    if bands.at_once[bands.tensors.index(t)]:
        return "at-once" if bands.streamed[bands.tensors.index(t)] else "rows"
    return "shift" if t in _joined(unit) else "unknown"


def _joined(unit: Unit) -> set[int]:
    """Return the operands of concats, and what these are made of."""
    found = set[int]()
    for piece in reversed(() if unit.banded is None else unit.banded.pieces):
        if piece.form == "concat" or found.intersection(piece.writes):
            found.update(piece.reads)
    return found


def _apart(made: AsNest) -> set[int]:
    """Return the tensors from outside that have several buffers, or one that is filled in several places."""
    layout = made.cost.layout
    outer = Counter(b.tensor for b in layout.axes.buffers if b.maker is None)
    homes = Counter(layout.axes.buffers[place.buffer].tensor for place in layout.places)
    return {t for t in homes if t is not None and max(outer[t], homes[t]) > 1}


def _of_bytes(unit: Unit, made: AsNest) -> Iterator[str]:
    assert unit.crossing is not None
    apart = _apart(made)
    for t, size in made.cost.crossing.items():
        if size < unit.crossing[t]:
            yield "unread" if t not in made.held else "held"
        elif size > unit.crossing[t]:
            yield "apart" if t in apart else _more(unit, t)
    if made.cost.weights < unit.weights:
        yield "once"
    elif made.cost.weights > unit.weights:
        yield "slices"


def _more(unit: Unit, t: int) -> str:
    """Return the reason why more bytes of a tensor cross, which has one buffer."""
    if unit.banded is None or unit.banded.maps[t].rows == 1:
        return "padding"
    return "shift" if t in _joined(unit) else "unknown"


def _tile(network: Network, group: Group, unit: Unit, op: int, alignment: int) -> int:
    """Return the bytes of weights of an operator that the tiling has in its scratch at a time."""
    name, weights = network.operators[op].name, network.operators[op].weight_bytes
    if name in group.resident_weights:
        return up(weights, alignment)
    if unit.banded is None or not isinstance(group.tiling, Tiling):
        return sum(part.bytes for part in unit.parts if part.tensor is None)
    [piece] = [piece for piece in unit.banded.pieces if piece.id == op]
    channels = group.tiling.channels
    return up(piece.kernel.part(piece.weights, channels, channels), alignment)
