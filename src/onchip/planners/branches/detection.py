"""Algorithm 2: the modules of a network, and the operators between them.

Source: A Simple Method, section 2 and Algorithm 2. Long skips are disconnected first. In the remaining graph
a module begins at the immediate dominator of its merge: the last tensor that all ways to the merge pass. Two
modules are then apart or nested. Say modules (s, m) and (s', m') share an inner operator. No way leaves
either but through its merge, so one merge, say m, lies within the other module; then s does, too, or is s':
were s' between s and m, all ways from s to m would pass s', but there are several, which share nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby

from onchip.base.errors import UsageError
from onchip.network import Network
from onchip.planners.branches.dominators import immediate_dominators
from onchip.planners.branches.graph import Graph, graph_of
from onchip.planners.branches.longskips import levels, long_skips
from onchip.planners.branches.merges import is_concat, is_sum
from onchip.planners.branches.modules import Branch, Detection, LongSkip, Module, Rejected
from onchip.planners.branches.naming import module_names
from onchip.planners.branches.running_order import running_order

__all__ = ["LONG_SKIP", "detect"]

LONG_SKIP = 8
"""Most layers beside an operand that waits on chip, and most between a module's start and its merge."""

_MOST_STEPS = 256
"""The most steps of a module, nested ones counted as one: far beyond real ones, and a bound on the effort."""

_MOST_NESTED = 16
"""The most modules within each other: a bound for the same reasons."""


def detect(network: Network, *, long_skip: int = LONG_SKIP) -> Detection:
    """Return the modules of a network (A Simple Method, Algorithm 2), nested ones inside their outer ones.

    A layer is an operator other than a plain concat or an element-wise operator of one operand. An operand
    that waits while more than `long_skip` layers run on another way to its reader is a long skip and is
    disconnected. In the remaining graph, a concat or a sum of several operands closes a module if one tensor
    dominates it, at most `long_skip` layers lie between, nothing inside is read outside or is an output of
    the network, and the inner operators form at least two branches. Raises `UsageError` if `long_skip` is
    negative or no whole number.
    """
    if type(long_skip) is not int or long_skip < 0:
        raise UsageError(f"{long_skip!r} is no number of layers", item="long-skip")
    graph = graph_of(network)
    skips = long_skips(graph, long_skip)
    search = _Search(network, graph, _near(graph, skips), long_skip)
    for v in graph.order:
        op = network.operators[v]
        if len(graph.reads[v]) > 1 and (is_concat(op) or is_sum(op)):
            found = search.close(v)
            if isinstance(found, str):
                search.rejected.append(Rejected(v, found))
            else:
                search.accept(found)
    outermost = search.modules()
    return Detection(running_order(graph, outermost), skips, tuple(search.rejected))


def _near(graph: Graph, skips: tuple[LongSkip, ...]) -> tuple[tuple[int, ...], ...]:
    """Return each operator's operands without those that come over a long skip."""
    near = list(graph.reads)
    for reader, group in groupby(skips, key=lambda skip: skip.reader):
        far = {skip.tensor for skip in group}
        near[reader] = tuple(t for t in near[reader] if t not in far)
    return tuple(near)


@dataclass
class _Draft:
    """A module before its outer module is known. Steps are operators; a nested module is its merge."""

    start: int
    merge: int
    branches: list[tuple[list[int], list[int]]]
    operators: int
    height: int


