"""NASNet's graph as Optimus may have read it: which operators of the zoo's are a part of another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from optimus_data import Data, head
from optimus_online import obeying
from optimus_schemes import PAPER, Bench, Row

from onchip.machines.chip import load_chip
from onchip.network import Operator

__all__ = ["GRAPHS", "graphs", "nasnet"]

Rule = Callable[[Operator], bool]
MOST = 3
"""Operators of the largest groups that obey the on-line rules."""
THEIRS = ("456", "10", "1,627 with an n that is not said", "")


def _is(*kinds: str) -> Rule:
    return lambda op: op.geometry is not None and op.geometry.kind in kinds


STEPS: tuple[tuple[str, Rule], ...] = (
    ("an activation or a padding", lambda op: op.type in ("Relu", "Pad")),
    ("nor a depthwise convolution, but with its pointwise one", _is("depthwise")),
    ("nor a concat", _is("concat")),
    ("nor the last pool and layer", lambda op: op.type in ("GlobalAveragePool", "Gemm")),
)
"""What is no operator of its own, one after the other."""


def nasnet(bench: Bench, name: str) -> Iterator[Row]:
    """Table 5: operators, the most successors, and groups that obey the on-line rules, step by step."""
    if name != "nasnetalarge":
        return
    network = bench.problem(name, load_chip("optimus"), PAPER).network
    operators = [network.operators[v] for v in network.order]
    for count in range(len(STEPS) + 1):
        dropped = [rule for _, rule in STEPS[:count]]
        reads = without(operators, dropped)
        readers = [0] * len(reads)
        for before in reads:
            for place in before:
                readers[place] += 1
        change = STEPS[count - 1][0] if count else "as the zoo has it"
        yield {
            "change": change,
            "operators": len(reads),
            "successors": max(readers),
            "counts": obeying(reads, MOST),
        }


def without(operators: Sequence[Operator], dropped: Sequence[Rule]) -> list[list[int]]:
    """What each operator reads, by place; one that is dropped hands on what it reads."""
    made: dict[int, list[int]] = {}
    reads: list[list[int]] = []
    for op in operators:
        given = list(dict.fromkeys(place for t in op.inputs for place in made.get(t, [])))
        if any(rule(op) for rule in dropped):
            made |= dict.fromkeys(op.outputs, given)
        else:
            made |= {t: [len(reads)] for t in op.outputs}
            reads.append(given)
    return reads


def graphs(d: Data) -> Iterator[str]:
    """The table of these graphs."""
    sizes = [f"n = {n}" for n in range(2, MOST + 1)]
    yield from head(
        "NASNet; no operator of its own is",
        "operators",
        "most successors",
        "on-line groups, " + sizes[0],
        *sizes[1:],
    )
    yield f"| the paper | {' | '.join(THEIRS)} |"
    for r in d.all("cause-nasnet"):
        counts = " | ".join(f"{n:,}" for n in r["counts"][1:])
        yield f"| {r['change']} | {r['operators']} | {r['successors']} | {counts} |"


GRAPHS: dict[str, Callable[[Bench, str], Iterator[Row]]] = {"cause-nasnet": nasnet}
