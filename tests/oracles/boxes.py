"""Boxes of an operator's output, turn by turn and element by element: what comes, and the most at once.

Written from docs/plan-program.md: no sum over an axis, no closed form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import prod
from random import Random

from onchip.network import Constant, Network, OperatorSpec, Reach, Side
from onchip.plans import Boxes

__all__ = ["Turned", "needed", "orders", "random_operator", "turned"]

Box = tuple[range, ...]


@dataclass(frozen=True)
class Turned:
    """Bytes: `crossing` by input in turn, `weights`, `scratch` without alignment part by part; `boxes`."""

    crossing: tuple[int, ...]
    weights: int
    parts: tuple[int, ...]
    boxes: int


def needed(side: Side, box: Box) -> range:
    """From the first to the last element of a side that some element of a box needs."""
    found = set[int]()
    for o in [0] if side.axis < 0 else box[side.axis]:
        first = (o * side.stride - side.before) // side.per
        found |= {i for i in range(first, first + side.span) if 0 <= i < side.size}
    # The ends of a box reach further than its elements where the map ends: what lies between is read too.
    return range(min(found), max(found) + 1) if found else range(0)


def turned(network: Network, boxes: Boxes) -> Turned:
    """Every turn of the loops of a network's one operator."""
    [op] = network.operators
    assert op.reach is not None
    output = op.reach.extents
    cuts = [
        [range(a, min(a + box, n)) for a in range(0, n, box)]
        for n, box in zip(output, boxes.sizes, strict=True)
    ]
    widths = [
        network.tensors[t].bytes // prod(s.size for s in sides)
        for t, sides in zip(op.inputs, op.reach.reads, strict=True)
    ]
    constants = [c.bytes // prod(s.size for s in c.sides) for c in op.reach.weights]
    operands = [*op.reach.reads, *(c.sides for c in op.reach.weights)]
    last: list[tuple[int, ...] | None] = [None] * len(operands)
    came, most = [0] * len(operands), [0] * len(operands)
    held = 0
    for turn in product(*(range(len(cuts[axis])) for axis in boxes.order)):
        at = dict(zip(boxes.order, turn, strict=True))
        box = tuple(cuts[axis][at[axis]] for axis in range(len(output)))
        held = max(held, prod(map(len, box[: len(op.reach.output)])))
        for i, sides in enumerate(operands):
            key = tuple(at[side.axis] for side in sides if side.axis >= 0)
            elements = prod(len(needed(side, box)) for side in sides)
            most[i] = max(most[i], elements)
            if key != last[i]:
                came[i] += elements
                last[i] = key
    reads = len(op.inputs)
    width = network.tensors[op.outputs[0]].bytes // prod(op.reach.output)
    parts = [most[i] * widths[i] for i in range(reads)] + [held * width]
    parts.append(sum(n * w for n, w in zip(most[reads:], constants, strict=True)))
    return Turned(
        tuple(n * w for n, w in zip(came, widths, strict=False)),
        sum(n * w for n, w in zip(came[reads:], constants, strict=True)),
        tuple(parts),
        prod(map(len, cuts)),
    )


def orders(reach: Reach) -> list[tuple[int, ...]]:
    """Orders of the loops in which a box is complete before it leaves."""
    outer = len(reach.output)
    found = permutations(range(len(reach.extents)))
    return [order for order in found if list(order) == sorted(order, key=lambda axis: axis >= outer)]


def random_side(random: Random, output: Sequence[int], axis: int) -> Side:
    """A side needed whole, in a part, index by index, under windows, or at a fraction of a step."""
    match random.randint(0, 5) if axis >= 0 else random.randint(0, 1):
        case 0:
            size = random.randint(1, 4)
            return Side(size, span=size)
        case 1:
            size = random.randint(2, 5)
            first = random.randint(0, size - 1)
            return Side(size, before=-first, span=random.randint(1, size - first))
        case 2 | 3:
            return Side(output[axis], axis)
        case 4:
            stride, span = random.randint(1, 3), random.randint(1, 3)
            before = random.randint(0, span - 1)
            size = max(1, (output[axis] - 1) * stride - before + span - random.randint(0, span - 1))
            return Side(size, axis, stride, before, span)
    per = random.randint(2, 3)
    size = max(1, output[axis] // per)
    return Side(size, axis, 1, random.randint(-1, 1), random.randint(1, 2), per)


def random_operator(random: Random) -> Network:
    """A network of one operator with a reach of few small axes."""
    output = tuple(random.randint(1, 5) for _ in range(random.randint(1, 3)))
    sums = tuple(random.randint(1, 5) for _ in range(random.choice((0, 0, 1))))
    extents = output + sums

    def sides() -> tuple[Side, ...]:
        axes = [axis for axis in range(len(extents)) if random.random() < 0.75]
        random.shuffle(axes)
        return tuple(
            random_side(random, extents, axis) for axis in [*axes, *[-1] * random.randint(0, 1)]
        ) or (Side(1),)

    reads = tuple(sides() for _ in range(random.randint(1, 3)))
    weights = tuple(
        Constant(f"w{i}", random.choice((1, 2, 4)) * prod(s.size for s in found), found)
        for i, found in enumerate(sides() for _ in range(random.randint(0, 2)))
    )
    names = [f"x{i}" for i in range(len(reads))]
    return Network.build(
        "boxes",
        [
            *(
                (n, random.choice((1, 2, 4)) * prod(s.size for s in r), "input")
                for n, r in zip(names, reads, strict=True)
            ),
            ("y", random.choice((1, 2, 4)) * prod(output), "activation"),
        ],
        [
            OperatorSpec(
                "f",
                "Any",
                names,
                ["y"],
                sum(c.bytes for c in weights),
                reach=Reach(output, reads, weights, sums),
            )
        ],
        ["y"],
    )
