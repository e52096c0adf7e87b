"""The nests of loops that joint planning may choose from: what they cost, and those that it chose."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from onchip import _core
from onchip.check.nests import Nested, nested
from onchip.network import bits
from onchip.network.axes import GroupAxes, axes_of
from onchip.planners.fusion import FusionProblem
from onchip.planners.fusion.problem import FusedOperator
from onchip.planners.joint.candidates import Found, NestCandidate, candidates
from onchip.planners.joint.renamed import renamed
from onchip.planners.limits import NO_LIMITS, Limits
from onchip.planners.nests import NestSearch, widened
from onchip.plans import Group
from onchip.plans.nest import Nest

__all__ = [
    "FEW",
    "IN_BANDS",
    "SPINE",
    "UNBANDED",
    "WINDOWS",
    "Effort",
    "NestWay",
    "Nests",
    "effort_of",
    "in_nests_too",
    "nests_of",
    "search_of",
]

SPINE, WINDOWS = 3, 1
"""Most loops with free tiles around one another, and most loops along which windows slide."""


@dataclass(frozen=True, slots=True)
class Effort:
    """The effort of the search of a group: most times that neighbours share slices, and most shapes of nests.

    A group of more shapes in the whole budget is left out of the space.
    """

    passes: int
    most_shapes: int


IN_BANDS, UNBANDED = Effort(0, 1_000), Effort(3, 8_000)
"""The effort for groups that may run in bands, too, and for those with an operator that has none. In networks
of at most `FEW` operators it is that of the latter for groups without windows, too: it takes long."""

FEW = 12
"""The most operators of a network that is searched hard as a whole."""

FIRST_LOOKS, MORE_LOOKS, MOST_LOOKS, LAST_LOOKS = 80, 500, 100_000, 1_000_000
"""The most shapes, tiles of loops along which windows slide, and rings that one search looks at: at first and
then, for plans that prune what follows, and at last. A group of which some search needs more is left out of
the space, but for one that the best plan has then: that is searched longer, with `LAST_LOOKS`."""

IN_ORDER = 200
"""The looks of a search at shapes in the order in which they are made, which often end it."""

MOST_TRIES = 6
"""The most rooms for which the tiles of a nest are widened."""


NONE = Found()
"""No candidates."""


@dataclass(frozen=True, slots=True)
class NestWay:
    """A group that runs as a nest: the bytes of tensors and of weights that cross, and its scratch.

    `whole` are the buffers of operands that lie on chip whole.
    """

    candidate: NestCandidate
    axes: GroupAxes
    whole: tuple[int, ...]
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
        names = tuple(op.name for op in self.axes.operators)
        return Group(name, names, self.scratch_bytes, tiling=self.nest)


@dataclass(frozen=True, slots=True)
class _Figures:
    """The bytes of each of a candidate's tensors that cross (None: whole), of weights, and the scratch."""

    crossing: tuple[int | None, ...]
    weight_bytes: int
    scratch_bytes: int


