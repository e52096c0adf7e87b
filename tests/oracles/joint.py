"""Joint fusion and placement by elementary moves: load, store, evict, run a group. No rule of the search is
used.

A shortest path over (operators that ran, tensors on chip, tensors in DRAM), with all convex groups, connected
or not, every way to tile them, and every choice of operands on chip.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations, permutations, product
from math import prod

from onchip.base.units import MAX_BYTES
from onchip.check.rules import Broken
from onchip.check.streaming import streaming_scratch
from onchip.check.units import Unit, units_of
from onchip.network import Network, bits
from onchip.network.axes import GroupAxes, axes_of
from onchip.network.maps import Maps
from onchip.planners.fusion import FusionProblem
from onchip.planners.joint.candidates import LARGEST, SMALL, closed, joined
from onchip.planners.joint.nests import effort_of, search_of
from onchip.planners.nests import NestSearch
from onchip.plans import Blocks, Boxes, Group, Tiling

__all__ = ["TooManyStates", "least_dram_bytes", "options_of"]


class TooManyStates(Exception):
    """The case is too large for elementary moves."""


def least_dram_bytes(
    problem: FusionProblem,
    over: Sequence[Sequence[int]] = (),
    *,
    most_states: int = 10**9,
    nests: bool = False,
    under: bool = False,
    joins: Sequence[int] = (),
) -> int | None:
    """The fewest bytes that cross in any plan; None where there is none. With `nests` neighbouring operators
    may also run as nests; with `under` an output of one may lie over a whole input that dies. `joins` are
    concats whose output is in DRAM where their operands are."""
    network, budget = problem.network, problem.budget
    groups = [(g, options_of(problem, g, nests=nests)) for g in _convex(problem)]
    groups = [(g, options) for g, options in groups if options]
    laid_over = {g: _laid_over(problem, g) for g, _ in groups} if nests and under else {}
    size = [problem.round_up(t.bytes) for t in network.tensors]
    cost = [t.bytes for t in network.tensors]
    everything = (1 << len(network.operators)) - 1
    reads = {g: problem.external(g) for g, _ in groups}
    leaves = {g: problem.escaping(g) for g, _ in groups}
    before = {}
    for g, _ in groups:
        before[g] = 0
        for v in bits(g):
            before[g] |= network.predecessors[v]

    def total(tensors: int) -> int:
        return sum(size[t] for t in bits(tensors))

    def needed(done: int) -> int:
        return sum(1 << t for t in range(len(size)) if network.readers[t] & ~done)

    start = (0, 0, network.input_roots)
    best = {start: 0}
    queue: list[tuple[int, tuple[int, int, int]]] = [(0, start)]
    while queue:
        paid, state = heapq.heappop(queue)
        if best[state] < paid:
            continue
        if len(best) > most_states:
            raise TooManyStates
        done, there, copied = state
        if done == everything and not network.output_roots & ~copied:
            return paid
        used = total(there)
        wanted = needed(done)
        moves: list[tuple[int, tuple[int, int, int]]] = []
        for t in bits(there):
            if copied >> t & 1 or not (wanted | network.output_roots) >> t & 1:
                moves.append((0, (done, there & ~(1 << t), copied)))
            else:
                moves.append((cost[t], (done, there, copied | 1 << t)))
        for t in bits(copied & ~there & wanted):
            if used + size[t] <= budget:
                moves.append((cost[t], (done, there | 1 << t, copied)))
        for g, options in groups:
            if g & done or before[g] & ~(done | g):
                continue
            for whole, ways in options.items():
                if reads[g] & whole & ~there or reads[g] & ~whole & ~copied:
                    continue
                made = leaves[g] & whole
                after = (done | g, there | made, copied | leaves[g] & ~whole)
                room = budget - used - total(made)
                fitting = [crossing for scratch, crossing in ways if scratch <= room]
                if fitting:
                    moves.append((min(fitting), after))
                for x, t, ways_over in laid_over.get(g, {}).get(whole, ()):
                    dies = not network.readers[x] & ~after[0]
                    kept = network.output_roots >> x & 1 and not copied >> x & 1
                    fitting = [crossing for scratch, crossing in ways_over if scratch <= room + size[t]]
                    if dies and not kept and fitting:
                        moves.append((min(fitting), (after[0], after[1] & ~(1 << x), after[2])))
                if g.bit_count() == 1 and over and whole == reads[g] | leaves[g]:
                    op = network.operators[g.bit_length() - 1]
                    for x in over[op.id]:
                        dies = not network.readers[x] & ~after[0]
                        kept = network.output_roots >> x & 1 and not copied >> x & 1
                        if dies and not kept and problem.round_up(op.workspace) <= room + total(made):
                            moves.append((op.weight_bytes, (after[0], after[1] & ~(1 << x), after[2])))
        for v in joins:
            ready = not network.predecessors[v] & ~done and not network.reads[v] & ~copied
            if ready and not done >> v & 1:
                moves.append((0, (done | 1 << v, there, copied | network.writes[v])))
        for t in bits(there & ~copied):  # written, and still there
            moves.append((cost[t], (done, there, copied | 1 << t)))
        for more, (ran, on_chip, in_dram) in moves:
            # What nobody wants is gone, so that there are fewer states.
            keep = needed(ran) | network.output_roots & ~in_dram
            new = (ran, on_chip & keep, in_dram & (needed(ran) | network.output_roots))
            if paid + more < best.get(new, 1 << 62):
                best[new] = paid + more
                heapq.heappush(queue, (paid + more, new))
    return None


def _convex(problem: FusionProblem) -> Iterator[int]:
    network = problem.network
    for members in range(1, 1 << len(network.operators)):
        after, fine = 0, True
        for v in network.order:
            if members >> v & 1:
                fine = fine and not network.predecessors[v] & after
            elif network.predecessors[v] & (members | after):
                after |= 1 << v
        if fine:
            yield members


@lru_cache(maxsize=1)
def _known(problem: FusionProblem) -> Maps:
    return Maps(problem.network)


def options_of(
    problem: FusionProblem, members: int, *, nests: bool = False
) -> dict[int, list[tuple[int, int]]]:
    """By operands that are whole (bitset), every way to run a group that no other beats in both of (bytes of
    scratch, bytes that cross), as the checker has it; of `nests` as the search for one group has it, which
    other tests hold against every nest."""
    network = problem.network
    external, leaves = problem.external(members), problem.escaping(members)
    found: dict[int, list[tuple[int, int]]] = {}
    if members.bit_count() == 1:
        op = network.operators[members.bit_length() - 1]
        found.setdefault(external | leaves, []).append((problem.round_up(op.workspace), op.weight_bytes))
        for passing in _subsets(external | leaves) if op.workspace else ():
            if passing and streaming_scratch(network, op.id, tuple(bits(passing))) <= op.workspace:
                crossing = op.weight_bytes + sum(network.tensors[t].bytes for t in bits(passing))
                found.setdefault((external | leaves) & ~passing, []).append(
                    (problem.round_up(op.workspace), crossing)
                )
    for unit, streamed, parts in (
        *_bands(problem, members),
        *_blocks(problem, members),
        *_boxes(problem, members),
    ):
        assert unit.crossing is not None
        for whole in _subsets(external | leaves):
            if whole & streamed:
                continue
            scratch = sum(p.bytes for p in unit.parts if p.tensor is None)
            scratch += sum(size for t, size in parts.items() if not whole >> t & 1)
            crossing = unit.weights + sum(n for t, n in unit.crossing.items() if not whole >> t & 1)
            if scratch <= problem.budget:
                found.setdefault(whole, []).append((scratch, crossing))
    for whole, way in _nests(problem, members) if nests else ():
        found.setdefault(whole, []).append(way)
    result: dict[int, list[tuple[int, int]]] = {}
    for whole, ways in found.items():
        least = 1 << 62
        for scratch, crossing in sorted(set(ways)):
            if crossing < least and scratch <= problem.budget:
                least = crossing
                result.setdefault(whole, []).append((scratch, crossing))
    return result


def _subsets(members: int) -> Iterator[int]:
    part = members
    while True:
        yield part
        if not part:
            return
        part = (part - 1) & members


Ways = Iterator[tuple[Unit, int, dict[int, int]]]
"""What the checker says, the tensors that stream, and bytes of buffers by tensor."""


def _bands(problem: FusionProblem, members: int) -> Ways:
    """Every way in bands: any height, any streamed set, any number of images, any weights that stay."""
    network = problem.network
    touched = 0
    for v in bits(members):
        touched |= network.reads[v] | network.writes[v]
    shapes = [problem.maps[t] for t in bits(touched)]
    if any(m is None for m in shapes):
        return
    rows = max(m.rows for m in shapes if m is not None)
    streamable = sum(
        1 << t
        for t in bits(touched)
        if (m := problem.maps[t]) is not None and m.channels > problem.channel_tile
    )
    weighty = [network.operators[v].name for v in bits(members) if network.operators[v].weight_bytes]
    counted: dict[tuple[int, int], int] = {}  # as many bands as with other streamed tensors, mostly
    for streamed in _subsets(streamable):
        names = tuple(network.tensors[t].name for t in bits(streamed))
        for t in range(problem.least_rows, max(rows, problem.least_rows) + 1):
            for images in range(1, problem.batch + 1):
                tiling = Tiling(t, names, problem.channel_tile, images)
                bands = counted.get((t, images))
                if bands is None or (ways := _refilled(problem, members, weighty, bands, tiling)) is None:
                    bands = _subgroups(problem, members, tiling)
                    ways = None if bands is None else _refilled(problem, members, weighty, bands, tiling)
                if bands is None or ways is None:
                    break
                counted[t, images] = bands
                if (
                    1 < images < problem.batch
                    and problem.options.batch_weights != "held"
                    and bands > -(-problem.batch // images)
                ):
                    continue  # bands of several images at once are another option of fusion
                for unit in ways:
                    yield unit, streamed, _by_tensor(unit)


def _refilled(
    problem: FusionProblem, members: int, weighty: list[str], bands: int, tiling: Tiling
) -> list[Unit] | None:
    """The group with every choice of weights that stay; None where the checker refuses so many bands."""
    found = []
    try:
        for n in range(len(weighty) + 1):
            for kept in combinations(weighty, n):
                refilled = tuple((name, bands) for name in weighty if name not in kept)
                found.append(_unit(problem, members, bands, refilled, kept, tiling))
    except Broken:
        return None
    return found


def _blocks(problem: FusionProblem, members: int) -> Ways:
    """Blocks of an operator alone, of any size; every operand streamed."""
    if members.bit_count() > 1:
        return
    v = members.bit_length() - 1
    op = problem.network.operators[v]
    if len(op.outputs) != 1 or len(op.inputs) != 1:
        return
    made, read = problem.maps[op.outputs[0]], problem.maps[op.inputs[0]]
    if made is None or read is None:
        return
    everything = problem.external(members) | problem.escaping(members)
    slices = {min(problem.channel_tile, read.channels), 1}
    for rows in range(1, made.rows + 1):
        for columns in range(1, made.columns + 1):
            tiles = problem.batch * -(-made.rows // rows) * -(-made.columns // columns)
            for deep in range(1, made.channels + 1):
                for slice_ in slices:
                    for keep in (True, False) if op.weight_bytes else (False,):
                        refills = ((op.name, 1 if keep else tiles),) if op.weight_bytes else ()
                        tiling = Blocks(rows, columns, deep, slice_, keep)
                        try:
                            unit = _unit(problem, members, tiles, refills, (), tiling)
                        except Broken:
                            return
                        yield unit, everything, _by_tensor(unit)


def _boxes(problem: FusionProblem, members: int) -> Ways:
    """Boxes of an operator that runs in no bands, of any size and in any order; every operand streamed."""
    v = members.bit_length() - 1
    op = problem.network.operators[v]
    if members.bit_count() > 1 or op.reach is None or problem.operators[v].form != "opaque":
        return
    everything = problem.external(members) | problem.escaping(members)
    extents = op.reach.extents
    for sizes in product(*(range(1, n + 1) for n in extents)):
        tiles = prod(-(-n // size) for n, size in zip(extents, sizes, strict=True))
        turning = [axis for axis in range(len(extents)) if sizes[axis] < extents[axis]]
        still = tuple(axis for axis in range(len(extents)) if axis not in turning)
        for order in permutations(turning):
            try:
                unit = _unit(problem, members, tiles, (), (), Boxes(sizes, (*still, *order)))
            except Broken:
                continue
            yield unit, everything, _by_tensor(unit)


def _by_tensor(unit: Unit) -> dict[int, int]:
    """The bytes of a unit's buffers by tensor; an operator may have several for one."""
    found: dict[int, int] = {}
    for part in unit.parts:
        if part.tensor is not None:
            found[part.tensor] = found.get(part.tensor, 0) + part.bytes
    return found


