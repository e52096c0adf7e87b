"""Several memories: which buffers lie in the fast ones, so that the slow ones hold the fewest bytes.

The slowest bank is made small first, then the next one with that held. What does not fit is said with the
bytes needed and there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onchip.base.errors import Infeasible, UsageError
from onchip.executorch.bank_search import Banks, cliques_of, extent, greedily, smallest
from onchip.executorch.blocks import choices, merged
from onchip.executorch.one_memory import Placed
from onchip.executorch.specs import Item
from onchip.planners.limits import Limits
from onchip.planners.packing import max_load, minimise

__all__ = ["Bank", "Question", "fill_banks"]


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


@dataclass(frozen=True, slots=True)
class Question:
    """The question to `fill_banks`: the items, the banks, fastest first, and how they are laid out.

    `held` are the bytes of each bank that the items cannot have: those of submodules at the bottom, and the
    padding behind everything. `nodes` are the names of the graph's nodes.
    """

    items: Sequence[Item]
    banks: Sequence[Bank]
    held: Sequence[int]
    alignment: int
    in_place: bool
    nodes: Sequence[str]


def fill_banks(asked: Question, limits: Limits) -> Placed:
    """Place all items, with the fewest bytes in the slowest bank, then in the next, and so on.

    With everything in place that can be, and with nothing in place: the better of both is the answer. Raises
    `Infeasible` with the bytes needed and there, for the slowest bank or for one with pinned buffers.
    """
    ways = choices(asked.items, 1) if asked.in_place else [{}]
    if {} not in ways:
        ways.append({})
    best: tuple[tuple[int, ...], Placed] | None = None
    refused: Infeasible | None = None
    for number, over in enumerate(ways):
        share = limits.share(2 / 3 if number + 1 < len(ways) else 1.0)
        try:
            used, placed = _filled(asked, over, share)
        except Infeasible as found:
            refused = refused if refused is not None and refused.needs <= found.needs else found
            continue
        if best is None or used < best[0]:
            best = used, placed
    if best is None:
        assert refused is not None
        raise refused
    return best[1]


def _filled(asked: Question, over: dict[int, int], limits: Limits) -> tuple[tuple[int, ...], Placed]:
    """Return the bytes of all banks, the slowest first, and the placement, for one choice in place."""
    blocks = merged(asked.items, over)
    number = {bank.mem_id: b for b, bank in enumerate(asked.banks)}
    every = tuple(range(len(asked.banks)))
    problem = Banks(
        blocks,
        [bank.alignment or asked.alignment for bank in asked.banks],
        [max(0, bank.size - held) for bank, held in zip(asked.banks, asked.held, strict=True)],
        [every if blk.memory is None else (number[blk.memory],) for blk in blocks],
        cliques_of(blocks),
        limits,
    )
    bank_of, bound = _assign(asked, problem)
    offset = [0] * len(blocks)
    for b in every:
        members = problem.members(bank_of, b)
        for i, at in zip(members, problem.known[b, tuple(members)], strict=True):
            offset[i] = at
    places = {
        m: (asked.banks[bank_of[i]].mem_id, offset[i]) for i, blk in enumerate(blocks) for m in blk.members
    }
    used = tuple(extent(problem, bank_of, b) for b in every)
    sizes = {bank.mem_id: n for bank, n in zip(asked.banks, used, strict=True)}
    return used[::-1], Placed(places, over, sizes, {asked.banks[-1].mem_id: bound})


def _assign(asked: Question, problem: Banks) -> tuple[list[int], int]:
    """Return every block's bank, and a bound of the slowest bank's bytes."""
    slowest = len(asked.banks) - 1
    for b in range(slowest):
        _room_for_pins(asked, problem, b)
    found = greedily(problem)
    caps: list[int | None] = [*problem.room[:-1], None]
    bound = max_load(problem.buffers(problem.members(found, 0), 0)) if not slowest else 0
    for target in reversed(range(1, len(asked.banks))):
        found, low = smallest(problem, target, caps, found)
        caps[target] = extent(problem, found, target)
        bound = low if target == slowest else bound
    taken = extent(problem, found, slowest)
    if taken > problem.room[slowest]:
        raise _does_not_fit(asked, problem, found, slowest, taken, bound)
    return found, bound


def _room_for_pins(asked: Question, problem: Banks, b: int) -> None:
    """Refuse pinned blocks that do not fit the bank they are pinned to."""
    pinned = [i for i, only in enumerate(problem.free) if only == (b,)]
    if not pinned:
        return
    least = minimise(problem.buffers(pinned, b), time_limit=problem.limits.share(1 / 4).left())
    if least.bytes > problem.room[b]:
        found = [b if only == (b,) else -1 for only in problem.free]
        raise _does_not_fit(asked, problem, found, b, least.bytes, least.lower_bound)


def _does_not_fit(
    asked: Question, problem: Banks, found: Sequence[int], b: int, needs: int, low: int
) -> Infeasible:
    """Say what a bank needs and has, and which tensors are live in it at its busiest node."""
    bank, blocks = asked.banks[b], problem.blocks
    busiest = max(problem.cliques, key=lambda c: sum(problem.size(i, b) for i in c if found[i] == b))
    at = min(blocks[i].last for i in busiest)
    mine = [i for i in busiest if found[i] == b]
    proved = low > problem.room[b]
    return Infeasible(
        needs=(low if proved else needs) + asked.held[b],
        has=bank.size,
        at_least=proved and low < needs,
        operator=asked.nodes[at] if 0 <= at < len(asked.nodes) else "",
        tensors=tuple((asked.items[blocks[i].members[0]].name, problem.size(i, b)) for i in mine),
        memory=bank.name,
        space="" if proved else "the places that were found in time",
    )
