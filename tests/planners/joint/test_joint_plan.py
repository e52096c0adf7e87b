"""Joint planning as a user meets it: certified plans, never worse than either part, one line a refusal."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from random import Random

import numpy as np
import onnx
import pytest

import onchip
from onchip import cli
from onchip.base.errors import Infeasible, NegativeAnswer, UsageError
from onchip.check import check
from onchip.machines.chip import load_chip
from onchip.network import Geometry, Network, OperatorSpec, TensorKind, bits
from onchip.planners.fusion import FusionOptions, FusionProblem
from onchip.planners.fusion.fuse import fuse
from onchip.planners.joint import JointOptions
from onchip.planners.joint.nests import nests_of
from onchip.planners.joint.options import SHARED, FusedPlacementOptions
from onchip.planners.joint.planning import solve
from onchip.planners.joint.search import JointSearch
from onchip.planners.placement import PlacementOptions, Problem
from onchip.planners.placement.overwriting import overwritable
from oracles.fusion_cases import random_maps, shaped


def small(seed: int, most: int = 8) -> tuple[Network, int]:
    rng = Random(seed)
    network = random_maps(rng, most, rng.choice((1, 1, 2)))
    return network, int(sum(t.bytes for t in network.tensors) * rng.choice((0.3, 0.5, 0.7, 1.0)))


@pytest.mark.parametrize("seed", range(60))
def test_a_plan_is_legal_and_never_worse_than_either_part(seed: int) -> None:
    network, budget = small(seed)
    chip = replace(load_chip("generic"), alignment_bytes=Random(seed).choice((1, 1, 4, 16)))
    options = JointOptions(fuse=True, channel_tile=2, overlap=seed % 2 == 0)
    if JointSearch(FusionProblem.of(network, chip, FusionOptions(channel_tile=2), budget)).misfits:
        with pytest.raises(Infeasible) as refusal:
            solve(network, chip, budget, replace(options, overlap=False))
        assert refusal.value.needs > refusal.value.has == budget
        return
    made = solve(network, chip, budget, options)
    result = check(made.plan)
    assert made.fusion_bytes is None or result.dram_bytes <= made.fusion_bytes
    if made.placement_bytes is not None:
        assert result.dram_bytes <= made.placement_bytes
    assert result.dram_lower_bound_bytes is not None
    assert made.plan.result.status == "feasible" or result.dram_lower_bound_bytes == result.dram_bytes
    assert result.extent_bytes <= budget


@pytest.mark.thorough
def test_where_everything_fits_only_what_is_compulsory_crosses() -> None:
    source = onchip.load("zoo:squeezenet1_0")
    made = onchip.plan(source, budget="512KiB", fuse=True)
    assert made.result.status == "optimal"
    network = source.network
    once = sum(network.tensors[t].bytes for t in bits(network.input_roots | network.output_roots))
    # The first convolution steps over the last row and column of the image: a nest does not fetch them.
    assert made.result.dram_bytes <= once + network.weight_bytes


@pytest.mark.parametrize("seed", [8, 31, 41, 54])
def test_joint_can_be_better_than_both_parts(seed: int) -> None:
    network = random_maps(Random(seed), 10, 1)
    options = JointOptions(fuse=True, channel_tile=2, overlap=False)
    made = solve(network, load_chip("generic"), Problem.of(network).minimum_budget, options)
    assert made.fusion_bytes is not None
    assert made.placement_bytes is not None
    assert made.plan.result.dram_bytes < min(made.fusion_bytes, made.placement_bytes)


@pytest.mark.thorough
def test_below_mr_a_plan_exists_as_long_as_some_tiling_fits() -> None:
    source = onchip.load("zoo:squeezenet1_0")
    least = Problem.of(source.network).minimum_budget
    assert least > 64 * 1024
    made = onchip.plan(source, budget="64KiB", fuse=True)
    assert made.check() == made.result
    with pytest.raises(Infeasible):
        onchip.plan(source, budget="64KiB", fuse=False)


@pytest.mark.thorough
def test_below_the_floor_the_operator_is_named() -> None:
    with pytest.raises(Infeasible) as refusal:
        onchip.plan("zoo:squeezenet1_0", budget=100, fuse=True)
    needs = refusal.value.needs
    assert refusal.value.operator
    assert needs > 100
    assert onchip.plan("zoo:squeezenet1_0", budget=needs, fuse=True).result.extent_bytes <= needs


def test_an_operator_that_fits_whole_but_in_no_tiling_runs_whole() -> None:
    """A window that is mostly padding has tiles larger than its maps."""
    wide = {"kernel": 5, "stride": 3, "padding": 2, "weights": 1200}
    rows: list[tuple[str, str, list[str], tuple[int, int, int], dict[str, int]]] = [
        ("small", "fully_connected", ["x"], (4, 1, 1), {"weights": 288}),
        ("wide", "conv", ["small"], (12, 1, 1), wide),
    ]
    network = shaped("padded", rows, (8, 3, 3), 1)
    options = JointOptions(fuse=True, channel_tile=3)
    made = solve(network, load_chip("generic"), 21, options)
    assert made.fusion_bytes is None
    assert made.plan.result.status == "optimal"
    with pytest.raises(Infeasible) as refusal:
        fuse(network, load_chip("generic"), 21, FusionOptions(channel_tile=3))
    assert refusal.value.needs > refusal.value.has


def test_an_output_takes_the_place_of_its_input_though_the_other_input_is_loaded() -> None:
    sizes: list[tuple[str, int, TensorKind]] = [("x", 100, "input"), ("y", 100, "input")]
    sizes += [(made, 100, "activation") for made in "abc"]
    flat = Geometry("elementwise", input=(100,), output=(100,))
    operators = [
        OperatorSpec("opaque", "Any", ["x"], ["a"], 0),
        OperatorSpec("add", "Add", ["y", "a"], ["b"], 0, geometry=flat),
        OperatorSpec("later", "Any", ["y"], ["c"], 0),
    ]
    network = Network.build("late", sizes, operators, ["b", "c"])
    made = solve(network, load_chip("generic"), 200)
    assert check(made.plan).dram_bytes == 400
    with pytest.raises(Infeasible) as refusal:
        solve(network, load_chip("generic"), 199)
    assert refusal.value.needs == 200


@pytest.mark.parametrize("seed", range(20))
def test_fusion_alone_leaves_the_groups_that_were_listed(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where not all were listed, fusion lists its own."""
    monkeypatch.setattr("onchip.planners.joint.search.MOST_GROUPS", 3)
    network, budget = small(seed)
    options = JointOptions(fuse=True, channel_tile=2)
    if JointSearch(
        FusionProblem.of(network, load_chip("generic"), FusionOptions(channel_tile=2), budget)
    ).misfits:
        return
    seen: list[tuple[object, object]] = []

    def watched(self: JointSearch, *given: object, **named: object) -> object:
        seen.append((self.groups, len(self.fuser.core.candidates())))
        return plain(self, *given, **named)  # type: ignore[arg-type]

    plain = JointSearch.best
    monkeypatch.setattr(JointSearch, "best", watched)
    check(solve(network, load_chip("generic"), budget, options).plan)
    assert seen
    assert all(before == now for before, now in seen)


