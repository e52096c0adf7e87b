"""Operators of every kind in boxes of their output: planned, proved, executed; too short a reach is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onchip.base.errors import InputError, Mismatch
from onchip.check import certify
from onchip.machines.chip import Chip
from onchip.network import Network, Reach
from onchip.planners.fusion import FusionOptions, FusionProblem
from onchip.plans import Boxes, Group, Plan, Run, Scratch
from onchip.readers import ReadOptions, load
from onchip.readers.source import Source
from onchip.run import run
from oracles.boxes import orders, turned

Shape = tuple[int, ...]


def constant(name: str, values: object, dtype: type = np.int64) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(values, dtype), name)


def weight(name: str, *shape: int) -> onnx.TensorProto:
    return TensorProto(name=name, dims=shape, data_type=TensorProto.FLOAT)


def node(op: str, *names: str, out: str = "y", **attributes: object) -> onnx.NodeProto:
    return helper.make_node(op, list(names), [out], **attributes)


def shuffled(*behind: onnx.NodeProto) -> list[onnx.NodeProto]:
    """Two groups of four channels of [1, 8, 5, 4], shuffled, as `s`, and what follows."""
    return [
        node("Reshape", "x", "parts", out="p"),
        node("Transpose", "p", out="t", perm=[0, 2, 1, 3, 4]),
        node("Reshape", "t", "joined", out="s"),
        *behind,
    ]


PARTS = [constant("parts", [1, 2, 4, 5, 4]), constant("joined", [1, 8, 5, 4])]


def resize(mode: str, how: str, sizes: Shape, **attributes: object) -> tuple[object, ...]:
    made = node("Resize", "x", "", "", "n", mode=mode, coordinate_transformation_mode=how, **attributes)
    return ({"x": (1, 3, 5, 4)}, [made], [constant("n", (1, 3, *sizes))])


KINDS: dict[str, tuple[object, ...]] = {
    # the last and the first: all of the dimension
    "gather around the end": (
        {"x": (3, 8)},
        [node("Gather", "x", "ends", axis=1)],
        [constant("ends", [-1, 0])],
    ),
    "transposed conv": (
        {"x": (1, 4, 5, 4)},
        [
            node(
                "ConvTranspose",
                "x",
                "w",
                "b",
                out="a",
                strides=[2, 3],
                pads=[1, 0, 1, 1],
                output_padding=[1, 0],
            ),
            node("Relu", "a"),
        ],
        [weight("w", 4, 6, 3, 5), weight("b", 6)],
    ),
    "transposed conv in groups": (
        {"x": (1, 4, 5, 4)},
        [node("ConvTranspose", "x", "w", group=2, strides=[2, 2], dilations=[1, 2])],
        [weight("w", 4, 3, 2, 2)],
    ),
    "conv 3-d": (
        {"x": (1, 3, 5, 6, 6)},
        [
            node(
                "Conv",
                "x",
                "w",
                "b",
                out="a",
                kernel_shape=[3, 2, 3],
                strides=[1, 2, 2],
                pads=[1, 0, 1, 1, 1, 1],
            ),
            node("Relu", "a"),
        ],
        [weight("w", 4, 3, 3, 2, 3), weight("b", 4)],
    ),
    "conv 3-d grouped": (
        {"x": (2, 4, 4, 5, 5)},
        [node("Conv", "x", "w", kernel_shape=[1, 3, 3], pads=[0, 1, 1, 0, 1, 1], group=2)],
        [weight("w", 6, 2, 1, 3, 3)],
    ),
    "conv 1-d depthwise": (
        {"x": (2, 4, 11)},
        [node("Conv", "x", "w", kernel_shape=[3], dilations=[2], group=4)],
        [weight("w", 4, 1, 3)],
    ),
    "max pool 3-d": (
        {"x": (1, 3, 4, 6, 6)},
        [node("MaxPool", "x", kernel_shape=[3, 3, 3], strides=[2, 2, 2], pads=[1, 1, 1, 1, 1, 1])],
        [],
    ),
    "average pool 3-d": (
        {"x": (1, 3, 4, 6, 6)},
        [node("AveragePool", "x", kernel_shape=[2, 3, 3], strides=[1, 2, 1], pads=[0, 1, 1, 1, 1, 1])],
        [],
    ),
    "global pool 3-d": ({"x": (2, 3, 4, 3, 3)}, [node("GlobalAveragePool", "x")], []),
    "concat 3-d": (
        {"x": (1, 3, 4, 3, 3), "z": (1, 5, 4, 3, 3)},
        [node("Concat", "x", "z", axis=1)],
        [],
    ),
    "nearest": resize("nearest", "asymmetric", (10, 8), nearest_mode="floor"),
    "nearest rounded": resize("nearest", "half_pixel", (7, 11)),
    "bilinear": resize("linear", "half_pixel", (13, 9)),
    "bilinear down": resize("linear", "pytorch_half_pixel", (3, 2)),
    "bilinear aligned": resize("linear", "align_corners", (9, 13)),
    "cubic": resize("cubic", "half_pixel", (11, 9)),
    "bilinear of a side": resize("linear", "half_pixel", (5, 8)),
    "bilinear of the other side": resize("linear", "asymmetric", (10, 4)),
    "cubic of a side": resize("cubic", "half_pixel", (5, 8)),
    "nearest of opset 10": (
        {"x": (3, 12)},
        [node("Resize", "x", "factors", mode="nearest")],
        [constant("factors", [1, 0.25], np.float32)],
        10,
    ),
    "gemm with a value twice": ({"x": (6, 6), "z": (6, 6)}, [node("Gemm", "x", "z", "x")], []),
    "gather from the end": (
        {"x": (3, 8)},
        [node("Gather", "x", "last", axis=1)],
        [constant("last", [-3, -2])],
    ),
    "layer norm": (
        {"x": (3, 5, 8)},
        [node("LayerNormalization", "x", "w", "b", axis=-1)],
        [weight("w", 8), weight("b", 8)],
    ),
    "softmax": ({"x": (3, 5, 8)}, [node("Softmax", "x", axis=1)], []),
    "gemm over rows": (
        {"x": (3, 5, 8)},
        [
            node("Reshape", "x", "rows", out="r"),
            node("Gemm", "r", "w", "b", out="m", transB=1),
            node("Reshape", "m", "back", out="s"),
            node("Gelu", "s"),
        ],
        [weight("w", 12, 8), weight("b", 12), constant("rows", [15, 8]), constant("back", [3, 5, 12])],
    ),
    "matrix of two activations": (
        {"x": (2, 3, 5, 4), "z": (2, 3, 4, 6)},
        [node("MatMul", "x", "z")],
        [],
    ),
    "add broadcast": ({"x": (2, 3, 5, 4, 2), "z": (3, 1, 4, 1)}, [node("Add", "x", "z")], []),
    "attention": (
        {"x": (1, 7, 36)},
        [
            helper.make_node("Split", ["x", "thirds"], ["q", "k", "v"], axis=2),
            node("Attention", "q", "k", "v", q_num_heads=3, kv_num_heads=3),
        ],
        [constant("thirds", [12, 12, 12])],
    ),
    "attention heads": (
        {"x": (2, 4, 5, 6), "k": (2, 2, 7, 6), "v": (2, 2, 7, 3)},
        [node("Attention", "x", "k", "v")],
        [],
    ),
    "attention heads, one row of mask": (
        {"x": (2, 4, 5, 6), "k": (2, 2, 7, 6), "v": (2, 2, 7, 3), "m": (2, 1, 1, 7)},
        [node("Expand", "m", "rows", out="r"), node("Attention", "x", "k", "v", "r")],
        [constant("rows", [2, 4, 5, 7])],
    ),
    "conv of a shuffled half": (
        {"x": (1, 8, 5, 4)},
        shuffled(
            helper.make_node("Split", ["s", "halves"], ["f", "l"], axis=1),
            node("Conv", "l", "w", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 1]),
        ),
        [*PARTS, constant("halves", [4, 4]), weight("w", 3, 4, 3, 3)],
    ),
    "concat of a shuffled half": (
        {"x": (1, 8, 5, 4), "z": (1, 4, 5, 4)},
        shuffled(
            helper.make_node("Split", ["s", "halves"], ["f", "l"], axis=1),
            node("Concat", "f", "z", axis=1),
        ),
        [*PARTS, constant("halves", [4, 4])],
    ),
    "conv of a cut map": (
        {"x": (1, 4, 9, 9)},
        [
            node("Slice", "x", "from", "to", "axes", out="s"),
            node("Conv", "s", "w", kernel_shape=[1, 1], strides=[2, 2]),
        ],
        [weight("w", 3, 4, 1, 1), constant("from", [1, 2]), constant("to", [9, 9]), constant("axes", [2, 3])],
    ),
    "depth to space": ({"x": (1, 12, 4, 3)}, [node("DepthToSpace", "x", blocksize=2, mode="CRD")], []),
    "space to depth": ({"x": (1, 3, 4, 6)}, [node("SpaceToDepth", "x", blocksize=2)], []),
    "tokens beside a class": (
        {"x": (1, 6, 3, 4)},
        [
            node("Reshape", "x", "flat", out="f"),
            node("Transpose", "f", out="t", perm=[0, 2, 1]),
            node("Concat", "c", "t", out="a", axis=1),
            node("Add", "a", "e"),
        ],
        [constant("flat", [1, 6, 12]), weight("c", 1, 1, 6), weight("e", 1, 13, 6)],
    ),
    "mean over rows": (
        {"x": (3, 5, 8)},
        [node("ReduceMean", "x", "axes", keepdims=0)],
        [constant("axes", [1])],
    ),
    "transpose": ({"x": (3, 5, 8)}, [node("Transpose", "x", perm=[2, 0, 1])], []),
}
"""Inputs, nodes, constants, and the opset where it is not 23: one operator each."""


def source_of(kind: str, folder: Path) -> Source:
    inputs, nodes, constants, *opset = KINDS[kind]
    graph = helper.make_graph(
        nodes,  # type: ignore[arg-type]
        "one",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],  # type: ignore[attr-defined]
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        constants,  # type: ignore[arg-type]
    )
    opsets = [helper.make_opsetid("", *(opset or [23]))]  # type: ignore[arg-type]
    model = helper.make_model(graph, ir_version=10, opset_imports=opsets)
    path = folder / "one.onnx"
    path.write_bytes(model.SerializeToString())
    return load(path, ReadOptions(granularity="fused"))


def in_boxes(network: Network, boxes: Boxes) -> Plan:
    """The plan of a network's one operator in boxes, its scratch no larger than it has to be."""
    found = turned(network, boxes)
    [op] = network.operators
    y = network.tensors[op.outputs[0]]
    names = [network.tensors[t].name for t in op.inputs]
    streaming = (*zip(names, found.crossing, strict=True), (y.name, y.bytes))
    scratch = sum(found.parts)
    return certify(
        network,
        Chip("test", 1),
        scratch,
        (Scratch("g", 0), Run("g", streaming)),
        status="feasible",
        lower_bound_bytes=0,
        seconds=0.0,
        groups=(Group("g", (op.name,), scratch, found.boxes, tiling=boxes),),
        options={"granularity": "fused"},
    )


