"""Tables of tensors and operators as the bytes of a `.tflite` file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from onchip.base.errors import MissingExtra

__all__ = ["FileOperator", "FileTensor", "write"]

ALIGNMENT = 16
"""The alignment of constants in the file: interpreters on microcontrollers read them in place."""

VERSION = 3


@dataclass(frozen=True)
class FileTensor:
    """A tensor of the file; with `data` it is a constant, without `scales` it is not quantised."""

    name: str
    shape: tuple[int, ...]
    element: str = "INT8"
    data: np.ndarray[Any, Any] | None = None
    scales: tuple[float, ...] = ()
    zero_points: tuple[int, ...] = ()
    axis: int = 0
    variable: bool = False


@dataclass(frozen=True)
class FileOperator:
    """An operator by the schema's name; operands are tensors by position, options a table and its fields."""

    type: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    table: str = ""
    options: Mapping[str, int | float | str] = field(default_factory=dict)


Subgraph: TypeAlias = tuple[Sequence[FileTensor], Sequence[FileOperator]]


def write(
    tensors: Sequence[FileTensor],
    operators: Sequence[FileOperator],
    inputs: Sequence[int],
    outputs: Sequence[int],
    others: Sequence[Subgraph] = (),
) -> bytes:
    """Return the file, with further subgraphs that take and give nothing.

    Raises `MissingExtra` without the packages for the format.
    """
    try:
        import flatbuffers
        import tflite
    except ImportError:
        raise MissingExtra("mcu", "tflite") from None
    graphs = [((tensors, operators), inputs, outputs), *((other, (), ()) for other in others)]
    return _Writer(flatbuffers.Builder(1 << 16), tflite).file(graphs)


class _Writer:
    def __init__(self, builder: Any, tflite: Any) -> None:
        self.b, self.tflite = builder, tflite

    def file(self, graphs: Sequence[tuple[Subgraph, Sequence[int], Sequence[int]]]) -> bytes:
        buffers = [self.table("Buffer")]
        held = []
        for (tensors, _), _, _ in graphs:
            rows = []
            for tensor in tensors:
                buffer = 0
                if tensor.data is not None:
                    buffer = len(buffers)
                    buffers.append(self.table("Buffer", Data=self.blob(tensor.data)))
                rows.append(self.tensor(tensor, buffer))
            held.append(rows)
        kinds = list(dict.fromkeys(op.type for (_, operators), _, _ in graphs for op in operators))
        codes = [self.code(kind) for kind in kinds]
        made = []
        for ((_, operators), inputs, outputs), rows in zip(graphs, held, strict=True):
            nodes = [self.operator(op, kinds.index(op.type)) for op in operators]
            graph = self.table(
                "SubGraph",
                Tensors=self.offsets(rows),
                Inputs=self.numbers(inputs, "<i4"),
                Outputs=self.numbers(outputs, "<i4"),
                Operators=self.offsets(nodes),
            )
            made.append(graph)
        root = self.table(
            "Model",
            Version=VERSION,
            OperatorCodes=self.offsets(codes),
            Subgraphs=self.offsets(made),
            Buffers=self.offsets(buffers),
        )
        self.b.Finish(root, b"TFL3")
        return bytes(self.b.Output())

    def tensor(self, tensor: FileTensor, buffer: int) -> int:
        fields = {
            "Name": self.b.CreateString(tensor.name),
            "Shape": self.numbers(tensor.shape, "<i4"),
            "Type": getattr(self.tflite.TensorType, tensor.element),
            "Buffer": buffer,
        }
        if tensor.scales:
            scales, zeros = self.numbers(tensor.scales, "<f4"), self.numbers(tensor.zero_points, "<i8")
            fields["Quantization"] = self.table(
                "QuantizationParameters", Scale=scales, ZeroPoint=zeros, QuantizedDimension=tensor.axis
            )
        if tensor.variable:
            fields["IsVariable"] = True
        return self.table("Tensor", **fields)

    def code(self, kind: str) -> int:
        number = getattr(self.tflite.BuiltinOperator, kind)
        return self.table(
            "OperatorCode", BuiltinCode=number, DeprecatedBuiltinCode=min(number, 127), Version=1
        )

    def operator(self, op: FileOperator, code: int) -> int:
        fields = {
            "OpcodeIndex": code,
            "Inputs": self.numbers(op.inputs, "<i4"),
            "Outputs": self.numbers(op.outputs, "<i4"),
        }
        if op.table:
            options = {
                key: self.b.CreateString(value) if isinstance(value, str) else value
                for key, value in op.options.items()
            }
            fields["BuiltinOptions"] = self.table(op.table, **options)
            fields["BuiltinOptionsType"] = getattr(self.tflite.BuiltinOptions, op.table)
        return self.table("Operator", **fields)

    # -- pieces ----------------------------------------------------------------------------------------------

    def table(self, name: str, **fields: Any) -> int:
        getattr(self.tflite, f"{name}Start")(self.b)
        for key, value in fields.items():
            getattr(self.tflite, f"{name}Add{key}")(self.b, value)
        return int(getattr(self.tflite, f"{name}End")(self.b))

    def numbers(self, values: Sequence[float], dtype: str) -> int:
        return int(self.b.CreateNumpyVector(np.asarray(values, dtype)))

    def offsets(self, items: Sequence[int]) -> int:
        self.b.StartVector(4, len(items), 4)
        for item in reversed(items):
            self.b.PrependUOffsetTRelative(item)
        return int(self.b.EndVector())

    def blob(self, data: np.ndarray[Any, Any]) -> int:
        """Append bytes on a boundary of `ALIGNMENT`, little-endian; return their place."""
        raw = data.astype(data.dtype.newbyteorder("<")).tobytes()
        self.b.StartVector(1, len(raw), ALIGNMENT)
        self.b.head -= len(raw)
        self.b.Bytes[self.b.head : self.b.head + len(raw)] = raw
        return int(self.b.EndVector())
