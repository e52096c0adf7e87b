"""A large problem in stages that run one after the other: the states of tensors between them.

A stage sees only the operators it runs and the tensors that they touch or that pass through. From every state
at its beginning it finds every state at its end that is worth continuing from. Equal stages are solved once:
a network of a thousand blocks is as quick as its different blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from onchip.network import mask
from onchip.planners.limits import Limits
from onchip.planners.placement.problem import Problem
from onchip.planners.placement.search import Boundary, Found, Step, minimum_of_stage

__all__ = ["Front", "Node", "Stages", "sub_problem"]


@dataclass(frozen=True, slots=True)
class Node:
    """A state between two stages. `at` lists only resident tensors: absent ones have a copy."""

    at: Boundary
    before: Node | None = None
    steps: tuple[Step, ...] = ()

    def path(self) -> tuple[Step, ...]:
        """Return all steps from the start to here."""
        pieces, node = [], self
        while node.before is not None:
            pieces.append(node.steps)
            node = node.before
        return tuple(step for piece in reversed(pieces) for step in piece)


Front = tuple[Node, ...]
"""The known ways to arrive that are worth continuing from."""

START: Front = (Node(Boundary(0, frozenset(), frozenset())),)


def cheapest(front: Front) -> Node:
    """Return the node that has paid least."""
    return min(front, key=lambda node: node.at.paid)


def relaxed(paid: int) -> Front:
    """Return a front no worse than any whose nodes paid `paid` or more: all is out, at no charge (R1)."""
    return (Node(Boundary(paid, frozenset(), frozenset())),)


def sub_problem(
    problem: Problem, operators: Sequence[int], also: Iterable[int] = (), free: Iterable[int] = ()
) -> tuple[Problem, list[int]]:
    """Return the problem of some operators, in this order if the problem's order is fixed; and its tensors.

    Ids are dense, in the order in which the operators touch them, then the tensors `also`. Tensors that none
    of the operators makes are graph inputs. Moving the tensors `free` costs nothing.
    """
    ids: dict[int, int] = {}
    for v in operators:
        for t in (*problem.inputs[v], *problem.outputs[v]):
            ids.setdefault(t, len(ids))
    for t in sorted(also):
        ids.setdefault(t, len(ids))
    made = {t for v in operators for t in problem.outputs[v]}
    unpaid = set(free)
    sub = Problem(
        size=tuple(problem.size[t] for t in ids),
        cost=tuple(0 if t in unpaid else problem.cost[t] for t in ids),
        inputs=tuple(tuple(sorted(ids[t] for t in problem.inputs[v])) for v in operators),
        outputs=tuple(tuple(sorted(ids[t] for t in problem.outputs[v])) for v in operators),
        workspace=tuple(problem.workspace[v] for v in operators),
        graph_inputs=mask(i for t, i in ids.items() if t not in made),
        graph_outputs=mask(i for t, i in ids.items() if problem.graph_outputs >> t & 1),
        order=None if problem.order is None else tuple(range(len(operators))),
        overwrites=tuple(tuple(ids[t] for t in problem.overwrites[v]) for v in operators)
        if problem.overwrites
        else (),
    )
    return sub, list(ids)


@dataclass
class Stages:
    """Solves stages of one problem within one budget, each different one once."""

    problem: Problem
    budget: int
    states: int = 0
    searches: int = 0
    _known: dict[object, tuple[Found, float]] = field(default_factory=dict)

    def through(
        self,
        front: Front,
        operators: Sequence[int],
        lives_on: Callable[[int], bool],
        limits: Limits,
        beam_width: int = 0,
    ) -> tuple[Front, Found]:
        """Return the front after `operators`, and the search's own answer, relative to the cheapest start.

        `lives_on` tells whether later stages read a tensor. The front is complete (see `minimum_of_stage`) if
        the search ended as `complete`.
        """
        riding = {t for node in front for t in node.at.resident}
        sub, tensors = sub_problem(self.problem, operators, also=riding)
        ids = {t: i for i, t in enumerate(tensors)}
        given = {t for t in tensors if sub.graph_inputs >> ids[t] & 1}
        base = cheapest(front).at.paid
        starts = tuple(
            Boundary(
                node.at.paid - base,
                frozenset(ids[t] for t in node.at.resident),
                frozenset(ids[t] for t in given if t not in node.at.resident or t in node.at.copied),
            )
            for node in front
        )
        on = tuple(i for i, t in enumerate(tensors) if lives_on(t))
        key = (sub, on, starts, beam_width)
        known, seconds = self._known.get(key), limits.left() or 0.0
        # Search again after a limit only with clearly more time.
        if known is None or (known[0].end == "time" and seconds > 2 * known[1]):
            found = minimum_of_stage(sub, self.budget, on, starts, limits=limits, beam_width=beam_width)
            self.searches += 1
            self.states += found.states
            self._known[key] = found, seconds
        else:
            found = known[0]
        after = []
        for way in found.arrivals:
            resident = frozenset(tensors[i] for i in way.at.resident)
            copied = frozenset(tensors[i] for i in way.at.copied) & resident
            steps = tuple(Step(operators[s.operator], tuple(tensors[t] for t in s.evict)) for s in way.steps)
            after.append(Node(Boundary(way.at.paid + base, resident, copied), front[way.start], steps))
        return tuple(after), found
