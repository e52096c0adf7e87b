"""Algorithm 1 over the whole network: every module in the best way that fits, all other layers one by one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from onchip.base.errors import Infeasible
from onchip.network import bits, mask
from onchip.planners.branches.acts import Act, DoesNotFit, Item
from onchip.planners.branches.memory import Memory
from onchip.planners.branches.modules import Detection, Module
from onchip.planners.branches.options import BranchOptions
from onchip.planners.branches.process import Way, process
from onchip.planners.branches.program import lives
from onchip.planners.branches.regions import Placed, place
from onchip.planners.branches.reorder import order_of

__all__ = ["Choice", "decide"]

MOST_ORDERS = 24
"""The most branch orders that `rules="ours"` tries: all of four branches."""

MOST_MISPLACED = 24
"""The most ways of one module that fit by their sizes but find no addresses, before the paper's are taken."""

MODULE_NODES = 5_000
"""Nodes of the search that decides whether the regions of one module find addresses at all."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The bytes that a way of processing a module moves, then the number of accesses."""

    bytes: int
    accesses: int


def decide(
    memory: Memory,
    detection: Detection,
    options: BranchOptions,
    banned: Mapping[int, int] | None = None,
    *,
    naive: bool = False,
    placed: bool = True,
) -> tuple[Item, ...]:
    """Return the items in running order: modules, and single layers outside them.

    `naive`: nothing stays on chip, every layer reads and writes DRAM. `banned`: for a module (by merge
    operator), the number of its best ways that were tried and found no addresses. Without `placed`, ways
    count by their sizes alone: then regions may find no addresses, and the caller looks for them.
    Raises `Infeasible` naming the layer that fits in no way.
    """
    steps: list[Module | int] = []
    for item in detection.items:
        steps += [item] if isinstance(item, Module) else item.operators
    items: list[Item] = []
    for number, step in enumerate(steps):
        after = steps[number + 1] if number + 1 < len(steps) else None
        begin, handed = len(memory.acts), next(iter(memory.resident), None)
        if isinstance(step, Module):
            way = _module(memory, step, after, options, (banned or {}).get(step.merge, 0), naive, placed)
            orders = tuple(sorted(way.order.items()))
            named = _processing(memory, step, memory.acts[begin:])
            made = Item((), handed, None, step.merge, named, orders)
        else:
            _layer(memory, step, None if naive else after, options)
            made = Item((), handed, None)
        _hand_over(memory, after, step)
        if items and begin:  # stores that this item adds to the one before
            items[-1] = replace(items[-1], acts=_again(items[-1].acts, memory.acts, begin))
        output = next(iter(memory.resident), None)
        if made.handed is not None and items and made.handed in memory.acts[begin - 1].free:
            made = replace(made, handed=None)
            items[-1] = replace(items[-1], output=None)
        items.append(replace(made, acts=tuple(memory.acts[begin:]), output=output))
    return tuple(items)


def _processing(memory: Memory, module: Module, acts: Sequence[Act]) -> Literal["I", "II"]:
    """Return I if nothing that the module makes, nor its input once loaded, passes through DRAM, else II."""
    own = {t for v in bits(module.operators) for t in memory.network.operators[v].outputs}
    loads = [t for act in acts for t in act.load]
    streamed = {t for act in acts for t in (*act.read, *act.written)}
    through = streamed & {*own, module.start} or own.intersection(loads) or loads.count(module.start) > 1
    return "II" if through or any(act.how == "join" for act in acts) else "I"


def _again(acts: tuple[Act, ...], now: Sequence[Act], end: int) -> tuple[Act, ...]:
    return tuple(now[end - len(acts) : end])


def _reads(memory: Memory, step: Module | int | None, t: int) -> bool:
    """Return whether the next item begins with this tensor."""
    if step is None:
        return False
    return step.start == t if isinstance(step, Module) else bool(memory.network.reads[step] >> t & 1)


def _readers(memory: Memory, step: Module | int | None, t: int) -> int:
    """Return the number of layers of the next item that read a tensor."""
    inside = 0 if step is None else step.operators if isinstance(step, Module) else 1 << step
    return (memory.network.readers[t] & inside).bit_count()


def _hand_over(memory: Memory, after: Module | int | None, step: Module | int) -> None:
    """Leave at most one tensor on chip: the newest that the next item reads."""
    made = memory.network.operators[step.merge if isinstance(step, Module) else step].outputs
    wanted = [t for t in reversed(memory.resident) if _reads(memory, after, t) and memory.near[t]]
    kept = next((t for t in wanted if t in made), wanted[0] if wanted else None)
    for t in tuple(memory.resident):
        if t != kept:
            memory.let_go(t)
        elif memory.left[t] > _readers(memory, after, t) and not memory.in_dram(t):
            memory.keep_copy(t)  # its producer stores it for later readers


