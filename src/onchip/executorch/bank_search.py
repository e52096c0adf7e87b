"""The search for the bank of every block: an integer program under the loads, and addresses for each bank.

A set that does not pack in its bank is forbidden there; in the bank that is made small it costs its bytes.
The program is solved again with that: the usual decomposition, exact where it ends in time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onchip.executorch.blocks import Block, buffer_of
from onchip.planners.limits import Limits
from onchip.planners.packing import Buffer, Engine, irreducible, minimise, pack
from onchip.planners.placement.ilp.rows import Model
from onchip.planners.placement.ilp.solvers.cp_sat import minimise as solve

__all__ = ["Banks", "cliques_of", "extent", "greedily", "smallest"]

ROUNDS = 60
"""The most times that the integer program is solved for one bank."""

NODES = 50_000
"""Nodes of one search for addresses."""

ENGINES: tuple[Engine, ...] = ("greedy", "search", "repair")


@dataclass(slots=True)
class Banks:
    """Blocks of buffers, and the banks from the fastest to the slowest by `room` and `alignment`.

    `free` are the banks that each block may lie in, `cliques` the blocks that are live together. `known` are
    offsets found for sets of blocks, by bank.
    """

    blocks: Sequence[Block]
    alignment: Sequence[int]
    room: Sequence[int]
    free: Sequence[tuple[int, ...]]
    cliques: Sequence[Sequence[int]]
    limits: Limits
    known: dict[tuple[int, tuple[int, ...]], tuple[int, ...]] = field(default_factory=dict)

    def size(self, i: int, b: int) -> int:
        """Return a block's bytes in bank b."""
        return -(-self.blocks[i].bytes // self.alignment[b]) * self.alignment[b]

    def buffers(self, chosen: Sequence[int], b: int) -> list[Buffer]:
        """Return blocks as the packer sees them in bank b."""
        return [buffer_of(self.blocks[i], self.alignment[b]) for i in chosen]

    def members(self, bank_of: Sequence[int], b: int) -> list[int]:
        """Return the blocks that lie in bank b."""
        return [i for i, at in enumerate(bank_of) if at == b]


def cliques_of(blocks: Sequence[Block]) -> list[list[int]]:
    """Return the sets of blocks that are live together, those within another left out."""
    found: list[list[int]] = []
    before = -1
    for t in sorted({blk.last for blk in blocks}):
        if any(before < blk.first <= t for blk in blocks):
            found.append([i for i, blk in enumerate(blocks) if blk.first <= t <= blk.last])
        before = t
    return found


def extent(problem: Banks, bank_of: Sequence[int], b: int) -> int:
    """Return the bytes of bank b in an assignment whose offsets are known."""
    members = problem.members(bank_of, b)
    offsets = problem.known[b, tuple(members)]
    return max((at + problem.size(i, b) for i, at in zip(members, offsets, strict=True)), default=0)


def greedily(problem: Banks) -> list[int]:
    """Return a bank for every block: the largest first, at the lowest place in the fastest bank with room."""
    slowest = len(problem.room) - 1
    found = [only[0] if len(only) == 1 else slowest for only in problem.free]
    order = [i for i, only in enumerate(problem.free) if len(only) > 1]
    order.sort(key=lambda i: -problem.blocks[i].bytes)
    for b in range(slowest):
        members = problem.members(found, b)
        _pack_low(problem, members, b)
        at = dict(zip(members, problem.known[b, tuple(members)], strict=True))
        for i in order:
            place = _lowest(problem, i, b, at) if found[i] == slowest else None
            if place is not None:
                at[i], found[i] = place, b
        members = sorted(at)
        problem.known[b, tuple(members)] = tuple(at[i] for i in members)
    _pack_low(problem, problem.members(found, slowest), slowest)
    return found


def _lowest(problem: Banks, i: int, b: int, at: Mapping[int, int]) -> int | None:
    """Return the lowest place of a block beside those of a bank, None if it has no room for it."""
    mine, size, place = problem.blocks[i], problem.size(i, b), 0
    others = (
        (offset, offset + problem.size(j, b))
        for j, offset in at.items()
        if problem.blocks[j].first <= mine.last and mine.first <= problem.blocks[j].last
    )
    for low, high in sorted(others):
        if place + size <= low:
            break
        place = max(place, high)
    return place if place + size <= problem.room[b] else None


def smallest(
    problem: Banks, target: int, caps: Sequence[int | None], first: list[int]
) -> tuple[list[int], int]:
    """Return a bank for every block with the fewest bytes in `target`, and a bound of these bytes.

    `caps` are the bytes that each bank may hold (None: any number); that of `target` does not count. `first`
    is an assignment whose offsets are known.
    """
    best, best_bytes, bound, exact = first, extent(problem, first, target), 0, True
    blocks = range(len(problem.blocks))
    model, inside, bytes_ = _model(problem, target, caps)
    for _ in range(ROUNDS):
        if bound >= best_bytes or problem.limits.over():
            break
        solved = solve(model, problem.limits.share(1 / 2), workers=1)
        if solved.infeasible:
            bound = best_bytes if exact else bound
            break
        bound = max(bound, solved.bound) if exact else bound
        if solved.values is None or solved.values[bytes_] >= best_bytes:
            break
        bank_of = [next(b for b, v in inside[i].items() if solved.values[v]) for i in blocks]
        fits = True
        for b, cap in enumerate(caps):
            members = problem.members(bank_of, b)
            if b == target or cap is None:
                continue
            packs = _packs(problem, members, b, cap)
            if not packs:
                fits, exact = False, exact and packs is False
                few = irreducible(problem.buffers(members, b), cap, node_limit=NODES // 10)
                model.at_most("no addresses", [(inside[members[i]][b], 1) for i in few], len(few) - 1)
        members = problem.members(bank_of, target)
        wanted = solved.values[bytes_]
        if not _packs(problem, members, target, wanted):
            least, low = _pack_low(problem, members, target)
            proved = low > wanted
            exact = exact and (proved or least == wanted)
            cost = low if proved else least
            chosen = members
            if proved:
                few = irreducible(problem.buffers(members, target), cost - 1, node_limit=NODES // 10)
                chosen = [members[i] for i in few]
            row = [*((inside[i][target], cost) for i in chosen), (bytes_, -1)]
            model.at_most("addresses", row, cost * (len(chosen) - 1))
        if fits and extent(problem, bank_of, target) < best_bytes:
            best, best_bytes = bank_of, extent(problem, bank_of, target)
    return best, min(bound, best_bytes)


def _model(
    problem: Banks, target: int, caps: Sequence[int | None]
) -> tuple[Model, list[dict[int, int]], int]:
    """Return the program, its variable of each block and bank, and that of the bytes in `target`."""
    model = Model()
    inside = [{b: model.variable("in") for b in only} for only in problem.free]
    bytes_ = model.variable("bytes", 0, sum(problem.size(i, target) for i in range(len(problem.blocks))))
    for row in inside:
        model.equal("one bank", [(v, 1) for v in row.values()], 1)
    for b, cap in enumerate(caps):
        for clique in problem.cliques:
            terms = [(inside[i][b], problem.size(i, b)) for i in clique if b in inside[i]]
            if terms and b == target:
                model.at_most("load", [*terms, (bytes_, -1)], 0)
            elif terms and cap is not None:
                model.at_most("load", terms, cap)
    model.objective = [(bytes_, 1)]
    return model, inside, bytes_


def _packs(problem: Banks, members: Sequence[int], b: int, room: int) -> bool | None:
    """Look for offsets of blocks within `room`, and keep them. False is a proof that there are none."""
    key = b, tuple(members)
    if key in problem.known:
        top = (at + problem.size(i, b) for i, at in zip(members, problem.known[key], strict=True))
        if max(top, default=0) <= room:
            return True
    found = pack(problem.buffers(members, b), room, node_limit=NODES, engines=ENGINES)
    if found.status == "packed":
        problem.known[key] = found.offsets
        return True
    return False if found.status == "infeasible" else None


def _pack_low(problem: Banks, members: Sequence[int], b: int) -> tuple[int, int]:
    """Keep offsets of blocks in as few bytes as are found soon; return these bytes and their bound."""
    least = minimise(problem.buffers(members, b), time_limit=problem.limits.share(1 / 8).left())
    problem.known[b, tuple(members)] = least.offsets
    return least.bytes, least.lower_bound
