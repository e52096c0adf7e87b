"""The bytes that cross to DRAM whatever is fused, tiled or kept."""

from __future__ import annotations

from onchip.network import bits
from onchip.network.needed import needed_bytes
from onchip.planners.fusion.boxes import least_read, least_weights
from onchip.planners.fusion.problem import FusionProblem

__all__ = ["least_alone", "least_bytes"]


def least_bytes(problem: FusionProblem) -> int:
    """Return a bound for every way to run the network: weights, outputs and needed inputs, each once."""
    return needed_bytes(problem.network)


def least_alone(problem: FusionProblem, v: int) -> int:
    """Return the fewest bytes that an operator with a reach moves if it runs alone, however it is cut."""
    network = problem.network
    op, read = network.operators[v], dict[int, int]()
    for t in op.inputs:
        root = network.root[t]
        read[root] = max(read.get(root, 0), least_read(op, t, network.tensors[t].bytes))
    made = sum(network.tensors[t].bytes for t in bits(network.writes[v]))
    return sum(read.values()) + made + least_weights(op)
