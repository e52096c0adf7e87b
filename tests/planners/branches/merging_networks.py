"""Random small networks whose operators may be merges, and what tests ask of a detection."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from onchip.network import Geometry, Network, OperatorSpec, TensorKind
from onchip.planners.branches.modules import Module
from strategies import random_network

ONE = Geometry("elementwise", (1,), (1,))
CONCAT = Geometry("concat", (1, 1, 1, 1), (1, 2, 1, 1))


def random_merging_network(rng: Random, most: int = 10) -> tuple[Network, frozenset[int], frozenset[int]]:
    """A network, which of its operators are merges, and which are layers.

    What is a merge and what counts as a layer is said here, independently of how `onchip` tells. Some
    networks have anything (several outputs, views), most are forks that come together again.
    """
    network = random_network(rng, most, min_operators=3, workspaces=False, views=rng.random() < 0.5)
    if rng.random() < 0.8:
        network = _forks(rng, most)
    operators, merges, layers = [], set(), set()
    for op in network.operators:
        kinds = [("Conv", None, False, True)]
        if len(op.inputs) == 1:
            kinds.append(("Relu", ONE, False, False))
        if len(op.inputs) > 1:
            kinds = [
                ("Add", None, True, True), ("Add+Relu", ONE, True, True), ("Concat", None, True, True),
                ("Concat", CONCAT, True, False), ("Concat+Relu", CONCAT, True, True),
                ("Mul", ONE, False, True),
            ]  # fmt: skip
        type_, geometry, merge, layer = rng.choice(kinds)
        if merge and network.reads[op.id].bit_count() > 1:
            merges.add(op.id)
        if layer:
            layers.add(op.id)
        operators.append(replace(op, type=type_, geometry=geometry))
    return replace(network, operators=tuple(operators)), frozenset(merges), frozenset(layers)


def _forks(rng: Random, most: int) -> Network:
    """Ways that part and come together, one within the other; then a few operands and outputs more."""
    operators: list[OperatorSpec] = []

    def run(*reads: str) -> str:
        name = f"t{len(operators)}"
        writes = [name] if rng.random() < 0.97 else [name, f"{name}_also"]
        operators.append(OperatorSpec(f"op{len(operators)}", "Any", list(dict.fromkeys(reads)), writes))
        return writes[-1]

    def way(start: str, left: int) -> str:
        at = start if left and rng.random() < 0.3 else run(start)
        while left > 2 and len(operators) < most and rng.random() < 0.8:
            ends = [way(at, left // 2) for _ in range(rng.choice((1, 2, 2, 3)))]
            at = run(*ends, *([at] if rng.random() < 0.3 or len(ends) == 1 else []))
        return at

    run(way("x", most))
    made = ["x", *(t for op in operators for t in op.outputs)]
    for _ in range(rng.choice((0, 0, 1, 1, 2))):  # anything may read something made before
        at = rng.randrange(len(operators))
        before = made[: made.index(operators[at].outputs[0])]
        operators[at] = replace(operators[at], inputs=[*operators[at].inputs, rng.choice(before)])
    read = {t for op in operators for t in op.inputs}
    outputs = [t for t in made[1:] if t not in read or rng.random() < 0.01]
    tensors: list[tuple[str, int, TensorKind]] = [("x", 1, "input")]
    return Network.build("forks", [*tensors, *((t, 1, "activation") for t in made[1:])], operators, outputs)


def every(modules: tuple[Module, ...]) -> Iterator[Module]:
    """Modules and the modules in them."""
    for module in modules:
        yield module
        for branch in module.branches:
            yield from every(tuple(step for step in branch.steps if isinstance(step, Module)))


def run_of(item: Module, rng: Random) -> list[int]:
    """The operators of a module as a planner may run them: branches in any order, the merge last."""
    found = []
    for branch in rng.sample(item.branches, len(item.branches)):
        for step in branch.steps:
            found += run_of(step, rng) if isinstance(step, Module) else [step]
    return [*found, item.merge]
