"""The two callables that ExecuTorch takes: one for its memory planning pass, one for its suite.

Both read the tensors, place them, have the plan checked, and answer in ExecuTorch's own terms. The pass wants
the plan written into its `TensorSpec`s and the sizes of all memories; the suite wants both as a record,
because it compares several algorithms before it writes one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from onchip.base.errors import UsageError
from onchip.executorch.banks import Bank, Question, fill_banks
from onchip.executorch.in_place import with_candidates
from onchip.executorch.one_memory import Placed, least_arena
from onchip.executorch.proof import proved_plan
from onchip.executorch.specs import Graph, Item, read_graph, root_of
from onchip.planners.limits import Limits
from onchip.plans import Plan

__all__ = ["Options", "algorithm", "planner"]

TIME_LIMIT = 60.0


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of a planner.

    `banks` are the memories, fastest first; without any there is one, `mem_id` 1.

    `in_place` lets an element-wise result take the bytes of an operand that is read for the last time.
    `time_limit` is in seconds for one graph. `on_plan` is told every plan, once it is proved.
    """

    banks: tuple[Bank, ...] = ()
    in_place: bool = True
    time_limit: float | None = TIME_LIMIT
    on_plan: Callable[[Plan], object] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The memory and offset of every spec, and the size of every memory by `mem_id`."""

    places: tuple[tuple[Any, int, int], ...]
    sizes: tuple[int, ...]


def planner(
    target: Any = None,
    *,
    in_place: bool = True,
    time_limit: float | None = TIME_LIMIT,
    on_plan: Callable[[Plan], object] | None = None,
) -> Callable[..., list[int]]:
    """Return a callable for `MemoryPlanningPass(planner())`.

    `target` is ExecuTorch's `TargetMemoryMap`, or banks, fastest first. Called, it raises `Infeasible` with
    the bytes needed and there if a bank is too small, and `InputError` for tensors that it cannot place.
    """
    options = Options(_banks_of(target), in_place, time_limit, on_plan)

    def onchip(
        alignment: int,
        specs: Iterable[Any],
        graph_module: Any,
        graph_signature: Any = None,
        extra_padding: int = 0,
    ) -> list[int]:
        answer = _plan(alignment, specs, graph_module, extra_padding, options)
        for spec, mem_id, offset in answer.places:
            spec.mem_id, spec.mem_obj_id, spec.mem_offset = mem_id, None, offset
        return list(answer.sizes)

    return onchip


def algorithm(
    target: Any = None,
    *,
    in_place: bool = True,
    time_limit: float | None = TIME_LIMIT,
    on_plan: Callable[[Plan], object] | None = None,
) -> Callable[..., Any]:
    """Return a callable for `MemoryPlanningAlgorithmSuite([greedy, algorithm()])`; options as in `planner`.

    The suite keeps the algorithm with the fewest bytes in all memories together: with several memories, give
    it this one alone.
    """
    options = Options(_banks_of(target), in_place, time_limit, on_plan)

    def onchip(
        alignment: int,
        specs: Iterable[Any],
        graph_module: Any,
        graph_signature: Any = None,
        extra_padding: int = 0,
    ) -> Any:
        from executorch.exir.memory_planning import MemoryAlgoResult, SpecAllocResult

        answer = _plan(alignment, specs, graph_module, extra_padding, options)
        places = {spec: SpecAllocResult(mem_id, None, offset) for spec, mem_id, offset in answer.places}
        return MemoryAlgoResult(places, list(answer.sizes))

    return onchip


def _banks_of(target: Any) -> tuple[Bank, ...]:
    """Return the banks of a target's memory map, or of a list of banks, as ours."""
    rows = () if target is None else getattr(target, "banks", target)
    banks = tuple(Bank(row.name, row.size, row.mem_id, row.alignment) for row in rows)
    for what in ("mem_id", "name"):
        values = [getattr(bank, what) for bank in banks]
        twice = next((v for v in values if values.count(v) > 1), None)
        if twice is not None:
            raise UsageError(f"two banks have the {what} {twice}", where="banks")
    return banks


