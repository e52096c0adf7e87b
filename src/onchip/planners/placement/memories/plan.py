"""Placement in several memories from end to end: bounds, orders, memories, addresses, the certificate."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from onchip.base.errors import Infeasible, UsageError
from onchip.check import certify, plan_chip_of
from onchip.machines.chip import Chip, Memory
from onchip.network import Network
from onchip.planners.limits import Limits
from onchip.planners.placement.claim import space_of_memories
from onchip.planners.placement.memories.assign import along, least_picoseconds
from onchip.planners.placement.memories.greedy import alone, by_density, homes_of, nothing_kept
from onchip.planners.placement.memories.levels import Levels, MemoryProblem
from onchip.planners.placement.memories.search import search
from onchip.planners.placement.memories.steps import Placing, Step, cost_of, place
from onchip.planners.placement.options import DEFAULTS, PlacementOptions
from onchip.planners.placement.problem import Problem
from onchip.planners.placement.search import minimum_peak, minimum_traffic
from onchip.planners.placement.weights import apart, as_planned
from onchip.plans import Plan

__all__ = ["SECONDS", "plan_in_memories"]

SECONDS = 60.0
"""Seconds of planning unless the options state others: the integer programs have no end of their own."""

STATES = 60_000
"""The most states of the complete search before it gives up."""

TIGHTER = 6
"""The most times that memories are assigned again within less room, if no addresses were found."""

Cost = tuple[int, int]


def plan_in_memories(
    network: Network,
    chip: Chip,
    memories: Sequence[Memory],
    options: PlacementOptions = DEFAULTS,
    limits: Limits | None = None,
) -> Plan:
    """Return the plan with the least traffic, and of those the least `memory_picoseconds`, in these memories.

    `memories` are the chip's, with the sizes that may be used. `optimal` if both equal proved bounds, else
    `feasible` with them. Raises `Infeasible` (or `NegativeAnswer`, if sizes add up but single tensors do not
    fit) naming the operator, `UsageError` for an option that several memories do not have. `limits` override
    those in `options`.
    """
    with (limits or Limits.of(options)).interruptible() as limits:
        return _Planning(network, chip, memories, options, limits).plan()


@dataclass
class _Best:
    """The cheapest placed program so far."""

    cost: Cost
    placing: Placing
    how: str


class _Planning:
    def __init__(
        self,
        network: Network,
        chip: Chip,
        memories: Sequence[Memory],
        options: PlacementOptions,
        limits: Limits,
    ) -> None:
        _refuse(options)
        self.began = time.perf_counter()
        self.chip, self.memories, self.options = chip, tuple(memories), options
        self.network = as_planned(network, chip, options)
        base = Problem.of(self.network, chip.alignment_bytes)
        written = [t for row in base.outputs for t in row]
        if len(set(written)) < len(written):
            raise UsageError(
                "several operators write one tensor, and memories are several, too", item="views"
            )
        self.limits, self.say = replace(limits.patient(SECONDS), progress=None), limits.say
        if options.order == "given":
            base = base.in_order(self.network.order)
        elif options.order == "minpeak":
            base = base.in_order(minimum_peak(base, limits=self.limits).order)
        self.problem = MemoryProblem.of(self.network, base, Levels.of(chip, memories))
        self.best: _Best | None = None

    def left(self, share: float = 1.0) -> Limits:
        """Return the limits with the rest of that share of the time; never zero: an answer is needed."""
        return self.limits.anew(max(0.2, self.limits.until(share).left() or 0.0))

    def plan(self) -> Plan:
        self.refuse_if_infeasible()
        base, levels = self.problem.problem, self.problem.levels
        self.say("searching the least traffic to DRAM")
        least = minimum_traffic(base, sum(levels.capacity), limits=self.left(0.2))
        bound: Cost = (least.bound, 0)
        self.say("searching all programs")
        proved = search(
            self.problem,
            self.left(0.4),
            states=STATES,
            moves=self.options.moves,
        )
        if proved.steps is not None:
            bound = proved.cost
            self.consider(proved.steps, "search")
        if self.best is None or self.best.cost > bound:
            self.improve(least.order, bound)
        assert self.best is not None
        traffic, picoseconds = self.best.cost
        if proved.steps is None or traffic > bound[0]:
            self.say("bounding the time at the memories")
            with_moves = self.options.moves
            floor = max(
                alone(self.problem),
                least_picoseconds(self.problem, self.left(), traffic=traffic > 0, moves=with_moves),
                proved.cost[1] if proved.cost[0] == traffic else 0,
            )
            bound = min(bound[0], traffic), min(floor, picoseconds)
        return self.certified(bound)

    def improve(self, order: Sequence[int], bound: Cost) -> None:
        """Assign memories along good orders, at least along the first, however little time there is."""
        orders = list(self.orders(order))
        for i, tried in enumerate(orders):
            self.say(f"assigning memories along order {i + 1} of {len(orders)}")
            share = 0.4 + 0.4 * (i + 1) / len(orders)
            self.follow(tried, share, spills=bound[0] > 0)
            if self.best is not None and (self.best.cost == bound or self.limits.stopped()):
                break
        if self.best is None:
            for tried in orders:
                self.follow(tried, 0.9, spills=True)
        if self.best is None:
            self.consider(nothing_kept(self.problem, orders[0]), "nothing kept")

    def follow(self, order: Sequence[int], share: float, *, spills: bool) -> None:
        """Assign memories along one order, within less and less room until addresses are found."""
        greedy = by_density(self.problem, order)
        if greedy is not None:
            self.consider(greedy.steps(self.problem), "density")
        capacity = list(self.problem.levels.capacity)
        for _ in range(TIGHTER):
            found = along(
                self.problem, order, capacity, self.left(share), spills=spills, moves=self.options.moves
            )
            if found is None:
                return
            steps = found.steps(self.problem)
            if self.best is not None and cost_of(self.problem, steps) >= self.best.cost:
                return
            missing = self.consider(steps, "assignment")
            if not missing or self.limits.stopped():
                return
            for m, over in missing:
                capacity[m] -= self.chip.round_up(over)
            if min(capacity) < 0:
                return

    def consider(self, steps: Sequence[Step], how: str) -> Sequence[tuple[int, int]]:
        """Keep a program if it finds addresses and is the best; return the bytes that it lacks, by memory."""
        cost = cost_of(self.problem, steps)
        if self.best is not None and cost >= self.best.cost:
            return ()
        seconds = max(0.5, (self.left().left() or 0.0) / 4)
        alignment, seed = self.chip.alignment_bytes, self.limits.seed
        found = place(self.problem, self.network, steps, alignment, seconds, seed)
        if not found.missing:
            self.best = _Best(cost, found, how)
        return found.missing

    def orders(self, least: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """Yield candidate orders: least traffic, least peak, the given one, one for the fastest memory."""
        base, levels = self.problem.problem, self.problem.levels
        if base.order is not None:
            yield tuple(base.order)
            return
        seen: set[tuple[int, ...]] = set()
        for order in self.candidates(least, levels.capacity[levels.reached[0]]):
            if order not in seen:
                seen.add(order)
                yield order

    def candidates(self, least: Sequence[int], fastest: int) -> Iterator[tuple[int, ...]]:
        base = self.problem.problem
        yield tuple(least)
        if base.minimum_budget <= fastest:
            yield tuple(minimum_traffic(base, fastest, limits=self.left(0.4)).order)
        yield tuple(minimum_peak(base, limits=self.left(0.4)).order)
        yield tuple(self.network.order)

    def certified(self, bound: Cost) -> Plan:
        assert self.best is not None
        weights = self.chip.weight_scratchpad_bytes if apart(self.chip, self.options) else None
        on = replace(plan_chip_of(self.chip), memories=self.memories, weight_scratchpad_bytes=weights)
        return certify(
            self.network,
            on,
            sum(m.bytes for m in self.memories),
            self.best.placing.program,
            status="optimal" if self.best.cost == bound else "feasible",
            lower_bound_bytes=bound[0],
            memory_lower_bound_picoseconds=bound[1],
            space=space_of_memories(self.network, self.options, apart=weights is not None),
            seconds=time.perf_counter() - self.began,
            options={
                "planner": "memories",
                "granularity": self.network.granularity,
                "element": self.network.element,
                "weights": self.options.weights,
                "objective": "memory",
                "order": self.options.order,
                **({} if self.options.moves else {"moves": False}),
                "seed": self.limits.seed,
                "found_by": self.best.how,
            },
        )

    def refuse_if_infeasible(self) -> None:
        """Raise if the operands and the workspace of some operator fit no memories that it reaches.

        The stated need is the least size of the fastest memory that operators reach, the others unchanged:
        with that size every operator of the network fits.
        """
        base, levels = self.problem.problem, self.problem.levels
        first = levels.reached[0]
        needs, hardest = levels.capacity[first], list[int]()
        for v in sorted(range(len(base.inputs)), key=base.step_bytes, reverse=True):
            if base.step_bytes(v) <= needs:
                break
            if not self.has_homes(first, v, needs):
                needs, hardest = self.least_of(first, v, needs), [v]
            elif hardest and not self.has_homes(first, v, needs - self.chip.alignment_bytes):
                hardest.append(v)
        if not hardest:
            return
        v = hardest[0]
        rows = [(self.network.tensors[t].name, base.size[t]) for t in {*base.inputs[v], *base.outputs[v]}]
        rows += [("its workspace", base.workspace[v])] if base.workspace[v] else []
        rows.sort(key=lambda row: (-row[1], row[0]))
        weights = apart(self.chip, self.options)
        raise Infeasible(
            needs=needs,
            has=self.memories[first].bytes,
            operator=self.network.operators[v].name,
            operators=tuple(self.network.operators[v].name for v in hardest),
            tensors=tuple(rows),
            memory=levels.names[first],
            space=space_of_memories(self.network, self.options, apart=weights),
        )

    def least_of(self, memory: int, v: int, fails: int) -> int:
        """Return the least bytes of a memory with which an operator's operands fit; `fails` are too few."""
        up = self.chip.alignment_bytes
        low, high = fails // up, self.problem.problem.step_bytes(v) // up
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.has_homes(memory, v, middle * up) else (middle, high)
        return high * up

    def has_homes(self, memory: int, v: int, size: int) -> bool:
        """Return whether an operator's operands fit, with `size` bytes of one memory."""
        levels = self.problem.levels
        capacity = tuple(size if m == memory else n for m, n in enumerate(levels.capacity))
        return homes_of(replace(self.problem, levels=replace(levels, capacity=capacity)), v) is not None


def _refuse(options: PlacementOptions) -> None:
    """Refuse options that a plan in several memories does not have."""
    for key, default in (("strategy", "exact"), ("inputs", "sensible"), ("objective", "traffic")):
        if getattr(options, key) != default:
            raise UsageError(f"is {default} on a chip with several memories", item=key)
    for key in ("in_place", "pin", "state", "capacity"):
        if getattr(options, key):
            raise UsageError("is for a chip with one memory", item=key)
