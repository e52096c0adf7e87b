"""onnxruntime's own operators: shapes, bytes, work and parts as onnxruntime computes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper
from stepwise import differing, random_inputs, whole

import onchip
from onchip.base.errors import Infeasible, InputError, ModelError
from onchip.readers import ReadOptions, load
from onchip.readers.plain import _PLAIN
from onchip.readers.traits import VENDOR, VENDOR_OPERATORS
from onchip.readers.vendor import has_rule
from onchip.run import run
from quantised_models import float_cnn, quantised

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(0)


def floats(*shape: int) -> Array:
    return (RANDOM.standard_normal(shape) / 3).astype(np.float32)


def bytes_(*shape: int) -> Array:
    return RANDOM.integers(0, 256, shape).astype(np.uint8)


def made(text: str, **constants: Array) -> onnx.ModelProto:
    header = f'<ir_version: 8, opset_import: ["" : 18, "{VENDOR}" : 1]>\n'
    model = onnx.parser.parse_model(header + "g " + text.replace("~", VENDOR + "."))
    model.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in constants.items())
    return model


GROUPED = "GroupQueryAttention<num_heads=4, kv_num_heads=2>"
S = "<float s = {0.05}, float t = {0.07}, uint8 z = {128}>"
NARROW = {"b": bytes_(16, 2, 8), "c": np.abs(floats(32)) + 0.1}
MODELS: dict[str, onnx.ModelProto] = {
    "add": made(f"(uint8[1,4,6,6] x, uint8[1,4,6,6] w) => (uint8[1,4,6,6] y) {S} "
                "{ y = ~QLinearAdd(x, s, z, w, t, z, s, z) }"),
    "mul": made(f"(uint8[2,6] x) => (uint8[2,6] y) {S} {{ y = ~QLinearMul(x, s, z, w, t, z, s, z) }}",
                w=bytes_(6)),
    "concat": made(f"(uint8[1,4,6,6] x) => (uint8[1,8,6,6] y) {S} {{ a = ~QLinearSigmoid(x, s, z, t, z) "
                   "y = ~QLinearConcat<axis=1>(s, z, x, s, z, a, t, z) }"),
    "pools": made(f"(uint8[1,4,6,6] x) => (uint8[1,4,1,1] y) {S} {{ "
                  "a = ~QLinearAveragePool<kernel_shape=[2,2], strides=[2,2]>(x, s, z, s, z) "
                  "y = ~QLinearGlobalAveragePool<channels_last=0>(a, s, z, s, z) }"),
    "leaky": made(f"(uint8[1,4,6,6] x) => (uint8[1,4,6,6] y) {S} "
                  "{ y = ~QLinearLeakyRelu<alpha=0.1>(x, s, z, t, z) }"),
    "softmax": made(f"(uint8[3,8] x) => (uint8[3,8] y) {S} "
                    "{ y = ~QLinearSoftmax<axis=-1, opset=13>(x, s, z, s, z) }"),
    "gemm": made(f"(uint8[3,8] x) => (uint8[3,6] y) {S} "
                 "{ y = ~QGemm<transB=1>(x, s, z, w, t, z, b, s, z) }",
                 w=bytes_(6, 8), b=np.arange(6, dtype=np.int32)),
    "dynamic": made("(float[3,8] x) => (float[3,6] y) { y = ~DynamicQuantizeMatMul(x, w, ws) }",
                    w=RANDOM.integers(-90, 90, (8, 6)).astype(np.int8), ws=np.full(1, 0.1, np.float32)),
    "lstm": made("(float[5,1,8] x) => (float[5,1,1,6] y) { y, h = ~DynamicQuantizeLSTM<hidden_size=6>("
                 "x, w, r, , , , , , ws, wz, rs, wz) }",
                 w=RANDOM.integers(-90, 90, (1, 8, 24)).astype(np.int8),
                 r=RANDOM.integers(-90, 90, (1, 6, 24)).astype(np.int8),
                 ws=np.full(1, 0.01, np.float32), rs=np.full(1, 0.02, np.float32), wz=np.zeros(1, np.int8)),
    "conv": made("(float[1,3,6,6] x, float[1,4,6,6] r) => (float[1,4,6,6] y) { "
                 '''y = ~FusedConv<kernel_shape=[3,3], pads=[1,1,1,1], activation="Relu">(x, w, b, r) }''',
                 w=floats(4, 3, 3, 3), b=floats(4)),
    "fused gemm": made('''(float[3,8] x) => (float[3,6] y) { y = ~FusedGemm<activation="Relu">(x, w, b) }''',
                       w=floats(8, 6), b=floats(6)),
    "matmul": made("(float[2,3,8] x, float[2,5,8] w) => (float[2,3,5] y) "
                   "{ y = ~FusedMatMul<transB=1, alpha=0.5>(x, w) }"),
    "turned matmul": made("(float[3,2,8] x, float[5,2,8] w) => (float[2,3,5] y) "
                          "{ y = ~FusedMatMul<transBatchA=1, transBatchB=1, transB=1>(x, w) }"),
    "gelus": made("(float[1,5,8] x) => (float[1,5,8] y) { a = ~BiasGelu(x, b) c = ~FastGelu(a, b) "
                  "d = ~FastGelu(c) e = ~Gelu(d) y = ~QuickGelu(e) }", b=floats(8)),
    "skip": made("(float[1,5,8] x, float[1,5,8] w) => (float[1,5,8] y, float[1,5,8] k) { "
                 "y, m, i, k = ~SkipLayerNormalization(x, w, g, b, c) }",
                 g=floats(8), b=floats(8), c=floats(8)),
    "skip alone": made("(float[1,5,8] x, float[1,5,8] w) => (float[1,5,8] y) { "
                       "y = ~SkipLayerNormalization(x, w, g, b, c) }", g=floats(8), b=floats(8), c=floats(8)),
    "simplified": made("(float[1,5,8] x, float[1,5,8] w) => (float[1,5,8] y) { "
                       "y = ~SkipSimplifiedLayerNormalization(x, w, g) }", g=floats(8)),
    "rms": made("(float[1,5,8] x) => (float[1,5,8] y) "
                "{ y = SimplifiedLayerNormalization<axis=-1, epsilon=0.001>(x, g) }", g=floats(8)),
    "rotary": made("(float[1,16,5,8] x) => (float[1,16,5,8] y) <int64[1,5] p = {3, 4, 5, 6, 7}> "
                   "{ y = ~RotaryEmbedding(x, p, c, s) }", c=floats(9, 4), s=floats(9, 4)),
    "rotary rows": made("(float[1,5,64] x) => (float[1,5,64] y) <int64[1,5] p = {3, 4, 5, 6, 7}> "
                        "{ y = ~RotaryEmbedding<num_heads=8, rotary_embedding_dim=8>(x, p, c, s) }",
                        c=floats(9, 4), s=floats(9, 4)),
    "narrow": made("(float[1,5,32] x) => (float[1,5,16] y) "
                   "{ y = ~MatMulNBits<K=32, N=16, bits=4, block_size=16>(x, b, c) }", **NARROW),
    "heads": made("(float[1,5,16] q, float[1,7,16] k, float[1,7,16] v) => (float[1,5,16] y) "
                  "{ y = ~MultiHeadAttention<num_heads=2>(q, k, v) }"),
    "biased heads": made(
        "(float[1,5,16] q, float[1,7,16] k, float[1,7,16] v, float[1,2,5,7] a) => (float[1,5,16] y) "
        "<int32[1] l = {6}> { y = ~MultiHeadAttention<num_heads=2>(q, k, v, b, l, a) }", b=floats(48)),
    "attention": made("(float[1,5,12] x) => (float[1,5,12] y) { y = ~Attention<num_heads=2>(x, w, b) }",
                      w=floats(12, 36), b=floats(36)),
    "grouped": made("(float[1,5,32] q, float[1,5,16] k, float[1,5,16] v) => (float[1,5,32] y) "
                    "<int32[1] l = {4}, int32 n = {5}> "
                    "{ y, pk, pv = ~" + GROUPED + "(q, k, v, , , l, n) }"),
}  # fmt: skip
REACHED = {
    "skip alone",
    "simplified",
    "rms",
    "rotary",
    "rotary rows",
    "narrow",
    "heads",
    "biased heads",
    "grouped",
    "matmul",
    "turned matmul",
    "conv",
}


def path_of(name: str, folder: Path) -> Path:
    path = folder / "net.onnx"
    path.write_bytes(MODELS[name].SerializeToString())
    return path


@pytest.mark.parametrize("name", MODELS)
def test_operators_one_by_one_give_the_whole(tmp_path: Path, name: str) -> None:
    """Shapes and types are those of onnxruntime, and so is every value."""
    source = load(path_of(name, tmp_path))
    assert differing(source) == []


@pytest.mark.parametrize("name", MODELS)
def test_parts_give_the_whole(tmp_path: Path, name: str) -> None:
    """Plans at a few budgets, from the least on, are executed in whatever parts they have."""
    path, parts = path_of(name, tmp_path), 0
    source = load(path)
    most = sum(t.bytes for t in source.network.tensors)
    for share in (6, 4, 3, 2, 1):
        try:
            plan = onchip.plan(path, fuse=True, budget=most // share)
        except Infeasible:
            continue
        try:
            run(plan, source)
        except InputError as reason:
            assert "cannot be run in blocks" in str(reason)  # noqa: PT017
        else:
            parts += any(group.tiling is not None for group in plan.groups)
    assert parts or name not in REACHED


def test_a_projection_inside_an_attention_is_cut_by_heads(tmp_path: Path) -> None:
    """A head needs its columns of the three weights, side by side, and all rows of the sequence."""
    [op] = load(path_of("attention", tmp_path)).network.operators
    assert op.reach is not None
    assert [(side.size, side.axis) for side in op.reach.reads[0]] == [(5, -1), (12, -1)]
    [w, b] = op.reach.weights
    assert [(side.size, side.axis) for side in w.sides] == [(12, -1), (3, -1), (2, 1), (6, -1)]
    assert [(side.size, side.axis) for side in b.sides] == [(3, -1), (2, 1), (6, -1)]


def test_a_network_of_quantised_operators(tmp_path: Path) -> None:
    """It has the walks of the float network, and its plans are executed in tiles."""
    path = quantised(float_cnn(), tmp_path, operators=True, per_channel=True)
    found = load(path)
    twin = load(tmp_path / "float.onnx", ReadOptions(dtype="int8"))
    walks = [op.geometry for op in found.network.operators]
    assert walks == [op.geometry for op in twin.network.operators]
    assert [op.macs for op in found.network.operators] == [op.macs for op in twin.network.operators]
    assert differing(found) == []
    for budget in (1500, 3000, 5000):
        plan = onchip.plan(path, fuse=True, budget=budget)
        assert any(group.tiling is not None for group in plan.groups)
        assert run(plan, found).bit_exact


def test_every_operator_that_is_read_has_a_rule() -> None:
    for domain, op in VENDOR_OPERATORS:
        assert (domain, op) in _PLAIN or has_rule(op), op
    assert {key for key in _PLAIN if key[0] == VENDOR} <= VENDOR_OPERATORS


@pytest.mark.parametrize(
    "name", ["attention", "concat", "gelus", "heads", "leaky", "narrow", "pools", "rms", "simplified", "skip"]
)
def test_images_stay_apart_at_a_batch(tmp_path: Path, name: str) -> None:
    """What two images together give is what each gives alone."""
    path = path_of(name, tmp_path)
    one, two = load(path), load(path, ReadOptions(batch=2))
    feeds = random_inputs(two, 7)
    together = whole(two, feeds)
    for i in range(2):
        alone = whole(one, {key: value[i : i + 1] for key, value in feeds.items()})
        for tensor in (t for t in one.network.tensors if t.id in one.network.outputs):
            found, expected = together[tensor.name][i], alone[tensor.name][0]
            np.testing.assert_allclose(found.astype(float), expected.astype(float), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["rotary", "grouped", "dynamic"])
def test_operands_with_a_row_for_each_image_are_not_read_at_a_batch(tmp_path: Path, name: str) -> None:
    """A constant position or length belongs to one image; a range of all elements mixes them."""
    with pytest.raises(
        ModelError, match=r"is not known to keep images apart|makes .* of 2 images|first axis"
    ):
        load(path_of(name, tmp_path), ReadOptions(batch=2))


HOSTILE = {
    "heads": "(float[1,5,16] q) => (float[1,5,16] y) { y = ~MultiHeadAttention<num_heads=0>(q, q, q) }",
    "rows": "(float[8] x) => (float[8] y) { y = ~FusedMatMul<transA=1>(x, x) }",
    "features": "(float[1,5,8] x) => (float[1,5,4] y) { y = ~MatMulNBits<K=9, N=4, bits=4>(x, x, x) }",
    "operand": "(float[1,5,8] x) => (float[1,5,8] y) { y = ~Gelu() }",
    "concat": "(uint8[1,4] x) => (uint8[1,4] y) { y = ~QLinearConcat<axis=7>(x, x, x) }",
    "gemm": "(uint8[3,8] x) => (uint8[3,6] y) { y = ~QGemm(x, x, x, x) }",
    "unknown": "(float[1,5,8] x) => (float[1,5,8] y) { y = ~WordConvEmbedding(x) }",
    "attention": "(float[1,5,8] x) => (float[1,5,8] y) { y = ~Attention<num_heads=3>(x, x) }",
    "sizes": "(float[1,5,8] x, float[8,24] w) => (float[1,5,8] y) "
    "{ y = ~Attention<num_heads=2, qkv_hidden_sizes=[1]>(x, w) }",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_does_not_fit_is_one_line(tmp_path: Path, name: str) -> None:
    """A stated shape stands where no rule says another; nothing that is read without it is a traceback."""
    model = made(HOSTILE[name])
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    path = tmp_path / "net.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ModelError) as problem:
        load(path)
    assert "\n" not in str(problem.value)


def test_bytes_and_work(tmp_path: Path) -> None:
    """Weights count as stored, four bits an element here; work is that of the matrices."""
    narrow = load(path_of("narrow", tmp_path)).network.operators[0]
    assert narrow.weight_bytes == 16 * 2 * 8 + 32 * 4
    assert narrow.macs == 5 * 32 * 16
    heads = load(path_of("heads", tmp_path)).network.operators[0]
    assert heads.macs == 5 * 7 * 16 * 2
    attention = load(path_of("attention", tmp_path)).network.operators[0]
    assert attention.macs == 5 * 12 * 36 + 5 * 5 * 12 * 2


def test_a_concat_of_other_steps_is_no_plain_one(tmp_path: Path) -> None:
    """Its operands' bytes are not those of its output, and its type says so."""
    assert load(path_of("concat", tmp_path)).network.operators[-1].type == "QLinearConcat+QuantizeLinear"
