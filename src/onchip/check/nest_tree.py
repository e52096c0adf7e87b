"""The tree of a nest, held against the axes of its operators: paths, chains of loops, what is legal of them.

Loops that go along one axis of an operator, one inside the other, are a chain: each cuts what the one before
it leaves. A loop is over one axis of each operator inside it, and all of these were cut by the same chain
before: so a chain has the same turns for all of them, ragged last tiles included. A loop along which windows
slide is a chain of its own (`nest_windows`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onchip.check.rules import broken
from onchip.network.axes import Cut, GroupAxes, Use
from onchip.network.operators import Side
from onchip.plans import Leaf, Loop, Nest

__all__ = ["Path", "Turns", "followed", "paths_of"]


@dataclass(frozen=True, eq=False)
class Turns:
    """A loop, or a slice of a leaf, with the chain of loops before it.

    `over` is its axis by the operator's position in the group, `tile` the indices of a turn. `where` says
    which item of every body leads to the loop's body, or to the leaf of a slice; `ring` are the names that
    the loop says.
    """

    over: Mapping[int, int]
    tile: int
    before: Turns | None
    where: tuple[int, ...]
    ring: tuple[str, ...] = ()

    def cuts(self, uses: Sequence[tuple[int, Use]], side: int) -> bool:
        """Return whether it goes along one side of a buffer in all of its uses (operator, use)."""
        return all(use.axes[side] == self.over[at] for at, use in uses)


@dataclass(frozen=True)
class Path:
    """A leaf: its operator's position in the group, and all around it.

    `items` says which item of every body it is in, outermost first. `turns` are the loops around it, one less
    than `items`, and then its slices. `over` is the operand in whose place it writes.
    """

    at: int
    items: tuple[int, ...]
    turns: tuple[Turns, ...]
    over: str | None

    @property
    def loops(self) -> tuple[Turns, ...]:
        """The loops around the leaf."""
        return self.turns[: len(self.items) - 1]

    @property
    def slices(self) -> tuple[Turns, ...]:
        """Its own slices."""
        return self.turns[len(self.items) - 1 :]


def followed(use: Use, axis: int) -> dict[int, Side | None]:
    """Return the sides of a buffer that a use follows along an axis of its operator.

    Each with the window that slides over it, None where the use goes index by index.
    """
    found: dict[int, Side | None] = {side: None for side, one in enumerate(use.axes) if one == axis}
    return found | {side: w for side, w in enumerate(use.slides) if w is not None and w.axis == axis}


def paths_of(group: str, nest: Nest, axes: GroupAxes) -> tuple[Path, ...]:
    """Return the leaves in the order in which they run.

    Raises `Broken` by the rules nest-leaves, nest-axes, nest-tiles and nest-finished.
    """
    tree = _Tree(group, axes)
    tree.body(nest.body, (), ())
    if left := [cut.name for at, cut in enumerate(axes.operators) if at not in tree.found]:
        broken("nest-leaves", f"group {group} has no leaf for {left[0]}")
    paths = tuple(tree.found.values())
    for at, cut in enumerate(axes.operators):
        for use in cut.reads:
            _finished(group, axes, tree.found, at, use)
    return paths


class _Tree:
    def __init__(self, group: str, axes: GroupAxes) -> None:
        self.group, self.axes = group, axes
        self.at = {cut.name: at for at, cut in enumerate(axes.operators)}
        self.found: dict[int, Path] = {}

    def body(
        self, body: Sequence[Loop | Leaf], items: tuple[int, ...], around: tuple[Turns, ...]
    ) -> list[int]:
        """Walk a body; return the operators in it."""
        inside: list[int] = []
        for n, item in enumerate(body):
            if isinstance(item, Leaf):
                inside.append(self.leaf(item, (*items, n), around))
            else:
                turns = self.loop(item, (*items, n), around)
                below = self.body(item.body, (*items, n), (*around, turns))
                if set(below) != turns.over.keys():
                    broken(
                        "nest-axes",
                        f"a loop of group {self.group} goes over {_listed(item)}, which is not what it holds",
                    )
                inside += below
        return inside

    def loop(self, loop: Loop, items: tuple[int, ...], around: tuple[Turns, ...]) -> Turns:
        over: dict[int, int] = {}
        before: set[Turns | None] = set()
        for name, axis in loop.over:
            if name not in self.at:
                broken("nest-axes", f"a loop of group {self.group} goes over {name}, which is no member")
            at = self.at[name]
            over[at] = axis
            before.add(self.before(at, axis, around))
        if len(before) != 1:
            broken(
                "nest-axes",
                f"a loop of group {self.group} goes over {_listed(loop)}, and outer loops cut these axes"
                " differently",
            )
        [outer] = before
        self.tile(loop.tile)
        return Turns(over, loop.tile, outer, items, loop.ring)

    def leaf(self, leaf: Leaf, items: tuple[int, ...], around: tuple[Turns, ...]) -> int:
        at = self.at.get(leaf.operator)
        if at is None or at in self.found:
            what = "is no member" if at is None else "is a leaf already"
            broken("nest-leaves", f"a leaf of group {self.group} runs {leaf.operator}, which {what}")
        cut, turns = self.axes.operators[at], around
        for turn in around:
            if at not in turn.over:
                broken("nest-axes", f"a loop of group {self.group} does not say its axis of {cut.name}")
        for n, (axis, tile) in enumerate(leaf.slices):
            if axis in (earlier for earlier, _ in leaf.slices[:n]):
                broken("nest-axes", f"{cut.name} in group {self.group} is sliced along axis {axis} twice")
            outer = self.before(at, axis, around)
            self.tile(tile)
            turns = (*turns, Turns({at: axis}, tile, outer, items))
        self.found[at] = Path(at, items, turns, leaf.over)
        return at

    def before(self, at: int, axis: int, around: Sequence[Turns]) -> Turns | None:
        """Return the innermost loop around that goes along an axis. Refuses an axis that is not to be cut."""
        cut = self.axes.operators[at]
        reason = _uncut(cut, axis)
        if reason:
            broken("nest-axes", f"group {self.group} cuts {cut.name} along axis {axis}, {reason}")
        return next((turn for turn in reversed(around) if turn.over.get(at) == axis), None)

    def tile(self, tile: int) -> None:
        if tile < 1:
            broken("nest-tiles", f"a loop or slice of group {self.group} takes {tile} indices in a turn")


def _uncut(cut: Cut, axis: int) -> str:
    """Return why no loop goes along an axis; nothing if one may."""
    if not 0 <= axis < len(cut.axes):
        return f"and it has {len(cut.axes)} axes"
    if axis in cut.together:
        return "which stays together"
    if axis < cut.outputs and cut.axes[axis] > 1 and axis not in cut.writes.axes:
        return "along which its output is not cut"
    return ""


def _listed(loop: Loop) -> str:
    shown = ", ".join(f"axis {axis} of {name}" for name, axis in loop.over[:4])
    return (shown + (" and more" if len(loop.over) > 4 else "")) or "nothing"


def _finished(group: str, axes: GroupAxes, found: Mapping[int, Path], at: int, use: Use) -> None:
    """Refuse unless a reader of what the group makes comes after it, and sees finished elements only."""
    maker = axes.buffers[use.buffer].maker
    if maker is not None:
        made, cut = found[maker], axes.operators[maker]
        reader, who, name = found[at], axes.operators[at].name, axes.buffers[use.buffer].name
        if reader.items <= made.items:
            broken("nest-leaves", f"group {group} runs {who} before {cut.name}, which makes {name} for it")
        for n, turn in enumerate(reader.loops):
            if turn not in made.loops[n : n + 1]:
                break
            if turn.over[maker] in cut.sums:
                broken(
                    "nest-finished",
                    f"group {group} has {cut.name} and {who} in a loop over a sum of {cut.name}, and {who}"
                    f" would read {name} unfinished",
                )
            if followed(cut.writes, turn.over[maker]).keys() != followed(use, turn.over[at]).keys():
                broken(
                    "nest-finished",
                    f"group {group} has {cut.name} and {who} in a loop that does not cut {name} alike in"
                    " both",
                )
