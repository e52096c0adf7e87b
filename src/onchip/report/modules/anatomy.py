"""A plan's sections over its steps: the branch of each layer, and the nesting of modules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from onchip.network import Network, bits
from onchip.planners.modules.roles import Nested, TensorRole, made_of, nested_modules, output_of, tensor_roles
from onchip.plans import Plan, Section
from onchip.report.steps import Timeline
from onchip.report.wording import visible

__all__ = ["Part", "parts"]


@dataclass(frozen=True)
class Part:
    """A section over the steps [first, end) of the timeline; a stretch has no `merge`."""

    index: int
    section: Section
    network: Network
    first: int
    end: int
    operators: int
    start: int | None = None
    merge: int | None = None
    branches: tuple[tuple[int, ...], ...] = ()

    @property
    def name(self) -> str:
        """Its name, safe to show."""
        return visible(self.section.name)

    @property
    def is_module(self) -> bool:
        """True for a module of branches, false for a stretch outside any."""
        return self.merge is not None

    @cached_property
    def output(self) -> int | None:
        """The tensor that the merge layer writes."""
        return None if self.merge is None else output_of(self.network, self.merge)

    @cached_property
    def branch(self) -> dict[int, int]:
        """The branch of each operator, by its index in the order of processing."""
        return {op: b for b, branch in enumerate(self.branches) for op in branch}

    @cached_property
    def nested(self) -> tuple[Nested, ...]:
        """The modules inside, outer ones first."""
        if self.merge is None or self.start is None:
            return ()
        return nested_modules(self.network, self.operators & ~(1 << self.merge), self.start)

    def around(self, operator: int) -> tuple[Nested, ...]:
        """Return the modules inside this one that contain an operator, outer ones first."""
        return tuple(n for n in self.nested if n.operators >> operator & 1)

    @cached_property
    def written_to(self) -> frozenset[int]:
        """The module's output and the tensors that become part of it."""
        if self.merge is None:
            return frozenset()
        return made_of(self.network, self.operators, self.merge, self.start)

    @cached_property
    def roles(self) -> Mapping[int, TensorRole]:
        """The roles of the module's tensors, except those of mere feature maps."""
        if self.merge is None:
            return {}
        return tensor_roles(self.network, self.operators, self.merge, self.start)

    @cached_property
    def endings(self) -> frozenset[str]:
        """The endings of layers' names that are too common to be informative: `.conv`."""
        names = [self.network.operators[v].name for v in bits(self.operators)]
        last = Counter(name[name.rfind(".") :] for name in names if name.rfind(".") > 0)
        outputs = [
            self.network.tensors[t].name for v in bits(self.operators) for t in bits(self.network.writes[v])
        ]
        last += Counter(name[name.rfind(".") :] for name in outputs if name.rfind(".") > 0)
        return frozenset(ending for ending, count in last.items() if count > 2 and 3 * count >= len(names))

    def short(self, name: str) -> str:
        """Return an operator's or tensor's name without the module's prefix and the common endings."""
        own = self.section.name
        rest = name.removeprefix(own).lstrip("./") if own and name.startswith(own) else name
        dot = rest.rfind(".")
        if dot > 0 and rest[dot:] in self.endings:
            rest = rest[:dot]
        return visible(rest or name)


def parts(plan: Plan, line: Timeline) -> tuple[Part, ...]:
    """Return the plan's sections in order, without the names that the network lacks."""
    net, found = plan.network, []
    for i, section in enumerate(plan.sections):
        last = i == len(plan.sections) - 1
        first = line.step_at(section.first)
        end = len(line.steps) if last else line.step_at(section.end)
        inside = 0
        for step in line.steps[first:end]:
            for op in step.operators:
                inside |= 1 << op
        merge = None if section.merge is None else net.operator_id.get(section.merge)
        start = None if section.start is None else net.tensor_id.get(section.start)
        if merge is None or start is None or not inside >> merge & 1:
            found.append(Part(i, section, net, first, end, inside))
            continue
        branches = tuple(
            tuple(net.operator_id[name] for name in branch if name in net.operator_id)
            for branch in section.branches
        )
        found.append(Part(i, section, net, first, end, inside, net.root[start], merge, branches))
    return tuple(found)
