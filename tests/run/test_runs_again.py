"""Plans in which operators run again, of a block that is scaled by what is squeezed out of it: executed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import onchip
from onchip.base.errors import IllegalPlan, InputError, UsageError
from onchip.check import check
from onchip.export import export
from onchip.machines.chip import load_chip
from onchip.network import Network
from onchip.network.needed import needed_bytes
from onchip.network.repeats import folded, repeated
from onchip.planners.placement import PlacementOptions
from onchip.planners.placement import plan as place
from onchip.plans import from_json, from_text, to_json, to_text
from onchip.report.findings import repeats_sentence
from onchip.run import run
from squeezed import write_squeeze

BUDGET = 12 * 1024


@pytest.fixture(scope="module")
def squeeze(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_squeeze(tmp_path_factory.mktemp("squeeze") / "squeeze.onnx")


@pytest.fixture(scope="module")
def again(squeeze: Path) -> onchip.Plan:
    return onchip.plan(squeeze, budget=BUDGET, fuse=True, recompute=True)


def test_less_crosses_and_more_is_computed(squeeze: Path, again: onchip.Plan) -> None:
    once = onchip.plan(squeeze, budget=BUDGET, fuse=True)
    assert folded(again.network).network.fingerprint == once.network.fingerprint
    assert again.result.dram_bytes < once.result.dram_bytes
    assert (again.result.macs or 0) > (once.result.macs or 0)
    assert again.result.dram_lower_bound_bytes == needed_bytes(once.network)
    assert again.limit_bytes == once.limit_bytes
    assert "Run again, and not kept: e0 in " in repeats_sentence(again)
    assert from_json(to_json(again)) == from_text(to_text(again)) == again
    anew = onchip.plan(again.network, budget=BUDGET, fuse=True)  # what the network means is planned
    assert anew.result.dram_bytes == once.result.dram_bytes


def test_it_is_executed_and_every_repeat_compared(again: onchip.Plan) -> None:
    report = again.run()
    assert report.operators == len(again.network.operators) > len(folded(again.network).network.operators)
    assert report.moved.weights == again.result.weight_bytes
    names = {t.name for t in again.network.tensors}
    made_again = {name for name in names if ".again" in name}
    assert made_again
    assert any(name in report.digests for name in made_again)


def test_another_wiring_is_neither_the_claims_nor_the_models(again: onchip.Plan) -> None:
    ids = again.network.tensor_id
    assert again.network.operators[again.network.operator_id["m"]].inputs[0] == ids["d1.again"]
    operators = tuple(
        replace(op, inputs=(ids["e1.again"], op.inputs[1])) if op.name == "m" else op
        for op in again.network.operators
    )
    forged = replace(again, network=replace(again.network, operators=operators))
    with pytest.raises(IllegalPlan):
        check(forged)
    with pytest.raises(InputError, match="the model changed since it was planned"):
        run(forged, checked=False)


def test_options_that_allow_no_repeat_exclude_the_plan(again: onchip.Plan) -> None:
    denied = onchip.plans.bind(replace(again, options={**again.options, "recompute": False}))
    with pytest.raises(IllegalPlan, match=r"option recompute is not true, and .*again repeats an operator"):
        check(denied)


@pytest.fixture(scope="module")
def whole(squeeze: Path) -> onchip.plans.Plan:
    """A plan of whole operators in which the block's first two run again."""
    network: Network = repeated(onchip.load(squeeze).network, ["e0", "d0"], ["m"])
    budget = sum(t.bytes for t in network.tensors)
    made = place(network, load_chip("generic"), budget, PlacementOptions())
    return replace(made, options={}, result=replace(made.result, claim_sha256=""))


def test_whole_operators_run_again_bit_for_bit(whole: onchip.plans.Plan) -> None:
    assert check(whole).traffic_bytes == 0
    report = run(whole)
    assert report.bit_exact
    assert report.operators == len(whole.network.operators)


def test_exports_say_what_runs_again_or_refuse(whole: onchip.plans.Plan, again: onchip.Plan) -> None:
    rows = json.loads(export(whole, "json"))["repeats"]
    assert {"operator": "d0.again", "of": "d0"} in rows
    assert "d0 again */" in export(whole, "c").decode()
    for format_ in ("tflm", "executorch"):
        with pytest.raises(UsageError, match=f"again: runs again in this plan, and {format_} runs every"):
            export(whole, format_)
    assert b"again" in export(again, "loops")
