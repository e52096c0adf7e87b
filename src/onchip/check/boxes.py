"""A single operator that runs in boxes of its output, in any number of dimensions: its scratch and its bytes.

The operator's reach gives, for a box of the output, the box of every operand and constant that it needs. The
boxes follow each other in the order of the tiling's loops; an operand's box is fetched whole when the index
along one of its axes has changed since its last fetch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from onchip.check.bands import MOST_STEPS
from onchip.check.parts import Part, up
from onchip.check.rules import broken
from onchip.network import Network, Operator, Reach, Side
from onchip.plans import Boxes, Group

__all__ = ["Boxed", "boxed"]


@dataclass(frozen=True, slots=True)
class Boxed:
    """A group in boxes: the parts of its scratch, and the bytes of operands and weights that cross."""

    parts: tuple[Part, ...]
    crossing: Mapping[int, int]
    weights: int

    @property
    def need(self) -> int:
        """Bytes of all parts."""
        return sum(part.bytes for part in self.parts)


def boxed(
    network: Network,
    group: Group,
    boxes: Boxes,
    ids: Sequence[int],
    streamed: Collection[int] | None,
    alignment: int,
    weights_resident: bool,
) -> Boxed:
    """Derive the scratch and the crossing bytes of a group in boxes.

    Raises `Broken` for several operators, a missing reach or one that does not match the operands, invalid
    sizes or orders, and operands that are not streamed.
    """
    op = network.operators[ids[0]]
    if len(ids) != 1 or group.resident_weights or group.refills:
        broken(
            "tiling-blocks",
            f"group {group.name} runs in boxes and is not one operator, or says how its weights are fetched",
        )
    reach = _stated(network, group, op, weights_resident)
    axes, outer = range(len(reach.extents)), len(reach.output)
    if len(boxes.sizes) != len(axes) or min(boxes.sizes) < 1 or sorted(boxes.order) != list(axes):
        broken(
            "tiling-sizes",
            f"group {group.name} has boxes of {' x '.join(map(str, boxes.sizes))} in the order"
            f" {' '.join(map(str, boxes.order))}, and its reach {len(axes)} axes",
        )
    counts = [-(-size // box) for size, box in zip(reach.extents, boxes.sizes, strict=True)]
    turning = [axis >= outer for axis in boxes.order if counts[axis] > 1]
    if turning != sorted(turning):
        broken("tiling-sizes", f"group {group.name} leaves a box before its sums are complete")
    if reach.carries and any(counts[axis] > 1 for axis in axes[outer:]):
        broken(
            "tiling-sizes", f"group {group.name} has boxes along a sum that would carry a state between them"
        )
    if max(counts) > MOST_STEPS:
        broken("group-unproved", f"group {group.name} runs in absurdly many boxes")
    if group.subgroups != prod(counts):
        broken(
            "tiling-subgroups",
            f"group {group.name} runs in {prod(counts):,} boxes, not {group.subgroups:,} subgroups",
        )
    [y] = op.outputs
    if streamed is not None and streamed != {network.root[t] for t in op.inputs} | {y}:
        broken("tiling-operands", f"group {group.name} runs in boxes and does not stream all its operands")
    parts, weights = [], 0
    crossing = {y: network.tensors[y].bytes}
    for t, sides in zip(op.inputs, reach.reads, strict=True):
        most, total = _needed(sides, reach, boxes, counts)
        element = network.tensors[t].bytes // prod(side.size for side in sides)
        root = network.root[t]
        crossing[root] = crossing.get(root, 0) + total * element
        parts.append(Part(network.tensors[t].name, up(most * element, alignment), root))
    held = prod(min(box, size) for box, size in zip(boxes.sizes, reach.output, strict=False))
    element = network.tensors[y].bytes // prod(reach.output)
    parts.append(Part(network.tensors[y].name, up(held * element, alignment), y))
    tile = 0
    for constant in reach.weights:
        most, total = _needed(constant.sides, reach, boxes, counts)
        element = constant.bytes // prod(side.size for side in constant.sides)
        tile, weights = tile + most * element, weights + total * element
    parts.append(Part(op.name, up(tile, alignment), kept=tile == op.weight_bytes))
    return Boxed(tuple(parts), crossing, weights)


def _stated(network: Network, group: Group, op: Operator, weights_resident: bool) -> Reach:
    """Return the operator's reach. Raises `Broken` unless it matches the operands and the weights."""

    def refuse(reason: str) -> None:
        broken("group-unproved", f"group {group.name} runs in boxes, and {op.name} {reason}")

    reach = op.reach
    if reach is None:
        refuse("states no reach")
    assert reach is not None
    if op.workspace > (op.weight_bytes if weights_resident else 0):
        refuse("has a workspace")
    if len(op.outputs) != 1 or len(reach.reads) != len(op.inputs):
        refuse("has other operands than its reach")
    for t in (*op.inputs, *op.outputs):
        if network.tensors[network.root[t]].patches is not None:
            refuse(f"has an operand in patches, {network.tensors[t].name}")
    shapes = [(t, prod(side.size for side in sides)) for t, sides in zip(op.inputs, reach.reads, strict=True)]
    for t, elements in (*shapes, (op.outputs[0], prod(reach.output))):
        if network.tensors[t].bytes % elements:
            refuse(f"does not have {network.tensors[t].name} in the sides of its reach")
    if any(constant.bytes % prod(side.size for side in constant.sides) for constant in reach.weights):
        refuse("has weights that are not in the sides of its reach")
    if sum(constant.bytes for constant in reach.weights) != op.weight_bytes:
        refuse("has other weights than its reach")
    return reach


def _needed(sides: Sequence[Side], reach: Reach, boxes: Boxes, counts: Sequence[int]) -> tuple[int, int]:
    """Return the most elements of an operand that a box needs, and the elements fetched over all boxes."""
    most = total = 1
    along = {side.axis for side in sides if side.axis >= 0 and counts[side.axis] > 1}
    for side in sides:
        spans = [_span(side, 0, 1)]
        if side.axis >= 0:
            size, box = reach.extents[side.axis], boxes.sizes[side.axis]
            spans = [_span(side, first, min(first + box, size)) for first in range(0, size, box)]
        most *= max(spans)
        total *= sum(spans)
    # Every other loop outside the operand's innermost own loop fetches everything again.
    innermost = max((boxes.order.index(axis) for axis in along), default=-1)
    again = prod(counts[axis] for axis in boxes.order[: innermost + 1] if axis not in along)
    return most, total * again


def _span(side: Side, first: int, end: int) -> int:
    """Return the number of a side's elements that the output's indices [first, end) need."""
    low = (first * side.stride - side.before) // side.per
    high = ((end - 1) * side.stride - side.before) // side.per + side.span
    return max(0, min(high, side.size) - max(low, 0))
