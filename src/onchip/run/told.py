"""The plan that is executed: groups in bands, blocks and boxes are told as nests of loops.

The checker proves such a group by the law of its tiles, and says which nest it is. The machine runs nests
only, and counts what they move; where that is not what the tiles move, or more room is needed, the report
says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from onchip.base.errors import InputError
from onchip.check.as_nests import AsNests, plan_as_nests
from onchip.plans import Plan
from onchip.run.moved import GroupMoved

__all__ = ["Told", "told_of"]


@dataclass(frozen=True)
class Told:
    """A plan as it is executed, and of the one that was given the `budget` and the `subgroups` of its groups.

    `found` is None where no group is in tiles: then the plan is the one given.
    """

    plan: Plan
    budget: int
    subgroups: Mapping[str, int]
    found: AsNests | None

    def stated(self, moved: Iterable[GroupMoved]) -> tuple[GroupMoved, ...]:
        """Return what groups moved with the bytes that their tiles move, and the reasons for what differs."""
        groups = {} if self.found is None else {group.name: group for group in self.found.groups}
        return tuple(
            replace(
                one,
                subgroups=self.subgroups[one.name],
                stated_bytes=groups[one.name].dram_bytes,
                why=groups[one.name].reasons,
            )
            if one.name in groups
            else one
            for one in moved
        )

    @property
    def notes(self) -> Sequence[str]:
        """Return the lines on nests that need other room than the plan has."""
        found = self.found
        if found is None or not (found.grown or found.apart):
            return ()
        lines = [
            f"as nests it takes {found.peak_bytes:,} of {self.budget:,} bytes on chip at most; what has no"
            " room at its place lay behind them"
        ]
        scratch = {g.name: (g.scratch_bytes, g.nest_scratch_bytes or 0, g.reasons) for g in found.groups}
        for name in found.grown:
            before, after, reasons = scratch[name]
            lines.append(f"{name} takes {after:,} bytes of scratch, not {before:,} ({', '.join(reasons)})")
        lines += [f"{t} lay apart from the input over which tiles may write it" for t in found.apart]
        return lines[:8] + [f"and {len(lines) - 8:,} more"] * (len(lines) > 8)


def told_of(plan: Plan) -> Told:
    """Return the plan as it is executed.

    Raises `IllegalPlan` for groups in tiles that are not legal, and `InputError` for one that is no nest.
    """
    found = plan_as_nests(plan)
    subgroups = {group.name: group.subgroups for group in plan.groups}
    if found is None:
        return Told(plan, plan.budget, subgroups, None)
    for group in found.groups:
        if group.nest_dram_bytes is None:
            raise InputError(f"cannot be run as a nest of loops: {group.detail}", item=f"group {group.name}")
    if found.fits == "refused":
        raise InputError(f"cannot be run as nests of loops: {found.refusal}", where=plan.network.name)
    return Told(found.plan, plan.budget, subgroups, found)
