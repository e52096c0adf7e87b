"""Explanations of a timeline: the reasons for absences, the claim of the status, the budgets that matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from onchip.check.claims.standing import standing
from onchip.check.replay import Reserved, events_of
from onchip.network import bits
from onchip.planners.modules.table import module_table
from onchip.plans import Alloc, Plan, is_proved
from onchip.report.steps import Step, Timeline
from onchip.report.times import short_time
from onchip.report.wording import SENTENCE, exact, short_size, visible

__all__ = [
    "Absence",
    "Budgets",
    "absence_reason",
    "absences",
    "boundary_sentence",
    "budgets",
    "caches_sentence",
    "cost_of_dram",
    "dram_bound",
    "is_grouped",
    "is_of_ram",
    "largest",
    "memory_rows",
    "memory_sentence",
    "moved_bytes",
    "objective",
    "peak_sentence",
    "room_needed_by",
    "space_sentence",
    "standing_sentence",
    "status_sentence",
    "status_words",
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


def gap_percent(plan: Plan) -> float | None:
    """Return how far the objective's value may lie above the least possible, in percent; None without a
    bound above 0."""
    value, bound = _goal(plan)
    if value <= bound:
        return 0.0
    return 100 * (value / bound - 1) if bound > 0 else None


def is_grouped(plan: Plan) -> bool:
    """Return whether any operator of this plan runs in tiles."""
    return any(g.tiling is not None for g in plan.groups)


AIMS = {
    "latency": "the fastest",
    "energy": "the least energy",
    "edp": "the least product of energy and latency",
}
"""The objectives of plans in tiles besides the bytes that cross, and what a plan is by each."""


def dram_bound(plan: Plan) -> int:
    """Return the claimed least DRAM bytes of any partition into groups; 0 where nothing is claimed."""
    r = plan.result
    if r.status == "optimal" and objective(plan) not in AIMS:
        return r.dram_bytes
    stated = getattr(r, "dram_lower_bound_bytes", None) or plan.options.get("dram_lower_bound_bytes")
    return stated if type(stated) is int else 0


def _goal(plan: Plan) -> tuple[int, int]:
    """Return the value of the plan's objective, and the bound claimed of it."""
    r = plan.result
    if objective(plan) == "dram" or (is_grouped(plan) and objective(plan) not in AIMS):
        return r.dram_bytes, dram_bound(plan)
    value, bound = {
        "peak": (r.extent_bytes, r.peak_lower_bound_bytes),
        "latency": (r.latency_picoseconds, r.latency_lower_bound_picoseconds),
        "energy": (r.energy_picojoules, r.energy_lower_bound_picojoules),
        "edp": (r.energy_delay, r.energy_delay_lower_bound),
    }.get(objective(plan), (r.traffic_bytes, r.lower_bound_bytes))
    return value or 0, bound or 0


def objective(plan: Plan) -> str:
    """Return the plan's objective; `traffic` where it states none."""
    return str(plan.options.get("objective", "traffic"))


def status_words(plan: Plan) -> str:
    """Return `optimal in its space` (`claimed optimal ...`), or `feasible, at most 3.2 % above the bound`.

    Beyond 100 % the gap is a factor: `4.5 times the bound`.
    """
    worth = standing(plan)
    if is_of_ram(plan) and objective(plan) != "peak":
        return "legal"  # the plan does not state its objective
    if plan.result.status == "optimal":
        where = " in its space" if plan.result.space else ""
        return f"{'claimed ' if worth == 'claimed' else ''}optimal{where}"
    gap = gap_percent(plan)
    if gap is None:
        return "feasible, no bound above 0 known"
    bound = "the claimed bound" if worth == "claimed" else "the bound"
    if gap > 100:
        return f"feasible, at most {1 + gap / 100:.1f} times {bound}"
    return f"feasible, at most {gap:.2g} % above {bound}"


PROVE = "`onchip check --prove` solves it again"


def space_sentence(plan: Plan) -> str:
    """Return a sentence on the plans that `optimal` and the bounds range over; empty where none is stated."""
    return "" if not plan.result.space else f"Among: {visible(plan.result.space, SENTENCE)}."


def boundary_sentence(plan: Plan) -> str:
    """Return a sentence on inputs and outputs that are integers where the file has floats; else empty."""
    said = plan.options.get("boundary")
    return f"Boundary: {visible(said, SENTENCE)}." if isinstance(said, str) and said else ""


def standing_sentence(plan: Plan) -> str:
    """Return a sentence on claims that are not proved here; empty where they are."""
    if standing(plan) != "claimed":
        return ""
    what = "That it is the least" if plan.result.status == "optimal" else "The bound"
    return f"{what} is claimed in the plan's file, not proved here: {PROVE}."


def _among(plan: Plan) -> str:
    """Return the orders among which the proof holds, those that the planner was to consider."""
    orders = {"given": " in the network's own order", "minpeak": " in the order of least peak"}
    return orders.get(str(plan.options.get("order")), "")


def _sharing(plan: Plan) -> str:
    """Return the plans that the proof ranges over, by the bytes that two tensors may share."""
    if plan.options.get("in_place") is True:
        return "share bytes only where an element-wise operator writes over a dying input of its size"
    return "share no bytes"


def _proven(plan: Plan, what: str = "optimal") -> str:
    """Return `Proven optimal`, or `Claimed to be optimal` where it is not proved here."""
    return f"Claimed to be {what}" if standing(plan) == "claimed" else f"Proven {what}"


def _no(plan: Plan) -> str:
    """Return the beginning of a sentence about a bound: `no` plan, or `as claimed, no` plan."""
    return "as claimed, no" if standing(plan) == "claimed" else "no"


