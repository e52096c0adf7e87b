"""Layer groups of a network: the pieces that run whole on one unit, and the places where a unit may change.

HaX-CoNN (3.1) keeps together layers that are fused, that a change of units would reformat at extra cost, and
that a unit cannot run. Here a unit may change where exactly one tensor crosses: every group is entered and
left at one place, and the layers before a cut need nothing from behind it.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from onchip.base.errors import UsageError
from onchip.machines.soc import Unit
from onchip.multi_dnn.options import MOST_GROUPS
from onchip.network import Network, Operator, bits
from onchip.network.elementwise import ELEMENTWISE_TYPES

__all__ = ["MOST_GROUPS", "LayerGroup", "element_bytes", "layer_groups", "moved_bytes"]

_WIDTH = {"int8": 1, "uint8": 1, "int16": 2, "float16": 2, "bfloat16": 2, "int32": 4, "float32": 4}


@dataclass(frozen=True, slots=True)
class LayerGroup:
    """Consecutive operators of a network's order. Bytes are of the network's element type.

    `name` is the first and last position in the order. `weight_bytes` and `activation_bytes` are the bytes
    that its operators move when each reads its operands and writes its results once (`moved_bytes`).
    `handed_on` is the tensor that the next group takes over, `handed_bytes` its size; None and 0 for the last
    group. `types` are the words of its operators' types (`Conv+Relu` has two).
    """

    name: str
    operators: tuple[int, ...]
    macs: int
    weight_bytes: int
    activation_bytes: int
    handed_on: int | None
    handed_bytes: int
    types: frozenset[str]

    def runs_on(self, unit: Unit) -> bool:
        """Return whether the unit supports every operator of the group."""
        return self.types.isdisjoint(map(_word, unit.unsupported))


def layer_groups(
    network: Network, units: Sequence[Unit] = (), *, most: int = MOST_GROUPS
) -> tuple[LayerGroup, ...]:
    """Return the network's groups in the order in which they run, at most `most` of them.

    There is no cut inside a fusion (before an element-wise operator that alone reads the tensor, or
    before several that lead to one tensor again, as in x * sigmoid(x)), none before a pooling that makes the
    tensor smaller (handing over its result costs less), and none where more than one tensor would cross.
    While there are too many groups, two neighbours are merged: first those that the same of the `units`
    support, and among them the pair with the least work.
    Raises `UsageError` when `most` is not positive.
    """
    if most < 1:
        raise UsageError(f"{most} is no number of groups from 1 on", item="groups")
    order = network.order
    crossing = dict(_single_tensors(network))
    ends = [
        position
        for position, after in pairwise([*crossing, len(order)])
        if _may_change(network, crossing[position], order[position:after])
    ]
    pieces = [order[a:b] for a, b in zip([0, *ends], [*ends, len(order)], strict=True)]
    unsupported = [frozenset(map(_word, unit.unsupported)) for unit in units]
    supports = [tuple(types.isdisjoint(words) for words in unsupported)
                for types in (_types(network, piece) for piece in pieces)]  # fmt: skip
    merged = _merge(supports, _work(network, pieces), most)
    groups, start = [], 0
    for first, last in merged:
        inside = tuple(op for piece in pieces[first:last] for op in piece)
        groups.append(_group(network, start, inside, crossing.get(start + len(inside))))
        start += len(inside)
    return tuple(groups)


def moved_bytes(network: Network, operator: Operator) -> int:
    """Return the bytes that an operator reads and writes, without its weights, each operand once.

    A concat moves none: its operands are written to their place in the result.
    """
    geometry = operator.geometry
    if geometry is not None and geometry.looks_like == "concat" and "+" not in operator.type:
        return 0
    touched = network.reads[operator.id] | network.writes[operator.id]
    return sum(network.tensors[t].bytes for t in bits(touched))


def element_bytes(network: Network, otherwise: int) -> int:
    """Return the bytes of the element of the network's sizes; `otherwise` where it has none of one width."""
    return _WIDTH.get(network.element, otherwise)


