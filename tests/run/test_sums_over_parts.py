"""Products over a part of a tensor, or over every other of its features, in slices of their sums."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from onchip.plans import Leaf, Loop, Nest
from onchip.readers import load
from run.nested import Alone, model

PART = """g (float[4,12] x) => (float[4,5] z) {
    starts = Constant<value_ints = [FIRST]>() ends = Constant<value_ints = [LAST]>()
    axes = Constant<value_ints = [1]>() steps = Constant<value_ints = [STEP]>()
    y = Slice(x, starts, ends, axes, steps) p = MatMul(y, A) z = Add(p, b) }"""


def alone(folder: Path, first: int, last: int, step: int) -> Alone:
    text = PART.replace("FIRST", str(first)).replace("LAST", str(last)).replace("STEP", str(step))
    size = len(range(first, last, step))
    return Alone(model(text, folder, A=(size, 5), b=(5,)))


@pytest.mark.parametrize(
    ("first", "last", "step"), [(0, 5, 1), (3, 9, 1), (7, 12, 1), (1, 12, 2), (0, 12, 3)]
)
def test_a_sum_over_a_part_is_added_up_slice_by_slice(
    tmp_path: Path, first: int, last: int, step: int
) -> None:
    """Three features of the part in a turn, and one at a time in the leaf; all of it with nodes on boxes."""
    net = alone(tmp_path, first, last, step)
    [cut] = net.axes().operators
    [summed] = cut.sums
    net.lawful(Nest((Leaf(cut.name, ((summed, 1),)),)))
    net.lawful(Nest((Loop(((cut.name, summed),), 3, (Leaf(cut.name, ((1, 2), (0, 1))),)),)))
    assert net.comparison is not None
    assert net.comparison.comparisons > 0


HEADS = """g (float[1,4,1,3] w) => (float[1,1,5] z) {
    x = MaxPool<kernel_shape = [1,1]>(w)
    word = MatMul(C, D) t = Transpose<perm = [0,2,1,3]>(x) rows = Constant<value_ints = [1,1,12]>()
    y = Reshape(t, rows) p = MatMul(y, A) z = Add(p, word) }"""


@pytest.mark.parametrize("tile", [1, 5])
def test_a_product_of_constants_is_no_part_of_the_sum(tmp_path: Path, tile: int) -> None:
    """What is added to the sum is itself a product, of weights alone; turns of 5 end inside a head."""
    net = Alone(model(HEADS, tmp_path, A=(12, 5), C=(1, 1, 2), D=(2, 5)))
    [cut] = net.axes("p").operators
    [summed] = cut.sums
    net.lawful(Nest((Leaf(cut.name, ((summed, tile), (1, 2))),)), "p")
    assert net.comparison is not None
    assert net.comparison.comparisons > 0


FUSED = """<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
g (float[1,12,2,2] x) => (float[1,5] z) {
    p = GlobalAveragePool(x) y = Flatten(p)
    z = com.microsoft.FusedGemm<transB = 1, activation = "ACTIVATION", SETTINGS>(y, A, b) }"""


@pytest.mark.parametrize(
    ("function", "settings"),
    [("Relu", "beta = 0.5"), ("LeakyRelu", "activation_alpha = 0.2"), ("Tanh", "alpha = 2.0")],
)
def test_a_function_inside_a_product_comes_behind_its_sum(
    tmp_path: Path, function: str, settings: str
) -> None:
    text = FUSED.replace("ACTIVATION", function).replace("SETTINGS", settings)
    net = Alone(model(text, tmp_path, A=(5, 12), b=(5,)))
    [product] = [op.name for op in net.network.operators if "Gemm" in op.type]
    [cut] = net.axes(product).operators
    [summed] = cut.sums
    net.lawful(Nest((Leaf(product, ((summed, 5),)),)), product)
    assert net.comparison is not None
    assert net.comparison.comparisons > 0


SCALES = "<float s = {0.05}, float t = {0.02}, uint8 z = {128}, int8 n = {3}, float m = {0.5}>"
VENDOR = '<ir_version: 9, opset_import: ["" : 20, "com.microsoft" : 1]>\ng '
INTEGER_SUMS = {
    "product": ("(uint8[4,12] x) => (uint8[4,5] y)", "y = QLinearMatMul(x, s, z, w, t, n, m, z)"),
    "product with an addend": (
        "(uint8[4,12] x) => (uint8[4,5] y)",
        "y = com.microsoft.QGemm(x, s, z, w, t, n, b, m, z)",
    ),
    "product of integers": (
        "(uint8[4,12] x) => (float[4,5] y)",
        "i = MatMulInteger(x, w, z, n) y = Cast<to = 1>(i)",
    ),
    "narrow": (
        "(float[4,48] x) => (float[4,5] y)",
        "y = com.microsoft.MatMulNBits<K = 48, N = 5, bits = 4, block_size = 16>(x, q, f)",
    ),
    "narrow with zero points": (
        "(float[4,48] x) => (float[4,5] y)",
        "y = com.microsoft.MatMulNBits<K = 48, N = 5, bits = 4, block_size = 16>(x, q, f, p)",
    ),
}


@pytest.mark.parametrize("kind", INTEGER_SUMS)
@pytest.mark.parametrize("tile", [1, 2])
def test_a_product_of_narrow_numbers_is_added_up_slice_by_slice(tmp_path: Path, kind: str, tile: int) -> None:
    """Its sum is scaled and rounded when it is complete; that of narrow weights goes block by block."""
    sides, body = INTEGER_SUMS[kind]
    proto = onnx.parser.parse_model(f"{VENDOR}{sides} {SCALES} {{ {body} }}")
    random = np.random.default_rng(0)
    weights = {
        "w": random.integers(-90, 90, (12, 5)).astype(np.int8),
        "b": random.integers(-900, 900, 5).astype(np.int32),
        "q": random.integers(0, 256, (5, 3, 8)).astype(np.uint8),
        "f": random.random(15).astype(np.float32),
        "p": random.integers(0, 256, 10).astype(np.uint8),
    }
    used = {name for node in proto.graph.node for name in node.input}
    proto.graph.initializer.extend(
        onnx.numpy_helper.from_array(value, name) for name, value in weights.items() if name in used
    )
    (tmp_path / "net.onnx").write_bytes(proto.SerializeToString())
    net = Alone(load(tmp_path / "net.onnx"))
    [cut] = net.axes().operators
    [summed] = cut.sums
    net.lawful(Nest((Leaf(cut.name, ((summed, tile), (0, 2))),)))
    assert net.comparison is not None
    assert net.comparison.comparisons > 0


@pytest.mark.parametrize("reduction", ["Max", "Min", "Mean", "Sum", "L1", "L2", "SumSquare", "Prod"])
def test_a_reduction_of_all_elements_is_made_in_parts(tmp_path: Path, reduction: str) -> None:
    """Rows in turns of two, with what makes them; each of two sides is summed over."""
    reduced = f"r = Reduce{reduction}<keepdims = 0>(y)"
    text = f"g (float[5,6] x) => (float z) {{ y = MatMul(x, A) {reduced} z = Abs(r) }}"
    net = Alone(model(text, tmp_path, A=(6, 4)))
    axes = net.axes()
    making, reducing = axes.operators
    assert len(reducing.sums) == 2
    rows = (making.name, 0), (reducing.name, reducing.sums[0])
    net.lawful(Nest((Loop(rows, 2, (Leaf(making.name), Leaf(reducing.name, ((reducing.sums[1], 3),)))),)))
    assert net.comparison is not None
    assert net.comparison.comparisons > 0


@pytest.mark.parametrize("axes", ["", ", none"])
def test_a_reduction_along_no_axes_is_made_element_by_element(tmp_path: Path, axes: str) -> None:
    """Its axes are left out, or an empty list; nothing is summed."""
    reduced = f"ReduceMax<noop_with_empty_axes = 1>(y{axes})"
    text = f"g (float[5,6] x) => (float[5,6] z) {{ y = MatMul(x, A) z = {reduced} }}"
    proto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]>\n{text}')
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.eye(6, dtype=np.float32), "A"))
    if axes:
        proto.graph.initializer.append(onnx.numpy_helper.from_array(np.empty(0, np.int64), "none"))
    (tmp_path / "net.onnx").write_bytes(proto.SerializeToString())
    net = Alone(load(tmp_path / "net.onnx"))
    making, reducing = net.axes().operators
    assert not reducing.sums
    rows = (making.name, 0), (reducing.name, 0)
    net.lawful(Nest((Loop(rows, 2, (Leaf(making.name), Leaf(reducing.name))),)))
    assert net.comparison is not None
    assert net.comparison.comparisons > 0


def test_a_weight_of_which_another_one_is_computed(tmp_path: Path) -> None:
    """Its box is added to the product, and all of it makes each element of a softmax of constants."""
    text = """g (float[6,8] x) => (float[6,8] z) {
        m = Add(Q, b) r = Softmax<axis = 1>(m) p = Mul(x, f) y = Add(p, b) z = Add(y, r) }"""
    net = Alone(model(text, tmp_path, Q=(6, 8), b=(8,), f=(6, 1)))
    [cut] = net.axes().operators
    net.lawful(Nest((Loop(((cut.name, 1),), 3, (Leaf(cut.name, ((0, 2),)),)),)))
    assert net.comparison is not None
    assert net.comparison.comparisons > 0
