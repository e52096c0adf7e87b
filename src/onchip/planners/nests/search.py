"""The best nest of one group, by the compiled search."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from onchip import _core
from onchip.network.axes import GroupAxes, Use
from onchip.planners.limits import NO_LIMITS, Limits
from onchip.plans.nest import Leaf, Loop, Nest

__all__ = ["ALL_RULES", "MANY", "NestFound", "NestRules", "NestSearch", "best_nest", "group_key"]


@dataclass(frozen=True, slots=True)
class NestRules:
    """The rules that make the search quick, each exact: on and off find as few bytes.

    `tiles`: only the least tile of every number of turns, and many tiles at once, as bytes rise with turns
    and scratch with tiles. `inner`: a tensor made and read inside alone lives as deep as it can. `outer`:
    another buffer has a home only where one deeper lets more bytes cross. `exchange`: neighbouring loops
    with nothing between them stand in one order. `slices`: only orders of slices that cut some buffer
    longest. `rings`: a tensor is a ring only where rows of it would be made again without. `bounds`: what
    cannot fit, or cannot beat the best, is not looked at.
    """

    tiles: bool = True
    inner: bool = True
    outer: bool = True
    exchange: bool = True
    slices: bool = True
    rings: bool = True
    bounds: bool = True


ALL_RULES = NestRules()

MANY = 64
"""As many passes of one nest as there may be."""


@dataclass(frozen=True, slots=True)
class NestFound:
    """A nest, the bytes that cross, the bytes of scratch that it needs.

    `bytes` are those of all buffers from outside and all that leave, but for whole ones. `complete` is false
    if a limit ended the search: there may be a better nest.
    """

    bytes: int
    scratch: int
    nest: Nest
    complete: bool


class NestSearch:
    """The search for one group, ready to be asked for many rooms.

    `leaving` are buffers made here that must reach DRAM (indices into `group.buffers`), `spine` is the most
    loops around one another with free tiles. Up to `passes` times neighbouring operators may share loops of
    tile 1, with `long_passes` only all of them that could; with `pairs`, one loop may go along axes of equal
    size that no tensor links, of operators that share a buffer; with `in_place`, an output lies over an
    operand that dies where both have one home. Windows slide along at most `windows` loops of the spine. A
    sum that is not complete takes `accumulator` bytes, and no less than an element; None: as an element.
    After `in_order` looks at shapes (None: any number) those come first that may let fewest bytes cross.
    Raises `ValueError` for more than 64 operators, buffers or axes.
    """

    def __init__(
        self,
        group: GroupAxes,
        leaving: Collection[int],
        *,
        alignment: int = 1,
        rules: NestRules = ALL_RULES,
        spine: int = 3,
        passes: int = MANY,
        long_passes: bool = False,
        pairs: bool = True,
        in_place: bool = True,
        windows: int = 1,
        accumulator: int | None = None,
        in_order: int | None = None,
    ) -> None:
        self._group, self._in_order = group, in_order
        self._problem = _core.NestProblem(
            operators=operators_of(group),
            buffers=buffers_of(group, leaving, accumulator),
            alignment=alignment,
            spine=spine,
            passes=passes,
            long_passes=long_passes,
            pairs=pairs,
            in_place=in_place,
            windows=windows,
            rules=_core.NestRules(
                tiles=rules.tiles,
                inner=rules.inner,
                outer=rules.outer,
                exchange=rules.exchange,
                slices=rules.slices,
                rings=rules.rings,
                bounds=rules.bounds,
            ),
        )

    @property
    def core(self) -> _core.NestProblem:
        """The compiled search: operators and buffers go by their places in the group."""
        return self._problem

    def best(
        self,
        whole: Collection[int],
        room: int,
        *,
        over: tuple[int, int] | None = None,
        below: int | None = None,
        limits: Limits = NO_LIMITS,
    ) -> NestFound | None:
        """Return the nest with the fewest bytes whose scratch fits in `room` bytes.

        `whole` are buffers that lie on chip whole, whatever this group does: they cost no bytes and no
        scratch. `over` is one of `pairs_of`, both whole: the output lies over the input. None if no nest
        fits, or none moves fewer bytes than `below`, or a limit came first. Raises `ValueError` for a buffer
        made here that nobody reads, does not leave and is not whole, and for one that cannot lie over
        another.
        """
        answer = self._problem.best(
            whole=sorted(whole),
            over=over,
            room=room,
            below=below,
            in_order=self._in_order,
            limits=limits.core(lambda _: limits.stopped()),
        )
        if answer.found is None:
            return None
        found = answer.found
        return NestFound(found.bytes, found.need, self.nest(found), answer.end == "complete")

    def nest(self, found: _core.NestFound) -> Nest:
        """Return what the compiled search found, with the group's names."""
        return Nest(tuple(map(self._item, found.root.body)), self._names(found.root.keep))

    def shapes(self, room: int, most: int | None = None) -> int:
        """Return the number of shapes that the search looks at in `room` bytes, with no buffer whole.

        It ends when these are more than `most`. Tiles of loops along which windows slide count each.
        """
        limits = NO_LIMITS.core(lambda _: False)
        return self._problem.best(whole=[], room=room, below=None, most_shapes=most, limits=limits).shapes

    @property
    def least(self) -> int:
        """Bytes that cross in any nest, no buffer whole: where windows leave gaps, not all of a buffer."""
        return self._problem.least(whole=[])

    def _names(self, buffers: Collection[int]) -> tuple[str, ...]:
        return tuple(self._group.buffers[b].name for b in buffers)

    def _item(self, item: _core.NestItem) -> Loop | Leaf:
        if item.operation is not None:
            over = None if item.under is None else self._group.buffers[item.under].name
            return Leaf(self._group.operators[item.operation].name, tuple(item.slices), over)
        along = tuple((self._group.operators[op].name, axis) for op, axis in item.over)
        body = tuple(map(self._item, item.body))
        return Loop(along, item.tile, body, self._names(item.keep), self._names(item.ring))