@dataclass
class _Search:
    network: Network
    graph: Graph
    near: tuple[tuple[int, ...], ...]
    limit: int
    drafts: dict[int, _Draft] = field(default_factory=dict)
    """By merge, inner ones first."""
    inside: dict[int, int] = field(default_factory=dict)
    """For operators and merges of modules: the merge of the innermost module around them."""
    rejected: list[Rejected] = field(default_factory=list)
    vast: set[int] = field(default_factory=set)
    """Merges with too many steps before them; a module that begins alike and holds one is too large, too."""

    def __post_init__(self) -> None:
        self.level = levels(self.graph, self.near)
        self.start = _starts(self.network, self.graph, self.near)
        self.leaving = self.network.output_roots

    # -- one merge -----------------------------------------------------------------------------------------

    def close(self, merge: int) -> _Draft | str:
        """Return the module that a merge closes, or why there is none."""
        operands, graph = self.near[merge], self.graph
        if len(operands) < 2:
            far = [t for t in graph.reads[merge] if t not in operands]
            return f"its operand {self.tensor(far[0])} comes over a long skip, which leaves one way to it"
        start = self.start[merge]
        if isinstance(start, str):
            return start
        if len(graph.writes[merge]) > 1:
            return "it has several outputs"
        deep = max(self.level[t] for t in operands) - self.level[start]
        if deep > self.limit:
            return (
                f"its branches begin at {self.tensor(start)}, {deep} layers before it: more than {self.limit}"
            )
        steps = self.steps_between(start, merge)
        nested = [self.drafts[p].height for p in steps or () if p in self.drafts]
        height = 1 + max(nested, default=0)
        if steps is None or height > _MOST_NESTED:
            self.vast.add(merge)
            return f"too much lies between it and {self.tensor(start)}, where its branches begin"
        if (leak := self.leak(steps, merge)) is not None:
            return leak
        branches = self.branches(start, merge, steps)
        if len(branches) < 2:
            return f"the ways to it from {self.tensor(start)} are tied together before they reach it"
        operators = 1 << merge
        for p in steps:
            operators |= self.drafts[p].operators if p in self.drafts else 1 << p
        return _Draft(start, merge, branches, operators, height)

    def accept(self, draft: _Draft) -> None:
        self.drafts[draft.merge] = draft
        for steps, _ in draft.branches:
            for p in steps:
                self.inside[p] = draft.merge

    def steps_between(self, start: int, merge: int) -> list[int] | None:
        """Return the steps between in a legal order, known modules as one step each; None: too many."""
        found: set[int] = set()
        pending = [t for t in self.near[merge] if t != start]
        while pending:
            p = self.graph.producer[pending.pop()]
            assert p is not None  # the start dominates it
            if p in self.vast and self.start[p] == start:
                return None
            if p not in found:
                found.add(p)
                pending += [t for t in self.entries(p) if t != start]
                if len(found) > _MOST_STEPS:
                    return None
        return sorted(found, key=self.graph.place.__getitem__)

    def entries(self, step: int) -> tuple[int, ...]:
        """Return the tensors that enter a step, long skips aside: for a module its start."""
        return (self.drafts[step].start,) if step in self.drafts else self.near[step]

    def leak(self, steps: list[int], merge: int) -> str | None:
        """Return in words how a tensor leaves the module other than through its merge, if one does."""
        within = {*steps, merge}
        for p in steps:
            for t in self.graph.writes[p]:
                if self.leaving >> t & 1:
                    return f"{self.tensor(t)}, on a way to it, is an output of the network"
                for reader in self.graph.readers[t]:
                    if self.around(reader, within) not in within and t in self.near[reader]:
                        name = self.network.operators[reader].name
                        return f"{self.tensor(t)}, on a way to it, is also read by {name}, outside"
        return None

    def around(self, operator: int, within: set[int]) -> int:
        """Return the step that an operator belongs to: itself, or the outermost module around it so far."""
        while operator not in within and operator in self.inside:
            operator = self.inside[operator]
        return operator

    def branches(self, start: int, merge: int, steps: list[int]) -> list[tuple[list[int], list[int]]]:
        """Return the connected parts of the steps without the start, in the order of the merge's operands."""
        leader = {p: p for p in steps}

        def find(p: int) -> int:
            while leader[p] != p:
                leader[p] = leader[leader[p]]
                p = leader[p]
            return p

        def maker(t: int) -> int:
            p = self.graph.producer[t]
            assert p is not None
            return p

        for p in steps:
            for t in self.entries(p):
                if t != start:
                    leader[find(p)] = find(maker(t))
        parts: dict[int, tuple[list[int], list[int]]] = {}
        for t in self.near[merge]:
            part = -1 if t == start else find(maker(t))
            parts.setdefault(part, ([], []))[1].append(t)
        for p in steps:
            parts[find(p)][0].append(p)
        return list(parts.values())

    def tensor(self, t: int) -> str:
        return self.network.tensors[t].name

    # -- all of them -----------------------------------------------------------------------------------------

    def modules(self) -> tuple[Module, ...]:
        """Return the outermost modules, with those nested in them."""
        depth: dict[int, int] = {}
        for merge in reversed(self.drafts):  # outer ones first
            around = self.inside.get(merge)
            depth[merge] = 1 if around is None else depth[around] + 1
        names = module_names(
            self.network, {merge: draft.operators for merge, draft in self.drafts.items()}, self.inside
        )
        made: dict[int, Module] = {}
        for merge, draft in self.drafts.items():
            made[merge] = Module(
                names[merge],
                draft.start,
                merge,
                self.graph.writes[merge][0],
                tuple(Branch(tuple(made.get(p, p) for p in s), tuple(o)) for s, o in draft.branches),
                draft.operators,
                depth[merge],
            )
        return tuple(module for module in made.values() if module.depth == 1)


def _starts(network: Network, graph: Graph, near: tuple[tuple[int, ...], ...]) -> list[int | str]:
    """Return for each operator the last tensor that all ways to it pass; or in words why there is none."""
    words: list[int | str] = ["no one tensor is passed by all ways to it: they begin at several inputs"]
    predecessors: list[list[int]] = [[]]
    node: dict[int, int] = {}  # of a tensor

    def add(meaning: int | str, before: list[int]) -> int:
        words.append(meaning)
        predecessors.append(before or [0])
        return len(words) - 1

    for tensor in network.tensors:
        if tensor.kind == "input":
            node[tensor.id] = add(tensor.id, [])
    at = [0] * len(network.operators)
    for v in graph.order:
        name = network.operators[v].name
        at[v] = add(f"its branches begin at several outputs of {name}", [node[t] for t in near[v]])
        for t in graph.writes[v]:
            node[t] = add(t, [at[v]])
    above = immediate_dominators(predecessors)
    return [words[above[i]] for i in at]
