"""The groups that joint planning may run as nests of loops, and the nests that it chose.

Groups are intervals of the network's order: neighbouring operators that all state their reach. Groups of one
text, as those of equal layers, are searched once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from onchip.check.nests import nested
from onchip.network import Reach, bits, mask
from onchip.network.axes import GroupAxes, axes_of
from onchip.network.reaches import reach_for
from onchip.planners.fusion import FusionProblem
from onchip.planners.nests import NestSearch, group_key, widened
from onchip.plans import Group
from onchip.plans.nest import Nest

__all__ = [
    "LARGEST",
    "MOST_SHAPES",
    "SPINE",
    "NestCandidate",
    "NestWay",
    "least_room",
    "nest_candidates",
    "nest_way",
    "searches_of",
]

LARGEST = 6
"""Most operators of a group that runs as a nest."""

SPINE, PASSES, WINDOWS = 3, False, 0
"""Most loops with free tiles around one another, whether neighbours share slices, and most loops along
which windows slide."""

MOST_SHAPES = 1_000
"""The most shapes of nests that the search of a group may look at in the whole budget: more take too long."""

MOST_TRIES = 6
"""The most rooms for which the tiles of a nest are widened."""

MOST_BUFFERS = 60
"""The most buffers of such a group."""


@dataclass(frozen=True, slots=True)
class NestCandidate:
    """A group (bitset of operators) by its axes.

    `leaving` are the buffers that must reach DRAM, `buffers` those of every tensor that enters or leaves
    (bitsets), `floor` the bytes of all of them and of the weights, each once. Groups of the same `text` cost
    the same.
    """

    members: int
    axes: GroupAxes
    leaving: tuple[int, ...]
    buffers: Mapping[int, int]
    floor: int
    text: int


def nest_candidates(problem: FusionProblem, largest: int = LARGEST) -> tuple[NestCandidate, ...]:
    """Return the groups of at most `largest` neighbouring operators of the network's order."""
    network = problem.network
    found: list[NestCandidate] = []
    texts: dict[object, int] = {}
    order = network.order
    over_maps = [_over_maps(reach_for(network, network.operators[v])) for v in order]
    for first in range(len(order)):
        for end in range(first + 1, min(first + largest, len(order)) + 1):
            if over_maps[end - 1]:
                break
            axes = axes_of(network, order[first:end])
            if isinstance(axes, str):
                break
            if len(axes.buffers) > MOST_BUFFERS:
                break
            members = mask(order[first:end])
            if not joined(problem, members):
                continue
            escaping = problem.escaping(members)
            leaving = tuple(
                i for i, b in enumerate(axes.buffers) if b.tensor is not None and escaping >> b.tensor & 1
            )
            buffers: dict[int, int] = {}
            floor = 0
            for i, buffer in enumerate(axes.buffers):
                if buffer.maker is None or i in leaving:
                    floor += buffer.bytes
                    if buffer.tensor is not None:
                        buffers[buffer.tensor] = buffers.get(buffer.tensor, 0) | 1 << i
            text = texts.setdefault(group_key(axes, leaving), len(texts))
            found.append(NestCandidate(members, axes, leaving, buffers, floor, text))
    dear = {
        text
        for text, search in enumerate(searches_of(problem, found))
        if search.shapes(problem.budget) > MOST_SHAPES
    }
    kept: dict[int, int] = {}
    return tuple(
        replace(nest, text=kept.setdefault(nest.text, len(kept))) for nest in found if nest.text not in dear
    )


def _over_maps(reach: Reach | None) -> bool:
    """Return whether an operator slides a window, or multiplies maps of three dimensions and more by weights.

    Nests read whole sides where windows slide, and have too many axes to choose from on such maps.
    """
    if reach is None:
        return False
    slides = any(side.axis >= 0 and side.span > 1 for read in reach.reads for side in read)
    return slides or (len(reach.reads) == 1 and bool(reach.sums) and len(reach.output) > 3)


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


@dataclass(frozen=True, slots=True)
class NestWay:
    """A group that runs as a nest: the bytes of tensors and of weights that cross, and its scratch.

    `whole` are the buffers of operands that lie on chip whole.
    """

    candidate: NestCandidate
    whole: tuple[int, ...]
    operators: tuple[str, ...]
    nest: Nest
    crossing: Mapping[int, int]
    weight_bytes: int
    scratch_bytes: int

    @property
    def dram_bytes(self) -> int:
        """All bytes that cross while it runs."""
        return sum(self.crossing.values()) + self.weight_bytes

    def group(self, name: str) -> Group:
        """Return the declaration of the group."""
        return Group(name, self.operators, self.scratch_bytes, tiling=self.nest)


def searches_of(problem: FusionProblem, nests: Sequence[NestCandidate]) -> list[NestSearch]:
    """Return the search of every text."""
    found: dict[int, NestSearch] = {}
    for nest in nests:
        if nest.text not in found:
            found[nest.text] = _search(problem, nest)
    return [found[i] for i in range(len(found))]


def nest_way(problem: FusionProblem, nest: NestCandidate, whole: int, room: int) -> NestWay:
    """Return the best nest of a group in `room` bytes, with the tensors `whole` (bitset) on chip."""
    kept = tuple(i for i, b in enumerate(nest.axes.buffers) if b.tensor is not None and whole >> b.tensor & 1)
    found = _search(problem, nest).best(kept, room)
    assert found is not None
    names = tuple(op.name for op in nest.axes.operators)
    return _with_figures(problem, NestWay(nest, kept, names, found.nest, {}, 0, 0))


def wider(problem: FusionProblem, way: NestWay, room: int) -> NestWay:
    """Return the same nest with tiles as large as `room` bytes allow: as many bytes cross, in fewer steps."""
    nest, within = way.candidate, room
    for _ in range(MOST_TRIES):
        tree = widened(nest.axes, nest.leaving, way.whole, way.nest, within, alignment=problem.alignment)
        found = _with_figures(problem, replace(way, nest=tree))
        if found.dram_bytes != way.dram_bytes:
            break
        if found.scratch_bytes <= room:
            return found
        within -= found.scratch_bytes - room  # places need more than what is alive
    return way


def least_room(problem: FusionProblem, nest: NestCandidate) -> int:
    """Return the least bytes of scratch in which a group runs as a nest, all operands streamed."""
    search, most = _search(problem, nest), sum(problem.round_up(b.bytes) for b in nest.axes.buffers)
    low = 0
    while low < most:
        room = (low + most) // 2
        found = search.best((), room)
        if found is None:
            low = room + 1
        else:
            most = min(room, found.scratch)
    return low


def _with_figures(problem: FusionProblem, way: NestWay) -> NestWay:
    """Return the way with its figures, by the checker's law."""
    network, members = problem.network, way.candidate.members
    whole = {way.candidate.axes.buffers[i].tensor for i in way.whole}
    streamed = [t for t in bits(problem.external(members) | problem.escaping(members)) if t not in whole]
    ids = [network.operator_id[name] for name in way.operators]
    law = nested(network, way.group("nest"), ids, streamed, problem.alignment)
    return replace(way, crossing=law.crossing, weight_bytes=law.weights, scratch_bytes=law.layout.extent)


def _search(problem: FusionProblem, nest: NestCandidate) -> NestSearch:
    return NestSearch(
        nest.axes, nest.leaving, alignment=problem.alignment, spine=SPINE, passes=PASSES, windows=WINDOWS
    )
