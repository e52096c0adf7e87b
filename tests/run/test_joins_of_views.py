"""Concats joined in DRAM of views, or of maps of three dimensions: proved by their reach, and executed."""

from __future__ import annotations

from pathlib import Path

import pytest

from onchip.base.errors import IllegalPlan
from onchip.check import check, joined_offsets
from onchip.readers.source import Source
from onchip.run import run
from run.patched import certified, onnx_source, planned, steps

HALVES = """halves (float[1,4,3,3] x) => (float[1,CHANNELS,3,3] y) {
    t = Conv<kernel_shape=[1,1]>(x, w)
    s = Constant<value_ints=[2,2]>()
    a, b = Split<axis=1>(t, s)
    c = Relu(b)
    d = Concat<axis=1>(OPERANDS)
    y = Tanh(d)
}"""


def halves(folder: Path, operands: str) -> Source:
    text = HALVES.replace("OPERANDS", operands).replace("CHANNELS", str(2 * len(operands.split())))
    return onnx_source(folder, text, {"w": (4, 4, 1, 1)}, "int8")


def test_halves_in_order_are_joined_as_what_they_are_halves_of(tmp_path: Path) -> None:
    source = halves(tmp_path, "a, b, c")
    program = """
        load x @0
        alloc t @64
        run t
        store t
        alloc c @128
        run c
        store c
        free x
        free t
        free c
        join d
        load d @0
        alloc y @64
        run y
        store y
        free d
        free y
    """
    plan = planned(source.network, steps(program), compulsory=36 + 54, reload=54, spill=54)
    report = run(certified(plan), source)
    assert report.moved.spill == 54


@pytest.mark.parametrize(
    ("operands", "why"),
    [("b, a, c", "in another order"), ("a, c", "a part of")],
)
def test_halves_in_another_order_or_not_all_are_not(tmp_path: Path, operands: str, why: str) -> None:
    network = halves(tmp_path, operands).network
    [concat] = [op.id for op in network.operators if op.type == "Concat"]
    found = joined_offsets(network, concat)
    assert isinstance(found, str)
    assert why in found


def test_maps_of_three_dimensions_are_joined(tmp_path: Path) -> None:
    text = """cubes (float[1,2,3,3,3] x) => (float[1,4,3,3,3] y) {
        a = Relu(x)
        b = Tanh(a)
        c = Concat<axis=1>(a, b)
        y = Sigmoid(c)
    }"""
    source = onnx_source(tmp_path, text, {}, "int8")
    network = source.network
    [concat] = [op for op in network.operators if op.type == "Concat"]
    a, b = concat.inputs
    assert joined_offsets(network, concat.id) == {a: 0, b: 54}


@pytest.mark.parametrize("axis", [2, 3, 4])
def test_along_an_inner_axis_nothing_is_joined(tmp_path: Path, axis: int) -> None:
    shape = [1, 2, 3, 3, 3]
    shape[axis] *= 2
    text = f"""inner (float[1,2,3,3,3] x) => (float[{",".join(map(str, shape))}] y) {{
        a = Relu(x)
        b = Tanh(a)
        c = Concat<axis={axis}>(a, b)
        y = Sigmoid(c)
    }}"""
    source = onnx_source(tmp_path, text, {}, "int8")
    [concat] = [op.id for op in source.network.operators if op.type == "Concat"]
    assert isinstance(joined_offsets(source.network, concat), str)
    program = "load x @0\nalloc a @256\nrun a\nstore a\nalloc b @512\nrun b\nstore b\njoin c"
    plan = planned(source.network, steps(program), compulsory=0)
    with pytest.raises(IllegalPlan, match="join-not-concat"):
        check(plan)
