"""Outputs written over dying inputs: the least budget, the searches, the addresses and the program."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from onchip.base.errors import Infeasible, NegativeAnswer, UsageError
from onchip.check import check
from onchip.machines.chip import Chip
from onchip.network import Geometry, Network, OperatorSpec
from onchip.network.json import read_network
from onchip.planners.limits import Limits
from onchip.planners.placement import (
    PlacementOptions,
    Problem,
    budgets,
    minimum_peak,
    minimum_traffic,
    plan,
)
from onchip.planners.placement.addresses import Rectangle, Relocation, place, relocation_bytes
from onchip.planners.placement.addresses_exact import place_exact
from onchip.planners.placement.dnc import divide
from onchip.planners.placement.partition import partition_bound
from onchip.plans import Alloc, Plan
from oracles import addresses, states, twin
from oracles.compare import (
    plan_against_addresses,
    plan_against_states,
    replayed,
    some_rules,
    traffic_against_states,
)
from oracles.twin import WEAK_IN_PLACE, Rules
from strategies import SMALL_SIZES, Case, cases, random_case, random_tight_case

GENERIC = Chip("generic", 1)
IN_PLACE = PlacementOptions(in_place=True)


def network(sizes: dict[str, int], lines: list[str], outputs: str, views: str = "") -> Network:
    """Sizes by tensor, operators as `a b -> c` (`a b => c` when element-wise), output names."""
    specs = []
    for i, line in enumerate(lines):
        arrow = "=>" if "=>" in line else "->"
        reads, writes = (side.split() for side in line.split(arrow))
        shape = (sizes[writes[0]],)
        geometry = Geometry("elementwise", shape, shape) if arrow == "=>" else None
        specs.append(OperatorSpec(f"op{i}", "Any", reads, writes, 0, 0, geometry))
    written = {name for spec in specs for name in spec.outputs} | set(views.split())
    return Network.build(
        "small",
        [(name, size, "activation" if name in written else "input") for name, size in sizes.items()],
        specs,
        outputs.split(),
        views=[(view, view.rstrip("'"), 0) for view in views.split()],
    )


def overs(made: Plan) -> list[Alloc]:
    return [i for i in made.program if isinstance(i, Alloc) and i.over is not None]


# -- which inputs, and the least budget ----------------------------------------------------------------------


def test_only_whole_inputs_of_the_outputs_size_may_be_written_over() -> None:
    net = network(
        {"x": 4, "s": 1, "a": 4, "w": 8, "w'": 4, "b": 4, "x'": 4, "c": 4, "d": 4, "e": 4},
        ["x s => a", "w' a => b", "x' b => c", "c -> d", "c d => e"],
        "e",
        "w' x'",
    )
    named = [{net.tensors[t].name for t in row} for row in Problem.of(net, in_place=True).overwrites]
    # Not the scale that is broadcast, not the half of w; x through a view of all of it; only element-wise.
    assert named == [{"x"}, {"a"}, {"x", "b"}, set(), {"c", "d"}]
    assert Problem.of(net).overwrites == ()


def test_the_least_budget_depends_on_who_reads_last() -> None:
    # x must die with the one that needs room: b first, then a over x.
    net = network({"x": 10, "a": 10, "b": 2, "y": 1}, ["x => a", "x -> b", "a b -> y"], "y")
    problem = Problem.of(net, in_place=True)
    assert Problem.of(net).minimum_budget == 20
    assert problem.minimum_budget == 13
    assert problem.in_order((1, 0, 2)).minimum_budget == 13
    assert problem.in_order((0, 1, 2)).minimum_budget == 20
    made = plan(net, GENERIC, 13, IN_PLACE)
    assert (made.result.status, made.result.traffic_bytes) == ("optimal", 0)
    assert [(i.tensor, i.over) for i in overs(made)] == [("a", "x")]
    with pytest.raises(Infeasible) as refused:
        plan(net, GENERIC, 12, IN_PLACE)
    assert (refused.value.needs, dict(refused.value.tensors)) == (13, {"a": 10, "b": 2, "y": 1})
    with pytest.raises(Infeasible) as refused:
        plan(net, GENERIC, 13, PlacementOptions(in_place=True, order="given"))
    assert refused.value.needs == 20


def test_two_operators_cannot_both_be_the_last_to_read() -> None:
    net = network(
        {"x": 10, "a": 10, "b": 10, "y": 1, "z": 1}, ["x => a", "x => b", "a -> y", "b -> z"], "y z"
    )
    assert Problem.of(net, in_place=True).minimum_budget == 20
    assert minimum_peak(Problem.of(net, in_place=True)).value == 21


def test_budgets_follow_the_option() -> None:
    net = network({"x": 10, "a": 10, "b": 2, "y": 1}, ["x => a", "x -> b", "a b -> y"], "y")
    apart, shared = budgets(net, GENERIC), budgets(net, GENERIC, in_place=True)
    assert (apart.mr, apart.mp) == (20, 22)
    assert (shared.mr, shared.mp) == (13, 13)
    given_order = budgets(net, GENERIC, in_place=True, order="given")
    assert (given_order.mr, given_order.mp) == (20, 20)


# -- the searches --------------------------------------------------------------------------------------------


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(cases(7, in_place=True))
def test_traffic_peak_and_least_budget_equal_exact_states(case: Case) -> None:
    traffic_against_states(case, some_rules(Random(0), 2))


@pytest.mark.thorough
def test_traffic_peak_and_least_budget_equal_exact_states_on_many() -> None:
    hard = 0
    for seed in range(300):
        rng = Random(seed)
        hard += traffic_against_states(random_case(rng, 8, in_place=True), some_rules(rng, 2)) > 0
    assert hard > 60


@pytest.mark.campaign
def test_traffic_peak_and_least_budget_equal_exact_states_on_many_more() -> None:
    hard = 0
    for seed in range(10_000, 10_700):
        rng = Random(seed)
        case = random_case(rng, 8, min_operators=rng.choice((1, 6)), in_place=True)
        hard += traffic_against_states(case, some_rules(rng, 1)) > 0
    assert hard > 150


@pytest.mark.parametrize("weak", WEAK_IN_PLACE, ids=str)
def test_weakened_rules_are_caught(weak: Rules) -> None:
    wrong = 0
    for seed in (*range(10), 17, 20, 47, 59):
        case = random_case(Random(seed), 7, in_place=True)
        what = (case.network, case.budget, case.alignment)
        least = states.least_traffic(*what, in_place=True)
        assert twin.least_traffic(*what, Rules(in_place=True, r2="chains")) == least
        wrong += twin.least_traffic(*what, weak) != least
    assert wrong


def test_room_that_is_shared_never_costs_anything() -> None:
    better = 0
    for seed in range(150):
        rng = Random(seed)
        case = random_case(rng, 9, in_place=True)
        apart, shared = (Problem.of(case.network, case.alignment, in_place=p) for p in (False, True))
        assert shared.minimum_budget <= apart.minimum_budget
        assert minimum_peak(shared).value <= minimum_peak(apart).value
        budget = apart.minimum_budget
        least = [minimum_traffic(problem, budget).value for problem in (apart, shared)]
        assert least[1] <= least[0]
        better += least[1] < least[0]
    assert better


@pytest.mark.thorough
def test_dividing_and_beams_know_about_shared_room() -> None:
    apart = paying = 0
    for seed in range(150):
        rng = Random(seed)
        case = random_case(rng, 9, min_operators=5, in_place=True)
        problem = Problem.of(case.network, case.alignment, in_place=True)
        least = minimum_traffic(problem, case.budget).value
        divided = divide(problem, case.budget, Limits(), shortest=1)
        assert divided.found.value == divided.found.bound == least
        assert (
            replayed(case.network, case.budget, case.alignment, divided.found.steps, in_place=True) == least
        )
        order = minimum_traffic(problem, case.budget, beam_width=1)
        assert order.value >= least
        assert partition_bound(problem, order.order, case.budget, Limits(time_limit=5.0), first=3) <= least
        apart, paying = apart + (divided.exact_cuts > 0), paying + (least > 0)
    assert apart > 20
    assert paying > 30


@pytest.mark.parametrize("how", [{"strategy": "greedy"}, {"strategy": "ilp"}, {"inputs": "literal"}])
def test_what_knows_nothing_of_it_is_refused(how: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(how.values()))):
        PlacementOptions(in_place=True, **how)


# -- addresses and programs ----------------------------------------------------------------------------------


def compared(seeds: Iterable[int]) -> tuple[int, int]:
    """Cases compared with exhaustive placement, and how many had traffic."""
    count = paying = 0
    for seed in seeds:
        rng = Random(seed)
        if seed % 2:
            case = random_tight_case(rng, in_place=True)
        else:
            case = random_case(rng, 5, sizes=SMALL_SIZES, in_place=True)
        if case.budget > 14 * case.alignment:
            continue
        try:
            _, joint = plan_against_addresses(case)
        except addresses.Undecided:
            continue
        except AssertionError as difference:
            raise AssertionError(f"seed {seed}: {difference}") from difference
        count, paying = count + 1, paying + (joint > 0)
    return count, paying


@pytest.mark.thorough
def test_plans_of_five_operators_equal_exhaustive_placement() -> None:
    count, paying = compared(range(120))
    assert count > 100
    assert paying > 4


@pytest.mark.slow
def test_plans_of_five_operators_equal_exhaustive_placement_on_many() -> None:
    count, paying = compared([*range(1000, 1500), 2063])
    assert count > 400
    assert paying > 30


@pytest.mark.thorough
def test_a_plans_status_is_honest() -> None:
    for seed in range(40):
        plan_against_states(random_case(Random(seed), 9, in_place=True))


def test_a_tensor_that_took_anothers_place_is_moved_at_its_own_price() -> None:
    # One place: x until step 2, its heir y from then on; x has a copy, y has none.
    place_of_two = Rectangle(0, 0, 6, 4, (0, 2, 5), True, heirs=((2, 1, False),))
    other = Rectangle(2, 0, 6, 1, copied=True)
    assert relocation_bytes([place_of_two, other], [Relocation(0, 0, 2)]) == 4
    assert relocation_bytes([place_of_two, other], [Relocation(0, 2, 5)]) == 8
    assert relocation_bytes([place_of_two, other], [Relocation(0, 0, 2), Relocation(0, 2, 5)]) == 12


def heirs_and_walls(rng: Random) -> tuple[list[Rectangle], int]:
    """Places that pass from tensor to tensor, and in every step scratch that wants all that they leave."""
    rectangles = []
    for i in range(rng.randint(5, 7)):
        start = rng.randrange(6)
        end = start + rng.randint(2, 3)
        inner = [u for u in range(start + 1, end - 1) if rng.random() < 0.7]
        uses = tuple(sorted({start, *inner, end - 1}))
        heirs = [(u, 10 * i + u, rng.random() < 0.5) for u in inner if rng.random() < 0.5]
        copied = rng.random() < 0.5
        rectangles.append(Rectangle(10 * i, start, end, rng.randint(1, 3), uses, copied, heirs=tuple(heirs)))
    held = [sum(r.size for r in rectangles if r.start <= step < r.end) for step in range(9)]
    budget = max(held) + rng.randint(0, 2)
    walls = [(step, budget - n) for step, n in enumerate(held) if n < budget]
    rectangles += [Rectangle(100 + step, step, step + 1, n, movable=False) for step, n in walls]
    return rectangles, budget


def test_moves_of_places_that_pass_on_cost_no_more_than_they_must() -> None:
    moved = inherited = 0
    for seed in (0, 1, 2, 12, 17, 29, 56, 69, 106, 121):  # mostly such as cannot stay where they are
        rectangles, budget = heirs_and_walls(Random(seed))
        found, exact = (how(rectangles, budget, time_limit=10.0) for how in (place, place_exact))
        assert exact.lower_bound == exact.relocation_bytes <= found.relocation_bytes, seed
        assert found.relocation_bytes == relocation_bytes(rectangles, found.relocations), seed
        assert found.lower_bound <= exact.relocation_bytes, seed
        moved += exact.relocation_bytes > 0
        inherited += any(
            rectangles[m.rectangle].holder(m.after)[0] != rectangles[m.rectangle].item
            for m in exact.relocations
        )
    assert moved > 5
    assert inherited > 2


def test_a_chain_of_outputs_over_inputs_stays_where_it_is() -> None:
    lines = ["x -> a", "a => b", "b => c", "c => d", "d x -> y"]
    net = network(dict.fromkeys("xabcdy", 8), lines, "y")
    made = plan(net, GENERIC, 24, IN_PLACE)
    assert made.result.traffic_bytes == 0
    assert check(made) == made.result
    tight = network(dict.fromkeys("xabcd", 8) | {"y": 1}, lines, "y")
    made = plan(tight, GENERIC, 17, IN_PLACE)
    assert (made.result.traffic_bytes, made.result.status) == (0, "optimal")
    assert [(i.tensor, i.over) for i in overs(made)] == [("b", "a"), ("c", "b"), ("d", "c")]
    assert len({i.address for i in overs(made)}) == 1
    assert made.options["in_place"] is True
    # Apart, each of these steps takes three tensors' room.
    assert plan(tight, GENERIC, 17).result.traffic_bytes > 0


def test_addresses_that_forbid_to_write_over_an_input_are_an_answer() -> None:
    net = network({"x": 10, "a": 10, "y": 1}, ["x => a", "a -> y"], "y")
    with pytest.raises(NegativeAnswer, match="no addresses"):
        plan(net, GENERIC, 15, PlacementOptions(in_place=True, pin=("x@0", "a@5")))
    made = plan(net, GENERIC, 15, PlacementOptions(in_place=True, pin=("x@0", "a@0")))
    assert made.result.traffic_bytes == 0


@pytest.mark.parametrize(
    ("name", "mr", "mp", "at_mr"),
    [("resnet50", 1_605_632, 1_806_336, 4_816_896), ("densenet121", 1_605_632, 1_806_336, 401_408)],
)
def test_known_values(shared: Path, name: str, mr: int, mp: int, at_mr: int) -> None:
    net = read_network(shared / f"bench/networks/{name}.fused.json")
    sizes = budgets(net, GENERIC, in_place=True)
    assert (sizes.mr, sizes.mp, sizes.mp_complete) == (mr, mp, True)
    made = plan(net, GENERIC, mr, IN_PLACE)
    assert (made.result.status, made.result.traffic_bytes) == ("optimal", at_mr)
    assert bool(overs(made)) == (name == "resnet50")
    assert plan(net, GENERIC, mp, IN_PLACE).result.traffic_bytes == 0
