"""`onchip.network/1`: a network as JSON, a MODEL by itself and the `network` object inside a plan."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import astuple, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from onchip.base.errors import InputError, ModelError
from onchip.base.files import read_bytes
from onchip.network import Constant, Geometry, Network, OperatorSpec, Patches, Reach, Side
from onchip.network.elementwise import elementwise_geometry

__all__ = ["NETWORK_FORMAT", "WireNetwork", "decode", "network_from_wire", "read_network", "wire_network"]

NETWORK_FORMAT = "onchip.network/1"


class _Wire(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    pass


_Int = Annotated[int, msgspec.Meta(gt=-(10**18), lt=10**18)]
"""Larger numbers are mistakes, and would not fit a machine's integers."""


class WireTensor(_Wire):
    name: str
    bytes: _Int
    kind: Literal["input", "activation"]
    patches: tuple[_Int, _Int, _Int, _Int, _Int] | None = None


class WireGeometry(_Wire):
    kind: str
    input: tuple[_Int, ...] = ()
    output: tuple[_Int, ...] = ()
    kernel: tuple[_Int, ...] = ()
    stride: tuple[_Int, ...] = ()
    padding: tuple[_Int, ...] = ()
    dilation: tuple[_Int, ...] = ()
    groups: _Int = 1
    layout: Literal["NCHW", "NHWC"] = "NCHW"
    traversal: Literal["forward", "reverse"] = "forward"
    pixels: _Int = 1
    channels: _Int = 0


WireSides = tuple[tuple[_Int, _Int, _Int, _Int, _Int, _Int], ...]
"""Size, axis, stride, before, span and per of every side."""


class WireConstant(_Wire):
    name: str
    bytes: _Int
    sides: WireSides = ()


class WireReach(_Wire):
    output: tuple[_Int, ...]
    reads: tuple[WireSides, ...]
    weights: tuple[WireConstant, ...] = ()
    sums: tuple[_Int, ...] = ()


class WireOperator(_Wire):
    name: str
    type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    weight_bytes: _Int = 0
    workspace: _Int = 0
    geometry: WireGeometry | None = None
    macs: _Int = 0
    reach: WireReach | None = None


class WireView(_Wire):
    tensor: str
    of: str
    offset: _Int


class WireNetwork(_Wire):
    """The JSON object, field by field."""

    name: str
    outputs: tuple[str, ...]
    tensors: tuple[WireTensor, ...]
    operators: tuple[WireOperator, ...]
    views: tuple[WireView, ...] = ()
    format: str = NETWORK_FORMAT
    source: str = ""
    sha256: str = ""
    granularity: str = "op"
    element: str = "int8"


def wire_network(network: Network) -> WireNetwork:
    """The JSON object of a network."""
    names = [t.name for t in network.tensors]
    return WireNetwork(
        name=network.name,
        outputs=tuple(names[t] for t in network.outputs),
        tensors=tuple(
            WireTensor(t.name, t.bytes, t.kind, None if t.patches is None else astuple(t.patches))
            for t in network.tensors
        ),
        operators=tuple(
            WireOperator(
                op.name,
                op.type,
                tuple(names[t] for t in op.inputs),
                tuple(names[t] for t in op.outputs),
                op.weight_bytes,
                op.workspace,
                None
                if op.geometry is None
                else msgspec.convert(msgspec.to_builtins(op.geometry), WireGeometry),
                op.macs,
                None if op.reach is None else _wire_reach(op.reach),
            )
            for op in network.operators
        ),
        views=tuple(WireView(names[v.tensor], names[v.of], v.offset) for v in network.views),
        source=network.source,
        sha256=network.sha256,
        granularity=network.granularity,
        element=network.element,
    )


def _wire_reach(reach: Reach) -> WireReach:
    return WireReach(
        reach.output,
        tuple(tuple(side.numbers for side in sides) for sides in reach.reads),
        tuple(WireConstant(w.name, w.bytes, tuple(s.numbers for s in w.sides)) for w in reach.weights),
        reach.sums,
    )


def _reach(wire: WireReach) -> Reach:
    return Reach(
        wire.output,
        tuple(tuple(Side(*side) for side in sides) for sides in wire.reads),
        tuple(Constant(w.name, w.bytes, tuple(Side(*side) for side in w.sides)) for w in wire.weights),
        wire.sums,
    )


def network_from_wire(wire: WireNetwork, *, where: str | None = None) -> Network:
    """The validated network; raises `ModelError` naming `where` and the tensor or operator."""
    if wire.format != NETWORK_FORMAT:
        raise ModelError(
            f"is {wire.format!r}; this version reads {NETWORK_FORMAT!r}", where=where, item="format"
        )
    return Network.build(
        wire.name,
        [(t.name, t.bytes, t.kind) for t in wire.tensors],
        [
            OperatorSpec(
                op.name,
                op.type,
                op.inputs,
                op.outputs,
                op.weight_bytes,
                op.workspace,
                None if op.geometry is None else Geometry(**msgspec.structs.asdict(op.geometry)),
                op.macs,
                None if op.reach is None else _reach(op.reach),
            )
            for op in wire.operators
        ],
        wire.outputs,
        views=[(v.tensor, v.of, v.offset) for v in wire.views],
        source=wire.source,
        sha256=wire.sha256,
        granularity=wire.granularity,
        element=wire.element,
        patches={t.name: Patches(*t.patches) for t in wire.tensors if t.patches is not None},
        where=where,
    )


def decode(content: bytes, type_: Any, *, where: str, error: type[InputError]) -> Any:
    """JSON bytes as `type_`, strictly; raises `error` naming the key that is wrong, unknown or repeated."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        value = msgspec.json.decode(content, type=type_)
        json.loads(content, object_pairs_hook=_refuse_twice)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        reason, _, at = str(problem).partition(" - at `")
        reason = _SAID_AT.sub(lambda found: _in_lines(content, int(found[1])), reason)
        raise error(reason, where=where, item=at.rstrip("`") or None) from None
    except ValueError as problem:
        raise error(str(problem), where=where) from None
    return value


_SAID_AT = re.compile(r"\(byte ([0-9]{1,18})\)$")


def _in_lines(content: bytes, at: int) -> str:
    """Where a byte is for people, and what is there if it is a number that JSON does not have."""
    line = content.count(b"\n", 0, at) + 1
    odd = next((word for word in ("NaN", "Infinity") if content[at:].startswith(word.encode())), "")
    return f"(line {line}{': ' + odd if odd else ''})"


def _refuse_twice(pairs: list[tuple[str, Any]]) -> None:
    """Readers of JSON differ in which of two equal keys they take, so a file with both means nothing."""
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise ValueError(f"the key {key[:60]!r} is given twice")
        seen.add(key)


def read_network(path: Path) -> Network:
    """The network in an `onchip.network/1` file; its source is the path as given, its sha256 the file's.

    Operators without a geometry get one where the words of their type are known to be element-wise.
    """
    content = read_bytes(path, error=ModelError)
    wire: WireNetwork = decode(content, WireNetwork, where=str(path), error=ModelError)
    wire = msgspec.structs.replace(wire, source=str(path), sha256=hashlib.sha256(content).hexdigest())
    network = network_from_wire(wire, where=str(path))
    size = [t.bytes for t in network.tensors]
    operators = (
        op
        if op.geometry is not None
        else replace(
            op,
            geometry=elementwise_geometry(
                op.type, [size[t] for t in op.inputs], [size[t] for t in op.outputs], network.element
            ),
        )
        for op in network.operators
    )
    return replace(network, operators=tuple(operators))
