"""A nest as a tree that is walked: loops with their turns, leaves, and the buffers that move at each body.

Slices of a leaf are loops with that leaf alone inside. `nest_times` walks the tree; what a loop's turn leaves
of an axis, and of a buffer, is found here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from onchip.check.nest_homes import Home
from onchip.check.nest_tree import Path, Turns
from onchip.check.nest_windows import Windows
from onchip.check.nests import Layout
from onchip.network.axes import Use
from onchip.plans import Leaf, Loop, Nest

__all__ = ["Body", "Moving", "Tree", "Visit", "tree_of"]


@dataclass(eq=False)
class Body:
    """The body of a loop, or of a leaf's slice: its items, and the buffers that are filled in each turn.

    In turn `index` of `count` it is at indices `low` to `high` of its axis, of the `size` that there are;
    along windows only the turn is told. At the root, with no `turns`, there is one turn.
    """

    turns: Turns | None
    windows: Windows | None
    size: int
    before: Body | None = None
    items: list[Body | Visit] = field(default_factory=list)
    moving: list[Moving] = field(default_factory=list)
    leaves: list[Visit] = field(default_factory=list)
    index: int = 0
    count: int = 1
    low: int = 0
    high: int = 0

    def begin(self) -> None:
        """Count the turns that the loops around leave."""
        if self.turns is None:
            return
        if self.windows is not None:
            self.count = self.windows.turns
            return
        self.count = -(-len(self.outer()) // self.turns.tile)

    def outer(self) -> range:
        """Return the indices that the loop around along the same axis leaves."""
        assert self.turns is not None
        if self.before is None:
            return range(self.size)
        return self.before.made(next(iter(self.turns.over)))

    def go(self, index: int) -> None:
        """Go to a turn."""
        self.index = index
        if self.turns is not None and self.windows is None:
            outer = self.outer()
            self.low = outer.start + index * self.turns.tile
            self.high = min(self.low + self.turns.tile, outer.stop)

    def made(self, at: int) -> range:
        """Return the indices that an operator goes through in this turn."""
        if self.windows is not None:
            return self.windows.made[at][self.index]
        return range(self.low, self.high)

    @property
    def begun(self) -> bool:
        """True if a turn before this one went along the axis already."""
        return self.index > 0 if self.windows is not None else self.low > 0

    @property
    def ends(self) -> bool:
        """True if this turn is the last one along the axis."""
        return self.index == self.count - 1 if self.windows is not None else self.high == self.size


@dataclass(eq=False)
class Moving:
    """A buffer that comes from DRAM or goes there, and the place of it in the law's order.

    `cuts` says for each of its sides which loop, if any, leaves a part of it, `number` its place. Its fills
    are sums of the loops `sums`; a constant that is late comes only where the loops `waits` end.
    """

    number: int
    name: str
    home: Home
    stored: bool
    cuts: list[Body | None]
    element: int
    width: int
    order: int = 0
    sums: list[Body] = field(default_factory=list)
    waits: list[Body] = field(default_factory=list)
    users: set[int] = field(default_factory=set)

    def lengths(self) -> tuple[int, ...]:
        """Return the indices along each side that are new in the turn of its home."""
        return tuple([
            whole if body is None
            else body.high - body.low if body.windows is None
            else len(body.windows.moved[self.number][body.index])
            for body, whole in zip(self.cuts, self.sides, strict=True)
        ])  # fmt: skip

    sides: tuple[int, ...] = ()

    @property
    def comes(self) -> bool:
        """True if the fill of this turn is fetched, where it has elements."""
        if self.stored:
            return any(body.begun for body in self.sums)
        return all(body.ends for body in self.waits)

    @property
    def complete(self) -> bool:
        """True if this turn completes the sums of its fill."""
        return all(body.ends for body in self.sums)


@dataclass(eq=False)
class Visit:
    """A leaf: its operator, by axis the innermost loop along it, and the moving buffers that it uses."""

    number: int
    path: Path
    axes: list[Body | None]
    sizes: tuple[int, ...]
    sums: list[Body]
    around: list[Body]
    array: tuple[tuple[int, ...], ...] = ()
    uses: list[Moving] = field(default_factory=list)

    def ranges(self) -> list[range] | None:
        """Return the indices along each axis in this turn; None if there are none along some axis."""
        at = self.path.at
        found = [
            range(size) if body is None else body.made(at)
            for body, size in zip(self.axes, self.sizes, strict=True)
        ]
        return found if all(found) else None


@dataclass(frozen=True)
class Tree:
    """The root of a nest, its leaves, and all that moves in the order of the law."""

    root: Body
    leaves: list[Visit]
    moving: list[Moving]


def tree_of(nest: Nest, layout: Layout, leaving: Collection[int]) -> Tree:
    """Return the tree of a nest with its layout; `leaving` are the tensors that leave the group."""
    windows = {
        turn: w
        for w in layout.windows
        for path in layout.paths
        for turn in path.loops
        if turn.where == w.where
    }
    root = Body(None, None, 1)
    bodies: dict[Turns, Body] = {}
    leaves: list[Visit] = []
    for number, path in enumerate(layout.paths):
        cut = layout.axes.operators[path.at]
        outer, around = root, [root]
        for turn in path.turns:
            if turn not in bodies:
                size = cut.axes[turn.over[path.at]]
                before = None if turn.before is None else bodies[turn.before]
                bodies[turn] = Body(turn, windows.get(turn), size, before)
                outer.items.append(bodies[turn])
            outer = bodies[turn]
            around.append(outer)
        axes: list[Body | None] = [None] * len(cut.axes)
        for turn in path.turns:
            axes[turn.over[path.at]] = bodies[turn]
        sums = [bodies[turn] for turn in _ends(path.turns) if turn.over[path.at] in cut.sums]
        visit = Visit(number, path, axes, cut.axes, sums, around, _leaf(nest, path.items).array)
        outer.items.append(visit)
        leaves.append(visit)
        for body in around:
            body.leaves.append(visit)
    moving = _moving(layout, leaving, leaves, bodies)
    _in_order(nest, layout, root, moving, leaves)
    return Tree(root, leaves, sorted(moving, key=lambda one: one.order))


def _moving(
    layout: Layout, leaving: Collection[int], leaves: Sequence[Visit], bodies: dict[Turns, Body]
) -> list[Moving]:
    """Return all that moves, each put to the body of its home."""
    found = []
    of = {visit.path.at: visit for visit in leaves}
    for number, (home, place) in enumerate(zip(layout.homes, layout.places, strict=True)):
        buffer = layout.axes.buffers[home.buffer]
        stored = buffer.maker is not None and buffer.tensor in leaving
        if buffer.maker is not None and not stored:
            continue
        uses = [(at, layout.axes.operators[at].uses[n]) for at, n in home.uses]
        cuts = [_cut(number, side, uses, home, bodies) for side in range(len(buffer.sides))]
        one = Moving(number, buffer.name, home, stored, cuts, buffer.element, place.width, sides=buffer.sides)
        ends = _ends(home.above)
        if buffer.maker is not None:
            sums = layout.axes.operators[buffer.maker].sums
            one.sums = [bodies[turn] for turn in ends if turn.over.get(buffer.maker) in sums]
        elif uses[0][1].late:
            at = uses[0][0]
            sums = layout.axes.operators[at].sums
            one.waits = [bodies[turn] for turn in ends if turn.over.get(at) in sums]
        for at, _ in (*home.uses, *home.guests):
            one.users.add(of[at].number)
            if one not in of[at].uses:
                of[at].uses.append(one)
        of[home.uses[0][0]].around[len(home.above)].moving.append(one)
        found.append(one)
    return found


def _cut(
    number: int, side: int, uses: Sequence[tuple[int, Use]], home: Home, bodies: dict[Turns, Body]
) -> Body | None:
    """Return the innermost loop above a home that leaves a part of a side of its buffer."""
    for turn in reversed(home.above):
        windows = bodies[turn].windows
        if windows is not None and windows.side.get(number) == side:
            return bodies[turn]
        if windows is None and turn.cuts(uses, side):
            return bodies[turn]
    return None


def _in_order(
    nest: Nest, layout: Layout, root: Body, moving: Sequence[Moving], leaves: Sequence[Visit]
) -> None:
    """Number all that moves: bodies as they are walked, in each what it keeps as listed, then the rest."""
    count = 0
    todo = [root]
    while todo:
        body = todo.pop()
        if body.moving:
            keep = _keep(nest, () if body.turns is None else body.turns.where)
            at = {name: n for n, name in reversed([*enumerate(keep)])}
            names = [layout.axes.buffers[one.home.buffer].name for one in body.moving]
            rank = {
                one: (at.get(name, len(keep)), one.number)
                for one, name in zip(body.moving, names, strict=True)
            }
            body.moving.sort(key=rank.__getitem__)
            for one in body.moving:
                one.order = count
                count += 1
        todo += [item for item in reversed(body.items) if isinstance(item, Body)]
    for visit in leaves:
        visit.uses.sort(key=lambda one: one.order)
    assert count == len(moving)


def _keep(nest: Nest, items: Sequence[int]) -> tuple[str, ...]:
    found: Nest | Loop = nest
    for n in items:
        inner = found.body[n]
        if isinstance(inner, Leaf):  # a slice of it keeps nothing
            return ()
        found = inner
    return found.keep


def _leaf(nest: Nest, items: Sequence[int]) -> Leaf:
    found: Nest | Loop | Leaf = nest
    for n in items:
        assert not isinstance(found, Leaf)
        found = found.body[n]
    assert isinstance(found, Leaf)
    return found


def _ends(above: Sequence[Turns]) -> list[Turns]:
    """Return the last loop of every chain."""
    inner = {turn.before for turn in above}
    return [turn for turn in above if turn not in inner]
