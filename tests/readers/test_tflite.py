"""TensorFlow Lite files become the networks that they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from onchip.base.errors import ModelError, UsageError
from onchip.check.operator_walk import Windows, walk_of
from onchip.network import Geometry
from onchip.readers import ReadOptions, Source, load
from readers.tflite_build import CONV, Op, T, branching, model


def read(content: bytes, folder: Path, **options: object) -> Source:
    path = folder / "net.tflite"
    path.write_bytes(content)
    return load(path, ReadOptions(**options))  # type: ignore[arg-type]


def rows(source: Source) -> list[tuple[str, list[str], list[str]]]:
    net = source.network
    names = [t.name for t in net.tensors]
    return [(op.name, [names[t] for t in op.inputs], [names[t] for t in op.outputs]) for op in net.operators]


def views(source: Source) -> list[tuple[str, str, int]]:
    net = source.network
    return [(net.tensors[v.tensor].name, net.tensors[v.of].name, v.offset) for v in net.views]


@pytest.mark.parametrize("granularity", ["op", "fused"])
def test_a_small_network_is_read_whole(tmp_path: Path, granularity: str) -> None:
    source = read(branching(), tmp_path, granularity=granularity)
    assert rows(source) == [
        ("CONV_2D.0", ["image"], ["left"]),
        ("CONV_2D.1", ["image"], ["right"]),
        ("ADD.2", ["left", "right"], ["sum"]),
        ("FULLY_CONNECTED.4", ["sum"], ["logits"]),
    ]
    net = source.network
    assert {t.name: t.bytes for t in net.tensors} == {
        "image": 256, "left": 512, "right": 512, "sum": 512, "logits": 10,
    }  # fmt: skip
    assert [op.weight_bytes for op in net.operators] == [8 * 9 * 4 + 32, 8 * 4 + 32, 0, 5120 + 40]
    assert [op.geometry.kind for op in net.operators if op.geometry] == [
        "conv", "conv", "elementwise", "fully_connected",
    ]  # fmt: skip
    assert (net.element, net.granularity, net.name) == ("int8", granularity, "net")


def test_geometry_is_nhwc_with_tflites_own_padding(tmp_path: Path) -> None:
    """SAME with stride 2 over an even size pads at the end only."""
    same = ("Conv2DOptions", {**CONV[1], "StrideH": 2, "StrideW": 2})
    content = model(
        [
            T((1, 8, 6, 4)),
            T((5, 3, 3, 4), data=np.ones((5, 3, 3, 4))),
            T((5,), data=np.ones(5)),
            T((1, 4, 3, 5)),
        ],
        [Op("CONV_2D", [0, 1, 2], [3], same)],
        [0],
        [3],
    )
    net = read(content, tmp_path).network
    g = net.operators[0].geometry
    assert g is not None
    assert (g.layout, g.input, g.output, g.kernel, g.stride) == (
        "NHWC", (1, 8, 6, 4), (1, 4, 3, 5), (3, 3), (2, 2),
    )  # fmt: skip
    assert g.padding == (0, 0, 1, 1)
    walk = walk_of(net, 0)
    assert isinstance(walk, Windows)
    assert (walk.read_bytes, walk.write_bytes) == (16, 20)
    assert walk.rows.outputs * walk.columns.outputs == 12


def test_shape_changes_are_no_operators_and_parts_are_views(tmp_path: Path) -> None:
    content = model(
        [
            T((4, 6), name="x"), T((), "int32", 0, "axis"), T((2, 6), name="top"), T((2, 6), name="bottom"),
            T((2,), "int32", [0, 0]), T((2,), "int32", [1, 6]), T((1, 6), name="row"),
            T((2,), "int32", [6, 1]), T((6, 1), name="column"), T((6, 1), name="y"), T((2, 6), name="z"),
        ],
        [
            Op("SPLIT", [1, 0], [2, 3], ("SplitOptions", {"NumSplits": 2})),
            Op("SLICE", [3, 4, 5], [6]),
            Op("RESHAPE", [6, 7], [8]),
            Op("EXP", [8], [9]),
            Op("EXP", [2], [10]),
        ],
        [0],
        [9, 10],
    )  # fmt: skip
    source = read(content, tmp_path)
    assert rows(source) == [("EXP.3", ["row"], ["y"]), ("EXP.4", ["top"], ["z"])]
    assert views(source) == [("row", "x", 48), ("top", "x", 0)]
    executable = source.executable
    assert executable is not None
    assert executable.nodes == ((2, 3), (4,))


@pytest.mark.parametrize(
    ("begin", "end", "step", "shape", "part"),
    [
        ([1, 0], [3, 6], [1, 1], (2, 6), 24),
        ([-1, 0], [9, 6], [1, 1], (1, 6), 72),
        ([1, 2], [2, 4], [1, 1], (1, 2), 32),
        ([0, 2], [4, 4], [1, 1], (4, 2), None),
        ([0, 0], [4, 6], [2, 1], (2, 6), None),
        ([3, 0], [-5, 6], [-1, 1], (4, 6), None),
    ],
)
def test_strided_slices_are_views_where_their_bytes_lie_side_by_side(
    tmp_path: Path,
    begin: list[int],
    end: list[int],
    step: list[int],
    shape: tuple[int, ...],
    part: int | None,
) -> None:
    content = model(
        [
            T((4, 6), name="x"), T((2,), "int32", begin), T((2,), "int32", end), T((2,), "int32", step),
            T(shape, name="cut"), T(shape, name="y"),
        ],
        [Op("STRIDED_SLICE", [0, 1, 2, 3], [4], ("StridedSliceOptions", {})), Op("EXP", [4], [5])],
        [0],
        [5],
    )  # fmt: skip
    assert views(read(content, tmp_path)) == ([] if part is None else [("cut", "x", part)])


def test_what_depends_on_no_input_is_a_weight_of_its_reader(tmp_path: Path) -> None:
    content = model(
        [
            T((4,), name="x"),
            T((4,), "int8", [1, 2, 3, 4], scale=1.0),
            T((4,), name="real"),
            T((4,), name="y"),
        ],
        [Op("DEQUANTIZE", [1], [2]), Op("MUL", [0, 2], [3], ("MulOptions", {}))],
        [0],
        [3],
    )
    source = read(content, tmp_path)
    assert rows(source) == [("MUL.1", ["x"], ["y"])]
    assert source.network.operators[0].weight_bytes == 4
    assert source.executable is not None
    assert source.executable.nodes == ((0, 1),)


def test_names_may_be_missing_repeated_or_odd(tmp_path: Path) -> None:
    odd = '*/ "x"\n\\'
    content = model(
        [T((4,), name=""), T((4,), name=odd), T((4,), name=odd), T((4,), name="tensor0")],
        [Op("EXP", [0], [1]), Op("EXP", [1], [2]), Op("EXP", [2], [3])],
        [0],
        [3],
    )
    names = [t.name for t in read(content, tmp_path).network.tensors]
    assert names == ["tensor0", odd, odd + "_2", "tensor0_2"]


def test_custom_operators_are_read_by_their_name(tmp_path: Path) -> None:
    content = model([T((4,)), T((9,))], [Op("CUSTOM", [0], [1], custom="Mine")], [0], [1])
    assert read(content, tmp_path).network.operators[0].type == "CUSTOM:Mine"


def test_dead_nodes_and_inputs_nobody_reads_are_left_out(tmp_path: Path) -> None:
    content = model(
        [T((4,), name="x"), T((4,), name="unread"), T((4,), name="y"), T((4,), name="dead")],
        [Op("EXP", [0], [3]), Op("EXP", [0], [2])],
        [0, 1],
        [2],
    )
    assert rows(read(content, tmp_path)) == [("EXP.1", ["x"], ["y"])]


X, Y = T((4,), name="x"), T((4,), name="y")

REFUSED = {
    "control flow": (model([X, Y], [Op("WHILE", [0], [1])], [0], [1]), "WHILE.0: is control flow"),
    "subgraphs": (model([X, Y], [Op("EXP", [0], [1])], [0], [1], subgraphs=2), "has 2 subgraphs"),
    "state": (
        model([X, T((4,), name="h", variable=True), Y], [Op("ADD", [0, 1], [2])], [0], [2]),
        "tensor h: is a variable",
    ),
    "resource": (
        model([X, Y], [Op("VAR_HANDLE", [], [0]), Op("EXP", [0], [1])], [], [1]),
        "VAR_HANDLE.0: is state",
    ),
    "dynamic": (
        model([T((-1, 4), name="x"), T((-1, 4))], [Op("EXP", [0], [1])], [0], [1]),
        "EXP.0: the shape of x is not known",
    ),
    "zero bytes": (
        model([T((0, 4)), T((0, 4))], [Op("EXP", [0], [1])], [0], [1]),
        "EXP.0: t0 has zero bytes",
    ),
    "vela": (
        model([X, Y], [Op("CUSTOM", [0], [1], custom="ethos-u")], [0], [1]),
        "CUSTOM:ethos-u: is what Vela makes of a network",
    ),
    "strings": (model([T((4,), "string"), Y], [Op("EXP", [0], [1])], [0], [1]), "t0 is of type STRING"),
    "operand": (model([X, Y], [Op("EXP", [7], [1])], [0], [1]), "EXP.0: names tensor 7 of 2"),
    "output": (model([X, Y], [Op("EXP", [0], [1])], [0], [9]), "outputs: name tensor 9 of 2"),
    "nothing": (model([X, Y], [Op("EXP", [0], [1])], [1], [1]), "reads x, which nothing before it computes"),
    "twice": (model([X, Y], [Op("EXP", [0], [1])] * 2, [0], [1]), "EXP.1: writes y, which has a value"),
    "no output": (model([X, Y], [], [0], [1]), "tensor 1: is output y, which nothing computes"),
    "reshape": (model([X, T((5,))], [Op("RESHAPE", [0], [1])], [0], [1]), "makes 5 elements of 4"),
    "constant": (
        model([X, T((9,), data=[1, 2], name="w"), Y], [Op("ADD", [0, 1], [2])], [0], [2]),
        "tensor w: holds 8 bytes; its shape",
    ),
    "mark": (b"\x14\0\0\0ABCD" + bytes(40), "lacks the mark"),
    "empty": (b"", "lacks the mark"),
    "offset": (b"\xff\xff\xff\x7fTFL3" + bytes(40), "is damaged"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_refused_in_one_line(tmp_path: Path, case: str) -> None:
    content, reason = REFUSED[case]
    with pytest.raises(ModelError) as caught:
        read(content, tmp_path)
    assert reason in str(caught.value)
    assert str(tmp_path / "net.tflite") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_dims_may_confirm_the_shape_in_the_file_and_nothing_else(tmp_path: Path) -> None:
    assert read(branching(), tmp_path, dims="image.0=1")
    with pytest.raises(UsageError, match=r"image\.0 is 1 in the file"):
        read(branching(), tmp_path, dims="image.0=2")
    with pytest.raises(UsageError, match="batch is no dimension of an input"):
        read(branching(), tmp_path, dims="batch=2")


MODELS = {
    "ad01_int8": (10, 768),
    "kws_ref_model": (12, 16000),
    "mcunet_320kb_imagenet": (121, 397920),
    "mcunet_5fps_vww": (63, 161472),
    "pretrainedResnet_quant": (15, 49152),
    "vww_96_int8": (30, 55296),
}
"""Operators, and the largest operator's inputs and outputs: read off the files in a viewer."""