def resized_by(factors: list[float], width: int, **attributes: str) -> tuple[object, ...]:
    return (
        {"x": (3, width)},
        [node("Resize", "x", "", "f", mode="nearest", **attributes)],
        [constant("f", factors, np.float32)],
    )


WHOLE: dict[str, tuple[object, ...]] = {
    # element 19 lies at 207.9, and by the sizes at 208.05
    "factor beside the sizes": resized_by(
        [1, (20 + 1 / 70) / 219], 219, coordinate_transformation_mode="asymmetric", nearest_mode="floor"
    ),
    "sizes that keep the ratio": (
        {"x": (2, 100)},
        [node("Resize", "x", "", "", "n", mode="nearest", keep_aspect_ratio_policy="not_larger")],
        [constant("n", [1, 37])],
    ),
}
"""What no reach says."""


@pytest.mark.parametrize("kind", WHOLE)
def test_what_no_range_of_an_operand_says_has_no_reach(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KINDS, kind, WHOLE[kind])
    [op] = source_of(kind, tmp_path).network.operators
    assert op.reach is None


def test_a_kernel_that_is_the_image_too_is_needed_for_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KINDS, "itself", ({"x": (2, 2, 3, 3)}, [node("Conv", "x", "x")], []))
    source = source_of("itself", tmp_path)
    boxes = Boxes((1, 1), (0, 1))
    assert run(in_boxes(source.network, boxes), source, seed=1).bit_exact