def _plan(alignment: int, specs: Iterable[Any], graph_module: Any, padding: int, options: Options) -> Answer:
    """Place all specs, and have the plan proved."""
    limits = Limits(options.time_limit)
    given = list(specs)
    for bank in options.banks:
        if (bank.alignment or alignment) % alignment:
            raise UsageError(
                f"has alignment {bank.alignment}, no multiple of the graph's, {alignment}",
                item=f"bank {bank.name}",
            )
    graph = read_graph(alignment, given, graph_module, padding)
    if options.banks:
        _one_device(given)
    if options.in_place:
        graph = with_candidates(graph, tuple(graph_module.graph.nodes))
    placed = _placed(graph, options, limits)
    plan = proved_plan(graph, placed, options.banks, limits.spent())
    if plan is not None and options.on_plan is not None:
        options.on_plan(plan)
    return _answer(graph, placed, options.banks)


def _one_device(specs: Sequence[Any]) -> None:
    """Refuse tensors of other devices: the banks are one address space."""
    for spec in specs:
        device = getattr(spec, "device", None)
        if device is not None and getattr(device, "name", "CPU") != "CPU":
            raise UsageError(
                f"banks are memories of the CPU, and a tensor is on {device.name}", where="banks"
            )


def _placed(graph: Graph, options: Options, limits: Limits) -> Placed:
    """Place the buffers of each memory, the banks together. What is reserved at all times lies below."""
    managed = {bank.mem_id for bank in options.banks} or {1}
    others = sorted({m for item in graph.items if (m := item.memory) is not None} - managed)
    at, over = dict[int, tuple[int, int]](), dict[int, int]()
    sizes, bounds = dict[int, int](), dict[int, int]()
    for memory in (None, *others):
        inside = {memory} if memory is not None else {None, *managed}
        chosen = [i for i, item in enumerate(graph.items) if item.memory in inside]
        if not chosen:
            continue
        part = _renumbered(graph.items, chosen)
        if memory is None and options.banks:
            held = [graph.padding + _floor(graph, bank.mem_id, bank.alignment) for bank in options.banks]
            asked = Question(part, options.banks, held, graph.alignment, options.in_place, graph.nodes)
            found = fill_banks(asked, limits)
        else:
            found = least_arena(part, memory or 1, graph.alignment, options.in_place, limits)
        at |= {chosen[i]: place for i, place in found.at.items()}
        over |= {chosen[y]: chosen[x] for y, x in found.over.items()}
        sizes |= found.bytes
        bounds |= found.bounds
    return Placed(at, over, sizes, bounds)


def _renumbered(items: Sequence[Item], chosen: Sequence[int]) -> list[Item]:
    """Return some of the items, with those among them that they may be written over."""
    new = {i: n for n, i in enumerate(chosen)}
    return [replace(items[i], over=tuple(new[x] for x in items[i].over if x in new)) for i in chosen]


def _floor(graph: Graph, mem_id: int, alignment: int | None) -> int:
    """Return the bytes at the bottom of a memory that are reserved at all times."""
    step = alignment or graph.alignment
    return -(-graph.reserved.get(mem_id, 0) // step) * step


def _answer(graph: Graph, placed: Placed, banks: Sequence[Bank]) -> Answer:
    """Return the answer in ExecuTorch's terms: offsets above what is reserved, sizes with the padding."""
    step = {bank.mem_id: bank.alignment or graph.alignment for bank in banks}
    first = banks[0].mem_id if banks else 1
    places = []
    for spec, i, inside in graph.places:
        mem_id, offset = (root_of(spec).mem_id or first, 0) if i is None else placed.at[i]
        root_of(spec).realign(step.get(mem_id, graph.alignment))
        floor = 0 if i is None else _floor(graph, mem_id, step.get(mem_id))
        places.append((spec, mem_id, floor + offset + inside))
    known = {*placed.bytes, *graph.reserved, *(m for _, m, _ in places), 1}
    sizes = [0] * (1 + max(known))
    for mem_id in known:
        taken = placed.bytes.get(mem_id, 0)
        held = _floor(graph, mem_id, step.get(mem_id)) + taken
        sizes[mem_id] = held + (graph.padding if any(m == mem_id for _, m, _ in places) else 0)
    for bank in banks:
        if sizes[bank.mem_id : bank.mem_id + 1] > [bank.size]:
            raise AssertionError(f"the plan exceeds bank {bank.name}")
    return Answer(tuple(places), tuple(sizes))
