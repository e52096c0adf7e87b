"""The axes of a group of operators: every side of every tensor cut alike by all of its uses.

A nest of loops runs a group in tiles. Its loops go along axes of operators, and a tensor is cut where the
axis of a use goes along one of its sides. Two operators may see one tensor in different sides: a projection
writes 2304 features that attention reads as 3 x 12 x 64. `axes_of` therefore refines: it walks the sides of
each tensor in the order of its elements, cuts a side where any use ends one, and carries the cut along the
operator's axis to all of its other tensors, until nothing changes. A side that a use cannot follow is needed
whole by that use.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from weakref import finalize

from onchip.network.axis_sides import (
    ALL,
    OwnSide,
    Part,
    joined_parts,
    own_side,
    part_of,
    seen_across,
    side_over,
)
from onchip.network.network import Network
from onchip.network.operators import Constant, Operator, Reach, Side
from onchip.network.reaches import reach_for
from onchip.network.view_sides import Seen, sides_in_root

__all__ = ["ALL", "Buffer", "Cut", "GroupAxes", "Use", "axes_of"]

Key = tuple[int, str]
"""A tensor (no name; a view from outside by itself, else its root), or a constant (the operator's position as
~position, its name)."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """A tensor, a part of one, or a constant, as the operators of a group use it.

    `name` is unique in the group. `sides` are its sizes, outermost first, `element` its bytes each. `tensor`
    is the root's id, None for a constant; `model_name` is the name in the model. `maker` is the position
    of the operator in the group that writes it, None for one from outside. A part begins at `first` along
    sides of the sizes `whole`; these are the elements of the tensor from `offset` on.
    """

    name: str
    tensor: int | None
    sides: tuple[int, ...]
    element: int
    maker: int | None
    first: tuple[int, ...]
    whole: tuple[int, ...]
    model_name: str
    offset: int = 0

    @property
    def elements(self) -> int:
        """The number of its elements."""
        return prod(self.sides)

    @property
    def bytes(self) -> int:
        """All of its bytes."""
        return self.elements * self.element


@dataclass(frozen=True, slots=True)
class Use:
    """An operator's use of a buffer: for every side the axis along it, index by index, or `ALL`.

    `slides` has a `Side` for every side that is `ALL` over which windows slide along an axis of the operator,
    in indices of the buffer, `axis` being the operator's refined axis; None for other sides. An operator that
    reads a view of the tensor sees, of a side that the view cuts, (first, count) indices in those of the
    buffer: `seen`, None for other sides, and empty where it reads no view. A constant that is `late` is
    read only where the operator's sums are complete.
    """

    buffer: int
    axes: tuple[int, ...]
    slides: tuple[Side | None, ...] = ()
    seen: tuple[tuple[int, int] | None, ...] = ()
    late: bool = False


@dataclass(frozen=True, slots=True)
class Cut:
    """One operator of a group by its refined axes: the first `outputs` of them are its output's, in the
    order of its elements, the others are summed over.

    Along the axes `together` it is not cut, as every tile of its output would repeat the work of the others,
    or as its output cannot be cut so: another use of that cuts across them.
    `reads` are its operands, `constants` its weights, `writes` its output. A sum that is not complete carries
    `carries` values for all elements along the axes `across` together.
    """

    operator: int
    name: str
    axes: tuple[int, ...]
    outputs: int
    together: frozenset[int]
    reads: tuple[Use, ...]
    constants: tuple[Use, ...]
    writes: Use
    carries: int = 0
    across: frozenset[int] = frozenset()

    @property
    def sums(self) -> range:
        """The axes that are summed over."""
        return range(self.outputs, len(self.axes))

    @property
    def uses(self) -> tuple[Use, ...]:
        """All uses: operands, weights, the output."""
        return (*self.reads, *self.constants, self.writes)


@dataclass(frozen=True, slots=True)
class GroupAxes:
    """The operators of a group in the order of the network, and the buffers that they use."""

    operators: tuple[Cut, ...]
    buffers: tuple[Buffer, ...]


MOST_KNOWN = 1000
"""Groups of a network of which the axes are kept; the one derived first goes first."""

_KNOWN: dict[int, dict[tuple[int, ...], GroupAxes | str]] = {}


def axes_of(network: Network, operators: Iterable[int]) -> GroupAxes | str:
    """Return the axes of some operators, or the reason why they have none, in words that follow "and".

    `operators` are ids in topological order.
    """
    ids = tuple(operators)
    known = _known_axes(network)
    if ids not in known:
        if len(known) >= MOST_KNOWN:
            del known[next(iter(known))]
        known[ids] = _derived(network, ids)
    return known[ids]


def _known_axes(network: Network) -> dict[tuple[int, ...], GroupAxes | str]:
    """Return what was derived of groups of a network: checkers and planners ask for the same ones again."""
    if id(network) not in _KNOWN:
        _KNOWN[id(network)] = {}
        finalize(network, _KNOWN.pop, id(network), None).atexit = False
    return _KNOWN[id(network)]


def _derived(network: Network, ids: Sequence[int]) -> GroupAxes | str:
    known = []
    made = {t for v in ids for t in network.operators[v].outputs}
    alike = _alike(network, ids, made)
    for v in ids:
        op = network.operators[v]
        reach = _known(network, op)
        if isinstance(reach, str):
            return f"{op.name} {reach}"
        known.append((reach, _operands(network, op, reach, made, alike)))
    return _Refinement(network, ids, known).axes()


def _known(network: Network, op: Operator) -> Reach | str:
    """Return the reach of an operator that can run in a nest, or the reason why it cannot."""
    reach = reach_for(network, op)
    if reach is None:
        return "states no reach"
    if len(op.outputs) != 1 or len(reach.reads) != len(op.inputs):
        return "has other operands than its reach"
    if op.workspace:
        return "has a workspace"
    for t, count in zip(
        (*op.inputs, *op.outputs), (*map(_elements, reach.reads), prod(reach.output)), strict=True
    ):
        tensor, root = network.tensors[t], network.tensors[network.root[t]]
        if root.patches is not None:
            return f"has an operand in patches, {tensor.name}"
        if not count or tensor.bytes % count or network.offset[t] % (tensor.bytes // count):
            return f"does not have {tensor.name} in the sides of its reach"
        if t in op.outputs and tensor.bytes != root.bytes:
            return f"writes {tensor.name}, a part of {root.name}"
    if sum(constant.bytes for constant in reach.weights) != op.weight_bytes:
        return "has other weights than its reach"
    return reach


def _alike(network: Network, ids: Iterable[int], made: Collection[int]) -> set[int]:
    """Return the tensors made here of which all parts that are read here have one size, and divide it."""
    sizes: dict[int, set[int]] = {}
    odd = set()
    for t in {t for v in ids for t in network.operators[v].inputs}:
        root, size = network.root[t], network.tensors[t].bytes
        if root in made and size != network.tensors[root].bytes:
            sizes.setdefault(root, set()).add(size)
            if network.offset[t] % size or network.tensors[root].bytes % size:
                odd.add(root)
    return {root for root, found in sizes.items() if len(found) == 1} - odd


def _operands(
    network: Network, op: Operator, reach: Reach, made: Collection[int], alike: Collection[int]
) -> list[tuple[Key, Seen]]:
    """Return the buffer and the sides of every operand: of a view by those of its root if that is `made`
    here, else by its own."""
    found: list[tuple[Key, Seen]] = []
    for t, sides in zip(op.inputs, reach.reads, strict=True):
        root = network.root[t]
        if root not in made:
            same = network.tensors[t].bytes == network.tensors[root].bytes
            found.append(((root if same else t, ""), _all(sides)))
            continue
        found.append(((root, ""), sides_in_root(network, t, sides, reach.extents, parts=root in alike)))
    return found


def _elements(sides: Sequence[Side]) -> int:
    return prod(side.size for side in sides)


def _all(sides: Iterable[Side]) -> Seen:
    """Return the sides of what is read whole."""
    return tuple((side, None) for side in sides)


def _together(reach: Reach) -> frozenset[int]:
    """Return the axes of the output that must not be cut: no operand goes along them, and some operand is
    read whole along a side for each of their elements, as the row of a norm or of a softmax is; or their
    elements share what a sum carries.

    A constant that goes along an axis and is read whole along another side is one of weights: each element
    has a sum of its own, which no cut makes again. A norm's go along axes alone.
    """
    along = {side.axis for sides in reach.reads for side in sides}
    for constant in reach.weights:
        if any(side.axis < 0 and side.span > 1 for side in constant.sides):
            along.update(side.axis for side in constant.sides)
    again = any(side.axis < 0 and side.span > 1 and side.size > 1 for sides in reach.reads for side in sides)
    return frozenset(reach.across).union(a for a in range(len(reach.output)) if again and a not in along)


class _Refinement:
    """The sides of one group, cut step by step. Cuts are products of all inner sizes."""

    def __init__(
        self, network: Network, ids: Sequence[int], known: Sequence[tuple[Reach, Sequence[tuple[Key, Seen]]]]
    ) -> None:
        self.network, self.ids, self.reaches = network, ids, [reach for reach, _ in known]
        self.uses: list[tuple[int, Key, list[OwnSide]]] = []
        self.parts: dict[Key, list[OwnSide]] = {}
        self.total: dict[Key, int] = {}
        self.bounds: dict[Key, set[int]] = {}
        self.refused: dict[Key, set[int]] = {}
        self.cuts: dict[tuple[int, int], set[int]] = {}
        self.odd = ""
        """A tensor of which uses count elements differently."""
        for at, (v, (reach, operands)) in enumerate(zip(ids, known, strict=True)):
            op = network.operators[v]
            for axis in range(len(reach.extents)):
                self.cuts[at, axis] = set()
            for key, seen in operands:
                self.use(at, key, seen, reach)
            for constant in reach.weights:
                self.use(at, (~at, constant.name), _all(_constant(constant)), reach)
            self.use(at, (op.outputs[0], ""), _all(Side(n, i) for i, n in enumerate(reach.output)), reach)

    def use(self, at: int, key: Key, sides: Seen, reach: Reach) -> None:
        found, low = [], 1
        for side, seen in reversed(sides):
            if side.size > 1:
                own = own_side(side, low, reach)
                found.append(own if seen is None else replace(own, seen=seen))
                low *= side.size
        self.uses.append((at, key, found[::-1]))
        self.parts.setdefault(key, []).extend(s for s in found if not s.exact and s.count * s.low < s.high)
        if self.total.setdefault(key, low) != low:
            self.odd = self.network.tensors[key[0]].name
        self.bounds.setdefault(key, set())
        self.refused.setdefault(key, set())

    def axes(self) -> GroupAxes | str:
        if self.odd:
            return f"{self.odd} is used in elements of several sizes"
        while self.step():
            pass
        return self.result()

    def step(self) -> bool:
        """Carry cuts from uses to tensors and to axes; return whether any was new."""
        before = sum(map(len, self.bounds.values())) + sum(map(len, self.cuts.values()))
        for at, key, sides in self.uses:
            for side in sides:
                for end in (side.low, side.high):
                    self.bound(key, end)
                if not side.exact:
                    continue
                cuts = self.cuts[at, side.axis]
                for cut in sorted(cuts):
                    self.bound(key, side.low * cut)
                if not self.bounds[key]:
                    continue
                for b in sorted(self.bounds[key]):
                    if side.low < b < side.high and b % side.low == 0 and side.high % b == 0:
                        cut = b // side.low
                        if all(x % cut == 0 or cut % x == 0 for x in cuts):
                            cuts.add(cut)
        return sum(map(len, self.bounds.values())) + sum(map(len, self.cuts.values())) > before

    def bound(self, key: Key, b: int) -> None:
        """Cut a tensor, unless that crosses another cut, or a side of which a use needs a part."""
        known = self.bounds[key]
        if b in (1, self.total[key]) or b in known or b in self.refused[key]:
            return
        inside = any(s.low < b < s.high for s in self.parts[key])
        if inside or any(x % b and b % x for x in known):
            self.refused[key].add(b)
        else:
            known.add(b)

    def result(self) -> GroupAxes:
        pieces = {}  # of an operator's axis: its refined axes, as (low, high) in products of inner sizes
        for at, reach in enumerate(self.reaches):
            count = 0
            for axis, size in enumerate(reach.extents):
                ends = sorted({1, size, *self.cuts[at, axis]}, reverse=True)
                spans = [(low, high) for high, low in pairwise(ends)] or [(1, 1)]
                pieces[at, axis] = {span: count + i for i, span in enumerate(spans)}
                count += len(spans)
        makers = {(self.network.operators[v].outputs[0], ""): at for at, v in enumerate(self.ids)}
        shared = self.shared_parts(makers)
        buffers: dict[tuple[Key, Part], int] = {}
        made: list[Buffer] = []
        uses: list[list[Use]] = [[] for _ in self.ids]
        for at, key, sides in self.uses:
            spans = self.spans(key)
            part = part_of(sides, spans)
            if key in makers:
                part = tuple((0, high // low, True) for low, high in spans)
            else:
                part = shared[key, part]
            axes: list[int] = []
            windows: list[Side | None] = []
            seen: list[tuple[int, int] | None] = []
            for (low, high), (begin, size, _) in zip(spans, part, strict=True):
                side = side_over(sides, low, high)
                axis, window = ALL, None
                shown = seen_across(sides, low, high) if side is None else side.seen
                if side is not None and side.exact:
                    inner = (low // side.low, high // side.low) if low % side.low == 0 else (0, 0)
                    axis = pieces[at, side.axis].get(inner, ALL)
                elif side is not None and (side.low, side.high) == (low, high):
                    window = side.window and self.slides(at, side.window, pieces)
                if window is not None and (begin or window.size != size):
                    window = replace(window, size=size, before=window.before + begin * window.per)
                axes.append(axis)
                windows.append(window)
                seen.append(shown and (shown[0] - begin, shown[1]))
            if not spans:
                part, axes, windows, seen = ((0, 1, False),), [ALL], [None], [None]
            if (key, part) not in buffers:
                whole = tuple(high // low for low, high in spans) or (1,)
                buffers[key, part] = len(made)
                made.append(self.buffer(key, whole, part, makers.get(key)))
            some_seen = tuple(seen) if any(s is not None for s in seen) else ()
            uses[at].append(Use(buffers[key, part], tuple(axes), tuple(windows), some_seen))
        cuts = tuple(self.cut(at, pieces, uses[at]) for at in range(len(self.ids)))
        return GroupAxes(cuts, _named_apart(made))

    def shared_parts(self, makers: Collection[Key]) -> dict[tuple[Key, Part], Part]:
        """Return the part that has a buffer for every part of a tensor from outside that a use needs."""
        needed: dict[Key, dict[Part, None]] = {}
        for _, key, sides in self.uses:
            if key not in makers:
                needed.setdefault(key, {})[part_of(sides, self.spans(key))] = None
        return {
            (key, part): box
            for key, parts in needed.items()
            for box, inside in joined_parts(parts).items()
            for part in inside
        }

    def spans(self, key: Key) -> list[tuple[int, int]]:
        """Return the sides of a tensor as (low, high) in products of inner sizes, outermost first."""
        ends = sorted({1, self.total[key], *self.bounds[key]}, reverse=True)
        return [(low, high) for high, low in pairwise(ends)]

    def slides(
        self, at: int, window: Side, pieces: dict[tuple[int, int], dict[tuple[int, int], int]]
    ) -> Side | None:
        """Return a window by the operator's refined axis; None if that axis is cut."""
        [*parts] = pieces[at, window.axis].values()
        return replace(window, axis=parts[0]) if len(parts) == 1 else None

    def buffer(self, key: Key, whole: tuple[int, ...], part: Part, maker: int | None) -> Buffer:
        root, name = key
        first, count = tuple(begin for begin, _, _ in part), tuple(size for _, size, _ in part)
        if root < 0:
            size = next(c.bytes for c in self.reaches[~root].weights if c.name == name)
            return Buffer(name, None, count, size // prod(whole), maker, first, whole, name)
        tensor = self.network.tensors[root]
        size = tensor.bytes // prod(whole)
        return Buffer(
            tensor.name, self.network.root[root], count, size, maker, first, whole, tensor.name,
            self.network.offset[root] // size,
        )  # fmt: skip

    def cut(self, at: int, pieces: dict[tuple[int, int], dict[tuple[int, int], int]], uses: list[Use]) -> Cut:
        reach, op = self.reaches[at], self.network.operators[self.ids[at]]
        sizes = [high // low for axis in range(len(reach.extents)) for low, high in pieces[at, axis]]
        outputs = sum(len(pieces[at, axis]) for axis in range(len(reach.output)))
        together = {piece for axis in _together(reach) for piece in pieces[at, axis].values()}
        together |= {piece for piece in range(outputs) if sizes[piece] > 1 and piece not in uses[-1].axes}
        across = frozenset(piece for axis in reach.across for piece in pieces[at, axis].values())
        reads = len(op.inputs)
        for n, constant in enumerate(reach.weights, reads):
            uses[n] = replace(uses[n], late=constant.late)
        return Cut(
            op.id, op.name, tuple(sizes), outputs, frozenset(together),
            tuple(uses[:reads]), tuple(uses[reads:-1]), uses[-1], reach.carries, across,
        )  # fmt: skip


def _named_apart(buffers: Sequence[Buffer]) -> tuple[Buffer, ...]:
    """Return the buffers, each by a name of its own: equal names are numbered."""
    taken = {buffer.name for buffer in buffers}
    seen: set[str] = set()
    found = []
    for buffer in buffers:
        name, number = buffer.name, 1
        while name in seen or (number > 1 and name in taken):
            number += 1
            name = f"{buffer.name}#{number}"
        seen.add(name)
        found.append(buffer if name == buffer.name else replace(buffer, name=name))
    return tuple(found)


def _constant(constant: Constant) -> tuple[Side, ...]:
    """Return the sides of a constant; one side of all its bytes if they do not divide them."""
    count = _elements(constant.sides)
    if not constant.sides or constant.bytes % count:
        return (Side(constant.bytes, span=constant.bytes),)
    return constant.sides
