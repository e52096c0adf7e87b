"""Views of tensors that were made in tiles, and nodes in front of an operator that move nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import TensorProto, parser

import onchip
from run.models import HEADER

SPLIT = """split (float[1,8,6,5] x) => (float[1,4,6,5] first, float[1,3,6,5] y) <int64[2] parts = {4, 4}> {
    a = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w1)
    first, second = Split<axis=1>(a, parts)
    y = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(second, w2)
}"""
WEIGHTS = {"w1": (8, 8, 3, 3), "w2": (3, 4, 3, 3)}

AHEAD = {
    "slice": "m = Slice(x, zero, many, axis)",
    "slice with a step": "m = Slice(x, zero, many, axis, one)",
    "transpose": "m = Transpose<perm=[0,1,2,3]>(x)",
    "cast to what it is": "m = Cast<to=1>(x)",
    "transpose of a transpose": "p = Transpose<perm=[0,2,3,1]>(x)\n        m = Transpose<perm=[0,3,1,2]>(p)",
    "transpose of axes of one element": "p = Transpose<perm=[1,0,2,3]>(x)\n        m = Reshape(p, shape)",
}


def written(text: str, weights: dict[str, tuple[int, ...]], folder: Path) -> Path:
    """A model as a file, its weights without data."""
    proto = parser.parse_model(HEADER + text)
    for name, dims in weights.items():
        proto.graph.initializer.append(TensorProto(name=name, dims=dims, data_type=TensorProto.FLOAT))
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


@pytest.mark.parametrize("budget", [600, 1200])
def test_a_view_of_what_was_made_in_tiles_is_as_approximate(budget: int, tmp_path: Path) -> None:
    made = onchip.plan(written(SPLIT, WEIGHTS, tmp_path), budget=budget, fuse=True)
    report = made.run()
    assert report.tiled
    assert not report.bit_exact  # else this would show nothing


@pytest.mark.parametrize("kind", AHEAD)
@pytest.mark.parametrize("reader", ["Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(m, w1)", "Mul(m, x)"])
def test_what_moves_nothing_runs_in_tiles(kind: str, reader: str, tmp_path: Path) -> None:
    text = f"""ahead (float[1,8,6,5] x) => (float[1,8,6,5] y)
    <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] many = {{99}}, int64[1] axis = {{2}},
     int64[4] shape = {{1, 8, 6, 5}}> {{
        {AHEAD[kind]}
        y = {reader}
    }}"""
    made = onchip.plan(written(text, {"w1": (8, 8, 3, 3)}, tmp_path), budget=600, fuse=True)
    assert made.groups
    assert made.run().tiled


def test_what_turns_a_map_around_does_not(tmp_path: Path) -> None:
    """A slice of the whole axis backwards has the shape of its operand and moves everything."""
    text = """backwards (float[1,8,6,5] x) => (float[1,8,6,5] y)
    <int64[1] last = {-1}, int64[1] first = {-99}, int64[1] axis = {2}, int64[1] back = {-1}> {
        m = Slice(x, last, first, axis, back)
        y = Mul(m, x)
    }"""
    made = onchip.plan(written(text, {}, tmp_path), budget="8KiB", fuse=True)
    assert made.run().bit_exact
