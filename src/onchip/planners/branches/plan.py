"""The simple method from end to end: stored network, modules, branches, addresses, program, certificate."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from onchip.base.errors import Infeasible
from onchip.check import certify
from onchip.check.joins import plain_concat
from onchip.machines.chip import Chip
from onchip.network import Network, bits
from onchip.planners.branches.acts import Item
from onchip.planners.branches.claim import SPACE
from onchip.planners.branches.decide import decide
from onchip.planners.branches.detection import detect
from onchip.planners.branches.handover import Problem, Stuck, chain
from onchip.planners.branches.memory import Memory
from onchip.planners.branches.modules import Detection, Module
from onchip.planners.branches.options import DEFAULTS, BranchOptions
from onchip.planners.branches.program import instructions, lives, sections, with_workspaces
from onchip.planners.branches.reorder import in_order
from onchip.planners.branches.sizes import Sizes
from onchip.planners.branches.stored import stored
from onchip.planners.limits import NO_LIMITS, Limits
from onchip.plans import Instruction, Plan, bind

__all__ = ["BranchPlan", "LayerFit", "plan_branches"]

MOST_NODES, NODES_PER_ITEM = 2_000, 50
"""The most nodes of the search for addresses: for the whole network, and more for each item."""


@dataclass(frozen=True, slots=True)
class LayerFit:
    """The bytes that a layer of a module requires and those available: Algorithm 6.

    `branch` are its branches' places in the processing order, outermost first and from 1, empty for the
    module's merge layer; `forwarded` is fwd(k): the output stays on chip.
    """

    module: str
    operator: str
    branch: tuple[int, ...]
    required: int
    available: int
    forwarded: bool


@dataclass(frozen=True)
class BranchPlan:
    """A plan with its intermediate results. `network` is the stored one: feature maps in patches."""

    plan: Plan
    network: Network
    detection: Detection
    layers: tuple[LayerFit, ...]
    options: BranchOptions
    seconds: float


def plan_branches(
    network: Network,
    chip: Chip,
    budget: int,
    options: BranchOptions = DEFAULTS,
    limits: Limits = NO_LIMITS,
) -> BranchPlan:
    """Plan a network by the simple method (Kim et al., Algorithms 1 to 6), for `budget` bytes of scratchpad.

    Modules of branches are processed on chip if they fit, everything else streams. Raises `Infeasible` naming
    the layer that fits in no way.
    """
    began = time.perf_counter()
    say = limits.say
    kept = stored(network, chip)
    sizes = Sizes(kept, chip)
    say("looking for modules")
    detection = detect(kept, long_skip=options.long_skip)

    def by(rules: BranchOptions, room: int) -> _Made:
        made = _program(kept, sizes, detection, room, rules, say)
        if made.moved > _naive(kept, detection):  # an output with parts in DRAM may be stored for nothing
            made = _program(kept, sizes, detection, room, rules, say, naive=True)
        return made

    def within(room: int) -> _Made:
        made = by(options, room)
        if options.rules == "ours":  # the best way of each module is not always the best for the next
            made = min(made, by(replace(options, rules="paper"), room), key=lambda m: m.moved)
        return made

    try:
        made = within(budget)
    except Infeasible as no:
        raise _of_all(no, within, chip.alignment_bytes) from None
    seconds = time.perf_counter() - began
    plan = certify(
        with_workspaces(kept, made.items),
        chip,
        budget,
        made.instructions,
        status="feasible",
        lower_bound_bytes=0,
        space=SPACE,
        seconds=seconds,
        sections=sections(kept, detection, made.items, made.ends),
        keep_events=True,
        options={
            "planner": "branches",
            "rules": options.rules,
            "long_skip": options.long_skip,
            "granularity": network.granularity,
            "weights": "streamed",
            "element": network.element,
        },
    )
    if plan.result.traffic_bytes == 0:  # no plan has less
        plan = bind(replace(plan, result=replace(plan.result, status="optimal")))
    return BranchPlan(plan, kept, detection, _fits(kept, detection, made.items), options, seconds)


def _of_all(first: Infeasible, within: Callable[[int], _Made], alignment: int) -> Infeasible:
    """Return the whole network's need, where `first` is that of the first layer that fits in no way.

    That many bytes are enough, and one less (of the alignment) is not.
    """

    def refused(room: int) -> Infeasible | None:
        try:
            within(room)
        except Infeasible as no:
            return no
        return None

    hardest, fails, works = first, first.has, first.needs
    while (no := refused(works)) is not None:
        hardest, fails, works = no, works, max(no.needs, works + alignment)
    while works - fails > alignment:
        middle = max(fails + 1, (fails + works) // 2 // alignment * alignment)
        no = refused(middle)
        if no is None:
            works = middle
        else:
            hardest, fails = no, middle
    return hardest.but(needs=works, has=first.has, space="plans of the simple method")


@dataclass(frozen=True)
class _Made:
    """Items with their program; `moved` are the bytes of feature maps that it moves."""

    items: tuple[Item, ...]
    instructions: list[Instruction]
    ends: list[int]
    moved: int


def _program(
    network: Network,
    sizes: Sizes,
    detection: Detection,
    budget: int,
    options: BranchOptions,
    say: Callable[[str], None],
    *,
    naive: bool = False,
) -> _Made:
    """Decide and place everything; a module that finds no addresses takes its next way."""
    skips = [(skip.tensor, skip.reader) for skip in detection.long_skips]
    banned: dict[int, int] = {}
    by_address = False  # usually sizes decide, and all modules together are placed once
    while True:
        say(
            "processing branches"
            if not banned
            else f"processing branches, {sum(banned.values())} ways banned"
        )
        memory = Memory(network, sizes, budget, skips)
        items = decide(memory, detection, options, banned, naive=naive, placed=by_address)
        life = [lives(memory, item) for item in items]
        problems = [Problem(x.pieces, x.input, x.output) for x in life]
        nodes = MOST_NODES + NODES_PER_ITEM * len(items)
        placed = chain(problems, budget, sizes.chip.alignment_bytes, most_nodes=nodes)
        if not isinstance(placed, Stuck):
            break
        if by_address:
            _ban(items, placed.module, banned)
        by_address = True
    program: list[Instruction] = []
    ends = []
    for item, x, p in zip(items, life, placed, strict=True):
        program += instructions(network, item, *x.addresses(p.addresses))
        ends.append(len(program))
    moved = sum(network.tensors[t].bytes for item in items for act in item.acts for t in act.moved)
    return _Made(items, program, ends, moved)


def _naive(network: Network, detection: Detection) -> int:
    """Return the bytes that cross when every layer reads its inputs from DRAM and writes its output there.

    A concat costs nothing if its operands can lie side by side in it: made here, and part of no other.
    """
    order = [
        v
        for item in detection.items
        for v in (in_order(item) if isinstance(item, Module) else item.operators)
    ]
    joined, total = 0, 0
    for v in order:
        reads = network.reads[v]
        if plain_concat(network, v) and not reads & (joined | network.input_roots):
            joined |= reads
        else:
            total += sum(network.tensors[t].bytes for t in bits(reads | network.writes[v]))
    return total


def _ban(items: Sequence[Item], stuck: int, banned: dict[int, int]) -> None:
    """Let the nearest module before the stuck item take its next way."""
    for i in range(stuck, -1, -1):
        module = items[i].module
        if module is not None:
            banned[module] = banned.get(module, 0) + 1
            return
    raise AssertionError("layers outside modules always find addresses")


def _fits(network: Network, detection: Detection, items: Sequence[Item]) -> tuple[LayerFit, ...]:
    names = {m.merge: m.name for m in detection.items if isinstance(m, Module)}
    return tuple(
        LayerFit(
            names[item.module],
            network.operators[act.operator].name,
            act.branch,
            act.required,
            act.available,
            act.forwarded,
        )
        for item in items
        if item.module is not None
        for act in item.acts
    )
