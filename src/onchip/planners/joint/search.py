"""The cheapest way through a network, group by group, with what stays on chip between them: addresses aside.

The work is done in C++ (`_core/joint_*.cpp`): a search over states (operators that have run, tensors resident
whole, tensors with a DRAM copy), with a bound from all groups. docs/joint.md proves every rule.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace

from onchip import _core
from onchip.network import bits, mask
from onchip.planners.fusion import FusionProblem, GroupCost
from onchip.planners.fusion.search import Fuser, Space, Stop, cost_of
from onchip.planners.joint.bound import worths
from onchip.planners.limits import NO_LIMITS, End, Limits

__all__ = ["ALL_RULES", "Figures", "Found", "JointSearch", "Rules", "Step", "compulsory_bytes"]

WIDTHS = (1, 8, 50, 400, 3000, 0)
"""States of every number of operators that one pass after the other follows; 0: all."""

MOST_GROUPS, MOST_DOWNSETS = 1_000_000, 100_000
"""Groups that are listed, and sets of operators that are priced one by one; beyond, operators are priced."""

LISTING, PRICING = 0.1, 0.6
"""Parts of the time limit by which groups are listed, and the bound is made."""

PATIENCE = 60.0
"""Seconds for either of bound and search where no limit is asked for and a network is too large to finish."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What spares the search work, by the names docs/joint.md gives them. All are exact."""

    dominance: bool = True
    """J1: drop a state that another one of the same operators can imitate at no more cost."""
    minimal: bool = True
    """J2: evict only what the next group needs gone, and then no tensor too many."""
    ahead: bool = True
    """J3: bound the rest by the least way through the sets of operators that remain."""
    incumbent: bool = True
    """J4: drop what cannot be cheaper than the best known."""


ALL_RULES = Rules()


@dataclass(frozen=True, slots=True)
class Step:
    """A group (bitset of operators) runs.

    `evicted` are tensors that leave the chip before, `whole` (bitset) the operands that are on chip whole:
    those that are not there yet are loaded, or reserved. `way` is how it runs in tiles; None for a single
    operator that runs as it is. `over` is the operand whose place the output takes.
    """

    members: int
    whole: int
    evicted: tuple[int, ...]
    over: int | None
    way: GroupCost | None


@dataclass(frozen=True, slots=True)
class Figures:
    """How much a search looked at: `groups` listed, `states` followed, `downsets`, groups `evaluated`, most
    `memory` bytes, `seconds`."""

    groups: int
    states: int
    downsets: int
    evaluated: int
    memory: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Found:
    """The cheapest steps (none: nothing below what was asked for), and what no steps cost less than.

    `dram_bytes` is everything that crosses. `complete`: nothing is cheaper than these, or than what was
    known.
    """

    steps: tuple[Step, ...]
    dram_bytes: int | None
    lower_bound_bytes: int
    complete: bool
    end: End
    figures: Figures


def compulsory_bytes(problem: FusionProblem) -> int:
    """What crosses in any case: graph inputs that are read, and outputs that are made, each once."""
    network = problem.network
    read = made = 0
    for v in range(len(network.operators)):
        read |= network.reads[v]
        made |= network.writes[v]
    crossing = (network.input_roots & read) | (network.output_roots & made)
    return sum(network.tensors[t].bytes for t in bits(crossing))


class JointSearch:
    """A problem prepared for many searches at its budget. Not for several threads at once.

    `over`: for each operator the inputs that its output may be written over. `largest`: most operators of a
    group (0: any number), `most_groups`: how many are listed.
    """

    def __init__(
        self,
        problem: FusionProblem,
        over: Sequence[Sequence[int]] = (),
        *,
        rules: Rules = ALL_RULES,
        limits: Limits = NO_LIMITS,
        largest: int = 0,
        most_groups: int = MOST_GROUPS,
        fuser: Fuser | None = None,
    ) -> None:
        self.problem, self.rules = problem, rules
        self._order = problem.network.order
        self._compulsory = compulsory_bytes(problem)
        self.large = False
        began = time.perf_counter()
        self.fuser = fuser or Fuser(problem, Space(largest=largest))
        listing = replace(limits.share(LISTING), memory_limit=limits.memory_limit // 2)
        self.all_groups, _ = self.fuser.list_groups(
            problem.budget, limits=listing, most_groups=most_groups, stop=_stop(limits, began)
        )
        self.groups = self.fuser.core.listed
        self._core = _core.Joint(
            fuser=self.fuser.core,
            budget=problem.budget,
            over=[list(over[v]) if over else [] for v in self._order],
            rules=_core.JointRules(**asdict(rules)),
        )
        self.misfits = tuple(self._order[i] for i in self._core.misfits())
        self._seconds = time.perf_counter() - began

    def best(
        self,
        below: int | None = None,
        *,
        limits: Limits = NO_LIMITS,
        widths: Iterable[int] = WIDTHS,
        seed: int = 0,
    ) -> Found:
        """The cheapest steps of all that cost less than `below` bytes of DRAM traffic in all.

        One pass after the other, each wider, until nothing is cut off or time is up. Every operator alone
        must fit (`misfits` is empty).
        """
        began = time.perf_counter()
        known = None if below is None else below - self._compulsory
        bound = self._bounded(limits.share(PRICING), began)
        if self.large:
            limits = limits.patient(PATIENCE)
        best: _core.JointFound | None = None
        states = 0
        end: End = "complete"
        complete = False
        for width in widths:
            if limits.left() == 0.0 and best is not None:
                break
            found = self._core.search(
                width=width,
                below=known,
                seed=seed,
                limits=limits.core(_stop(limits, began)),
            )
            states += found.states
            bound = max(bound, found.bound)
            if found.cost is not None:
                best, known = found, found.cost
            end, complete = found.end, found.complete
            if complete or end in ("time", "stopped"):
                break
        if not self.all_groups:
            complete = False
        figures = Figures(
            self.groups,
            states,
            0 if best is None else best.downsets,
            0 if best is None else best.evaluated,
            0 if best is None else best.memory,
            self._seconds + time.perf_counter() - began,
        )
        total = None if best is None or best.cost is None else best.cost + self._compulsory
        least = self._compulsory + (bound if self.all_groups else self._least())
        if known is not None:
            least = min(least, known + self._compulsory)
        steps = () if best is None else tuple(self._step(step) for step in best.steps)
        return Found(steps, total, least, complete, end, figures)

    def _bounded(self, limits: Limits, began: float) -> int:
        """Make the bound that the passes prune by; what it says of the whole network."""
        if not self.rules.ahead:
            return self._least()
        prepared = self._core.prepare(
            most=MOST_DOWNSETS, limits=limits.patient(PATIENCE).core(_stop(limits, began))
        )
        if prepared:
            return self._least()
        self.large = True
        worth = worths(self._core, len(self._order), limits.patient(PATIENCE))
        self._core.worth(worth)
        return sum(worth)

    def _least(self) -> int:
        """What operators cost at least beside what crosses in any case."""
        return self._core.floor()

    def _step(self, step: _core.JointStep) -> Step:
        group = mask(self._order[i] for i in step.members)
        way = None if step.plain else cost_of(self.problem, group, step.cost)
        return Step(group, mask(step.whole), tuple(step.evicted), step.over, way)


def _stop(limits: Limits, began: float) -> Stop:
    def stop(groups: int, states: int) -> bool:
        seconds = time.perf_counter() - began
        limits.say(f"fusing and placing: {groups:,} groups, {states:,} states, {seconds:.0f} s")
        return limits.stopped()

    return stop