class Nests:
    """The groups that may run as nests, with one search for all of a text: what was asked once is known."""

    def __init__(
        self,
        problem: FusionProblem,
        found: Found = NONE,
        looks: int = FIRST_LOOKS,
        *,
        overlap: bool = True,
        in_order: int = IN_ORDER,
    ) -> None:
        self.problem, self.candidates, self.complete = problem, found.candidates, found.complete
        self.overlap = overlap
        self.by_members = {nest.members: nest for nest in found.candidates}
        self._axes = [axes for axes, _ in found.texts]
        self._searches = [search_of(problem, axes, leaving) for axes, leaving in found.texts]
        self.costs = _core.NestCosts(
            texts=[search.core for search in self._searches],
            budget=problem.budget,
            most_shapes=[effort_of(problem, axes).most_shapes for axes, _ in found.texts],
            looks=looks,
            in_order=in_order,
        )
        self.untiled: set[int] = set()
        """Groups (bitsets) that run in bands or blocks no more: their nests take more than these."""
        self._floors: dict[int, int] = {}
        self._rooms: dict[int, int] = {}
        self._figures: dict[tuple[int, tuple[int, ...], tuple[int, ...], Nest], _Figures] = {}
        self._wider: dict[tuple[int, tuple[int, ...], Nest, int], Nest] = {}
        """By text, whole buffers, nest and room: the nest with larger tiles. Equal blocks share one."""

    def way(
        self, nest: NestCandidate, whole: int, room: int, *, over: int | None = None, made: int | None = None
    ) -> NestWay | None:
        """Return the best nest of a group in `room` bytes, with the tensors `whole` (bitset) on chip; None if
        none was found.

        The output `made` lies over the input `over`, if that is not None.
        """
        axes = axes_of(self.problem.network, nest.operators)
        assert isinstance(axes, GroupAxes)
        kept = tuple(i for i, b in enumerate(axes.buffers) if b.tensor is not None and whole >> b.tensor & 1)
        lies = None
        if over is not None and made is not None:
            lies = (nest.buffers[over].bit_length() - 1, nest.buffers[made].bit_length() - 1)
        found = self.costs.nest(text=nest.text, whole=sum(1 << i for i in kept), over=lies, room=room)
        if found is None:
            return None
        tree = renamed(self._searches[nest.text].nest(found), self._axes[nest.text], axes)
        return self._with_figures(NestWay(nest, axes, kept, tree, {}, 0, 0))

    def floor(self, nest: NestCandidate) -> int:
        """Return bytes that cross at least in any nest of a group, weights included, whatever else is whole.

        Of a tensor that is read in parts, no more than the tensor: whole it crosses once.
        """
        if nest.text not in self._floors:
            least, buffers = self._searches[nest.text].core.least, self._axes[nest.text].buffers
            tensors: dict[int, list[int]] = {}
            for i, buffer in enumerate(buffers):
                if buffer.tensor is not None and (buffer.maker is None or i in nest.leaving):
                    tensors.setdefault(buffer.tensor, []).append(i)
            every = {i for own in tensors.values() for i in own}
            found = constants = least(whole=sorted(every))
            for tensor, own in tensors.items():
                alone = least(whole=sorted(every.difference(own))) - constants
                found += min(alone, self.problem.network.tensors[tensor].bytes)
            self._floors[nest.text] = found
        return self._floors[nest.text]

    def wider(self, way: NestWay, room: int) -> NestWay:
        """Return the same nest with tiles as large as `room` bytes allow: as many bytes cross."""
        axes = self._axes[way.candidate.text]
        nest = renamed(way.nest, way.axes, axes)
        key = (way.candidate.text, way.whole, nest, room)
        if key not in self._wider:
            self._wider[key] = renamed(self._widened(way, room).nest, way.axes, axes)
        if self._wider[key] == nest:
            return way
        return self._with_figures(replace(way, nest=renamed(self._wider[key], axes, way.axes)))

    def _widened(self, way: NestWay, room: int) -> NestWay:
        nest, within = way.candidate, room
        for _ in range(MOST_TRIES):
            tree = widened(
                way.axes,
                nest.leaving,
                way.whole,
                way.nest,
                within,
                alignment=self.problem.alignment,
                accumulator=self.problem.accumulator,
            )
            found = self._with_figures(replace(way, nest=tree))
            if found.dram_bytes != way.dram_bytes:
                break
            if found.scratch_bytes <= room:
                return found
            within -= found.scratch_bytes - room  # places need more than what is alive
        return way

    def least_room(self, nest: NestCandidate) -> int:
        """Return the least bytes of scratch in which a group runs as a nest, all operands streamed.

        No fewer than all its buffers take if its search takes too long.
        """
        if nest.text not in self._rooms:
            self._rooms[nest.text] = self._least_room(nest.text)
        return self._rooms[nest.text]

    def _least_room(self, text: int) -> int:
        search = self._searches[text].core
        most = sum(self.problem.round_up(b.bytes) for b in self._axes[text].buffers)
        limits = NO_LIMITS.core(lambda looks: False)
        low = 0
        while low < most:
            room = (low + most) // 2
            answer = search.best(whole=[], room=room, below=None, most_shapes=MOST_LOOKS, limits=limits)
            if answer.found is None:
                low = room + 1
            else:
                most = min(room, answer.found.need)
        return low

    def may_lie_over(self, nest: NestCandidate, v: int) -> bool:
        """Return whether an operator of a group may write in the place of what another one makes.

        Then it may need less room there than alone.
        """
        axes = self._axes[nest.text]
        cut = axes.operators[nest.operators.index(v)]
        made = axes.buffers[cut.writes.buffer]
        if any(size > 1 for size in cut.axes[cut.outputs :]):  # a sum
            return False
        read = [axes.buffers[use.buffer] for use in cut.reads]
        return any(b.maker is not None and (b.sides, b.element) == (made.sides, made.element) for b in read)

    def replaces_rows(self, nest: NestCandidate, v: int) -> bool:
        """Return whether an operator of a group may write rows over those of an input that it needs for them.

        Then it may need less room so than with parts of both.
        """
        if not self.overlap:
            return False
        axes = self._axes[nest.text]
        cut = axes.operators[nest.operators.index(v)]
        made = axes.buffers[cut.writes.buffer].tensor
        network = self.problem.network
        return bool(cut.together) and any(
            nest.buffers[y].bit_length() - 1 == cut.writes.buffer
            for x, y in nest.over
            if made is not None and network.reads[v] >> x & 1
        )

    def _with_figures(self, way: NestWay) -> NestWay:
        """Return the way with its figures, by the checker's law. Groups of one text share them."""
        tensors, buffers = tuple(way.candidate.buffers), tuple(way.candidate.buffers.values())
        nest = renamed(way.nest, way.axes, self._axes[way.candidate.text])
        key = (way.candidate.text, buffers, way.whole, nest)
        if key not in self._figures:
            law = self._law(way)
            moved = tuple(law.crossing.get(tensor) for tensor in tensors)
            self._figures[key] = _Figures(moved, law.weights, law.layout.extent)
        known = self._figures[key]
        moved_by = sorted(zip(tensors, known.crossing, strict=True))
        crossing = {tensor: moved for tensor, moved in moved_by if moved is not None}
        return replace(
            way, crossing=crossing, weight_bytes=known.weight_bytes, scratch_bytes=known.scratch_bytes
        )

    def _law(self, way: NestWay) -> Nested:
        problem, members = self.problem, way.candidate.members
        whole = {way.axes.buffers[i].tensor for i in way.whole}
        streamed = [t for t in bits(problem.external(members) | problem.escaping(members)) if t not in whole]
        return nested(
            problem.network,
            way.group("nest"),
            way.candidate.operators,
            streamed,
            problem.alignment,
            problem.accumulator,
        )


