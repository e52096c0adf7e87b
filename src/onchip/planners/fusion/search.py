"""The cheapest partition of a network into fused groups: exact, or the best so far with a bound.

C++ code does the work (`_core/fusion_*.cpp`): candidates are grown as convex sets, a group's cost is the
least DRAM bytes over its bands, streamed tensors and resident weights, and the partition is a shortest path
over the sets of finished operators. docs/fusion-search.md proves every rule. `cost.group_cost` is the same
cost in readable form, and tests compare the two.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace

from onchip import _core
from onchip.network import bits, mask
from onchip.planners.fusion.cost import GroupCost, misfits
from onchip.planners.fusion.problem import FusedOperator, FusionProblem
from onchip.planners.limits import NO_LIMITS, End, Limits
from onchip.plans import Blocks, Boxes

__all__ = [
    "ALL_RULES",
    "FULL_SPACE",
    "Enumerated",
    "Figures",
    "Fuser",
    "Partition",
    "Rules",
    "Space",
    "best_partition",
    "count_convex",
    "enumerate_groups",
    "group_costs",
    "line_of",
]

Stop = Callable[[int, int], bool]
"""Called with the numbers of groups and states; true ends the search."""

Alone = Callable[[FusionProblem, int], GroupCost | None]
"""The cost of a single operator (bitset) in a way of the caller's; None if there is no such way."""


@dataclass(frozen=True, slots=True)
class Space:
    """The groups that a search tries. A single operator is always one."""

    largest: int = 0
    """Most operators of a group; 0 means any number."""
    whole_fan_out: bool = False
    """An operator is in a group with all of its readers or with none (Optimus, section 6)."""
    chains: bool = False
    """No operator that has several operands or readers is in a group with others (DNNVM)."""
    shared_inputs: bool = True
    """Operators that only read the same tensor may be a group."""
    order: tuple[int, ...] = ()
    """If not empty: only intervals of this order of the operators, which must be one that can run
    (Efficient-S)."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules that save the search work, by their names in docs/fusion-search.md.

    All are exact: any subset gives the same value, only more slowly.
    """

    lazy: bool = True
    """F1: evaluate a group when the search first reaches it."""
    worth: bool = True
    """F2: drop a group that is not cheaper than its operators one by one."""
    monotone: bool = True
    """F3: do not grow a set if no larger one fits."""
    incumbent: bool = True
    """F4: leave a state from which nothing better than the best partition known is reached."""


FULL_SPACE, ALL_RULES = Space(), Rules()


@dataclass(frozen=True, slots=True)
class Figures:
    """The size of a search.

    `candidates` groups of several operators fit (or may be part of one that fits); `kept` of them could pay
    by their floor, and `evaluated` were evaluated; `states` are sets of finished operators, with
    `transitions` between them; `memory` is the most bytes held.
    """

    candidates: int
    kept: int
    evaluated: int
    states: int
    transitions: int
    memory: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Partition:
    """Groups in an order in which they can run, and a bound of every partition of the space.

    `complete`: the search was complete, so that `dram_bytes` is the optimum and equals `lower_bound_bytes`.
    """

    groups: tuple[GroupCost, ...]
    lower_bound_bytes: int
    complete: bool
    end: End
    figures: Figures

    @property
    def dram_bytes(self) -> int:
        """Bytes of all groups together."""
        return sum(group.dram_bytes for group in self.groups)


@dataclass(frozen=True, slots=True)
class Enumerated:
    """Groups of several operators that may fit, each a bitset with its floor (a lower bound of its cost).

    `complete`: there are no others in the space. Operators alone are not among them.
    """

    groups: tuple[tuple[int, int], ...]
    complete: bool
    end: End


