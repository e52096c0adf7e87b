"""The claims of a plan in words: its goal, its bound, its status, the space that they range over."""

from __future__ import annotations

from onchip.check.claims.standing import standing
from onchip.planners.modules.table import module_table
from onchip.plans import Plan
from onchip.report.wording import SENTENCE, exact, short_time, visible

__all__ = [
    "aimed",
    "boundary_sentence",
    "dram_bound",
    "in_orders",
    "is_grouped",
    "is_of_ram",
    "objective",
    "space_sentence",
    "standing_sentence",
    "status_sentence",
    "status_words",
]


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


def in_orders(plan: Plan) -> str:
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
    among, no = in_orders(plan), _no(plan)
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
