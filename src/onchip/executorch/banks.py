"""Several memories: which buffers lie in the fast ones, so that the slow ones hold the fewest bytes.

An integer program gives every block of buffers a memory under the loads of all; each memory is then packed.
A set that does not pack in its memory is forbidden there, or costs what it takes, and the program is solved
again: the usual decomposition, exact where it ends in time. The slowest memory is made small first, then the
next one with that held.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onchip.base.errors import Infeasible, UsageError
from onchip.executorch.blocks import Block, buffer_of, choices, merged
from onchip.executorch.one_memory import Placed
from onchip.executorch.specs import Item
from onchip.planners.limits import Limits
from onchip.planners.packing import Buffer, irreducible, max_load, minimise, pack
from onchip.planners.placement.ilp.rows import Model
from onchip.planners.placement.ilp.solvers.cp_sat import minimise as solve

__all__ = ["Bank", "fill_banks"]

ROUNDS = 60
"""How often the integer program is solved for one memory."""

NODES = 50_000
"""Nodes of one search for addresses."""


@dataclass(frozen=True, slots=True)
class Bank:
    """A memory of `size` bytes that the runtime knows as `mem_id`; ExecuTorch's own `Bank` has these fields.

    `alignment` tightens the graph's and is a multiple of it.
    """

    name: str
    size: int
    mem_id: int
    alignment: int | None = None

    def __post_init__(self) -> None:
        if self.size <= 0 or self.mem_id < 1:
            raise UsageError("has no bytes or a mem_id below 1", item=f"bank {self.name}")
        if self.alignment is not None and self.alignment < 1:
            raise UsageError("has an alignment below 1", item=f"bank {self.name}")


@dataclass(slots=True)
class _Banks:
    """The problem: blocks of buffers, and the banks from the fastest to the slowest, with room for each."""

    blocks: Sequence[Block]
    banks: Sequence[Bank]
    alignment: int
    room: Sequence[int]
    free: Sequence[tuple[int, ...]]
    cliques: Sequence[Sequence[int]]
    limits: Limits
    known: dict[tuple[int, tuple[int, ...]], tuple[int, ...]] = field(default_factory=dict)

    def align(self, b: int) -> int:
        return self.banks[b].alignment or self.alignment

    def size(self, i: int, b: int) -> int:
        return -(-self.blocks[i].bytes // self.align(b)) * self.align(b)

    def buffers(self, chosen: Sequence[int], b: int) -> list[Buffer]:
        return [buffer_of(self.blocks[i], self.align(b)) for i in chosen]


def fill_banks(
    items: Sequence[Item],
    chosen: Sequence[int],
    banks: Sequence[Bank],
    padding: int,
    alignment: int,
    in_place: bool,
    nodes: Sequence[str],
    limits: Limits,
) -> Placed:
    """Place the chosen items, with the fewest bytes in the slowest bank, then in the next, and so on.

    Raises `Infeasible` with the bytes needed and there, for the slowest bank or for one with pinned buffers.
    """
    mine = {i: n for n, i in enumerate(chosen)}
    part = [
        Item(
            it.name, it.first, it.last, it.bytes, it.memory, it.offset,
            tuple(mine[x] for x in it.over if x in mine), it.written,
        )
        for it in (items[i] for i in chosen)
    ]  # fmt: skip
    best: tuple[tuple[int, ...], Placed] | None = None
    refused: Infeasible | None = None
    ways = choices(part, 2)[:1] if in_place else []
    for number, over in enumerate([*ways, {}] if {} not in ways else ways):
        blocks = merged(part, over)
        mine_now = limits.share(2 / 3 if not number else 1.0)
        try:
            bank_of, offset, bound = _assign(blocks, part, banks, padding, alignment, nodes, mine_now)
        except Infeasible as found:
            refused = refused if refused is not None and refused.needs <= found.needs else found
            continue
        used = tuple(
            max(
                (offset[i] + buffer_of(blk, banks[b].alignment or alignment).size
                 for i, blk in enumerate(blocks) if bank_of[i] == b),
                default=0,
            )
            for b in range(len(banks))
        )  # fmt: skip
        key = used[::-1]
        if best is None or key < best[0]:
            at = {
                chosen[m]: (banks[bank_of[i]].mem_id, offset[i])
                for i, blk in enumerate(blocks)
                for m in blk.members
            }
            taken = {chosen[y]: chosen[x] for y, x in over.items()}
            sizes = {bank.mem_id: n for bank, n in zip(banks, used, strict=True)}
            best = key, Placed(at, taken, sizes, {banks[-1].mem_id: bound})
    if best is None:
        assert refused is not None
        raise refused
    return best[1]


def _assign(
    blocks: Sequence[Block],
    items: Sequence[Item],
    banks: Sequence[Bank],
    padding: int,
    alignment: int,
    nodes: Sequence[str],
    limits: Limits,
) -> tuple[list[int], list[int], int]:
    """Return every block's bank and offset, and a bound of the slowest bank's bytes."""
    number = {bank.mem_id: b for b, bank in enumerate(banks)}
    free = [
        tuple(range(len(banks))) if blk.memory is None else (number[blk.memory],) for blk in blocks
    ]
    room = [max(0, bank.size - padding) for bank in banks]
    problem = _Banks(blocks, banks, alignment, room, free, _cliques(blocks), limits)
    for b in range(len(banks) - 1):
        _room_for_pins(problem, b, items, nodes)
    found = _greedily(problem)
    if len(banks) == 1:
        taken = _extent(problem, found, 0)
        if taken > room[0]:
            raise _does_not_fit(problem, found, 0, taken, max_load(problem.buffers(range(len(blocks)), 0)), items, nodes)
    bound = 0
    caps: list[int | None] = [*room[:-1], None]
    for target in reversed(range(1, len(banks))):
        found, low = _smallest(problem, target, caps, found)
        caps[target] = taken = _extent(problem, found, target)
        if target == len(banks) - 1:
            bound = low
            if taken > room[target]:
                raise _does_not_fit(problem, found, target, taken, low, items, nodes)
    offsets = [0] * len(blocks)
    for b in range(len(banks)):
        members = [i for i in range(len(blocks)) if found[i] == b]
        for i, at in zip(members, problem.known[b, tuple(members)], strict=True):
            offsets[i] = at
    return found, offsets, bound


def _cliques(blocks: Sequence[Block]) -> list[list[int]]:
    """Return the sets of blocks that are live together, those within another left out."""
    found: list[list[int]] = []
    ends = sorted({blk.last for blk in blocks})
    before = -1
    for t in ends:
        if any(before < blk.first <= t for blk in blocks):
            found.append([i for i, blk in enumerate(blocks) if blk.first <= t <= blk.last])
        before = t
    return found


def _room_for_pins(problem: _Banks, b: int, items: Sequence[Item], nodes: Sequence[str]) -> None:
    """Refuse pinned blocks that do not fit the bank they are pinned to."""
    pinned = [i for i, only in enumerate(problem.free) if only == (b,)]
    if not pinned or max_load(problem.buffers(pinned, b)) <= problem.room[b] // 2:
        return
    least = minimise(problem.buffers(pinned, b), time_limit=problem.limits.share(1 / 4).left())
    if least.bytes > problem.room[b]:
        found = [b if i in pinned else -1 for i in range(len(problem.blocks))]
        raise _does_not_fit(problem, found, b, least.bytes, least.lower_bound, items, nodes)


def _does_not_fit(
    problem: _Banks,
    found: Sequence[int],
    b: int,
    needs: int,
    low: int,
    items: Sequence[Item],
    nodes: Sequence[str],
) -> Infeasible:
    """Say what a bank needs and has, and which tensors are live in it at its busiest node."""
    blocks, bank = problem.blocks, problem.banks[b]
    padding = bank.size - problem.room[b]
    busiest = max(problem.cliques, key=lambda c: sum(problem.size(i, b) for i in c if found[i] == b))
    mine = [i for i in busiest if found[i] == b]
    at = min(blocks[i].last for i in busiest)
    named = tuple((items[blocks[i].members[0]].name, problem.size(i, b)) for i in mine)
    return Infeasible(
        needs=max(low, problem.room[b] + 1) + padding if low != needs else needs + padding,
        has=bank.size,
        at_least=low != needs,
        operator=nodes[at] if 0 <= at < len(nodes) else "",
        tensors=named,
        memory=bank.name,
        proved=low > problem.room[b],
    )


def _place(problem: _Banks, members: Sequence[int], b: int, room: int) -> bool | None:
    """Find offsets of blocks in a bank within `room`; False is a proof that there are none, None unknown."""
    key = b, tuple(members)
    buffers = problem.buffers(members, b)
    if key in problem.known:
        offsets = problem.known[key]
        if max((at + f.size for at, f in zip(offsets, buffers, strict=True)), default=0) <= room:
            return True
    found = pack(buffers, room, node_limit=NODES, engines=("greedy", "search", "repair"))
    if found.status == "packed":
        problem.known[key] = found.offsets
        return True
    return False if found.status == "infeasible" else None


def _extent(problem: _Banks, found: Sequence[int], b: int) -> int:
    members = [i for i in range(len(problem.blocks)) if found[i] == b]
    buffers = problem.buffers(members, b)
    return max((at + f.size for at, f in zip(problem.known[b, tuple(members)], buffers, strict=True)), default=0)


def _greedily(problem: _Banks) -> list[int]:
    """Return a bank of every block: the largest first, in the fastest bank where all still pack."""
    found = [only[0] if len(only) == 1 else len(problem.banks) - 1 for only in problem.free]
    order = sorted((i for i, only in enumerate(problem.free) if len(only) > 1), key=lambda i: -problem.blocks[i].bytes)
    for b in range(len(problem.banks) - 1):
        members = [i for i, at in enumerate(found) if at == b]
        _pack_any(problem, members, b)
        for i in order:
            if found[i] != len(problem.banks) - 1:
                continue
            more = sorted([*members, i])
            buffers = problem.buffers(more, b)
            if max_load(buffers) > problem.room[b]:
                continue
            tried = pack(buffers, problem.room[b], node_limit=0, engines=("greedy",))
            if tried.status == "packed":
                problem.known[b, tuple(more)] = tried.offsets
                members, found[i] = more, b
    rest = [i for i, at in enumerate(found) if at == len(problem.banks) - 1]
    _pack_any(problem, rest, len(problem.banks) - 1)
    return found


def _pack_any(problem: _Banks, members: Sequence[int], b: int) -> int:
    """Pack blocks in as few bytes as are found soon; return them."""
    key = b, tuple(members)
    if not members:
        problem.known[key] = ()
        return 0
    least = minimise(problem.buffers(members, b), time_limit=problem.limits.share(1 / 8).left())
    problem.known[key] = least.offsets
    return least.bytes


def _smallest(
    problem: _Banks, target: int, caps: Sequence[int | None], first: list[int]
) -> tuple[list[int], int]:
    """Return banks of all blocks with the fewest bytes in `target`, and a bound of these bytes.

    `caps` are the bytes that each bank may hold; those of `target` do not count.
    """
    banks, blocks = range(len(problem.banks)), range(len(problem.blocks))
    best, best_bytes, bound, exact = first, _extent(problem, first, target), 0, True
    top = sum(problem.size(i, target) for i in blocks)
    model = Model()
    x = [{b: model.variable("in") for b in problem.free[i]} for i in blocks]
    extent = model.variable("bytes", 0, top)
    for row in x:
        model.equal("one bank", [(v, 1) for v in row.values()], 1)
    for b in banks:
        for clique in problem.cliques:
            terms = [(x[i][b], problem.size(i, b)) for i in clique if b in x[i]]
            if not terms:
                continue
            if b == target:
                model.at_most("load", [*terms, (extent, -1)], 0)
            elif caps[b] is not None:
                model.at_most("load", terms, caps[b] or 0)
    model.objective = [(extent, 1)]
    for _ in range(ROUNDS):
        if bound >= best_bytes or problem.limits.over():
            break
        solved = solve(model, problem.limits.share(1 / 2), workers=1)
        if solved.infeasible:
            bound = best_bytes if exact else bound
            break
        bound = max(bound, solved.bound) if exact else bound
        if solved.values is None or bound >= best_bytes:
            break
        banks_now = [next(b for b, v in row.items() if solved.values[v]) for row in x]
        if solved.values[extent] >= best_bytes:
            break
        good = True
        for b in banks:
            members = [i for i in blocks if banks_now[i] == b]
            if b == target:
                continue
            fits = _place(problem, members, b, caps[b] if caps[b] is not None else top)
            if not fits:
                good, exact = False, exact and fits is False
                few = irreducible(problem.buffers(members, b), caps[b] or 0, node_limit=NODES // 10)
                row = [(x[members[i]][b], 1) for i in few]
                model.at_most("no addresses", row, len(row) - 1)
        members = [i for i in blocks if banks_now[i] == target]
        if _place(problem, members, target, solved.values[extent]):
            if good:
                best, best_bytes = banks_now, _extent(problem, banks_now, target)
            continue
        buffers = problem.buffers(members, target)
        least = minimise(buffers, time_limit=problem.limits.share(1 / 8).left())
        problem.known[target, tuple(members)] = least.offsets
        if good and least.bytes < best_bytes:
            best, best_bytes = banks_now, least.bytes
        if least.bytes > solved.values[extent]:
            proved = least.lower_bound > solved.values[extent]
            exact = exact and proved
            cost = least.lower_bound if proved else least.bytes
            few: Sequence[int] = range(len(members))
            if proved:
                few = irreducible(buffers, cost - 1, node_limit=NODES // 10)
            chosen = [members[i] for i in few]
            model.at_most(
                "addresses",
                [*((x[i][target], cost) for i in chosen), (extent, -1)],
                cost * (len(chosen) - 1),
            )
    return best, min(bound, best_bytes)
