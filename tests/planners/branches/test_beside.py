"""Both methods beside each other: what fits, what is moved, the smallest buffers."""

from __future__ import annotations

import contextlib
import signal
from random import Random

import pytest
from two_modules import CHIP, ON_CHIP, plan, runs

from module_networks import random_module_network
from onchip.base.errors import Infeasible
from onchip.comparison.beside import beside, exact_zero, simple_zero
from onchip.machines.chip import load_chip
from onchip.planners.branches.options import BranchOptions
from onchip.planners.branches.plan import plan_branches
from onchip.planners.branches.sizes import Sizes
from onchip.planners.limits import Limits
from onchip.planners.modules.region import regions
from onchip.planners.placement import Problem, minimum_traffic
from onchip.plans import Join, Plan, Run


def test_the_smallest_buffer_of_exact_placement_is_proved() -> None:
    found = exact_zero(regions(ON_CHIP, lambda v: 0), CHIP, Limits())
    assert (found.bytes, found.at_least) == (192, 192)
    assert exact_zero([], CHIP, Limits()).bytes is None


def test_less_room_may_happen_to_do() -> None:
    """A method that also manages, by luck, with 20 to 60 bytes: the scan behind the bisection finds it."""
    there = plan(*runs("c1", "c2", "c3", "cat", "c4"), Run("add", (("y", 96),)), split=4)

    def again(budget: int) -> Plan | None:
        if budget < 20:
            return None
        return ON_CHIP if budget >= 300 or budget <= 60 else there

    assert simple_zero(again, CHIP, ON_CHIP).bytes == 20


def test_no_buffer_may_do() -> None:
    there = plan(*runs("c1", "c2", "c3", "cat", "c4"), Run("add", (("y", 96),)), split=4)
    assert simple_zero(lambda budget: there, CHIP, there).bytes is None


def test_an_operator_that_does_not_fit_is_said() -> None:
    """c4 takes 192 bytes and its 36 of weights, and the first module at most 124."""
    size = {t.name: t.bytes for t in ON_CHIP.network.tensors}
    through = {"c1": "ap", "c2": "aq", "c3": "qr", "c4": "mu", "add": "umy"}
    steps = [Run(name, tuple((t, size[t]) for t in ts)) for name, ts in through.items()]
    small = plan(*steps[:3], Join("cat"), *steps[3:], split=4, budget=200)
    found = beside(small, CHIP, lambda budget: ON_CHIP)
    first, second = found.rows
    assert (first.status, first.exact_bytes, first.needs_bytes) == ("optimal", 0, None)
    assert (second.status, second.exact_bytes, second.needs_bytes) == ("does not fit", None, 228)
    assert found.simple_seconds == 0.25
    assert found.exact_zero is not None
    assert found.exact_zero.bytes == 228
    assert found.data()["not_searched"] == {}
    assert found.complete
    text = str(found)
    assert "an operator needs 228 B" in text
    assert "exact 228 B (0.2 KiB), and from no fewer" in text
    assert [row["modules"] for row in found.data()["rows"]] == [["first"], ["second"]]


@pytest.mark.parametrize(
    ("stage", "unknown"),
    [
        ("exact placement of", ["simple_zero", "exact_zero"]),
        ("exact placement: the smallest", ["simple_zero", "exact_zero"]),
        ("the simple method: the smallest", ["simple_zero"]),
    ],
)
def test_what_an_interruption_left_out_is_not_called_impossible(stage: str, unknown: list[str]) -> None:
    def interrupt(line: str) -> None:
        if line.startswith(stage):
            raise KeyboardInterrupt

    found = beside(ON_CHIP, CHIP, lambda budget: ON_CHIP, progress=interrupt)
    assert not found.complete
    data = found.data()
    assert data["not_searched"] == dict.fromkeys(unknown, "interrupted")
    assert [name for name in ("simple_zero", "exact_zero") if data[name] is None] == unknown
    text = str(found)
    assert "no buffer" not in text
    assert "interrupted" in text
    if found.rows:
        assert "simple not searched" in text
        assert ("exact not searched" in text) == ("exact_zero" in unknown)


def test_a_search_that_keeps_an_interruption_to_itself_ends_the_comparison() -> None:
    """The search of a region takes Ctrl-C as "the best so far"; what comes after it is not begun."""
    lines: list[str] = []

    def pressed(line: str) -> None:
        lines.append(line)
        if len(lines) == 1:
            with contextlib.suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)

    found = beside(ON_CHIP, CHIP, lambda budget: ON_CHIP, progress=pressed)
    assert len(lines) == 1
    assert len(found.rows) == 1
    assert (found.complete, found.simple_zero, found.exact_zero) == (False, None, None)
    assert "simple not searched; exact not searched" in str(found)


def exact_is_no_worse(seed: int) -> int:
    """Whole operators in any order, anywhere: at least as good as any plan that streams none of them.

    Gives the number of regions that were compared.
    """
    rng, chip, compared = Random(seed), load_chip("exynos-npu"), 0
    network = random_module_network(
        rng, most_rows=16, most_channels=24, long_skips=0.2, extra_outputs=0.2
    ).network()
    budget = rng.choice((4, 8, 16, 32, 64)) * 1024
    for options in (BranchOptions(), BranchOptions(rules="ours")):
        try:
            made = plan_branches(network, chip, budget, options).plan
        except Infeasible:
            continue
        section = {s.name: s for s in made.sections}
        for found in regions(made, Sizes(made.network, chip).resident):
            steps = (
                i for name in found.modules for i in made.program[section[name].first : section[name].end]
            )
            if any(isinstance(i, Run) and i.streaming for i in steps):
                continue
            compared += 1
            problem = Problem.of(found.network, in_place=True)
            assert problem.minimum_budget <= budget
            assert minimum_traffic(problem, budget).value <= found.traffic_bytes
            if found.strict_bytes == 0:
                held = Problem.of(found.held, in_place=True)
                assert minimum_traffic(held, budget).value == 0
    return compared


def test_exact_placement_is_no_worse_where_nothing_streams() -> None:
    assert sum(exact_is_no_worse(seed) for seed in range(10)) > 10


@pytest.mark.slow
def test_exact_placement_is_no_worse_in_many_networks() -> None:
    assert sum(exact_is_no_worse(seed) for seed in range(10, 50)) > 50
