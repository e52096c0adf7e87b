"""Nests on their chip, and beside each other: the rules of plans whose tiles have times.

A group beside the one before it begins to fetch while that still runs and stores. So its scratch and its
outputs have their bytes before that one runs, and it reads nothing of what that one stores: its fetch would
stand before that store.
"""

from __future__ import annotations

from collections.abc import Mapping

from onchip.check.nest_clock import prove_on_chip, tree_for
from onchip.check.rules import broken
from onchip.check.units import Unit
from onchip.plans import Alloc, Free, Nest, Plan, Run, Scratch

__all__ = ["prove_beside", "prove_nests_on_chip"]


def prove_nests_on_chip(plan: Plan, units: Mapping[str, Unit]) -> None:
    """Refuse nests that name channels or lie on an array that their chip does not have. Raises `Broken`."""
    for group in plan.groups:
        layout = units[group.name].nest
        if layout is not None:
            prove_on_chip(group.name, tree_for(plan.network, group, layout), layout, plan.chip.tiles)


def prove_beside(plan: Plan, units: Mapping[str, Unit], index: int) -> None:
    """Refuse the run at `index` of a group that cannot run beside the one before it. Raises `Broken`."""
    run = plan.program[index]
    assert isinstance(run, Run)
    group = next((group for group in plan.groups if group.name == run.operator), None)
    if group is None or not isinstance(group.tiling, Nest) or not group.tiling.beside:
        return
    before = next((n for n in range(index - 1, -1, -1) if isinstance(plan.program[n], Run)), None)
    other = None if before is None else plan.program[before]
    if before is None or not isinstance(other, Run) or units[other.operator].nest is None:
        broken("nest-beside", f"group {group.name} runs beside a group, and no nest runs before it")
    names = [t.name for t in plan.network.tensors]
    own = {names[t] for t in units[group.name].writes}
    for step in plan.program[before + 1 : index]:
        mine = (isinstance(step, Scratch) and step.operator == group.name) or (
            isinstance(step, Alloc) and step.tensor in own
        )
        if mine or not isinstance(step, Alloc | Free | Scratch):
            broken(
                "nest-beside",
                f"group {group.name} runs beside {other.operator}, and what it needs is not reserved before"
                " that, or something is copied between them",
            )
    stored = {name for name, _ in other.streaming} & {names[t] for t in units[other.operator].writes}
    again = sorted(stored & {names[t] for t in units[group.name].reads})
    if again:
        broken(
            "nest-beside",
            f"group {group.name} reads {again[0]}, which {other.operator} beside it still stores",
        )
