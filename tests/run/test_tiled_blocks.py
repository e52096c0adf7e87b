"""Single operators in blocks of their output: random sizes, counted by the definition of a block."""

from __future__ import annotations

from collections.abc import Collection
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper

from onchip.base.errors import IllegalPlan
from onchip.check import certify
from onchip.network import Geometry
from onchip.plans import Alloc, Blocks, Group, Instruction, Load, Plan, PlanChip, Run, Scratch, Store
from onchip.readers import ReadOptions, load
from onchip.readers.source import Executable, Source
from onchip.run import run


@st.composite
def operators(draw: st.DrawFn) -> ModelProto:
    """A convolution, depthwise or grouped or not, a pool, or a matrix, with something behind it."""
    kind = draw(st.sampled_from(["conv", "grouped", "depthwise", "MaxPool", "AveragePool", "matrix"]))
    channels = draw(st.sampled_from([1, 3, 4, 6]))
    shape = (draw(st.integers(1, 2)), channels, draw(st.integers(3, 8)), draw(st.integers(3, 8)))
    weights, nodes, out = [], [], channels
    if kind == "matrix":
        nodes = [
            helper.make_node("Flatten", ["x"], ["f"]),
            helper.make_node("Gemm", ["f", "w", "b"], ["a"], transB=1),
        ]
        out = draw(st.integers(1, 7))
        weights = [("w", (out, shape[1] * shape[2] * shape[3])), ("b", (out,))]
    else:
        kernel = [draw(st.integers(1, 3)), draw(st.integers(1, 3))]
        pads = [draw(st.integers(0, k - 1)) for k in (*kernel, *kernel)]
        same = {
            "kernel_shape": kernel,
            "pads": pads,
            "strides": [draw(st.integers(1, 2)), draw(st.integers(1, 3))],
        }
        if kind.endswith("Pool"):
            nodes = [helper.make_node(kind, ["x"], ["a"], **same)]
        else:
            groups = {"conv": 1, "depthwise": channels}.get(kind, draw(st.sampled_from([1, channels])))
            out = channels if kind == "depthwise" else groups * draw(st.integers(1, 5))
            nodes = [helper.make_node("Conv", ["x", "w", "b"], ["a"], group=groups, **same)]
            weights = [("w", (out, channels // groups, *kernel)), ("b", (out,))]
            if draw(st.booleans()):
                nodes.append(helper.make_node("BatchNormalization", ["a", "s", "o", "m", "v"], ["n"]))
                weights += [(name, (out,)) for name in "somv"]
    nodes.append(helper.make_node("Relu", [nodes[-1].output[0]], ["y"]))
    graph = helper.make_graph(
        nodes,
        "one",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [TensorProto(name=n, dims=d, data_type=TensorProto.FLOAT) for n, d in weights],
    )
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def extents(source: Source) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The maps that are read and written; a matrix product alone has rows and features, and no images."""
    assert isinstance(source.executable, Executable)
    read, made = source.executable.shape
    if len(made) == 4:
        return read, made
    return (1, prod(read[1:]), read[0], 1), (1, made[1], made[0], 1)


def windows(source: Source, blocks: Blocks) -> tuple[int, int]:
    """Elements of the input that cross, and those of the largest window of one slice."""
    geometry = source.network.operators[0].geometry
    assert geometry is not None
    shape, made = extents(source)
    groups = 1 if geometry.kind == "fully_connected" else geometry.groups
    summed = geometry.kind in ("conv", "fully_connected") or (
        geometry.kind == "depthwise" and shape[1] != made[1]
    )

    def channels(first: int, last: int) -> int:
        if not summed:
            return last - first
        per = made[1] // groups
        return ((last - 1) // per - first // per + 1) * (shape[1] // groups)

    def span(axis: int, first: int, last: int, g: Geometry) -> int:
        if not g.kernel:
            return last - first  # rows of a matrix
        low = first * g.stride[axis] - g.padding[axis]
        high = (last - 1) * g.stride[axis] - g.padding[axis] + g.kernel[axis]
        size = shape[2 + axis]
        return min(max(high, 0), size) - min(max(low, 0), size)

    def cut(size: int, step: int) -> list[tuple[int, int]]:
        return [(a, min(a + step, size)) for a in range(0, size, step)]

    rows = [span(0, *cell, geometry) for cell in cut(made[2], blocks.rows)]
    columns = [span(1, *cell, geometry) for cell in cut(made[3], blocks.columns)]
    depths = [channels(*cell) for cell in cut(made[1], blocks.output_channels)]
    crossing = shape[0] * sum(rows) * sum(columns) * sum(depths)
    return crossing, max(rows) * max(columns) * min(max(depths), blocks.channels)


def in_blocks(source: Source, blocks: Blocks, whole: Collection[int]) -> Plan:
    """The plan, as the checker certifies it; the scratch is found by asking for less until it is refused.

    Operands 0 (the input) and 1 may be whole.
    """
    network = source.network
    [op] = network.operators
    x, y = network.tensors
    images, _, rows, columns = extents(source)[1]
    tiles = images * -(-rows // blocks.rows) * -(-columns // blocks.columns)
    crossing, window = windows(source, blocks)
    refills = ((op.name, tiles),) if op.weight_bytes and not blocks.keep_weights else ()
    streaming = [(x.name, crossing), (y.name, y.bytes)]
    streaming = [pair for i, pair in enumerate(streaming) if i not in whole]

    def made(scratch: int) -> Plan:
        group = Group("g", (op.name,), scratch, tiles, refills, (), blocks)
        program: list[Instruction] = [Scratch("g", 0), Run("g", tuple(streaming))]
        room = scratch
        if 0 in whole:
            program.insert(0, Load(x.name, room))
            room += x.bytes
        if 1 in whole:
            program = [Alloc(y.name, room), *program, Store(y.name)]
            room += y.bytes
        return certify(
            network,
            PlanChip("test"),
            room,
            program,
            status="feasible",
            lower_bound_bytes=0,
            seconds=0.0,
            groups=[group],
        )

    low, high = 0 if 0 in whole else window, x.bytes + y.bytes + op.weight_bytes
    while low < high:
        middle = (low + high) // 2
        try:
            made(middle)
            high = middle
        except IllegalPlan:
            low = middle + 1
    return made(low)


def test_a_layer_runs_in_less_than_its_input_or_its_weights_and_moves_each_once(tmp_path: Path) -> None:
    """The output stays whole and adds up slices of the input, each with its part of the matrix."""
    shape, outs = (1, 64, 4, 4), 32
    nodes = [
        helper.make_node("Flatten", ["x"], ["f"]),
        helper.make_node("Gemm", ["f", "w"], ["y"], transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "dense",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, outs))],
        [TensorProto(name="w", dims=(outs, prod(shape)), data_type=TensorProto.FLOAT)],
    )
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    (tmp_path / "dense.onnx").write_bytes(model.SerializeToString())
    source = load(tmp_path / "dense.onnx", ReadOptions("fused", "int8"))
    plan = in_blocks(source, Blocks(1, 1, outs, 16), {1})
    assert run(plan, source).relative_difference < 1e-4
    x, y = source.network.tensors
    [op] = source.network.operators
    assert plan.result.peak_bytes < min(x.bytes, op.weight_bytes)
    assert plan.result.dram_bytes == x.bytes + y.bytes + op.weight_bytes


@pytest.mark.slow
@settings(max_examples=80)
@given(operators(), st.data())
def test_blocks_move_what_their_windows_say(model: ModelProto, data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "one.onnx"
        path.write_bytes(model.SerializeToString())
        source = load(path, ReadOptions("fused", "int8"))
    sizes = [data.draw(st.integers(1, most)) for most in (5, 5, 8, 8)]
    keeps = data.draw(st.booleans()) and bool(source.network.operators[0].weight_bytes)
    whole = data.draw(st.sampled_from(((), (), (0,), (1,), (0, 1))))
    plan = in_blocks(source, Blocks(*sizes, keeps), whole)
    report = run(plan, source)
    [moved] = report.tiled
    assert moved.counted_bytes == moved.stated_bytes or {"pieces", "padding", "unread"} & set(moved.why)
