"""The size of a problem's ILP, counted without building it; and the savings of the lifetime pruning."""

from __future__ import annotations

from dataclasses import dataclass

from onchip.planners.placement.ilp.lifetimes import Lifetimes

__all__ = ["Unpruned", "pairs_in_time", "unpruned"]


@dataclass(frozen=True, slots=True)
class Unpruned:
    """Variables and constraints if every tensor, and every pair of them, had every step."""

    variables: int
    constraints: int


def unpruned(lifetimes: Lifetimes) -> Unpruned:
    """Return the size of the paper's equations over all of A x T and A^2 x T (III-F), each pair once."""
    steps, items = lifetimes.steps, lifetimes.items
    count = len(items)
    pairs = count * (count - 1) // 2
    siblings = sum(len(p) - 1 for p in lifetimes.problem.outputs)
    reads = sum(
        len(i) * len(o) for i, o in zip(lifetimes.problem.inputs, lifetimes.problem.outputs, strict=True)
    )
    siblings += sum(1 for w in lifetimes.problem.workspace if w)
    a_tensor_a_step = 4 + 2  # C, P, S, R; L, V
    return Unpruned(
        variables=steps * (a_tensor_a_step * count + 2 * pairs),
        # Eq. 1-4 and the five rows of eq. 11 for a tensor and step, the four of eq. 10 for a pair and step.
        constraints=steps * (9 * count + 4 * pairs + reads + siblings) + 2 * count,
    )


def pairs_in_time(lifetimes: Lifetimes, most: int) -> int:
    """Return the number of (pair, step): two variables and four rows each. Counting stops beyond `most`."""
    found = 0
    for _, _, steps in lifetimes.pairs():
        found += len(steps)
        if found > most:
            break
    return found