def _nests(problem: FusionProblem, members: int) -> Iterator[tuple[int, tuple[int, int]]]:
    """By whole operands, the least bytes for every room of a group of neighbours."""
    known = _search(problem, members)
    if known is None:
        return
    axes, search = known
    for whole in _subsets(problem.external(members) | problem.escaping(members)):
        kept = [i for i, b in enumerate(axes.buffers) if b.tensor is not None and whole >> b.tensor & 1]
        room = problem.budget
        while room >= 0 and (best := search.best(kept, room)) is not None:
            yield whole, (best.scratch, best.bytes)
            room = best.scratch - 1


def _laid_over(
    problem: FusionProblem, members: int
) -> dict[int, list[tuple[int, int, list[tuple[int, int]]]]]:
    """By whole operands, an input, an output over it, and the least bytes of a nest for every room.

    What lies over what by no fault of the checker is tried, whatever the planner thinks of it.
    """
    known = _search(problem, members)
    found: dict[int, list[tuple[int, int, list[tuple[int, int]]]]] = {}
    if known is None:
        return found
    axes, search = known
    for (i, x), (j, y) in product(enumerate(axes.buffers), repeat=2):
        if x.maker is not None or y.maker is None or x.tensor is None or y.tensor is None:
            continue
        alone = sum(b.tensor == x.tensor for b in axes.buffers) == 1 and x.sides == x.whole and not x.offset
        if problem.network.tensors[x.tensor].bytes != problem.network.tensors[y.tensor].bytes:
            continue
        if not problem.escaping(members) >> y.tensor & 1 or not alone:
            continue
        if (x.sides, x.element) != (y.sides, y.element):
            continue
        both = 1 << x.tensor | 1 << y.tensor
        for rest in _subsets((problem.external(members) | problem.escaping(members)) & ~both):
            whole, ways, room = rest | both, list[tuple[int, int]](), problem.budget
            kept = [k for k, b in enumerate(axes.buffers) if b.tensor is not None and whole >> b.tensor & 1]
            while room >= 0 and (best := search.best(kept, room, over=(i, j))) is not None:
                ways.append((best.scratch, best.bytes))
                room = best.scratch - 1
            if ways:
                found.setdefault(whole, []).append((x.tensor, y.tensor, ways))
    return found


