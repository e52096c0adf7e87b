"""The axes of a group: all uses of a tensor cut it alike, and their boxes are those of the reach."""

from __future__ import annotations

from itertools import product
from math import prod
from random import Random

import pytest

from nest_networks import network_of
from onchip.network import Constant, Network, OperatorSpec, Reach, Side
from onchip.network.axes import ALL, GroupAxes, axes_of


def network(operators: list[OperatorSpec], sizes: dict[str, int], outputs: list[str]) -> Network:
    made = {t for op in operators for t in op.outputs}
    tensors = [(t, n, "activation" if t in made else "input") for t, n in sizes.items()]
    return Network.build("net", tensors, operators, outputs)  # type: ignore[arg-type]


def product_of(name: str, x: str, y: str, rows: int, inner: int, columns: int) -> OperatorSpec:
    """A matrix product: [rows, inner] times [inner, columns]."""
    weight = Constant(f"{name}.w", inner * columns, (Side(inner, 2), Side(columns, 1)))
    reach = Reach((rows, columns), ((Side(rows, 0), Side(inner, 2)),), (weight,), (inner,))
    return OperatorSpec(name, "MatMul", [x], [y], inner * columns, reach=reach)


def axes(net: Network) -> GroupAxes:
    found = axes_of(net, net.order)
    assert not isinstance(found, str), found
    return found


def test_heads_cut_the_features_of_the_projection_that_makes_them() -> None:
    heads = Reach((3, 5, 4), ((Side(5, 1), Side(2, before=-1), Side(3, 0), Side(4, 2)),))
    net = network(
        [product_of("project", "x", "qk", 5, 7, 24), OperatorSpec("q", "Split", ["qk"], ["y"], reach=heads)],
        {"x": 35, "qk": 120, "y": 60},
        ["y"],
    )
    group = axes(net)
    project, q = group.operators
    assert (project.axes, project.outputs, list(project.sums)) == ((5, 2, 3, 4, 7), 4, [4])
    assert group.buffers[project.constants[0].buffer].sides == (7, 2, 3, 4)
    assert group.buffers[q.reads[0].buffer].sides == (5, 2, 3, 4)
    assert q.reads[0].axes == (1, ALL, 0, 2)


def test_a_slice_of_an_outer_tensor_is_the_part_that_is_read() -> None:
    third = Reach((5, 4), ((Side(5, 0), Side(3, before=-2), Side(4, 1)),))
    net = network([OperatorSpec("v", "Slice", ["x"], ["y"], reach=third)], {"x": 120, "y": 40}, ["y"])
    [read] = axes(net).operators[0].reads
    part = axes(net).buffers[read.buffer]
    assert (part.sides, part.first, part.whole, part.bytes) == ((5, 1, 4), (0, 2, 0), (5, 3, 4), 40)


def test_sides_that_cross_are_needed_whole_by_the_later_use() -> None:
    by_two = Reach((2, 3), ((Side(2, 0), Side(3, 1)),))
    by_three = Reach((3, 2), ((Side(3, 0), Side(2, 1)),))
    net = network(
        [
            OperatorSpec("a", "Relu", ["x"], ["y"], reach=by_two),
            OperatorSpec("b", "Relu", ["y"], ["z"], reach=by_three),
        ],
        {"x": 6, "y": 6, "z": 6},
        ["z"],
    )
    a, b = axes(net).operators
    assert (a.writes.axes, b.reads[0].axes) == ((0, 1), (ALL, ALL))


def test_rows_of_norms_and_softmax_are_not_cut() -> None:
    norm = Reach((4, 6), ((Side(4, 0), Side(6, span=6)),), (Constant("scale", 6, (Side(6, 1),)),))
    net = network(
        [OperatorSpec("n", "LayerNormalization", ["x"], ["y"], 6, reach=norm)], {"x": 24, "y": 24}, ["y"]
    )
    assert axes(net).operators[0].together == {1}
    repeated = Reach((4, 6), ((Side(4, 0),),))
    net = network([OperatorSpec("e", "Expand", ["x"], ["y"], reach=repeated)], {"x": 4, "y": 24}, ["y"])
    assert axes(net).operators[0].together == frozenset()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"workspace": 1}, "has a workspace"),
        ({"reach": None}, "states no reach"),
        ({"weight_bytes": 3}, "other weights"),
    ],
)
def test_what_has_no_axes_says_why(change: dict[str, object], said: str) -> None:
    fields = {"weight_bytes": 0, "workspace": 0, "reach": Reach((4,), ((Side(4, 0),),)), **change}
    net = network([OperatorSpec("r", "Relu", ["x"], ["y"], **fields)], {"x": 4, "y": 4}, ["y"])  # type: ignore[arg-type]
    found = axes_of(net, net.order)
    assert isinstance(found, str)
    assert found.startswith("r ")
    assert said in found