@pytest.mark.parametrize("name", MODELS)
def test_real_models(shared: Path, name: str) -> None:
    from onchip.machines.chip import Chip
    from onchip.planners.placement import budgets, plan

    source = load(shared / "models" / f"{name}.tflite")
    operators, least = MODELS[name]
    assert len(source.network.operators) == operators
    chip = Chip("test", 16)
    limits = budgets(source.network, chip)
    assert limits.mr == least
    assert plan(source.network, chip, limits.mp).result.traffic_bytes == 0


PAIR = [T((1, 6, 4, 8), name="x"), T((1, 6, 4, 2), name="z")]


@pytest.mark.parametrize(
    ("more", "op", "geometry"),
    [
        (
            [T((1, 6, 4, 10))],
            Op("CONCATENATION", [0, 1], [2], ("ConcatenationOptions", {"Axis": -1})),
            Geometry("concat", (1, 6, 4, 8), (1, 6, 4, 10), layout="NHWC"),
        ),
        (
            [T((1, 6, 4, 10))],
            Op(
                "CONCATENATION",
                [0, 1],
                [2],
                ("ConcatenationOptions", {"Axis": -1, "FusedActivationFunction": 1}),
            ),
            Geometry("other", (1, 6, 4, 8), (1, 6, 4, 10), layout="NHWC"),
        ),
        (
            [T((1, 9, 7, 8)), T((4, 2), "int32", [0, 0, 1, 2, 0, 3, 0, 0])],
            Op("PAD", [0, 3], [2]),
            Geometry("pad", (1, 6, 4, 8), (1, 9, 7, 8), padding=(1, 0, 2, 3), layout="NHWC"),
        ),
        (
            [T((1, 6, 4, 9)), T((4, 2), "int32", [0, 0, 0, 0, 0, 0, 1, 0])],
            Op("PAD", [0, 3], [2]),
            Geometry("other", (1, 6, 4, 8), (1, 6, 4, 9), layout="NHWC"),
        ),
        (
            [T((1, 6, 4, 8))],
            Op("SOFTMAX", [0], [2], ("SoftmaxOptions", {})),
            Geometry("rowwise", (1, 6, 4, 8), (1, 6, 4, 8), layout="NHWC"),
        ),
        (
            [T((1, 6, 4, 3)), T((4,), "int32", [0, 0, 0, 2]), T((4,), "int32", [1, -1, 4, 3])],
            Op("SLICE", [0, 3, 4], [2]),
            Geometry("rowwise", (1, 6, 4, 8), (1, 6, 4, 3), layout="NHWC"),
        ),
        (
            [T((1, 6, 3, 8)), T((4,), "int32", [0, 0, 1, 0]), T((4,), "int32", [1, 6, 3, 8])],
            Op("SLICE", [0, 3, 4], [2]),
            Geometry("other", (1, 6, 4, 8), (1, 6, 3, 8), layout="NHWC"),
        ),
        (
            [T((1, 1, 1, 8)), T((2,), "int32", [2, 1])],
            Op("REDUCE_MAX", [0, 3], [2], ("ReducerOptions", {"KeepDims": 1})),
            Geometry("pool", (1, 6, 4, 8), (1, 1, 1, 8), (6, 4), layout="NHWC"),
        ),
        (
            [T((1, 4, 6, 8)), T((4,), "int32", [0, 2, 1, 3])],
            Op("TRANSPOSE", [0, 3], [2]),
            Geometry("other", (1, 6, 4, 8), (1, 4, 6, 8), layout="NHWC"),
        ),
    ],
)
def test_geometry_of_what_keeps_rows(tmp_path: Path, more: list[T], op: Op, geometry: Geometry) -> None:
    [operator] = read(model([*PAIR, *more], [op], [0, 1], [2]), tmp_path).network.operators
    assert operator.geometry == geometry


