"""Section of docs/hax-conn.md: what hangs on the constants of the contention model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from functools import cache
from statistics import mean

from hax_conn_cases import PAIRS, SETS, TEN, XAVIER, pair, percent, side_by_side, soc_of

from onchip.machines.contention import NO_CONTENTION, Contention, ThreeRegions
from onchip.machines.soc import SoC
from onchip.multi_dnn.baselines import baselines
from onchip.multi_dnn.dp import PairOptions, solve_pair
from onchip.multi_dnn.objective import Objective
from onchip.multi_dnn.schedule import Schedule
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.workload import Workload

FACTORS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
"""On what the memory costs: `mrmc` and `rate` of every unit."""
STEP = 0.2
"""One constant more and less by so much, as a fraction."""
CASES = (("googlenet", "googlenet"), ("vgg19", "resnet152"))
"""Table 2's network twice, and experiment 1's."""


def sensitivity() -> Iterator[str]:
    yield from _one_by_one()
    yield ""
    yield from _stronger()
    yield ""
    yield from _wrong_constants()


def _one_by_one() -> Iterator[str]:
    heads = [f"{' and '.join(case)}, ms: {sign}" for case in CASES for sign in ("less", "more")]
    yield f"| constant of `light`, {100 * STEP:.0f} % less or more | " + " | ".join(heads) + " |"
    yield "|---|" + "--:|" * len(heads)
    for field in fields(Contention):
        cells = []
        for first, second in CASES:
            for factor in (1 - STEP, 1 + STEP):
                cells.append(f"{_best(first, second, _scaled({field.name: factor})):.3f}")
        yield f"| {field.name} | " + " | ".join(cells) + " |"
    cells = [f"{_best(*case, _scaled({})):.3f}" for case in CASES for _ in range(2)]
    yield "| none | " + " | ".join(cells) + " |"


def _stronger() -> Iterator[str]:
    heads = (
        "GPU & DLA",
        "best of the paper's baselines",
        "onchip",
        "saved over the GPU alone, %",
        "over the best, %",
    )
    yield (
        "| contention of `light`, times | " + " | ".join(f"GoogleNet twice: {head}" for head in heads) + " |"
    )
    yield "|--:|" + "--:|" * len(heads)
    for factor in FACTORS:
        model = stronger(soc_of(XAVIER), factor)
        workload = replace(pair(XAVIER, "googlenet", "googlenet", "light"), model=model)
        found = {one.name: one.cost_ms(Objective.LATENCY) for one in baselines(workload)}
        del found["contention-blind"]
        ours, best = _best("googlenet", "googlenet", model), min(found.values())
        yield (
            f"| {factor:g} | {found['whole networks']:.3f} | {best:.3f} | {ours:.3f} |"
            f" {percent(1 - ours / found['gpu alone'])} | {percent(1 - ours / best)} |"
        )


def _wrong_constants() -> Iterator[str]:
    heads = [f"{c}: mean | most" for c in SETS]
    yield "| planned for | " + " | ".join(f"memory is {head}" for head in heads) + " |"
    yield "|---|" + "--:|" * (2 * len(heads))
    for planned in ("none", *SETS):
        cells = []
        for real in SETS:
            lost = [loss(i, j, planned, real) for i, j in PAIRS]
            cells += [percent(mean(lost)), percent(max(lost))]
        yield f"| {planned} | " + " | ".join(cells) + " |"


def loss(i: int, j: int, planned: str, real: str) -> float:
    """What a pair on Xavier loses by a schedule made for other constants, as a fraction of the optimum."""
    schedule = _blind(i, j) if planned == "none" else _schedule(i, j, planned)
    workload = pair(XAVIER, TEN[i], TEN[j], real)
    return simulate(workload, schedule).makespan_ms / side_by_side(XAVIER, TEN[i], TEN[j], real).cost - 1


def _schedule(i: int, j: int, contention: str) -> Schedule:
    return side_by_side(XAVIER, TEN[i], TEN[j], contention).result.solution.schedule


@cache
def _blind(i: int, j: int) -> Schedule:
    """The best schedule for a memory without contention, its order enforced."""
    blind = replace(pair(XAVIER, TEN[i], TEN[j], "light"), model=NO_CONTENTION)
    return solve_pair(blind, options=PairOptions(prove=False)).schedule


def stronger(soc: SoC, factor: float) -> ThreeRegions:
    """A SoC's `light` model with all that the memory costs multiplied."""
    return _multiplied(soc, {"mrmc": factor, "rate": factor})


def _scaled(factors: dict[str, float]) -> ThreeRegions:
    """Xavier's `light` model with some constants of every unit multiplied."""
    return _multiplied(soc_of(XAVIER), factors)


def _multiplied(soc: SoC, factors: dict[str, float]) -> ThreeRegions:
    rows = []
    for unit in soc.unit_names:
        constants = soc.contention["light"][unit]
        rows.append(
            replace(constants, **{n: factor * getattr(constants, n) for n, factor in factors.items()})
        )
    return ThreeRegions(tuple(rows), soc.peak_gb_per_second)


def _best(first: str, second: str, model: ThreeRegions) -> float:
    """The optimum of a pair on Xavier under a model of its own, ms."""
    workload: Workload = replace(pair(XAVIER, first, second, "light"), model=model)
    return solve_pair(workload).cost_ms
