"""The room for nests in a program that was made for tiles: where each lies, and what lies apart for it.

A nest begins where the scratch of its group does. One that needs more than is free there has a place behind
everything else; so has an output that may lie over an input while tiles run, but not while the nest does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from onchip.base.errors import IllegalPlan
from onchip.check.interpreter import Figures, interpret
from onchip.check.parts import up
from onchip.plans import Alloc, Free, Instruction, Load, Plan, Run, Scratch

__all__ = ["Fitted", "fitted"]

UNDER = "nest-under"
"""The rule by which an output may not lie over an input."""

Numbered = list[tuple[int, Instruction]]
"""Instructions, each with its place in the program that was made for tiles."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A legal plan with nests, perhaps in a larger budget, and its figures.

    Of the groups `grown` the scratch has another place; outputs that lie `apart` are over no input any more.
    """

    plan: Plan
    figures: Figures
    grown: tuple[str, ...]
    apart: tuple[str, ...]


def fitted(plan: Plan, larger: Mapping[str, int]) -> Fitted | IllegalPlan:
    """Return a plan whose nests have room, or why there is none whatever the room.

    `larger` are the bytes of scratch of those groups that take more as nests than in tiles.
    """
    apart: list[int] = []
    grown: Mapping[str, int] = {}
    while True:
        room = _Room(plan, grown)
        steps = room.program(apart)
        tried = room.around(steps) if grown or apart else plan
        try:
            figures = interpret(tried)
        except IllegalPlan as refusal:
            within = refusal.index is not None and refusal.index < len(steps)
            at = steps[refusal.index][0] if within and refusal.index is not None else None
            if (
                refusal.rule == UNDER
                and at is not None
                and at not in apart
                and not (plan.caches or plan.state)
            ):
                apart.append(at)
            elif larger and not grown:
                grown = larger
            else:
                return refusal
            continue
        named = (plan.program[at] for at in apart)
        return Fitted(tried, figures, tuple(grown), tuple(s.tensor for s in named if isinstance(s, Alloc)))


@dataclass
class _Chain:
    """Tensors that lie over one another: addresses from the first one's, and the bytes that all take."""

    memory: str | None
    low: int = 0
    high: int = 0
    members: dict[int, int] = field(default_factory=dict)  # instructions that reserve them


class _Room:
    """Room behind the memories of a plan, for scratches that grew and for chains of tensors."""

    def __init__(self, plan: Plan, grown: Mapping[str, int]) -> None:
        self.plan, self.grown = plan, grown
        sizes: dict[str | None, int] = {m.name: m.bytes for m in plan.chip.memories}
        sizes = sizes or {None: plan.budget}
        self.base = {m: self.up(size) for m, size in sizes.items()}
        self.end = dict(self.base)
        for step in plan.program:
            if isinstance(step, Scratch) and step.operator in grown:
                behind = self.base[step.memory] + self.up(grown[step.operator])
                self.end[step.memory] = max(self.end[step.memory], behind)

    def up(self, size: int) -> int:
        return up(size, self.plan.chip.alignment_bytes)

    def program(self, apart: Collection[int]) -> Numbered:
        """Return the program with all that moves at its place; `apart` are instructions that reserve outputs
        over inputs: these are freed once they were read."""
        address = self.addresses(apart)
        ends: dict[str, str] = {}
        found: Numbered = []
        for at, step in enumerate(self.plan.program):
            if isinstance(step, Scratch) and step.operator in self.grown:
                step = replace(step, address=self.base[step.memory])
            elif isinstance(step, Alloc) and at in address:
                if at in apart and step.over is not None:
                    ends[step.tensor] = step.over
                    step = replace(step, over=None, by=0)
                step = replace(step, address=address[at])
            found.append((at, step))
            if isinstance(step, Run):
                found += [(at, Free(ends.pop(t))) for t in self.written(step.operator) & ends.keys()]
        return found

    def written(self, unit: str) -> set[str]:
        network = self.plan.network
        members = next((g.operators for g in self.plan.groups if g.name == unit), (unit,))
        ids = [network.operator_id[name] for name in members if name in network.operator_id]
        return {network.tensors[t].name for v in ids for t in network.operators[v].outputs}

    def addresses(self, apart: Collection[int]) -> dict[int, int]:
        """Return by instruction the address of all outputs `apart`, and of what lies over these."""
        tensors = {t.name: t.bytes for t in self.plan.network.tensors}
        chains: list[_Chain] = []
        place: dict[str, tuple[_Chain, int]] = {}
        for at, step in enumerate(self.plan.program):
            if not isinstance(step, Load | Alloc):
                continue
            place.pop(step.tensor, None)
            if not isinstance(step, Alloc):
                continue
            if at in apart:
                chain, there = _Chain(step.memory), 0
                chains.append(chain)
            elif step.over in place:
                chain, under = place[step.over]
                there = under - step.by
            else:
                continue
            place[step.tensor] = chain, there
            chain.members[at] = there
            chain.low = min(chain.low, there)
            chain.high = max(chain.high, there + self.up(tensors.get(step.tensor, 0)))
        found: dict[int, int] = {}
        for chain in chains:
            start = self.up(self.end[chain.memory] - chain.low)
            found |= {at: start + there for at, there in chain.members.items()}
            self.end[chain.memory] = start + chain.high
        return found

    def around(self, steps: Numbered) -> Plan:
        """Return the plan with this program, in memories that hold all of it."""
        plan, program = self.plan, tuple(step for _, step in steps)
        memories = tuple(replace(m, bytes=max(m.bytes, self.end[m.name])) for m in plan.chip.memories)
        chip = replace(plan.chip, memories=memories)
        budget = sum(m.bytes for m in memories) if memories else max(plan.budget, self.end[None])
        return replace(plan, chip=chip, budget=budget, program=program, kept={})
