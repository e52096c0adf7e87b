"""Small networks of any shape whose operators all have geometry."""

from __future__ import annotations

from onchip.network import Geometry, Network, OperatorSpec


def convolutions(edges: list[tuple[int, int]], nodes: int, channels: int = 32, size: int = 16) -> Network:
    """Convolutions 3x3 of one shape; a node with several producers adds them up first."""
    shape = (1, channels, size, size)
    bytes_ = channels * size * size
    before: list[list[int]] = [[] for _ in range(nodes)]
    for a, b in edges:
        before[b].append(a)
    specs = []
    for v, reads in enumerate(before):
        if len(reads) > 1:
            g = Geometry("elementwise", shape, shape)
            specs.append(OperatorSpec(f"n{v}", "Add", [f"t{p}" for p in reads], [f"t{v}"], geometry=g))
        else:
            g = Geometry("conv", shape, shape, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1))
            read = [f"t{reads[0]}"] if reads else ["x"]
            specs.append(OperatorSpec(f"n{v}", "Conv", read, [f"t{v}"], channels * channels * 9, geometry=g))
    outputs = [f"t{v}" for v in range(nodes) if not any(a == v for a, _ in edges)]
    tensors = [("x", bytes_, "input"), *((f"t{v}", bytes_, "activation") for v in range(nodes))]
    return Network.build("convolutions", tensors, specs, outputs)