def _as_needed(network: Network) -> list[int]:
    """The operators from the last ones back, each behind all that it needs, its first operand's first."""
    found: list[int] = []

    def visit(v: int) -> None:
        if v in found:
            return
        for t in network.operators[v].inputs:
            for maker in makers(t):
                visit(maker)
        found.append(v)

    def makers(t: int) -> list[int]:
        return [op.id for op in network.operators if network.writes[op.id] >> network.root[t] & 1]

    for v in network.order:
        if not any(network.readers[t] for t in bits(network.writes[v])):
            visit(v)
    return found


def _search(problem: FusionProblem, members: int) -> tuple[GroupAxes, NestSearch] | None:
    """The search for the nests of a group of neighbours; None for other groups, and those left out."""
    network = problem.network
    if not joined(problem, members):
        return None
    at = sorted(network.order.index(v) for v in bits(members))
    needed = sorted(_as_needed(network).index(v) for v in bits(members))
    if len(at) > LARGEST or all(places[-1] - places[0] >= len(at) for places in (at, needed)):
        return None
    if len(at) > SMALL and not closed(problem, [network.order[i] for i in at]):
        return None
    axes = axes_of(network, [network.order[i] for i in at])
    if isinstance(axes, str):
        return None
    leaves = problem.escaping(members)
    leaving = [i for i, b in enumerate(axes.buffers) if b.tensor is not None and leaves >> b.tensor & 1]
    search = search_of(problem, axes, leaving)
    if search.shapes(problem.budget) > effort_of(problem, axes).most_shapes:
        return None
    return axes, search


def _subgroups(problem: FusionProblem, members: int, tiling: Tiling) -> int | None:
    """How many sub-groups a tiling has, as the checker says when a wrong number is stated; None: illegal."""
    try:
        _unit(problem, members, MAX_BYTES, (), (), tiling)
    except Broken as refusal:
        if refusal.rule != "tiling-subgroups":
            return None
        return int(str(refusal).split("runs in ")[1].split(" subgroups")[0].replace(",", ""))
    raise AssertionError("a wrong number of sub-groups was accepted")


def _unit(
    problem: FusionProblem,
    members: int,
    subgroups: int,
    refills: tuple[tuple[str, int], ...],
    kept: tuple[str, ...],
    tiling: Tiling | Blocks | Boxes,
) -> Unit:
    network = problem.network
    names = tuple(network.operators[v].name for v in bits(members))
    operands = [network.tensors[t].name for t in bits(problem.external(members) | problem.escaping(members))]
    group = Group("the group", names, MAX_BYTES, subgroups, refills, kept, tiling)
    units = units_of(
        network,
        [group],
        alignment=problem.alignment,
        weights_resident=False,
        streamed={"the group": operands},
        maps=_known(problem),
        accumulator=problem.accumulator,
    )
    return units["the group"]