def drawn(random: Random, reach: Reach) -> Boxes:
    return Boxes(tuple(random.randint(1, n) for n in reach.extents), random.choice(orders(reach)))


ROUNDED = ("conv", "gemm", "matrix", "attention heads", "bilinear of")
"""Kinds that sum products, by the beginning of their names: a part of them is made in another order."""


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_runs_in_boxes_bit_for_bit(kind: str, tmp_path: Path) -> None:
    """But for sums, which are within 1e-4: `run` refuses everything else."""
    source = source_of(kind, tmp_path)
    [op] = source.network.operators
    assert op.reach is not None
    random, outer = Random(kind), len(op.reach.output)
    shapes = [drawn(random, op.reach) for _ in range(4)]
    shapes.append(Boxes((1,) * len(op.reach.extents), shapes[0].order))
    shapes += [replace(s, sizes=(*s.sizes[:outer], *op.reach.sums)) for s in shapes]
    for boxes in shapes:
        report = run(in_boxes(source.network, boxes), source, seed=1)
        cut = boxes.sizes[outer:] != op.reach.sums
        assert report.bit_exact or cut or kind.removeprefix("transposed ").startswith(ROUNDED)


def test_a_mask_of_one_row_serves_all_queries_where_heads_alone_are_cut(tmp_path: Path) -> None:
    source = source_of("attention heads, one row of mask", tmp_path)
    [op] = source.network.operators
    assert op.reach is not None
    sides = [1 if n == 4 else n for n in op.reach.extents]
    run(in_boxes(source.network, Boxes(tuple(sides), tuple(range(len(sides))))), source, seed=1)


