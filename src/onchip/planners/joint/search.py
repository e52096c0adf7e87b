"""The cheapest way through a network, group by group, with the tensors that stay between them; no addresses.

C++ code does the work (`_core/joint_*.cpp`): a search over states (finished operators, tensors resident
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
from onchip.planners.joint.nests import Nests, NestWay
from onchip.planners.limits import NO_LIMITS, End, Limits

__all__ = ["ALL_RULES", "Figures", "Found", "JointSearch", "Rules", "Step", "compulsory_bytes"]

WIDTHS = (1, 8, 50, 400, 3000, 0)
"""The most states of every number of operators that each pass follows, pass by pass; 0: all."""

MOST_GROUPS, MOST_DOWNSETS = 1_000_000, 100_000
"""The most groups that are listed, and sets of operators that are priced; beyond, operators are priced."""

LISTING, PRICING = 0.1, 0.6
"""Shares of the time limit after which the groups are listed, and the bound is made."""

PATIENCE = 60.0
"""Seconds for each of bound and search if no limit is requested and a network is too large to finish."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules that save the search work, by their names in docs/joint.md. All are exact."""

    dominance: bool = True
    """J1: drop a state that another one of the same operators can imitate at no more cost."""
    minimal: bool = True
    """J2: evict only as much as the next group requires, and no tensor too many."""
    ahead: bool = True
    """J3: bound the rest by the least way through the sets of operators that remain."""
    incumbent: bool = True
    """J4: drop states that cannot be cheaper than the best known."""


ALL_RULES = Rules()


AIMS = (0.0, 0.003, 0.01, 0.03)
"""Shares of the bound: so far above it a pass that cuts off states looks at first. There it prunes
most, and what it finds prunes the next."""

MOST_MISSES = 8
"""Passes that found nothing just above the bound, after which no more look there."""


@dataclass(frozen=True, slots=True)
class Step:
    """A group (bitset of operators) runs.

    `evicted` are tensors that leave the chip before, `whole` (bitset) the operands that are on chip whole:
    absent ones are loaded, or reserved. `way` is its tiling or its nest; None for a single operator that runs
    whole. `over` is the operand whose place the output `made` takes. `joined`: a concat whose operands lie
    side by side in DRAM; nothing runs.
    """

    members: int
    whole: int
    evicted: tuple[int, ...]
    over: int | None
    made: int | None
    way: GroupCost | NestWay | None
    joined: bool = False


@dataclass(frozen=True, slots=True)
class Figures:
    """The size of a search: `groups` listed, `states` followed, `downsets`, groups `evaluated`, most
    `memory` bytes, `seconds`."""

    groups: int
    states: int
    downsets: int
    evaluated: int
    memory: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Found:
    """The cheapest steps (none: nothing below the requested bound), and a lower bound of all steps.

    `dram_bytes` is everything that crosses. `complete`: nothing is cheaper than these, or than the known
    bound. `hoped`: texts of nests for which the bound counts less than was found.
    """

    steps: tuple[Step, ...]
    dram_bytes: int | None
    lower_bound_bytes: int
    complete: bool
    end: End
    figures: Figures
    hoped: tuple[int, ...] = ()


def compulsory_bytes(problem: FusionProblem) -> int:
    """Return the bytes that cross in any case: graph inputs that are read and outputs that are made, once."""
    network = problem.network
    read = made = 0
    for v in range(len(network.operators)):
        read |= network.reads[v]
        made |= network.writes[v]
    crossing = (network.input_roots & read) | (network.output_roots & made)
    return sum(network.tensors[t].bytes for t in bits(crossing))


