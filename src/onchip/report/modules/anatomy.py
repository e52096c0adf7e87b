"""A plan's sections over its steps: which branch a layer is of, which modules lie inside which.

A plan names the modules that its sections are. Those inside them are found here, on the operators of one
section: a merge layer whose operands all come from one tensor by ways of their own is a module again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from onchip.network import Network, Operator, bits
from onchip.plan import Join, Plan, Run, Section
from onchip.report.timeline import Timeline
from onchip.report.wording import visible

__all__ = ["Nested", "Part", "parts"]


@dataclass(frozen=True, slots=True)
class Nested:
    """A module inside another one: operators as bitsets, its merge among all of them; depth 2 and deeper.

    A branch that hands on `start` is not among `branches`.
    """

    start: int
    merge: int
    output: int
    operators: int
    depth: int
    branches: tuple[int, ...]


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
        """A module of branches, rather than a stretch outside any."""
        return self.merge is not None

    @cached_property
    def output(self) -> int | None:
        """The tensor that the merge layer writes."""
        return None if self.merge is None else _output(self.network, self.merge)

    @cached_property
    def branch(self) -> dict[int, int]:
        """The branch of each operator, by its place in the order of processing."""
        return {op: b for b, branch in enumerate(self.branches) for op in branch}

    @cached_property
    def nested(self) -> tuple[Nested, ...]:
        """The modules inside, outer ones first."""
        if self.merge is None or self.start is None:
            return ()
        return _nested(self.network, self.operators & ~(1 << self.merge), self.start)

    def around(self, operator: int) -> tuple[Nested, ...]:
        """The modules inside this one that an operator is in, outer ones first."""
        return tuple(n for n in self.nested if n.operators >> operator & 1)

    @cached_property
    def written_to(self) -> frozenset[int]:
        """The module's output and the tensors that become part of it."""
        if self.merge is None:
            return frozenset()
        return frozenset(_made_of(self.network, self.operators, self.merge, self.start))

    @cached_property
    def written_inside(self) -> frozenset[int]:
        """The same of the modules inside."""
        return frozenset(
            t for n in self.nested for t in _made_of(self.network, n.operators, n.merge, n.start)
        )

    @cached_property
    def endings(self) -> frozenset[str]:
        """What so many of its layers' names end in that it tells nothing: `.conv`."""
        names = [self.network.operators[v].name for v in bits(self.operators)]
        last = Counter(name[name.rfind(".") :] for name in names if name.rfind(".") > 0)
        outputs = [
            self.network.tensors[t].name for v in bits(self.operators) for t in bits(self.network.writes[v])
        ]
        last += Counter(name[name.rfind(".") :] for name in outputs if name.rfind(".") > 0)
        return frozenset(ending for ending, count in last.items() if count > 2 and 3 * count >= len(names))

    def short(self, name: str) -> str:
        """An operator's or tensor's name without the module's own in front and what all of them end in."""
        own = self.section.name
        rest = name.removeprefix(own).lstrip("./") if own and name.startswith(own) else name
        dot = rest.rfind(".")
        if dot > 0 and rest[dot:] in self.endings:
            rest = rest[:dot]
        return visible(rest or name)


def parts(plan: Plan, line: Timeline) -> tuple[Part, ...]:
    """The plan's sections in order; what a section names but the network lacks, it goes without."""
    net = plan.network
    ran = [0]
    for instruction in plan.program:
        ran.append(ran[-1] + isinstance(instruction, Run | Join))
    found = []
    for i, section in enumerate(plan.sections):
        last = i == len(plan.sections) - 1
        first = ran[min(max(section.first, 0), len(ran) - 1)]
        end = len(line.steps) if last else ran[min(max(section.end, 0), len(ran) - 1)]
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


# -- modules inside a module ------------------------------------------------------------------------------


def _nested(net: Network, inside: int, start: int) -> tuple[Nested, ...]:
    """Modules among the operators of a module (without its merge), from dominators of their tensors."""
    above = _dominators(net, inside, start)
    found = []
    for op in (net.operators[v] for v in net.order if inside >> v & 1):
        operands = list(bits(net.reads[op.id]))
        if not _merges(op) or len(operands) < 2 or not all(t in above for t in operands):
            continue
        own = above[operands[0]]
        for t in operands[1:]:
            own &= above[t]
        begin = max(bits(own), key=lambda t: above[t].bit_count())
        members = _between(net, inside, begin, op.id)
        branches = _branches(net, members, begin, op.id)
        if len(branches) + (net.reads[op.id] >> begin & 1) > 1:
            found.append((begin, op.id, members, branches))
    return tuple(
        Nested(
            begin,
            merge,
            _output(net, merge),
            members,
            2 + sum(members != other and not members & ~other for _, _, other, _ in found),
            branches,
        )
        for begin, merge, members, branches in sorted(found, key=lambda row: -row[2].bit_count())
    )


def _dominators(net: Network, inside: int, start: int) -> dict[int, int]:
    """For each tensor that comes from `start` alone: the tensors on all ways to it, itself included."""
    above = {start: 1 << start}
    for v in net.order:
        if not inside >> v & 1:
            continue
        known = [above[t] for t in bits(net.reads[v]) if t in above]
        if not known:
            continue
        common = known[0]
        for one in known[1:]:
            common &= one
        for t in bits(net.writes[v]):
            above[t] = common | 1 << t
    return above


def _between(net: Network, inside: int, begin: int, merge: int) -> int:
    """The operators on the ways from a tensor to a merge, which is one of them."""
    found, waiting = 1 << merge, [merge]
    while waiting:
        for t in bits(net.reads[waiting.pop()]):
            made = net.producer[t]
            if t != begin and made is not None and inside >> made & 1 and not found >> made & 1:
                found |= 1 << made
                waiting.append(made)
    return found


def _branches(net: Network, members: int, begin: int, merge: int) -> tuple[int, ...]:
    """The operators between start and merge as sets that do not meet; none if a tensor leaves another way."""
    within = members & ~(1 << merge)
    label = {v: v for v in bits(within)}

    def top(v: int) -> int:
        while label[v] != v:
            v = label[v]
        return v

    for v in bits(within):
        for t in bits(net.writes[v]):
            if net.readers[t] & ~members or net.output_roots >> t & 1:
                return ()
        for t in bits(net.reads[v]):
            made = net.producer[t]
            if t != begin and made is not None and within >> made & 1:
                label[top(v)] = top(made)
    found: dict[int, int] = {}
    for v in label:
        found[top(v)] = found.get(top(v), 0) | 1 << v
    return tuple(found.values())


def _merges(op: Operator) -> bool:
    """A concat or a sum."""
    kind = "" if op.geometry is None else op.geometry.kind
    word = op.type.split("+")[0].casefold()
    return kind == "concat" or word in ("concat", "concatenation", "add", "sum")


def _output(net: Network, op: int) -> int:
    return net.root[net.operators[op].outputs[0]]


def _made_of(net: Network, inside: int, merge: int, start: int | None) -> Iterable[int]:
    """A merge's output, its operands but `start`, and those of the concats among them."""
    yield _output(net, merge)
    seen, waiting = 1 << merge, [merge]
    while waiting:
        for t in bits(net.reads[waiting.pop()]):
            made = net.producer[t]
            if t == start or made is None or not inside >> made & 1:
                continue
            yield t
            if _concat(net.operators[made]) and not seen >> made & 1:
                seen |= 1 << made
                waiting.append(made)


def _concat(op: Operator) -> bool:
    return op.geometry is not None and op.geometry.kind == "concat"
