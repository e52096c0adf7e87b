"""ONNX models whose constants, functions or external data never end."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onnx import TensorProto, helper

from hostile.case import case, write
from hostile.onnx_parts import integers, model, node


def _tried(
    name: str, content: bytes | None, what: str, table: str, *, want: Sequence[int] = (2,), dear: bool = False
) -> None:
    if content is not None:
        write(name, content)
    plan = ("plan", name, "--budget", "MR", "--time-limit", "5")
    needs = ("external/", "beside.bin") if name.startswith("external/") else ()
    case(name, *plan, table=table, what=what, want=want, limit=5, needs=needs, dear=dear)


# Constants that the reader computes because a shape needs them.
_tried("honest.onnx", model([node("Relu", ["x"], ["y"])]), "control: relu", "constants", want=(0,))
doubled = [node("Concat", [f"s{i}"] * 2, [f"s{i + 1}"], axis=0) for i in range(40)]
expanded = model([*doubled, node("Expand", ["x", "s40"], ["y"])], [integers("s0", [1, 1])])
what = "a constant of a shape, doubled 40 times by Concat"
_tried("concat_shape.onnx", expanded, what, "constants", dear=True)
flat = [node("Reshape", ["t", "all"], ["f"]), node("Expand", ["x", "f"], ["y"])]
all_ = integers("all", [-1])
product = [
    node("Add", ["c", "r"], ["p"]),
    node("Reshape", ["p", "column"], ["q"]),
    node("Add", ["q", "row"], ["t"]),
]
factors = [
    integers("c", [[1]] * 4096),
    integers("r", [[1] * 4096]),
    integers("column", [-1, 1]),
    integers("row", [[1] * 64]),
]
broadcast = model([*product, *flat], [all_, *factors])
_tried(
    "broadcast_shape.onnx", broadcast, "two constants of 4,096 broadcast to 2^24, then to 2^30", "constants"
)
text = helper.make_tensor("s0", TensorProto.STRING, [1], [b"1"])
joined = [node("StringConcat", [f"s{i}"] * 2, [f"s{i + 1}"]) for i in range(40)]
cast = node("Cast", ["s40"], ["t"], to=TensorProto.INT64)
texts = model([*joined, cast, node("Expand", ["x", "t"], ["y"])], [text], opset=20)
what = "one element, a text, doubled 40 times by StringConcat: few elements are not few bytes"
_tried("text_shape.onnx", texts, what, "constants")
for name, nodes, constants in (
    ("constant_of_shape", [node("ConstantOfShape", ["s"], ["t"])], [integers("s", [2**33])]),
    (
        "range",
        [node("Range", ["a", "b", "d"], ["t"])],
        [integers("a", 0), integers("b", 2**40), integers("d", 1)],
    ),
    ("tile", [node("Tile", ["s", "r"], ["t"])], [integers("s", [1, 2]), integers("r", [2**33])]),
    (
        "gather",
        [node("Gather", ["s", "i"], ["g"]), node("Gather", ["g", "i"], ["t"])],
        [integers("s", [[1] * 64] * 64), integers("i", [0] * 4096)],
    ),
    (
        "matmul",
        [
            node("MatMul", ["c", "r"], ["p"]),
            node("Reshape", ["p", "l"], ["q"]),
            node("MatMul", ["q", "w"], ["t"]),
        ],
        [*factors[:2], integers("l", [-1, 1]), integers("w", [[1] * 64])],
    ),
):
    made = model([*nodes, *flat], [*constants, all_])
    what = f"a shape computed from a huge {name.replace('_', ' ')}"
    _tried(f"{name}_shape.onnx", made, what, "constants")
equation = "abcd->" + "abcd" * 500_000
what = "an equation of 2,000,000 letters: a tensor of so many dimensions"
_tried("einsum.onnx", model([node("Einsum", ["x"], ["y"], equation=equation)]), what, "constants", dear=True)

# Functions, and bodies in bodies.
OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("d", 1)]


def _function(name: str, *nodes: Any) -> Any:
    return helper.make_function("d", name, ["a"], ["b"], nodes, OPSETS)


def _call(name: str, source: str, target: str) -> Any:
    return node(name, [source], [target], domain="d")


functions = [_function("F0", node("Relu", ["a"], ["b"]))]
functions += [
    _function(f"F{i}", _call(f"F{i - 1}", "a", "t"), _call(f"F{i - 1}", "t", "b")) for i in range(1, 30)
]
what = "29 functions, each calls the one before twice: 2^29 nodes when inlined"
_tried("functions.onnx", model([_call("F29", "x", "y")], functions=functions), what, "functions", dear=True)
itself = model([_call("F", "x", "y")], functions=[_function("F", _call("F", "a", "b"))])
_tried("function_itself.onnx", itself, "a function that calls itself", "functions")


def _body(depth: int) -> Any:
    inner = [node("Identity", ["x"], [f"i{depth}"])]
    if depth:
        inner = [_choice(depth - 1, f"i{depth}")]
    output = helper.make_tensor_value_info(f"i{depth}", TensorProto.FLOAT, None)
    return helper.make_graph(inner, f"g{depth}", [], [output])


def _choice(depth: int, result: str) -> Any:
    return node("If", ["c"], [result], then_branch=_body(depth), else_branch=_body(0))


condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
_tried("if_in_if.onnx", model([_choice(25, "y")], inputs=[condition]), "conditions 25 deep", "functions")


# Weights that are declared, and data that lies elsewhere. The shape of a Reshape is data that is looked at.
def _weights(
    dims: Sequence[int],
    external: Mapping[str, str] | None = None,
    op: str = "Conv",
    element: int = TensorProto.FLOAT,
) -> bytes:
    made = TensorProto(name="w", data_type=element, dims=dims)
    for key, value in (external or {}).items():
        made.data_location = TensorProto.EXTERNAL
        made.external_data.add(key=key, value=value)
    return model([node(op, ["x", "w"], ["y"])], [made])


def _hole(path: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(8 << 30)  # takes no place on the disk, and 8 GiB when it is read


huge = _weights([2**31, 3, 2**31, 2**31])
_tried("weight_huge.onnx", huge, "a weight of 2^93 elements without data", "external")
_tried("weight_negative.onnx", _weights([4, -3, 3, 3]), "a weight with a negative size", "external")
write("beside.bin", bytes(432))
write("external/ok.bin", bytes(432))
write("external/link.bin", lambda path: os.symlink("../beside.bin", path))
write("external/up", lambda path: os.symlink("..", path))
write("external/pipe.bin", os.mkfifo)
write("external/zeros.bin", _hole)
for name, location, what, want in (
    ("honest", "ok.bin", "control: data in the model's folder", (0,)),
    ("outside", "../beside.bin", "data outside the model's folder", (2,)),
    ("backslash", "..\\beside.bin", "data outside, written as on Windows", (2,)),
    ("link", "link.bin", "data behind a symbolic link that leads outside", (2,)),
    ("link_folder", "up/beside.bin", "data behind a linked folder", (2,)),
):
    made = _weights([4, 3, 3, 3], {"location": location, "offset": "0", "length": "432"})
    _tried(f"external/{name}.onnx", made, what, "external", want=want)


def _absolute(path: Path) -> None:
    location = str(path.parent.parent / "beside.bin")
    path.write_bytes(_weights([4, 3, 3, 3], {"location": location, "offset": "0", "length": "432"}))


write("external/absolute.onnx", _absolute)
_tried("external/absolute.onnx", None, "data at an absolute path", "external")
for name, external, what in (
    (
        "length_huge",
        {"location": "ok.bin", "offset": "0", "length": str(10**18)},
        "a shape whose data is stated to be 10^18 bytes",
    ),
    ("pipe", {"location": "pipe.bin"}, "a shape whose data is a named pipe: opening it never ends"),
    (
        "no_length",
        {"location": "zeros.bin"},
        "a shape of 32 bytes in a file of 8 GiB of zeros, no length stated: all of it is read",
    ),
    ("itself", {"location": "itself.onnx"}, "a shape whose data is the model's own file"),
):
    made = _weights([4], external, "Reshape", TensorProto.INT64)
    _tried(f"external/{name}.onnx", made, what, "external", dear=name in ("pipe", "no_length"))
