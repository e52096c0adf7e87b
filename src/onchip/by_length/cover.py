"""From the longest length to the shortest: the best plan at each, as long as it is, then the next one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onchip.base.errors import Infeasible, UsageError
from onchip.by_length.fused import Fused
from onchip.by_length.options import LengthOptions
from onchip.by_length.rows import Beyond, Row
from onchip.by_length.series import Series
from onchip.by_length.stretch import Stretch, evenly, plan_at, stretch
from onchip.by_length.table import Lengths
from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.planners.joint import JointOptions, refuse
from onchip.planners.limits import Limits
from onchip.planners.placement import PlacementOptions
from onchip.planners.placement import plan as place
from onchip.plans import Plan

__all__ = ["plan_lengths"]


def plan_lengths(
    network_at: Callable[[int], Network],
    chip: Chip,
    budget: int,
    asked: LengthOptions,
    options: PlacementOptions,
    limits: Limits,
    fusing: JointOptions | None = None,
) -> Lengths:
    """Return plans for all lengths that `asked` names, each the best at every length of its row.

    `network_at` reads the network of a length; with `fusing` operators may run fused. Raises `Infeasible`
    where the first length has no plan, `UsageError` for options whose plans are not the best of one space at
    every length.
    """
    name, first, last = asked.lengths()
    series = Series(network_at, chip, budget, options, last)
    if fusing is not None:
        refuse(fusing, options)
        if fusing.recompute:
            raise UsageError(
                "does not go with lengths: each would run other operators again", item="--recompute"
            )
        if options.state:
            raise UsageError(
                "does not go with --fuse here: steps that run fused keep caches in DRAM", item="--state"
            )
        with limits.interruptible() as limits:
            return Fused(series, asked, fusing, limits).table()
    with limits.interruptible() as limits:
        return _Cover(series, asked, first, last, limits).table(name)


@dataclass
class _Cover:
    series: Series
    asked: LengthOptions
    first: int
    last: int
    limits: Limits

    def table(self, name: str) -> Lengths:
        top, beyond = self.longest()
        rows: list[Row] = []
        end = top
        while end >= self.first and not (rows and self.limits.over()):
            self.limits.say(f"planning length {end:,}; {len(rows):,} plans for {top - end:,} lengths so far")
            rows.append(self.row(end))
            end = rows[-1].first - 1
        rows.reverse()
        return Lengths(name, rows[0].first, self.last, tuple(rows), beyond, self.series, self.first)

    def longest(self) -> tuple[int, Beyond | None]:
        """Return the longest length with a plan, and why the next one has none."""

        def fits(length: int) -> bool:
            at = self.series.at(length)
            return at.problem.minimum_budget <= self.series.budget - at.caches.bytes

        if fits(self.last):
            return self.last, None
        if not fits(self.first):
            self.place(self.first)  # raises the reason
        low, high = self.first, self.last
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        try:
            self.place(high)
        except Infeasible as no:
            return low, Beyond(high, str(no))
        raise AssertionError("a network with a plan was taken for one without")

    def place(self, length: int) -> Plan:
        network = self.series.network_at(length)
        return place(network, self.series.chip, self.series.budget, self.series.options, self.limits)

    def row(self, end: int) -> Row:
        """Return the row whose last length is `end`: its plan, and all shorter lengths that it is best at."""
        made = self.place(end)
        found: list[Stretch] = []
        while True:
            part = self.longest_stretch(made, end)
            if part is None:
                break
            found.append(part)
            end = part.first - 1
            if end < self.first or self.limits.over():
                break
        if not found:  # a search ran into a limit: the plan's own bound is the better one
            r = made.result
            ends = (r.traffic_bytes, r.traffic_bytes), (r.lower_bound_bytes, r.lower_bound_bytes)
            found, end = [Stretch(end, end, *ends)], end - 1
        found.reverse()
        why = self.why(made, found[0].first, end)
        begins = plan_at(made, self.series.at(found[0].first), found[0].bound(found[0].first))
        assert begins is not None
        return Row(found[0].first, found[-1].last, made, begins, tuple(found), why)

    def why(self, made: Plan, first: int, before: int) -> str:
        """Return why a plan is not that of the length before its first."""
        if before < self.first or self.limits.over():
            return ""
        one, other = self.series.at(before), self.series.at(first)
        if one.structure != other.structure:
            return "other operators below"
        short = plan_at(made, one, 0)
        if short is None:
            return "not legal below"
        part = self.part(made, before, before)
        assert part is not None
        return f"{part.gaps[0]:,} B more than the best at {before:,}"

    def allowed(self, part: Stretch, plan: Plan) -> bool:
        """Return whether a plan moves no more than it may beyond the least, at both ends."""
        own = plan.result.traffic_bytes - plan.result.lower_bound_bytes
        for length, gap in zip((part.first, part.last), part.gaps, strict=True):
            there = plan_at(plan, self.series.at(length), 0)
            assert there is not None
            if gap > max(own, int(self.asked.slack * there.result.dram_bytes / 100)):
                return False
        return True

    def part(self, plan: Plan, first: int, last: int) -> Stretch | None:
        at = self.series.at(last)
        room = self.series.budget - at.caches.bytes
        return stretch(plan, self.series.at(first), at, room, self.limits)

    def good(self, plan: Plan, first: int, last: int) -> Stretch | None:
        """Return the stretch if the plan is good enough at its ends, and the middle lies on the line."""
        if not evenly([self.series.at(n) for n in sorted({first, (first + last) // 2, last})]):
            return None
        part = self.part(plan, first, last)
        return part if part is not None and self.allowed(part, plan) else None

    def longest_stretch(self, plan: Plan, last: int) -> Stretch | None:
        """Return the longest stretch up to `last`: steps that double, then bisection, then every length read.

        If a stretch is good, all shorter ones with its end are.
        """
        best = self.good(plan, last, last)
        if best is None:
            return None
        step, fails = 1, self.first - 1
        while best.first > self.first and not self.limits.over():
            first = max(self.first, last - step)
            found = self.good(plan, first, last)
            if found is None:
                fails = first
                break
            best, step = found, step * 2
        while best.first - fails > 1 and fails >= self.first and not self.limits.over():
            middle = (best.first + fails) // 2
            found = self.good(plan, middle, last)
            best, fails = (found, fails) if found is not None else (best, middle)
        return self.evened(plan, best)

    def evened(self, plan: Plan, part: Stretch) -> Stretch:
        """Return the part of a stretch in which sizes grow evenly at every length read."""
        while part.last - part.first > 1:
            between = self.sampled(part.first, part.last)
            some = [self.series.at(n) for n in between]
            if evenly(some):
                return part
            found, first = None, part.first
            while found is None:
                first = (first + part.last + 1) // 2
                found = self.good(plan, first, part.last)
            part = found
        return part

    def sampled(self, first: int, last: int) -> list[int]:
        """Return the lengths of a stretch at which the model is read."""
        read = 2 if self.limits.over() else self.asked.read
        count = min(last - first + 1, read)
        return sorted({first + (last - first) * i // (count - 1) for i in range(count)})