@pytest.mark.thorough
def test_groups_of_few_operators_do_where_all_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never better than the optimum, its bound below it, and better than either planner alone."""
    chip, options = load_chip("generic"), JointOptions(fuse=True, channel_tile=2)
    better = tried = few_named = 0
    for seed in range(60):
        network, budget = small(seed)
        problem = FusionProblem.of(network, chip, FusionOptions(channel_tile=2), budget)
        every, few = JointSearch(problem), JointSearch(problem, largest=3)
        if every.misfits or every.groups - 1 <= few.groups:
            continue
        best = solve(network, chip, budget, options)
        assert best.plan.result.status == "optimal"
        monkeypatch.setattr("onchip.planners.joint.search.MOST_GROUPS", every.groups - 1)
        found = solve(network, chip, budget, options)
        monkeypatch.undo()
        result = check(found.plan)
        bound = result.dram_lower_bound_bytes
        assert bound is not None
        assert best.plan.result.dram_bytes <= result.dram_bytes
        assert bound <= restricted(problem, found.plan.result.space)
        assert found.plan.result.status == ("optimal" if bound == result.dram_bytes else "feasible")
        alone = [b for b in (found.fusion_bytes, found.placement_bytes) if b is not None]
        assert all(result.dram_bytes <= b for b in alone)
        better += all(result.dram_bytes < b for b in alone)
        few_named += "groups of at most" in found.plan.result.space
        tried += 1
    assert tried > 5
    assert better
    assert few_named


def restricted(problem: FusionProblem, among: str) -> int:
    """The least bytes of the plans that a claim ranges over."""
    said = re.search(r"groups of at most (\d+) operators in bands", among)
    over = overwritable(problem.network)
    search = JointSearch(problem, over, nests=nests_of(problem, 10**6), largest=int(said[1]) if said else 0)
    best = search.best().dram_bytes
    assert best is not None
    return best


@pytest.mark.parametrize("seed", range(30))
def test_groups_of_few_operators_first_change_no_answer(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    network, budget = small(seed)
    answers: list[object] = []
    for many in (10**6, 0):
        monkeypatch.setattr("onchip.planners.joint.by_size.MANY_GROUPS", many)
        try:
            made = solve(network, load_chip("generic"), budget, JointOptions(fuse=True, channel_tile=2)).plan
        except Infeasible as no:
            answers.append(str(no))
        else:
            answers.append((made.result.status, check(made).dram_bytes))
    assert answers[0] == answers[1]


def test_a_tensor_may_stay_on_chip_while_its_copy_is_streamed(tmp_path: Path) -> None:
    """t fits beside the boxes of one addition, which cannot take it whole, and the other writes over it."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[1,3,8] x) => (float[1,3,3] y, float[1,3,3] z) <float[8,3] w> {
        t = MatMul (x, w) y = Add (t, t) z = Add (t, t) }""")
    weights = onnx.numpy_helper.from_array(np.random.default_rng(0).random((8, 3), np.float32), "w")
    model.graph.initializer.append(weights)
    onnx.save(model, tmp_path / "n.onnx")
    network = onchip.load(tmp_path / "n.onnx").network
    # Without shapes nothing says that the additions could run in bands.
    network = replace(network, tensors=tuple(replace(t, shape=()) for t in network.tensors))
    made = solve(
        network,
        replace(load_chip("generic"), alignment_bytes=1),
        61,
        JointOptions(fuse=True, nests=False, channel_tile=1),
    )
    moved = [("x", 96), ("w", 96), ("t", 36), ("t", 36), ("y", 36), ("z", 36)]  # t out, and in once in boxes
    assert check(made.plan).dram_bytes == sum(size for _, size in moved)
    assert made.plan.result.status == "optimal"


@pytest.mark.parametrize("budget", [99, 150, 199])
def test_what_is_needed_counts_an_input_that_cannot_be_written_over(budget: int) -> None:
    """Only the last of two readers can take its input's place."""
    flat = Geometry("elementwise", input=(100,), output=(100,))
    network = Network.build(
        "twice",
        [("x", 100, "input"), ("a", 100, "activation"), ("b", 100, "activation")],
        [
            OperatorSpec("one", "Relu", ["x"], ["a"], 0, geometry=flat),
            OperatorSpec("two", "Relu", ["x"], ["b"], 0, geometry=flat),
        ],
        ["a", "b"],
    )
    with pytest.raises(Infeasible) as refusal:
        solve(network, load_chip("generic"), budget)
    assert refusal.value.needs == 200
    assert solve(network, load_chip("generic"), 200).plan.result.status == "optimal"


