"""Weights for networks that come without: seeded, variance-preserving, independent of the order of
requests."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onchip.base.errors import ModelError
from onchip.readers.external import is_external, read_array
from onchip.run.moments import Moments, Spread, follow

if TYPE_CHECKING:
    import onnx

__all__ = ["Weights", "draw_input", "fill_weights", "seeded_inputs", "seeded_weights"]

Array = np.ndarray[Any, Any]

_FILLS_KEPT = (0.0, 1.0)
_MATRIX_OPERANDS = {"Conv": (1,), "ConvTranspose": (1,), "Gemm": (0, 1), "MatMul": (0, 1)}
_VECTOR_OPERANDS = {
    "Conv": (2,),
    "ConvTranspose": (2,),
    "Gemm": (2,),
    "BatchNormalization": (1, 2, 3, 4),
    "InstanceNormalization": (1, 2),
    "LayerNormalization": (1, 2),
    "Mul": (0, 1),
    "Add": (0, 1),
    "PRelu": (1,),
}
_FILLED = (1, 2, 3, 10, 11, 16)
"""ONNX's element types of weights: floating-point numbers and integers of 8 bits."""
_LAYOUT = frozenset({"Transpose", "Reshape", "Identity", "Unsqueeze", "Squeeze", "Flatten", "Cast", "Expand"})


@dataclass(frozen=True)
class Weights:
    """Every constant of a model that needs no computing.

    `values` holds them by ONNX name (read-only arrays, one copy); `seeded` names those that had no data, and
    `replaced` those that a constant-fill node made (one value everywhere, so that no output would depend on
    the input).
    """

    values: Mapping[str, Array]
    seeded: tuple[str, ...]
    replaced: tuple[str, ...]


def seeded_weights(
    model: onnx.ModelProto,
    seed: int,
    folder: Path | None = None,
    given: Mapping[str, Array] | None = None,
    *,
    where: str = "",
) -> Weights:
    """Return the model's initializers: those without data are taken from `given`, else filled from `seed`.

    Each value depends on the seed, its name and the graph, never on the order of filling. Batch-norm
    variances lie in [0.5, 1.5], scales around 1, biases and means near 0; matrices and kernels keep the
    second moment of their results at 1 (see `moments`). `folder` is the folder of external data;
    values of `Constant` nodes that lie there are among the result's. Raises `ModelError` naming `where` and
    the tensor when its data cannot be read or no random values exist for its type.
    """
    graph = model.graph
    values: dict[str, Array] = {}
    empty: dict[str, tuple[tuple[int, ...], int]] = {}
    for tensor in graph.initializer:
        if given and tensor.name in given:
            values[tensor.name] = given[tensor.name]
        elif has_data(tensor):
            array = read_array(tensor, folder, where=where)
            array.flags.writeable = False
            values[tensor.name] = array
        else:
            empty[tensor.name] = (tuple(tensor.dims), tensor.data_type)
    seeded = tuple(empty)
    constants = dict(_constants(graph, folder, where))
    fills = dict(_constant_fills(graph, {**constants, **values}, where))
    empty.update(fills)

    known = {name: _moments(array) for name, array in values.items() if array.dtype.kind == "f"}
    known |= {name: _moments(array) for name, array in constants.items() if array.dtype.kind == "f"}
    values |= {name: constants[name] for name in _external_constants(graph)}
    spreads = follow(graph, {n: shape for n, (shape, _) in empty.items()}, known, _shapes(graph, values))
    for name, (shape, element) in empty.items():
        values[name] = _draw(name, shape, element, spreads[name], seed)
    return Weights(values, seeded, tuple(fills))