class Fuser:
    """A network prepared for many searches: its topology, and its candidates once they are enumerated.

    Candidates that were enumerated for a budget serve every smaller one; `prepare` without a budget
    enumerates them for all (which only a space with few groups allows). Not thread-safe.
    """

    def __init__(
        self, problem: FusionProblem, space: Space = FULL_SPACE, *, alone: Alone | None = None
    ) -> None:
        self.problem, self.space = problem, space
        self._alone = alone
        self._order = problem.network.order
        self._place = {v: i for i, v in enumerate(self._order)}
        if space.order and sorted(space.order) != sorted(self._order):
            raise ValueError("the order is not one of all operators")
        self._core = _core.Fuser(
            problem=_problem(problem),
            space=_core.FusionSpace(
                largest=space.largest,
                whole_fan_out=space.whole_fan_out,
                chains=space.chains,
                shared_inputs=space.shared_inputs,
                order=[self._place[v] for v in space.order],
            ),
        )

    @property
    def core(self) -> _core.Fuser:
        """The compiled fuser: operators go by their places in the network's order."""
        return self._core

    def prepare(
        self,
        budget: int | None = None,
        rules: Rules = ALL_RULES,
        limits: Limits = NO_LIMITS,
        *,
        most_groups: int = 0,
    ) -> Enumerated:
        """Enumerate the groups that fit `budget` bytes (None: that run in bands at all).

        No more than `most_groups` of them (0: any number).
        """
        complete, end = self.list_groups(budget, rules, limits, most_groups=most_groups)
        groups = tuple((self._members(places), floor) for places, floor in self._core.candidates())
        return Enumerated(groups, complete, end)

    def list_groups(
        self,
        budget: int | None = None,
        rules: Rules = ALL_RULES,
        limits: Limits = NO_LIMITS,
        *,
        most_groups: int = 0,
        stop: Stop | None = None,
    ) -> tuple[bool, End]:
        """Enumerate the same groups inside the core; return whether those are all, and why it ended."""
        found = self._core.enumerate(
            budget=budget,
            rules=_core.FusionRules(**asdict(rules)),
            groups=most_groups,
            limits=limits.core(stop or _stop(limits)),
        )
        return found.complete, found.end

    def best(
        self,
        budget: int | None = None,
        *,
        largest: int = 0,
        rules: Rules = ALL_RULES,
        limits: Limits = NO_LIMITS,
        most_groups: int = 0,
        most_states: int = 0,
    ) -> Partition:
        """Return the cheapest partition at `budget` bytes, groups of at most `largest` operators.

        The search ends as out of memory beyond `most_groups` or `most_states` (0: any number).
        Raises `Infeasible`, naming the operator, if one fits nowhere.
        """
        began = time.perf_counter()
        problem = self.problem if budget is None else replace(self.problem, budget=budget)
        priced = self._priced(problem)
        found = self._core.best(
            budget=problem.budget,
            largest=largest,
            rules=_core.FusionRules(**asdict(rules)),
            groups=most_groups,
            states=most_states,
            limits=limits.core(_stop(limits)),
        )
        if not found.fits:
            raise misfits(problem, [self._order[i] for i in self._core.misfits(problem.budget)])
        groups = []
        for places, cost in zip(found.groups, found.costs, strict=True):
            members = self._members(places)
            ours = cost.rows or cost.whole or cost.blocks  # bands, whole or blocks; else the caller's way
            groups.append(self._cost(members, cost) if ours else priced[members])
        figures = Figures(
            found.candidates,
            found.kept,
            found.evaluated,
            found.states,
            found.transitions,
            found.memory,
            time.perf_counter() - began,
        )
        return Partition(tuple(groups), found.bound, found.complete, found.end, figures)

    def cost(self, members: int, budget: int | None = None) -> GroupCost | None:
        """Return the cost of a convex group (bitset) in bands of rows, None if no band fits."""
        found = self._core.cost(self._places(members), self.problem.budget if budget is None else budget)
        return None if found.dram is None else self._cost(members, found)

    def dram_bytes(self, groups: Iterable[int], budget: int | None = None) -> tuple[int | None, ...]:
        """Return the same for many groups, bytes only."""
        places = [self._places(members) for members in groups]
        return tuple(self._core.dram_bytes(places, self.problem.budget if budget is None else budget))

    def least_scratch(self, members: int, bands: int = 0) -> int | None:
        """Return the least scratchpad bytes of a group in at most `bands` bands of an image.

        0 allows any number of bands; None for groups that cannot run in bands. The look-up table of Optimus'
        Algorithm 3 is made of these.
        """
        return self._core.least_scratch(self._places(members), bands)

    def count_convex(self) -> int | None:
        """Return the number of convex sets of operators, connected or not; None beyond 2^63."""
        return self._core.count_convex()

    def _priced(self, problem: FusionProblem) -> dict[int, GroupCost]:
        """Return the costs of operators in the caller's own way."""
        result = {}
        if self._alone is not None:
            for place, v in enumerate(self._order):
                found = self._alone(problem, 1 << v)
                self._core.alone(place, None if found is None else found.dram_bytes)
                if found is not None:
                    result[1 << v] = found
        return result

    def _members(self, places: Iterable[int]) -> int:
        return mask(self._order[i] for i in places)

    def _places(self, members: int) -> list[int]:
        return sorted(self._place[v] for v in bits(members))

    def _cost(self, members: int, found: _core.FusionCost) -> GroupCost:
        assert found.dram is not None  # of the caller's own way only this is known
        return replace(cost_of(self.problem, members, found), dram_bytes=found.dram)


