"""An operator that runs as it is: all of its nodes, on operands that are poison outside of the scratch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from onchip.base.errors import InputError
from onchip.network import Operator
from onchip.network.access import access_of
from onchip.network.maps import Maps
from onchip.run.onnx_engine import OnnxEngine
from onchip.run.tiled.chain import Chain, Parameter, chain_of
from onchip.run.tiled.maps import Map

if TYPE_CHECKING:
    import onnx

__all__ = ["ELEMENTS", "chain_or_nodes"]

Array = np.ndarray[Any, Any]

ELEMENTS = dict.fromkeys(("concat", "elementwise", "reached", "rowwise"), "fiub")
"""Kinds of elements by kind of chain: what is padded or summed has floating-point numbers."""

_KERNEL = {
    "Conv": 1, "ConvInteger": 1, "FusedConv": 1, "FusedGemm": 1, "Gemm": 1, "MatMul": 1, "MatMulInteger": 1,
    "QGemm": 3, "QLinearConv": 3,
    "QLinearMatMul": 3,
}  # fmt: skip
"""The position of the kernels, or of the matrix, among a node's operands."""


_SUMS = frozenset({"conv", "depthwise", "fully_connected"})
"""The kinds of geometry that have kernels."""


def chain_or_nodes(engine: OnnxEngine, op: Operator, known: Maps, maps: Mapping[int, Map]) -> Chain:
    """Take an operator apart, or run its nodes as they are if only its reach says what its rows need.

    An operator whose nodes make no chain also runs as it is, if its kernels are found among them. `known` are
    the maps of the network, `maps` those of the group. Raises `InputError` naming the operator if it cannot
    run in parts.
    """
    if op.geometry is None or not op.geometry.promises:
        return _nodes(engine, op, known, maps, None)
    used = [engine.slots.dtype[t] for t in (*op.inputs, *op.outputs)]
    try:
        found = chain_of(engine, op, maps, images=known.batch is not None)
    except InputError as reason:
        if len(op.outputs) != 1:
            raise
        why = reason
    else:
        if all(dtype.kind in ELEMENTS.get(found.kind, "f") for dtype in used):
            return found
        why = InputError(f"cannot be run in tiles: it is of {used[0]}", item=f"operator {op.name}")
    return _nodes(engine, op, known, maps, why)


def _nodes(
    engine: OnnxEngine, op: Operator, known: Maps, maps: Mapping[int, Map], why: InputError | None
) -> Chain:
    """Return the operator's nodes as a chain, by its access; raise `why` if that is not known."""
    access = access_of(known, op.id)
    if isinstance(access, str):
        said = access.removeprefix(op.name).strip()
        raise why or InputError(f"cannot be run in tiles: {said}", item=f"operator {op.name}")
    [output], value = op.outputs, engine.executable.value
    found, names = engine.parts.between([value[t] for t in op.inputs], [value[output]], f"operator {op.name}")
    constants = {name: engine.parts.constants[name] for name in names}
    view = maps[output]
    kernels = _kernels(engine, op, found, constants)
    if why is not None and kernels is None and op.geometry is not None and op.geometry.kind in _SUMS:
        raise why
    settings = {name for node in found if node.op_type == "Resize" for name in node.input[1:]}
    by_channel = [
        Parameter(name, array, "c")
        for name, array in constants.items()
        if array.dtype.kind == "f"
        and name not in settings
        and array.size == view.channels > 1
        and (kernels is None or name != kernels[0])
    ]
    joins = op.geometry is not None and op.geometry.kind == "concat"
    return Chain(
        op=op,
        kind="concat" if joins else "reached",
        output=output,
        reads=access.reads,
        names=tuple(value[t] for t in access.reads),
        views=tuple(maps[t] for t in access.reads),
        rows=tuple(operand.rows for operand in access.operands),
        columns=tuple(operand.columns for operand in access.operands),
        head=found[-1],
        result=value[output],
        view=view,
        tail=(),
        weight=None if kernels is None else kernels[1],
        bias=None,
        parameters=tuple(by_channel),
        constants=constants,
        groups=1 if op.geometry is None else op.geometry.groups,
        nodes=tuple(found),
        stored=None if kernels is None else kernels[0],
        turned=kernels is not None and kernels[2],
    )


def _kernels(
    engine: OnnxEngine, op: Operator, found: Sequence[onnx.NodeProto], constants: Mapping[str, Array]
) -> tuple[str, Array, bool] | None:
    """Return the kernels of a convolution or product: their name, [out, in, rows, columns], and
    whether that is a matrix turned.

    None if there are none, or they do not lie as the operator's geometry says.
    """
    g = op.geometry
    if g is None or not g.promises:
        return None
    makers = {name: node for node in found for name in node.output}
    for node in found:
        if node.op_type not in _KERNEL or len(node.input) <= _KERNEL[node.op_type]:
            continue
        name = node.input[_KERNEL[node.op_type]]
        while name in makers and makers[name].op_type == "DequantizeLinear":
            name = makers[name].input[0]
        array = constants.get(name)
        if array is None or array.dtype.kind not in "fiu":
            continue
        if array.ndim == 2:
            kept = any(a.name == "transB" and a.i for a in node.attribute)
            return name, (array if kept else array.T)[:, :, None, None], not kept
        return (name, array, False) if array.ndim == 4 else None
    return None