@pytest.mark.parametrize("flattened_first", [True, False])
def test_a_graph_input_that_one_reader_flattens_is_a_map_for_the_others(flattened_first: bool) -> None:
    rows: list[tuple[str, str, list[str], tuple[int, int, int], dict[str, int]]] = [
        ("flat", "fully_connected", ["x"], (4, 1, 1), {"weights": 2048}),
        ("conv", "conv", ["x"], (5, 15, 3), {"kernel": 2, "weights": 160}),
    ]
    network = shaped("flattened", rows if flattened_first else rows[::-1], (8, 16, 4), 1)
    made = solve(network, load_chip("generic"), 300, JointOptions(fuse=True, channel_tile=1))
    assert check(made.plan).dram_bytes == made.plan.result.dram_bytes
    assert made.plan.result.status == "optimal"


@pytest.mark.parametrize(
    "option",
    [
        {"weights": "resident"},
        {"order": "given"},
        {"strategy": "ilp"},
        {"beam_width": 5},
        {"solver": "highs"},
        {"moves": False},
        {"objective": "peak"},
        {"inputs": "literal"},
        {"pin": ("x",)},
        {"state": ("x=y",)},
        {"capacity": 9},
    ],
)
def test_options_that_joint_planning_does_not_have_are_refused(option: dict[str, object]) -> None:
    network, budget = small(1)
    flag = "--no-moves" if "moves" in option else "--" + next(iter(option)).replace("_", "-")
    with pytest.raises(UsageError, match=f"^{flag}: does not go with --fuse$"):
        onchip.plan(network, budget=budget, fuse=True, **option)


