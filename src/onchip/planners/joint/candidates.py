"""The groups that joint planning may run as nests of loops.

Groups are intervals of two orders of the network, its own and the one in which operators run as needed:
neighbouring operators that all state their reach. In large networks the second order adds only groups of
operators that lie apart in the first. Groups of one text, as those of equal layers, have the same nests:
their axes are worked out once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from onchip.network import Network, Operator, Patches, bits, mask
from onchip.network.axes import GroupAxes, axes_of
from onchip.network.operators import Reach
from onchip.network.reaches import reach_for
from onchip.planners.fusion import FusionProblem
from onchip.planners.limits import NO_LIMITS, Limits
from onchip.planners.nests import group_key, pairs_of

__all__ = ["LARGEST", "MANY", "SMALL", "Found", "Kinds", "NestCandidate", "candidates", "closed", "joined"]

SMALL, LARGEST = 6, 9
"""Most operators of any group that runs as a nest, and of one that is `closed`."""

MANY = 64
"""In a network of more operators than these, the order in which operators run as needed adds only groups that
no `LARGEST` neighbours of its own order hold: the others take time, and rarely save bytes."""

MOST_BUFFERS = 60
"""The most buffers of such a group."""


@dataclass(frozen=True, slots=True)
class NestCandidate:
    """A group (bitset of operators), and its operators in the order in which they run.

    `leaving` are the buffers of its axes that must reach DRAM, `buffers` those of every tensor that enters or
    leaves (bitsets), `windowed` the tensors among them over which windows slide, `over` inputs, each with an
    output that may lie over it. Groups of the same `text` cost the same.
    """

    members: int
    operators: tuple[int, ...]
    leaving: tuple[int, ...]
    buffers: Mapping[int, int]
    windowed: tuple[int, ...]
    over: tuple[tuple[int, int], ...]
    text: int


@dataclass(frozen=True, slots=True)
class Found:
    """All candidates, and for every text the axes of one group that has it, and its leaving buffers.

    `complete` is false if time was up: there are more.
    """

    candidates: tuple[NestCandidate, ...] = ()
    texts: tuple[tuple[GroupAxes, tuple[int, ...]], ...] = ()
    complete: bool = True


def candidates(problem: FusionProblem, largest: int = LARGEST, limits: Limits = NO_LIMITS) -> Found:
    """Return the groups of at most `largest` neighbouring operators, in the network's order or as they are
    needed: any up to `SMALL`, of more those that are `closed`. Some of them if a limit is reached."""
    network = problem.network
    drafts: dict[object, _Draft | None] = {}
    texts: dict[str, int] = {}
    found: list[NestCandidate] = []
    groups: list[tuple[GroupAxes, tuple[int, ...]]] = []
    kinds = Kinds(network)
    for operators in _intervals(network, largest, kinds):
        if limits.over():
            return Found(tuple(found), tuple(groups), complete=False)
        members = mask(operators)
        if len(operators) > SMALL and not closed(problem, operators):
            continue
        escaping = problem.escaping(members)
        key, tensors = kinds.signature(operators, escaping)
        if key not in drafts:
            drafts[key] = _draft(network, operators, escaping, tensors)
        draft = drafts[key]
        if draft is None or not joined(problem, members):
            continue
        if draft.text not in texts:
            texts[draft.text] = len(groups)
            groups.append((draft.axes, draft.leaving))
        buffers = {tensors[i]: held for i, held in draft.buffers}
        text = texts[draft.text]
        windowed = tuple(tensors[i] for i in draft.windowed)
        over = tuple((tensors[x], tensors[y]) for x, y in draft.over)
        found.append(NestCandidate(members, operators, draft.leaving, buffers, windowed, over, text))
    return Found(tuple(found), tuple(groups))


def _intervals(network: Network, largest: int, kinds: Kinds) -> Iterator[tuple[int, ...]]:
    place = {v: i for i, v in enumerate(network.order)}
    seen: set[int] = set()
    own = tuple(network.order)
    for order in dict.fromkeys((own, _as_needed(network))):
        near = order == own or len(own) <= MANY
        for first in range(len(order)):
            for end in range(first + 1, min(first + largest, len(order)) + 1):
                if kinds.alone[order[end - 1]]:
                    break
                members = mask(order[first:end])
                if members in seen:
                    continue
                seen.add(members)
                operators = tuple(sorted(order[first:end], key=place.__getitem__))
                if near or place[operators[-1]] - place[operators[0]] >= largest:
                    yield operators


def _as_needed(network: Network) -> tuple[int, ...]:
    """Return the order in which every operator runs just before the first that reads it.

    Exporters and quantisers write operators elsewhere, too: a resize of a shortcut beside its input.
    """
    maker = {t: op.id for op in network.operators for t in bits(network.writes[op.id])}
    order: dict[int, None] = {}
    for last in network.order:
        if any(network.readers[t] for t in bits(network.writes[last])):
            continue
        stack = [last]
        while stack:
            v = stack[-1]
            roots = [network.root[t] for t in network.operators[v].inputs]
            wanted = [maker[t] for t in dict.fromkeys(roots) if t in maker]
            open_ = [m for m in wanted if m not in order and m != v]
            if open_:
                stack.append(open_[0])
            else:
                order.setdefault(stack.pop())
    return tuple(order) if len(order) == len(network.operators) else tuple(network.order)


@dataclass(frozen=True, slots=True)
class _Draft:
    """A group but for names: what all groups of its signature share, tensors by their places in it."""

    axes: GroupAxes
    leaving: tuple[int, ...]
    buffers: tuple[tuple[int, int], ...]
    windowed: tuple[int, ...]
    over: tuple[tuple[int, int], ...]
    text: str


def _draft(
    network: Network, operators: Sequence[int], escaping: int, tensors: Sequence[int]
) -> _Draft | None:
    axes = axes_of(network, operators)
    if isinstance(axes, str) or len(axes.buffers) > MOST_BUFFERS:
        return None
    leaving = tuple(
        i for i, b in enumerate(axes.buffers) if b.tensor is not None and escaping >> b.tensor & 1
    )
    place = {t: i for i, t in enumerate(tensors)}
    buffers: dict[int, int] = {}
    for i, buffer in enumerate(axes.buffers):
        if (buffer.maker is None or i in leaving) and buffer.tensor is not None:
            at = place[buffer.tensor]
            buffers[at] = buffers.get(at, 0) | 1 << i
    slid = {use.buffer for op in axes.operators for use in op.uses if any(w is not None for w in use.slides)}
    windowed = tuple(at for at, own in buffers.items() if any(own >> i & 1 for i in slid))
    over = tuple(
        (place[x], place[y])
        for b, made in pairs_of(axes, leaving)
        if (x := axes.buffers[b].tensor) is not None and (y := axes.buffers[made].tensor) is not None
        if network.tensors[x].bytes == network.tensors[y].bytes  # not a part of it
    )
    return _Draft(axes, leaving, tuple(buffers.items()), windowed, over, group_key(axes, leaving))


class Kinds:
    """The operators of a network by what their axes depend on, names apart."""

    def __init__(self, network: Network) -> None:
        self.network = network
        known: dict[object, int] = {}
        self.kind = [known.setdefault(self._key(op), len(known)) for op in network.operators]
        self.alone = [reach_for(network, op) is None for op in network.operators]

    def _key(self, op: Operator) -> object:
        tensors = [self.network.tensors[t] for t in (*op.inputs, *op.outputs)]
        sizes = [(t.bytes, t.shape, t.patches, *self._place(t.id)) for t in tensors]
        reach = reach_for(self.network, op)
        return (reach and _nameless(reach), op.workspace, op.weight_bytes, len(op.inputs), tuple(sizes))

    def _place(self, tensor: int) -> tuple[int, int, Patches | None]:
        """Return what an operator's axes depend on where it reads a view: its place in the root."""
        root = self.network.tensors[self.network.root[tensor]]
        return self.network.offset[tensor], root.bytes, root.patches

    def signature(self, operators: Sequence[int], escaping: int) -> tuple[object, list[int]]:
        """Return what tells groups apart but names, and the tensors (roots) as they appear."""
        seen: dict[int, int] = {}
        rows: list[object] = []
        for v in operators:
            op = self.network.operators[v]
            touched = [self.network.root[t] for t in (*op.inputs, *op.outputs)]
            places = tuple(seen.setdefault(t, len(seen)) for t in touched)
            rows.append((self.kind[v], places))
        leaves = tuple(i for t, i in seen.items() if escaping >> t & 1)
        return (tuple(rows), leaves), list(seen)


def _nameless(reach: Reach) -> Reach:
    """Return a reach whose constants are named by the order in which they appear."""
    names: dict[str, str] = {}
    weights = [
        replace(constant, name=names.setdefault(constant.name, str(len(names)))) for constant in reach.weights
    ]
    return replace(reach, weights=tuple(weights))


def closed(problem: FusionProblem, operators: Sequence[int]) -> bool:
    """Return whether more bytes of tensors would cross without its first operator, and without its last."""
    crossing = problem.crossing_bytes(mask(operators))
    return all(problem.crossing_bytes(mask(some)) > crossing for some in (operators[1:], operators[:-1]))


def joined(problem: FusionProblem, members: int) -> bool:
    """Return whether the operators of a group hang together by tensors that they make or read."""
    parts: list[tuple[int, int]] = []  # operators, tensors
    for v in bits(members):
        own, touched = 1 << v, problem.network.reads[v] | problem.network.writes[v]
        rest = []
        for operators, tensors in parts:
            if tensors & touched:
                own, touched = own | operators, touched | tensors
            else:
                rest.append((operators, tensors))
        parts = [*rest, (own, touched)]
    return len(parts) == 1