def best_partition(
    problem: FusionProblem,
    limits: Limits = NO_LIMITS,
    *,
    space: Space = FULL_SPACE,
    rules: Rules = ALL_RULES,
    alone: Alone | None = None,
) -> Partition:
    """Return the partition of the network into convex groups with the fewest DRAM bytes (Optimus eq. 1).

    If a limit is hit it is the best so far, with its bound. Raises `Infeasible`, naming the operator, if one
    fits nowhere. `alone` is another way to run an operator.
    """
    return Fuser(problem, space, alone=alone).best(rules=rules, limits=limits)


def enumerate_groups(
    problem: FusionProblem,
    limits: Limits = NO_LIMITS,
    *,
    space: Space = FULL_SPACE,
    rules: Rules = ALL_RULES,
) -> Enumerated:
    """Return the convex groups of several operators, connected by edges or operands, that may fit."""
    return Fuser(problem, space).prepare(problem.budget, rules, limits)


def group_costs(problem: FusionProblem, groups: Sequence[int]) -> tuple[GroupCost | None, ...]:
    """Return the costs of convex groups (bitsets) in bands of rows; None if no band fits."""
    fuser = Fuser(problem)
    return tuple(fuser.cost(members) for members in groups)


def count_convex(problem: FusionProblem) -> int | None:
    """Return the number of non-empty convex sets of operators, connected or not; None beyond 2^63.

    This is the space that Optimus' Table 5 counts.
    """
    return Fuser(problem).count_convex()


def _stop(limits: Limits) -> Stop:
    def stop(groups: int, states: int) -> bool:
        limits.say(line_of(groups, states))
        return limits.stopped()

    return stop


def line_of(groups: int, states: int) -> str:
    """Return the progress of a search: groups found, and then states reached."""
    return f"fusing: {states:,} states" if states else f"fusing: {groups:,} groups"


def cost_of(problem: FusionProblem, members: int, found: _core.FusionCost) -> GroupCost:
    """Return the compiled search's way to run a group, and its bytes."""
    return GroupCost(
        members,
        found.rows,
        found.subgroups,
        problem.batch if found.whole else found.images,
        mask(found.streamed),
        mask(problem.network.order[i] for i in found.resident),
        found.scratch,
        found.crossing,
        found.halo,
        found.weight,
        found.crossing + found.halo + found.weight,
        _blocks(problem, members, found.blocks),
    )


