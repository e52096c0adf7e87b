"""Explanations of a timeline: the reasons for absences, what was moved, the budgets that matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from onchip.check.replay import Reserved, events_of
from onchip.network import bits
from onchip.plans import Alloc, Plan, is_proved
from onchip.report.claims import aimed, in_orders, is_grouped
from onchip.report.steps import Step, Timeline
from onchip.report.wording import exact, short_size, short_time, visible

__all__ = [
    "Absence",
    "Budgets",
    "absence_reason",
    "absences",
    "budgets",
    "caches_sentence",
    "cost_of_dram",
    "largest",
    "layouts_sentence",
    "memory_rows",
    "memory_sentence",
    "moved_bytes",
    "peak_sentence",
    "repeats_sentence",
    "room_needed_by",
    "step_label",
    "step_range",
    "strategy_sentences",
    "title",
    "where",
    "zero_traffic_sentence",
]


How = Literal["whole", "moved", "streamed", "joined", "out"]


@dataclass(frozen=True, slots=True)
class Absence:
    """A tensor's time out of the scratchpad after a stay, with the reason.

    `how` it ended: `whole`, it came back for another stay; `moved`, the same within one step; `streamed`, its
    readers read it from DRAM in pieces; `joined`, a concat joined it in DRAM; `out`, no operator read it
    again. It is out for steps [`left`, `back`). `crowded` is the first of them at which it would not have
    fitted beside the live ranges, `live_bytes` their bytes; None when it would have fitted by size
    everywhere. `room` is `bytes` rounded up to the alignment; `written` is 0 when DRAM had a copy already, or
    when the store was compulsory.
    """

    tensor: int
    name: str
    bytes: int
    room: int
    left: int
    back: int
    crowded: int | None
    live_bytes: int
    written: int
    reloaded: int
    how: How = "whole"

    @property
    def cost(self) -> int:
        """The bytes that crossed to and from DRAM for it."""
        return self.written + self.reloaded


def absences(timeline: Timeline) -> tuple[Absence, ...]:
    """Return every absence, in the order in which the tensors leave.

    A tensor that leaves and comes back within one step was relocated: `left == back`.
    """
    plan = timeline.plan
    occupancy = [s.occupancy_bytes for s in timeline.steps]
    streamed = _streamed_reads(timeline)
    joined = _joined(timeline)
    found = []
    for tensor, stays in timeline.stays.items():
        size = plan.network.tensors[tensor].bytes
        output = bool(plan.network.output_roots >> tensor & 1)
        for i, stay in enumerate(stays):
            if stay.departure not in ("spill", "evict"):
                continue
            how: How
            if i + 1 < len(stays):
                back, reloaded = stays[i + 1].start, size
                how = "moved" if back == stay.end else "whole"
            else:
                later = [(s, n) for s, n in streamed.get(tensor, ()) if s >= stay.end]
                back = max((s for s, _ in later), default=joined.get(tensor, len(occupancy) - 1))
                reloaded = sum(n for _, n in later)
                how = "streamed" if later else "joined" if tensor in joined else "out"
            room = stay.size
            crowd = next((s for s in range(stay.end, back) if occupancy[s] + room > plan.budget), None)
            busiest = crowd if crowd is not None else stay.end
            written = size if stay.departure == "spill" and not output else 0
            live = occupancy[min(busiest, len(occupancy) - 1)]
            found.append(
                Absence(tensor, stay.name, size, room, stay.end, back, crowd, live, written, reloaded, how)
            )
    return tuple(sorted(found, key=lambda a: (a.left, a.back, a.name)))


def _streamed_reads(timeline: Timeline) -> dict[int, list[tuple[int, int]]]:
    found: dict[int, list[tuple[int, int]]] = {}
    for step in timeline.steps:
        for tensor, n in step.streamed:
            if tensor in step.inputs:
                found.setdefault(tensor, []).append((step.index, n))
    return found


def _joined(timeline: Timeline) -> dict[int, int]:
    """Return the tensors that a concat joins in DRAM, and the step at which it does."""
    return {t: s.index for s in timeline.steps if s.joined for t in s.inputs}


def title(plan: Plan) -> str:
    """Return the title, such as `nasnetalarge (int8) on generic`."""
    return f"{plan.network.name} ({plan.network.element}) on {plan.chip.name}"


def where(plan: Plan) -> str:
    """Return which of a chip's several memories the plan is for: `tiles in sram, psram in DRAM's part`."""
    if plan.chip.memories:
        return f"whole operators over {', '.join(m.name for m in plan.chip.memories)}"
    level, outside = plan.options.get("level"), plan.options.get("beyond")
    if not isinstance(level, str) or not isinstance(outside, str):
        return ""
    return f"tiles in {level}" + ("" if outside == "DRAM" else f", {outside} in DRAM's part")


def moved_bytes(plan: Plan) -> int:
    """Return the bytes that moves copy from memory to memory."""
    moves = (e for e in events_of(plan) if isinstance(e, Reserved) and e.cause == "move")
    return sum(move.used for move in moves)


def memory_rows(timeline: Timeline) -> list[tuple[str, int, int, int]]:
    """Return for each of several memories: name, size, extent, bytes that the program reads and writes."""
    accessed = {use.memory: use.accessed_bytes for use in timeline.plan.result.memories}
    return [
        (m.name, m.bytes, timeline.extents[m.name], accessed.get(m.name, 0))
        for m in timeline.plan.chip.memories
    ]


def memory_sentence(plan: Plan) -> str:
    """Return a sentence on the time of all accesses to several memories and its bound; empty if unknown."""
    took, bound = plan.result.memory_picoseconds, plan.result.memory_lower_bound_picoseconds
    if took is None:
        return ""
    text = f"All reads and writes in the memories take {short_time(took)}, one after the other"
    if bound is None:
        return text + "."
    kind = "without moves" if plan.options.get("moves") is False else "with as little traffic"
    if bound == took:
        return f"{text}; no plan {kind} takes less."
    return f"{text}; a plan {kind} takes at least {short_time(bound)}."


@dataclass(frozen=True, slots=True)
class Budgets:
    """The budgets of a network in bytes; None where not known.

    `mr` is the least any plan needs (the hardest single operator with its operands and workspace), `mp` the
    least peak of the allowed orders, or a proven lower bound of it: below it some traffic is
    unavoidable. `zero_traffic` is the least budget that is proven to need none.
    """

    mr: int | None
    mp: int | None
    zero_traffic: int | None


def budgets(plan: Plan) -> Budgets:
    """Return the budgets: MR from the network if it states it; else, as MP and zero traffic, as claimed."""

    def recorded(key: str) -> int | None:
        value = plan.options.get(key)
        return value if type(value) is int else None

    # If outputs may be written over inputs, MR depends on the order: it is then the planner's claim too.
    in_place = plan.options.get("in_place") is True
    mr = recorded("mr_bytes") if in_place else None
    shared = any(isinstance(i, Alloc) and (i.over is not None or i.parts) for i in plan.program)
    plain = not plan.groups and not plan.sections and not shared
    if plain and not in_place:
        net, up = plan.network, plan.chip.round_up
        mr = max(
            (
                sum(up(net.tensors[t].bytes) for t in bits(net.reads[op.id] | net.writes[op.id]))
                + up(op.workspace)
                for op in net.operators
            ),
            default=0,
        )
    return Budgets(mr, recorded("mp_bytes"), recorded("zero_traffic_bytes"))


def zero_traffic_sentence(plan: Plan, timeline: Timeline) -> str:
    """Return a sentence on the smallest budget known to need no traffic, or its best known bound.

    It is empty for several memories, which have several sizes, and for a plan of groups, between which
    tensors go through DRAM at any budget.
    """
    if is_grouped(plan) or plan.chip.memories:
        return ""
    known, own = budgets(plan), plan.options.get("order") == "given"
    what = "Smallest budget with zero traffic" + (in_orders(plan) if own else "")
    if not is_proved(plan) and (known.zero_traffic, known.mp) != (None, None):
        what += ", as claimed"
    if known.zero_traffic is not None:
        return f"{what}: {exact(known.zero_traffic)}."
    clean = timeline.traffic.spill + timeline.traffic.reload == 0
    if clean and known.mp == timeline.extent_bytes:
        return f"{what}: {exact(known.mp)}."
    parts = []
    if known.mp is not None:
        parts.append(
            f"at least {exact(known.mp)}, since {'that order' if own else 'every order'} peaks at least there"
        )
    elif not clean and plan.result.status == "optimal" and plan.options.get("order", "free") == "free":
        parts.append(f"more than this one, {exact(plan.budget)}")
    if clean:
        parts.append(f"at most {exact(timeline.extent_bytes)}, which this plan uses")
    if not parts:
        return "" if plan.sections else f"{what}: not known."
    return f"{what}: {'; '.join(parts)}."


def absence_reason(timeline: Timeline, absence: Absence) -> str:
    """Return the reason for a tensor's absence, in a few words without its name."""
    then = {
        "streamed": "read from DRAM in pieces, not brought back",
        "joined": "joined in DRAM, not brought back",
        "out": "nobody reads it again",
    }.get(absence.how, "")
    if absence.crowded is None:
        if absence.how == "moved":
            return "moved to other addresses to make one free range"
        return then or "fits by size; no free range of addresses long enough"
    free = timeline.plan.budget - absence.live_bytes
    text = f"needs {short_size(absence.room)}, {short_size(free)} free"
    return f"{text}; {then}" if then else text


def room_needed_by(timeline: Timeline, absence: Absence) -> str:
    """Return the step that a tensor made room for; where there is none, its fate, in brackets."""
    if absence.crowded is not None:
        return f"{absence.crowded + 1} {visible(step_label(timeline.steps[absence.crowded]))}"
    return {
        "whole": "none (no free range)",
        "moved": "none (moved)",
        "streamed": "none (read in pieces)",
        "joined": "none (joined in DRAM)",
        "out": "none (not read again)",
    }[absence.how]


def cost_of_dram(plan: Plan, timeline: Timeline) -> tuple[tuple[str, str], ...]:
    """Return time and energy of DRAM bytes and inference, for chips that state them: (what, value)."""
    rows = []
    total = timeline.traffic.total
    bandwidth = plan.chip.dram_bytes_per_second
    if bandwidth is not None:
        rows.append(("Time on the DRAM bus", short_time(round(total / bandwidth * 1e12))))
    energy = plan.chip.dram_picojoules_per_byte
    if energy is not None:
        rows.append(("Energy of DRAM transfers", f"{total * energy * 1e-9:,.3g} mJ"))
    spent, product = plan.result.energy_picojoules, plan.result.energy_delay
    if spent is not None:
        rows.append(("Energy of one inference", aimed("energy", spent)))
    if product is not None:
        rows.append(("Energy times latency", aimed("edp", product)))
    return tuple(rows)


def largest(timeline: Timeline, count: int) -> Sequence[tuple[int, int, int, int]]:
    """Return the largest tensors in the scratchpad: (tensor, bytes, steps resident, stays)."""
    net = timeline.plan.network
    rows = [
        (t, net.tensors[t].bytes, sum(r.end - r.start for r in stays), len(stays))
        for t, stays in timeline.stays.items()
    ]
    return sorted(rows, key=lambda row: (-row[1], row[0]))[:count]


def step_label(step: Step) -> str:
    """Return an operator's name, or the description of the nameless last step."""
    return step.name if step.operators else "(after the last operator)"


def step_range(left: int, back: int) -> str:
    """Return steps [left, back) counted from 1: `12` or `12-40`."""
    return f"{left + 1}" if back <= left + 1 else f"{left + 1}-{back}"


def peak_sentence(timeline: Timeline) -> str:
    """Return a sentence on the step at which the scratchpad is fullest, and its bytes."""
    if not timeline.steps:
        return "No operator runs."
    step = timeline.steps[timeline.peak_step]
    count = sum(1 for s in timeline.steps if s.operators)
    at = f"step {step.index + 1:,} of {count:,}, {visible(step.name)}" if step.operators else step_label(step)
    return f"{exact(timeline.peak_bytes)} are live at {at}{f' ({visible(step.type)})' if step.type else ''}."


def strategy_sentences(plan: Plan) -> tuple[str, ...]:
    """Return sentences from the strategy's options: its ILP's size, the paper's literal count of traffic."""

    def number(key: str) -> int | None:
        value = plan.options.get(key)
        return value if type(value) is int else None

    found = []
    alone = [
        f"{what} alone {exact(moved)}"
        for what in ("fusion", "placement")
        if (moved := number(f"{what}_dram_bytes")) is not None
    ]
    if alone:
        found.append(f"All DRAM bytes: this plan {exact(plan.result.dram_bytes)}, {', '.join(alone)}.")
    sizes = [
        number(f"ilp_{what}{pruned}") for pruned in ("", "_unpruned") for what in ("variables", "constraints")
    ]
    if sizes[0] is not None and sizes[1] is not None:
        line = f"ILP: {sizes[0]:,} variables, {sizes[1]:,} constraints"
        if sizes[2] is not None and sizes[3] is not None:
            line += f" (without lifetime pruning {sizes[2]:,} and {sizes[3]:,})"
        line += (
            f"; {visible(str(plan.options.get('solver')))}: {visible(str(plan.options.get('ilp_solution')))}"
        )
        found.append(f"{line}.")
    literal, least = number("literal_traffic_bytes"), number("literal_bound_bytes")
    if literal is not None and least is not None:
        proved = "the least there is" if literal == least else f"at least {exact(least)}"
        found.append(f"With the first spill of an input charged: {exact(literal)} of traffic, {proved}.")
    return tuple(found)


SHOWN_LAYOUTS = 3
"""The most tensors in tiles that a sentence names."""


def layouts_sentence(plan: Plan) -> str:
    """Return which tensors lie in DRAM in tiles, the first few by name; empty if all lie row by row."""
    if not plan.layouts:
        return ""
    named = (
        f"{visible(one.tensor)} ({'x'.join(map(str, one.tile))})" for one in plan.layouts[:SHOWN_LAYOUTS]
    )
    more = len(plan.layouts) - SHOWN_LAYOUTS
    rest = f" and {more:,} more" if more > 0 else ""
    return f"In DRAM in tiles, not row by row: {', '.join(named)}{rest}."


SHOWN_REPEATS = 4
"""The most operators that run again that a sentence names."""


def repeats_sentence(plan: Plan) -> str:
    """Return which operators run again, the first few by name, and what that costs; empty if none does."""
    network = plan.network
    again = [op for op in network.operators if op.repeats is not None]
    if not again:
        return ""
    group = {name: g.name for g in plan.groups for name in g.operators}
    originals = [network.operators[op.repeats or 0].name for op in again]
    named = [
        visible(name) + (f" in {visible(group[op.name])}" if op.name in group else "")
        for op, name in zip(again[:SHOWN_REPEATS], originals, strict=False)
    ]
    more = len(again) - SHOWN_REPEATS
    rest = f" and {more:,} more" if more > 0 else ""
    work, least = sum(op.work for op in again), sum(op.weight_bytes for op in again)
    cost = f"{exact(least)} of weights and {work:,} multiply-accumulates"
    return f"Run again, and not kept: {', '.join(named)}{rest}. That takes {cost} more."


def caches_sentence(plan: Plan) -> str:
    """Return what caches a plan keeps on chip from one inference to the next; empty without any."""
    if not plan.caches:
        return ""
    tensors, ids = plan.network.tensors, plan.network.tensor_id
    size, rows = 0, set()
    for cache in plan.caches:
        t = tensors[ids[cache.output]]
        size += t.bytes // t.shape[cache.axis] * cache.rows
        rows.add(f"{t.shape[cache.axis]:,} of {cache.rows:,}")
    caches = "1 cache" if len(plan.caches) == 1 else f"{len(plan.caches):,} caches"
    filled = rows.pop() if len(rows) == 1 else "all or a part"
    return f"On chip from one inference to the next: {caches} in {exact(size)}, {filled} rows filled."
