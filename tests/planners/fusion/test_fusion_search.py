"""The exact fuser against brute force, every rule on and off, every space against its definition."""

from __future__ import annotations

import sys
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

import onchip
from onchip.base.errors import Infeasible
from onchip.machines.chip import load_chip
from onchip.network import Network, bits
from onchip.planners.fusion import FusionOptions, FusionProblem, group_cost
from onchip.planners.fusion.cost import GroupCost
from onchip.planners.fusion.search import (
    Fuser,
    Rules,
    Space,
    best_partition,
    count_convex,
    enumerate_groups,
    group_costs,
)
from onchip.planners.limits import Limits
from oracles.fusion_cases import acyclic_partitions, cheapest_partition, random_maps, shaped

sys.path.append(str(Path(__file__).resolve().parents[3] / "benchmarks"))
from fusion_graphs import fusion_graph

OPTIONS = {
    "batch_weights": ("per-image", "held", "shared"),
    "isoa": ("channelwise", "channelwise", "paper", "off"),
    "halo": ("lines", "lines", "paper", "recompute"),
    "residency": ("partial", "partial", "all", "none"),
    "weight_tile": (True, True, False),
    "blocks": ("best", "best", "fallback"),
}


def problem_of(network: Network, budget: int, **options: object) -> FusionProblem:
    return FusionProblem.of(network, load_chip("generic"), FusionOptions(**options), budget)  # type: ignore[arg-type]


def random_problem(rng: Random, most: int = 7) -> FusionProblem:
    network = random_maps(rng, most)
    options = {key: rng.choice(values) for key, values in OPTIONS.items()}
    problem = problem_of(network, 1, channel_tile=rng.choice((2, 3, 4)), **options)
    problem = replace(problem, alignment=rng.choice((1, 1, 4)), least_rows=rng.choice((1, 1, 2)))
    largest = sum(t.bytes for t in network.tensors) // problem.batch + network.weight_bytes
    return replace(problem, budget=max(16, int(largest * rng.choice((0.1, 0.2, 0.3, 0.5, 0.8, 1.5)))))


def in_one_piece(problem: FusionProblem, members: int) -> GroupCost:
    """A price for operators that fit in nothing: dearer than what they touch."""
    bytes_ = 3 * problem.crossing_bytes(members) + 1
    return GroupCost(members, 0, 1, 1, 0, 0, 0, bytes_, 0, 0, bytes_)


@pytest.mark.parametrize("seed", range(60))
def test_a_group_costs_what_the_definition_says(seed: int) -> None:
    rng = Random(seed)
    problem = random_problem(rng)
    fuser = Fuser(problem)
    convex = sorted({g for groups in acyclic_partitions(problem.network) for g in groups})
    for members in rng.sample(convex, min(len(convex), 12)):
        expected, found = group_cost(problem, members), fuser.cost(members)
        assert (found and found.dram_bytes) == (expected and expected.dram_bytes), bin(members)
        if found is not None:
            assert found.io_bytes + found.halo_bytes + found.weight_bytes == found.dram_bytes
            assert found.scratch_bytes <= problem.budget


@pytest.mark.parametrize("seed", range(150))
def test_the_search_equals_brute_force_over_all_partitions(seed: int) -> None:
    problem = random_problem(Random(1000 + seed))
    fuser = Fuser(problem, alone=in_one_piece)

    def cost(members: int) -> int | None:
        return price(fuser, members)

    found = fuser.best()
    assert found.complete
    assert found.dram_bytes == found.lower_bound_bytes == cheapest_partition(problem.network, cost)
    assert_runs(problem.network, found.groups)


def price(fuser: Fuser, members: int) -> int | None:
    """What a group costs when operators alone may also run in one piece."""
    found = fuser.cost(members)
    if members.bit_count() == 1:
        piece = in_one_piece(fuser.problem, members)
        found = piece if found is None or piece.dram_bytes < found.dram_bytes else found
    return found and found.dram_bytes


def assert_runs(network: Network, groups: tuple[GroupCost, ...]) -> None:
    """The groups are the operators, each once, and can run in their order."""
    done = 0
    for group in groups:
        for v in bits(group.members):
            assert not done >> v & 1
            assert not network.predecessors[v] & ~(done | group.members)
        done |= group.members
    assert done == (1 << len(network.operators)) - 1


