"""The DRAM traffic of a fused group, by definition: its cost, and its tiling at that cost.

Optimus eq. 3 and 4, made exact and executable; docs/fusion-model.md derives every term. This is the readable
reference; the search has a fast one of its own, and tests compare the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from onchip.base.errors import Infeasible
from onchip.base.units import MAX_BYTES
from onchip.network import Network, bits
from onchip.planners.fused_group import FusedGroup, sides_of
from onchip.planners.fusion.blocks import best_blocks, least_blocks, skips
from onchip.planners.fusion.boxes import best_boxes
from onchip.planners.fusion.problem import FusionProblem
from onchip.planners.fusion.residency import Residents, Weights, choose
from onchip.planners.fusion.rows import Bands, bands_of, halo_rows, rows_of
from onchip.planners.fusion.streams import candidates, smallest, streams
from onchip.plans import Blocks, Boxes

__all__ = ["GroupCost", "bands_cost", "group_cost", "least_scratch", "whole_scratch"]


@dataclass(frozen=True, slots=True)
class GroupCost:
    """The cost of a group in bytes of all images, and its tiling.

    `members` and `resident` are bitsets of operators, `streamed` of tensors. `rows` is t (0: whole, opaque or
    in blocks), `images` the images of a sub-group, `subgroups` the number of sub-groups over the batch.
    `dram_bytes` = `io_bytes` + `halo_bytes` + `weight_bytes`.
    """

    members: int
    rows: int
    subgroups: int
    images: int
    streamed: int
    resident: int
    scratch_bytes: int
    io_bytes: int
    halo_bytes: int
    weight_bytes: int
    dram_bytes: int
    blocks: Blocks | Boxes | None = None

    def figures(self, network: Network, name: str) -> FusedGroup:
        """Return the group's record, by names, as a plan has them."""
        place = {v: i for i, v in enumerate(network.order)}
        members = sorted(bits(self.members), key=place.__getitem__)
        operators = [network.operators[v] for v in members]
        read = written = 0
        for v in members:
            read, written = read | network.reads[v], written | network.writes[v]
        entering = sum(network.tensors[t].bytes for t in bits(read & ~written))
        return FusedGroup(
            name=name,
            operators=tuple(op.name for op in operators),
            subgroups=self.subgroups,
            rows=self.rows,
            images=self.images,
            streamed=tuple(network.tensors[t].name for t in bits(self.streamed)),
            resident=tuple(network.operators[v].name for v in bits(self.resident)),
            scratch_bytes=self.scratch_bytes,
            dram_bytes=self.dram_bytes,
            in_bytes=min(entering, self.io_bytes),
            out_bytes=max(0, self.io_bytes - entering),
            halo_bytes=self.halo_bytes,
            weight_bytes=self.weight_bytes,
            blocks=sides_of(self.blocks),
            weighted=sum(op.weight_bytes > 0 for op in operators),
        )

    @property
    def weight_fetches(self) -> int:
        """The number of times that the weights of an operator that is not resident are fetched."""
        return 1 if isinstance(self.blocks, Blocks) and self.blocks.keep_weights else self.subgroups


def group_cost(problem: FusionProblem, members: int) -> GroupCost | None:
    """Return the cheapest way to run a convex group (bitset of operators) within the budget, or None.

    Least DRAM bytes over all bands, streamed sets and resident weights that the options allow, for an
    operator alone over all blocks too; ties go to bands, then the fewest sub-groups, then the least
    scratchpad.
    """
    bands = bands_cost(problem, members)
    if members.bit_count() == 1 and (bands is None or problem.options.blocks == "best"):
        return _in_blocks(problem, members, bands)
    return bands


def bands_cost(problem: FusionProblem, members: int) -> GroupCost | None:
    """Return the same in bands of rows only; an opaque operator runs whole or in boxes."""
    bands = bands_of(problem, members)
    if bands is None:
        return _opaque(problem, members) if members.bit_count() == 1 else None
    search = _Search(problem, bands)
    search.without_halo()
    if problem.options.halo != "paper":
        search.with_halo()
    return search.best


def _opaque(problem: FusionProblem, members: int) -> GroupCost | None:
    """Return an opaque operator's cost: whole, with all its operands at once and its weights once; or in
    boxes, if it does not fit or they move less, since they skip elements that nothing needs."""
    v = members.bit_length() - 1
    network = problem.network
    op = network.operators[v]
    touched = network.reads[v] | network.writes[v]
    scratch = whole_scratch(problem, v, _passing(problem, v))
    crossing = sum(network.tensors[t].bytes for t in bits(touched))
    whole: GroupCost | None = None
    if scratch <= problem.maps_room:
        total = crossing + op.weight_bytes
        whole = GroupCost(members, 0, 1, problem.batch, 0, 0, scratch, crossing, 0, op.weight_bytes, total)
        if problem.options.blocks != "best":
            return whole
    return _or_boxes(problem, members, whole)


