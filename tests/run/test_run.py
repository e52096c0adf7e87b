"""Plans executed: every tensor bit for bit, every byte counted, whatever the order, addresses and spills."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, parser

from onchip.base.errors import IllegalPlan, InputError, Mismatch, MissingExtra, ModelError, UsageError
from onchip.machines.chip import Chip
from onchip.network import Operator
from onchip.network.json import wire_network
from onchip.plans import Free, Plan, bind
from onchip.readers import ReadOptions, load
from onchip.run import run
from onchip.run.onnx_engine import OnnxEngine
from run.models import HEADER, MODELS, TYPED, model, read, source, typed
from run.planner import random_plan, roomy

OPTIONS = [ReadOptions(g, d) for g in ("fused", "op") for d in ("file", "int8")]  # type: ignore[arg-type]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: f"{o.granularity}-{o.dtype}")
@pytest.mark.parametrize("name", MODELS)
def test_random_legal_plans_are_bit_exact_and_move_the_bytes_that_the_checker_says(
    name: str, options: ReadOptions, tmp_path: Path
) -> None:
    found = source(name, tmp_path, options)
    for seed in range(6):
        random = Random(seed)
        chip = Chip("test", random.choice([1, 4, 64]))
        budget = int(roomy(found.network, chip) * random.choice([1, 1.3, 3]))
        plan = random_plan(found.network, budget, random, chip)
        report = run(plan, found, seed=seed)
        assert report.bit_exact
        assert report.max_difference == 0
        assert report.operators == len(found.network.operators)
        assert report.tensors == len(found.network.tensors)
        assert report.moved.compulsory == plan.result.compulsory_bytes
        assert report.moved.reload == plan.result.reload_bytes
        assert report.moved.spill == plan.result.spill_bytes
        assert report.arena_bytes <= budget * report.scale
        assert report.scale == (1 if options.dtype == "file" else 4 if name != "outputs" else report.scale)


@pytest.mark.parametrize("name", TYPED)
def test_other_element_types_run_at_their_own_width(name: str, tmp_path: Path) -> None:
    for granularity in ("fused", "op"):
        found = read(typed(name), tmp_path / f"{name}.onnx", ReadOptions(granularity))  # type: ignore[arg-type]
        for seed in range(3):
            plan = random_plan(found.network, roomy(found.network), Random(seed))
            report = run(plan, found, seed=seed)
            assert report.bit_exact
            assert report.scale == 1


def test_an_element_type_that_cannot_be_executed_is_named(tmp_path: Path) -> None:
    text = "bf (bfloat16[2,3] x) => (bfloat16[2,3] y) { y = Relu(x) }"
    found = read(parser.parse_model(HEADER + text), tmp_path / "bf.onnx")
    plan = random_plan(found.network, roomy(found.network), Random(0))
    with pytest.raises(ModelError, match=r"BFLOAT16"):
        run(plan, found)


@pytest.mark.parametrize("name", MODELS)
def test_another_input_changes_every_tensor(name: str, tmp_path: Path) -> None:
    found = source(name, tmp_path, ReadOptions("op"))
    plan = random_plan(found.network, roomy(found.network), Random(0))
    one, again, other = (run(plan, found, seed=1, input_seed=i) for i in (1, 1, 2))
    assert one.digests.keys() == {t.name for t in found.network.tensors}
    assert one.digests == again.digests
    assert not set(one.digests.items()) & set(other.digests.items())


def test_other_weights_change_every_tensor_that_has_weights_before_it(tmp_path: Path) -> None:
    found = source("residual", tmp_path)
    plan = random_plan(found.network, roomy(found.network), Random(0))
    one, other = (run(plan, found, seed=s, input_seed=7).digests for s in (1, 2))
    assert [n for n in one if one[n] == other[n]] == ["x"]


def test_weights_resident_in_the_scratch(tmp_path: Path) -> None:
    found = source("residual", tmp_path)
    network = found.network.with_resident_weights()
    plan = random_plan(network, roomy(network), Random(3))
    assert run(plan, found).bit_exact


def test_a_huge_budget_is_not_allocated(tmp_path: Path) -> None:
    found = source("residual", tmp_path)
    plan = random_plan(found.network, roomy(found.network), Random(0))
    report = run(bind(replace(plan, budget=1 << 40)), found)
    assert report.arena_bytes == plan.result.extent_bytes
    assert any("only those were allocated" in note for note in report.notes)


def test_the_model_is_read_again_from_where_the_plan_says(tmp_path: Path) -> None:
    found = source("concat", tmp_path, ReadOptions("op", "int8"))
    plan = random_plan(found.network, roomy(found.network), Random(0))
    plan = bind(replace(plan, options={"granularity": "op", "dtype": "int8", "weights": "streamed"}))
    assert run(plan).bit_exact
    moved = tmp_path / "elsewhere.onnx"
    (tmp_path / "concat.onnx").rename(moved)
    assert run(plan, moved).bit_exact
    with pytest.raises(InputError, match="--model"):
        run(plan)


def test_a_model_that_changed_is_refused(tmp_path: Path) -> None:
    found = source("concat", tmp_path)
    plan = random_plan(found.network, roomy(found.network), Random(0))
    other = model("concat")
    other.doc_string = "changed"
    (tmp_path / "concat.onnx").write_bytes(other.SerializeToString())
    with pytest.raises(InputError, match="changed since it was planned"):
        run(plan)
    with pytest.raises(InputError, match="changed since it was planned"):
        run(plan, source("residual", tmp_path))


def test_a_network_of_sizes_has_nothing_to_execute(tmp_path: Path) -> None:
    import msgspec

    path = tmp_path / "sizes.json"
    path.write_bytes(msgspec.json.encode(wire_network(source("concat", tmp_path).network)))
    network = load(path).network
    plan = random_plan(network, roomy(network), Random(0))
    with pytest.raises(UsageError, match="nothing to execute"):
        run(plan)


def test_random_operators_have_no_one_result(tmp_path: Path) -> None:
    text = "r (float[2,3] x) => (float[2,3] y) { a = RandomNormalLike(x) y = Add(a, x) }"
    found = read(parser.parse_model(HEADER + text), tmp_path / "r.onnx")
    plan = random_plan(found.network, roomy(found.network), Random(0))
    with pytest.raises(ModelError, match="RandomNormalLike draws random numbers"):
        run(plan, found)


def test_without_onnxruntime_the_message_is_the_install_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = source("concat", tmp_path)
    plan = random_plan(found.network, roomy(found.network), Random(0))
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtra, match=r"pip install 'onchip\[run\]'"):
        run(plan, found)


def test_the_checker_comes_first_unless_switched_off(tmp_path: Path) -> None:
    found = source("concat", tmp_path)
    plan = random_plan(found.network, roomy(found.network), Random(0))
    wrong = replace(plan, result=replace(plan.result, peak_bytes=plan.result.peak_bytes + 1))
    with pytest.raises(IllegalPlan, match="result"):
        run(wrong, found)
    assert run(wrong, found, checked=False).bit_exact


@pytest.mark.parametrize("figure", ["compulsory_bytes", "reload_bytes", "spill_bytes"])
def test_bytes_moved_must_be_the_plans(figure: str, tmp_path: Path) -> None:
    found = source("concat", tmp_path)
    plan = random_plan(found.network, roomy(found.network), Random(0))
    result = replace(plan.result, **{figure: getattr(plan.result, figure) + 1})
    with pytest.raises(Mismatch, match=figure):
        run(replace(plan, result=result), found, checked=False)


class TestAFaultyOperator:
    """One element of one operator's result is changed: the comparison must see it and name it."""

    def plan(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: float) -> tuple[Plan, Any]:
        found = source("residual", tmp_path)
        honest = OnnxEngine.kernel

        def faulty(self: Any, op: Operator, operands: Mapping[int, Any]) -> Mapping[int, Any]:
            results = dict(honest(self, op, operands))
            if op.id == 1:
                (t,) = results
                results[t] = results[t].copy()
                results[t].reshape(-1)[5] *= 1 + change
            return results

        monkeypatch.setattr(OnnxEngine, "kernel", faulty)
        return random_plan(found.network, roomy(found.network), Random(0)), found

    def test_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        plan, found = self.plan(tmp_path, monkeypatch, 1e-6)
        op = found.network.operators[1]
        written = found.network.tensors[op.outputs[0]].name
        with pytest.raises(Mismatch, match=rf"tensor {written}, written by {op.name} .*1 of 256 elements"):
            run(plan, found)

    def test_may_be_tolerated(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        plan, found = self.plan(tmp_path, monkeypatch, 1e-6)
        report = run(plan, found, tolerance=1e-4)
        assert not report.bit_exact
        assert 0 < report.max_difference < 1e-4
        assert "bit for bit" not in "\n".join(report.lines())

    def test_is_not_tolerated_beyond_the_tolerance(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        plan, found = self.plan(tmp_path, monkeypatch, 0.5)
        with pytest.raises(Mismatch):
            run(plan, found, tolerance=1e-4)

    def test_a_result_that_is_not_a_number_is_never_tolerated(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        plan, found = self.plan(tmp_path, monkeypatch, np.nan)
        with pytest.raises(Mismatch):
            run(plan, found, tolerance=0.9)


def test_an_operator_that_onnxruntime_does_not_know_is_named(tmp_path: Path) -> None:
    proto = parser.parse_model(HEADER + "u (float[2,3] x) => (float[2,3] y) { y = Relu(x) }")
    found = read(proto, tmp_path / "u.onnx")
    plan = random_plan(found.network, roomy(found.network), Random(0))
    assert found.executable is not None
    found.executable.model.graph.node[0].CopyFrom(helper.make_node("Nonsense", ["x"], ["y"]))
    with pytest.raises(ModelError, match="onnxruntime cannot run it"):
        run(plan, found)


def test_a_tensor_left_where_it_may_stay_is_no_error(tmp_path: Path) -> None:
    found = source("residual", tmp_path)
    plan = random_plan(found.network, roomy(found.network) * 4, Random(1))
    kept = replace(plan, program=tuple(i for i in plan.program if not isinstance(i, Free)), budget=1 << 30)
    with pytest.raises((Mismatch, IllegalPlan)):
        run(kept, found, checked=False)  # its address was given to another, or it is loaded twice


def test_a_file_format_newer_than_the_runtime_knows_runs_all_the_same(tmp_path: Path) -> None:
    proto = model("residual")
    proto.ir_version = onnx.IR_VERSION
    found = read(proto, tmp_path / "new.onnx")
    assert run(random_plan(found.network, roomy(found.network), Random(0)), found).bit_exact