def best_nest(
    group: GroupAxes,
    leaving: Collection[int],
    whole: Collection[int],
    room: int,
    *,
    alignment: int = 1,
    below: int | None = None,
    rules: NestRules = ALL_RULES,
    spine: int = 3,
    passes: int = MANY,
    long_passes: bool = False,
    pairs: bool = True,
    in_place: bool = True,
    windows: int = 1,
    accumulator: int | None = None,
    limits: Limits = NO_LIMITS,
) -> NestFound | None:
    """Return the nest of a group with the fewest bytes that cross whose scratch fits in `room` bytes.

    `leaving` are the buffers made here that must reach DRAM, `whole` those that lie on chip whole; both by
    index into `group.buffers`. Every buffer takes a multiple of `alignment` bytes, a sum that is not complete
    `accumulator` bytes. None if there is no such
    nest, or none below `below` bytes. Raises `ValueError` as `NestSearch` does.
    """
    search = NestSearch(
        group,
        leaving,
        alignment=alignment,
        rules=rules,
        spine=spine,
        passes=passes,
        long_passes=long_passes,
        pairs=pairs,
        in_place=in_place,
        windows=windows,
        accumulator=accumulator,
    )
    return search.best(whole, room, below=below, limits=limits)


def group_key(group: GroupAxes, leaving: Collection[int], whole: Collection[int] = ()) -> str:
    """Return a text that is the same for groups that differ in names alone: they have the same nests."""
    buffers = [
        f"{b.sides}x{b.element}<{b.maker}{'!' * (i in leaving)}{'=' * (i in whole)}"
        for i, b in enumerate(group.buffers)
    ]
    operators = []
    for op in group.operators:
        uses = " ".join(f"{use.buffer}{use.axes}{_windows(use)}{'>' * use.late}" for use in op.uses)
        carried = f"~{op.carries}{sorted(op.across)}" if op.carries else ""
        operators.append(f"{op.axes}/{op.outputs}/{sorted(op.together)}{carried}:{uses}")
    return "\n".join((*operators, *buffers))


def operators_of(group: GroupAxes) -> list[_core.NestOperator]:
    """Return the operators of a group as the core takes them."""
    return [
        _core.NestOperator(
            axes=op.axes,
            outputs=op.outputs,
            together=sorted(op.together),
            reads=[_use(use) for use in (*op.reads, *op.constants)],
            writes=_use(op.writes),
            carries=op.carries,
            across=sorted(op.across),
        )
        for op in group.operators
    ]


def buffers_of(group: GroupAxes, leaving: Collection[int], accumulator: int | None) -> list[_core.NestBuffer]:
    """Return the buffers of a group as the core takes them: see `NestSearch`."""
    return [
        _core.NestBuffer(
            sides=b.sides,
            element=b.element,
            maker=-1 if b.maker is None else b.maker,
            leaves=i in leaving,
            accumulated=max(b.element, accumulator or 0),
        )
        for i, b in enumerate(group.buffers)
    ]


def _windows(use: Use) -> list[tuple[int, ...]]:
    return [(side, *window.numbers) for side, window in enumerate(use.slides) if window is not None]


def _use(use: Use) -> _core.NestUse:
    slides = [
        _core.NestSlide(
            side=side,
            axis=window.axis,
            stride=window.stride,
            before=window.before,
            span=window.span,
            per=window.per,
        )
        for side, window in enumerate(use.slides)
        if window is not None
    ]
    return _core.NestUse(buffer=use.buffer, axes=use.axes, slides=slides, late=use.late)
