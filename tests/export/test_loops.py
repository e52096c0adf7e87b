"""Plans as loops: followed by another program's eyes, and as C that computes what onnxruntime does."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper, parser

import onchip
from onchip.base.errors import UsageError
from onchip.export import export
from onchip.export.loops.c_program import Made, program_of
from onchip.export.loops.lower import book_of
from onchip.export.loops.text import regrouped
from onchip.machines.chip import Chip
from onchip.plans import Plan
from onchip.readers.source import Source

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

from follow_loops import follow

needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

BANDS = """
net (float[1,4,12,10] x) => (float[1,6,6,5] y) {
  a = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x, w1)
  b = Relu (a)
  c = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]> (b, w2)
  d = Clip (c, low, high)
  e = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (d)
  y = Add (d, e)
}
"""
BANDS_WEIGHTS = {"w1": (24, 4, 3, 3), "w2": (6, 24, 3, 3)}

ROWS = """
net (float[1,12,16] x) => (float[1,12,16] y) {
  n = LayerNormalization <axis = -1> (x, scale, shift)
  q = MatMul (n, wq)
  k = MatMul (n, wk)
  t = Transpose <perm = [0, 2, 1]> (k)
  s = MatMul (q, t)
  p = Softmax <axis = -1> (s)
  v = MatMul (n, wv)
  o = MatMul (p, v)
  r = Add (x, o)
  h = MatMul (r, w1)
  g = Sigmoid (h)
  m = Mul (h, g)
  z = MatMul (m, w2)
  y = Add (r, z)
}
"""
ROWS_WEIGHTS = {
    "scale": (16,), "shift": (16,), "wq": (16, 16), "wk": (16, 16),
    "wv": (16, 16), "w1": (16, 48), "w2": (48, 16),
}  # fmt: skip

INTEGERS = """
net (float[1,4,10,10] x) => (float[1,8,10,10] y) {
  xq = QuantizeLinear (x, sx, zero)
  xf = DequantizeLinear (xq, sx, zero)
  w1f = DequantizeLinear (w1, sw, zero)
  a = Conv (xf, w1f)
  ar = Relu (a)
  aq = QuantizeLinear (ar, sx, zero)
  af = DequantizeLinear (aq, sx, zero)
  w2f = DequantizeLinear (w2, sw, zero)
  b = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (af, w2f)
  bq = QuantizeLinear (b, sy, zero)
  y = DequantizeLinear (bq, sy, zero)
}
"""


def source(folder: Path, text: str, **weights: Any) -> Source:
    """A network from text; weights that are shapes are drawn, arrays are themselves."""
    model = parser.parse_model('<ir_version: 8, opset_import: ["" : 17]>' + text)
    draw = np.random.default_rng(7)
    for name, given in weights.items():
        value = given
        if isinstance(given, tuple):
            value = (draw.standard_normal(given) / np.prod(given[1:]) ** 0.5).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    path = folder / "net.onnx"
    path.write_bytes(model.SerializeToString())
    return onchip.load(path)


def integers(folder: Path, scale: float = 0.25) -> Source:
    draw = np.random.default_rng(3)
    one = np.float32
    return source(
        folder, INTEGERS, sx=np.array(0.125, one), sy=np.array(scale, one), sw=np.array(scale / 64, one),
        zero=np.array(0, np.int8), w1=draw.integers(-127, 128, (48, 4, 1, 1)).astype(np.int8),
        w2=draw.integers(-127, 128, (8, 48, 3, 3)).astype(np.int8),
    )  # fmt: skip


def ran(folder: Path, made: Made, plan: Plan, model: Source, *flags: str) -> dict[str, int]:
    """Compile and run a program; its outputs have to be the reference's. Return what it prints."""
    book = book_of(plan, model)
    inputs = book.engine.seeded_inputs(0)
    reference, ids = book.engine.reference(inputs), plan.network.tensor_id
    (folder / "p.c").write_text(made.source)
    (folder / "constants").write_bytes(made.constants)
    (folder / "x").write_bytes(b"".join(inputs[ids[name]].tobytes() for name, _ in made.inputs))
    warnings = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror", "-DONCHIP_CHECK")
    command = ["gcc", *warnings, *flags, str(folder / "p.c"), "-o", str(folder / "p"), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    run = [folder / "p", folder / "constants", folder / "x", folder / "y"]
    out = subprocess.run(run, capture_output=True, text=True, timeout=60)
    assert out.returncode == 0, out.stderr + out.stdout
    data, at = (folder / "y").read_bytes(), 0
    for name, size in made.outputs:
        wanted = reference[ids[name]]
        found = np.frombuffer(data[at : at + size], wanted.dtype).reshape(wanted.shape)
        at += size
        if wanted.dtype.kind == "f":
            assert np.abs(found - wanted).max() <= 1e-4 * np.abs(wanted).max()
        else:
            assert np.array_equal(found, wanted)
    told: dict[str, int] = json.loads(out.stdout)
    return told


def planned(model: Source, budget: int, chip: Chip | None = None) -> Plan:
    given = {} if chip is None else {"chip": chip}
    return onchip.plan(model, budget=budget, fuse=True, time_limit=5, **given)


CASES = [(BANDS, BANDS_WEIGHTS, 2600), (ROWS, ROWS_WEIGHTS, 1800)]


@needs_compiler
@pytest.mark.thorough
@pytest.mark.parametrize(("text", "weights", "budget"), CASES, ids=["bands", "rows"])
def test_floats(text: str, weights: dict[str, Any], budget: int, tmp_path: Path) -> None:
    more = {} if "low" not in text else {"low": np.array(0, np.float32), "high": np.array(6, np.float32)}
    model = source(tmp_path, text, **weights, **more)
    plan = planned(model, budget)
    assert plan.groups
    told = ran(tmp_path, program_of(plan, model), plan, model, "-fsanitize=undefined")
    assert told["copied_bytes"] == plan.result.dram_bytes
    assert told["scratchpad_bytes"] == plan.result.extent_bytes <= budget
    loops = json.loads(export(plan, "loops"))
    assert follow(loops).copied == plan.result.dram_bytes


@needs_compiler
@pytest.mark.thorough
@pytest.mark.parametrize("accumulator", [None, 4])
def test_integers_bit_for_bit(accumulator: int | None, tmp_path: Path) -> None:
    """Sums that a nest takes apart among them, beside the scratchpad and in it."""
    model = integers(tmp_path)
    chip = Chip(name="test", alignment_bytes=1, element="int8", accumulator_bytes=accumulator)
    plan = planned(model, 2400, chip)
    made = program_of(plan, model)
    assert "_before(" in made.source  # some sum is taken apart
    told = ran(tmp_path, made, plan, model)
    assert told["copied_bytes"] == book_of(plan, model).plan.result.dram_bytes
    assert (told["sums_beside_bytes"] > 0) == (accumulator is None)
    if accumulator is None:
        assert told["scratchpad_bytes"] == plan.result.extent_bytes <= 2400


@needs_compiler
@pytest.mark.thorough
def test_guard_bytes_and_places_find_a_scratchpad_that_is_too_small(tmp_path: Path) -> None:
    model = integers(tmp_path)
    plan = planned(model, 2400)
    made = program_of(plan, model)
    size = f"#define PAD_BYTES {plan.result.extent_bytes}"
    assert size in made.source
    small = replace(
        made, source=made.source.replace(size, f"#define PAD_BYTES {plan.result.extent_bytes // 2}")
    )
    with pytest.raises(AssertionError, match="guard_bytes_broken"):
        ran(tmp_path, small, plan, model)


def test_a_walk_that_moves_a_box_is_found(tmp_path: Path) -> None:
    model = integers(tmp_path)
    plan = planned(model, 2400)
    loops = json.loads(export(plan, "loops"))
    assert follow(loops).copied == plan.result.dram_bytes
    loops["places"][0]["address"] = plan.budget
    with pytest.raises(AssertionError):
        follow(loops)


def test_what_has_no_loops_is_named(tmp_path: Path) -> None:
    text = "net (float[1,4,4,4] x) => (float[1,4,4,4] y) { y = Conv (x, w) }"
    model = source(tmp_path, text, w=(4, 4, 1, 1))
    narrow = onchip.load(tmp_path / "net.onnx", dtype="int8")
    with pytest.raises(UsageError, match="plan with --dtype file"):
        program_of(onchip.plan(narrow, budget=4096), narrow)
    plan = onchip.plan(model, budget=4096)
    with pytest.raises(UsageError, match="reads no model"):
        export(plan, "minimalloc", model="net.onnx")
    assert follow(json.loads(export(plan, "loops"))).copied == plan.result.dram_bytes


def test_a_node_without_a_rule_is_named(tmp_path: Path) -> None:
    text = "net (float[1,4] x) => (float[1,4] y) { y = CumSum (x, axis) }"
    model = source(tmp_path, text, axis=np.array(1, np.int64))
    with pytest.raises(UsageError, match="CumSum has no rule"):
        program_of(onchip.plan(model, budget=4096), model)


def test_a_reduction_along_no_axes_is_named(tmp_path: Path) -> None:
    """Without axes it reduces all of them otherwise."""
    text = "net (float[1,4] x) => (float[1,4] y) { y = ReduceSum <noop_with_empty_axes = 1> (x) }"
    model = source(tmp_path, text)
    with pytest.raises(UsageError, match="a reduction along no axes"):
        program_of(onchip.plan(model, budget=4096), model)


def test_indices_along_other_sides() -> None:
    """Every element of one shape has its index in the other, as the order of elements says."""
    for sizes, wanted in (
        ((6, 4), (2, 3, 4)),
        ((2, 3, 4), (6, 4)),
        ((4, 6), (8, 3)),
        ((1, 5), (5,)),
        ((), (1,)),
    ):
        names = [f"i{n}" for n in range(len(sizes))]
        texts = regrouped(names, sizes, wanted)
        for at in np.ndindex(*sizes):
            here = dict(zip(names, at, strict=True))
            found = tuple(eval(text.replace("/", "//"), {}, here) for text in texts)
            assert found == np.unravel_index(int(np.ravel_multi_index(at, sizes)) if sizes else 0, wanted)


def _node(kind: str, inputs: list[str], output: str, **settings: Any) -> Any:
    return helper.make_node(kind, inputs, [output], **settings)


@needs_compiler
@pytest.mark.thorough
def test_nodes_of_many_kinds(tmp_path: Path) -> None:
    """Each alone, on whole operands: the rule's arithmetic beside onnxruntime's."""
    x, m = "x", "m"
    of = {
        "erf": _node("Erf", [x], "erf"), "hard": _node("HardSigmoid", [x], "hard", alpha=0.2, beta=0.4),
        "swish": _node("HardSwish", [x], "swish"), "leaky": _node("LeakyRelu", [x], "leaky", alpha=0.1),
        "pool": _node("AveragePool", [x], "pool", kernel_shape=[3, 2], pads=[1, 1, 1, 0], strides=[2, 1]),
        "padded": _node("AveragePool", [x], "padded", kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1),
        "up": _node("ConvTranspose", [x, "wt"], "up", strides=[2, 2], pads=[1] * 4, group=2),
        "grouped": _node("Conv", [x, "wg"], "grouped", group=2, dilations=[2, 2], pads=[2] * 4),
        "linear": _node("Resize", [x, "", "twice"], "linear", mode="linear"),
        "near": _node("Resize", [x, "", "twice"], "near", mode="nearest"),
        "deep": _node("SpaceToDepth", [x], "deep", blocksize=2),
        "wide": _node("DepthToSpace", [x], "wide", blocksize=2, mode="CRD"),
        "pair": _node("Concat", [x, x], "pair", axis=1),
        "cut": _node("Slice", [x, "from", "to", "along", "by"], "cut"),
        "border": _node("Pad", [x, "more"], "border"),
        "mean": _node("ReduceMean", [x], "mean", axes=[1, 3], keepdims=0),
        "most": _node("ReduceMax", [x], "most", axes=[2], keepdims=1),
        "log": _node("LogSoftmax", [x], "log", axis=1),
        "norm": _node("InstanceNormalization", [x, "gain", "gain"], "norm"),
        "gemm": _node("Gemm", [m, m], "gemm", transB=1, alpha=0.5),
        "sum": _node("Einsum", [m, m], "sum", equation="ij,kj->ik"),
        "picked": _node("Gather", [x, "which"], "picked", axis=3),
        "larger": _node("Greater", [x, "half"], "larger"),
        "choice": _node("Where", ["larger", x, "half"], "choice"),
    }  # fmt: skip
    one, whole = np.float32, np.int64
    draw = np.random.default_rng(5)
    weights = {
        "wt": draw.standard_normal((4, 3, 4, 4)).astype(one),
        "wg": draw.standard_normal((6, 2, 3, 3)).astype(one),
        "twice": np.array([1, 1, 2, 2], one), "from": np.array([4, 1], whole), "to": np.array([0, 3], whole),
        "along": np.array([2, 3], whole), "by": np.array([-2, 1], whole), "gain": np.array([1, 2, 3, 4], one),
        "more": np.array([0, 0, 1, 2, 0, 0, 0, 1], whole), "which": np.array([3, -1, 0], whole),
        "half": np.array(0.5, one),
    }  # fmt: skip
    results = [name for name in of if name != "larger"]
    graph = helper.make_graph(
        list(of.values()),
        "kinds",
        [helper.make_tensor_value_info("x", 1, [1, 4, 6, 4]), helper.make_tensor_value_info("m", 1, [5, 6])],
        [helper.make_tensor_value_info(name, 1, None) for name in results],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (tmp_path / "net.onnx").write_bytes(model.SerializeToString())
    loaded = onchip.load(tmp_path / "net.onnx", granularity="op")
    plan = onchip.plan(loaded, budget=1 << 20)
    told = ran(tmp_path, program_of(plan, loaded), plan, loaded)
    assert told["copied_bytes"] == plan.result.dram_bytes


TWO_MEMORIES = """
name = "two"
alignment_bytes = 4
element = "int8"
dram_bytes_per_second = 1e9
macs_per_second = 1e9
[[memory]]
name = "near"
bytes = 25600
bytes_per_second = 1e9
[[memory]]
name = "far"
bytes = 4000
bytes_per_second = 1e8
operands = false
"""
SKIPPED = """
net (float[1,8,10,10] x) => (float[1,8,10,10] y) {
  a = Relu (x)
  b = Conv (a, w1)
  c = Conv (b, w2)
  d = Conv (c, w3)
  y = Add (a, d)
}
"""


@needs_compiler
@pytest.mark.thorough
def test_moves_between_memories(tmp_path: Path) -> None:
    """A tensor that waits in a memory from which no operator reads: whole operators, loaded and moved."""
    model = source(tmp_path, SKIPPED, w1=(32, 8, 1, 1), w2=(32, 32, 1, 1), w3=(8, 32, 1, 1))
    (tmp_path / "two.toml").write_text(TWO_MEMORIES)
    plan = onchip.plan(model, chip=str(tmp_path / "two.toml"), fuse=False)
    assert plan.result.move_bytes
    told = ran(tmp_path, program_of(plan, model), plan, model)
    assert told["copied_bytes"] == plan.result.dram_bytes
    assert told["moved_bytes"] == plan.result.move_bytes
