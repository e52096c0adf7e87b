"""Look-ups in tables of parameters: an embedding fetches the rows that its indices name, not the table."""

from __future__ import annotations

import math

from onchip.readers.constants import Constants
from onchip.readers.onnx_graph import Graph, Node

__all__ = ["looked_up"]


def looked_up(graph: Graph, constants: Constants, node: Node) -> int | None:
    """Return the most elements that a node fetches of a constant table by computed indices.

    None if it looks nothing up. Equal indices may fetch a row once; how many are equal is not known before
    the network runs.
    """
    gathers = node.domain == "" and node.op in ("Gather", "GatherElements", "GatherND")
    if not gathers or len(node.inputs) < 2 or node.inputs[0] not in constants or node.inputs[1] in constants:
        return None
    made = graph.shape.get(node.outputs[0])
    return None if made is None else math.prod(made)
