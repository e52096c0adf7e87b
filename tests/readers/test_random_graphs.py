"""Whatever is reshaped, sliced, permuted and merged: operator by operator gives the whole network's bits."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnx
import pytest
from build import save
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from stepwise import differing, loose_nodes

from onchip.readers import ReadOptions, load

Value = tuple[str, tuple[int, ...]]

KINDS = (
    "relu", "transpose", "reshape", "slice", "split", "gather", "scale", "add", "concat", "matmul", "silu",
    "softmax",
)  # fmt: skip


class Maker:
    """Draws one network, node by node; every value is float."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw, self.nodes, self.weights = draw, list[onnx.NodeProto](), list[onnx.TensorProto]()
        self.inputs: list[Value] = [("x", tuple(draw(st.lists(st.integers(1, 4), min_size=2, max_size=4))))]
        if draw(st.booleans()):
            self.inputs.append(("z", self.inputs[0][1]))
        self.values: list[Value] = list(self.inputs)

    def node(self, op: str, inputs: list[str], shape: tuple[int, ...], **attributes: object) -> None:
        name = f"v{len(self.values)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"n{len(self.nodes)}", **attributes))
        self.values.append((name, shape))

    def constant(self, array: object, type_: type = np.int64) -> str:
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(array, dtype=type_), name))
        return name

    def step(self) -> None:
        # Recent values are taken more often, so that chains grow long.
        name, shape = self.values[-1 - min(self.draw(st.integers(0, 6)), len(self.values) - 1)]
        axis = self.draw(st.integers(0, len(shape) - 1))
        kind = self.draw(
            st.sampled_from(
                [
                    "relu",
                    "transpose",
                    "reshape",
                    "slice",
                    "split",
                    "gather",
                    "scale",
                    "add",
                    "concat",
                    "matmul",
                    "silu",
                    "softmax",
                ]
            )
        )
        match kind:
            case "relu":
                self.node("Relu", [name], shape)
            case "softmax":
                self.node("Softmax", [name], shape, axis=axis)
            case "silu":
                self.node("Sigmoid", [name], shape)
                self.node("Mul", [name, self.values[-1][0]], shape)
            case "transpose":
                order = self.draw(st.permutations(range(len(shape))))
                self.node("Transpose", [name], tuple(shape[i] for i in order), perm=order)
            case "reshape":
                size = math.prod(shape)
                first = self.draw(st.sampled_from([d for d in range(1, size + 1) if size % d == 0]))
                second = self.draw(
                    st.sampled_from([d for d in range(1, size // first + 1) if size // first % d == 0])
                )
                target = (first, second, size // first // second)
                self.node("Reshape", [name, self.constant(target)], target)
            case "slice":
                start = self.draw(st.integers(0, shape[axis] - 1))
                end = self.draw(st.integers(start + 1, shape[axis]))
                step = self.draw(st.sampled_from([1, 1, 2]))
                count = len(range(start, end, step))
                bounds = [self.constant([v]) for v in (start, end, axis, step)]
                self.node("Slice", [name, *bounds], (*shape[:axis], count, *shape[axis + 1 :]))
            case "split" if shape[axis] > 1:
                cut = self.draw(st.integers(1, shape[axis] - 1))
                sizes = (cut, shape[axis] - cut)
                outputs = [f"v{len(self.values)}", f"v{len(self.values) + 1}"]
                inputs = [name, self.constant(sizes)]
                self.nodes.append(
                    helper.make_node("Split", inputs, outputs, name=f"n{len(self.nodes)}", axis=axis)
                )
                for output, n in zip(outputs, sizes, strict=True):
                    self.values.append((output, (*shape[:axis], n, *shape[axis + 1 :])))
            case "gather" if len(shape) > 1:
                index = self.draw(st.integers(-shape[axis], shape[axis] - 1))
                self.node("Gather", [name, self.constant(index)], shape[:axis] + shape[axis + 1 :], axis=axis)
            case "scale":
                factor = self.constant(np.linspace(0.5, 1.5, shape[-1]), np.float32)
                self.node("Mul", [name, factor], shape)
            case "add" | "concat":
                others = [n for n, s in self.values if s == shape]
                other = self.draw(st.sampled_from(others))
                if kind == "add":
                    self.node("Add", [name, other], shape)
                else:
                    joined = (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :])
                    self.node("Concat", [name, other], joined, axis=axis)
            case "matmul" if len(shape) > 1:
                weight = self.constant(np.linspace(-1, 1, shape[-1] * 3).reshape(shape[-1], 3), np.float32)
                self.node("MatMul", [name, weight], (*shape[:-1], 3))

    def model(self) -> onnx.ModelProto:
        names = self.draw(st.lists(st.sampled_from(self.values), min_size=1, max_size=2, unique=True))
        self.node("Relu", [self.values[-1][0]], self.values[-1][1])  # so that something computes
        outputs = list(dict.fromkeys([self.values[-1], *names]))

        def infos(values: list[Value]) -> list[onnx.ValueInfoProto]:
            return [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in values]

        made = helper.make_graph(self.nodes, "random", infos(self.inputs), infos(outputs), self.weights)
        return helper.make_model(made, ir_version=8, opset_imports=[helper.make_opsetid("", 18)])


@st.composite
def models(draw: st.DrawFn) -> onnx.ModelProto:
    maker = Maker(draw)
    for _ in range(draw(st.integers(1, 14))):
        maker.step()
    return maker.model()


def check(model: onnx.ModelProto, folder: Path) -> None:
    path = save(model, folder)
    for granularity in ("op", "fused"):
        source = load(path, ReadOptions(granularity=granularity))
        event(f"{granularity}: {'some' if source.network.views else 'no'} views")
        assert loose_nodes(source) == []
        assert differing(source) == []


relaxed = settings(
    deadline=None,
    derandomize=True,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)


@given(model=models())
@settings(relaxed, max_examples=40)
def test_random_graphs_run_bit_for_bit(model: onnx.ModelProto, tmp_path: Path) -> None:
    check(model, tmp_path)


@pytest.mark.campaign
@given(model=models())
@settings(relaxed, max_examples=250, derandomize=False)
def test_many_random_graphs_run_bit_for_bit(model: onnx.ModelProto, tmp_path: Path) -> None:
    check(model, tmp_path)
