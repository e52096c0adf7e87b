"""The proof of a plan's sections: they follow each other, and a module's parts match its program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from onchip.check.rules import broken
from onchip.check.units import Unit
from onchip.network import Network, bits
from onchip.plans import Alloc, Free, Instruction, Join, Load, Plan, Run, Section

__all__ = ["prove_sections"]


def prove_sections(plan: Plan, member: Mapping[int, Unit]) -> None:
    """Prove the sections of a legal program. Raises `Broken`.

    `member` maps every operator in a group to that group.
    """
    names, at = set[str](), 0
    for section in plan.sections:
        if section.first != at or section.end < section.first:
            broken("section", f"{section.name} is [{section.first}, {section.end}), and {at} comes next")
        if section.name in names or not section.name.strip():
            broken("section", f"two sections are called {section.name}, or one has no name")
        names.add(section.name)
        at = section.end
    if plan.sections and at != len(plan.program):
        broken("section", f"the sections end at {at}, the program at {len(plan.program)}")
    made_at = _made_at(plan, member)
    for section in plan.sections:
        if section.merge is not None:
            _Module(plan, section, section.merge, member).prove(made_at)
        elif section.start is not None or section.branches or section.processing is not None:
            broken("section", f"{section.name} has parts of a module, and no merge")


def _made_at(plan: Plan, member: Mapping[int, Unit]) -> dict[int, int]:
    """Return for every tensor that an operator makes the position of its run or join."""
    ids = plan.network.operator_id
    groups = {group.name: group.operators for group in plan.groups}
    found: dict[int, int] = {}
    for index, x in enumerate(plan.program):
        if isinstance(x, Run | Join):
            for name in groups.get(x.operator, (x.operator,)):
                for t in bits(plan.network.writes[ids[name]]):
                    found[t] = index
    return found


class _Module:
    """One section that is a module. Operators and tensors are ids, those of tensors of roots."""

    def __init__(self, plan: Plan, section: Section, merge: str, member: Mapping[int, Unit]) -> None:
        self.plan, self.section, self.network, self.member = plan, section, plan.network, member
        self.name = section.name
        self.program = plan.program[section.first : section.end]
        start = None if section.start is None else self.network.tensor_id.get(section.start)
        if start is None or self.network.root[start] != start:
            broken("section", f"{self.name} starts from no tensor with bytes of its own")
        self.start = start
        self.branches = [[self.operator(name) for name in branch] for branch in section.branches]
        self.merge = self.operator(merge)
        self.branch_of = {v: i for i, branch in enumerate(self.branches) for v in branch}
        self.branch_made = {t: i for v, i in self.branch_of.items() for t in bits(self.network.writes[v])}

    def prove(self, made_at: Mapping[int, int]) -> None:
        self.runs_its_operators()
        if self.section.first <= made_at.get(self.start, -1) < self.section.end:
            broken("section", f"{self.name} makes {self.tensor(self.start)}, its start, itself")
        self.reads_its_own()
        self.merges_its_branches()
        self.keeps_its_own()
        self.is_processed()

    def operator(self, name: str) -> int:
        v = self.network.operator_id.get(name)
        if v is None:
            broken("section", f"{self.name} names {name}, which the network does not have")
        return v

    def tensor(self, t: int) -> str:
        return self.network.tensors[t].name

    def runs_its_operators(self) -> None:
        """Refuse unless exactly the branches, in their order, and then the merge run inside."""
        network = self.network
        named = [v for branch in self.branches for v in branch] + [self.merge]
        if len(set(named)) < len(named):
            broken("section", f"{self.name} names an operator twice")
        at = {x.operator: i for i, x in enumerate(self.program) if isinstance(x, Run | Join)}
        last, units = -1, set[str]()
        for v in named:
            op = network.operators[v].name
            unit = self.member[v].name if v in self.member else op
            if unit not in at:
                broken("section", f"{op} does not run inside {self.name}")
            if at[unit] < last:
                broken("section", f"{op} runs before what {self.name} names before it")
            last = at[unit]
            units.add(unit)
        inside = {v for unit in self.member.values() if unit.name in units for v in unit.operators}
        for unit in at:
            if unit not in units:
                broken("section", f"{unit} runs inside {self.name}, which does not name it")
        for v in inside - set(named):
            broken("section", f"{network.operators[v].name} runs inside {self.name}, which does not name it")

    def reads_its_own(self) -> None:
        """Refuse unless a branch is connected and reads the start, its own tensors and long connections."""
        crossing = {x.tensor for x in self.program if isinstance(x, Load)}
        crossing |= {t for x in self.program if isinstance(x, Run) for t, _ in x.streaming}
        joined = {x.operator for x in self.program if isinstance(x, Join)}
        merged = self.network.writes[self.merge]
        for v in (*self.branch_of, self.merge):
            op = self.network.operators[v].name
            for t in bits(self.network.reads[v]):
                if merged >> t & 1:
                    broken("section", f"{op}, in a branch of {self.name}, reads what its merge makes")
                made = self.branch_made.get(t)
                if made is None and t != self.start and self.tensor(t) not in crossing and op not in joined:
                    broken("section", f"{op} reads {self.tensor(t)}, which enters {self.name} on chip")
                if made is None and t != self.start and self.comes_from_the_start(t):
                    broken("section", f"{self.tensor(t)}, on a way from the start of {self.name}, enters it")
                if made is not None and v != self.merge and made != self.branch_of[v]:
                    broken("section", f"{op} reads {self.tensor(t)}, made in another branch of {self.name}")
        for branch in self.branches:
            if branch and _pieces(self.network, branch) > 1:
                name = self.network.operators[branch[0]].name
                broken("section", f"the branch of {name} in {self.name} is several branches")

    def comes_from_the_start(self, t: int) -> bool:
        seen, pending = {t}, [t]
        while pending:
            v = self.network.producer[pending.pop()]
            new = set() if v is None else set(bits(self.network.reads[v])) - seen
            if self.start in new:
                return True
            seen |= new
            pending += new
        return False

    def merges_its_branches(self) -> None:
        """Refuse unless two branches or more begin at the start, and the merge reads each of them."""
        if len(self.branches) < 2:
            broken("section", f"{self.name} has fewer than two branches")
        reads = self.network.reads[self.merge]
        whole = sum(not branch for branch in self.branches)
        if whole != reads >> self.start & 1:
            broken("section", f"{self.name} has {whole:,} branches without operators, and its merge differs")
        for i, branch in enumerate(self.branches):
            if not branch:
                continue
            name = self.network.operators[branch[0]].name
            if not any(self.network.reads[v] >> self.start & 1 for v in branch):
                broken("section", f"the branch of {name} does not read {self.tensor(self.start)}")
            if not any(self.branch_made.get(t) == i for t in bits(reads)):
                broken("section", f"the merge of {self.name} reads nothing of the branch of {name}")

    def keeps_its_own(self) -> None:
        """Refuse a tensor of a branch that leaves the module other than through its merge or DRAM."""
        inside = {*self.branch_of, self.merge}
        there = _on_chip_after(self.network, self.program)
        for t in self.branch_made:
            if self.tensor(t) in there and any(v not in inside for v in bits(self.network.readers[t])):
                broken("section", f"{self.tensor(t)}, made in a branch of {self.name}, leaves it on chip")

    def is_processed(self) -> None:
        """Refuse a wrong processing: it is I if nothing of the module passes through DRAM, else II."""
        if self.section.processing not in (None, "I", "II"):
            broken("section", f"{self.name} is processed neither by I nor by II")
        kind = self.processing()
        if self.section.processing not in (None, kind):
            broken("section", f"{self.name} is processed by {kind}, not by {self.section.processing}")

    def processing(self) -> Literal["I", "II"]:
        own = {self.tensor(t) for t in (*self.branch_made, *bits(self.network.writes[self.merge]))}
        start, loads = self.tensor(self.start), 0
        for x in self.program:
            if isinstance(x, Join):
                return "II"
            if isinstance(x, Run) and any(t in own or t == start for t, _ in x.streaming):
                return "II"
            if isinstance(x, Load):
                loads += x.tensor == start
                if x.tensor in own or loads > 1:
                    return "II"
        return "I"


def _pieces(network: Network, operators: Sequence[int]) -> int:
    """Return the number of pieces of some operators, connected by the tensors that they make."""
    leader = {v: v for v in operators}
    maker = {t: v for v in operators for t in bits(network.writes[v])}

    def find(v: int) -> int:
        while leader[v] != v:
            leader[v] = leader[leader[v]]
            v = leader[v]
        return v

    for v in operators:
        for t in bits(network.reads[v]):
            if t in maker:
                leader[find(v)] = find(maker[t])
    return sum(leader[v] == v for v in operators)


def _on_chip_after(network: Network, program: Sequence[Instruction]) -> set[str]:
    """Return the tensors that instructions bring on chip and leave there, without those overwritten."""
    there: set[str] = set()
    for x in program:
        if isinstance(x, Load | Alloc):
            there.add(x.tensor)
        if isinstance(x, Alloc):
            there -= {x.over, *x.parts}
        elif isinstance(x, Free):
            there.discard(x.tensor)
    return there
