"""The bytes that cross to DRAM whatever is fused, tiled or kept."""

from __future__ import annotations

from onchip.network import bits
from onchip.planners.fusion.boxes import least_read, least_weights
from onchip.planners.fusion.problem import FusionProblem

__all__ = ["least_alone", "least_bytes"]


def least_bytes(problem: FusionProblem) -> int:
    """Return a bound for every way to run the network: weights, outputs and needed inputs, each once."""
    network = problem.network
    made = 0
    for v in range(len(network.operators)):
        made |= network.writes[v]
    outputs = sum(network.tensors[t].bytes for t in bits(network.output_roots & made))
    inputs = sum(_read(problem, t) for t in bits(network.input_roots))
    return outputs + inputs + sum(least_weights(op) for op in network.operators)


def least_alone(problem: FusionProblem, v: int) -> int:
    """Return the fewest bytes that an operator with a reach moves if it runs alone, however it is cut."""
    network = problem.network
    op, read = network.operators[v], dict[int, int]()
    for t in op.inputs:
        root = network.root[t]
        read[root] = max(read.get(root, 0), least_read(op, t, network.tensors[t].bytes))
    made = sum(network.tensors[t].bytes for t in bits(network.writes[v]))
    return sum(read.values()) + made + least_weights(op)


def _read(problem: FusionProblem, tensor: int) -> int:
    """Return the bytes of a graph input that its most demanding reader needs.

    A window as wide as its stride, or wider, reads all positions up to the last; if pixels lie between
    windows, blocks need not read them, and nothing is counted.
    """
    shape, most = problem.maps[tensor], 0
    for v in bits(problem.network.readers[tensor]):
        op = problem.operators[v]
        if op.boxes:
            most = max(
                most, least_read(problem.network.operators[v], tensor, problem.network.tensors[tensor].bytes)
            )
            continue
        if not op.windowed or shape is None:
            return problem.network.tensors[tensor].bytes
        made = problem.maps[op.outputs[0]]
        windows = (op.operands[0].rows, op.operands[0].columns)
        if made is None or any(window.stride > window.span for window in windows):
            continue
        rows, columns = (window.end(window.outputs) - window.start(0) for window in windows)
        most = max(most, problem.batch * shape.channels * max(0, rows) * max(0, columns) * shape.element)
    return most
