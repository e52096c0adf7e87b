"""The fingerprint of a network changes with every field that a plan could depend on, present and to come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from onchip.network import Constant, Geometry, Network, OperatorSpec, Patches, Reach, Side

PROVENANCE = {"name", "source", "sha256"}
"""What says where a network comes from, and nothing that a plan depends on."""

NETWORK = Network.build(
    "n",
    [("x", 8, "input"), ("a", 8, "activation"), ("v", 4, "activation"), ("y", 4, "activation")],
    [
        OperatorSpec(
            "f",
            "Conv",
            ["x"],
            ["a"],
            weight_bytes=3,
            workspace=2,
            macs=7,
            geometry=Geometry("conv", (1, 2, 2, 2), (1, 2, 2, 2), (1, 1), (1, 1), (0, 0, 0, 0), (1, 1)),
        ),
        OperatorSpec(
            "g",
            "Gemm",
            ["v"],
            ["y"],
            weight_bytes=4,
            reach=Reach((4,), ((Side(4, 0),),), (Constant("w", 4, (Side(4, 0, 1, 0, 1, 1),)),), (2,)),
        ),
    ],
    ["y"],
    views=[("v", "a", 4)],
    patches={"x": Patches(2, 2, 2, 2, 2)},
)


def changed(value: Any) -> Iterator[tuple[str, Any]]:
    """The value with one of its fields, or of its elements' fields, changed; every one in turn, by name."""
    if is_dataclass(value) and not isinstance(value, type):
        for f in fields(value):
            for name, other in changed(getattr(value, f.name)):
                yield f"{type(value).__name__}.{f.name}{name}", replace(value, **{f.name: other})
    elif isinstance(value, tuple):
        for i, one in enumerate(value):
            for name, other in changed(one):
                yield f"[{i}]{name}", (*value[:i], other, *value[i + 1 :])
        yield " longer", (*value, *(value[-1:] or (9,)))
        if value:
            yield " shorter", value[:-1]
    elif isinstance(value, str):
        yield "", f"{value}'"
    elif value is None:
        yield "", 9
    else:
        yield "", value + 1


def test_every_field_counts() -> None:
    plain, seen = NETWORK.fingerprint, set()
    for name, other in changed(NETWORK):
        field = name.removeprefix("Network.").split("[")[0].split(" ")[0]
        seen.add(field)
        assert (other.fingerprint == plain) is (field in PROVENANCE), name
    assert seen == {f.name for f in fields(Network)}


def test_fields_of_every_part_were_changed() -> None:
    text = " ".join(name for name, _ in changed(NETWORK))
    for kind in (Constant, Geometry, Patches, Reach, Side):
        for f in fields(kind):
            assert f"{kind.__name__}.{f.name}" in text
