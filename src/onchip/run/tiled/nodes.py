"""An operator that runs as it is: all of its nodes, on operands that are poison outside of the scratch."""

from __future__ import annotations

from collections.abc import Mapping

from onchip.base.errors import InputError
from onchip.network import Operator
from onchip.network.access import access_of
from onchip.network.maps import Maps
from onchip.run.onnx_engine import OnnxEngine
from onchip.run.tiled.chain import Chain, Parameter, chain_of
from onchip.run.tiled.maps import Map

__all__ = ["chain_or_nodes"]


def chain_or_nodes(engine: OnnxEngine, op: Operator, known: Maps, maps: Mapping[int, Map]) -> Chain:
    """Take an operator apart, or run its nodes as they are if only its reach says what its rows need.

    An operator without weights whose nodes make no chain also runs as it is. `known` are the maps of the
    network, `maps` those of the group. Raises `InputError` naming the operator if it cannot run in parts.
    """
    if op.geometry is None or not op.geometry.promises:
        return _nodes(engine, op, known, maps, None)
    try:
        return chain_of(engine, op, maps, images=known.batch is not None)
    except InputError as reason:
        if op.weight_bytes or len(op.outputs) != 1:
            raise
        why = reason
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
    by_channel = [
        Parameter(name, array, "c")
        for name, array in constants.items()
        if array.dtype.kind == "f" and array.size == view.channels > 1
    ]
    return Chain(
        op=op,
        kind="reached",
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
        weight=None,
        bias=None,
        parameters=tuple(by_channel),
        constants=constants,
        nodes=tuple(found),
    )