def test_refined_axes_reach_the_same_elements_in_random_chains() -> None:
    """Every element that the reach needs of an operand lies in the box that the refined axes give."""
    rng, cut = Random(3), 0
    for _ in range(200):
        net = chain(rng)
        group = axes(net)
        for step, op in zip(group.operators, (net.operators[v] for v in net.order), strict=True):
            assert op.reach is not None
            assert prod(step.axes) == prod(op.reach.extents)
            cut += len(step.axes) > len(op.reach.extents)
            for use, sides in zip(step.reads, op.reach.reads, strict=True):
                buffer = group.buffers[use.buffer]
                for place in rng.sample(range(prod(step.axes)), min(6, prod(step.axes))):
                    at = digits(place, step.axes)
                    box = [
                        range(n) if a == ALL else range(at[a], at[a] + 1)
                        for a, n in zip(use.axes, buffer.sides, strict=True)
                    ]
                    begun = [[f + i for i in some] for f, some in zip(buffer.first, box, strict=True)]
                    there = {flat(i, buffer.whole) for i in product(*begun)}
                    assert needed(sides, digits(place, op.reach.extents)) <= there
    assert cut > 50


def chain(rng: Random) -> Network:
    """A chain of operators that read 24 elements in other sides than they were made in."""
    shapes = [(24,), (2, 12), (12, 2), (4, 6), (2, 3, 4), (3, 8), (2, 2, 6)]
    operators, sizes = [], {"t0": 24}
    for i in range(rng.randint(1, 4)):
        shape = rng.choice(shapes)
        order = rng.sample(range(len(shape)), len(shape))
        sides = [Side(n, order[i]) if rng.random() < 0.8 else Side(n, span=n) for i, n in enumerate(shape)]
        made = [0] * len(shape)
        for n, axis in zip(shape, order, strict=True):
            made[axis] = n
        reach = Reach(tuple(made), (tuple(sides),))
        operators.append(OperatorSpec(f"o{i}", "Any", [f"t{i}"], [f"t{i + 1}"], reach=reach))
        sizes[f"t{i + 1}"] = 24
    return network(operators, sizes, [f"t{len(operators)}"])


def digits(place: int, sizes: tuple[int, ...]) -> list[int]:
    found = []
    for n in reversed(sizes):
        place, digit = divmod(place, n)
        found.append(digit)
    return found[::-1]


def flat(index: tuple[int, ...], sizes: tuple[int, ...]) -> int:
    place = 0
    for i, n in zip(index, sizes, strict=True):
        place = place * n + i
    return place


def needed(sides: tuple[Side, ...], at: list[int]) -> set[int]:
    """The elements that an index of the output needs, by the definition of a side."""
    ranges = []
    for side in sides:
        low = ((0 if side.axis < 0 else at[side.axis]) * side.stride - side.before) // side.per
        ranges.append(range(max(0, low), min(side.size, low + side.span)))
    return {flat(i, tuple(s.size for s in sides)) for i in product(*ranges)}


def test_a_norm_keeps_its_row_together_and_a_product_with_weights_does_not() -> None:
    """Both need a row of the operand whole; each feature of a product has weights of its own."""
    lines = {"n Norm: y(m,d) = x(m,*d) g(d)": [1], "p QGemm: y(m,f) = x(m,*d) A(*d,f) b(f)": []}
    for line, together in lines.items():
        net = network_of("m=4 d=8 f=6", [line], ("x",), ("y",)).network
        assert sorted(axes(net).operators[0].together) == together