def _layer(memory: Memory, v: int, after: Module | int | None, options: BranchOptions) -> None:
    """Decide a layer outside modules: streamed, except for tensors handed over from or to a module."""
    outputs = memory.network.operators[v].outputs
    want = any(_reads(memory, after, t) for t in outputs)
    if options.rules == "paper":
        want = want and isinstance(after, Module)
    if memory.concat(v) and not memory.network.reads[v] & mask(memory.resident):
        want = False  # joined in DRAM it costs nothing
    over = tuple(bits(memory.network.reads[v])) if options.rules == "ours" else ()
    mark = memory.mark()
    try:
        memory.merge(v, (), want=want, strict=False, over=over, in_place=False)
    except DoesNotFit as first:
        if not memory.resident:
            raise _infeasible(memory, first) from None
        memory.undo(mark)
        for t in tuple(memory.resident):
            memory.let_go(t)
        try:
            memory.merge(v, (), want=want, strict=False, over=(), in_place=False)
        except DoesNotFit as problem:
            raise _infeasible(memory, problem) from None


def _module(
    memory: Memory,
    module: Module,
    after: Module | int | None,
    options: BranchOptions,
    skip: int,
    naive: bool,
    placed: bool,
) -> Way:
    """Decide a module: in the first way that fits (paper), or the way that moves least of all (ours).

    The first `skip` ways are omitted: with them, the modules together found no addresses.
    """
    mark = memory.mark()
    problem: DoesNotFit | None = None
    ranked = _ways(memory, module, options)
    if naive:
        ranked = iter([Way("II", False, order_of(module, memory.sizes), forward=False)])
    elif options.rules == "ours":
        ranked = _ranked(memory, module, after, ranked)
    misplaced = 0
    for way in ranked:
        if misplaced >= MOST_MISPLACED and way.early:
            continue
        handed = next(iter(memory.resident), None)
        try:
            process(memory, module, way)
            misplaced += 1
            if placed or options.rules == "ours":
                _has_addresses(memory, module, way, mark.acts, handed)
        except DoesNotFit as failed:
            problem = failed
            memory.undo(mark)
            continue
        if skip:
            skip -= 1
            memory.undo(mark)
            continue
        return way
    assert problem is not None, "every layer by itself finds addresses"
    raise _infeasible(memory, problem)


def _ranked(memory: Memory, module: Module, after: Module | int | None, ways: Iterator[Way]) -> Iterator[Way]:
    """Yield the ways that fit by their sizes, ascending by bytes moved; one that moves nothing at once."""
    mark = memory.mark()
    found: list[tuple[int, int, int, Way]] = []
    for number, way in enumerate(ways):
        try:
            process(memory, module, way)
        except DoesNotFit:
            memory.undo(mark)
            continue
        choice = _choice(memory, mark.acts, module, after)
        memory.undo(mark)
        if choice.bytes == 0:
            yield way
        else:
            found.append((choice.bytes, choice.accesses, number, way))
    found.sort(key=lambda f: f[:3])
    yield from (way for *_, way in found)
    yield Way("II", False, order_of(module, memory.sizes), forward=False)  # fits, or raises the reason


def _has_addresses(memory: Memory, module: Module, way: Way, begin: int, handed: int | None) -> None:
    """Raise `DoesNotFit` if the regions of a module find no room, wherever its input may lie."""
    kept = module.output if module.output in memory.resident else None
    item = Item(tuple(memory.acts[begin:]), handed if way.hold else None, kept)
    life = lives(memory, item)
    alignment = memory.sizes.chip.alignment_bytes
    if not isinstance(place(life.pieces, memory.budget, alignment, most_nodes=MODULE_NODES), Placed):
        most = max(item.acts, key=lambda act: act.required - act.available)
        raise DoesNotFit(most.operator, max(most.required, most.available + 1), most.available)


def _ways(memory: Memory, module: Module, options: BranchOptions) -> Iterator[Way]:
    """Yield the ways of a module, the presumably best first."""
    written = order_of(module, memory.sizes)
    if options.rules == "paper":
        yield Way("I", True, written)
        yield Way("II", True, written)
        yield Way("II", False, written)
        yield Way("II", False, written, forward=False)
        return
    counted = order_of(module, memory.sizes, staged_input=True)
    first = counted[module.merge]
    orders = [first, *(o for o in itertools.islice(itertools.permutations(first), MOST_ORDERS) if o != first)]
    for order in orders:
        yield Way("I", True, {**counted, module.merge: order}, early=True)
    for order in orders:
        yield Way("I", True, {**counted, module.merge: order}, early=True, in_place=False)
    for hold, order in itertools.product((True, False), orders):
        yield Way("I", hold, {**counted, module.merge: order}, early=True, strict=False)
    for hold in (True, False):
        yield Way("II", hold, counted, early=True)
    yield from _ways(memory, module, replace(options, rules="paper"))


def _choice(memory: Memory, begin: int, module: Module, after: Module | int | None) -> Choice:
    """Return the cost of the module just processed, including that of its output to the next item."""
    tensors = memory.network.tensors
    moved = [t for act in memory.acts[begin:] for t in act.moved]
    total, accesses = sum(tensors[t].bytes for t in moved), len(moved)
    if module.output not in memory.resident and _reads(memory, after, module.output):
        total, accesses = total + tensors[module.output].bytes, accesses + 1
    return Choice(total, accesses)


def _infeasible(memory: Memory, problem: DoesNotFit) -> Infeasible:
    op = memory.network.operators[problem.operator]
    tensors = [(memory.network.tensors[t].name, memory.size(t)) for t in (*op.inputs, *op.outputs)]
    return Infeasible(
        needs=problem.required + memory.budget - problem.available,
        has=memory.budget,
        operator=op.name,
        tensors=problem.for_ or tuple(tensors),
    )