@pytest.mark.parametrize("seed", range(30))
def test_every_rule_may_be_off(seed: int) -> None:
    problem = random_problem(Random(2000 + seed), most=9)
    expected = best_partition(problem, alone=in_one_piece).dram_bytes
    for name in [field.name for field in fields(Rules)]:
        without = best_partition(problem, rules=replace(Rules(), **{name: False}), alone=in_one_piece)
        assert without.complete
        assert without.dram_bytes == expected, name
    none = Rules(*(False for _ in fields(Rules)))
    assert best_partition(problem, rules=none, alone=in_one_piece).dram_bytes == expected


def test_two_convex_groups_may_wait_for_each_other() -> None:
    """{0, 2, 4} and {1, 3, 5} are convex, and neither can run before the other."""
    how = {"weights": 4}
    rows = [
        ("o0", "conv", ["x"], (2, 8, 8), how),
        ("o1", "conv", ["x"], (2, 8, 8), how),
        ("o2", "conv", ["o0"], (2, 8, 8), how),
        ("o3", "conv", ["o1"], (2, 8, 8), how),
        ("o4", "elementwise", ["o0", "o3"], (2, 8, 8), {}),
        ("o5", "elementwise", ["o1", "o2"], (2, 8, 8), {}),
    ]
    network = shaped("crossed", rows, (2, 8, 8), 1)
    problem = problem_of(network, 10_000)
    groups = [0b010101, 0b101010]
    assert all(cost is not None for cost in group_costs(problem, groups))
    assert groups not in list(acyclic_partitions(network))
    fuser = Fuser(problem)
    for budget in (100, 150, 200, 300):
        found = fuser.best(budget)
        cheapest = cheapest_partition(network, lambda g, b=budget: fuser.dram_bytes([g], b)[0])  # type: ignore[misc]
        assert found.dram_bytes == cheapest
        assert_runs(network, found.groups)


@pytest.mark.parametrize("seed", range(20))
def test_candidates_are_the_connected_convex_sets(seed: int) -> None:
    problem = random_problem(Random(3000 + seed))
    network = problem.network
    opaque = sum(1 << op.id for op in problem.operators if op.form == "opaque")
    convex = {g for groups in acyclic_partitions(network) for g in groups}
    assert count_convex(problem) == len(convex)
    expected = {g for g in convex if g.bit_count() > 1 and not g & opaque and _connected(network, g)}
    huge = replace(problem, budget=1 << 40)
    listed = enumerate_groups(huge)
    assert listed.complete
    fitting = {g for g in expected if group_cost(huge, g) is not None}
    assert fitting <= {g for g, _ in listed.groups} <= expected
    for members, floor in listed.groups:
        found = group_cost(problem, members)
        assert found is None or floor <= found.dram_bytes


def _connected(network: Network, group: int) -> bool:
    near, left = 0, group & ~(group & -group)
    at = group & -group
    while at:
        near = 0
        for v in bits(at):
            near |= network.reads[v] | network.writes[v]
        at = sum(1 << v for v in bits(left) if (network.reads[v] | network.writes[v]) & near)
        left &= ~at
    return not left


@pytest.mark.parametrize("seed", range(20))
def test_spaces_are_what_they_say(seed: int) -> None:
    problem = random_problem(Random(4000 + seed))
    network = problem.network
    order = network.order

    def whole_fan_out(g: int) -> bool:
        for v in bits(g):
            readers = sum({1 << r for t in bits(network.writes[v]) for r in bits(network.readers[t])})
            if readers & g and readers & ~g:
                return False
        return g.bit_count() == 1 or _connected(network, g)

    def chain(g: int) -> bool:
        links = 0
        for v in bits(g):
            readers = sum(network.readers[t].bit_count() for t in bits(network.writes[v]))
            if network.reads[v].bit_count() > 1 or readers > 1:
                return g.bit_count() == 1
            links += bool(network.predecessors[v] & g)
        return links == g.bit_count() - 1

    def interval(g: int) -> bool:
        places = sorted(order.index(v) for v in bits(g))
        return all(b == a + 1 for a, b in pairwise(places))

    for space, allowed in (
        (Space(largest=2), lambda g: g.bit_count() <= 2 and _connected(network, g)),
        (Space(whole_fan_out=True), whole_fan_out),
        (Space(chains=True), chain),
        (Space(order=order), interval),
        (Space(shared_inputs=False), lambda g: _linked(network, g)),
    ):
        fuser = Fuser(problem, space, alone=in_one_piece)

        def cost(g: int, fuser: Fuser = fuser, allowed=allowed) -> int | None:  # type: ignore[no-untyped-def]
            if not allowed(g):
                return None
            return price(fuser, g)

        found = fuser.best()
        assert found.complete
        assert found.dram_bytes == cheapest_partition(network, cost), space


