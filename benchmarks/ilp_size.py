"""Size of the paper's ILP for the Transformer, beside MODeL's, and how it grows: docs/placement-ilp.md.

    python benchmarks/ilp_size.py [NETWORK.json ...] [--into docs/placement-ilp.md]

The zoo's Transformer, and one of six encoder and six decoder layers with every attention as one operator, as
a PyTorch module's trace has it, at several granularities: how large the model is depends on what counts as an
operator. MODeL's encoding has no spills, one address a tensor, and pairs without time. Then the growth of
both with the number of operators. The paper's figures are its text's (III-F). With NETWORK.json these
instead.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "paper"))

from page_marks import write

import onchip
from onchip.network import Network, OperatorSpec, TensorKind
from onchip.network.json import read_network
from onchip.planners.placement import Problem
from onchip.planners.placement.ilp.actions import actions
from onchip.planners.placement.ilp.formulation import least_traffic
from onchip.planners.placement.ilp.lifetimes import Lifetimes
from onchip.planners.placement.ilp.reading import SENSIBLE
from onchip.planners.placement.ilp.rows import Model
from onchip.planners.placement.ilp.size import unpruned

LAYERS = 6
GROWN = (1, 2, 3, 4, 6, 8)
RESNETS = ("resnet18", "resnet50", "resnet101", "resnet152")


class Transformer:
    """The graph alone: sizes do not matter to the count."""

    def __init__(self, norms: bool, activations: bool, dropouts: bool, layers: int = LAYERS) -> None:
        self.norms, self.activations, self.dropouts = norms, activations, dropouts
        self.layers = layers
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
        for _ in range(self.layers):
            x = self.add(x, self.op(x))
            x = self.add(x, self.feed_forward(x))
        memory = self.op(x)
        for _ in range(self.layers):
            y = self.add(y, self.op(y))
            y = self.add(y, self.op(y, memory))
            y = self.add(y, self.feed_forward(y))
        last = self.op(y)
        tensors: list[tuple[str, int, TensorKind]] = [("source", 1, "input"), ("target", 1, "input")]
        tensors += [(f"t{i}", 1, "activation") for i in range(len(self.operators))]
        return Network.build("transformer", tensors, self.operators, [last])


# -- counting --------------------------------------------------------------------------------------------

Count = tuple[int, int]
"""Variables and constraints."""


def cosma(problem: Problem) -> Count:
    """Eq. 1-11 after lifetime pruning, the literal rows alone."""
    model = least_traffic(problem, problem.minimum_budget, implied=False).model
    return model.variables, model.constraints


def modelled(problem: Problem) -> Count:
    """MODeL's encoding (C, P, an address a tensor, who is above whom) with the same pruning.

    Rows: eq. 1, 2, 5, 6, 7, its bound of every address by the peak, and for each pair that can meet two that
    keep it apart, one that says not both ways, and one a common step that says one way when both are there.
    """
    model, lifetimes = Model(), Lifetimes.of(problem)
    made = actions(model, lifetimes, SENSIBLE, leave=False)
    peak = model.variable("M", 0, sum(problem.size))
    at = [model.variable("L", 0, sum(problem.size)) for _ in lifetimes.items]
    for address in at:
        model.at_most("peak", [(address, 1), (peak, -1)], 0)
    for i, j, steps in lifetimes.pairs():
        above, below = model.variable("u"), model.variable("d")
        model.at_most("one way", [(above, 1), (below, 1)], 1)
        model.at_most("apart", [(at[i], 1), (at[j], -1)], 0, when=below)
        model.at_most("apart", [(at[j], 1), (at[i], -1)], 0, when=above)
        for t in steps:
            both = [*made.resident(i, t), *made.resident(j, t)]
            model.at_most("both", [*both, (above, -1), (below, -1)], 1)
    return model.variables, model.constraints


# -- the table -------------------------------------------------------------------------------------------


def networks(files: Sequence[Path]) -> Iterator[tuple[str, Network]]:
    """What to count, with a name each."""
    for path in files:
        yield path.stem, read_network(path)
    if files:
        return
    for graph in ("fused", "op"):
        yield f"the zoo's, {graph}", onchip.load("zoo:transformer", granularity=graph).network
    for switches in product((False, True), repeat=3):
        names = ("norm", "activation", "dropout")
        apart = [name for name, switch in zip(names, switches, strict=True) if switch]
        yield f"attention whole; apart: {', '.join(apart) or 'nothing'}", Transformer(*switches).network()


def size(files: Sequence[Path] = ()) -> Iterator[str]:
    """Variables and constraints of both encodings."""
    yield (
        "| graph | operators | variables | constraints | MODeL's variables | constraints | more here, times |"
        " order given | unpruned |"
    )
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    yield "| the paper's | not said | 7,500 | 15,000 | 2,000 | 5,000 | 3 | | |"
    for name, network in networks(files):
        problem = Problem.of(network)
        here, there = cosma(problem), modelled(problem)
        given = cosma(problem.in_order(network.order))
        whole = unpruned(Lifetimes.of(problem))
        times = ", ".join(f"{a / b:.1f}" for a, b in zip(here, there, strict=True))
        yield (
            f"| {name} | {len(network.operators)} | {here[0]:,} | {here[1]:,} | {there[0]:,} | {there[1]:,} |"
            f" {times} | {given[0]:,} / {given[1]:,} | {whole.variables:,} / {whole.constraints:,} |"
        )


# -- growth ----------------------------------------------------------------------------------------------


@cache
def grown() -> dict[str, list[tuple[int, int, int, int, int]]]:
    """For two families: operators, tensors, variables unpruned, of COSMA's and of MODeL's encoding."""
    families = {
        "Transformer": [Transformer(True, True, True, layers).network() for layers in GROWN],
        "ResNet": [onchip.load(f"zoo:{name}").network for name in RESNETS],
    }
    found = {}
    for family, members in families.items():
        rows = []
        for network in members:
            problem = Problem.of(network)
            lifetimes = Lifetimes.of(problem)
            counts = (unpruned(lifetimes).variables, cosma(problem)[0], modelled(problem)[0])
            rows.append((len(network.operators), len(lifetimes.items), *counts))
        found[family] = rows
    return found


def growth() -> Iterator[str]:
    """Variables by operators, and the exponents of their growth."""
    yield (
        "| family | operators | tensors | T A^2 | unpruned | unpruned / T A^2 | MODeL's unpruned / T A |"
        " COSMA's | MODeL's |"
    )
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    for family, rows in grown().items():
        for steps, tensors, whole, here, there in rows:
            law = steps * tensors**2
            yield (
                f"| {family} | {steps} | {tensors} | {law:,} | {whole:,} | {whole / law:.2f} |"
                f" {models_unpruned(steps, tensors) / (steps * tensors):.2f} | {here:,} | {there:,} |"
            )
        powers = [exponent([r[0] for r in rows], [r[k] for r in rows]) for k in (2, 3, 4)]
        label = f"| {family}: grows with operators to the power of | | | |"
        yield f"{label} {powers[0]} | | | {powers[1]} | {powers[2]} |"


def models_unpruned(steps: int, tensors: int) -> int:
    """Variables of MODeL's encoding if every tensor had every step: C, P; L; u, d of a pair; the peak."""
    return 2 * steps * tensors + tensors + tensors * (tensors - 1) + 1


