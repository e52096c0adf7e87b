"""The parts of every nest of a group's family: classes of axes, operators before and after a deeper loop."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from onchip.network.axes import ALL, GroupAxes, Use
from onchip.plans.nest import Leaf, Loop, Nest

__all__ = ["arranged", "classes_of", "nest_of"]


def classes_of(group: GroupAxes) -> list[dict[int, int]]:
    """Axes by operator that one loop goes along, joined along tensors made here, then along the others.

    First where both uses go along a side index by index, then where windows slide.
    """
    ops = group.operators
    classes = [{at: axis} for at, op in enumerate(ops) for axis in range(len(op.axes))]

    def join(a: tuple[int, int], b: tuple[int, int]) -> None:
        one, other = (next(c for c in classes if c.get(at) == axis) for at, axis in (a, b))
        if one is not other and not set(one) & set(other):
            one.update(other)
            classes.remove(other)

    buffers = group.buffers
    made = sorted(
        (i for i, b in enumerate(buffers) if b.maker is not None), key=lambda i: -(buffers[i].maker or 0)
    )
    outside = [i for i, b in enumerate(buffers) if b.maker is None]
    for sliding, i in product((False, True), [*made, *outside]):
        uses = [(at, use) for at, op in enumerate(ops) for use in op.uses if use.buffer == i]
        if buffers[i].maker is not None:
            uses.sort(key=lambda u: u[1] is not ops[u[0]].writes)
            pairs = [(uses[0], u) for u in uses[1:]]
        else:
            pairs = [(a, b) for n, b in enumerate(uses) for a in uses[:n]]
        for (a, x), (b, y) in pairs:
            for s, t in zip(_along(x, sliding), _along(y, sliding), strict=True):
                if s != ALL and t != ALL:
                    join((a, s), (b, t))
    return classes


def _along(use: Use, sliding: bool) -> tuple[int, ...]:
    slides = use.slides if sliding and use.slides else (None,) * len(use.axes)
    return tuple(
        axis if window is None else window.axis for axis, window in zip(use.axes, slides, strict=True)
    )


Skeleton = tuple[list[list[int]], list[list[int]]]


def arranged(group: GroupAxes, chosen: Sequence[dict[int, int]], depths: Sequence[int]) -> Skeleton | None:
    """By body, the operators before and after the deeper loop; None if one would have to be both."""
    ops = group.operators
    needs: list[set[int]] = []
    for op in ops:
        makers = {m for u in op.reads if (m := group.buffers[u.buffer].maker) is not None}
        needs.append(makers.union(*(needs[m] for m in makers)))
    before: list[list[int]] = [[] for _ in range(len(chosen) + 1)]
    after: list[list[int]] = [[] for _ in range(len(chosen) + 1)]
    for at in range(len(ops)):
        inside = {b for b in range(len(ops)) if depths[b] > depths[at]}
        late = bool(needs[at] & inside)
        if late and any(at in needs[b] for b in inside):
            return None
        (after if late else before)[depths[at]].append(at)
    return before, after


def nest_of(
    group: GroupAxes, skeleton: Skeleton, chosen: Sequence[dict[int, int]], tiles: Sequence[int],
    keep: Sequence[tuple[str, ...]], ring: Sequence[tuple[str, ...]] = (),
) -> Nest:  # fmt: skip
    ops = group.operators
    before, after = skeleton
    body: tuple[Loop | Leaf, ...] = ()
    for depth in range(len(chosen), -1, -1):
        middle: tuple[Loop, ...] = ()
        if depth < len(chosen):
            inside = sorted(at for line in (*before[depth + 1 :], *after[depth + 1 :]) for at in line)
            over = tuple((ops[at].name, chosen[depth][at]) for at in inside)
            rings = ring[depth + 1] if ring else ()
            middle = (Loop(over, tiles[depth], body, keep[depth + 1], rings),)
        body = (
            *(Leaf(ops[at].name) for at in before[depth]),
            *middle,
            *(Leaf(ops[at].name) for at in after[depth]),
        )
    return Nest(body, keep[0])
