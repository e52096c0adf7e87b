"""Small ONNX files that ask for much: refused in a line that names the node, in little time and memory."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from build import read
from onnx import TensorProto, helper, numpy_helper

from onchip.base.errors import ModelError

node = helper.make_node
X = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])
Y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
Made = Callable[[], onnx.ModelProto]


def integers(name: str, values: object) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def model(
    nodes: list[onnx.NodeProto],
    constants: list[onnx.TensorProto] | None = None,
    *,
    inputs: list[onnx.ValueInfoProto] | None = None,
    functions: list[onnx.FunctionProto] | None = None,
    opset: int = 17,
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", inputs or [X], [Y], constants or [])
    sets = [helper.make_opsetid("", opset), helper.make_opsetid("d", 1)]
    return helper.make_model(graph, opset_imports=sets, functions=functions or [], ir_version=9)


def doubled() -> onnx.ModelProto:
    nodes = [node("Concat", [f"s{i}"] * 2, [f"s{i + 1}"], axis=0) for i in range(40)]
    return model([*nodes, node("Expand", ["x", "s40"], ["y"])], [integers("s0", [1, 1])])


def gathered() -> onnx.ModelProto:
    """Each Gather has twice the dimensions of the one before."""
    nodes = [node("Gather", [f"g{i}", f"g{i}"], [f"g{i + 1}"]) for i in range(40)]
    i = helper.make_tensor_value_info("g0", TensorProto.INT64, [2, 2])
    return model([*nodes, node("Cast", ["g40"], ["y"], to=1)], inputs=[i])


def product() -> onnx.ModelProto:
    """A sum over 4,096^6 products: one element."""
    nodes = [
        node("Einsum", ["c"] * 6, ["t"], equation="a,b,c,d,e,f->"),
        node("Unsqueeze", ["t", "z"], ["u"]),
        node("Reshape", ["x", "u"], ["y"]),
    ]
    return model(nodes, [integers("c", [1] * 4096), integers("z", [0])])


def matched() -> onnx.ModelProto:
    """A regular expression that is tried in exponentially many ways."""
    text = helper.make_tensor("s", TensorProto.STRING, [1], [b"a" * 60])
    nodes = [
        node("RegexFullMatch", ["s"], ["b"], pattern="(a*)*(a*)*(a*)*b"),
        node("Cast", ["b"], ["t"], to=TensorProto.INT64),
        node("Reshape", ["x", "t"], ["y"]),
    ]
    return model(nodes, [text], opset=20)


def steps() -> onnx.ModelProto:
    nodes = [node("Add", [f"c{i}", "z"], [f"c{i + 1}"]) for i in range(25_000)]
    constants = [integers("c0", [1, 1, 1, 1]), integers("z", [0, 0, 0, 0])]
    return model([*nodes, node("Expand", ["x", "c25000"], ["y"])], constants)


def function(
    name: str, nodes: list[onnx.NodeProto], attributes: list[str] | None = None
) -> onnx.FunctionProto:
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("d", 1)]
    return helper.make_function("d", name, ["a"], ["b"], nodes, sets, attributes=attributes or [])


def called_twice() -> onnx.ModelProto:
    functions = [function("F0", [node("Relu", ["a"], ["b"])])]
    for i in range(30):
        calls = [node(f"F{i}", ["a"], ["t"], domain="d"), node(f"F{i}", ["t"], ["b"], domain="d")]
        functions.append(function(f"F{i + 1}", calls))
    return model([node("F30", ["x"], ["y"], domain="d")], functions=functions)


def called_deep() -> onnx.ModelProto:
    functions = [function("F0", [node("Relu", ["a"], ["b"])])]
    functions += [function(f"F{i + 1}", [node(f"F{i}", ["a"], ["b"], domain="d")]) for i in range(5_000)]
    return model([node("F5000", ["x"], ["y"], domain="d")], functions=functions)


def long_inner_name() -> onnx.ModelProto:
    long = "t" * 500_000
    made = function("F", [node("Relu", ["a"], [long]), node("Neg", [long], ["b"])])
    calls = [node("F", [f"b{i}"], [f"b{i + 1}"], domain="d") for i in range(2_000)]
    calls[0].input[0], calls[-1].output[0] = "x", "y"
    return model(calls, functions=[made])


def large_argument() -> onnx.ModelProto:
    nodes = []
    for i in range(1_000):
        constant = node("Constant", [], [f"c{i}"])
        constant.attribute.add(name="value", ref_attr_name="w", type=4)
        nodes += [constant, node("Add", [f"d{i}", f"c{i}"], [f"d{i + 1}"])]
    nodes += [node("Relu", ["d1000"], ["b"])]
    nodes[1].input[0] = "a"
    value = numpy_helper.from_array(np.ones((100_000, 8), np.float32))
    call = node("F", ["x"], ["y"], domain="d", w=value)
    return model([call], functions=[function("F", nodes, ["w"])])


def attributes() -> onnx.ModelProto:
    made = model([node("Relu", ["x"], ["y"])])
    made.graph.node[0].attribute.extend([onnx.AttributeProto()] * 100_000)
    return made


def many(what: str, item: object) -> Made:
    def made() -> onnx.ModelProto:
        found = model([node("Relu", ["x"], ["y"])])
        part = found.graph if what not in ("functions", "opset_import") else found
        getattr(part, what).extend([item] * 250_000)
        return found

    return made


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("made", "says"),
    [
        (doubled, r"node y \(Expand\): the shape of its output y cannot be inferred"),
        (gathered, r"node g\d \(Gather\): its output g\d has \d+ dimensions"),
        (product, r"node y \(Reshape\): the shape of its output y cannot be inferred"),
        (matched, r"node y \(Reshape\): the shape of its output y cannot be inferred"),
        (steps, r"node c20001? \(Add\): its shape is computed in more than 20,000 steps"),
        (called_twice, r"function F30: its calls become 1,073,741,824 nodes"),
        (called_deep, r"function F\d+: is called 64 deep"),
        (long_inner_name, r"its functions, inlined, become [\d,]+ bytes"),
        (large_argument, r"its functions, inlined, become [\d,]+ bytes"),
        (attributes, r"node y \(Relu\): has 100,000 attributes"),
        (many("node", onnx.NodeProto()), "has 250,001 nodes"),
        (many("value_info", onnx.ValueInfoProto()), "has 250,000 stated types"),
        (many("initializer", onnx.TensorProto()), "has 250,000 initializers"),
        (many("functions", onnx.FunctionProto()), "has 250,000 functions"),
        (many("opset_import", helper.make_opsetid("", 17)), "has 250,002 operator sets"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_would_grow_is_refused(made: Made, says: str, tmp_path: Path) -> None:
    content = made()
    held, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with pytest.raises(ModelError, match=says):
        read(content, tmp_path)
    assert time.process_time() - began < 120
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held < 1 << 20  # KiB


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        ([node("Einsum", ["x"], ["y"], equation="abcd->" + "abcd" * 9)], "its output y has 36 dimensions"),
        ([node("Einsum", ["x"], ["y"], equation="a" * 100_000)], "attribute equation has 100,000 letters"),
        ([node("Unsqueeze", ["x"], ["y"], axes=list(range(4, 5000)))], "attribute axes has 4,996 numbers"),
    ],
)
def test_dimensions_are_bounded(nodes: list[onnx.NodeProto], says: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=rf"node y .*{says}"):
        read(model(nodes, opset=12), tmp_path)


@pytest.mark.thorough
def test_operators_of_one_name_are_told_apart_in_linear_time(tmp_path: Path) -> None:
    nodes = [node("MaxPool", [f"t{i}"], [f"t{i + 1}"], name="a", kernel_shape=[1, 1]) for i in range(3_000)]
    nodes[0].input[0], nodes[-1].output[0] = "x", "y"
    names = [op.name for op in read(model(nodes), tmp_path).network.operators]
    assert names[:3] == ["a", "a_2", "a_3"]
    assert len(set(names)) == 3_000


@pytest.mark.thorough
def test_a_long_row_of_merged_operators_is_one(tmp_path: Path) -> None:
    nodes = [node("Add", [f"t{i}", "x"], [f"t{i + 1}"]) for i in range(3_000)]
    nodes[0].input[0], nodes[-1].output[0] = "x", "y"
    began = time.process_time()
    [op] = read(model(nodes), tmp_path).network.operators
    assert op.type == "+".join(["Add"] * 3_000)
    assert time.process_time() - began < 120


def outside(folder: Path, **entries: object) -> str:
    """What is said of a shape of four numbers whose data lies in another file."""
    shape = TensorProto(name="s", data_type=TensorProto.INT64, dims=[4], data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        shape.external_data.add(key=key, value=str(value))
    try:
        made = read(
            model([node("Reshape", ["x", "s"], ["r"]), node("Softmax", ["r"], ["y"])], [shape]), folder
        )
    except ModelError as problem:
        return str(problem)
    return f"{made.network.tensors[-1].bytes}"


def test_external_data_is_read_as_far_as_the_tensor_goes(tmp_path: Path) -> None:
    right = np.array([1, 3, 8, 8], np.int64).tobytes()
    (tmp_path / "d.bin").write_bytes(b"....." + right + b"more")
    with (tmp_path / "hole.bin").open("wb") as file:
        file.write(right)
        file.truncate(8 << 30)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    assert outside(tmp_path, location="d.bin", offset=5, length=32) == "768"
    assert outside(tmp_path, location="d.bin", offset=5) == "768"
    assert outside(tmp_path, location="hole.bin") == "768"
    for entries, says in (
        ({"location": "d.bin", "offset": 10}, "ends 1 bytes too early"),
        ({"location": "d.bin", "length": 31}, "stated to have 31 bytes; the tensor has 32"),
        ({"location": "d.bin", "length": 10**18}, "the tensor has 32"),
        ({"location": "d.bin", "offset": 10**30}, "beyond any file"),
        ({"location": "d.bin", "offset": -1}, "negative"),
        ({"location": "d.bin", "offset": "9" * 9000}, "no number"),
        ({"location": "pipe"}, "not a regular file"),
        ({"location": "folder"}, "not a regular file"),
        ({"location": "a/" * 5000 + "b"}, "no usable path"),
    ):
        said = outside(tmp_path, **entries)
        assert "tensor s: " in said
        assert says in said
