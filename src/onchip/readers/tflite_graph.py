"""The bytes of a `.tflite` file as plain tables: tensors, nodes, inputs, outputs, and nothing of flatbuffers.

A flatbuffer consists of offsets, and a damaged one points anywhere. This module takes everything out of the
file, and first compares every count with the size of the file, so that no other module meets a wrong offset.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onchip.base.allowance import spend
from onchip.base.errors import MissingExtra, ModelError
from onchip.base.limits import limits
from onchip.readers.elements import NAMES, value_bytes

__all__ = ["Node", "Quantisation", "TensorRow", "TfliteGraph", "parse", "schema"]

MAX_RANK = 16
MAX_OPERANDS = 4096

_ELEMENT = {
    "FLOAT32": 1, "FLOAT16": 10, "INT32": 6, "UINT8": 2, "INT64": 7, "STRING": 8, "BOOL": 9, "INT16": 5,
    "COMPLEX64": 14, "INT8": 3, "FLOAT64": 11, "COMPLEX128": 15, "UINT64": 13, "UINT32": 12, "UINT16": 4,
    "INT4": 22, "BFLOAT16": 16,
}  # fmt: skip
"""ONNX element type by TFLite's name: the readers use ONNX's numbers."""

_ACTIVATION = "FusedActivationFunction"
_WINDOW = ("Padding", "StrideH", "StrideW", _ACTIVATION)
_OPTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "ADD": ("AddOptions", (_ACTIVATION,)),
    "SUB": ("SubOptions", (_ACTIVATION,)),
    "MUL": ("MulOptions", (_ACTIVATION,)),
    "DIV": ("DivOptions", (_ACTIVATION,)),
    "CONV_2D": ("Conv2DOptions", (*_WINDOW, "DilationHFactor", "DilationWFactor")),
    "DEPTHWISE_CONV_2D": (
        "DepthwiseConv2DOptions",
        (*_WINDOW, "DilationHFactor", "DilationWFactor", "DepthMultiplier"),
    ),
    "FULLY_CONNECTED": ("FullyConnectedOptions", (_ACTIVATION, "WeightsFormat")),
    **dict.fromkeys(
        ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"),
        ("Pool2DOptions", (*_WINDOW, "FilterHeight", "FilterWidth")),
    ),
    "RESIZE_BILINEAR": ("ResizeBilinearOptions", ("AlignCorners", "HalfPixelCenters")),
    "RESIZE_NEAREST_NEIGHBOR": ("ResizeNearestNeighborOptions", ("AlignCorners", "HalfPixelCenters")),
    "SOFTMAX": ("SoftmaxOptions", ("Beta",)),
    "CALL_ONCE": ("CallOnceOptions", ("InitSubgraphIndex",)),
    "STRIDED_SLICE": (
        "StridedSliceOptions",
        ("BeginMask", "EndMask", "EllipsisMask", "NewAxisMask", "ShrinkAxisMask", "Offset"),
    ),
    "UNPACK": ("UnpackOptions", ("Axis", "Num")),
    "PACK": ("PackOptions", ("Axis",)),
    "GATHER": ("GatherOptions", ("Axis", "BatchDims")),
    "SPACE_TO_DEPTH": ("SpaceToDepthOptions", ("BlockSize",)),
    "DEPTH_TO_SPACE": ("DepthToSpaceOptions", ("BlockSize",)),
    "MIRROR_PAD": ("MirrorPadOptions", ("Mode",)),
    "LEAKY_RELU": ("LeakyReluOptions", ("Alpha",)),
    "GELU": ("GeluOptions", ("Approximate",)),
    "BATCH_MATMUL": ("BatchMatMulOptions", ("AdjX", "AdjY")),
    "TRANSPOSE_CONV": ("TransposeConvOptions", _WINDOW),
    "SVDF": ("SVDFOptions", ("Rank", _ACTIVATION)),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (
        "UnidirectionalSequenceLSTMOptions",
        (_ACTIVATION, "TimeMajor", "CellClip", "ProjClip"),
    ),
    "CONCATENATION": ("ConcatenationOptions", ("Axis", _ACTIVATION)),
}
"""The options that readers use: the table's name and its fields."""

_REAL = frozenset({"Beta", "Alpha", "CellClip", "ProjClip"})
"""Those fields that are not integers."""


@dataclass(frozen=True, slots=True)
class Quantisation:
    """The scales of a tensor's integers: one for all, or one for each index of `axis`."""

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int


