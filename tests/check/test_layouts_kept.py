"""What makes a plan anew from another one leaves its tensors in tiles as they lie in DRAM."""

from __future__ import annotations

import time
from dataclasses import replace

from nest_networks import nest_of, network_of
from onchip.by_length.stretch import at_network
from onchip.check import certify
from onchip.check.as_nests.plan import AsNests, in_nests
from onchip.machines.chip import Chip
from onchip.machines.chip_parts import Rates
from onchip.planners.joint import begun
from onchip.planners.joint.energy import with_energy
from onchip.planners.placement.caches import Caches
from onchip.plans import Plan, TensorLayout
from timed_plans import TILES, timed_plan

PAIR = network_of(
    "m=8 d=4 f=6 y=4",
    ["up MatMul: h(m,f) = x(m,d) A(d,f)", "down MatMul: z(m,y) = h(m,f) B(f,y)"],
    ["x"],
    ["z"],
)

CHIP = Chip("c", 1, "int8", rates=Rates(dram_picojoules_per_byte=100.0), tiles=TILES)


def tiled() -> Plan:
    """A product, and another one that reads what it stored, in boxes of 4 x 3 that are tiles."""
    texts = (
        "keep x A\nfor m 4\n  for f 3\n    keep h\n    run up",
        "keep B z\nfor m 4\n  for f 3\n    keep h\n    run down",
    )
    nests = [nest_of(PAIR, text.splitlines())[0] for text in texts]
    plain = timed_plan(PAIR.network, nests, [["up"], ["down"]])
    return certify(
        plain.network,
        CHIP,
        plain.budget,
        plain.program,
        status="feasible",
        lower_bound_bytes=0,
        seconds=0.0,
        groups=plain.groups,
        layouts=(TensorLayout("h", (8, 6), (4, 3)),),
        options={"objective": "dram"},
        dram_lower_bound_bytes=0,
    )


def same(made: Plan | None, plan: Plan) -> None:
    assert made is not None
    assert made.layouts == plan.layouts
    assert made.result.latency_picoseconds == plan.result.latency_picoseconds


def test_a_plan_of_least_energy_keeps_them() -> None:
    plan = tiled()
    same(with_energy(plan, CHIP, (), time.perf_counter()), plan)


def test_a_plan_that_begins_caches_keeps_them() -> None:
    plan = tiled()
    same(begun._beside(plan, plan.budget, Caches(), 0), plan)


def test_a_plan_for_another_length_keeps_them() -> None:
    """For a network in which they are none of their tensors' there is no plan."""
    plan = tiled()
    same(at_network(plan, PAIR.network), plan)
    other = replace(plan, layouts=(TensorLayout("h", (6, 8), (3, 4)),))
    assert at_network(other, PAIR.network) is None


def test_a_plan_in_nests_keeps_them() -> None:
    plan = tiled()
    same(in_nests(AsNests((), plan.result.dram_bytes, plan.result.peak_bytes, "in place", "", plan)), plan)
