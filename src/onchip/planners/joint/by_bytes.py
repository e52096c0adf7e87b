"""The plan of fewest bytes, from end to end: the incumbents, the searches, the addresses, the certificate."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from onchip.base.errors import Infeasible, NegativeAnswer
from onchip.check import certify
from onchip.machines.chip import Chip
from onchip.network import Network, mask
from onchip.network.reaches import reach_for
from onchip.network.repeats import has_repeats
from onchip.planners.fusion import FusionProblem
from onchip.planners.fusion.boxes import settled
from onchip.planners.fusion.least import least_bytes
from onchip.planners.fusion.problem import FusedOperator
from onchip.planners.joint.addressed import with_addresses
from onchip.planners.joint.by_size import PASSES, SOME, best_by_size, best_of_few, bound_by_size
from onchip.planners.joint.claim import space_of
from onchip.planners.joint.in_nests import in_nests
from onchip.planners.joint.incumbents import Incumbent, fused_alone, placed_alone
from onchip.planners.joint.joins import joinable
from onchip.planners.joint.needs import need_of
from onchip.planners.joint.nests import (
    LAST_LOOKS,
    MORE_LOOKS,
    MOST_LOOKS,
    Nests,
    NestWay,
    in_nests_too,
    nests_of,
)
from onchip.planners.joint.options import JointOptions, fusion_options
from onchip.planners.joint.rounds import in_rounds
from onchip.planners.joint.search import PATIENCE, Found, JointSearch
from onchip.planners.limits import NO_LIMITS, Limits
from onchip.planners.placement import PlacementOptions
from onchip.planners.placement.overwriting import overwritable
from onchip.plans import Group, Nest, Plan

__all__ = ["FewestBytes", "Joint"]

PLACED, START, PLAIN, SEARCHED, BOUNDED = 0.15, 0.35, 0.65, 0.85, 0.97
"""Shares of the time limit after which placement, fusion, the joint search without nests and that with them
end, and a bound of groups of few operators where not all can be listed."""

ROUNDS = 3
"""The most searches with nests after the quick ones."""

REFINEMENTS = 8
"""The most searches for a plan in nests alone, each without the tiles of which nests take more."""

WORTH_NESTS_ALONE = 1.01
"""A plan in nests alone may move so many times the bytes of one with groups whose nests have no room."""

QUICK_WIDTHS = (1, 8)
"""The most states of every number of operators that a quick search follows, pass by pass."""


@dataclass(frozen=True)
class Joint:
    """A joint plan, and for comparison the bytes that fusion and placement move, each alone.

    `fusion_bytes` is None if some operator fits in no tiling, or if fusion was not asked, as placement moves
    the least that crosses; `placement_bytes` if some operator does not fit whole.
    `found` is the search's result, without addresses.
    """

    plan: Plan
    fusion_bytes: int | None
    placement_bytes: int | None
    found: Found


@dataclass(frozen=True, slots=True)
class _Claim:
    """A bound of what crosses, `proved` to be the least of the stated space; `banded` as for `space_of`."""

    bound: int
    proved: bool
    banded: int


class FewestBytes:
    """One search for the plan that moves the fewest bytes: its arguments, and its clock."""

    def __init__(
        self,
        network: Network,
        chip: Chip,
        budget: int,
        options: JointOptions,
        placing: PlacementOptions,
        limits: Limits,
    ) -> None:
        self.began = time.perf_counter()
        self.network, self.chip, self.budget = network, chip, budget
        self.options, self.placing, self.limits = options, placing, limits
        self.problem = FusionProblem.of(network, chip, fusion_options(options), budget)
        self.joins = joinable(network) if options.concat_views else ()
        self.over = overwritable(network) if options.overlap else ()
        self.fused: Incumbent | None = None
        self.placed: Incumbent | None = None

    def run(self) -> Joint:
        plain = JointSearch(self.problem, self.over, joins=self.joins, limits=self.limits)
        if plain.misfits and not self.options.nests:
            raise self.infeasible(plain)
        least = least_bytes(self.problem)
        self.placed = placed_alone(
            self.network,
            self.chip,
            self.budget,
            replace(self.placing, in_place=self.options.overlap),
            self.limits.until(PLACED),
        )
        if self.placed is None or self.placed.dram_bytes > least:
            self.fused = self.fusion(plain, START, grown=self.options.nests)
        known = [made for made in (self.fused, self.placed) if made is not None]
        best = min(known, key=_moved, default=None)  # some operators whole, others not
        search, found = plain, None
        nests = None
        if self.worth_it(best, least) and plain.all_groups and plain.groups > SOME and not plain.misfits:
            nests = self.nests(best)
            best = self.of_few(best, nests)
        if self.worth_it(best, least) and self.unbanded():
            nests = nests or self.nests(best)
        if not plain.misfits and not self.only_with_nests(best, plain, nests):
            quick = self.options.nests and plain.all_groups  # the search with nests goes on from it
            until = self.limits.until(PLAIN if self.options.nests else SEARCHED)
            best, search, found = self.better(best, plain, until, quick=quick)
        if found is not None and self.worth_it(best, least) and self.limits.until(SEARCHED).over():
            found = unbounded(found)  # its bound is of plans without nests alone
        elif self.worth_it(best, least):
            nests = nests or self.nests(best)
            search = JointSearch(
                self.problem,
                self.over,
                joins=self.joins,
                nests=nests,
                limits=self.limits,
                most_groups=None if plain.all_groups else 1,  # they will be listed by size
                fuser=plain.fuser,
            )
            if search.misfits:
                raise self.infeasible(search)
            best, search, found = self.with_nests(best, search)
            found = found if nests.complete else unbounded(found)
        assert found is not None
        if not found.complete and best in (None, self.fused, self.placed) and self.worth_it(best, least):
            self.fused = self.fusion(plain, SEARCHED)  # the search found nothing better than grown groups
            best = min((m for m in (best, self.fused) if m is not None), key=_moved, default=None)
        if best is None:
            if found.dram_bytes is None and found.complete:
                raise self.infeasible(search)
            raise NegativeAnswer(
                f"no plan was found within {self.budget:,} bytes, nor a proof that there is none; more time"
                " or memory may help"
            )
        priced = all(not op.thinned or self.settled(op) for op in self.problem.operators)
        bound, banded = found.lower_bound_bytes, 0
        all_nests = not self.options.nests or (nests is not None and nests.complete)
        if priced and all_nests and not plain.all_groups and best.dram_bytes > least:
            banded, bound = bound_by_size(
                self.problem, self.over, nests, self.limits.until(BOUNDED), joins=self.joins
            ) or (0, 0)
            if bound >= best.dram_bytes:  # the plan has larger groups than those
                banded, bound = 0, 0
        if has_repeats(self.network):  # other repeats, or none, may move less
            bound = banded = 0
        least = min(max(least, bound if priced else 0), best.dram_bytes)
        proved = priced and found.complete and found.dram_bytes in (None, best.dram_bytes)
        proved = proved and not has_repeats(self.network)
        claim = _Claim(best.dram_bytes if proved else least, proved=proved, banded=banded)
        made = self.certified(best, claim)
        if made.result.dram_bytes != best.dram_bytes:
            raise AssertionError("the cost model and the checker disagree about what crosses")
        if self.options.nests:
            made = self.in_nests(made, best, claim)
            if _in_tiles(made):
                nests = nests or self.nests(best)
                made = self.all_in_nests(made, best, search, nests, claim)
        return Joint(made, _bytes(self.fused), _bytes(self.placed), found)

    def fusion(self, plain: JointSearch, share: float, *, grown: bool = False) -> Incumbent | None:
        """Return the best partition of fusion alone; of too many groups only some where `grown` is set."""
        listed = plain.fuser if plain.all_groups and not (grown and plain.groups > SOME) else None
        if self.fused is not None and listed is not None and plain.groups <= SOME:
            return self.fused  # by all groups, whether more grow or not
        return fused_alone(self.problem, listed, self.limits.until(share), grown=grown) or self.fused

    def of_few(self, best: Incumbent | None, nests: Nests) -> Incumbent | None:
        """Return the best program after passes over groups of few operators and nests.

        They prove nothing, but prune the search over all groups, and may move the least.
        """
        below = None if best is None else best.dram_bytes
        made = best_of_few(self.problem, self.over, below, self.limits.until(START), nests, joins=self.joins)
        return best if made is None else with_addresses(best, *made, self.limits)

    def certified(self, best: Incumbent, claim: _Claim) -> Plan:
        """Return the plan of a program, with what is claimed of it."""
        return certify(
            self.network,
            self.chip,
            self.budget,
            best.program,
            status="optimal" if claim.proved or claim.bound == best.dram_bytes else "feasible",
            lower_bound_bytes=0,
            dram_lower_bound_bytes=claim.bound,
            space=space_of(
                self.options,
                self.problem.channel_tile,
                self.problem.least_rows,
                claim.banded,
                self.problem.accumulator,
                again=has_repeats(self.network),
            ),
            seconds=time.perf_counter() - self.began,
            groups=best.groups,
            options=self.recorded(best),
        )

    def in_nests(
        self,
        made: Plan,
        best: Incumbent,
        claim: _Claim,
        *,
        dearer: bool = False,
    ) -> Plan:
        """Return the plan with its groups in tiles as nests, where that costs nothing, or though `dearer`.

        One that moves less than what was proved of the stated space is outside of that: its bound is then
        what every plan moves.
        """
        taken = in_nests(made, self.limits, dearer=dearer)
        if taken.groups == made.groups:
            return made
        moved = best.dram_bytes - taken.saved_bytes
        if claim.bound > moved:
            claim = _Claim(least_bytes(self.problem), proved=False, banded=0)
        elif claim.bound < moved:
            claim = replace(claim, proved=False)
        best = replace(best, program=taken.program, groups=taken.groups, dram_bytes=moved)
        return self.certified(best, claim)

    def all_in_nests(
        self,
        made: Plan,
        best: Incumbent,
        search: JointSearch,
        nests: Nests,
        claim: _Claim,
    ) -> Plan:
        """Return a plan like `made` that moves what its groups move as they run: as nests.

        The search prices bands and blocks by their own laws. A group of which the nest takes more than these
        say runs so no more, and the search goes on, until nothing is left in tiles. Else, or if that moves
        more, the nests stand as they are; a group whose nest has no room stays in tiles.
        """
        forced = self.in_nests(made, replace(best, dram_bytes=made.result.dram_bytes), claim, dearer=True)
        if not search.nests.candidates:
            search = JointSearch(self.problem, self.over, joins=self.joins, nests=nests, fuser=search.fuser)
        tried = made
        for _ in range(REFINEMENTS):
            groups = {mask(self.network.operator_id[name] for name in g.operators) for g in _in_tiles(tried)}
            if groups <= nests.untiled or self.limits.over():
                break
            nests.untiled |= groups
            search.untile(groups)
            other, search, _ = self.better(None, search, self.limits, after_quick=True)
            if other is None or other.dram_bytes > _most(forced):
                break
            known = _Claim(min(claim.bound, other.dram_bytes), proved=False, banded=claim.banded)
            tried = self.in_nests(self.certified(other, known), other, known)
            if not _in_tiles(tried):
                return tried if tried.result.dram_bytes <= _most(forced) else forced
            moved = replace(other, dram_bytes=tried.result.dram_bytes)
            forced = min(forced, self.in_nests(tried, moved, known, dearer=True), key=_most)
        return forced

    def only_with_nests(self, best: Incumbent | None, plain: JointSearch, nests: Nests | None) -> bool:
        """Return whether to search with nests at once: there are some, and already a quick search without
        them takes long, as there are too many sets of operators to bound by."""
        if best is None or not self.worth_it(best, least_bytes(self.problem)):
            return False
        if not plain.all_groups:
            return True  # passes with nests begin with all that those without have
        if nests is None or not nests.candidates:
            return False
        return plain.is_large(best.dram_bytes, self.limits.until(PLAIN))

    def worth_it(self, best: Incumbent | None, least: int) -> bool:
        """Return whether nests may move less than the best program: not if that moves the `least` bytes."""
        return self.options.nests and (best is None or best.dram_bytes > least)

    def nests(self, best: Incumbent | None) -> Nests:
        """Return the nests to choose from; without a program so far all of them, however long that takes."""
        limits = NO_LIMITS if best is None else self.limits.until(SEARCHED)
        return nests_of(self.problem, limits=limits, overlap=self.options.overlap)

    def unbanded(self) -> bool:
        """Return whether an operator that may run in a nest has no bands: fusion and placement alone are weak
        then, and the search without nests, too."""
        network = self.network
        return any(
            op.access is None and reach_for(network, network.operators[op.id]) is not None
            for op in self.problem.operators
        )

    def better(
        self,
        best: Incumbent | None,
        search: JointSearch,
        limits: Limits,
        *,
        quick: bool = False,
        after_quick: bool = False,
    ) -> tuple[Incumbent | None, JointSearch, Found]:
        """Return the best program after a search, with the search and what it found.

        After a quick one groups of few operators need not come first.
        """
        below = None if best is None else best.dram_bytes
        if quick and search.nests.candidates:
            found = search.best(below, limits=limits, widths=QUICK_WIDTHS)
        elif quick:
            search, found = best_by_size(
                self.problem, self.over, search, below, limits, widths=QUICK_WIDTHS, joins=self.joins
            )
        elif after_quick and search.all_groups and not search.large:
            found = search.best(below, limits=limits)
        else:
            nested = bool(search.nests.candidates)
            search, found = best_by_size(
                self.problem,
                self.over,
                search,
                below,
                limits,
                search.nests,
                joins=self.joins,
                passes=PASSES if nested or not self.options.nests else 1,  # those with nests find more
            )
        return with_addresses(best, search, found, self.limits), search, found

    def settled(self, op: FusedOperator) -> bool:
        """Return whether boxes that were not tried would not move less, nor need less room."""
        if self.options.nests and in_nests_too(self.problem, op):
            return True
        network = self.network
        sizes = {t: network.tensors[t].bytes for t in network.operators[op.id].inputs}
        return settled(network.operators[op.id], sizes, op.boxes)

    def with_nests(
        self, best: Incumbent | None, search: JointSearch
    ) -> tuple[Incumbent | None, JointSearch, Found]:
        """Return the same after searches with nests: first quick ones, whose plans prune the others.

        Groups of which a search was cut off in the next one are left out of those that follow, but for those
        that the plan has: these are searched longer.
        """
        limits, costs = self.limits.until(SEARCHED), search.nests.costs
        if not search.all_groups:
            return self.better(best, search, limits)
        best, search, found = self.better(best, search, limits, quick=True)
        if found.complete or limits.over():
            return best, search, found
        costs.deepen(MORE_LOOKS)
        search.forget_nests()
        best, again, deeper = self.better(best, search, limits, quick=True, after_quick=True)
        if deeper.dram_bytes is not None:
            search, found = again, deeper
        if deeper.complete or limits.over():
            return best, search, _with_claim(found, deeper)
        if search.all_groups and not search.large:
            best, last = in_rounds(best, search, limits.patient(PATIENCE), self.limits)
            if last is not None:
                found = _with_claim(last if last.dram_bytes is not None else found, last)
                if last.complete or limits.over():
                    return best, search, found
        costs.deepen(MOST_LOOKS)
        for turn in range(ROUNDS):
            search.forget_nests()
            best, other, deeper = self.better(best, search, limits.patient(PATIENCE), after_quick=True)
            if deeper.dram_bytes is not None:
                search, found = other, deeper
            cut = set(costs.cut_texts())
            if deeper.complete or not cut or limits.over() or turn == ROUNDS - 1:
                break
            used = {step.way.candidate.text for step in found.steps if isinstance(step.way, NestWay)} & cut
            costs.leave_out(sorted(cut - used))
            costs.deepen(LAST_LOOKS)
        return best, search, _with_claim(found, deeper)

    def infeasible(self, search: JointSearch) -> Infeasible:
        """Return the need of what fits in no tiling."""
        return need_of(self.problem, self.chip, search, self.over, self.joins, self.options, self.limits)

    def recorded(self, best: Incumbent) -> dict[str, str | int | float | bool | None]:
        """Return the plan's record of how it was made, with the figures for comparison."""
        alone = {"fusion_dram_bytes": _bytes(self.fused), "placement_dram_bytes": _bytes(self.placed)}
        return {
            "planner": "joint",
            "granularity": self.network.granularity,
            "element": self.network.element,
            "weights": "streamed",
            "objective": "dram",
            "overlap": self.options.overlap,
            "nests": self.options.nests,
            "concat_views": self.options.concat_views,
            "channel_tile": self.problem.channel_tile,
            "program": best.planner,
            "seed": self.limits.seed,
            **({"recompute": True} if self.options.recompute else {}),
            **{key: moved for key, moved in alone.items() if moved is not None},
        }


def _in_tiles(plan: Plan) -> list[Group]:
    """Return the groups that are no nests."""
    return [group for group in plan.groups if not isinstance(group.tiling, Nest)]


def _most(plan: Plan) -> float:
    """Return the most bytes that a plan in nests alone may move to be taken instead."""
    return plan.result.dram_bytes * (WORTH_NESTS_ALONE if _in_tiles(plan) else 1)


def _with_claim(found: Found, last: Found) -> Found:
    """Return what was found with what the last search says of all plans."""
    return replace(found, lower_bound_bytes=last.lower_bound_bytes, complete=last.complete)


def unbounded(found: Found) -> Found:
    """Return what was found, without a claim about what was not looked at."""
    return replace(found, lower_bound_bytes=0, complete=False)


def _moved(made: Incumbent) -> int:
    return made.dram_bytes


def _bytes(made: Incumbent | None) -> int | None:
    return None if made is None else made.dram_bytes