def _linked(network: Network, group: int) -> bool:
    at, left = group & -group, group & ~(group & -group)
    while at:
        after = sum(1 << v for v in bits(left) if network.predecessors[v] & at)
        before = 0
        for v in bits(at):
            before |= network.predecessors[v] & left
        at = after | before
        left &= ~at
    return not left


@pytest.mark.parametrize("seed", range(10))
def test_a_prepared_fuser_answers_every_budget(seed: int) -> None:
    problem = random_problem(Random(5000 + seed))
    fuser = Fuser(problem, alone=in_one_piece)
    assert fuser.prepare(None).complete
    for share in (0.5, 1, 2):
        budget = max(16, int(problem.budget * share))
        expected = best_partition(replace(problem, budget=budget), alone=in_one_piece)
        assert fuser.best(budget).dram_bytes == expected.dram_bytes
        for members in (g.members for g in expected.groups if g.members.bit_count() > 1):
            least = fuser.least_scratch(members)
            assert least is not None
            assert fuser.cost(members, least - 1) is None
            assert fuser.cost(members, least) is not None


def test_an_operator_that_fits_in_nothing_is_named() -> None:
    network = shaped("wide", [("o0", "conv", ["x"], (2, 8, 8), {"weights": 4})], (2, 8, 8), 1)
    with pytest.raises(Infeasible, match="o0"):
        best_partition(problem_of(network, 2))


def test_limits_leave_a_partition_and_a_bound() -> None:
    problem = random_problem(Random(6), most=8)
    whole = best_partition(problem, alone=in_one_piece)
    for limits, most in ((Limits(), 1), (Limits(memory_limit=1), 0), (Limits(cancelled=lambda: True), 0)):
        found = Fuser(problem, alone=in_one_piece).best(limits=limits, most_states=most)
        assert_runs(problem.network, found.groups)
        assert found.lower_bound_bytes <= whole.dram_bytes <= found.dram_bytes
        assert found.complete == (found.lower_bound_bytes == found.dram_bytes)


@pytest.mark.thorough
def test_one_dear_group_does_not_outlast_a_wish_to_stop() -> None:
    # In a dense block one group alone has more ways to run than anybody waits for.
    chip = load_chip("optimus-6")
    network = onchip.load("zoo:densenet121", dtype=chip.element).network
    fuser = Fuser(FusionProblem.of(network, chip, FusionOptions(), 524_288))
    assert fuser.prepare().complete
    found = fuser.best(limits=Limits(cancelled=lambda: True))
    assert found.end == "stopped"
    assert not found.complete
    assert_runs(network, found.groups)
    assert sum(g.dram_bytes for g in found.groups) == found.dram_bytes >= found.lower_bound_bytes
    made = onchip.fuse(network, chip, time_limit=0)
    assert made.plan is not None
    assert made.plan.check().dram_bytes == made.dram_bytes


@pytest.mark.parametrize(
    ("name", "count"), [("vgg16", 171), ("squeezenet1_0", 1057), ("resnet50", 3510), ("resnet152", 24250)]
)
def test_convex_sets_of_the_papers_networks(shared: Path, name: str, count: int) -> None:
    network = fusion_graph(shared / "bench" / "fusion" / f"{name}.json", 4)
    problem = FusionProblem.of(network, load_chip("optimus"), FusionOptions(), 131_072)
    assert count_convex(problem) == count


@pytest.mark.parametrize(
    ("name", "million_words", "groups"),
    [
        ("vgg16", 133.33, None),
        ("mobilenet_v1", 15.69, None),
        ("squeezenet1_0", 12.16, None),
        ("resnet50", 110.76, 31),
        ("resnet152", 285.82, 99),
        ("googlenet", 28.32, None),
    ],
)
def test_totals_under_the_papers_options(
    shared: Path, name: str, million_words: float, groups: int | None
) -> None:
    network = fusion_graph(shared / "bench" / "fusion" / f"{name}.json", 4)
    options = FusionOptions("shared", "paper", "paper", "all", weight_tile=False, blocks="fallback")
    found = best_partition(FusionProblem.of(network, load_chip("optimus"), options, 131_072))
    assert found.complete
    assert found.dram_bytes / 2e6 == pytest.approx(million_words, abs=0.006)
    assert groups in (None, len(found.groups))
