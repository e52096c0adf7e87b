"""Algorithm 3: the branches of a module in descending order of the memory that their layers require."""

from __future__ import annotations

from collections.abc import Iterator

from onchip.network import bits
from onchip.planners.branches.modules import Branch, Module
from onchip.planners.branches.sizes import Sizes

__all__ = ["Orders", "in_order", "layers", "order_of"]

Orders = dict[int, tuple[int, ...]]
"""The order of the branches, numbers from 0, by the merge operator of their module."""


def in_order(module: Module) -> Iterator[int]:
    """Yield the operators of a module, its merge last, branch by branch in the given order."""
    for branch in module.branches:
        yield from layers(branch)
    yield module.merge


def layers(branch: Branch) -> Iterator[int]:
    """Yield the operators of a branch, those of modules inside it included."""
    for step in branch.steps:
        if isinstance(step, Module):
            yield from in_order(step)
        else:
            yield step


def order_of(module: Module, sizes: Sizes, *, staged_input: bool = False) -> Orders:
    """Return the order of the branches of a module and of every module inside it.

    A layer requires its input, output, working memory and partial weights, except the input and the output of
    a module. A copy of a part of a module's input counts as that input, unless `staged_input`: reduction-a of
    Inception v3 needs processing II only with the paper's exception.
    """
    found: Orders = {}
    _order(module, sizes, staged_input, frozenset({module.start}), frozenset(), found)
    return found


def _order(
    module: Module, sizes: Sizes, staged: bool, starts: frozenset[int], ends: frozenset[int], found: Orders
) -> int:
    ends = ends | {t for branch in module.branches for t in branch.outputs}
    needs = []
    for branch in module.branches:
        most = 0
        for step in branch.steps:
            if isinstance(step, Module):
                most = max(most, _order(step, sizes, staged, starts | {step.start}, ends, found))
            else:
                most = max(most, _required(step, sizes, staged, starts, ends))
        needs.append(most)
    found[module.merge] = tuple(sorted(range(len(needs)), key=lambda b: -needs[b]))
    return max(needs, default=0)


def _required(v: int, sizes: Sizes, staged: bool, starts: frozenset[int], ends: frozenset[int]) -> int:
    """Return size_req(b, k) without the input and the output of any module (CalcSizeReqMem)."""
    network = sizes.network
    total = sizes.weights(v)
    for t in bits(network.reads[v]):
        total += 0 if t in starts else sizes.tensor(t)
    if staged or not starts & set(bits(network.reads[v])):
        total += sizes.working(v)
    return total + sum(0 if t in ends else sizes.tensor(t) for t in network.operators[v].outputs)
