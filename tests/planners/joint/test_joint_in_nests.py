"""Joint plans say groups in tiles as nests of loops wherever that costs nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto

import onchip
from onchip.base.errors import Infeasible
from onchip.check import certify, check
from onchip.check.as_nests import plan_as_nests
from onchip.machines.chip import load_chip
from onchip.network import Network, OperatorSpec
from onchip.network.axes import GroupAxes, axes_of
from onchip.planners.joint import JointOptions
from onchip.planners.joint.in_nests import in_nests
from onchip.planners.joint.planning import solve
from onchip.planners.limits import Limits
from onchip.plans import Alloc, Free, Load, Nest, Plan, Run, Store, Tiling
from oracles.fusion_cases import random_maps
from run.patched import onnx_source
from run.small_cnns import small_cnns
from sliced_plan import sliced_plan


def planned(network: Network, budget: int, *, alignment: int = 1, nests: bool = True) -> Plan | None:
    chip = replace(load_chip("generic"), alignment_bytes=alignment)
    try:
        return solve(network, chip, budget, JointOptions(fuse=True, channel_tile=2, nests=nests)).plan
    except Infeasible:
        return None


@pytest.mark.parametrize("seed", range(24))
def test_a_group_stays_in_tiles_only_where_its_nest_takes_more(seed: int) -> None:
    rng = Random(seed)
    network = random_maps(rng, 8, rng.choice((1, 1, 2)))
    budget = int(sum(t.bytes for t in network.tensors) * rng.choice((0.3, 0.5, 0.7)))
    alignment = rng.choice((1, 1, 4))
    made, before = (planned(network, budget, alignment=alignment, nests=n) for n in (True, False))
    if made is None:
        assert before is None
        return
    check(made)
    assert before is None or made.result.dram_bytes <= before.result.dram_bytes
    told = plan_as_nests(made)
    for group in () if told is None else told.groups:
        assert group.nest_scratch_bytes is None or (
            group.nest_scratch_bytes > group.scratch_bytes or (group.nest_dram_bytes or 0) > group.dram_bytes
        )


@pytest.mark.parametrize(("budget", "nests"), [(25, True), (24, False)])
def test_addresses_change_where_a_nest_has_room_then(budget: int, *, nests: bool) -> None:
    """The group takes 18 bytes, its nest 22; z takes 3, behind the 18."""
    plain = sliced_plan(18)
    both = Network.build(
        "both",
        [
            *((t.name, t.bytes, t.kind) for t in plain.network.tensors),
            ("z", 3, "input"),
            ("w", 1, "activation"),
        ],
        [
            OperatorSpec("f", "Conv", ["x"], ["y"], 25, 0, plain.network.operators[0].geometry),
            OperatorSpec("h", "Any", ["z"], ["w"]),
        ],
        ["y", "w"],
        shapes={"x": (1, 8, 4, 4), "y": (1, 2, 4, 4)},
    )
    program = (
        Load("z", 18), *plain.program, Alloc("w", 0), Run("h"), Store("w"), Free("w"), Free("z"),
    )  # fmt: skip
    before = certify(
        both, plain.chip, budget, program,
        status="feasible", lower_bound_bytes=0, seconds=0, groups=plain.groups,
    )  # fmt: skip
    found = in_nests(before, Limits())
    made = certify(
        both, plain.chip, budget, found.program,
        status="feasible", lower_bound_bytes=0, seconds=0, groups=found.groups,
    )  # fmt: skip
    assert [isinstance(group.tiling, Nest) for group in made.groups] == [nests]
    assert made.result.dram_bytes == before.result.dram_bytes
    assert nests or made.program == program


@pytest.mark.thorough
def test_without_nests_groups_stay_as_they_were_found() -> None:
    made, before = (
        onchip.plan("zoo:squeezenet1_0", budget="256KiB", fuse=True, nests=n) for n in (True, False)
    )
    assert all(isinstance(group.tiling, Nest) for group in made.groups)
    assert any(isinstance(group.tiling, Tiling) for group in before.groups)
    assert not any(isinstance(group.tiling, Nest) for group in before.groups)
    assert made.result.dram_bytes <= before.result.dram_bytes


@pytest.mark.thorough
@settings(max_examples=12, deadline=None)
@given(model=small_cnns(), share=st.sampled_from((0.1, 0.3, 0.5)))
def test_what_is_planned_is_executed(
    tmp_path_factory: pytest.TempPathFactory, model: ModelProto, share: float
) -> None:
    path = tmp_path_factory.mktemp("net") / "net.onnx"
    onnx.save(model, path)
    source = onchip.load(path)
    budget = int(sum(t.bytes for t in source.network.tensors) * share)
    try:
        made = onchip.plan(source, budget=budget, fuse=True, channel_tile=2)
    except Infeasible:
        return
    report = made.run(seed=1)
    moved = report.moved
    # A group whose nest has no room stays in bands, and may move less when it runs.
    less = sum(group.stated_bytes - group.counted_bytes for group in report.tiled)
    assert all(group.counted_bytes <= group.stated_bytes for group in report.tiled)
    assert less == 0 or any(isinstance(group.tiling, Tiling) for group in made.groups)
    assert moved.compulsory + moved.spill + moved.reload + moved.weights == made.result.dram_bytes - less


@pytest.mark.parametrize("operands", ["v, t", "t, v"])
@pytest.mark.parametrize("budget", [120, 200])
def test_an_operand_of_a_concat_that_a_turn_does_not_need_is_not_read(
    tmp_path: Path, operands: str, budget: int
) -> None:
    """The first turns along channels read one operand; the scratch holds later rows of the other."""
    text = f"""g (float[1,4,5,5] x) => (float[1,8,5,5] y, float[1,4,4,4] z) {{
        v = Conv<kernel_shape=[1,1]>(x, w)
        t = Tanh(v)
        c = Concat<axis=1>({operands})
        y = Sigmoid(c)
        z = MaxPool<kernel_shape=[2,2]>(t) }}"""
    source = onnx_source(tmp_path, text, {"w": (4, 4, 1, 1)}, "int8", "fused")
    made = onchip.plan(source, budget=budget, fuse=True, channel_tile=2, concat_views=False)
    moved = made.run(seed=1).moved
    assert moved.compulsory + moved.spill + moved.reload + moved.weights == made.result.dram_bytes


@pytest.mark.thorough
def test_a_plan_has_nests_alone_where_that_moves_little_more() -> None:
    """In bands one group takes the whole buffer, and more than there is as a nest."""
    made = onchip.plan("zoo:resnet18", chip="optimus-6", fuse=True)
    assert all(isinstance(group.tiling, Nest) for group in made.groups)
    assert made.result.status == "optimal"


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_windows_that_leave_out_the_last_rows_share_a_buffer_with_other_uses(
    tmp_path: Path, stride: int
) -> None:
    text = f"""g (float[1,4,8,8] x) => (float[1,4,{7 // stride + 1},{7 // stride + 1}] y, float[1,4,8,8] z) {{
        y = Conv<kernel_shape=[1,1], strides=[{stride},{stride}]>(x, w)
        z = Relu(x) }}"""
    network = onnx_source(tmp_path, text, {"w": (4, 4, 1, 1)}, "int8", "fused").network
    axes = axes_of(network, network.order)
    assert isinstance(axes, GroupAxes)
    (shared,) = (b for b in axes.buffers if b.maker is None and b.tensor is not None)
    assert shared.elements == 256