@dataclass(frozen=True, slots=True)
class TensorRow:
    """One tensor of the file. `element` is an ONNX element type, 0 for anything else (a resource, ...).

    `data` is the range of the file that holds a constant; None for a computed or input tensor. `stated` is
    the type's name in the file.
    """

    index: int
    name: str
    shape: tuple[int, ...]
    element: int
    stated: str
    data: tuple[int, int] | None
    variable: bool
    quantisation: Quantisation | None = None

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Node:
    """One operator of the file; operands are tensor indices, -1 for one that is omitted."""

    index: int
    type: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: dict[str, int] = field(default_factory=dict)
    reals: dict[str, float] = field(default_factory=dict)
    resource: str = ""
    """The name of the variable that a VAR_HANDLE gives a handle of."""

    @property
    def label(self) -> str:
        """The node's name in messages and networks: the type, and the position in the file."""
        return f"{self.type}.{self.index}"


@dataclass(frozen=True)
class TfliteGraph:
    """The first subgraph of a model, and the file it came from."""

    where: str
    content: bytes
    tensors: tuple[TensorRow, ...]
    nodes: tuple[Node, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    others: tuple[TfliteGraph, ...] = ()
    """The further subgraphs of a model that is read with its states."""

    def refuse(self, reason: str, item: str | None = None) -> ModelError:
        """Return the error that names file and item."""
        return ModelError(reason, where=self.where, item=item)

    def constant(self, tensor: int) -> np.ndarray[Any, Any] | None:
        """Return a constant of integers in its shape, as it lies in the file; None for anything else."""
        row = self.tensors[tensor]
        kind = {2: "u1", 3: "i1", 5: "<i2", 6: "<i4", 7: "<i8"}.get(row.element)
        if row.data is None or kind is None or min(row.shape, default=1) < 0:
            return None
        start, end = row.data
        values = np.frombuffer(self.content, kind, (end - start) // np.dtype(kind).itemsize, start)
        return values.reshape(row.shape) if values.size == row.elements else None

    def numbers(self, tensor: int) -> list[int] | None:
        """Return the values of a small constant of integers; None for anything else."""
        row = self.tensors[tensor]
        kind = {6: "<i4", 7: "<i8"}.get(row.element)
        if row.data is None or kind is None or row.elements > MAX_RANK * 2:
            return None
        start, end = row.data
        return [int(v) for v in np.frombuffer(self.content[start:end], kind)]


def schema() -> Any:
    """Return the generated accessors of the file format. Raises `MissingExtra` without the package."""
    try:
        import tflite
    except ImportError:
        raise MissingExtra("tflite", "tflite") from None
    return tflite


def parse(content: bytes, *, where: str, states: bool = False) -> TfliteGraph:
    """Return the graph in the bytes of a `.tflite` file.

    With `states` variables that are kept between inferences may be in it, and the subgraph that sets them up.
    Raises `ModelError` in one line for any other file, for damage, several subgraphs or control flow, and for
    tensors that are not there; `MissingExtra` without the package that knows the format.
    """
    tflite = schema()
    if len(content) < 8 or content[4:8] != b"TFL3":
        raise ModelError("is no TensorFlow Lite model (it lacks the mark TFL3)", where=where)
    with _damage(where):
        model = tflite.Model.GetRootAs(content, 0)
        count = _count(model.SubgraphsLength(), limits().operators, "subgraphs", content, 4)
        taken = _Taken(content)
        codes = _operator_types(tflite, model, content, where, taken)
        if count == 0:
            raise ModelError("has no subgraph", where=where)
        refused = _NOT_READ if states else _NOT_READ | _STATES
        found: list[TfliteGraph] = []
        for i in range(count if states else 1):
            graph = model.Subgraphs(i)
            nodes = _nodes(tflite, graph, codes, content, where, taken, refused)
            if count > 1 and not states:
                raise ModelError(f"has {count} subgraphs; a model with one can be read", where=where)
            found.append(
                TfliteGraph(
                    where,
                    content,
                    _tensors(tflite, model, graph, content, where, taken),
                    nodes,
                    _operands(graph, "Inputs", content, taken),
                    _operands(graph, "Outputs", content, taken),
                )
            )
        return replace(found[0], others=tuple(found[1:]))


# -- taking things out of the file ---------------------------------------------------------------------------


class _Damaged(Exception):
    pass


@contextmanager
def _damage(where: str) -> Iterator[None]:
    """Turn the consequences of a wrong offset into one line."""
    try:
        yield
    except _Damaged as problem:
        raise ModelError(f"is damaged: {problem}", where=where) from None
    except (struct.error, IndexError, ValueError, TypeError, OverflowError, AttributeError, AssertionError):
        raise ModelError("is damaged: an offset leads out of the file", where=where) from None


def _count(count: int, most: int, what: str, content: bytes, width: int) -> int:
    """Return a vector's length. Raises `_Damaged` if a file of this size cannot hold it."""
    if count * width > len(content):
        raise _Damaged(f"it claims {count:,} {what} in {len(content):,} bytes")
    if count > most:
        raise _Damaged(f"it has {count:,} {what}, more than {most:,}")
    return count


class _Taken:
    """The bytes taken out of the file: in a flatbuffer any number of tables may share a name or a list."""

    def __init__(self, content: bytes) -> None:
        self.left = 16 * len(content) + (1 << 20)

    def add(self, size: int, item: str) -> None:
        """Count bytes; refuse a file that gives far more than it has, as one made to fill memory."""
        spend(item)
        self.left -= size
        if self.left < 0:
            raise _Damaged(f"what its tables share, up to {item}, is many times as large as the file")


def _operands(table: Any, what: str, content: bytes, taken: _Taken) -> tuple[int, ...]:
    count = _count(getattr(table, f"{what}Length")(), MAX_OPERANDS, "operands of one operator", content, 4)
    taken.add(4 * count, what.lower())
    return tuple(int(getattr(table, what)(i)) for i in range(count))


VELA = "CUSTOM:ethos-u"
"""The operator in which Vela puts all that it has compiled."""


def _operator_types(tflite: Any, model: Any, content: bytes, where: str, taken: _Taken) -> list[str]:
    known = {code: name for name, code in vars(tflite.BuiltinOperator).items() if not name.startswith("_")}
    types = []
    for i in range(_count(model.OperatorCodesLength(), limits().operators, "operator codes", content, 4)):
        code = model.OperatorCodes(i)
        # Old files have the code in a byte, and 127 there refers to the wider field.
        number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        name = known.get(number)
        if name is None:
            raise ModelError(f"is not known (operator code {number})", where=where, item=f"operator code {i}")
        if name == "CUSTOM":
            raw = code.CustomCode() or b""
            taken.add(len(raw), f"operator code {i}")
            name = f"CUSTOM:{_text(raw)}"
        if name == VELA:
            raise ModelError(
                "is what Vela makes of a network: commands for an Ethos-U; give the file from before Vela",
                where=where, item=name,
            )  # fmt: skip
        types.append(name)
    return types


def _nodes(
    tflite: Any,
    graph: Any,
    codes: list[str],
    content: bytes,
    where: str,
    taken: _Taken,
    refused: Mapping[str, str],
) -> tuple[Node, ...]:
    nodes = []
    for i in range(_count(graph.OperatorsLength(), limits().operators, "operators", content, 4)):
        operator = graph.Operators(i)
        index = operator.OpcodeIndex()
        if not 0 <= index < len(codes):
            raise ModelError(f"has operator code {index} of {len(codes)}", where=where, item=f"operator {i}")
        kind = codes[index]
        if kind in refused:
            raise ModelError(f"is {refused[kind]}, which cannot be planned", where=where, item=f"{kind}.{i}")
        inputs, outputs = (_operands(operator, what, content, taken) for what in ("Inputs", "Outputs"))
        options = _options(tflite, operator, kind)
        whole = {key: int(value) for key, value in options.items() if key not in _REAL}
        reals = {key: float(value) for key, value in options.items() if key in _REAL}
        resource = _resource(tflite, operator, taken) if kind == "VAR_HANDLE" else ""
        nodes.append(Node(i, kind, inputs, outputs, whole, reals, resource))
    return tuple(nodes)


_NOT_READ = {
    **dict.fromkeys(("IF", "WHILE", "CALL", "STABLEHLO_WHILE"), "control flow"),
    "STABLEHLO_COMPOSITE": "a composite with a subgraph of its own",
    "DELEGATE": "a delegate's",
    **dict.fromkeys(
        ("HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_SIZE", "HASHTABLE_LOOKUP"),
        "state kept between inferences",
    ),
}
_STATES = {
    "CALL_ONCE": "the setting up of state kept between inferences",
    **dict.fromkeys(("VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE"), "state kept between inferences"),
}
"""Operators that only a reading with states takes."""


def _resource(tflite: Any, operator: Any, taken: _Taken) -> str:
    """Return the name of a handle's variable."""
    table = operator.BuiltinOptions()
    if table is None or operator.BuiltinOptionsType() != tflite.BuiltinOptions.VarHandleOptions:
        return ""
    options = tflite.VarHandleOptions()
    options.Init(table.Bytes, table.Pos)
    parts = [options.Container() or b"", options.SharedName() or b""]
    taken.add(sum(map(len, parts)), "variables")
    return "/".join(_text(part) for part in parts if part)


def _options(tflite: Any, operator: Any, kind: str) -> dict[str, int | float]:
    """Return the fields in `_OPTIONS`; none if the operator carries another kind of options."""
    if kind not in _OPTIONS:
        return {}
    name, fields = _OPTIONS[kind]
    table = operator.BuiltinOptions()
    if table is None or operator.BuiltinOptionsType() != getattr(tflite.BuiltinOptions, name):
        return {}
    options = getattr(tflite, name)()
    options.Init(table.Bytes, table.Pos)
    return {key: getattr(options, key)() for key in fields}


def _tensors(
    tflite: Any, model: Any, graph: Any, content: bytes, where: str, out: _Taken
) -> tuple[TensorRow, ...]:
    stated = {code: name for name, code in vars(tflite.TensorType).items() if not name.startswith("_")}
    buffers = _count(model.BuffersLength(), limits().tensors * 2, "buffers", content, 4)
    taken: dict[str, int] = {}
    rows = []
    for i in range(_count(graph.TensorsLength(), limits().tensors, "tensors", content, 4)):
        tensor = graph.Tensors(i)
        raw = tensor.Name() or b""
        out.add(len(raw), f"tensor {i}")
        name = _unique(_text(raw) or f"tensor{i}", taken)
        rank = _count(tensor.ShapeLength(), MAX_RANK, "dimensions of one tensor", content, 4)
        shape = tuple(int(tensor.Shape(d)) for d in range(rank))
        kind = stated.get(tensor.Type(), f"type {tensor.Type()}")
        if not 0 <= tensor.Buffer() < max(buffers, 1):
            raise ModelError(
                f"lies in buffer {tensor.Buffer()} of {buffers}", where=where, item=f"tensor {name}"
            )
        data = _data(model.Buffers(tensor.Buffer()), content) if buffers else None
        quantisation = _quantisation(tensor.Quantization(), content)
        if quantisation is not None:
            out.add(4 * len(quantisation.scales) + 8 * len(quantisation.zero_points), f"tensor {name}")
        element, variable = _ELEMENT.get(kind, 0), bool(tensor.IsVariable())
        row = TensorRow(i, name, shape, element, kind, data, variable, quantisation)
        if data is not None and tensor.Sparsity() is None:
            _check_size(row, data[1] - data[0], where)
        rows.append(row)
    return tuple(rows)


def _quantisation(table: Any, content: bytes) -> Quantisation | None:
    """Return the scales of a tensor; None if it has none."""
    if table is None or not table.ScaleLength():
        return None
    _count(table.ScaleLength(), len(content), "scales of one tensor", content, 4)
    _count(table.ZeroPointLength(), len(content), "zero points of one tensor", content, 8)
    zero_points = table.ZeroPointAsNumpy().tolist() if table.ZeroPointLength() else []
    return Quantisation(
        tuple(table.ScaleAsNumpy().tolist()), tuple(zero_points), int(table.QuantizedDimension())
    )


def _data(buffer: Any, content: bytes) -> tuple[int, int] | None:
    """Return the range of the file that a buffer fills."""
    length, beyond = buffer.DataLength(), buffer.Offset()
    if length:
        _count(length, len(content), "bytes in one buffer", content, 1)
        start = buffer._tab.Vector(buffer._tab.Offset(4))
    elif beyond > 1:  # behind the flatbuffer, in files of more than 2 GB; 1 and 0 say that there is none
        start, length = beyond, buffer.Size()
    else:
        return None
    if not 0 <= start <= start + length <= len(content):
        raise _Damaged("a buffer lies outside the file")
    return int(start), int(start + length)


def _check_size(row: TensorRow, length: int, where: str) -> None:
    """Refuse a constant that is larger or smaller than its shape: it would be read past its end."""
    if row.element in (0, 8) or min(row.shape, default=1) < 0:
        return
    needed = value_bytes(row.element, row.shape, "file")
    if length != needed and not (row.element == 22 and length == row.elements):
        raise ModelError(
            f"holds {length:,} bytes; its shape {list(row.shape)} of {NAMES[row.element]} needs {needed:,}",
            where=where,
            item=f"tensor {row.name}",
        )


def _text(raw: bytes | None) -> str:
    return "" if raw is None else bytes(raw).decode("utf-8", "replace")


def _unique(name: str, taken: dict[str, int]) -> str:
    """Return the name, numbered if another tensor has it."""
    candidate = name
    while candidate in taken:
        taken[name] += 1
        candidate = f"{name}_{taken[name]}"
    taken[candidate] = 1
    return candidate
