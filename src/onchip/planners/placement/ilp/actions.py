"""The four actions a tensor can take at a step, and eq. 1-8: order, data dependencies, one spill."""

from __future__ import annotations

from dataclasses import dataclass, field

from onchip.planners.placement.ilp.lifetimes import Item, Lifetimes
from onchip.planners.placement.ilp.reading import Reading
from onchip.planners.placement.ilp.rows import Model, Terms

__all__ = ["Actions", "actions"]

Key = tuple[int, int]
"""(index of an item, step)."""


@dataclass(slots=True)
class Actions:
    """The variables C (created), P (preserved), S (spilled) and R (retrieved) that can be 1 at all.

    `operator` holds for each operator and step the C of one of its outputs: it is 1 if it runs there.
    """

    create: dict[Key, int] = field(default_factory=dict)
    preserve: dict[Key, int] = field(default_factory=dict)
    spill: dict[Key, int] = field(default_factory=dict)
    retrieve: dict[Key, int] = field(default_factory=dict)
    operator: dict[Key, int] = field(default_factory=dict)

    def resident(self, item: int, step: int) -> Terms:
        """Return C + P + R: 1 if the item is in the scratchpad at the step."""
        found = (kind.get((item, step)) for kind in (self.create, self.preserve, self.retrieve))
        return [(x, 1) for x in found if x is not None]


def actions(model: Model, lifetimes: Lifetimes, reading: Reading, *, leave: bool = True) -> Actions:
    """Add C, P, S, R and eq. 1 to 8. Without `leave` nothing is spilled or retrieved: eq. 13.

    The lifetimes contain eq. 16 (a given order): they leave every operator one step, and eq. 7 does the rest.
    """
    made = Actions()
    for i, item in enumerate(lifetimes.items):
        _variables(model, made, i, item, reading, leave)
    for i, item in enumerate(lifetimes.items):
        _one_tensor(model, made, i, item, reading)
    _operators(model, made, lifetimes)
    return made


def _variables(model: Model, made: Actions, i: int, item: Item, reading: Reading, leave: bool) -> None:
    for t in range(item.first, item.newest + 1):
        made.create[i, t] = model.variable("C")
    if item.momentary:
        return
    copied = item.producer is None and reading.inputs == "sensible"
    for t in range(item.first + 1, item.last + 1):
        made.preserve[i, t] = model.variable("P")
        if leave:
            made.retrieve[i, t] = model.variable("R")
            if not copied:
                made.spill[i, t] = model.variable("S")


def _one_tensor(model: Model, made: Actions, i: int, item: Item, reading: Reading) -> None:
    """Add eq. 1-4, 7 and 8 of one tensor."""
    window = range(item.first, item.newest + 1)
    model.equal("7", [(made.create[i, t], 1) for t in window], 1)
    if item.momentary:
        return
    spills = [(x, 1) for t in range(item.first, item.last + 1) if (x := made.spill.get((i, t))) is not None]
    if len(spills) > 1:
        model.at_most("8", spills, 1)
    copies: Terms = []  # the actions that make a copy in DRAM exist, as eq. 4 sums them
    for t in range(item.first, item.last + 1):
        spill, retrieve, preserve = (kind.get((i, t)) for kind in (made.spill, made.retrieve, made.preserve))
        here = made.resident(i, t)
        alone = [(spill, 1)] if spill is not None else []
        if alone and reading.relocations and retrieve is not None:
            model.at_most("1", here, 1)
            model.at_most("1", [*(term for term in here if term[0] != retrieve), *alone], 1)
        elif len(here) + len(alone) > 1:
            model.at_most("1", [*here, *alone], 1)
        before = made.resident(i, t - 1)
        if preserve is not None:
            model.at_most("2", [(preserve, 1), *_less(before)], 0)
        if spill is not None:
            came = [term for term in before if term[0] != made.retrieve.get((i, t - 1))]
            model.at_most("3", [(spill, 1), *_less(came)], 0)
            copies.append((spill, 1))
        elif (i, t - 1) in made.create:
            copies.append((made.create[i, t - 1], 1))
        if retrieve is not None:
            model.at_most("4", [(retrieve, 1), *_less(copies)], 0)


def _operators(model: Model, made: Actions, lifetimes: Lifetimes) -> None:
    """Add eq. 5 and 6 for every operator, and the paper's one operator a step (III-A)."""
    items = lifetimes.items
    outputs: list[list[int]] = [[] for _ in range(lifetimes.steps)]
    where = {item.tensor: i for i, item in enumerate(items) if item.tensor is not None}
    for i, item in enumerate(items):
        if item.producer is not None:
            outputs[item.producer].append(i)
    at_step: list[Terms] = [[] for _ in range(lifetimes.steps)]
    for v, written in enumerate(outputs):
        for t in range(lifetimes.earliest[v], lifetimes.latest[v] + 1):
            runs = made.operator[v, t] = made.create[written[0], t]
            at_step[t].append((runs, 1))
            for sibling in written[1:]:
                model.equal("6", [(runs, 1), (made.create[sibling, t], -1)], 0)
            for a in written:
                if items[a].tensor is None:
                    continue  # a workspace has no inputs of its own
                for b in lifetimes.problem.inputs[v]:
                    here = made.resident(where[b], t)
                    if items[where[b]].producer is not None:  # not at the step it is made (eq. 5: P + R)
                        here = [term for term in here if term[0] != made.create.get((where[b], t))]
                    model.at_most("5", [(made.create[a, t], 1), *_less(here)], 0)
    for terms in at_step:
        model.equal("one operator a step", terms, 1)


def _less(terms: Terms) -> Terms:
    return [(x, -k) for x, k in terms]