class JointSearch:
    """A problem prepared for many searches at its budget. Not thread-safe.

    `over`: for each operator the inputs that its output may be written over. `joins`: concats that may be
    joined in DRAM. `nests`: groups that may run as nests of loops. `largest`: most operators of a group in
    bands (0: any number), `most_groups`: the most such groups that are listed (None: `MOST_GROUPS`).
    """

    def __init__(
        self,
        problem: FusionProblem,
        over: Sequence[Sequence[int]] = (),
        *,
        joins: Sequence[int] = (),
        nests: Nests | None = None,
        rules: Rules = ALL_RULES,
        limits: Limits = NO_LIMITS,
        largest: int = 0,
        most_groups: int | None = None,
        fuser: Fuser | None = None,
    ) -> None:
        self.problem, self.rules = problem, rules
        self._order = problem.network.order
        self._compulsory = compulsory_bytes(problem)
        self.large = False
        self._prepared = False
        self._below: int | None = None  # the bound holds for passes below this
        self._worth: int | None = None  # of all operators, if sets of them are too many: for all passes
        self._misses = 0  # of passes just above the bound
        began = time.perf_counter()
        self.fuser = fuser or Fuser(problem, Space(largest=largest))
        listing = replace(limits.share(LISTING), memory_limit=limits.memory_limit // 2)
        self.all_groups, _ = self.fuser.list_groups(
            problem.budget,
            limits=listing,
            most_groups=MOST_GROUPS if most_groups is None else most_groups,
            stop=_stop(limits, began),
        )
        self.groups = self.fuser.core.listed
        self.nests = nests = nests or Nests(problem)
        place = {v: i for i, v in enumerate(self._order)}
        self._core = _core.Joint(
            fuser=self.fuser.core,
            budget=problem.budget,
            over=[list(over[v]) if over else [] for v in self._order],
            nests=[
                _core.JointNest(
                    members=sorted(place[v] for v in bits(nest.members)),
                    text=nest.text,
                    buffers=list(nest.buffers.items()),
                    floor=nests.floor(nest),
                    windowed=list(nest.windowed),
                    over=list(nest.over) if nests.overlap else [],
                )
                for nest in nests.candidates
            ],
            costs=nests.costs,
            joins=[place[v] for v in joins],
            rules=_core.JointRules(**asdict(rules)),
        )
        self.untile(nests.untiled)
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
        """Return the cheapest steps of all that cost less than `below` bytes of DRAM traffic.

        One pass after the other, each wider, until nothing is cut off or time is up. Every operator alone
        must fit (`misfits` is empty).
        """
        began = time.perf_counter()
        known = None if below is None else below - self._compulsory
        bound = self._bounded(known, limits.share(PRICING), began)
        if self.large:
            limits = limits.patient(PATIENCE)
        best: _core.JointFound | None = None
        states = 0
        end: End = "complete"
        complete = False
        hoped: Sequence[int] = ()
        aims = [bound + 1 + int(bound * share) for share in AIMS]
        for width, aim in [(most, aim) for most in widths for aim in (*(aims if most else ()), None)]:
            if aim is not None and (self._misses >= MOST_MISSES or (known is not None and aim >= known)):
                continue
            if limits.left() == 0.0 and best is not None:
                break
            found = self._core.search(
                width=width,
                below=known if aim is None else aim,
                seed=seed,
                limits=limits.core(_stop(limits, began)),
            )
            states += found.states
            bound = max(bound, found.bound)
            if found.cost is not None:
                best, known = found, found.cost
            elif aim is not None:
                self._misses += 1
                continue
            end, complete, hoped = found.end, found.complete, found.hoped
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
        return Found(steps, total, least, complete, end, figures, tuple(sorted(set(hoped))))

    def bound(self, limits: Limits = NO_LIMITS) -> int:
        """Return the bytes of DRAM traffic that every plan of the listed groups moves at least."""
        return self._compulsory + self._bounded(None, limits, time.perf_counter())

    def is_large(self, below: int, limits: Limits) -> bool:
        """Return whether there are too many sets of operators for the exact bound of passes below `below`."""
        self._bounded(below - self._compulsory, limits.share(PRICING), time.perf_counter())
        return self.large

    def forget_nests(self, *, hopeful: bool = False) -> None:
        """Ask again for what groups cost as nests, as their searches may go deeper now.

        `hopeful`: of a search that is cut off count what it may find at best. What is found costs what its
        steps cost as they are known, and is `complete` if they may cost no less.
        """
        self._core.forget_nests(hopeful=hopeful)
        self._prepared = False
        self._worth = None

    def untile(self, groups: Iterable[int]) -> None:
        """Run groups (bitsets) in bands or blocks no more. Bounds stay: nothing costs less than before."""
        place = {v: i for i, v in enumerate(self._order)}
        for group in groups:
            self._core.untile(sorted(place[v] for v in bits(group)))

    def _bounded(self, below: int | None, limits: Limits, began: float) -> int:
        """Make the bound that passes below `below` prune by; return its value for the whole network."""
        if not self.rules.ahead:
            return self._least()
        if self._worth is not None:
            return self._worth
        if not self._prepared or (self._below is not None and (below is None or below > self._below)):
            self._prepared = self._core.prepare(
                most=MOST_DOWNSETS, below=below, limits=limits.patient(PATIENCE).core(_stop(limits, began))
            )
            self._below = below
        if self._prepared:
            return self._least()
        self.large = True
        limits = limits.patient(PATIENCE)
        worth = worths(self._core, len(self._order), limits)
        self._core.worth(worth)
        if not limits.over():  # else more time may give more
            self._worth = sum(worth)
        return sum(worth)

    def _least(self) -> int:
        """Return the least cost of operators in addition to the bytes that cross in any case."""
        return self._core.floor()

    def _step(self, step: _core.JointStep) -> Step:
        group, whole = mask(self._order[i] for i in step.members), mask(step.whole)
        way: GroupCost | NestWay | None = None
        if step.nest:
            way = self.nests.way(
                self.nests.by_members[group], whole, step.cost.scratch, over=step.over, made=step.made
            )
            assert way is not None
        elif not step.plain and not step.joined:
            way = cost_of(self.problem, group, step.cost)
        return Step(group, whole, tuple(step.evicted), step.over, step.made, way, step.joined)


def _stop(limits: Limits, began: float) -> Stop:
    def stop(groups: int, states: int) -> bool:
        seconds = time.perf_counter() - began
        limits.say(f"fusing and placing: {groups:,} groups, {states:,} states, {seconds:.0f} s")
        return limits.stopped()

    return stop