@pytest.mark.parametrize(("kind", "found"), [("int8", "concat"), ("uint8", "other")])
def test_a_concat_that_may_quantise_anew_is_no_concat(tmp_path: Path, kind: str, found: str) -> None:
    tensors = [T((1, 6, 4, channels), kind) for channels in (8, 2, 10)]
    op = Op("CONCATENATION", [0, 1], [2], ("ConcatenationOptions", {"Axis": -1}))
    [operator] = read(model(tensors, [op], [0, 1], [2]), tmp_path).network.operators
    assert operator.geometry is not None
    assert operator.geometry.kind == found


def test_a_transpose_of_groups_of_channels_keeps_rows(tmp_path: Path) -> None:
    content = model(
        [
            T((1, 6, 4, 8)), T((1, 6, 4, 2, 4)), T((5,), "int32", [1, 6, 4, 2, 4]), T((1, 6, 4, 4, 2)),
            T((5,), "int32", [0, 1, 2, 4, 3]), T((1, 6, 4, 4, 2)),
        ],
        [Op("RESHAPE", [0, 2], [1]), Op("TRANSPOSE", [1, 4], [3]), Op("EXP", [3], [5])],
        [0],
        [5],
    )  # fmt: skip
    first = read(content, tmp_path).network.operators[0]
    assert first.geometry == Geometry("rowwise", (1, 6, 4, 8), (1, 6, 4, 8), layout="NHWC")
