"""Random groups of operators over which windows slide, and a walk over every nest of small ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, permutations, product
from random import Random
from typing import Any

from onchip.check.nests import Nested, nested
from onchip.check.rules import Broken
from onchip.network import Constant, Network, OperatorSpec, Reach, Side
from onchip.network.axes import GroupAxes
from onchip.plans import Group, Leaf, Loop, Nest
from onchip.plans.nest import leaves
from oracles.nest_family import arranged, classes_of, nest_of

__all__ = ["judged", "least_scratch", "nests_of", "sliding_network"]


def sliding_network(random: Random, most: int, rows: int = 7) -> Network:
    """A network of 1 to `most` convolutions, depthwise ones, sums of two, products over one map each.

    Maps have channels, rows and sometimes columns. Windows have borders, strides and gaps; some repeat rows.
    """
    flat = random.random() < 0.8
    shapes: dict[str, tuple[int, ...]] = {
        "x": (random.choice((1, 2, 3)), random.randint(3, rows), *(() if flat else (random.randint(2, 4),)))
    }
    made: list[str] = []
    specs: list[OperatorSpec] = []
    for v in range(random.randint(1, most)):
        known = [*made[-2:], *(["x"] if not made or random.random() < 0.2 else [])]
        name = random.choice(known)
        channels, *maps = shapes[name]
        kind = random.choice(("conv", "conv", "depthwise", "depthwise", "map", "add"))
        reads = [name]
        out: list[int] = []
        sides: list[Side] = []
        for i, size in enumerate(maps):
            side, count = (
                _window(random, size, i + 1, name in made)
                if kind in ("conv", "depthwise")
                else (Side(size, i + 1), size)
            )
            sides.append(side)
            out.append(count)
        if kind == "conv":
            wide = random.choice((1, 2, 3))
            reach_out = (wide, *out)
            operands: tuple[tuple[Side, ...], ...] = ((Side(channels, len(reach_out)), *sides),)
            weights = (Constant(f"w{v}", wide * channels, (Side(wide, 0), Side(channels, len(reach_out)))),)
            reach = Reach(reach_out, operands, weights, (channels,))
        else:
            reach_out = (channels, *out)
            operands = ((Side(channels, 0), *sides),)
            others = [t for t in shapes if t != name and shapes[t] == shapes[name]]
            if kind == "add" and others:
                reads.append(random.choice(others))
                operands *= 2
            bias = (Constant(f"w{v}", channels, (Side(channels, 0),)),) if random.random() < 0.3 else ()
            reach = Reach(reach_out, operands, bias)
        shapes[f"t{v}"] = reach.output
        made.append(f"t{v}")
        specs.append(
            OperatorSpec(f"o{v}", "Any", reads, [f"t{v}"], sum(c.bytes for c in reach.weights), reach=reach)
        )
    read = {t for spec in specs for t in spec.inputs}
    outputs = [t for t in made if t not in read or random.random() < 0.1]
    rows_of = [(t, _product(shape), "activation" if t in made else "input") for t, shape in shapes.items()]
    return Network.build("sliding", rows_of, specs, outputs)  # type: ignore[arg-type]


def _product(shape: tuple[int, ...]) -> int:
    found = 1
    for n in shape:
        found *= n
    return found


def _window(random: Random, size: int, axis: int, repeated: bool) -> tuple[Side, int]:
    if repeated and random.random() < 0.1 and size <= 4:
        return Side(size, axis, per=2), 2 * size
    span, stride = random.choice(((1, 1), (2, 1), (3, 1), (3, 1), (3, 2), (2, 2), (1, 2)))
    span = min(span, size)
    before = random.randint(0, span - 1) if span < size else 0
    count = max(1, (size + 2 * before - span) // stride + 1)
    while (count - 1) * stride - before >= size:
        count -= 1
    return Side(size, axis, stride, before, span), count


def judged(
    network: Network,
    nest: Nest,
    streamed: frozenset[int] | None,
    alignment: int = 1,
    accumulator: int | None = None,
) -> Nested:
    """Derive a nest of all operators by the checker. Raises `Broken`."""
    members = tuple(network.operators[v].name for v in network.order)
    group = Group("g", members, 0, tiling=nest)
    return nested(network, group, list(network.order), streamed, alignment, accumulator)


def nests_of(axes: GroupAxes, leaving: frozenset[int], whole: frozenset[int], spine: int) -> Iterator[Nest]:
    """Every nest with at most so many loops of a spine, every tile, home and ring; leaves without slices.

    `leaving` and `whole` are buffers. Many of them are not legal.
    """
    ops, buffers = axes.operators, axes.buffers
    uses = {
        i: [at for at, op in enumerate(ops) for u in op.uses if u.buffer == i] for i in range(len(buffers))
    }
    for loops in range(spine + 1):
        for chosen in permutations(classes_of(axes), loops):
            for depths in product(range(loops + 1), repeat=len(ops)):
                inside = [(at, c) for at in range(len(ops)) for c in chosen[: depths[at]]]
                skeleton = arranged(axes, chosen, depths)
                if max(depths) < loops or any(at not in c or ops[at].axes[c[at]] == 1 for at, c in inside):
                    continue
                if skeleton is None:
                    continue
                free = [
                    i for i, b in enumerate(buffers) if i not in whole and (b.maker is None or i in leaving)
                ]
                least = {i: min(depths[at] for at in uses[i]) for i in range(len(buffers)) if uses[i]}
                inner = [
                    i
                    for i, b in enumerate(buffers)
                    if b.maker is not None and len(uses[i]) > 1 and i not in whole
                ]
                homes = [range(0 if i in inner else -1, least[i] + 1) for i in free]
                sizes = [max(ops[at].axes[axis] for at, axis in c.items()) for c in chosen]
                for home in product(*homes):
                    at_home = dict(zip(free, home, strict=True))
                    keep = [tuple(buffers[i].name for i in free if at_home[i] == d) for d in range(loops + 1)]
                    lived = {i: at_home.get(i, least[i]) for i in {*free, *inner}}
                    may = [
                        [
                            buffers[i].name
                            for i in lived
                            if lived[i] == d and (i in inner or buffers[i].maker is None)
                        ]
                        for d in range(loops + 1)
                    ]
                    rings = product(
                        *([()] if d == 0 else list(_subsets(names)) for d, names in enumerate(may))
                    )
                    for ring in list(rings):
                        for tiles in product(*(range(1, n) for n in sizes)):
                            yield nest_of(axes, skeleton, chosen, tiles, keep, ring)


def _subsets(names: list[str]) -> Iterator[tuple[str, ...]]:
    for n in range(len(names) + 1):
        yield from combinations(names, n)


def least_scratch(network: Network, nest: Nest, streamed: frozenset[int]) -> tuple[int, int] | None:
    """The bytes that cross, and the scratch with every leaf's best slices; None if it is not legal."""
    try:
        law = judged(network, nest, streamed)
    except Broken:
        return None
    axes, need = law.layout.axes, 0
    order = [leaf.operator for _, leaf in leaves(nest.body)]
    for n, name in enumerate(order):
        cut = next(op for op in axes.operators if op.name == name)
        free = [a for a, size in enumerate(cut.axes) if size > 1 and a not in cut.together]
        needs = []
        for slices in permutations(free):
            sliced = judged(network, _with(nest, name, tuple((a, 1) for a in slices)), streamed)
            needs.append(sum(p.bytes for p in sliced.layout.places if p.first <= n <= p.last))
        need = max(need, min(needs))
    return sum(law.crossing.values()) + law.weights, need


def _with(item: Nest | Loop | Leaf, name: str, slices: tuple[tuple[int, int], ...]) -> Any:
    if isinstance(item, Leaf):
        return replace(item, slices=slices) if item.operator == name else item
    return replace(item, body=tuple(_with(inner, name, slices) for inner in item.body))
