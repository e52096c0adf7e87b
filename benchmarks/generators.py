"""Large networks to plan: a stacked transformer, NAS-like cells, and one exported LLM block repeated.

    python benchmarks/generators.py {transformer,nas,llm} OPERATORS -o FILE.json [--seed N]

Writes an `onchip.network/1` file of at least that many operators, whole blocks. 8-bit elements, batch 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import msgspec

from onchip.network import Network, OperatorSpec, TensorKind
from onchip.network.json import wire_network

__all__ = ["GENERATORS", "llm", "nas", "transformer"]


class _Graph:
    """Operators as they come; each makes one tensor, named after it."""

    def __init__(self) -> None:
        self.tensors: list[tuple[str, int, TensorKind]] = []
        self.operators: list[OperatorSpec] = []

    def __len__(self) -> int:
        return len(self.operators)

    def input(self, name: str, size: int) -> str:
        self.tensors.append((name, size, "input"))
        return name

    def op(self, name: str, kind: str, reads: list[str], size: int, weights: int = 0) -> str:
        self.tensors.append((name, size, "activation"))
        self.operators.append(OperatorSpec(f"{name}:{kind}", kind, reads, [name], weights))
        return name

    def network(self, name: str, outputs: list[str]) -> Network:
        return Network.build(name, self.tensors, self.operators, outputs)


def transformer(operators: int, *, tokens: int = 196, width: int = 768, seed: int = 0) -> Network:
    """Encoder blocks in a row, as in a vision transformer: nothing but the residual stream between them."""
    g = _Graph()
    x = g.input("patches", tokens * width)
    x = g.op("embed", "MatMul", [x], tokens * width, width * width)
    scores = 12 * tokens * tokens
    block = 0
    while len(g) < operators:
        b, size = f"block{block}", tokens * width
        n = g.op(f"{b}.norm1", "LayerNorm", [x], size)
        q, k, v = (g.op(f"{b}.{c}", "MatMul", [n], size, width * width) for c in "qkv")
        s = g.op(f"{b}.scores", "MatMul", [q, k], scores)
        p = g.op(f"{b}.softmax", "Softmax", [s], scores)
        a = g.op(f"{b}.mix", "MatMul", [p, v], size)
        o = g.op(f"{b}.out", "MatMul", [a], size, width * width)
        x = g.op(f"{b}.add1", "Add", [x, o], size)
        n = g.op(f"{b}.norm2", "LayerNorm", [x], size)
        h = g.op(f"{b}.up", "MatMul", [n], 4 * size, 4 * width * width)
        h = g.op(f"{b}.gelu", "Gelu", [h], 4 * size)
        d = g.op(f"{b}.down", "MatMul", [h], size, 4 * width * width)
        x = g.op(f"{b}.add2", "Add", [x, d], size)
        block += 1
    return g.network(f"transformer-{operators}", [x])


def llm(
    operators: int,
    *,
    tokens: int = 128,
    heads: int = 16,
    groups: int = 4,
    head: int = 64,
    inner: int = 2816,
    seed: int = 0,
) -> Network:
    """A decoder block as exporters write it, over and over: RMSNorm, rotary and SwiGLU in single operators.

    Grouped-query attention with a causal mask; `cos`, `sin` and the mask are inputs that every block reads.
    """
    g = _Graph()
    width = heads * head
    hidden = tokens * width
    x = g.input("hidden", hidden)
    cos, sin = g.input("cos", tokens * head), g.input("sin", tokens * head)
    mask = g.input("mask", tokens * tokens)

    def rms_norm(at: str, x: str) -> str:
        square = g.op(f"{at}.pow", "Pow", [x], hidden)
        mean = g.op(f"{at}.mean", "ReduceMean", [square], tokens)
        plus = g.op(f"{at}.eps", "Add", [mean], tokens)
        root = g.op(f"{at}.rsqrt", "Rsqrt", [plus], tokens)
        scaled = g.op(f"{at}.scale", "Mul", [x, root], hidden)
        return g.op(f"{at}.weight", "Mul", [scaled], hidden, width)

    def rotary(at: str, x: str, size: int) -> str:
        straight = g.op(f"{at}.cos", "Mul", [x, cos], size)
        low = g.op(f"{at}.low", "Slice", [x], size // 2)
        high = g.op(f"{at}.high", "Slice", [x], size // 2)
        minus = g.op(f"{at}.neg", "Neg", [high], size // 2)
        turned = g.op(f"{at}.turn", "Concat", [minus, low], size)
        crossed = g.op(f"{at}.sin", "Mul", [turned, sin], size)
        return g.op(f"{at}.rotated", "Add", [straight, crossed], size)

    block = 0
    while len(g) < operators:
        b, few, scores = f"block{block}", tokens * groups * head, heads * tokens * tokens
        n = rms_norm(f"{b}.norm1", x)
        q = rotary(f"{b}.q_rope", g.op(f"{b}.q", "MatMul", [n], hidden, width * width), hidden)
        k = rotary(f"{b}.k_rope", g.op(f"{b}.k", "MatMul", [n], few, width * groups * head), few)
        v = g.op(f"{b}.v", "MatMul", [n], few, width * groups * head)
        k = g.op(f"{b}.k_repeat", "Expand", [k], hidden)
        v = g.op(f"{b}.v_repeat", "Expand", [v], hidden)
        s = g.op(f"{b}.scores", "MatMul", [q, k], scores)
        s = g.op(f"{b}.scaled", "Mul", [s], scores)
        s = g.op(f"{b}.masked", "Add", [s, mask], scores)
        s = g.op(f"{b}.softmax", "Softmax", [s], scores)
        a = g.op(f"{b}.mix", "MatMul", [s, v], hidden)
        o = g.op(f"{b}.o", "MatMul", [a], hidden, width * width)
        x = g.op(f"{b}.add1", "Add", [x, o], hidden)
        n = rms_norm(f"{b}.norm2", x)
        gate = g.op(f"{b}.gate", "MatMul", [n], tokens * inner, width * inner)
        sigmoid = g.op(f"{b}.sigmoid", "Sigmoid", [gate], tokens * inner)
        silu = g.op(f"{b}.silu", "Mul", [gate, sigmoid], tokens * inner)
        up = g.op(f"{b}.up", "MatMul", [n], tokens * inner, width * inner)
        product = g.op(f"{b}.product", "Mul", [silu, up], tokens * inner)
        down = g.op(f"{b}.down", "MatMul", [product], hidden, width * inner)
        x = g.op(f"{b}.add2", "Add", [x, down], hidden)
        block += 1
    return g.network(f"llm-{operators}", [x])


def nas(operators: int, *, seed: int = 0, blocks: int = 5, side: int = 56, channels: int = 64) -> Network:
    """Cells that read the two cells before them, wired at random (every cell alike), as NAS networks are.

    Each of a cell's `blocks` adds two branches: separable convolutions, poolings or the tensor itself. Blocks
    that nothing reads are concatenated. The first third of the cells is large, then the image halves twice.
    """
    rng = Random(seed)
    kinds = ("sep3", "sep5", "pool", "skip")
    wiring = [[(rng.randrange(2 + i), rng.choice(kinds)) for _ in range(2)] for i in range(blocks)]
    unread = [i for i in range(blocks) if all(source != 2 + i for pair in wiring for source, _ in pair)]

    def branch(at: str, x: str, kind: str, size: int) -> str:
        if kind == "skip":
            return x
        if kind == "pool":
            return g.op(f"{at}.pool", "AveragePool", [x], size)
        for i in range(2):
            x = g.op(f"{at}.depth{i}", "Conv", [x], size, 25 * channels)
            x = g.op(f"{at}.point{i}", "Conv", [x], size, channels * channels)
        return x

    def size_of(cell: int, cells: int) -> int:
        return channels * side * side >> min(
            2, 3 * cell // cells
        )  # half the pixels' side, twice the channels

    def build(cells: int) -> list[str]:
        x = g.input("image", 3 * 4 * side * side)
        before = here = g.op("stem", "Conv", [x], channels * side * side, 27 * channels)
        for cell in range(cells):
            c, size = f"cell{cell}", size_of(cell, cells)
            nodes = [
                g.op(f"{c}.in0", "Conv", [before], size, channels * channels),
                g.op(f"{c}.in1", "Conv", [here], size, channels * channels),
            ]
            for i, pair in enumerate(wiring):
                reads = [
                    branch(f"{c}.{i}{side}", nodes[s], k, size)
                    for side, (s, k) in zip("ab", pair, strict=True)
                ]
                nodes.append(g.op(f"{c}.{i}", "Add", reads, size))
            parts = [nodes[2 + i] for i in unread]
            before, here = here, g.op(f"{c}.out", "Concat", parts, size * len(parts))
        return [g.op("head", "GlobalAveragePool", [here], channels * len(unread))]

    g = _Graph()
    build(1)
    each = len(g) - 2  # operators of a cell: one, without stem and head
    g = _Graph()
    outputs = build(-(-max(1, operators - 2) // each))
    return g.network(f"nas-{operators}", outputs)


GENERATORS: dict[str, Callable[..., Network]] = {"transformer": transformer, "nas": nas, "llm": llm}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("kind", choices=GENERATORS)
    parser.add_argument("operators", type=int)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    network = GENERATORS[args.kind](args.operators, seed=args.seed)
    args.output.write_bytes(msgspec.json.encode(wire_network(network)))
    print(
        f"{args.output}: {len(network.operators):,} operators, {len(network.tensors):,} tensors",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
