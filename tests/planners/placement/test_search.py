"""The capacity-only searches: known values, rules that agree, limits that are told honestly."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.machines.chip import Chip
from onchip.network import Network, OperatorSpec
from onchip.network.json import read_network
from onchip.planners.limits import Limits
from onchip.planners.placement import Problem, Rules, Step, budgets, minimum_peak, minimum_traffic
from strategies import Case, cases

NO_RULES = Rules(**{f.name: False for f in fields(Rules)})


def factor_two() -> Network:
    """Where a safe move that forgets the write of what it makes costs twice the optimum."""
    return Network.build(
        "factor two",
        [
            ("t0", 1, "input"),
            *[(name, size, "activation") for name, size in (("t1", 1), ("t2", 5), ("t3", 5), ("y", 1))],
        ],
        [
            OperatorSpec("a", "A", ["t0"], ["t1"]),
            OperatorSpec("b", "B", ["t0"], ["t2"]),
            OperatorSpec("c", "C", ["t2"], ["t3"]),
            OperatorSpec("d", "D", ["t1", "t3"], ["y"]),
        ],
        ["y"],
    )


def replay(problem: Problem, steps: tuple[Step, ...], budget: int) -> int:
    """What a schedule costs, move by move; asserts that every step is possible."""
    done: set[int] = set()
    made = {t for t in range(len(problem.size)) if problem.graph_inputs >> t & 1}
    copied = set(made)
    loaded_once: set[int] = set()
    resident: set[int] = set()
    paid = 0
    for step in steps:
        for t in step.evict:
            assert t in resident
            resident.remove(t)
            if t not in copied:
                paid += problem.cost[t]
                copied.add(t)
        for t in problem.inputs[step.operator]:
            assert t in made
            if t not in resident:
                assert t in copied
                first = problem.graph_inputs >> t & 1 and t not in loaded_once
                paid += 0 if first else problem.cost[t]
                loaded_once.add(t)
                resident.add(t)
        made.update(problem.outputs[step.operator])
        resident.update(problem.outputs[step.operator])
        copied.update(t for t in problem.outputs[step.operator] if problem.graph_outputs >> t & 1)
        held = sum(problem.size[t] for t in resident) + problem.workspace[step.operator]
        assert held <= budget
        assert step.operator not in done
        done.add(step.operator)
        live = {t for t in resident if problem.readers[t] & ~sum(1 << v for v in done)}
        resident &= live
    assert len(done) == len(problem.inputs)
    return paid


def test_the_factor_two_of_the_safe_move_is_needed() -> None:
    problem = Problem.of(factor_two())
    found = minimum_traffic(problem, 10)
    assert (found.value, found.bound, found.complete) == (1, 1, True)


@pytest.mark.thorough
@given(cases(6), st.tuples(*[st.booleans() for _ in fields(Rules)]))
@settings(max_examples=300, deadline=None)
def test_every_combination_of_rules_finds_the_same_value(case: Case, switches: tuple[bool, ...]) -> None:
    problem = Problem.of(case.network, case.alignment)
    pruned, plain = (minimum_traffic(problem, case.budget, rules) for rules in (Rules(*switches), NO_RULES))
    assert pruned.complete
    assert plain.complete
    assert pruned.value == plain.value
    assert minimum_peak(problem, Rules(*switches)).value == minimum_peak(problem, NO_RULES).value


@pytest.mark.thorough
@given(cases(8))
@settings(max_examples=200, deadline=None)
def test_a_schedule_costs_what_the_search_says(case: Case) -> None:
    problem = Problem.of(case.network, case.alignment)
    found = minimum_traffic(problem, case.budget)
    assert replay(problem, found.steps, case.budget) == found.value == found.bound


@pytest.mark.thorough
@given(cases(8))
@settings(max_examples=200, deadline=None)
def test_the_peak_order_needs_exactly_its_peak(case: Case) -> None:
    problem = Problem.of(case.network, case.alignment)
    peak = minimum_peak(problem)
    assert not any(step.evict for step in peak.steps)
    assert replay(problem, peak.steps, peak.value) == 0
    with pytest.raises(AssertionError):
        replay(problem, peak.steps, peak.value - 1)
    assert minimum_traffic(problem, peak.value).value == 0


@pytest.mark.thorough
@given(cases(7))
@settings(max_examples=100, deadline=None)
def test_a_fixed_order_is_kept_and_never_cheaper(case: Case) -> None:
    problem = Problem.of(case.network, case.alignment)
    fixed = minimum_traffic(problem.in_order(case.network.order), case.budget)
    assert fixed.order == case.network.order
    assert fixed.complete
    assert fixed.value >= minimum_traffic(problem, case.budget).value


def test_a_budget_below_the_minimum_is_refused() -> None:
    problem = Problem.of(factor_two())
    with pytest.raises(ValueError, match="below the minimum"):
        minimum_traffic(problem, problem.minimum_budget - 1)


def test_alignment_counts_for_room_and_not_for_traffic() -> None:
    net = Network.build(
        "spill",
        [("x", 3, "input"), ("a", 3, "activation"), ("b", 5, "activation"), ("y", 1, "activation")],
        [
            OperatorSpec("first", "A", ["x"], ["a"], workspace=2),
            OperatorSpec("second", "B", ["x"], ["b"], workspace=1),
            OperatorSpec("last", "C", ["a", "b"], ["y"]),
        ],
        ["y"],
    )
    problem = Problem.of(net, 4)
    # x 4 + b 8 + workspace 4; then something has to leave, best a, with its own 3 bytes twice.
    assert problem.minimum_budget == 16
    assert minimum_traffic(problem, 16).value == 6
    assert minimum_peak(problem).value == 20


@pytest.fixture(scope="module")
def nasnet(shared: Path) -> Problem:
    return Problem.of(read_network(shared / "bench/networks/nasnetalarge.fused.json"))


def test_a_search_out_of_time_still_answers_honestly(nasnet: Problem) -> None:
    found = minimum_traffic(nasnet, nasnet.minimum_budget, limits=Limits(time_limit=0.0))
    assert found.end == "time"
    assert not found.complete
    assert found.bound <= 7_231_200 <= found.value
    assert replay(nasnet, found.steps, nasnet.minimum_budget) == found.value


@pytest.mark.thorough
@pytest.mark.parametrize("mebibytes", [1, 2, 3])
def test_a_search_out_of_memory_still_answers_honestly(nasnet: Problem, mebibytes: int) -> None:
    found = minimum_traffic(nasnet, nasnet.minimum_budget, limits=Limits(memory_limit=mebibytes << 20))
    assert found.end == "memory"
    assert found.bound <= 7_231_200 <= found.value
    assert replay(nasnet, found.steps, nasnet.minimum_budget) == found.value


def test_a_cancelled_search_gives_the_best_so_far(nasnet: Problem) -> None:
    found = minimum_traffic(nasnet, nasnet.minimum_budget, limits=Limits(cancelled=lambda: True))
    assert found.end == "stopped"
    assert found.bound <= 7_231_200 <= found.value
    assert replay(nasnet, found.steps, nasnet.minimum_budget) == found.value


def test_ctrl_c_gives_the_best_so_far(nasnet: Problem) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    found = minimum_traffic(nasnet, nasnet.minimum_budget, NO_RULES, Limits(progress=interrupt))
    assert found.end == "stopped"
    assert found.bound <= 7_231_200 <= found.value
    assert replay(nasnet, found.steps, nasnet.minimum_budget) == found.value


def test_a_peak_search_out_of_time_still_answers_honestly(nasnet: Problem) -> None:
    found = minimum_peak(nasnet, limits=Limits(time_limit=0.0))
    assert found.end == "time"
    assert found.bound <= 3_898_656 <= found.value
    assert replay(nasnet, found.steps, found.value) == 0


def test_an_error_in_the_callers_progress_is_the_callers(shared: Path) -> None:
    hard = Problem.of(read_network(shared / "bench/networks/pnasnet5large.op.json"))

    def progress(_: object) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        minimum_traffic(hard, hard.minimum_budget, limits=Limits(progress=progress))


@pytest.mark.parametrize(
    ("name", "mr", "mp", "at_mr", "at_mh"),
    [
        ("resnet50", 2_408_448, 2_408_448, 0, 0),
        ("densenet121", 1_605_632, 1_806_336, 401_408, 200_704),
        ("vit_b_16", 756_480, 907_776, 3_631_104, 3_631_104),
        ("transformer", 1_638_400, 2_129_920, 4_915_200, 3_932_160),
        ("amoebanet_d", 3_211_264, 4_264_960, 2_107_392, 1_204_224),
        ("darts", 451_584, 451_584, 0, 0),
    ],
)
def test_known_values(shared: Path, name: str, mr: int, mp: int, at_mr: int, at_mh: int) -> None:
    network = read_network(shared / f"bench/networks/{name}.fused.json")
    found = budgets(network, Chip("generic", 1))
    assert (found.mr, found.mp, found.mp_complete) == (mr, mp, True)
    problem = Problem.of(network)
    for budget, value in ((found.mr, at_mr), (found.mh, at_mh), (found.mp, 0)):
        assert minimum_traffic(problem, budget).value == value


def wide(tensors: int, needed: int, heavy: int) -> tuple[Network, int]:
    """One state with very many children: room is needed for `needed` of `tensors` equal tensors.

    All occupy 64 bytes at alignment 64; `heavy` of them cost 64 to move and the rest 1.
    """
    names = [f"t{i:02}" for i in range(tensors)]
    network = Network.build(
        "wide",
        [
            ("x", 1, "input"),
            *[(name, 64 if i < heavy else 1, "activation") for i, name in enumerate(names)],
            ("y", 1, "activation"),
            ("z", 1, "activation"),
        ],
        [
            OperatorSpec("a", "A", ["x"], names),
            OperatorSpec("b", "B", [names[-1]], ["y"], workspace=64 * needed),
            OperatorSpec("c", "C", [*names, "y"], ["z"]),
        ],
        ["z"],
    )
    return network, 64 * (tensors + 2)


def test_a_limit_inside_one_expansion_leaves_a_true_bound() -> None:
    network, budget = wide(14, 6, 6)
    problem = Problem.of(network, 64)
    optimum = minimum_traffic(problem, budget)
    assert optimum.complete
    assert optimum.value > 0
    ends = set()
    for memory in range(1_040_000, 1_400_000, 4_000):
        found = minimum_traffic(problem, budget, limits=Limits(memory_limit=memory))
        assert found.bound <= optimum.value <= found.value
        ends.add(found.end)
    assert ends == {"memory", "complete"}


def test_a_search_that_only_looks_at_sets_can_be_stopped() -> None:
    network, budget = wide(34, 17, 34)
    found = minimum_traffic(Problem.of(network, 64), budget, limits=Limits(cancelled=lambda: True))
    assert found.end == "stopped"
    assert found.bound <= found.value