def test_every_option_of_placement_is_obeyed_or_refused() -> None:
    """A new option of placement is neither until somebody decides which."""
    refused = {"weights", "order", "strategy", "beam_width", "solver", "inputs", "moves", "pin", "state"}
    refused |= {"capacity"}
    assert {f.name for f in fields(PlacementOptions)} == refused | {"objective"} | set(SHARED)


def test_overwriting_cannot_be_asked_for_and_forbidden_at_once() -> None:
    network, budget = small(1)
    with pytest.raises(UsageError, match=r"^--in-place: asks for what --no-overlap forbids$"):
        onchip.plan(network, budget=budget, fuse=True, in_place=True, overlap=False)
    with pytest.raises(UsageError, match="--in-place"):
        FusedPlacementOptions(in_place=True, overlap=False)
    asked = onchip.plan(network, budget=budget, fuse=True, in_place=True)
    assert asked.program == onchip.plan(network, budget=budget, fuse=True).program


def test_what_joint_planning_has_not_is_refused_before_a_budget_is_searched_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def searched(*_: object, **__: object) -> int:
        raise AssertionError("the budget was searched for")

    monkeypatch.setattr("onchip.api.resolve_budget", searched)
    with pytest.raises(UsageError, match="--order"):
        onchip.plan(small(1)[0], budget="MH", fuse=True, order="given")


def subclasses(of: type[NegativeAnswer]) -> list[type[NegativeAnswer]]:
    return [of, *(more for kind in of.__subclasses__() for more in subclasses(kind))]


@pytest.mark.parametrize("kind", subclasses(NegativeAnswer))
def test_only_that_an_operator_does_not_fit_means_that_placement_has_no_plan(
    kind: type[NegativeAnswer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever else placement may raise here is a fault, and a worse plan would hide it."""
    network, budget = small(1)

    def refused(*_: object, **__: object) -> None:
        raise kind.__new__(kind)

    monkeypatch.setattr("onchip.planners.joint.incumbents.place", refused)
    if kind is Infeasible:
        made = solve(network, load_chip("generic"), budget)
        assert made.placement_bytes is None
        assert made.plan.result.dram_bytes == made.fusion_bytes or made.found.dram_bytes is not None
    else:
        with pytest.raises(kind):
            solve(network, load_chip("generic"), budget)


@pytest.mark.parametrize("option", [{"overlap": False}, {"channel_tile": 4}])
def test_options_of_joint_planning_want_it(option: dict[str, object]) -> None:
    network, budget = small(1)
    with pytest.raises(UsageError, match="--fuse"):
        onchip.plan(network, budget=budget, fuse=False, **option)


def test_without_any_time_there_is_still_a_plan_with_a_bound() -> None:
    source = onchip.load("zoo:googlenet")
    chip = load_chip("generic")
    made = solve(source.network, chip, 256 << 10, placing=PlacementOptions(time_limit=0.0))
    result = check(made.plan)
    assert made.fusion_bytes is not None
    assert result.dram_bytes <= made.fusion_bytes
    assert result.dram_lower_bound_bytes is not None
    assert 0 < result.dram_lower_bound_bytes <= result.dram_bytes


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    def command(*words: str) -> int:
        monkeypatch.setattr(sys, "argv", ["onchip", *words])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        return int(stop.value.code or 0)

    return command


@pytest.mark.thorough
def test_the_command_writes_a_plan_that_others_read(
    tmp_path: Path, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    assert run("plan", "zoo:squeezenet1_0", "--fuse", "--budget", "128KiB", "-o", str(path)) == 0
    assert "fusion alone" in capsys.readouterr().out
    assert run("check", str(path)) == 0
    written = json.loads(path.read_text())
    assert written["options"]["planner"] == "joint"
    assert written["result"]["status"] == "optimal"


def test_the_command_names_what_does_not_fit(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("plan", "zoo:squeezenet1_0", "--fuse", "--budget", "100") == 1
    line = capsys.readouterr().err.strip()
    assert "infeasible" in line
    assert "because of" in line
    assert len(line.splitlines()) == 1
