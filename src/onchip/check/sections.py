"""The sections of a plan: they follow each other, and a module's operators run inside its own."""

from __future__ import annotations

from collections.abc import Mapping

from onchip.check.rules import broken
from onchip.check.units import Unit
from onchip.plan import Join, Plan, Run, Section

__all__ = ["prove_sections"]


def prove_sections(plan: Plan, member: Mapping[int, Unit]) -> None:
    """Hold the sections against a program in which every operator runs once. Raises `Broken`.

    `member` is the group of every operator that is in one.
    """
    if not plan.sections:
        return
    ids, runs, at = plan.network.operator_id, dict[str, int](), 0
    for index, instruction in enumerate(plan.program):
        if isinstance(instruction, Run | Join):
            runs[instruction.operator] = index
    for section in plan.sections:
        if section.first != at or section.end < section.first:
            broken("section", f"{section.name} is [{section.first}, {section.end}), and {at} comes next")
        at = section.end
        if section.merge is None:
            if section.start is not None or section.branches or section.processing is not None:
                broken("section", f"{section.name} has parts of a module, and no merge")
            continue
        _starts_from_a_tensor(plan, section)
        operators = [name for branch in section.branches for name in branch] + [section.merge]
        if len(set(operators)) < len(operators):
            broken("section", f"{section.name} names an operator twice")
        for name in operators:
            if name not in ids:
                broken("section", f"{section.name} names {name}, which the network does not have")
            group = member.get(ids[name])
            if not section.first <= runs[name if group is None else group.name] < section.end:
                broken("section", f"{name} does not run inside {section.name}")
    if at != len(plan.program):
        broken("section", f"the sections end at {at}, the program at {len(plan.program)}")


def _starts_from_a_tensor(plan: Plan, section: Section) -> None:
    t = None if section.start is None else plan.network.tensor_id.get(section.start)
    if t is None or plan.network.root[t] != t:
        broken("section", f"{section.name} starts from no tensor with bytes of its own")
    if section.processing not in (None, "I", "II"):
        broken("section", f"{section.name} is processed neither by I nor by II")
