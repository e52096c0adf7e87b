"""The shapes that planning by branches rests on: every operator says what it makes, and by which windows."""

from __future__ import annotations

from math import prod

import onnx
import pytest

from onchip import zoo
from onchip.network import Network
from onchip.readers import ReadOptions, load

NETWORKS = (
    "googlenet", "inception_resnet_v2", "inception_v3", "mnasnet1_0", "mobilenet_v2", "resnet18", "resnet50",
    "shufflenet_v2_x1_0", "squeezenet1_0",
)  # fmt: skip
WINDOWED = ("conv", "depthwise", "pool")


@pytest.fixture(scope="module", params=NETWORKS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def network(name: str) -> Network:
    return load(f"zoo:{name}").network


@pytest.mark.parametrize(("dtype", "width"), [("int8", 1), ("int16", 2)])
def test_every_output_has_the_bytes_of_its_shape(name: str, dtype: str, width: int) -> None:
    network = load(f"zoo:{name}", ReadOptions(dtype=dtype)).network  # type: ignore[arg-type]
    assert network.element == dtype
    for op in network.operators:
        assert op.geometry is not None, op.name
        [output] = op.outputs
        assert prod(op.geometry.output) * width == network.tensors[output].bytes, op.name


def test_every_window_is_that_of_the_model(name: str, network: Network) -> None:
    model = onnx.load_model_from_string(zoo.model_bytes(name))
    weights = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    nodes = {node.name: node for node in model.graph.node}
    seen = 0
    for op in network.operators:
        node, g = nodes[op.name], op.geometry
        assert g is not None
        if node.op_type == "Conv":
            settings = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            out, per_group, *kernel = weights[node.input[1]]
            assert g.looks_like in ("conv", "depthwise"), op.name
            assert (g.looks_like == "depthwise") == (g.groups == g.input[1] > 1)
            assert g.kernel == tuple(kernel)
            assert g.stride == tuple(settings.get("strides", (1, 1)))
            assert g.groups == settings.get("group", 1)
            assert (g.input[1] // g.groups, g.output[1]) == (per_group, out)
            assert op.work == prod(g.output) * prod(kernel) * per_group
            seen += 1
        elif node.op_type in ("MaxPool", "AveragePool"):
            settings = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            assert g.kind == "pool"
            assert g.kernel == tuple(settings["kernel_shape"])
            assert g.stride == tuple(settings.get("strides", (1, 1)))
            seen += 1
        else:
            assert (g.looks_like in WINDOWED) == (len(g.kernel) == 2)
    assert seen == sum(node.op_type in ("Conv", "MaxPool", "AveragePool") for node in model.graph.node)


def test_windows_fit_between_input_and_output(network: Network) -> None:
    """Rows and columns: output = floor or ceil((input + padding - span) / stride) + 1."""
    for op in network.operators:
        g = op.geometry
        assert g is not None
        if g.looks_like not in WINDOWED:
            continue
        stride, dilation, padding = g.stride or (1, 1), g.dilation or (1, 1), g.padding or (0, 0, 0, 0)
        for axis in (0, 1):
            span = (g.kernel[axis] - 1) * dilation[axis] + 1
            room = g.input[2 + axis] + padding[axis] + padding[2 + axis] - span
            last = g.output[2 + axis] - 1
            assert last in (room // stride[axis], -(-room // stride[axis])), op.name


def test_what_promises_a_walk_reads_its_first_input_as_it_lies(network: Network) -> None:
    for op in network.operators:
        g = op.geometry
        assert g is not None
        if g.promises and g.kind != "elementwise":
            assert prod(g.input) == network.tensors[op.inputs[0]].bytes, op.name


def test_only_channel_shuffles_are_gathered(name: str, network: Network) -> None:
    gathered = sum(op.geometry is not None and not op.geometry.promises for op in network.operators)
    assert gathered == (31 if name == "shufflenet_v2_x1_0" else 0)