SUMS = (
    "conv 3-d",
    "gemm over rows",
    "matrix of two activations",
    "conv of a shuffled half",
    "conv of a cut map",
)


@pytest.mark.parametrize("kind", SUMS)
def test_a_sum_that_lacks_an_element_is_found_out(kind: str, tmp_path: Path) -> None:
    source = source_of(kind, tmp_path)
    [op] = source.network.operators
    assert op.reach is not None
    *others, size = op.reach.sums
    fewer = replace(op.reach, sums=(*others, size - 1))
    network = replace(source.network, operators=(replace(op, reach=fewer),))
    boxes = Boxes((*op.reach.output, *[1] * len(fewer.sums)), tuple(range(len(op.reach.extents))))
    with pytest.raises(Mismatch):
        run(in_boxes(network, boxes), source, seed=1)


@pytest.mark.parametrize("kind", KINDS)
def test_some_side_of_every_kind_is_cut(kind: str, tmp_path: Path) -> None:
    """Boxes of one element need less than everything of every operand."""
    [op] = source_of(kind, tmp_path).network.operators
    assert op.reach is not None
    for sides in op.reach.reads:
        assert any(side.axis >= 0 and side.span < side.size for side in sides)


def shorter(reach: Reach, i: int, k: int) -> Reach | None:
    """A reach whose side `k` of operand `i` ends one element earlier."""
    sides = reach.reads[i]
    if sides[k].span < 2:
        return None
    cut = (*sides[:k], replace(sides[k], span=sides[k].span - 1), *sides[k + 1 :])
    return replace(reach, reads=(*reach.reads[:i], cut, *reach.reads[i + 1 :]))