def nests_of(
    problem: FusionProblem,
    looks: int = FIRST_LOOKS,
    limits: Limits = NO_LIMITS,
    *,
    overlap: bool = True,
    in_order: int = IN_ORDER,
) -> Nests:
    """Return the nests of all candidates; those whose search would take too long are found out when asked.

    `looks`: the most of any search, at first; after `in_order` of them it goes on where least may cross. Some
    of the candidates, not `complete`, if a limit is reached. `overlap`: outputs may lie over inputs that die.
    """
    return Nests(problem, candidates(problem, limits=limits), looks, overlap=overlap, in_order=in_order)


def effort_of(problem: FusionProblem, axes: GroupAxes) -> Effort:
    """Return how hard a group is searched."""
    banded = all(problem.operators[cut.operator].access is not None for cut in axes.operators)
    windows = any(slide is not None for cut in axes.operators for use in cut.uses for slide in use.slides)
    return IN_BANDS if banded and (windows or len(problem.operators) > FEW) else UNBANDED


def in_nests_too(problem: FusionProblem, op: FusedOperator) -> bool:
    """Return whether a nest moves no more than any boxes of an operator, in no more room.

    So it is where its loops may have the sizes and the order of boxes: along at most `SPINE` axes, none of
    them kept together, without windows, with partial sums as wide in a nest as in boxes, and with room that
    is rounded alike.
    """
    network = problem.network
    axes = axes_of(network, [op.id])
    apart = problem.maps_budget < problem.budget or problem.weights_budget < problem.budget
    if isinstance(axes, str) or network.operators[op.id].workspace or apart:
        return False
    [cut] = axes.operators
    windows = any(slide is not None for use in cut.uses for slide in use.slides)
    sums = any(size > 1 for size in cut.axes[cut.outputs :])
    wide = sums and (problem.accumulator or 0) > axes.buffers[cut.writes.buffer].element
    loops = sum(size > 1 for size in cut.axes)
    rounded = problem.alignment > 1 and len(cut.constants) > 1  # boxes round all constants together
    return loops <= SPINE and not (cut.together or cut.carries or windows or wide or rounded)


def search_of(problem: FusionProblem, axes: GroupAxes, leaving: Collection[int]) -> NestSearch:
    """Return the search for the nests of a group that joint planning may choose from."""
    return NestSearch(
        axes,
        leaving,
        alignment=problem.alignment,
        spine=SPINE,
        passes=effort_of(problem, axes).passes,
        long_passes=True,
        windows=WINDOWS,
        accumulator=problem.accumulator,
    )
