"""The front of RAM and work: every plan that none dominates, from no repeated work to the least RAM.

The module also chooses one: the fewest bytes at no extra work, or the least work that fits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from onchip.base.errors import ModelError
from onchip.base.guard import searching
from onchip.base.interrupt import until_interrupted
from onchip.microcontroller.segments.bound import Point
from onchip.microcontroller.segments.chain import Chain, GroupChoice
from onchip.microcontroller.segments.distances import Distances
from onchip.microcontroller.segments.fold import Space
from onchip.microcontroller.segments.group import Figures
from onchip.microcontroller.segments.layers import layers_of
from onchip.microcontroller.segments.options import InputMode, SegmentOptions
from onchip.microcontroller.segments.place import Link, Placed, Way, place
from onchip.microcontroller.segments.search import (
    APART,
    ONCE,
    Groups,
    Row,
    Search,
    chosen,
    rows_of_groups,
    simplest,
)
from onchip.network import Network
from onchip.planners.limits import Limits

__all__ = ["Choice", "Front", "FrontPoint", "chain_of", "choose", "front", "least_of_any"]

BEAM = 8
"""The number of labels kept at a place in the first look."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Groups at their addresses; `bound` are the bytes of the largest, a lower bound of any placement.

    No plan of the space that the objective's claim names takes fewer bytes than `least`; 0 where no bound is
    known (`onchip.microcontroller.segments.claim`). `slower` are the multiply-adds by which layers that
    make a pixel a call are reckoned to take longer; `work` is in the unit of the space that was searched.
    """

    groups: tuple[GroupChoice, ...]
    placed: Placed
    bound: int
    least: int = 0
    slower: int = 0
    work: int = 0

    @property
    def bytes(self) -> int:
        """The bytes of the pool."""
        return self.placed.bytes

    @property
    def macs(self) -> int:
        """The multiply-accumulates of the groups, each in the direction in which it runs."""
        ways = zip(self.groups, self.placed.traversals, strict=True)
        return sum(group.way(traversal).macs for group, traversal in ways)


@dataclass(frozen=True, slots=True)
class FrontPoint:
    """A plan on the front: its bytes of RAM, its multiply-accumulates, and their ratio to the network's own.

    `reckoned` is the estimated ratio of instructions to those of every layer on its own, from the
    multiply-accumulates and from how much slower kernels are that make a pixel a call.
    """

    ram_bytes: int
    macs: int
    factor: float
    reckoned: float
    choice: Choice


@dataclass(frozen=True, slots=True)
class Front:
    """Points from the least work to the least RAM; `macs` are the network's own.

    `complete` states that the whole space of plans was searched, with every order of every module's layers:
    then no plan in it has fewer bytes in its largest group for no more work. Addresses may take more bytes
    than the largest group (`Choice.bound`).
    """

    chain: Chain
    points: tuple[FrontPoint, ...]
    macs: int
    complete: bool
    seconds: float

    def within(self, ram_bytes: int) -> FrontPoint | None:
        """Return the point with the least work within `ram_bytes`; None where none fits."""
        return next((point for point in self.points if point.ram_bytes <= ram_bytes), None)


def chain_of(network: Network) -> Chain:
    """Return the network and its cuts.

    Raises `ModelError` for a network with several inputs, or whose operators are not layers over maps.
    """
    net = layers_of(network)
    if isinstance(net, str):
        raise ModelError(net, where=network.source or network.name)
    if sum(t.kind == "input" for t in network.tensors) != 1:
        raise ModelError("must have one input", where=network.source or network.name)
    return Chain(net)


def front(
    network: Network,
    options: SegmentOptions | None = None,
    space: Space | None = None,
    limits: Limits | None = None,
) -> Front:
    """Return the front of RAM and multiply-accumulates of the plans in `space`.

    A time limit, of `limits` or else of `options`, ends the search early: the points are then valid plans,
    but better ones may exist. Raises as `chain_of`.
    """
    options, space, started = options or SegmentOptions(), space or Space(), time.monotonic()
    chain = chain_of(network)
    searching()
    search = Search(chain, options.input, limits or Limits.of(options))
    rows, _ = _anew(search, space)
    own = sum(op.work for op in network.operators)
    choices = [choice for row in rows for choice in _placements(chain, row, options)]
    points: list[FrontPoint] = []
    floor = least_of_any(chain, options.input)
    for choice in sorted(choices, key=lambda c: (c.macs, c.bytes, c.slower)):
        if not points or choice.bytes < points[-1].ram_bytes:
            times = choice.macs / max(own, 1), (choice.macs + choice.slower) / max(own, 1)
            points.append(FrontPoint(choice.bytes, choice.macs, *times, replace(choice, least=floor)))
    complete = search.complete and search.all_orders
    return Front(chain, tuple(points), own, complete, time.monotonic() - started)


def choose(chain: Chain, ram_bytes: int, options: SegmentOptions, limits: Limits) -> Choice:
    """Return the groups that the objective asks for; where none fit, those with the fewest bytes known.

    An image that may be fetched again is fetched whole where that takes fewer bytes.
    """
    searching()
    found = _chosen(chain, ram_bytes, options, limits)
    if options.input == "held" or chain.net.maps[chain.input].bytes >= found.bytes:
        return found
    held = _chosen(chain, ram_bytes, replace(options, input="held"), limits)
    dearer = held.macs > found.macs and found.bytes <= ram_bytes and options.objective == "free"
    best = held if held.bytes < found.bytes and not dearer else found
    return replace(best, least=min(found.least, held.least))


def _chosen(chain: Chain, ram_bytes: int, options: SegmentOptions, limits: Limits) -> Choice:
    search = Search(chain, options.input, limits)
    anew = Space(instructions=True)
    floor = least_of_any(chain, options.input)
    if options.objective == "free":
        rows, groups = Search(chain, options.input).rows(APART)
        found = _placed(chain, groups, rows[-1], options)
        if found.bytes <= ram_bytes:
            return replace(found, least=floor)
        rows, groups = Search(chain, options.input).rows(replace(ONCE, instructions=True))
        fits = _first_that_fits(chain, groups, rows, ram_bytes, options)
        if fits is not None:
            return replace(fits, least=floor)
        rows, groups = _anew(search, anew, lambda rows: _cheaper(rows, ram_bytes))
        fits = _first_that_fits(chain, groups, rows, ram_bytes, options)
        if fits is not None:
            return replace(fits, least=floor)
    elif options.objective == "once":
        rows, groups = search.rows(replace(ONCE, instructions=True))
    else:
        rows, groups = _anew(search, anew, _smaller)
    found = min((_placed(chain, groups, row, options) for row in rows[-8:]), key=lambda choice: choice.bytes)
    if options.objective != "least":
        return replace(found, least=floor)
    least = rows[-1].bytes if search.complete and search.all_orders else floor
    return replace(_least_work(search, groups, rows, found, options), least=least)


def _least_work(
    search: Search, groups: Groups, rows: Sequence[Row], found: Choice, options: SegmentOptions
) -> Choice:
    """Return the choice with the least work of those with no more bytes than `found`.

    The search for the fewest bytes looks for fewer than any known plan has: a plan with as many and less work
    is not looked for there.
    """
    again = Search(search.chain, search.mode, search.limits)
    known = [(0, rows[-1].work)]
    try:
        with until_interrupted():
            again.groups(Space(instructions=True), found.bytes, "least work", known=known, into=groups)
    except KeyboardInterrupt:
        pass  # what was found by then counts
    cheapest = rows_of_groups(search.chain, groups)
    return _first_that_fits(search.chain, groups, cheapest, found.bytes, options) or found


def least_of_any(chain: Chain, mode: InputMode) -> int:
    """Return a lower bound of any plan's bytes: every layer runs, with its workspace, between two cuts."""
    maps, cuts = chain.net.maps, chain.cuts
    into = [maps[chain.entering(cut)].bytes if cut or mode == "held" else 0 for cut in cuts[:-1]]
    out = [maps[chain.net.layers[cut - 1].makes].bytes for cut in cuts[1:]]
    found = []
    for i, layer in enumerate(chain.net.layers):
        before = min(size for cut, size in zip(cuts, into, strict=False) if cut <= i)
        behind = min(size for cut, size in zip(cuts[1:], out, strict=True) if cut > i)
        found.append(max(before, behind) + layer.workspace)
    held = into[0] + chain.net.layers[0].workspace
    return max(*found, held, out[-1] + chain.net.layers[-1].workspace)


