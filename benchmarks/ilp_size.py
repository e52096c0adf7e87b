"""Variables and constraints of the paper's ILP for the Transformer: the size table in docs/placement-ilp.md.

    python benchmarks/ilp_size.py [NETWORK.json ...]

Without a file, the Transformer of six encoder and six decoder layers with every attention as one operator, as
a PyTorch module's trace has it, at several granularities: how large the model is depends on what counts as an
operator. Prints a Markdown table. The paper's row is its text (III-F).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from onchip.network import Network, OperatorSpec, TensorKind
from onchip.network.json import read_network
from onchip.planners.placement import Problem
from onchip.planners.placement.ilp.formulation import least_traffic
from onchip.planners.placement.ilp.lifetimes import Lifetimes
from onchip.planners.placement.ilp.size import unpruned

LAYERS = 6


class Transformer:
    """The graph alone: sizes do not matter to the count."""

    def __init__(self, norms: bool, activations: bool, dropouts: bool) -> None:
        self.norms, self.activations, self.dropouts = norms, activations, dropouts
        self.operators: list[OperatorSpec] = []

    def op(self, *inputs: str) -> str:
        name = f"t{len(self.operators)}"
        self.operators.append(OperatorSpec(f"op{len(self.operators)}", "Any", inputs, [name]))
        return name

    def add(self, x: str, branch: str) -> str:
        x = self.op(x, self.op(branch) if self.dropouts else branch)
        return self.op(x) if self.norms else x

    def feed_forward(self, x: str) -> str:
        hidden = self.op(x)
        hidden = self.op(hidden) if self.activations else hidden
        return self.op(self.op(hidden) if self.dropouts else hidden)

    def network(self) -> Network:
        x, y = "source", "target"
        for _ in range(LAYERS):
            x = self.add(x, self.op(x))
            x = self.add(x, self.feed_forward(x))
        memory = self.op(x)
        for _ in range(LAYERS):
            y = self.add(y, self.op(y))
            y = self.add(y, self.op(y, memory))
            y = self.add(y, self.feed_forward(y))
        last = self.op(y)
        tensors: list[tuple[str, int, TensorKind]] = [("source", 1, "input"), ("target", 1, "input")]
        tensors += [(f"t{i}", 1, "activation") for i in range(len(self.operators))]
        return Network.build("transformer", tensors, self.operators, [last])


def networks(files: list[Path]) -> Iterator[tuple[str, Network]]:
    """What to count, with a name each."""
    for path in files:
        yield path.stem, read_network(path)
    for switches in () if files else product((False, True), repeat=3):
        names = ("norm", "activation", "dropout")
        apart = [name for name, switch in zip(names, switches, strict=True) if switch]
        yield f"attention whole; apart: {', '.join(apart) or 'nothing'}", Transformer(*switches).network()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("files", type=Path, nargs="*")
    args = parser.parse_args()
    print("| graph | operators | variables | constraints | order given | unpruned |")
    print("|---|--:|--:|--:|--:|--:|")
    print("| the paper's | not said | 7,500 | 15,000 | | |")
    for name, network in networks(args.files):
        problem = Problem.of(network)
        free, given = (
            least_traffic(p, p.minimum_budget, implied=False).model
            for p in (problem, problem.in_order(network.order))
        )
        whole = unpruned(Lifetimes.of(problem))
        print(
            f"| {name} | {len(network.operators)} | {free.variables:,} | {free.constraints:,} "
            f"| {given.variables:,} / {given.constraints:,} | {whole.variables:,} / {whole.constraints:,} |"
        )


if __name__ == "__main__":
    main()
