"""What is mutated: legal plans of every kind, and who knows what their tilings need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random

from byte_machine import up
from cell_machine import Lack, Overlay
from hypothesis import strategies as st  # noqa: F401  chains and groups are strategies
from legal_plans import legal_plan
from memory_plans import legal_memory_plan
from test_boxes import plan_of as boxes_plan
from test_boxes import random_boxes
from test_patches import stored_network
from tiled_plans import (
    drawn_blocks,
    drawn_group,
    operands_of,
    plan_of,
    random_blocks,
    random_choice,
    random_whole,
    weight_tile,
)

from map_networks import MapNetwork
from module_networks import random_module_network
from mutants.referee import Facts, FactsOf, require
from mutants.rings import ring_facts, ring_plan
from mutants.walks import Foul
from onchip.base.errors import IllegalPlan, Infeasible
from onchip.check import certify
from onchip.machines.chip import RATES, Chip, Rates, load_chip
from onchip.network import Geometry, bits
from onchip.network.repeats import repeated
from onchip.planners.branches.options import BranchOptions
from onchip.planners.branches.plan import plan_branches
from onchip.planners.placement import PlacementOptions
from onchip.planners.placement import plan as place
from onchip.plans import (
    Alloc,
    Blocks,
    Boxes,
    Group,
    Instruction,
    Load,
    PinnedTensor,
    PinnedWeights,
    Plan,
    Run,
    Scratch,
    State,
    Store,
    Tiling,
    bind,
)
from oracles.boxes import random_operator, turned
from strategies import random_network

__all__ = ["KINDS", "Kind", "Made"]

NPU = load_chip("exynos-npu")


@dataclass(frozen=True)
class Made:
    """A legal plan, and who knows its tilings."""

    plan: Plan
    facts_of: FactsOf | None = None


@dataclass(frozen=True)
class Kind:
    """How plans are made, and how often each part of their JSON is changed."""

    make: Callable[[Random], Made]
    weights: Mapping[str, float]


def rated(rng: Random, alignment: int) -> Chip:
    """A chip that states all that times and energy need."""
    return Chip("rated", alignment, rates=Rates(**{key: rng.choice((0.5, 3.0, 1e3, 7.7e9)) for key in RATES}))


# -- placement, with and without times ----------------------------------------------------------------------


def placement(rng: Random) -> Made:
    if rng.random() < 0.7:
        return Made(legal_plan(rng))
    return Made(placed(rng, Chip("c", rng.choice((1, 4))), "traffic"))


def placed(rng: Random, chip: Chip, objective: str) -> Plan:
    """What the exact planner makes of a small network."""
    while True:
        network = random_network(rng, 5)
        if rng.random() < 0.5:
            network = network.with_resident_weights()
        budget = int(sum(chip.round_up(t.bytes) for t in network.tensors) * rng.choice((0.5, 0.8, 1.2))) + 64
        options = PlacementOptions(objective=objective, in_place=rng.random() < 0.5, time_limit=5.0)  # type: ignore[arg-type]
        try:
            return place(network, chip, budget, options)
        except Infeasible:
            continue


def repeats(rng: Random) -> Made:
    """A plan of whole operators, some of which run again."""
    chip = Chip("c", rng.choice((1, 4)))
    while True:
        network = again = random_network(rng, 5, min_operators=2)
        for _ in range(rng.randint(1, 2)):
            reader = rng.choice(again.operators)
            before = [again.operators[v].name for v in bits(again.predecessors[reader.id])]
            if before:
                with suppress(ValueError):  # of a part
                    again = repeated(again, rng.sample(before, rng.randint(1, len(before))), [reader.name])
        if again is network:
            continue
        budget = int(sum(chip.round_up(t.bytes) for t in again.tensors) * rng.choice((0.5, 0.8, 1.2))) + 64
        try:
            made = place(again, chip, budget, PlacementOptions(in_place=rng.random() < 0.5, time_limit=5.0))
        except Infeasible:
            continue
        options = {**made.options, "planner": "by hand"}  # placement runs nothing again
        return Made(bind(replace(made, options=options)))


def timed(rng: Random) -> Made:
    chip = rated(rng, rng.choice((1, 4)))
    match rng.randrange(5):
        case 0:
            return Made(placed(rng, chip, rng.choice(("latency", "latency", "energy", "traffic"))))
        case 1:
            return bands(rng, rated(rng, 1))
        case 2:
            while True:
                plan = legal_memory_plan(rng)
                if plan.timing:
                    return Made(plan)
        case 3:
            while True:
                made = held(rng)
                if made.plan.timing:
                    return made
    while True:
        plan = legal_plan(rng)
        if plan.timing:
            return Made(plan)


def held(rng: Random) -> Made:
    """A plan that pins tensors and weights, or hands a state on."""
    while True:
        plan = legal_plan(rng, 5)
        network, align = plan.network, plan.chip.alignment_bytes
        budget = up(plan.budget, align)
        grouped = {name for g in plan.groups for name in g.operators}
        pins: list[PinnedTensor | PinnedWeights] = []
        chip = plan.chip
        apart = rng.random() < 0.2
        top = 0 if apart else budget
        for op in network.operators:
            if op.weight_bytes and op.name not in grouped and rng.random() < 0.4:
                pins.append(PinnedWeights(op.name, top))
                top += up(op.weight_bytes, align)
        if apart:
            most = max((op.weight_bytes for op in network.operators), default=0)
            chip = replace(chip, weight_scratchpad_bytes=top + up(8 * most, align))
        else:
            budget = top
        at = {x.tensor: x.address for x in plan.program if isinstance(x, Load | Alloc)}
        for t, address in at.items():
            if rng.random() < 0.3:
                pins.append(PinnedTensor(t, rng.choice((None, address))))
        state: tuple[State, ...] = ()
        names = [t.name for t in network.tensors]
        ins = [t.name for t in network.tensors if t.kind == "input"]
        pairs = [
            (a, b) for a in ins for b in names
            if b not in ins and network.tensors[network.tensor_id[b]].bytes
            == network.tensors[network.tensor_id[a]].bytes
        ]  # fmt: skip
        if pairs and rng.random() < 0.6:
            one, other = rng.choice(pairs)
            state = (State(one, other, at.get(other, 0)),)
            gone = [i for i, x in enumerate(plan.program) if isinstance(x, Load) and x.tensor == one][:1]
            program = tuple(x for i, x in enumerate(plan.program) if i not in gone)
        else:
            program = plan.program
        if not pins and not state:
            continue
        try:
            made = certify(
                network, chip, budget, program, status="feasible", lower_bound_bytes=0, seconds=0,
                groups=plan.groups, pins=pins, state=state, options=plan.options,
            )  # fmt: skip
        except IllegalPlan:
            continue
        return Made(made)


# -- tiles ---------------------------------------------------------------------------------------------


def bands(rng: Random, chip: Chip | None = None) -> Made:
    """A group in bands, now and then over an input of its own."""
    while True:
        drawn, members, tiling, alignment = random_choice(rng, opaque=0)
        alignment = alignment if chip is None else chip.alignment_bytes
        # The cell machine tries every order of what is streamed.
        tiling = replace(tiling, streamed=tiling.streamed[:2])
        resident = tuple(name for name in members if rng.random() < 0.3)
        whole = random_whole(rng, drawn, members, tiling)
        try:
            found = drawn_group(drawn, members, tiling, alignment, resident, whole)
        except Lack:
            continue
        machine, over = found.machine, None
        assert machine is not None
        read = [x for x in machine.external if x in machine.whole]
        made = [y for y in machine.escaping if y in machine.whole]
        if read and made and rng.random() < 0.7:
            x, y = rng.choice(read), rng.choice(made)
            size = {t.name: t.bytes for t in drawn.network.tensors}
            over = (
                y,
                x,
                rng.choice((0, size[y] - size[x], size[y], rng.randint(0, size[y]))) // alignment * alignment,
            )
        spare = replace(found.group, scratch_bytes=found.group.scratch_bytes + rng.choice((0, 0, 7)))
        try:
            return Made(plan_of(replace(found, group=spare), alignment, chip, over), tiled_facts(drawn))
        except IllegalPlan:
            if over is None:
                raise


def tiled_facts(drawn: MapNetwork) -> FactsOf:
    def facts(plan: Plan, group: Group, streaming: Mapping[str, int]) -> Facts:
        network, tiling, align = drawn.network, group.tiling, plan.chip.alignment_bytes
        operators = {op.name: op for op in network.operators}
        require(all(name in operators for name in group.operators), "a stranger")
        whole = operands_of(network, group) - set(streaming)
        refills = dict(group.refills)
        require(set(refills) | set(group.resident_weights) <= set(group.operators), "a stranger's weights")
        require(all(n >= 1 for n in refills.values()), "no refill")
        weights = sum(operators[n].weight_bytes * refills.get(n, 1) for n in group.operators)
        if isinstance(tiling, Blocks):
            require(len(group.operators) == 1 and not group.resident_weights, "blocks of several")
            require(
                min(tiling.rows, tiling.columns, tiling.channels, tiling.output_channels) >= 1, "no block"
            )
            op = operators[group.operators[0]]
            names = [network.tensors[t].name for t in (op.inputs[0], op.outputs[0])]
            mine = {i for i, t in enumerate(names) if t in whole}
            blocked = drawn_blocks(drawn, op.name, tiling, align, mine)
            require(blocked is not None, "no blocks")
            assert blocked is not None
            _same_fetches(group, blocked.group, {op.name: op.weight_bytes})
            return Facts(blocked.group.scratch_bytes, dict(blocked.streaming), weights, _always, None)
        assert isinstance(tiling, Tiling)
        require(min(tiling.rows, tiling.channels, tiling.images) >= 1, "no tile")
        require(tiling.images <= drawn.images, "too many images at a time")
        require(not whole & set(tiling.streamed), "what is whole is streamed by channel")
        try:
            found = drawn_group(drawn, group.operators, tiling, align, group.resident_weights, whole)
        except Lack as reason:
            raise Foul(f"{group.name}: {reason}") from None
        machine = found.machine
        assert machine is not None
        require(set(tiling.streamed) <= set(machine.tensors), "streams a stranger by channel")
        require(all(refills.get(n, 1) == 1 for n in group.resident_weights), "resident weights are refilled")
        _same_fetches(group, found.group, {p.name: p.weights for p in machine.parts})

        def loses(t: str, x: str, by: int) -> bool:
            maker = machine.maker[t]
            layouts = {
                op.geometry.layout for op in network.operators if op.geometry and len(op.geometry.output) == 4
            }
            tile = weight_tile(drawn, machine, maker.name, tiling.channels)
            kept = maker.name in group.resident_weights or tile >= maker.weights
            apart = plan.chip.weight_scratchpad_bytes is not None
            overlay = Overlay(
                drawn, t, x, by, layouts == {"NHWC"}, tile=None if kept or apart else tiling.channels
            )
            return any(machine.overlaid(overlay, Random(0), 6))

        return Facts(found.group.scratch_bytes, dict(found.streaming), weights, loses, None)

    return facts


def _always(t: str, x: str, by: int) -> bool:
    return True


def _same_fetches(stated: Group, found: Group, weights: Mapping[str, int]) -> None:
    require(stated.subgroups == found.subgroups, f"{found.subgroups} sub-groups, not {stated.subgroups}")
    mine, due = dict(stated.refills), dict(found.refills)
    for name, size in weights.items():
        if size and name not in stated.resident_weights:
            require(mine.get(name, 1) == due.get(name, 1), f"{name} is fetched {due.get(name, 1)} times")


def blocks(rng: Random) -> Made:
    found, alignment = random_blocks(rng)
    return Made(plan_of(found, alignment), tiled_facts(found.drawn))


def boxes(rng: Random) -> Made:
    network = random_operator(rng)
    some, alignment = random_boxes(rng, network), rng.choice((1, 1, 4))
    plan = boxes_plan(network, some, turned(network, some), alignment)
    return Made(plan, box_facts)


def box_facts(plan: Plan, group: Group, streaming: Mapping[str, int]) -> Facts:
    tiling = group.tiling
    require(isinstance(tiling, Boxes) and len(group.operators) == 1, "no boxes")
    assert isinstance(tiling, Boxes)
    require(not group.refills and not group.resident_weights, "boxes say what is fetched")
    [op] = plan.network.operators
    assert op.reach is not None
    extents = op.reach.extents
    require(len(tiling.sizes) == len(extents) and min(tiling.sizes) >= 1, "no sizes")
    require(sorted(tiling.order) == list(range(len(extents))), "no order")
    turning = [a for a in tiling.order if tiling.sizes[a] < extents[a]]
    outer = len(op.reach.output)
    require(sorted(turning, key=lambda a: a >= outer) == turning, "a sum is not complete")
    found = turned(plan.network, tiling)
    require(found.boxes == group.subgroups, "other boxes")
    names = [plan.network.tensors[t].name for t in op.inputs]
    crossing = dict.fromkeys(names, 0)
    for name, n in zip(names, found.crossing, strict=True):
        crossing[name] += n
    y = plan.network.tensors[op.outputs[0]]
    need = sum(up(part, plan.chip.alignment_bytes) for part in found.parts)
    return Facts(need, crossing | {y.name: y.bytes}, found.weights, _always, None)


def tiled(rng: Random) -> Made:
    return rng.choice((bands, bands, blocks, boxes))(rng)


def rings(rng: Random) -> Made:
    plan = ring_plan(rng)
    return Made(plan, ring_facts)


# -- modules and patches -------------------------------------------------------------------------------


def modules(rng: Random) -> Made:
    """What the simple method makes of networks of modules: sections, patches, joins, streams."""
    while True:
        drawn = random_module_network(rng, long_skips=rng.choice([0, 0.4]), extra_outputs=0.1)
        network = drawn.network()
        if len(network.operators) > 14:
            continue
        budget = max(64, int(sum(t.bytes for t in network.tensors) * rng.choice([0.1, 0.2, 0.4, 2])))
        options = BranchOptions(rules=rng.choice(("paper", "ours")), long_skip=rng.choice([8, 3]))
        try:
            plan = plan_branches(network, replace(NPU, name="npu"), budget, options).plan
        except Infeasible:
            continue
        # The referee counts byte by byte: small ones only.
        if plan.budget < 1 << 13 and sum(t.bytes for t in plan.network.tensors) < 1 << 15:
            return Made(plan)


def patches(rng: Random) -> Made:
    """An operator over tensors in patches that stream in pieces; and plans of other networks with patches."""
    match rng.randrange(4):
        case 0:
            return modules(rng)
        case 1:
            while True:
                plan = legal_plan(rng)
                if any(t.patches for t in plan.network.tensors):
                    return Made(plan)
    while True:
        g = _windows(rng)
        if g is not None:
            break
    patch = rng.randint(1, 4), rng.randint(1, 4)
    plain = rng.choice(("", "", "y", "x"))
    network = stored_network(g, patch, width=rng.choice((1, 2)), weights=rng.randint(0, 40), plain=plain)
    streamed = rng.choice(("x", "xy", "y")) if not plain else {"x": "y", "y": "x"}[plain]
    size = {t.name: t.bytes for t in network.tensors}
    for workspace in range(sum(size.values()) + 50):
        op = replace(network.operators[0], workspace=workspace)
        roomy = replace(network, operators=(op,))
        program: list[Instruction] = [] if "x" in streamed else [Load("x", 0)]
        program += [] if "y" in streamed else [Alloc("y", size["x"])]
        program += [Scratch("f", size["x"] + size["y"]), Run("f", tuple((t, size[t]) for t in streamed))]
        program += [] if "y" in streamed else [Store("y")]
        try:
            plan = certify(
                roomy, Chip("c", 1), 2 * sum(size.values()) + 64, program, status="feasible",
                lower_bound_bytes=0, seconds=0, options={"weights": rng.choice(("streamed", "resident"))},
            )  # fmt: skip
        except IllegalPlan:
            continue
        return Made(plan)
    raise AssertionError("nothing streams")


def _windows(rng: Random) -> Geometry | None:
    kind = rng.choice(("conv", "depthwise", "pool"))
    groups, images = rng.randint(1, 2), rng.choice((1, 1, 2))
    fan_in, fan_out = (
        (1 if kind != "conv" else rng.randint(1, 2)),
        (1 if kind == "pool" else rng.randint(1, 2)),
    )
    size = rng.randint(1, 6), rng.randint(1, 4)
    kernel, stride = (rng.randint(1, 3), rng.randint(1, 2)), (rng.randint(1, 3), 1)
    dilation, padding = (rng.randint(1, 3), 1), tuple(rng.randint(0, 2) for _ in range(4))
    out = [
        (size[i] + padding[i] + padding[i + 2] - (kernel[i] - 1) * dilation[i] - 1) // stride[i] + 1
        for i in (0, 1)
    ]
    if min(out) < 1:
        return None
    ins, outs = groups * fan_in, groups * fan_out
    if rng.random() < 0.5:
        return Geometry(
            kind,
            (images, ins, *size),
            (images, outs, *out),
            kernel,
            stride,
            padding,
            dilation,
            groups,  # type: ignore[arg-type]
        )
    return Geometry(
        kind,
        (images, *size, ins),
        (images, *out, outs),
        kernel,
        stride,
        padding,
        dilation,
        groups,
        "NHWC",  # type: ignore[arg-type]
    )


PARTS = {
    "program": 10.0,
    "groups": 4.0,
    "options": 0.5,
    "budget": 0.5,
    "chip": 0.5,
    "result": 2.0,
    "timing": 1.0,
}
NETWORK = {"network": 1.0}

KINDS: dict[str, Kind] = {
    "placement": Kind(placement, {**PARTS, **NETWORK, "sections": 1.0}),
    "held": Kind(held, {**PARTS, **NETWORK, "pins": 5.0, "state": 5.0}),
    "memories": Kind(
        lambda rng: Made(legal_memory_plan(rng)), {**PARTS, **NETWORK, "chip": 3.0, "result": 4.0}
    ),
    "repeats": Kind(repeats, {**PARTS, "network": 6.0}),
    "tiled": Kind(tiled, {**PARTS, "groups": 10.0, "program": 6.0}),
    "rings": Kind(rings, {**PARTS, "groups": 10.0, "program": 8.0}),
    "sections": Kind(modules, {"sections": 8.0, "program": 4.0, "result": 0.5, "options": 0.3}),
    "patches": Kind(patches, {**PARTS, "network": 5.0, "sections": 0.5}),
    "timed": Kind(timed, {**PARTS, "timing": 6.0, "chip": 3.0, "result": 4.0, "network": 1.0}),
}
