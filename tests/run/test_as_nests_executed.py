"""Groups in bands, told as nests and certified as plans of their own: every value, every byte."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from onnx import TensorProto, parser

from onchip.check.as_nests import AsNests, in_nests, plan_as_nests
from onchip.plans import Blocks, Boxes, Plan, Scratch, to_text
from onchip.readers import ReadOptions
from onchip.readers.source import Source
from onchip.run import RunReport, run
from run.models import HEADER, read
from run.test_boxes_executed import in_boxes, source_of
from run.test_tiled import found, sketch
from run.test_tiled_blocks import in_blocks
from run.tilings import plan_of


def as_nests(plan: Plan, source: Source) -> tuple[AsNests, RunReport]:
    """A plan in nests, executed in a scratchpad that has room for it."""
    told = plan_as_nests(plan)
    assert told is not None
    assert told.fits == "in place", told.refusal
    made = in_nests(told)
    assert to_text(made).startswith("onchip.plan/2")
    report = run(made, source)
    moved = report.moved
    assert moved.compulsory + moved.spill + moved.reload + moved.weights == told.dram_bytes
    return told, report


@pytest.mark.parametrize(
    ("name", "rows", "streamed", "channels", "images"),
    [
        ("chain", 1, ("x", "c"), 2, 2),
        ("chain", 4, (), 2, 2),
        ("fork", 2, ("a", "b", "c"), 2, 1),
        ("ahead", 1, ("x",), 2, 1),
        ("parked", 2, ("b", "c"), 3, 1),
    ],
)
def test_bands_run_as_nests(
    name: str, rows: int, streamed: tuple[str, ...], channels: int, images: int
) -> None:
    made = sketch(name, rows, streamed, channels, images)
    told, _ = as_nests(plan_of(made.network, [made], 1 << 16), found(name))
    [group] = told.groups
    assert group.nest_dram_bytes == group.dram_bytes
    assert "held" not in group.reasons


@pytest.mark.parametrize("streamed", [("x",), ("b", "c", "x")])
def test_an_operand_that_another_waits_for_is_held_and_runs(streamed: tuple[str, ...]) -> None:
    """Slices of x are summed into a, and taken from it, once it is complete: in one pass that cannot be."""
    made = sketch("parked", 2, streamed, 3, 1)
    told, _ = as_nests(plan_of(made.network, [made], 1 << 16), found("parked"))
    [group] = told.groups
    assert "held" in group.reasons


def test_a_nest_that_needs_more_room_than_the_plan_has_runs_behind_it_and_says_so(tmp_path: Path) -> None:
    """Boxes cut the features of a norm, which makes its row again for each; a nest has all of the row."""
    source = source_of("layer norm", tmp_path)
    plan = in_boxes(source.network, Boxes((1, 1, 1), (0, 1, 2)))
    report = run(plan, source)
    assert report.budget_bytes == plan.budget
    assert report.arena_bytes > plan.budget * report.scale
    [moved] = report.tiled
    assert moved.counted_bytes < moved.stated_bytes
    assert "together" in moved.why
    notes = "\n".join(report.notes)
    assert f"of {plan.budget:,} bytes on chip at most" in notes
    assert f"not {plan.groups[0].scratch_bytes:,} (together" in notes


def test_nothing_moves_where_the_nest_has_room_at_its_place(tmp_path: Path) -> None:
    plan = in_boxes(source_of("layer norm", tmp_path).network, Boxes((1, 1, 1), (0, 1, 2)))
    for budget, fits, grown in ((plan.budget, "no", ("g",)), (4 * plan.budget, "in place", ())):
        told = plan_as_nests(replace(plan, budget=budget))
        assert told is not None
        assert (told.fits, told.grown) == (fits, grown)
        [scratch] = [step for step in told.plan.program if isinstance(step, Scratch)]
        assert (scratch.address >= plan.budget) == bool(grown)


def test_blocks_that_end_inside_a_group_of_channels_end_with_it(tmp_path: Path) -> None:
    """Two of three output channels at a time, in three groups: six turns, not five, and as many bytes."""
    text = "one (float[1,6,4,3] x) => (float[1,9,4,3] y) { y = Conv<kernel_shape=[1,1], group=3>(x, w) }"
    proto = parser.parse_model(HEADER + text)
    proto.graph.initializer.append(TensorProto(name="w", dims=(9, 2, 1, 1), data_type=TensorProto.FLOAT))
    source = read(proto, tmp_path / "one.onnx", ReadOptions("op", "int8"))
    [moved] = run(in_blocks(source, Blocks(2, 2, 2, 1, False), ()), source).tiled
    assert moved.counted_bytes == moved.stated_bytes
