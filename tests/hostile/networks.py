"""Networks as JSON, in parts."""

from __future__ import annotations

from typing import Any


def tensor(name: str, size: int, kind: str = "activation") -> dict[str, Any]:
    return {"name": name, "bytes": size, "kind": kind}


def operator(name: str, inputs: list[str], outputs: list[str], **more: Any) -> dict[str, Any]:
    return {"name": name, "type": "Relu", "inputs": inputs, "outputs": outputs, **more}


def network(tensors: list[Any], operators: list[Any], outputs: list[str], **more: Any) -> dict[str, Any]:
    made = {"format": "onchip.network/1", "name": "n", "outputs": outputs, "tensors": tensors}
    return {**made, "operators": operators, **more}


def plain(**more: Any) -> dict[str, Any]:
    """Two operators in a row over tensors of 10 bytes."""
    made = network(
        [tensor("a", 10, "input"), tensor("b", 10), tensor("c", 10)],
        [operator("o1", ["a"], ["b"]), operator("o2", ["b"], ["c"])],
        ["c"],
    )
    return {**made, **more}
