"""Random small convolutional networks as ONNX, with everything that bands and slices can get wrong."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
from onnx import ModelProto, NodeProto, TensorProto, helper

__all__ = ["small_cnns"]

Shape = tuple[int, int, int, int]


class _Net:
    def __init__(self, draw: Callable[[st.SearchStrategy], object]) -> None:
        self.draw = draw
        self.nodes: list[NodeProto] = []
        self.weights: list[TensorProto] = []
        self.maps: list[tuple[str, Shape]] = []

    def integer(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))  # type: ignore[call-overload]

    def pick(self, options: list) -> object:
        return self.draw(st.sampled_from(options))

    def fresh(self) -> str:
        return f"v{len(self.nodes)}"

    def node(self, kind: str, inputs: list[str], **attributes: object) -> str:
        name = self.fresh()
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def weight(self, *dims: int) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(TensorProto(name=name, dims=dims, data_type=TensorProto.FLOAT))
        return name

    def some_map(self) -> tuple[str, Shape]:
        # Mostly the last ones: long paths matter more than wide fans.
        return self.maps[-1 - min(self.integer(0, 3) // 2, len(self.maps) - 1)]

    def windows(self, shape: Shape, pooling: bool) -> tuple[dict[str, object], int, int] | None:
        attributes: dict[str, object] = {}
        sizes = []
        kernel, strides, dilations, pads = [], [], [], []
        for axis in (0, 1):
            k = self.integer(1, 4)
            d = self.integer(1, 2) if not pooling else 1
            before, after = (self.integer(0, k - 1) for _ in range(2))
            kernel.append(k)
            strides.append(self.integer(1, 3) if axis else self.pick([1, 1, 1, 2, 2, 3]))
            dilations.append(d)
            pads.append((before, after))
            room = shape[2 + axis] + before + after - ((k - 1) * d + 1)
            if room < 0:
                return None
            sizes.append(room // strides[axis] + 1)
        attributes = {"kernel_shape": kernel, "strides": strides}
        attributes["pads"] = [pads[0][0], pads[1][0], pads[0][1], pads[1][1]]
        if not pooling:
            attributes["dilations"] = dilations
            if self.integer(0, 5) == 0:
                attributes["auto_pad"] = self.pick(["SAME_UPPER", "SAME_LOWER"])
                del attributes["pads"]
                attributes["dilations"] = [1, 1]
                sizes = [-(-shape[2 + a] // strides[a]) for a in (0, 1)]
        elif self.integer(0, 1):
            upwards = []
            for axis in (0, 1):
                padded = shape[2 + axis] + sum(pads[axis]) - kernel[axis]
                upwards.append(-(-padded // strides[axis]) + 1)
            # Windows that begin in the padding: runtimes and shape inference disagree about them.
            if all((upwards[a] - 1) * strides[a] < shape[2 + a] + pads[a][0] for a in (0, 1)):
                attributes["ceil_mode"], sizes = 1, upwards
        return attributes, sizes[0], sizes[1]

    # -- layers --------------------------------------------------------------------------------------------

    def convolution(self) -> None:
        name, shape = self.some_map()
        found = self.windows(shape, pooling=False)
        if found is None:
            return
        attributes, rows, columns = found
        groups = self.pick([1, 1, 1, *(g for g in range(2, shape[1] + 1) if shape[1] % g == 0)])
        assert isinstance(groups, int)
        out = self.integer(1, 3) * groups if groups > 1 else self.integer(1, 7)
        kernel = attributes["kernel_shape"]
        inputs = [name, self.weight(out, shape[1] // groups, *kernel)]  # type: ignore[misc]
        if self.integer(0, 1):
            inputs.append(self.weight(out))
        made = self.node("Conv", inputs, group=groups, **attributes)
        self.behind(made, (shape[0], out, rows, columns))

    def pool(self) -> None:
        name, shape = self.some_map()
        found = self.windows(shape, pooling=True)
        if found is None:
            return
        attributes, rows, columns = found
        kind = self.pick(["MaxPool", "AveragePool"])
        if kind == "AveragePool":
            attributes["count_include_pad"] = self.integer(0, 1)
        self.maps.append((self.node(str(kind), [name], **attributes), (*shape[:2], rows, columns)))

    def behind(self, name: str, shape: Shape) -> None:
        kind = self.pick(["", "", "Relu", "BatchNormalization", "Silu", "Scale"])
        if kind == "Relu":
            name = self.node("Relu", [name])
        elif kind == "BatchNormalization":
            name = self.node(kind, [name, *(self.weight(shape[1]) for _ in range(4))])
            name = self.node("Relu", [name])
        elif kind == "Silu":
            name = self.node("Mul", [name, self.node("Sigmoid", [name])])
        elif kind == "Scale":
            name = self.node("Mul", [name, self.weight(1, shape[1], 1, 1)])
        self.maps.append((name, shape))

    def join(self) -> None:
        name, shape = self.some_map()
        others = [n for n, s in self.maps if s == shape and n != name]
        if not others:
            return
        more = [name, str(self.pick(others))]
        if len(others) > 1 and self.integer(0, 2) == 0:
            more = [name, *others[:2]]
        kind = self.pick(["Sum", "Max"]) if len(more) > 2 else self.pick(["Add", "Mul", "Sub"])
        self.maps.append((self.node(str(kind), more), shape))

    def concat(self) -> None:
        name, shape = self.some_map()
        others = [(n, s) for n, s in self.maps if s[2:] == shape[2:] and n != name]
        if not others:
            return
        count = self.integer(1, min(2, len(others)))
        parts = [*others[-count:], (name, shape)]
        made = self.node("Concat", [n for n, _ in parts], axis=1)
        self.behind(made, (shape[0], sum(s[1] for _, s in parts), *shape[2:]))

    def excite(self) -> None:
        """A gate of one value a channel."""
        name, shape = self.some_map()
        gate = self.node("GlobalAveragePool", [name])
        gate = self.node("Conv", [gate, self.weight(shape[1], shape[1], 1, 1)], kernel_shape=[1, 1])
        self.maps.append((self.node("Mul", [name, self.node("Sigmoid", [gate])]), shape))

    def unary(self) -> None:
        name, shape = self.some_map()
        self.maps.append((self.node(str(self.pick(["Tanh", "Abs"])), [name]), shape))

    def head(self) -> None:
        name, shape = self.some_map()
        if self.integer(0, 1):
            name, shape = self.node("GlobalAveragePool", [name]), (*shape[:2], 1, 1)
        flat = self.node("Flatten", [name])
        features, out = shape[1] * shape[2] * shape[3], self.integer(1, 5)
        made = self.node("Gemm", [flat, self.weight(out, features), self.weight(out)], transB=1)
        if self.integer(0, 1):
            made = self.node("Gemm", [self.node("Relu", [made]), self.weight(out, 3)])
        if self.integer(0, 1):
            made = self.node("Softmax", [made], axis=1)
        self.maps.append((made, (0, 0, 0, 0)))


@st.composite
def small_cnns(draw: Callable[[st.SearchStrategy], object], batch: int = 1) -> ModelProto:
    """A model of 2 to 8 layers; its outputs are the maps that nothing reads, and sometimes another."""
    net = _Net(draw)
    shape = (batch, net.integer(1, 6), net.integer(3, 11), net.integer(3, 7))
    net.maps.append(("x", shape))
    layers = [
        net.convolution,
        net.convolution,
        net.pool,
        net.join,
        net.join,
        net.concat,
        net.excite,
        net.unary,
    ]
    net.convolution()
    for _ in range(net.integer(1, 7)):
        net.pick(layers)()  # type: ignore[operator]
    if not net.nodes:
        net.unary()  # a network of matrices alone has rows where maps have images
    if net.integer(0, 3) == 0:
        net.head()
    read = {name for node in net.nodes for name in node.input}
    made = [name for name, _ in net.maps if name != "x"]
    outputs = [name for name in made if name not in read]
    if net.integer(0, 3) == 0:
        outputs += [name for name in made if name not in outputs][-1:]
    graph = helper.make_graph(
        net.nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        net.weights,
    )
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
