"""Concats that are joined in DRAM: which may be, that nothing moves less, and that they run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from onchip.base.errors import IllegalPlan
from onchip.check import check
from onchip.machines.chip import load_chip
from onchip.planners.fusion import FusionOptions, FusionProblem
from onchip.planners.joint import JointOptions
from onchip.planners.joint.joins import joinable
from onchip.planners.joint.planning import solve
from onchip.planners.joint.search import JointSearch
from onchip.planners.placement.overwriting import overwritable
from onchip.plans import Join, bind
from onchip.run import run
from oracles.fusion_cases import shaped
from oracles.joining import joining_maps
from oracles.joint import least_dram_bytes
from run.patched import onnx_source


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [44, 74, 140, 145, 162, 178, 198, 284])
def test_nothing_moves_less_than_with_joined_concats(seed: int) -> None:
    rng = Random(seed)
    network = joining_maps(rng, 5)
    budget = int(sum(t.bytes for t in network.tensors) * rng.choice((0.15, 0.25, 0.4, 0.6)))
    options = FusionOptions(channel_tile=rng.choice((1, 2, 4)))
    problem = FusionProblem.of(network, load_chip("generic"), options, budget)
    over = overwritable(network) if seed % 2 else ()
    joins = joinable(network)
    found = JointSearch(problem, over, joins=joins).best()
    assert found.complete
    assert found.dram_bytes == found.lower_bound_bytes
    assert found.dram_bytes == least_dram_bytes(problem, over, joins=joins)
    without = JointSearch(problem, over).best().dram_bytes
    assert without is not None
    assert found.dram_bytes is not None
    assert found.dram_bytes < without


def names(rows: list[tuple[str, str, list[str], tuple[int, int, int], dict[str, int]]]) -> list[str]:
    network = shaped("joins", rows, (2, 4, 4), 1)
    return [network.operators[v].name for v in joinable(network)]


def conv(
    name: str, read: str, channels: int = 2
) -> tuple[str, str, list[str], tuple[int, int, int], dict[str, int]]:
    return (name, "conv", [read], (channels, 4, 4), {"kernel": 1, "weights": channels})


def concat(name: str, *reads: str) -> tuple[str, str, list[str], tuple[int, int, int], dict[str, int]]:
    return (name, "concat", [*reads], (2 * len(reads), 4, 4), {})


def test_of_concats_that_share_an_operand_the_largest_is_joined() -> None:
    made = [conv("a", "x"), conv("b", "a"), conv("c", "b")]
    ends = [conv("y", "small"), conv("z", "large")]
    assert names([*made, concat("small", "b", "a"), concat("large", "a", "b", "c"), *ends]) == ["large"]


def test_of_dense_concats_that_go_on_from_each_other_all_are_joined() -> None:
    made = [conv("a", "x"), conv("b", "a"), concat("two", "a", "b"), conv("c", "two")]
    rest = [concat("three", "a", "b", "c"), conv("y", "three")]
    assert names([*made, *rest]) == ["two", "three"]


def test_a_concat_lies_in_one_of_those_that_go_on_from_it() -> None:
    """`two` cannot be the beginning both of `three` and of `other`."""
    made = [conv("a", "x"), conv("b", "a"), concat("two", "a", "b"), conv("c", "two"), conv("d", "two")]
    other = ("other", "concat", ["two", "d"], (6, 4, 4), {})
    rest = [concat("three", "a", "b", "c"), other, conv("y", "three"), conv("z", "other")]
    assert sorted(names([*made, *rest])) == ["other", "three"]


def test_inputs_and_outputs_of_the_network_are_not_joined() -> None:
    assert names([conv("a", "x"), concat("both", "x", "a"), conv("y", "both")]) == []
    assert names([conv("a", "x"), conv("b", "x"), concat("y", "a", "b")]) == []


BRANCHES = """branches (float[1,8,12,12] x) => (float[1,4,12,12] y, float[1,4,12,12] z) {
    a = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, u)
    b = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, v)
    c = Concat<axis=1>(a, b)
    y = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(c, w)
    z = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(c, t)
}"""
WEIGHTS = {"u": (16, 8, 3, 3), "v": (16, 8, 3, 3), "w": (4, 32, 3, 3), "t": (4, 32, 3, 3)}


def test_a_plan_with_a_joined_concat_moves_less_and_runs(tmp_path: Path) -> None:
    source = onnx_source(tmp_path, BRANCHES, WEIGHTS, "int8")
    chip = load_chip("generic")
    with_views = solve(source.network, chip, 1600, JointOptions(fuse=True, nests=False)).plan
    without = solve(source.network, chip, 1600, JointOptions(fuse=True, nests=False, concat_views=False)).plan
    assert any(isinstance(step, Join) for step in with_views.program)
    assert not any(isinstance(step, Join) for step in without.program)
    assert check(with_views).dram_bytes < check(without).dram_bytes
    forged = bind(replace(with_views, options={**with_views.options, "concat_views": False}))
    with pytest.raises(IllegalPlan, match="concat_views is not true, and c is joined"):
        check(forged)
    report = run(with_views, source)
    assert report.operators == len(source.network.operators)