def _or_boxes(problem: FusionProblem, members: int, otherwise: GroupCost | None) -> GroupCost | None:
    """One operator in boxes of its output where that moves less than otherwise."""
    network, v = problem.network, members.bit_length() - 1
    way = best_boxes(problem.operators[v].boxes, problem.budget)
    if way is None:
        return otherwise
    crossing = sum(network.tensors[t].bytes for t in bits(network.reads[v] | network.writes[v]))
    again = way.moved_bytes + sum(network.tensors[t].bytes for t in bits(network.writes[v])) - crossing
    cut = _cut(members, way.tiles, way.scratch_bytes, (crossing, again, way.weight_bytes), way.boxes)
    return cut if otherwise is None or cut.dram_bytes < otherwise.dram_bytes else otherwise


def whole_scratch(problem: FusionProblem, operator: int, passing: int = 0) -> int:
    """Return the scratchpad bytes of an operator run whole, some operands passing through its workspace."""
    network = problem.network
    held = (network.reads[operator] | network.writes[operator]) & ~passing
    needs = sum(problem.round_up(network.tensors[t].bytes) for t in bits(held))
    return needs + problem.round_up(network.operators[operator].workspace)


def _passing(problem: FusionProblem, operator: int) -> int:
    """Return the operands that pass through an operator's workspace at its least scratchpad."""
    ways = (0, *problem.operators[operator].streams)
    return min(ways, key=lambda passing: whole_scratch(problem, operator, passing))


def _in_blocks(problem: FusionProblem, members: int, bands: GroupCost | None) -> GroupCost | None:
    """Return the better of the best bands and the best blocks of one operator."""
    v = members.bit_length() - 1
    network, op = problem.network, problem.operators[v]
    if not op.windowed:
        return _or_boxes(problem, members, bands)
    floor = problem.crossing_bytes(members) + op.weight_bytes
    if bands is not None and bands.dram_bytes <= floor and not skips(problem, v):
        return bands  # everything crosses once, and windows without gaps read all elements
    found = best_blocks(problem, v)
    if found is None:
        return bands
    io = problem.crossing_bytes(members)
    again = found.input_bytes - network.tensors[op.operands[0].tensor].bytes
    cut = _cut(members, found.tiles, found.scratch_bytes, (io, again, found.weight_bytes), found.blocks)
    return cut if bands is None or cut.dram_bytes < bands.dram_bytes else bands


def _cut(
    members: int, tiles: int, scratch: int, moved: tuple[int, int, int], blocks: Blocks | Boxes
) -> GroupCost:
    """Return an operator alone in blocks or boxes; `moved`: bytes that cross, cross again, and of weights."""
    return GroupCost(members, 0, tiles, 1, 0, 0, scratch, *moved, sum(moved), blocks)


def least_scratch(problem: FusionProblem, operator: int) -> int:
    """Return the fewest bytes of scratchpad in which an operator can run alone."""
    members = 1 << operator
    bands = bands_of(problem, members)
    boxes = [way.scratch_bytes for way in problem.operators[operator].boxes[:1]]
    if bands is None:
        return min([whole_scratch(problem, operator, _passing(problem, operator)), *boxes])
    roomy = replace(problem, budget=MAX_BYTES, maps_budget=MAX_BYTES, weights_budget=MAX_BYTES)
    search = _Search(roomy, bands)
    tile = max((w.tile for w in search.weights), default=0)
    sizes = (
        smallest(roomy, bands, search.candidates, t, 1, MAX_BYTES)
        for t in search.band_rows(every=roomy.options.halo == "lines")
    )
    least = min(found[0] for found in sizes if found is not None) + tile
    blocks = least_blocks(problem, operator)
    return min([least, *boxes] if blocks is None else [least, blocks, *boxes])


def misfit(problem: FusionProblem, operator: int, needs: int | None = None) -> Infeasible:
    """Return the error that an operator fits in no tiling; `needs` bytes at least (None: `least_scratch`)."""
    network = problem.network
    op = network.operators[operator]
    touched = bits(network.reads[operator] | network.writes[operator])
    parts = [(network.tensors[t].name, network.tensors[t].bytes) for t in touched]
    if op.workspace:
        parts.append(("its workspace", op.workspace))
    needs = least_scratch(problem, operator) if needs is None else needs
    return Infeasible(
        needs=needs,
        has=problem.misses(needs),
        operator=op.name,
        tensors=tuple(sorted(parts, key=lambda part: -part[1])),
        proved=not problem.operators[operator].thinned,
    )


def misfits(problem: FusionProblem, operators: Iterable[int]) -> Infeasible:
    """Return the same for some operators that fit in no tiling: the largest need, and its operator."""
    needs, operator = max((least_scratch(problem, v), -v) for v in operators)
    return misfit(problem, -operator, needs)