def fill_weights(model: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """Return the model with data in every initializer, and seeded initializers for constant-fill weights.

    It needs one more copy of the weights than `seeded_weights`, which the executor uses. Raises `ModelError`
    as that does.
    """
    import onnx
    from onnx import numpy_helper

    weights = seeded_weights(model, seed)
    new = (*weights.seeded, *weights.replaced)
    filled = onnx.ModelProto()
    filled.CopyFrom(model)
    del filled.graph.initializer[:], filled.graph.node[:]
    filled.graph.initializer.extend(t for t in model.graph.initializer if t.name not in new)
    filled.graph.initializer.extend(numpy_helper.from_array(weights.values[n], n) for n in new)
    replaced = set(weights.replaced)
    filled.graph.node.extend(n for n in model.graph.node if not replaced.intersection(n.output))
    return filled


def seeded_inputs(
    model: onnx.ModelProto, shapes: Mapping[str, tuple[int, tuple[int, ...]]], seed: int
) -> dict[str, Array]:
    """Return a value for each graph input; `shapes` gives (element type, shape): normal for floating point.

    Integers that index a table are drawn within the table; other integers are small.
    """
    rows = {t.name: tuple(t.dims) for t in model.graph.initializer}
    tables: dict[str, int] = {}
    for node in model.graph.node:
        if node.op_type == "Gather" and node.input[0] in rows and node.input[1] in shapes:
            axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
            size = rows[node.input[0]][axis]
            tables[node.input[1]] = min(size, tables.get(node.input[1], size))
    result = {}
    for name, (element, shape) in shapes.items():
        result[name] = draw_input(name, _dtype(element, f"input {name}"), shape, seed, tables.get(name))
    return result


def draw_input(
    name: str, dtype: np.dtype[Any], shape: tuple[int, ...], seed: int, rows: int | None = None
) -> Array:
    """Return a value for one input, below `rows` if it indexes a table; raises `ModelError` for odd types."""
    rng = _generator(seed, "input", name)
    if dtype.kind == "f" or dtype.name == "bfloat16":
        return rng.standard_normal(shape, np.float32).astype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        low, high = {"u": (0, 256), "i": (-128, 128)}[dtype.kind] if dtype.itemsize == 1 else (0, 8)
        low, high = (low, high) if rows is None else (0, rows)
        return rng.integers(low, high, shape).astype(dtype)
    raise ModelError(f"no random values for element type {dtype}", item=f"input {name}")


def has_data(tensor: onnx.TensorProto) -> bool:
    """Return False for an initializer that states only its type and shape."""
    if tensor.data_location == 1 or tensor.raw_data or 0 in tensor.dims:
        return True
    return bool(
        tensor.float_data
        or tensor.int32_data
        or tensor.int64_data
        or tensor.double_data
        or tensor.uint64_data
        or tensor.string_data
    )


def _generator(seed: int, *labels: str) -> np.random.Generator:
    digest = hashlib.sha256(repr((seed, *labels)).encode("utf-8", "surrogatepass")).digest()
    return np.random.Generator(np.random.SFC64(int.from_bytes(digest[:16], "little")))


def _dtype(element: int, item: str) -> np.dtype[Any]:
    from onnx import helper

    try:
        dtype: np.dtype[Any] = np.dtype(helper.tensor_dtype_to_np_dtype(element))
    except (KeyError, ValueError, TypeError):
        raise ModelError(f"element type {element} is not supported", item=item) from None
    return dtype


def _draw(name: str, shape: tuple[int, ...], element: int, spread: Spread, seed: int) -> Array:
    dtype, rng = _dtype(element, f"initializer {name}"), _generator(seed, "weight", name)
    if dtype.kind == "f" or element == 16:
        values = rng.random(shape, np.float32)
        values *= np.float32(spread.high - spread.low)
        values += np.float32(spread.low)
        array = values.astype(dtype, copy=False)
    elif dtype.kind == "b":
        array = rng.random(shape) < 0.5
    elif dtype.kind in "iu" and dtype.itemsize == 1:
        low = -64 if dtype.kind == "i" else 64
        array = rng.integers(low, low + 129, shape).astype(dtype)
    elif dtype.kind in "iu":
        # 32-bit biases of quantised operators; wider integers are indices and shapes, where 0 is always
        # legal.
        array = rng.integers(-100, 101, shape).astype(dtype) if dtype == np.int32 else np.zeros(shape, dtype)
    else:
        raise ModelError(f"no random values for element type {dtype}", item=f"initializer {name}")
    array.flags.writeable = False
    return array


def _moments(array: Array) -> Moments:
    flat = array.reshape(-1)
    flat = flat[:: max(flat.size >> 16, 1)].astype(np.float64)
    flat = flat[np.isfinite(flat)]
    return Moments(float(flat.mean()), float(flat.var())) if flat.size else Moments(0.0, 1.0)


def _constants(graph: onnx.GraphProto, folder: Path | None, where: str) -> Iterator[tuple[str, Array]]:
    for node in graph.node:
        if node.op_type == "Constant":
            for attribute in node.attribute:
                if attribute.name == "value" and has_data(attribute.t):
                    array = read_array(attribute.t, folder, where=where)
                    array.flags.writeable = False
                    yield node.output[0], array
                elif attribute.name == "value_float":
                    yield node.output[0], np.array(attribute.f, np.float32)


def _external_constants(graph: onnx.GraphProto) -> Iterator[str]:
    """Yield constants whose nodes cannot be handed to a runtime unchanged: it does not know their folder."""
    for node in graph.node:
        if node.op_type == "Constant" and any(a.name == "value" and is_external(a.t) for a in node.attribute):
            yield node.output[0]


def _shapes(graph: onnx.GraphProto, values: Mapping[str, Array]) -> dict[str, tuple[int, ...]]:
    found = {name: array.shape for name, array in values.items()}
    for info in (*graph.input, *graph.value_info, *graph.output):
        if info.type.HasField("tensor_type"):
            found[info.name] = tuple(d.dim_value for d in info.type.tensor_type.shape.dim)
    return found


def _constant_fills(
    graph: onnx.GraphProto, constants: Mapping[str, Array], where: str
) -> Iterator[tuple[str, tuple[tuple[int, ...], int]]]:
    """Yield outputs of constant-fill nodes that stand in for weights, with (shape, element type)."""
    readers: dict[str, list[tuple[str, int, str]]] = {}
    for node in graph.node:
        for i, name in enumerate(node.input):
            readers.setdefault(name, []).append((node.op_type, i, node.output[0]))

    def stands_for_weight(name: str, fill: float) -> bool:
        for kind, operand, output in readers.get(name, ()):
            if operand in _MATRIX_OPERANDS.get(kind, ()):
                return True
            if operand in _VECTOR_OPERANDS.get(kind, ()) and fill not in _FILLS_KEPT:
                return True
            passes = kind in _LAYOUT or kind == "DequantizeLinear"
            if passes and operand == 0 and stands_for_weight(output, fill):
                return True
        return False

    for node in graph.node:
        if node.op_type != "ConstantOfShape" or node.input[0] not in constants:
            continue
        fill = next((a.t for a in node.attribute if a.name == "value"), None)
        if fill is None or fill.data_type not in _FILLED:
            continue
        value = next((float(v) for v in read_array(fill, None, where=where).reshape(-1)[:1]), 0.0)
        shape = tuple(int(d) for d in constants[node.input[0]].reshape(-1))
        if math.prod(shape) > 1 and stands_for_weight(node.output[0], value):
            yield node.output[0], (shape, fill.data_type)
