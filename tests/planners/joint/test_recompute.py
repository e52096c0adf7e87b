"""Operators that run again: what is found against all repeats that there are, and elementary moves."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from nest_networks import network_of
from onchip.base.errors import Infeasible, UsageError
from onchip.check import check
from onchip.machines.chip import load_chip
from onchip.network import Network, OperatorSpec, Reach, Side
from onchip.network.repeats import folded, has_repeats
from onchip.planners.fusion import FusionProblem
from onchip.planners.joint.options import DEFAULTS, FusedPlacementOptions, JointOptions, fusion_options
from onchip.planners.joint.planning import plan
from onchip.planners.placement import Problem, minimum_traffic
from oracles.joint import least_dram_bytes
from oracles.repeating import barrier_maps, least_with_reruns, with_any_repeats
from timed_plans import TILES, few_looks

GENERIC = load_chip("generic")


def _small(rng: Random) -> Network:
    count = rng.randint(3, 4)
    tensors: list[tuple[str, int, str]] = [("x", rng.randint(1, 4), "input")]
    operators = []
    fan = rng.random() < 0.7  # the last operator reads what the first one made
    for n in range(count):
        reads = dict.fromkeys((tensors[-1][0], *rng.sample([t[0] for t in tensors], rng.randint(0, 1))))
        if fan and n == count - 1:
            reads = dict.fromkeys((f"t{n - 1}", "t0"))
        room = rng.choice((0, 0, 14))
        operators.append(OperatorSpec(f"o{n}", "Any", list(reads), [f"t{n}"], rng.randint(0, 2), room))
        tensors.append((f"t{n}", 12 if fan and not n else rng.choice((1, 2, 4, 12)), "activation"))
    read = {t for op in operators for t in op.inputs}
    outputs = [t for t, _, kind in tensors if kind == "activation" and t not in read]
    return Network.build("small", tensors, operators, outputs)  # type: ignore[arg-type]


def _least_of_repeats(network: Network, budget: int) -> int | None:
    """The least of placement on every network with repeats, their weights counted."""
    found = []
    for other in with_any_repeats(network):
        problem = Problem.of(other, 1)
        if problem.minimum_budget <= budget:
            moved = minimum_traffic(problem, budget).value
            found.append(moved + other.weight_bytes - network.weight_bytes)
    return min(found, default=None)


@pytest.mark.parametrize("seed", range(60))
def test_networks_with_repeats_hold_all_that_second_runs_can_do(seed: int) -> None:
    rng = Random(seed)
    network = _small(rng)
    least = Problem.of(network, 1).minimum_budget
    for budget in (least, least + rng.randint(1, 6)):
        assert _least_of_repeats(network, budget) == least_with_reruns(network, budget)


@pytest.mark.thorough
@pytest.mark.parametrize("nests", [False, True])
@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=() if n < 4 or n == 5 else pytest.mark.campaign) for n in range(12)]
)
def test_nothing_that_runs_again_moves_less_than_what_is_found(seed: int, nests: bool) -> None:
    rng = Random(seed)
    network = barrier_maps(rng)
    budget = int(sum(t.bytes for t in network.tensors) * rng.choice((0.15, 0.25, 0.4, 0.6)))
    options = FusedPlacementOptions(nests=nests, concat_views=False, overlap=False)
    try:
        once = plan(network, GENERIC, budget, *options.halves())
    except Infeasible:
        return
    made = plan(network, GENERIC, budget, *replace(options, recompute=True).halves())
    assert made.result.dram_bytes <= once.result.dram_bytes
    assert has_repeats(made.network) == (made.result.dram_bytes < once.result.dram_bytes)
    assert folded(made.network).network.fingerprint == network.fingerprint
    assert check(made) == made.result
    found = [_moves(other, budget, nests) for other in with_any_repeats(network)]
    assert made.result.dram_bytes == min(moved for moved in found if moved is not None)


def _moves(network: Network, budget: int, nests: bool) -> int | None:
    problem = FusionProblem.of(network, GENERIC, fusion_options(DEFAULTS), budget)
    return least_dram_bytes(problem, nests=nests)


def test_recompute_goes_with_tiles_only() -> None:
    with pytest.raises(UsageError, match="--recompute"):
        JointOptions(fuse=False, recompute=True)
    with pytest.raises(UsageError, match="recompute"):
        JointOptions(fuse=True, recompute=1)  # type: ignore[arg-type]


def test_the_bound_holds_where_each_run_makes_another_part() -> None:
    """Every fourth row for one reader, column for another: made once, all is needed; twice, half."""
    elements = Reach((8, 8), ((Side(8, 0), Side(8, 1)),))
    rows = Reach((2, 8), ((Side(8, 0, stride=4), Side(8, 1)),))
    columns = Reach((8, 2), ((Side(8, 0), Side(8, 1, stride=4)),))
    network = Network.build(
        "rows and columns",
        [("x", 64, "input"), ("h", 64, "activation"), ("y", 16, "activation"), ("z", 16, "activation")],
        [
            OperatorSpec("a", "Exp", ["x"], ["h"], reach=elements),
            OperatorSpec("b", "MaxPool", ["h"], ["y"], reach=rows),
            OperatorSpec("c", "MaxPool", ["h"], ["z"], reach=columns),
        ],
        ["y", "z"],
    )
    options = FusedPlacementOptions()
    once = plan(network, GENERIC, 48, *options.halves())
    made = plan(network, GENERIC, 48, *replace(options, recompute=True).halves())
    assert once.result.dram_bytes == once.result.dram_lower_bound_bytes == 96
    assert has_repeats(made.network)
    assert made.result.dram_bytes == 64
    assert made.result.dram_lower_bound_bytes == 48


def test_a_plan_that_runs_an_operator_again_takes_less_time_and_energy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few_looks(monkeypatch)
    worded = network_of(
        "m=8 d=1 f=8 q=1",
        [
            "up MatMul: a(m,f) = x(m,d) A(d,f)",
            "red Sum: g(q) = a(m,f)",
            "mul Mul: y(m,f) = a(m,f) g(*q)",
        ],
        ["x"],
        ["y"],
    )
    rates = replace(GENERIC.rates, dram_picojoules_per_byte=64.0, mac_picojoules=0.3)
    chip = replace(GENERIC, tiles=TILES, rates=rates)
    for objective, figure in (("latency", "latency_picoseconds"), ("energy", "energy_picojoules")):
        options = FusedPlacementOptions(objective=objective)  # type: ignore[arg-type]
        once = plan(worded.network, chip, 48, *options.halves())
        made = plan(worded.network, chip, 48, *replace(options, recompute=True).halves())
        assert [op.name for op in made.network.operators if op.repeats is not None] == ["up.again"]
        assert getattr(made.result, figure) < getattr(once.result, figure)
        assert check(made) == made.result
        bound = made.result.latency_lower_bound_picoseconds
        assert bound == once.result.latency_lower_bound_picoseconds
