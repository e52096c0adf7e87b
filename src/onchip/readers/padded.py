"""Zeros around a map that a `Pad` writes in front of convolutions: their windows have them already.

Exporters write a causal convolution so, and one whose padding differs from side to side. As an operator the
`Pad` copies the whole map. A convolution takes as many zeros more on each side instead.
"""

from __future__ import annotations

from collections import defaultdict

from onchip.base.allowance import spend
from onchip.readers.constants import Constants
from onchip.readers.onnx_graph import Graph, Node

__all__ = ["added", "pads_in_windows"]


def pads_in_windows(graph: Graph, constants: Constants) -> None:
    """Leave out every `Pad` of zeros along the sides of maps that convolutions alone read."""
    readers: dict[str, list[Node]] = defaultdict(list)
    for node in graph.nodes:
        for name in node.inputs:
            readers[name].append(node)
    gone: set[int] = set()
    for node in graph.nodes:
        spend(node.label)
        sides = _zeros(graph, constants, node)
        if sides is None or node.outputs[0] in graph.outputs:
            continue
        behind = readers[node.outputs[0]]
        if behind and all(_takes(reader, node.outputs[0], len(sides)) for reader in behind):
            for reader in behind:
                _widen(reader, node.inputs[0], sides)
            gone.add(id(node))
    if gone:
        graph.keep([node for node in graph.nodes if id(node) not in gone])


def _zeros(graph: Graph, constants: Constants, node: Node) -> list[tuple[int, int]] | None:
    """Return the zeros that a node adds before and after each spatial side; None if it does anything else."""
    shape = graph.shape.get(node.inputs[0]) if node.inputs else None
    if node.op != "Pad" or node.domain or shape is None or len(shape) < 3 or node.inputs[0] in constants:
        return None
    filled, value = _numbers(constants, node, 2), node.attribute("value")
    sides = added(node, constants, len(shape))
    if sides is None or filled is None or any(filled) or (value is not None and value.f):
        return None
    if any(sides[0]) or any(sides[1]) or any(min(both) < 0 for both in sides):
        return None
    return sides[2:]


def added(node: Node, constants: Constants, rank: int) -> list[tuple[int, int]] | None:
    """Return what a `Pad` of a constant adds before and after each dimension; negative: it cuts off.

    None if it pads with other elements, or its amounts are not known.
    """
    mode = node.attribute("mode")
    stated = node.integers("pads")
    amounts = list(stated) if stated is not None else _numbers(constants, node, 1)
    along = _numbers(constants, node, 3)
    if amounts is None or along is None or (mode is not None and mode.s != b"constant"):
        return None
    axes = [int(axis) % rank for axis in along] or list(range(rank))
    if len(amounts) != 2 * len(axes) or len({*axes}) < len(axes):
        return None
    found = [(0, 0)] * rank
    for i, axis in enumerate(axes):
        found[axis] = int(amounts[i]), int(amounts[i + len(axes)])
    return found


def _numbers(constants: Constants, node: Node, at: int) -> list[float] | None:
    """Return an operand's numbers, none where it is left out; None if they are not known."""
    if at >= len(node.inputs) or not node.inputs[at]:
        return []
    value = constants.value(node.inputs[at]) if node.inputs[at] in constants else None
    return None if value is None else [number.item() for number in value.reshape(-1)]


def _takes(reader: Node, name: str, sides: int) -> bool:
    """Return whether a node is a convolution of a value that states its padding in numbers."""
    auto, pads = reader.attribute("auto_pad"), reader.integers("pads")
    return (
        reader.op == "Conv"
        and not reader.domain
        and reader.inputs[0] == name
        and name not in reader.inputs[1:]
        and (auto is None or auto.s in (b"", b"NOTSET"))
        and (pads is None or len(pads) == 2 * sides)
    )


def _widen(reader: Node, source: str, sides: list[tuple[int, int]]) -> None:
    """Let a convolution read what was padded, with as many zeros more on each side."""
    own = reader.integers("pads") or (0,) * (2 * len(sides))
    wanted = [*(before for before, _ in sides), *(after for _, after in sides)]
    stated = reader.attribute("pads")
    if stated is None:
        stated = reader.proto.attribute.add(name="pads")
        stated.type = stated.INTS
    stated.ints[:] = [more + n for more, n in zip(wanted, own, strict=True)]
    reader.proto.input[0] = source
    reader.inputs, reader.plain = tuple(reader.proto.input), None
