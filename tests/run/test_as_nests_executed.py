"""Groups in bands, blocks and boxes, executed as the nests that they are: every value, every byte."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto

import onchip
from onchip.base.errors import Infeasible
from onchip.check.as_nests import AsNests, in_nests, plan_as_nests
from onchip.plans import Blocks, Plan, Scratch
from onchip.readers import ReadOptions, load
from onchip.readers.source import Source
from onchip.run import RunReport, run
from random_blocks import block_network
from run.small_cnns import small_cnns
from run.test_boxes_executed import KINDS, drawn, in_boxes, source_of
from run.test_tiled import found, sketch
from run.test_tiled_blocks import in_blocks, operators
from run.test_tiled_networks import certified, sketches_of
from run.test_tiled_networks import found as small
from run.tilings import plan_of


def as_nests(plan: Plan, source: Source) -> tuple[AsNests, RunReport]:
    """A plan in nests, executed in a scratchpad that has room for it."""
    told = plan_as_nests(plan)
    assert told is not None
    assert told.fits == "in place", told.refusal
    made = in_nests(plan, told)
    report = run(made, source)
    moved = report.moved
    assert moved.compulsory + moved.spill + moved.reload + moved.weights == told.dram_bytes
    return told, report


def roomy(name: str, rows: int, streamed: Sequence[str], channels: int, images: int) -> Plan:
    made = sketch(name, rows, streamed, channels, images)
    return plan_of(made.network, [made], 1 << 16)


@pytest.mark.parametrize(
    ("name", "rows", "streamed", "channels", "images"),
    [
        ("chain", 1, (), 2, 1),
        ("chain", 1, ("x", "c"), 2, 2),
        ("chain", 3, ("b", "d"), 3, 1),
        ("chain", 4, (), 2, 2),
        ("fork", 2, ("a", "b", "c"), 2, 1),
        ("fork", 2, ("c",), 3, 1),
        ("fork", 2, ("d", "x"), 2, 1),
        ("fork", 2, ("e", "p"), 2, 1),
        ("ahead", 1, ("x",), 2, 1),
        ("ahead", 1, (), 2, 2),
        ("parked", 2, ("b", "c"), 3, 1),
    ],
)
def test_bands_run_as_nests(
    name: str, rows: int, streamed: tuple[str, ...], channels: int, images: int
) -> None:
    told, _ = as_nests(roomy(name, rows, streamed, channels, images), found(name))
    [group] = told.groups
    assert group.nest_dram_bytes == group.dram_bytes
    assert "held" not in group.reasons


@pytest.mark.parametrize("streamed", [("x",), ("b", "c", "x")])
def test_an_operand_that_another_waits_for_is_held_and_runs(streamed: tuple[str, ...]) -> None:
    """Slices of x are summed into a, and taken from it, once it is complete: in one pass that cannot be."""
    told, _ = as_nests(roomy("parked", 2, streamed, 3, 1), found("parked"))
    [group] = told.groups
    assert "held" in group.reasons


def elsewhere(plan: Plan) -> Plan:
    """The same plan in more room, its scratch behind everything else."""
    room = 1 << 20
    moved = (replace(step, address=room) if isinstance(step, Scratch) else step for step in plan.program)
    return replace(plan, budget=2 * room, program=tuple(moved), kept={})


@pytest.mark.parametrize(
    "kind",
    [
        "attention",
        *(pytest.param(kind, marks=pytest.mark.thorough) for kind in KINDS if kind != "attention"),
    ],
)
def test_boxes_of_every_kind_run_as_nests(kind: str, tmp_path: Path) -> None:
    source = source_of(kind, tmp_path)
    [op] = source.network.operators
    assert op.reach is not None
    random = Random(kind)
    for _ in range(2):
        plan = elsewhere(in_boxes(source.network, drawn(random, op.reach)))
        told = plan_as_nests(plan)
        assert told is not None
        [group] = told.groups
        if group.nest_dram_bytes is None:
            assert group.reasons in (("together",), ("steps",))
        else:
            as_nests(plan, source)


@pytest.mark.thorough
@settings(max_examples=40)
@given(operators(), st.data())
def test_blocks_run_as_nests(model: ModelProto, data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "one.onnx"
        path.write_bytes(model.SerializeToString())
        source = load(path, ReadOptions("fused", "int8"))
    sizes = [data.draw(st.integers(1, most)) for most in (5, 5, 8, 8)]
    keeps = data.draw(st.booleans()) and bool(source.network.operators[0].weight_bytes)
    whole = data.draw(st.sampled_from(((), (), (0,), (1,), (0, 1))))
    plan = elsewhere(in_blocks(source, Blocks(*sizes, keeps), whole))
    told = plan_as_nests(plan)
    assert told is not None
    [group] = told.groups
    if group.nest_dram_bytes is None:
        assert group.reasons == ("across-axes",)
    else:
        as_nests(plan, source)


def planned(source: Source, share: float) -> Plan | None:
    """The plan in bands, blocks and boxes in a share of the room of all tensors; None if none fits."""
    whole = sum(t.bytes for t in source.network.tensors)
    try:
        return onchip.plan(source, budget=max(16, int(whole * share)), fuse=True, nests=False)
    except Infeasible:
        return None


def run_in_more_room(source: Source, shares: Sequence[float]) -> set[str]:
    """Execute the plans of a network in nests where these fit; return the forms of their groups."""
    forms = set[str]()
    for share in shares:
        plan = planned(source, share)
        told = None if plan is None else plan_as_nests(plan)
        if plan is not None and told is not None and told.fits == "in place":
            as_nests(plan, source)
            forms |= {group.form for group in told.groups}
    return forms


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [3, 11, 80])
def test_plans_of_blocks_run_as_nests(seed: int, tmp_path: Path) -> None:
    onnx.save(block_network(seed), tmp_path / "net.onnx")
    assert run_in_more_room(onchip.load(tmp_path / "net.onnx"), (0.05, 0.1, 0.3))


@pytest.mark.thorough
@settings(max_examples=15)
@given(small_cnns())
def test_plans_of_small_networks_run_as_nests(
    tmp_path_factory: pytest.TempPathFactory, model: object
) -> None:
    path = tmp_path_factory.mktemp("net") / "net.onnx"
    onnx.save(model, path)  # type: ignore[arg-type]
    run_in_more_room(load(path, ReadOptions()), (0.03, 0.1, 0.3))


@pytest.mark.slow
@settings(max_examples=60)
@given(
    st.integers(1, 3).flatmap(small_cnns), st.sampled_from(["fused", "op"]),
    st.sampled_from(["file", "int16", "int8"]), st.data(),
)  # fmt: skip
def test_random_tilings_run_as_nests(
    model: ModelProto, granularity: str, dtype: str, data: st.DataObject
) -> None:
    source = small(model, granularity, dtype)
    try:
        sketches = sketches_of(source, data)
    except ValueError:
        return  # strides of two paths disagree
    if all(sketch.legal() for sketch in sketches):
        as_nests(elsewhere(certified(plan_of(source.network, sketches))), source)