EXACT = [
    kind
    for kind in KINDS
    if kind != "concat of a shuffled half"
    and not kind.startswith(("nearest", "bilinear", "cubic", "transposed conv"))
]
"""Kinds that need every element that their reach says: coordinates that are floats get some to spare, what no
axis can say is needed whole, and windows that go on by parts of an index take several at a time."""


@pytest.mark.parametrize("kind", EXACT)
def test_a_reach_that_is_an_element_short_is_found_out(kind: str, tmp_path: Path) -> None:
    source = source_of(kind, tmp_path)
    [op] = source.network.operators
    assert op.reach is not None
    one = Boxes((1,) * len(op.reach.extents), tuple(range(len(op.reach.extents))))
    for i, sides in enumerate(op.reach.reads):
        for k in range(len(sides)):
            reach = shorter(op.reach, i, k)
            if reach is None:
                continue
            network = replace(source.network, operators=(replace(op, reach=reach),))
            with pytest.raises(Mismatch):
                run(in_boxes(network, one), source, seed=1)


@pytest.mark.parametrize("kind", ["conv 3-d", "gemm over rows", "attention", "bilinear", "concat 3-d"])
def test_the_planner_uses_boxes_where_nothing_else_fits(kind: str, tmp_path: Path) -> None:
    import onchip

    source = source_of(kind, tmp_path)
    network = source.network
    whole = sum(t.bytes for t in network.tensors)
    problem = FusionProblem.of(network, Chip("test", 1), FusionOptions(), whole // 2)
    if not problem.operators[0].boxes:
        pytest.skip("runs in bands")
    least = problem.operators[0].boxes[0].scratch_bytes
    made = onchip.fuse(source, chip=Chip("test", 1), budget=max(least, whole // 2))
    assert made.plan is not None
    [group] = made.plan.groups
    assert isinstance(group.tiling, Boxes)
    assert run(made.plan.plan if hasattr(made.plan, "plan") else made.plan, source, seed=1).bit_exact
    with pytest.raises(onchip.Infeasible, match=f"needs {least:,} bytes, the budget has {least - 1:,}"):
        onchip.fuse(source, chip=Chip("test", 1), budget=least - 1)


def transposed(folder: Path, element: int) -> Source:
    """A network of one transpose of elements of this ONNX type."""
    graph = helper.make_graph(
        [node("Transpose", "x", perm=[2, 0, 1])],
        "one",
        [helper.make_tensor_value_info("x", element, (3, 5, 8))],
        [helper.make_tensor_value_info("y", element, None)],
    )
    path = folder / "one.onnx"
    made = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 23)])
    path.write_bytes(made.SerializeToString())
    return load(path, ReadOptions(granularity="fused"))


@pytest.mark.parametrize("element", [TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL])
def test_whole_numbers_run_in_boxes(tmp_path: Path, element: int) -> None:
    source = transposed(tmp_path, element)
    [op] = source.network.operators
    assert op.reach is not None
    assert run(in_boxes(source.network, Boxes((1, 2, 4), (0, 1, 2))), source).bit_exact


def test_half_precision_is_refused_in_one_line(tmp_path: Path) -> None:
    source = transposed(tmp_path, TensorProto.FLOAT16)
    [op] = source.network.operators
    assert op.reach is not None
    with pytest.raises(InputError, match="cannot be run in tiles: its elements are float16"):
        run(in_boxes(source.network, Boxes((1,) * len(op.reach.output), (0, 1, 2))), source)
