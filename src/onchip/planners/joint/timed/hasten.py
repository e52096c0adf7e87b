"""From a plan of fewest bytes to one of the shortest time: docs/objectives.md, "Latency of nests".

Every run becomes a nest with copies, the fastest of a few in the bytes that are free while it runs; then
groups begin beside the one before, where that is legal and there is room. Times add up: a group begins when
all before it has ended, unless it is beside that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from onchip.base.errors import NegativeAnswer
from onchip.network import Network
from onchip.network.axes import GroupAxes, axes_of
from onchip.network.vector_work import vector_operations
from onchip.planners.fusion import FusionProblem
from onchip.planners.joint.renamed import renamed
from onchip.planners.joint.rooms import RunAt, free_ranges, largest, runs_of
from onchip.planners.joint.timed.aim import Aim
from onchip.planners.joint.timed.compiled import Compiled, NestTime, compiled_for
from onchip.planners.joint.timed.copies import best_copies
from onchip.planners.joint.timed.lying import ROWS, Lying
from onchip.planners.joint.timed.nests_for import NestsFor, opened_nest, spelled_nest
from onchip.planners.joint.timed.pricing import Priced, TimedGroup
from onchip.planners.joint.timed.spelled import bare
from onchip.planners.limits import Limits
from onchip.planners.nests import group_key
from onchip.plans import Group, Instruction, Nest, Plan, Run, Scratch, TensorLayout

__all__ = ["Fastest", "Hastened", "different", "hastened"]

TWO_SEARCHES = 400_000
"""Twice this effort is for two searches: one from nests that are known, and one from nests of its own."""

FEW_PRICES = 100
"""The most copies that are looked at for a nest of the plan of fewest bytes."""

ONE_SEARCH = 8_000_000
"""The effort of one search at most: several with other random numbers find more than a longer one."""


BEYOND = 4
"""The random numbers of the search that begins with others: nests may take more room than there is at first,
as joined ones do."""


@dataclass(frozen=True)
class Hastened:
    """A program whose runs are nests, with its groups, and for each run what it was chosen from."""

    program: tuple[Instruction, ...]
    groups: tuple[Group, ...]
    runs: tuple[RunAt, ...]
    chosen: tuple[Priced, ...]
    layouts: tuple[TensorLayout, ...] = ()


class Fastest:
    """The best nest of a group in some room; groups that differ in names alone are searched once."""

    def __init__(
        self,
        problem: FusionProblem,
        plan: Plan,
        limits: Limits,
        effort: int,
        aim: Aim | None = None,
        lying: Lying = ROWS,
    ) -> None:
        assert plan.chip.tiles is not None
        self.problem, self.tiles, self.limits, self.effort = problem, plan.chip.tiles, limits, effort
        self.aim, self.lying = aim or Aim(), lying
        self.spent = self.searches = 0
        self.groups: dict[tuple[int, ...], tuple[GroupAxes, object] | None] = {}
        self.known: dict[object, tuple[GroupAxes, Priced | None]] = {}
        self.rooms: dict[object, dict[int, tuple[GroupAxes, Priced]]] = {}

    def cost(self, one: Priced | NestTime) -> int:
        """Return what a nest costs."""
        return self.aim.cost(one.time, one.bytes)

    def group(self, operators: tuple[int, ...], streamed: Collection[int]) -> TimedGroup:
        """Return the group of some operators on the problem's chip."""
        problem = self.problem
        return TimedGroup(
            problem.network,
            operators,
            frozenset(streamed),
            self.tiles,
            problem.alignment,
            problem.accumulator,
            lying=self.lying,
        )

    def of(
        self,
        operators: tuple[int, ...],
        streamed: Collection[int],
        room: int,
        own: Nest | None = None,
        effort: int | None = None,
        others: Callable[[], Iterable[Nest]] = tuple,
    ) -> Priced | None:
        """Return the best nest found in `room` bytes, of which `own` may be one; None if none fits.

        With an `effort` the search goes on from the one that is known; else it begins also with `others`.
        """
        same = self.key(operators, streamed, own)
        if same is None:
            return None
        axes, kind = same
        key = kind, room
        if key not in self.known:
            more = self.in_more_room(kind, room)
            if more is not None:
                self.known[key] = more
            else:
                found = self.search(operators, streamed, room, own, effort or self.effort, others=others())
                self.known[key], effort = (axes, found), None
        other, found = self.known[key]
        if found is not None and other is not axes:
            found = replace(found, nest=renamed(found.nest, other, axes))
        if found is not None and effort is not None:
            found = self.search(operators, streamed, room, found.nest, effort, seed=1) or found
            self.known[key] = axes, found
        if found is not None:
            self.rooms.setdefault(kind, {})[room] = axes, found
        return found

    def key(
        self, operators: tuple[int, ...], streamed: Collection[int], own: Nest | None = None
    ) -> tuple[GroupAxes, object] | None:
        """Return the axes of a group, and what tells it from others but names; None where it has no axes."""
        if operators not in self.groups:
            axes = axes_of(self.problem.network, operators)
            found = None if isinstance(axes, str) else (axes, _kind(self.problem.network, axes, operators))
            self.groups[operators] = found
        same = self.groups[operators]
        if same is None:
            return None
        axes, kind = same
        tensors = [b.tensor for b in axes.buffers]
        whole = tuple(n for n, t in enumerate(tensors) if t is not None and t not in streamed)
        lies = tuple(map(self.lying.key, axes.buffers))
        return axes, (kind, whole, lies, None if own is None else _nameless(own, axes))

    def in_more_room(self, key: object, room: int) -> tuple[GroupAxes, Priced] | None:
        """Return what was found in no less room than this, if it fits here, too."""
        fit = [
            (self.cost(found), more, axes, found)
            for more, (axes, found) in self.rooms.get(key, {}).items()
            if more >= room >= found.scratch
        ]
        if not fit:
            return None
        _, _, axes, found = min(fit, key=lambda one: one[:2])
        return axes, found

    def compiled(self, operators: tuple[int, ...], streamed: Collection[int]) -> Compiled | None:
        """Return what prices and searches the nests of a group; None where the core takes none."""
        return compiled_for(
            self.problem.network,
            operators,
            streamed,
            self.tiles,
            alignment=self.problem.alignment,
            accumulator=self.problem.accumulator,
            lying=self.lying,
        )

    def search(
        self,
        operators: tuple[int, ...],
        streamed: Collection[int],
        room: int,
        own: Nest | None,
        effort: int,
        seed: int = 0,
        others: Iterable[Nest] = (),
    ) -> Priced | None:
        self.searches += 1
        self.spent += effort
        group = self.group(operators, streamed)
        compiled = self.compiled(operators, streamed)
        known = None if own is None else self.priced(group, own, room)
        if compiled is None or (known is not None and self.limits.over()):
            return known
        starts = list(NestsFor(self.problem, group, self.limits).few(room))
        spelled_ = [out for nest in starts if (out := spelled_nest(group, nest)) is not None]
        begun = spelled_ if known is None else [known.nest, *spelled_]
        runs = max(1, min(2, effort // TWO_SEARCHES), effort // ONE_SEARCH)
        # in turn from what is known, and from nests of its own alone; then from the others
        tries = [(begun if n % 2 == 0 else [], effort // runs) for n in range(runs)]
        rest = list(others)
        if rest:
            tries.append((rest, effort // 2))
            self.spent += effort // 2
        best = known
        for n, (first, each) in enumerate(tries):
            own_seed = seed + (n if first is not rest else BEYOND)
            found = compiled.search(first, room, each, own_seed, price=self.aim.per_byte, limits=self.limits)
            for one in found:
                if best is not None and self.cost(one) >= self.cost(best):
                    break
                law = group.lawful(one.nest)
                if law is not None and law.layout.extent <= room:
                    best = Priced(one.nest, one.time, one.bytes, law.layout.extent)
                    break
        return best

    def priced(self, group: TimedGroup, nest: Nest, room: int) -> Priced | None:
        """Return a nest, with its best copies where it has none; None if it does not fit, or has no times."""
        if nest != bare(nest):
            return group.priced(nest, room)
        opened = opened_nest(group, nest)
        if opened is None:
            return None
        chosen = best_copies(opened, room, most_prices=FEW_PRICES)
        return None if chosen is None else chosen.priced


def different(plan: Plan, fastest: Fastest) -> int:
    """Return how many runs of a plan differ in more than names."""
    same = [fastest.key(run.operators, run.streamed) for run in runs_of(plan)]
    return len({one[1] for one in same if one is not None})


def hastened(plan: Plan, fastest: Fastest) -> Hastened:
    """Return the program of a plan with a fast nest for every run, none beside another.

    Raises `NegativeAnswer` naming operators that run as no nest, or for which none fits.
    """
    network = plan.network
    runs = runs_of(plan)
    chosen: list[Priced] = []
    groups: dict[int, tuple[Group, int]] = {}
    names = _Names(plan)
    for run in runs:
        low, high = largest(free_ranges(run.taken, plan.budget, plan.chip.alignment_bytes))
        own = run.group.tiling if run.group is not None and isinstance(run.group.tiling, Nest) else None
        found = fastest.of(run.operators, run.streamed, high - low, own)
        if found is None:
            raise NegativeAnswer(_no_nest(network, run, high - low))
        chosen.append(found)
        group = fastest.group(run.operators, run.streamed)
        groups[run.index] = group.group(found.nest, names.of(run), found.scratch), low
    program: list[Instruction] = []
    for index, step in enumerate(plan.program):
        if isinstance(step, Scratch):
            continue
        if not isinstance(step, Run):
            program.append(step)
            continue
        group_, low = groups[index]
        run = next(one for one in runs if one.index == index)
        if group_.scratch_bytes:
            program.append(Scratch(group_.name, low))
        program.append(Run(group_.name, _streaming(fastest, run, group_)))
    made = tuple(group for group, _ in groups.values())
    layouts = tuple(fastest.lying.layouts.values())
    return Hastened(tuple(program), made, tuple(runs), tuple(chosen), layouts)


def _streaming(fastest: Fastest, run: RunAt, group: Group) -> tuple[tuple[str, int], ...]:
    assert isinstance(group.tiling, Nest)
    law = fastest.group(run.operators, run.streamed).law(group.tiling)
    tensors = fastest.problem.network.tensors
    return tuple((tensors[t].name, moved) for t, moved in law.crossing.items())


class _Names:
    """Names for the groups of operators that had none."""

    def __init__(self, plan: Plan) -> None:
        self.taken = {group.name for group in plan.groups} | set(plan.network.operator_id)
        self.count = 0

    def of(self, run: RunAt) -> str:
        if run.group is not None:
            return run.group.name
        while True:
            self.count += 1
            name = f"n{self.count}"
            if name not in self.taken:
                self.taken.add(name)
                return name


def _no_nest(network: Network, run: RunAt, room: int) -> str:
    names = ", ".join(network.operators[v].name for v in run.operators[:3])
    more = " and more" if len(run.operators) > 3 else ""
    axes = axes_of(network, run.operators)
    reason = f": {axes}" if isinstance(axes, str) else f" in the {room:,} bytes that are free"
    return (
        f"no times are known but of nests, and none was found for {names}{more}{reason}; another --budget may"
        " help"
    )


def _kind(network: Network, axes: GroupAxes, operators: tuple[int, ...]) -> object:
    """Return what tells groups apart but names, and the tensors that are whole."""
    tensors = [b.tensor for b in axes.buffers]
    leaving = [
        n
        for n, b in enumerate(axes.buffers)
        if b.maker is not None
        and b.tensor is not None
        and network.readers[b.tensor] & ~sum(1 << v for v in operators)
    ]
    leaving += [
        n
        for n, t in enumerate(tensors)
        if t is not None and (network.output_roots >> t & 1 or not network.readers[t])
    ]
    work = [(network.operators[v].work, vector_operations(network, v)) for v in operators]
    kinds = [(b.whole, t is None) for b, t in zip(axes.buffers, tensors, strict=True)]
    return group_key(axes, leaving), tuple(work), tuple(kinds)


def _nameless(nest: Nest, axes: GroupAxes) -> Nest:
    """Return a nest with operators and buffers by their places in the group."""
    plain = replace(
        axes,
        operators=tuple(replace(op, name=str(n)) for n, op in enumerate(axes.operators)),
        buffers=tuple(replace(b, name=str(n)) for n, b in enumerate(axes.buffers)),
    )
    return renamed(nest, axes, plain)