def _cheaper(rows: Sequence[Row], ram_bytes: int) -> list[Point]:
    """Return the bound for plans with less work than the least that is known to fit."""
    return [(0, row.work) for row in rows if row.bytes <= ram_bytes][:1] or _smaller(rows)


def _smaller(rows: Sequence[Row]) -> list[Point]:
    """Return the bound for plans with fewer bytes than any known."""
    return [(rows[-1].bytes, 0)]


def _all(rows: Sequence[Row]) -> list[Point]:
    """Return the bound for plans that no known plan dominates."""
    return [(row.bytes, row.work) for row in rows]


def _anew(
    search: Search,
    space: Space,
    known: Callable[[Sequence[Row]], list[Point]] = _all,
) -> tuple[list[Row], Groups]:
    """Return the rows of groups of a space in which work may be repeated, and the groups.

    The groups that repeat no work are among them. The cap is the bytes of the best plan without repeated
    work: more are of no use. A quick look for good plans comes first; `known` makes the bound of the search
    from them. Ctrl-C ends the search like a deadline.
    """
    unlimited = Search(search.chain, search.mode)
    rows, found = unlimited.rows(replace(ONCE, instructions=space.instructions))
    cap = rows[0].bytes
    with until_interrupted():
        try:
            looks = [(replace(space, strips=space.strips[:1]), BEAM), (space, BEAM), (space, None)]
            for part, beam in looks if len(space.strips) > 1 else looks[1:]:
                search.groups(part, cap, _stage(beam), known=known(rows), beam=beam, into=found)
                rows = rows_of_groups(search.chain, found)
        except KeyboardInterrupt:
            search.complete = False
    return rows_of_groups(search.chain, found), found


