"""Small `.tflite` files, built field by field: what a stranger's clone tests the reader with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
import tflite

_TYPES = {"float32": 0, "int32": 2, "int64": 4, "bool": 6, "int8": 9, "uint8": 3, "string": 5}


@dataclass
class T:
    """A tensor; `data` makes it a constant. `scale` quantises it (zero point 0)."""

    shape: Sequence[int]
    dtype: str = "float32"
    data: Any = None
    name: str | None = None
    scale: float | None = None
    variable: bool = False


@dataclass
class Op:
    """A node; `options` is the options table's name and its fields."""

    type: str
    inputs: Sequence[int]
    outputs: Sequence[int]
    options: tuple[str, dict[str, int]] | None = None
    custom: str | None = None


@dataclass
class Builder:
    """One file in the making."""

    b: flatbuffers.Builder = field(default_factory=lambda: flatbuffers.Builder(1024))

    def vector(self, items: Sequence[int], kind: str = "int32") -> int:
        return int(self.b.CreateNumpyVector(np.asarray(items, kind)))

    def offsets(self, items: Sequence[int]) -> int:
        self.b.StartVector(4, len(items), 4)
        for item in reversed(items):
            self.b.PrependUOffsetTRelative(item)
        return int(self.b.EndVector())

    def table(self, name: str, **fields: int) -> int:
        getattr(tflite, f"{name}Start")(self.b)
        for key, value in fields.items():
            getattr(tflite, f"{name}Add{key}")(self.b, value)
        return int(getattr(tflite, f"{name}End")(self.b))


def model(
    tensors: Sequence[T],
    operators: Sequence[Op],
    inputs: Sequence[int],
    outputs: Sequence[int],
    *,
    subgraphs: int = 1,
) -> bytes:
    """The file. Tensor 0 is the first of `tensors`; those without a name are called t0, t1, ..."""
    m = Builder()
    buffers = [m.table("Buffer")]
    rows = []
    for i, t in enumerate(tensors):
        index = 0
        if t.data is not None:
            index = len(buffers)
            raw = np.ascontiguousarray(np.asarray(t.data, t.dtype)).reshape(-1).view(np.uint8)
            buffers.append(m.table("Buffer", Data=m.vector(raw, "uint8")))  # type: ignore[arg-type]
        name = m.b.CreateString(f"t{i}" if t.name is None else t.name)
        fields = {"Shape": m.vector(t.shape), "Type": _TYPES[t.dtype], "Buffer": index, "Name": name}
        if t.scale is not None:
            scale, zero = m.vector([t.scale], "float32"), m.vector([0], "int64")  # type: ignore[list-item]
            fields["Quantization"] = m.table("QuantizationParameters", Scale=scale, ZeroPoint=zero)
        if t.variable:
            fields["IsVariable"] = 1
        rows.append(m.table("Tensor", **fields))
    kinds = list(dict.fromkeys((op.type, op.custom) for op in operators))
    codes = []
    for kind, custom in kinds:
        number = getattr(tflite.BuiltinOperator, kind)
        named = {} if custom is None else {"CustomCode": m.b.CreateString(custom)}
        codes.append(
            m.table(
                "OperatorCode", BuiltinCode=number, DeprecatedBuiltinCode=min(number, 127), Version=1, **named
            )
        )
    nodes = []
    for op in operators:
        fields = {"Inputs": m.vector(op.inputs), "Outputs": m.vector(op.outputs)}
        if op.options is not None:
            fields["BuiltinOptions"] = m.table(op.options[0], **op.options[1])
            fields["BuiltinOptionsType"] = getattr(tflite.BuiltinOptions, op.options[0])
        nodes.append(m.table("Operator", OpcodeIndex=kinds.index((op.type, op.custom)), **fields))
    graph = m.table(
        "SubGraph",
        Tensors=m.offsets(rows),
        Inputs=m.vector(inputs),
        Outputs=m.vector(outputs),
        Operators=m.offsets(nodes),
    )
    root = m.table(
        "Model",
        Version=3,
        OperatorCodes=m.offsets(codes),
        Subgraphs=m.offsets([graph] * subgraphs),
        Buffers=m.offsets(buffers),
    )
    m.b.Finish(root, b"TFL3")
    return bytes(m.b.Output())


CONV = (
    "Conv2DOptions",
    {"Padding": 0, "StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1},
)


def branching() -> bytes:
    """Two convolutions over one input, added, flattened, classified: int8, executable everywhere."""
    rng = np.random.default_rng(0)

    def weights(*shape: int) -> np.ndarray[Any, Any]:
        return rng.integers(-127, 128, shape, np.int8)

    tensors = [
        T((1, 8, 8, 4), "int8", name="image", scale=0.05),
        T((8, 3, 3, 4), "int8", weights(8, 3, 3, 4), "w1", 0.01),
        T((8,), "int32", np.zeros(8), "b1", 0.0005),
        T((1, 8, 8, 8), "int8", name="left", scale=0.05),
        T((8, 1, 1, 4), "int8", weights(8, 1, 1, 4), "w2", 0.01),
        T((1, 8, 8, 8), "int8", name="right", scale=0.05),
        T((1, 8, 8, 8), "int8", name="sum", scale=0.1),
        T((2,), "int32", [1, 512], "shape"),
        T((1, 512), "int8", name="flat", scale=0.1),
        T((10, 512), "int8", weights(10, 512), "w3", 0.01),
        T((10,), "int32", np.zeros(10), "b3", 0.001),
        T((1, 10), "int8", name="logits", scale=0.5),
    ]
    return model(
        tensors,
        [
            Op("CONV_2D", [0, 1, 2], [3], CONV),
            Op("CONV_2D", [0, 4, 2], [5], CONV),
            Op("ADD", [3, 5], [6], ("AddOptions", {})),
            Op("RESHAPE", [6, 7], [8], ("ReshapeOptions", {})),
            Op("FULLY_CONNECTED", [8, 9, 10], [11], ("FullyConnectedOptions", {})),
        ],
        [0],
        [11],
    )