def _blocks(problem: FusionProblem, members: int, found: _core.FusionBlocks | None) -> Blocks | Boxes | None:
    if found is None:
        return None
    if found.box >= 0:
        return problem.operators[members.bit_length() - 1].boxes[found.box].boxes
    return Blocks(found.rows, found.columns, found.outputs, found.channels, found.keep)


def _problem(problem: FusionProblem) -> _core.FusionProblem:
    network, options = problem.network, problem.options
    assert options.halo != "auto"  # resolved where options are made
    return _core.FusionProblem(
        tensors=[_tensor(problem, t) for t in range(len(network.tensors))],
        operators=[_operator(problem, v) for v in network.order],
        images=problem.batch,
        channel_tile=problem.channel_tile,
        least_rows=problem.least_rows,
        alignment=problem.alignment,
        maps_budget=problem.maps_budget,
        weights_budget=problem.weights_budget,
        options=_core.FusionOptions(
            batch_weights=options.batch_weights,
            isoa=options.isoa,
            halo=options.halo,
            residency=options.residency,
            weight_tile=options.weight_tile,
            blocks=options.blocks == "best",
        ),
    )


def _tensor(problem: FusionProblem, t: int) -> _core.FusionTensor:
    shape = problem.maps[t]
    return _core.FusionTensor(
        channels=shape.channels if shape else 0,
        rows=shape.rows if shape else 0,
        columns=shape.columns if shape else 0,
        element=shape.element if shape else 0,
        bytes=problem.network.tensors[t].bytes,
        output=bool(problem.network.output_roots >> t & 1),
    )


def _operator(problem: FusionProblem, v: int) -> _core.FusionOperator:
    op = problem.operators[v]
    return _core.FusionOperator(
        form=op.form,
        inputs=_windows(problem, v),
        outputs=op.outputs,
        weight=op.weight_bytes,
        tile=op.tile_bytes,
        workspace=problem.network.operators[v].workspace,
        grid=_grid(op),
        boxes=_boxes(problem, v),
        streams=[list(bits(streams)) for streams in op.streams],
    )


def _windows(problem: FusionProblem, v: int) -> list[_core.FusionWindow]:
    op = problem.operators[v]
    if op.form == "opaque":
        return [
            _core.FusionWindow(tensor=t, whole=True, broadcast=True, stride=1, padding=0, span=1)
            for t in bits(problem.network.reads[v])
        ]
    return [
        _core.FusionWindow(
            tensor=x.tensor,
            whole=x.whole,
            broadcast=x.broadcast,
            stride=x.rows.stride or 1,
            padding=x.rows.before,
            span=x.rows.span,
        )
        for x in op.operands
    ]


def _grid(op: FusedOperator) -> _core.FusionGrid | None:
    """Return both axes and the channels of an operator with one windowed operand, None for others."""
    if op.access is None or not op.windowed:
        return None
    kernel, (operand,) = op.access.kernel, op.operands
    axes = (operand.rows, operand.columns)
    return _core.FusionGrid(
        kernel=[axis.taps if kernel.taps else 0 for axis in axes],
        stride=[axis.stride for axis in axes],
        padding=[axis.before for axis in axes],
        span=[axis.span for axis in axes],
        input_channels=kernel.inputs,
        output_channels=kernel.outputs,
        groups=op.access.groups,
    )


def _boxes(problem: FusionProblem, v: int) -> list[_core.FusionBoxes]:
    """Return the ways in boxes, with the operands' crossing bytes beyond their sizes."""
    network = problem.network
    entering = sum(network.tensors[t].bytes for t in bits(network.reads[v]))
    return [
        _core.FusionBoxes(
            scratch=way.scratch_bytes,
            again=way.moved_bytes - entering,
            weight=way.weight_bytes,
            tiles=way.tiles,
        )
        for way in problem.operators[v].boxes
    ]
