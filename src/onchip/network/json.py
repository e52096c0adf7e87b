"""`onchip.network/1`: a network as JSON, as a MODEL file and as the `network` object inside a plan."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import msgspec

from onchip.base.codec import Count, decode, from_wire, to_object, wire_of, wire_struct
from onchip.base.errors import ModelError
from onchip.base.files import read_bytes
from onchip.network import Network, Operator, OperatorSpec, Patches, Tensor
from onchip.network.elementwise import elementwise_geometry

__all__ = ["NETWORK_FORMAT", "TEXTS", "WireNetwork", "network_from_wire", "read_network", "wire_network"]

NETWORK_FORMAT = "onchip.network/1"

TEXTS: dict[str, str] = {f.name: f.default for f in fields(Network) if isinstance(f.default, str)}
"""The texts of a network besides its name, with the values that they have if a file states none."""


class _View(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    tensor: str
    of: str
    offset: Count


WireNetwork: Any = wire_struct(
    "Network",
    [
        ("name", str),
        ("outputs", tuple[str, ...]),
        ("tensors", tuple[wire_of(Tensor), ...]),  # type: ignore[misc]
        ("operators", tuple[wire_of(OperatorSpec), ...]),  # type: ignore[misc]
        ("views", tuple[_View, ...], ()),
        ("format", str, NETWORK_FORMAT),
        *((key, str, default) for key, default in TEXTS.items()),
    ],
)
"""The type to which the JSON object is decoded."""


def wire_network(network: Network) -> dict[str, Any]:
    """Return the JSON object of a network."""
    names = [t.name for t in network.tensors]
    made = {
        "name": network.name,
        "outputs": [names[t] for t in network.outputs],
        "tensors": [to_object(t) for t in network.tensors],
        "operators": [to_object(_by_names(op, network, names)) for op in network.operators],
    }
    if network.views:
        made["views"] = [
            {"tensor": names[v.tensor], "of": names[v.of], "offset": v.offset} for v in network.views
        ]
    for key, default in TEXTS.items():
        if (said := getattr(network, key)) != default:
            made[key] = said
    return made


def _by_names(op: Operator, network: Network, names: Sequence[str]) -> OperatorSpec:
    said: dict[str, Any] = {f.name: getattr(op, f.name) for f in fields(OperatorSpec)}
    for key in ("inputs", "outputs"):
        said[key] = [names[t] for t in said[key]]
    if op.repeats is not None:
        said["repeats"] = network.operators[op.repeats].name
    return OperatorSpec(**said)


def network_from_wire(wire: Any, *, where: str | None = None) -> Network:
    """Return the validated network; raises `ModelError` naming `where` and the tensor or operator."""
    if wire.format != NETWORK_FORMAT:
        raise ModelError(
            f"is {wire.format!r}; this version reads {NETWORK_FORMAT!r}", where=where, item="format"
        )
    return Network.build(
        wire.name,
        [(t.name, t.bytes, t.kind) for t in wire.tensors],
        [from_wire(OperatorSpec, op) for op in wire.operators],
        wire.outputs,
        views=[(v.tensor, v.of, v.offset) for v in wire.views],
        **{key: getattr(wire, key) for key in TEXTS},
        patches={t.name: Patches(*t.patches) for t in wire.tensors if t.patches is not None},
        shapes={t.name: t.shape for t in wire.tensors if t.shape},
        where=where,
    )


def read_network(path: Path) -> Network:
    """Return the network in an `onchip.network/1` file; its source is the given path, its sha256 the file's.

    An operator without a geometry gets one if the words of its type are known to be element-wise.
    """
    content = read_bytes(path, error=ModelError)
    wire = decode(content, WireNetwork, where=str(path), error=ModelError)
    wire = msgspec.structs.replace(wire, source=str(path), sha256=hashlib.sha256(content).hexdigest())
    network = network_from_wire(wire, where=str(path))
    if again := next((op.name for op in network.operators if op.repeats is not None), None):
        raise ModelError(
            "repeats another operator: plans let operators run again, models do not",
            where=str(path),
            item=f"operator {again}",
        )
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