def is_of_ram(plan: Plan) -> bool:
    """Return whether a plan is a microcontroller's: there weights and outputs stay in place."""
    return plan.chip.name == "mcu"


def status_sentence(plan: Plan, traffic: int) -> str:
    """Return a plain sentence of the status's claim."""
    room = f"{plan.budget:,} bytes of scratchpad"
    if is_of_ram(plan):
        return _ram_sentence(plan)
    fits = plan.result.status == "optimal" and traffic == 0
    if is_grouped(plan) or (objective(plan) == "dram" and not fits):
        return _aimed_sentence(plan, room) if objective(plan) in AIMS else _grouped_sentence(plan, room)
    if any(section.merge for section in plan.sections) and plan.result.status != "optimal":
        return _sectioned_sentence(plan, room)
    among, no = _among(plan), _no(plan)
    proven = plan.result.status == "optimal"
    if objective(plan) == "peak":
        least = plan.result.peak_lower_bound_bytes or 0
        needs = f"Without spills and reloads this plan needs {exact(plan.result.extent_bytes)}"
        return f"{needs}; " + (
            f"{_proven(plan, 'least')[:1].lower()}{_proven(plan, 'least')[1:]}: no plan{among} needs fewer."
            if proven
            else f"{no} plan{among} needs fewer than {exact(least)}."
        )
    if objective(plan) == "latency":
        return f"{_proven(plan, 'fastest') if proven else 'Fastest plan found'}{among} within {room}."
    if plan.result.status == "optimal":
        if traffic == 0:
            return f"Everything fits: within {room} no byte crosses to DRAM beyond what is compulsory."
        return (
            f"{_proven(plan)}: within {room} no plan{among} crosses to DRAM with fewer than {exact(traffic)}"
            f" beyond what is compulsory, as long as tensors stay whole and {_sharing(plan)}."
        )
    bound = plan.result.lower_bound_bytes
    found = f"Best plan found within {room}: {exact(traffic)} cross to DRAM beyond what is compulsory"
    if bound == 0 and traffic:
        return f"{found}; how few would do is not known."
    return f"{found}; {no} plan{among} can do with fewer than {exact(bound)}."


def _ram_sentence(plan: Plan) -> str:
    """Return a sentence on a microcontroller's RAM and its bound; zero traffic proves nothing there."""
    r = plan.result
    needs = f"The tensors and buffers need {exact(r.extent_bytes)} of RAM"
    if objective(plan) != "peak":
        return f"{needs}; how few would do is not known."
    if r.status == "optimal":
        how = _proven(plan, "the least")
        return f"{needs}, {how[:1].lower()}{how[1:]} in its space."
    least = r.peak_lower_bound_bytes or 0
    return f"{needs}; {_no(plan)} plan of its space needs fewer than {exact(least)}."


def _aimed_sentence(plan: Plan, room: str) -> str:
    """Return a sentence on a plan in tiles by an objective of `AIMS`."""
    goal = objective(plan)
    value, bound = _goal(plan)
    what = AIMS[goal]
    if plan.result.status == "optimal":
        return f"{_proven(plan, what)} within {room}: {aimed(goal, value)}."
    least = (
        f"{_no(plan)} plan of its space takes less than {aimed(goal, bound)}"
        if bound
        else "no bound is known"
    )
    return f"{what.capitalize()} found within {room}: {aimed(goal, value)}; {least}."


def aimed(goal: str, value: int) -> str:
    """Return a figure of an objective of `AIMS` in words."""
    if goal == "latency":
        return short_time(value)
    return f"{value * 1e-9:,.4g} mJ" if goal == "energy" else f"{value * 1e-15:,.4g} nJ s"


def _joint_sentence(plan: Plan, room: str) -> str:
    total, bound = exact(plan.result.dram_bytes), dram_bound(plan)
    if plan.result.status == "optimal":
        return (
            f"{_proven(plan)}: within {room} no plan of groups and whole tensors crosses to DRAM with fewer"
            f" than {total}, weights included."
        )
    least = (
        f"{_no(plan)} plan can do with fewer than {exact(bound)}"
        if bound
        else "how few would do is not known"
    )
    return f"Best plan found within {room}: {total} cross to DRAM, weights included; {least}."


def _grouped_sentence(plan: Plan, room: str) -> str:
    total, bound = exact(plan.result.dram_bytes), dram_bound(plan)
    if plan.options.get("planner") == "joint":
        return _joint_sentence(plan, room)
    if plan.result.status == "optimal":
        return (
            f"{_proven(plan)}: within {room} no partition into groups crosses to DRAM with fewer than"
            f" {total}, weights included."
        )
    least = (
        f"{_no(plan)} partition can do with fewer than {exact(bound)}"
        if bound
        else "how few would do is not known"
    )
    return f"Best partition found within {room}: {total} cross to DRAM, weights included; {least}."


def _sectioned_sentence(plan: Plan, room: str) -> str:
    """Return a sentence on the crossings of feature maps in a plan of modules, and on the known bound."""
    table, bound = module_table(plan), plan.result.lower_bound_bytes
    count = len(table.modules)
    inside = f"inside its {count:,} modules" if count > 1 else "inside its module"
    least = (
        f"{_no(plan)} plan can do with fewer than {exact(bound)} beyond what is compulsory"
        if bound
        else "how few would do is not known"
    )
    return (
        f"Branches share memory within {room}: {exact(table.total.fm_bytes)} of feature maps cross to DRAM"
        f" {inside}, {exact(table.total_outside.fm_bytes)} outside; {least}."
    )


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
    what = "Smallest budget with zero traffic" + (_among(plan) if own else "")
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