def exponent(xs: Sequence[int], ys: Sequence[int]) -> str:
    """The slope of a line through the logarithms."""
    u, v = [math.log(x) for x in xs], [math.log(y) for y in ys]
    a, b = sum(u) / len(u), sum(v) / len(v)
    slope = sum((x - a) * (y - b) for x, y in zip(u, v, strict=True)) / sum((x - a) ** 2 for x in u)
    return f"{slope:.2f}"


def draw(path: Path) -> None:
    """The growth of both families."""
    from charts import Panel, lines

    panels = [
        Panel(
            family,
            [str(r[0]) for r in rows],
            {
                "COSMA's, pruned": [r[3] for r in rows],
                "MODeL's, pruned": [r[4] for r in rows],
                "COSMA's, unpruned": [r[2] for r in rows],
            },
        )
        for family, rows in grown().items()
    ]
    lines(path, panels, unit="variables, by operators", across=2, log=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--into", type=Path, metavar="PAGE")
    args = parser.parse_args()
    if args.files:
        write({"size": lambda: size(args.files)}, args.into)
        return
    write({"size": size, "growth": growth}, args.into)
    if args.into is not None:
        try:
            draw(args.into.parent / "images" / "ilp-growth.svg")
        except ImportError:
            print("no picture without pip install 'onchip[docs]'")


if __name__ == "__main__":
    main()