def _single_tensors(network: Network) -> list[tuple[int, int]]:
    """Return (position, tensor) where exactly one tensor is live: written before the position, read after.

    The network's inputs do not count: they lie in the shared memory from the start.
    """
    at = {operator: position for position, operator in enumerate(network.order)}
    last = [max((at[op] for op in bits(readers)), default=-1) for readers in network.readers]
    dies: list[list[int]] = [[] for _ in network.order]
    for tensor, position in enumerate(last):
        if position >= 0 and not network.input_roots >> tensor & 1:
            dies[position].append(tensor)
    live: set[int] = set()
    found = []
    for position, operator in enumerate(network.order[:-1]):
        live.update(t for t in bits(network.writes[operator]) if last[t] > position)
        live.difference_update(dies[position])
        if len(live) == 1:
            found.append((position + 1, next(iter(live))))
    return found


def _may_change(network: Network, tensor: int, following: Sequence[int]) -> bool:
    """Return whether handing the tensor over breaks no fusion and costs no more than a little later.

    `following` are the operators up to the next place where only one tensor is live.
    """
    readers = [*bits(network.readers[tensor])]
    if len(readers) > 1:
        return not all(_elementwise(network.operators[op]) for op in following)
    reader = network.operators[readers[0]]
    geometry = reader.geometry
    if geometry is not None and geometry.looks_like == "pool":
        return (
            sum(network.tensors[t].bytes for t in bits(network.writes[reader.id]))
            >= network.tensors[tensor].bytes
        )
    return not _elementwise(reader)


def _elementwise(operator: Operator) -> bool:
    """Return whether it is computed element by element, so that it is fused with its operand's producer."""
    if operator.geometry is not None and operator.geometry.looks_like == "elementwise":
        return True
    return all(_word(word) in ELEMENTWISE_TYPES for word in operator.type.split("+"))


def _word(word: str) -> str:
    return word.lower().rstrip("_")


def _types(network: Network, operators: Sequence[int]) -> frozenset[str]:
    return frozenset(_word(word) for op in operators for word in network.operators[op].type.split("+"))


def _work(network: Network, pieces: Sequence[Sequence[int]]) -> list[float]:
    """Return each piece's share of all multiply-accumulates plus its share of all bytes."""
    macs = [sum(network.operators[op].work for op in piece) for piece in pieces]
    moved = [
        sum(moved_bytes(network, network.operators[op]) + network.operators[op].weight_bytes for op in piece)
        for piece in pieces
    ]
    all_macs, all_moved = sum(macs) or 1, sum(moved) or 1
    return [m / all_macs + b / all_moved for m, b in zip(macs, moved, strict=True)]


def _merge(supports: Sequence[object], work: Sequence[float], most: int) -> list[tuple[int, int]]:
    """Return pieces [first, last) of each group, after merging the cheapest neighbours down to `most`."""
    count = len(work)
    end = list(range(1, count + 1))
    before = list(range(-1, count - 1))
    load = list(work)
    support: list[set[object]] = [{s} for s in supports]
    version = [0] * count
    alive = [True] * count

    def entry(first: int) -> tuple[bool, float, int, int, int]:
        second = end[first]
        apart = len(support[first] | support[second]) > 1
        return apart, load[first] + load[second], first, version[first], version[second]

    queue = [entry(first) for first in range(count - 1)]
    heapq.heapify(queue)
    left = count
    while left > most:
        _, _, first, mine, theirs = heapq.heappop(queue)
        if not alive[first] or end[first] == count:
            continue
        second = end[first]
        if version[first] != mine or version[second] != theirs:
            continue
        alive[second] = False
        support[first] |= support[second]
        load[first] += load[second]
        end[first] = end[second]
        version[first] += 1
        left -= 1
        if end[first] < count:
            before[end[first]] = first
            heapq.heappush(queue, entry(first))
        if before[first] >= 0:
            heapq.heappush(queue, entry(before[first]))
    return [(first, end[first]) for first in range(count) if alive[first]]


def _group(network: Network, start: int, inside: tuple[int, ...], handed_on: int | None) -> LayerGroup:
    operators = [network.operators[op] for op in inside]
    moved = sum(moved_bytes(network, op) for op in operators)
    written = sum(network.tensors[t].bytes for op in operators for t in bits(network.writes[op.id]))
    return LayerGroup(
        f"{start}-{start + len(inside) - 1}",
        inside,
        sum(op.work for op in operators),
        sum(op.weight_bytes for op in operators),
        moved or written,
        handed_on,
        0 if handed_on is None else network.tensors[handed_on].bytes,
        _types(network, inside),
    )