class _Search:
    """The minimum over bands, streamed sets and residents of one group."""

    def __init__(self, problem: FusionProblem, bands: Bands) -> None:
        self.problem, self.bands = problem, bands
        self.rows = rows_of(problem, bands.tensors)
        self.io = problem.crossing_bytes(bands.members)
        self.best: GroupCost | None = None
        tiled = problem.options.weight_tile
        self.weights = [
            Weights(
                v,
                op.weight_bytes,
                problem.round_up(op.weight_bytes),
                problem.round_up(op.tile_bytes) if tiled else 0,
            )
            for v in bits(bands.members)
            if (op := problem.operators[v]).weight_bytes
        ]
        self.candidates = candidates(problem, bands)

    def without_halo(self) -> None:
        """Try every number of bands, with the set of fewest bytes that makes nothing cross twice."""
        problem, bands = self.problem, self.bands
        recompute = problem.options.halo == "recompute"
        for t in self.band_rows(every=problem.options.halo == "lines"):
            if recompute and self.count(t) > 1:
                continue
            for images in self.images(t):
                crosses_again = self.count(t) > 1 and problem.options.halo != "paper"
                allowed = self.candidates & ~bands.external if crosses_again else self.candidates
                found = smallest(problem, bands, allowed, t, images, problem.maps_room)
                if found is not None:
                    self.offer(t, images, *found)

    def with_halo(self) -> None:
        """Try sets that stream external inputs, whose shared rows cross again, if they may be cheaper."""
        problem, bands = self.problem, self.bands
        recompute = problem.options.halo == "recompute"
        outer = self.candidates & bands.external
        if not outer and not recompute:
            return
        for t in self.band_rows(every=True):
            if self.count(t) == 1:
                continue
            for images in self.images(t):
                least = smallest(problem, bands, self.candidates, t, images, problem.maps_room)
                if least is None or not self.promising(least[0], t, images):
                    continue
                every = streams(problem, bands, self.candidates, t, images, lambda: problem.maps_room + 1)
                for size, streamed in every:
                    if (recompute or streamed & outer) and self.promising(size, t, images):
                        self.offer(t, images, size, streamed)

    def images(self, t: int) -> Sequence[int]:
        """Return the candidate images of a sub-group: for bands of an image one, unless `held`."""
        batch, how = self.problem.batch, self.problem.options.batch_weights
        if how == "shared" or (how == "per-image" and self.count(t) > 1):
            return (1,)
        # Of equally many rounds take the fewest images.
        return sorted({-(-batch // -(-batch // m)) for m in range(1, batch + 1)})

    def band_rows(self, *, every: bool) -> Iterator[int]:
        """Yield the heights of a band: all, or for each number of bands the least."""
        longest = self.bands.longest
        last = 0
        for t in range(min(self.problem.least_rows, longest), longest + 1):
            if every or self.count(t) != last:
                last = self.count(t)
                yield t

    def count(self, t: int) -> int:
        """Return the bands of an image."""
        return self.bands.count(self.rows, t)

    def fetches(self, t: int, images: int) -> int:
        """Return the number of times that refilled weights are fetched."""
        if self.problem.options.batch_weights == "shared":
            return self.count(t)
        return -(-self.problem.batch // images) * self.count(t)

    def residents(self, size: int, fetches: int) -> Residents | None:
        """Return the best residents beside buffers of `size` bytes; with one fetch all are equal."""
        residency = self.problem.options.residency
        return choose(self.weights, self.problem.weights_room(size), "none" if fetches == 1 else residency)

    def spent(self, chosen: Residents, fetches: int) -> int:
        """Return the bytes of weights fetched."""
        return sum(w.bytes for w in self.weights) + (fetches - 1) * chosen.refilled_bytes

    def promising(self, size: int, t: int, images: int) -> bool:
        """Return whether buffers of `size` bytes could beat the best if nothing crossed twice."""
        fetches = self.fetches(t, images)
        chosen = self.residents(size, fetches)
        if chosen is None:
            return False
        return self.best is None or self.io + self.spent(chosen, fetches) < self.best.dram_bytes

    def offer(self, t: int, images: int, size: int, streamed: int) -> None:
        """Keep this way to run the group if it is the best so far."""
        problem = self.problem
        fetches = self.fetches(t, images)
        chosen = self.residents(size, fetches)
        if chosen is None:
            return
        halo = 0
        again_rows = {} if problem.options.halo == "paper" else halo_rows(problem, self.bands, streamed, t)
        for x, again in again_rows.items():
            shape = problem.maps[x]
            assert shape is not None
            halo += problem.batch * shape.channels * shape.row_bytes * again
        spent = self.spent(chosen, fetches)
        found = GroupCost(
            self.bands.members,
            t,
            fetches,
            images,
            streamed,
            chosen.operators,
            size + chosen.scratch_bytes,
            self.io,
            halo,
            spent,
            self.io + halo + spent,
        )
        if self.best is None or _order(found) < _order(self.best):
            self.best = found


def _order(cost: GroupCost) -> tuple[int, int, int]:
    return cost.dram_bytes, cost.subgroups, cost.scratch_bytes
