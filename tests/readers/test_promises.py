"""Kinds of geometry that promise nothing: whoever proves something does so without them."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np
import onnx
import pytest
from build import graph, save

import onchip
from onchip.check import certify, may_overwrite
from onchip.check.operator_walk import walk_of
from onchip.check.rules import Broken
from onchip.check.tiles import access_in
from onchip.machines.chip import Chip
from onchip.network import GATHERED, KINDS, Geometry, Network, OperatorSpec
from onchip.network.access import Access, access_of
from onchip.network.maps import Maps
from onchip.planners.placement.overwriting import overwritable
from onchip.plans import Alloc, Load, Run, Store, from_text, to_text
from onchip.report.graph.units import label_of, map_of

MAP = (2, 6, 8, 4)
SIZE = prod(MAP)
NOTHING = [*sorted(GATHERED + kind for kind in KINDS), "other", "opaque", ""]


def known(kind: str) -> Geometry:
    """A geometry of a kind that walks from a map, or a matrix, to one of its size."""
    shape = (prod(MAP[:-1]), MAP[-1]) if kind == "fully_connected" else MAP
    window = (1, 1) if kind in ("conv", "depthwise", "pool") else ()
    padding = (0, 0, 0, 0) if kind == "pad" else ()
    groups = MAP[1] if kind == "depthwise" else 1
    return Geometry(kind, shape, shape, window, window, padding, groups=groups)


def chain(first: Geometry) -> Network:
    """x through an operator of that geometry to y, and y through an element-wise one to z."""
    specs = [
        OperatorSpec("f", "F", ["x"], ["y"], geometry=first),
        OperatorSpec("g", "G", ["y"], ["z"], geometry=Geometry("elementwise", first.output, first.output)),
    ]
    return Network.build(
        "n", [("x", SIZE, "input"), ("y", SIZE, "activation"), ("z", SIZE, "activation")], specs, ["z"]
    )


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_what_a_kind_promises_is_lost_where_it_gathers(kind: str) -> None:
    """The same operator, once as it is and once reading something else: every proof ends."""
    sure = known(kind)
    unsure = replace(sure, kind=GATHERED + kind)
    assert sure.promises
    assert not unsure.promises
    assert sure.looks_like == unsure.looks_like == kind
    before, after = chain(sure), chain(unsure)
    assert isinstance(access_of(Maps(before), 0), Access)
    assert "f is of kind gathered" in str(access_of(Maps(after), 0))
    with pytest.raises(Broken, match="f is of kind gathered"):
        access_in(Maps(after), 0, "group")
    assert isinstance(walk_of(after, 0), str)
    assert not may_overwrite(after, 0, 1, 0)
    assert may_overwrite(after, 1, 2, 1)
    assert overwritable(after) == ((), (1,))
    assert (sure.macs > 0) == (kind in ("conv", "depthwise", "fully_connected"))
    assert unsure.macs == after.operators[0].work == 0


@pytest.mark.parametrize("kind", NOTHING)
def test_an_input_is_not_known_by_what_gathers_it(kind: str) -> None:
    """x has twelve channels of one byte; seen as six they would have elements of two."""
    gather = Geometry(kind, MAP, MAP, (1, 1), (1, 1))
    network = Network.build(
        "n",
        [("x", 2 * SIZE, "input"), ("y", SIZE, "activation"), ("z", SIZE, "activation")],
        [
            OperatorSpec("f", "F", ["x"], ["y"], geometry=gather),
            OperatorSpec("g", "G", ["y"], ["z"], geometry=Geometry("elementwise", MAP, MAP)),
        ],
        ["z"],
    )
    maps = Maps(network)
    assert maps.of(0) is None
    assert map_of(network, 0) is None
    # What it makes lies as its shape says, so that its reader is known.
    made = maps.of(1)
    assert made is not None
    assert (made.images, *made.shape, made.element) == (*MAP, 1)
    assert made == maps.of(2)
    assert map_of(network, 1) == MAP
    assert access_in(maps, 1, "group").form == "elementwise"


def test_images_are_counted_where_something_is_promised() -> None:
    """Heads of an attention are no images, however many there are of them."""
    heads = (32, 8, 10, 64)
    specs = [OperatorSpec(f"a{i}", "A", [f"t{i}"], [f"t{i + 1}"], geometry=Geometry("other", heads, heads))
             for i in range(3)]  # fmt: skip
    specs.append(
        OperatorSpec("m", "M", ["t3"], ["t4"], geometry=Geometry("fully_connected", (320, 512), (320, 4)))
    )
    sizes = [prod(heads)] * 4 + [1280]
    network = Network.build(
        "n", [(f"t{i}", n, "activation" if i else "input") for i, n in enumerate(sizes)], specs, ["t4"]
    )
    assert Maps(network).batch is None
    found = Maps(network).of(4)
    assert found is not None
    assert (found.channels, found.rows, found.columns) == (4, 320, 1)


def test_a_gathered_window_is_drawn_as_the_window_that_it_is() -> None:
    spec = OperatorSpec(
        "f", "Conv+Relu", ["x"], ["y"], geometry=Geometry("gathered conv", MAP, MAP, (3, 3), (2, 2))
    )
    network = Network.build("n", [("x", SIZE, "input"), ("y", SIZE, "activation")], [spec], ["y"])
    assert label_of(network.operators[0]) == "conv 3\N{MULTIPLICATION SIGN}3 /2"


@pytest.mark.parametrize("kind", ["gathered conv", "gathered fully_connected", "other"])
def test_plans_keep_the_kind(kind: str) -> None:
    network = chain(Geometry(kind, MAP, MAP, (3, 1), (1, 2), groups=2))
    program = [
        Load("x", 0), Alloc("y", SIZE), Run("f"), Alloc("z", 2 * SIZE), Run("g"), Store("z"),
    ]  # fmt: skip
    plan = certify(network, Chip("c", 1), 3 * SIZE, program, status="optimal", lower_bound_bytes=0, seconds=0)
    assert from_text(to_text(plan)).network.operators[0].geometry == network.operators[0].geometry


def without_shapes(path: Path) -> Network:
    """A network of which only geometries are known: without shapes a reach says nothing of rows."""
    network = onchip.load(path).network
    return replace(network, tensors=tuple(replace(t, shape=()) for t in network.tensors))


def test_what_reads_across_stays_out_of_groups_that_still_run(tmp_path: Path) -> None:
    """A map whose channels are shuffled where they lie, between layers that can be fused."""
    text = """(float[1,8,16,16] x) => (float[1,8,7,7] y)
        <int64[5] g = {1,2,4,16,16}, int64[4] s = {1,8,16,16}> {
        a = Conv<pads=[1,1,1,1]>(x, w)  b = Relu(a)  c = Conv<pads=[1,1,1,1]>(b, w)
        r = Reshape(c, g)  t = Transpose<perm=[0,2,1,3,4]>(r)  q = Reshape(t, s)
        d = Conv<pads=[1,1,1,1]>(q, w)  e = Conv<pads=[1,1,1,1]>(d, w)
        y = MaxPool<kernel_shape=[3,3], strides=[2,2]>(e) }"""
    model = graph(text)
    w = (np.random.default_rng(0).standard_normal((8, 8, 3, 3)) / 8).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(w, "w"))
    made = onchip.fuse(without_shapes(save(model, tmp_path)), "optimus", 20_000)
    assert made.plan is not None
    kinds = {op.name: op.geometry.kind for op in made.plan.network.operators if op.geometry is not None}
    assert kinds["d"] == "gathered conv"
    fused = [set(group.operators) for group in made.plan.groups if len(group.operators) > 1]
    assert fused
    assert not any("d" in group for group in fused)
    assert any("e" in group for group in fused)
    assert made.plan.run().max_difference < 1e-4


@pytest.mark.parametrize(
    ("text", "weights", "fused"),
    [
        (  # first read with rows and columns exchanged, then as it lies
            """(float[1,8,16,4] x) => (float[1,8,4,16] d, float[1,8,16,4] e) {
            t = Transpose<perm=[0,1,3,2]>(x)  d = Conv<pads=[1,1,1,1]>(t, w)
            c = Conv<pads=[1,1,1,1]>(x, w)  e = Conv<pads=[1,1,1,1]>(c, w) }""",
            (8, 8, 3, 3),
            {"c", "e"},
        ),
        (  # a matrix whose rows are no images, although it becomes four-dimensional
            """(float[64,32] x) => (float[1,8,8,32] s) <int64[4] g = {1,8,8,32}> {
            c = Gemm(x, w)  e = Gemm(c, w)  r = Reshape(e, g)  s = Softmax<axis=-1>(r) }""",
            (32, 32),
            {"c", "e"},
        ),
    ],
)
def test_groups_run_beside_what_reads_their_operands_otherwise(
    tmp_path: Path, text: str, weights: tuple[int, ...], fused: set[str]
) -> None:
    model = graph(text)
    w = (np.random.default_rng(0).standard_normal(weights) / 8).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(w, "w"))
    made = onchip.fuse(without_shapes(save(model, tmp_path)), "optimus", 20_000)
    assert made.plan is not None
    assert any(op.geometry is not None and not op.geometry.promises for op in made.plan.network.operators)
    assert fused in [set(group.operators) for group in made.plan.groups]
    assert made.plan.run().max_difference < 1e-4


SEEN = [  # the shape of an operand, and the one in which a product with a map of (1, 6, 6, 6) reads it
    ((1, 6), (1, 6, 1, 1)),
    ((1, 6), (1, 1, 6, 1)),
    ((1, 6), (1, 6)),
    ((6,), (6, 1, 1)),
    ((1, 1, 6), (1, 6, 1, 1)),
    ((1, 6, 1), (1, 6, 1)),
    ((6, 6), (6, 1, 6)),
    ((1, 6, 6), (1, 6, 6, 1)),
    ((1, 1, 6, 1), (1, 6, 1, 1)),
    ((1, 6, 1, 1), (1, 1, 6, 1)),
    ((1, 6, 1, 1, 1), (1, 6, 1, 1)),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("own", "seen"), SEEN)
def test_an_operand_repeats_along_the_axes_in_which_it_is_read(
    tmp_path: Path, own: tuple[int, ...], seen: tuple[int, ...]
) -> None:
    """Six numbers may stand for channels, rows or columns: plans in bands, boxes and nests are executed."""
    shape = ",".join(map(str, own))
    model = graph(
        f"""(float[1,6,6,6] x, float[{shape}] y) => (float[1,6,6,6] z)
        <int64[{len(seen)}] seen = {{{",".join(map(str, seen))}}}>
        {{ a = Sigmoid(y) b = Reshape(a, seen) c = Abs(x) d = Mul(c, b) z = Neg(d) }}"""
    )
    path = save(model, tmp_path)
    for budget in (16, 40, 130):
        plan = onchip.plan(path, budget=budget, dtype="int8", fuse=True)
        plan.check()
        plan.run()
