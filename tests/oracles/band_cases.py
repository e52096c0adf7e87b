"""Random groups that run in bands: chains of windows over rows and columns, with what else reads them."""

from __future__ import annotations

from math import prod
from random import Random

from onchip.network import Constant, Network, OperatorSpec, Reach, Side
from onchip.network.axes import GroupAxes
from onchip.plans import Loop, Nest
from oracles.nest_cases import Grower, window_over

__all__ = ["banded_nest", "banded_network"]


def banded_network(random: Random) -> Network:
    """Two to five operators over maps of rows, perhaps columns, perhaps channels that are summed over.

    Axis 0 of every operator are its rows, axis 1 its columns if there are any, then its channels.
    """
    flat, deep = random.random() < 0.6, random.choice((0, 0, 0, 2))
    sizes = (random.randint(4, 9),) if flat else (random.randint(3, 5), random.randint(2, 4))
    shapes = {"x": (*sizes, *((deep,) if deep else ()))}
    specs: list[OperatorSpec] = []
    for v in range(random.randint(2, 5 if flat else 3)):
        names = [random.choice([*shapes][-2:])]
        if random.random() < 0.45:
            names += [t for t in [random.choice([*shapes])] if t not in names]
        plain = random.random() < 0.25  # element-wise
        windows = [(Side(n, 0), n) if plain else _window(random, n) for n in shapes[names[0]][: len(sizes)]]
        rows = [size for _, size in windows]
        sums = (deep,) if deep and random.random() < 0.5 else ()
        output = (*rows, *((deep,) if deep else ()))
        reads = []
        for n, name in enumerate(names):
            sides = []
            for axis, size in enumerate(shapes[name][: len(sizes)]):
                exact = size == rows[axis] and (plain or random.random() < (0.7 if n else 0.3))
                side = windows[axis][0] if not n else window_over(random, size, rows[axis])
                sides.append(Side(size, axis) if exact else Side(size, axis, *side.numbers[2:]))
            if deep:
                sides.append(Side(deep, len(output) if sums else len(rows)))
            reads.append(tuple(sides))
        constants = ()
        if sums:
            constants = (Constant(f"w{v}", deep * deep, (Side(deep, len(rows)), Side(deep, len(output)))),)
        reach = Reach(output, tuple(reads), constants, sums)
        weights = sum(c.bytes for c in constants)
        made = f"t{v}"
        specs.append(
            OperatorSpec(f"op{v}", "Any", names, [made], weights, macs=prod(reach.extents), reach=reach)
        )
        shapes[made] = output
    read = {t for spec in specs for t in spec.inputs}
    outputs = [t for t in shapes if t != "x" and (t not in read or random.random() < 0.15)]
    rows_of = [(t, prod(shape), "input" if t == "x" else "activation") for t, shape in shapes.items()]
    used = [row for row in rows_of if row[0] != "x" or "x" in read]
    return Network.build("bands", used, specs, outputs)  # type: ignore[arg-type]


def _window(random: Random, size: int) -> tuple[Side, int]:
    """A window as convolutions, pools and resizes have them, and the size of what it makes."""
    stride, per, span = random.choice(
        ((1, 1, 3), (1, 1, 3), (1, 1, 2), (2, 1, 3), (2, 1, 2), (1, 2, 1), (1, 1, 5), (3, 1, 2))
    )
    before = random.choice((0, 1, span // 2, span // 2, span - 1, 4))
    made = ((size + before + random.choice((0, before)) - span) * per + per - 1) // stride + 1
    return Side(size, 0, stride, before, span, per), max(2, min(made, 9))


def banded_nest(random: Random, axes: GroupAxes, outside: dict[str, bool], axis: int = 0) -> Nest:
    """A loop over the rows (an axis) of some or all operators, and anything inside."""
    grower = Grower(random, axes, outside, tries=4)
    ops = list(range(len(axes.operators)))
    first = random.choice((0, 0, 0, random.randrange(len(ops))))
    outer = grower.keep(ops, frozenset()) if random.random() < 0.4 else ()
    over, cuts = dict.fromkeys(ops[first:], axis), dict.fromkeys(ops[first:], ((axis, 1),))
    keep = grower.keep(ops[first:], frozenset(outer))
    body = grower.body(ops[first:], cuts, random.choice((1, 3)), frozenset((*outer, *keep)))
    loop = Loop(
        tuple((axes.operators[at].name, axis) for at in over),
        random.choice((1, 1, 1, 2, 3)),
        body,
        keep,
        grower.ring(body, keep, over),
    )
    return Nest((*grower.body(ops[:first], {}, 1, frozenset(outer)), loop), outer)
