"""A group in bands whose output takes its input's place: executed as its weights come, tile by tile."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onchip.base.errors import IllegalPlan
from onchip.check import certify, check
from onchip.machines.chip import Chip
from onchip.plans import Alloc, Group, Instruction, Load, Plan, Run, Scratch, Store, Tiling
from onchip.readers import ReadOptions, load
from onchip.readers.source import Source
from onchip.run import run


def source(folder: Path, channels: int, groups: int) -> Source:
    """One convolution of 1x1 that keeps the shape of its map."""
    shape = (1, channels, 4, 3)
    weight = np.arange(1, channels * channels // groups + 1, dtype=np.float32).reshape(channels, -1, 1, 1)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], "f", kernel_shape=[1, 1], group=groups)],
        "one",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(weight, "w")],
    )
    path = folder / "one.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return load(str(path), ReadOptions("op", "int8"))


def in_place(found: Source, tile: int, rows: int, by: int, kept: bool = False) -> Plan:
    """`x` lies `by` bytes above `y`, in the forward walk of NCHW."""
    network = found.network
    [op], size = network.operators, network.tensors[0].bytes
    bands = -(-4 // rows)
    weights = 0 if kept else bands
    group = Group(
        "g", (op.name,), 100, bands, ((op.name, weights),) if weights else (), (op.name,) if kept else (),
        Tiling(rows, (), tile),
    )  # fmt: skip
    program: list[Instruction] = [
        Load("x", 400), Alloc("y", 400 - by, "x", by), Scratch("g", 0), Run("g"), Store("y"),
    ]  # fmt: skip
    legal = certify(
        network, Chip("c", 1), 1 << 10, [Load("x", 200), Alloc("y", 600), *program[2:]], status="feasible",
        lower_bound_bytes=0, seconds=0, groups=[group],
    )  # fmt: skip
    assert legal.result.peak_bytes >= size
    return replace(legal, program=tuple(program))


def executed(plan: Plan, found: Source) -> bool:
    """Whether the plan runs, with the values of the whole network but for the order of sums."""
    return run(plan, found, checked=False).relative_difference < 1e-6


def legal(plan: Plan) -> bool:
    try:
        check(plan)
    except IllegalPlan as refused:
        return refused.rule == "result"  # the figures are those of a plan without an overlap
    return True


@pytest.mark.parametrize("tile", [1, 2])
def test_an_output_in_place_is_refused_where_weights_come_tile_by_tile(tmp_path: Path, tile: int) -> None:
    found = source(tmp_path, 4, 1)
    assert not legal(in_place(found, tile, 1, 0))
    assert not legal(in_place(found, tile, 4, 0))


def test_a_depthwise_convolution_works_in_place_in_any_tile(tmp_path: Path) -> None:
    found = source(tmp_path, 4, 4)
    for tile in (1, 2, 4):
        plan = in_place(found, tile, 4, 0)
        assert legal(plan)
        assert executed(plan, found)


def test_whatever_is_legal_is_executed(tmp_path: Path) -> None:
    found = source(tmp_path, 4, 2)
    size, seen = found.network.tensors[0].bytes, set()
    for tile in (1, 2):
        for by in (0, 12, 24, 36, size - 1, size):
            plan = in_place(found, tile, 4, by)
            if legal(plan):
                assert executed(plan, found), (tile, by)
            seen.add(legal(plan))
    assert seen == {True, False}