def _stage(beam: int | None) -> str:
    return "every plan" if beam is None else "first look"


def _first_that_fits(
    chain: Chain, groups: Groups, rows: Sequence[Row], ram_bytes: int, options: SegmentOptions
) -> Choice | None:
    """Return the choice with the least work within so many bytes; None where none fits."""
    for row in rows:
        if row.bytes <= ram_bytes:
            found = _placed(chain, groups, row, options)
            if found.bytes <= ram_bytes:
                return found
    return None


def _placed(chain: Chain, groups: Groups, row: Row, options: SegmentOptions) -> Choice:
    """Return the row of groups in the fewest bytes; every layer alone where that is no worse.

    A row that only joins fewer layers is not taken: calling one layer after the other takes more stack.
    """
    plain = simplest(chain, groups, row)
    rows = [row] if any(not group.alone for group in plain.groups()) else [plain, row]
    choices = [choice for r in rows for choice in _placements(chain, r, options)]
    return min(choices, key=lambda choice: choice.bytes)


def _placements(chain: Chain, row: Row, options: SegmentOptions) -> list[Choice]:
    """Return the placements with each group in the direction of less work, and in any if that saves RAM.

    Bands repeat different amounts of work from the first row on and from the last.
    """
    groups = chosen(chain, row, options.input)
    found: list[Choice] = []
    for strict in (True, False):
        links = [_link(chain, group, strict=strict) for group in groups]
        placed = place(links)
        found.append(
            Choice(groups, placed, max(link.needs for link in links), slower=row.slower, work=row.work)
        )
        if placed.bytes <= row.bytes:
            break
    return found


def _link(chain: Chain, group: GroupChoice, *, strict: bool) -> Link:
    entering, made = chain.entering(group.first), chain.net.layers[group.end - 1].makes
    maps = chain.net.maps
    least = min(way.macs for way in (group.forward, group.reverse) if way is not None)
    source, out = 0 if group.fetched else maps[entering].bytes, maps[made].bytes

    def way(figures: Figures | None, *, mirrored: bool = False) -> Way | None:
        if figures is None or (strict and figures.macs > least):
            return None
        distances = figures.distances or Distances.beside(source, out)
        return Way(figures.scratch, distances.mirrored(source, out) if mirrored else distances)

    return Link(source, out, way(group.forward), way(group.reverse, mirrored=True))
