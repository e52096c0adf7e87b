"""Plans of all lengths whose operators run fused: every length is looked at by itself.

A plan of a longer network may be one of a shorter one: the same groups, loops and tiles, in which other bytes
cross. What it moves there is derived by the checker. It is the best if no plan moves less, because nothing
crosses but what must in every plan, or because the length's own plan, made then, moves no less.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from onchip.base.errors import Infeasible
from onchip.by_length.options import LengthOptions
from onchip.by_length.rows import Beyond, Row
from onchip.by_length.series import Series
from onchip.by_length.stretch import Stretch, plan_at
from onchip.by_length.table import Lengths
from onchip.planners.fusion import FusionProblem
from onchip.planners.fusion.least import least_bytes
from onchip.planners.joint import JointOptions, plan
from onchip.planners.joint.options import fusion_options
from onchip.planners.limits import Limits
from onchip.plans import Plan

__all__ = ["Fused"]


@dataclass
class Fused:
    """The search for a table of joint plans."""

    series: Series
    asked: LengthOptions
    fusing: JointOptions
    limits: Limits
    known: list[Plan] = field(default_factory=list)
    """Every joint plan made so far; each may be one of a shorter length, too."""

    def table(self) -> Lengths:
        """Return the table of all lengths that have a plan."""
        name, first, last = self.asked.lengths()
        top, made, beyond = self.longest(first, last)
        rows: list[Row] = []
        end, bound = top, made.result.dram_lower_bound_bytes or 0
        while end >= first and not (rows and self.limits.over()):
            row, made, bound = self.row(made, bound, end, first)
            rows.append(row)
            end = row.first - 1
        rows.reverse()
        return Lengths(name, rows[0].first, last, tuple(rows), beyond, self.series, first)

    def place(self, length: int) -> Plan:
        """Return the joint plan of a length."""
        network, on = self.series.network_at(length), self.series.chip
        return plan(network, on, self.series.budget, self.fusing, self.series.options, self.limits)

    def best(self, length: int) -> tuple[Plan, int]:
        """Return the best plan of a length that is known, its own among them, and a bound of all plans."""
        own = self.place(length)
        at = self.series.at(length)
        others = (plan_at(made, at, 0) for made in self.known)
        self.known.append(own)
        best = min((own, *filter(None, others)), key=lambda made: made.result.dram_bytes)
        return best, max(self.least(length), own.result.dram_lower_bound_bytes or 0)

    def longest(self, first: int, last: int) -> tuple[int, Plan, Beyond | None]:
        """Return the longest length with a plan, that plan, and why the next length has none."""
        try:
            self.known.append(self.place(last))
            return last, self.known[-1], None
        except Infeasible as no:
            reason = str(no)
        best = self.place(first)
        low, high = first, last
        while high - low > 1:
            middle = (low + high) // 2
            try:
                best, low = self.place(middle), middle
            except Infeasible as no:
                reason, high = str(no), middle
        self.known.append(best)
        return low, best, Beyond(high, reason)

    def row(self, made: Plan, bound: int, end: int, first: int) -> tuple[Row, Plan, int]:
        """Return the row of a plan whose last length is `end`, and the best plan and the bound of the length
        before its first."""
        parts = [_at(end, made.result.dram_bytes, min(bound, made.result.dram_bytes))]
        begins = plan_at(made, self.series.at(end), bound)
        assert begins is not None
        own, why = begins, ""
        for length in range(end - 1, first - 1, -1):
            if self.limits.over():
                break
            self.limits.say(f"length {length:,}, with the plan of {end:,}")
            at = self.series.at(length)
            short, bound = plan_at(made, at, 0), self.least(length)
            if short is None or self.more(short, bound) > 0:
                best, bound = self.best(length)
                if short is None or self.more(short, best.result.dram_bytes) > 0:
                    why = "not legal below"
                    if short is not None:
                        more = short.result.dram_bytes - best.result.dram_bytes
                        why = f"{more:,} B more than the best at {length:,}"
                    made = best
                    break
            begins = plan_at(made, at, bound) or short
            parts.append(_at(length, short.result.dram_bytes, min(bound, short.result.dram_bytes)))
        parts.reverse()
        return Row(parts[0].first, end, own, begins, tuple(parts), why), made, bound

    def more(self, short: Plan, best: int) -> int:
        """Return the bytes that a plan moves beyond what it may: the best, and the slack."""
        moved = short.result.dram_bytes
        return moved - best - int(self.asked.slack * moved / 100)

    def least(self, length: int) -> int:
        """Return the bytes that cross in every plan of a length."""
        network = self.series.at(length).network
        how = fusion_options(self.fusing)
        return least_bytes(FusionProblem.of(network, self.series.chip, how, self.series.budget))


def _at(length: int, moved: int, least: int) -> Stretch:
    return Stretch(length, length, (moved, moved), (least, least))
