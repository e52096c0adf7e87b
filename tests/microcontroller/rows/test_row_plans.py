"""Plans by rows: written and read, proved by the checker, refused where a byte would be lost, run as C."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from microcontroller.native import SANITIZED, differences, made_of, needs_compiler
from onchip.base.errors import IllegalPlan, PlanFormatError
from onchip.check import check
from onchip.check.row_lives import lives_of
from onchip.microcontroller.emulator.verify import inputs_of
from onchip.microcontroller.int8.model import Int8Model
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.int8.reference import Session
from onchip.microcontroller.made import Builder
from onchip.microcontroller.row_plan import plan_of_rows, row_spaces
from onchip.microcontroller.rows import search
from onchip.microcontroller.rows.addresses import place
from onchip.microcontroller.rows.makers import RowModel
from onchip.microcontroller.rows.of_model import row_model
from onchip.microcontroller.rows.planning import RowPlan
from onchip.plans import Group, Plan, RowMap, Rows, from_json, from_text, to_json, to_text
from oracles.row_cases import random_model

STRICT = f"{SANITIZED} -Wall -Wextra -Wconversion -Werror"


def planned(model: Int8Model, *, held: bool = True) -> Plan:
    rows = row_model(model, kernels=True, held=held)
    rows = replace(rows, graph=rows.graph.held() if held else rows.graph.by_rows())
    return plan_of_rows(rows, *soon(rows))


def soon(rows: RowModel) -> tuple[RowPlan, list[int]]:
    """A plan without the searches that take long, and the bytes of its kernels' workspaces."""
    order = search(rows.graph, share=False, most_states=0, most_moves=5)
    spaces = row_spaces(rows, (), least=False)
    placed = place(
        rows.graph, order.schedule, outputs=rows.outputs, alignment=4, spaces=spaces, tighten=False
    )
    return RowPlan(rows.graph, order, placed), spaces


@cache
def example() -> tuple[Int8Model, Plan]:
    """An encoder-decoder with a skip, a mean, a concatenation, a resize, a pad and a matrix."""
    b = Builder(3)
    x = b.input((1, 8, 6, 4))
    a = b.conv(b.pad(x, (1, 1, 1, 1)), 6, 3, padding="VALID")
    low = b.logistic(b.conv(b.max_pool(a, (2, 2), 2), 6, 3))
    up = b.resize(low, (8, 6), "bilinear", half_pixel_centers=True)
    both = b.concat(a, up)
    y = b.depthwise(b.conv(both, 5), 3, 1)
    flat = b.reshape(b.average_pool(y, (2, 2), 2), (1, 60))
    ends = b.conv(y, 3), b.fully_connected(flat, 4), b.mean(b.add(a, up))
    model = model_of(b.file(*ends), name="example", where="example")
    return model, planned(model)


def rows_of(plan: Plan) -> Rows:
    found = plan.groups[0].tiling
    assert isinstance(found, Rows)
    return found


def changed(plan: Plan, rows: Rows, **group: int) -> Plan:
    """The plan with other rows, and no digest of its claims."""
    whole: Group = replace(plan.groups[0], tiling=rows, **group)  # type: ignore[arg-type]
    return replace(plan, groups=(whole,), result=replace(plan.result, claim_sha256=""))


def with_map(plan: Plan, number: int, change: Callable[[RowMap], RowMap]) -> Plan:
    rows = rows_of(plan)
    maps = tuple(change(one) if k == number else one for k, one in enumerate(rows.maps))
    return changed(plan, replace(rows, maps=maps))


def number_of(plan: Plan, does: str) -> int:
    return next(
        k for k, one in enumerate(rows_of(plan).maps) if one.does == does and (one.reads or one.addresses)
    )


def test_a_plan_by_rows_comes_back_from_both_forms_and_is_legal() -> None:
    _, plan = example()
    assert {one.does for one in rows_of(plan).maps} >= {"rows", "whole", "fetch", "gather", "sums", "end"}
    assert to_json(plan).startswith('{"format": "onchip.plan/2"')
    assert from_json(to_json(plan)) == from_text(to_text(plan)) == plan
    figures = check(plan)
    assert figures.extent_bytes == plan.groups[0].scratch_bytes
    assert figures.traffic_bytes == 0
    assert figures.macs == sum(op.work for op in plan.network.operators)


def test_files_of_the_first_version_hold_no_rows() -> None:
    _, plan = example()
    for read, text in ((from_json, to_json(plan)), (from_text, to_text(plan))):
        with pytest.raises(PlanFormatError, match="rows need a file of format"):
            read(text.replace("onchip.plan/2", "onchip.plan/1", 1))


@pytest.mark.parametrize(
    ("line", "other", "says"),
    [
        ("  rows\n", "  rows 3\n", "take no words"),
        ("    steps", "    paces", "is no line of rows"),
        (" fetch at", " fetched at", "is no line of rows"),
        (" fetch at", " fetch near", "expected by, from"),
        (" fetch at", " fetch at 0 at", "given twice"),
    ],
)
def test_a_wrong_line_of_rows_is_named(line: str, other: str, says: str) -> None:
    text = to_text(example()[1])
    assert line in text
    with pytest.raises(PlanFormatError, match=says):
        from_text(text.replace(line, other, 1))


def test_rows_without_steps_or_end_are_refused() -> None:
    lines = to_text(example()[1]).splitlines()
    steps = next(n for n, line in enumerate(lines) if line.startswith("    steps"))
    with pytest.raises(PlanFormatError, match="no steps"):
        from_text("\n".join(lines[:steps] + lines[steps + 1 :]))
    with pytest.raises(PlanFormatError, match="no `end`"):
        from_text("\n".join(lines[: steps + 1]))


def refusal(plan: Plan) -> str:
    with pytest.raises(IllegalPlan) as refused:
        check(plan)
    return refused.value.rule


def test_every_part_of_rows_is_proved() -> None:
    _, plan = example()
    rows = rows_of(plan)
    steps = rows.steps
    assert refusal(changed(plan, rows, scratch_bytes=plan.groups[0].scratch_bytes - 1)) == "group-scratch"
    assert refusal(changed(plan, rows, subgroups=2)) == "rows-alone"
    assert refusal(changed(plan, replace(rows, steps=steps[:-1]))) == "rows-steps"
    assert refusal(changed(plan, replace(rows, steps=(*steps, steps[-1])))) == "rows-steps"
    assert refusal(changed(plan, replace(rows, steps=(*steps, 99)))) == "rows-steps"
    assert refusal(changed(plan, replace(rows, steps=steps[::-1]))) == "rows-read"
    gather, whole, sums = (number_of(plan, does) for does in ("gather", "whole", "sums"))
    assert refusal(with_map(plan, gather, lambda one: replace(one, reads=(99,)))) == "rows-maps"
    assert refusal(with_map(plan, whole, lambda one: replace(one, operators=()))) == "rows-maps"
    assert refusal(with_map(plan, sums, lambda one: replace(one, does="rows"))) == "rows-maps"
    pieces = rows.maps[gather].reads[0]
    assert refusal(with_map(plan, whole, lambda one: replace(one, reads=(pieces,)))) == "rows-pieces"
    last = next(
        k
        for k, one in enumerate(rows.maps)
        if one.tensor == plan.network.tensors[plan.network.outputs[0]].name
    )
    end, size = plan.groups[0].scratch_bytes, len(rows.maps[last].addresses) * 64
    apart = with_map(plan, last, lambda one: replace(one, addresses=tuple(range(end, end + size, 64))))
    roomy = replace(apart.groups[0], scratch_bytes=end + size)
    assert refusal(replace(apart, groups=(roomy,), budget=end + size)) == "rows-complete"
    streamed = replace(plan.program[1], streaming=plan.program[1].streaming[1:])  # type: ignore[union-attr]
    assert refusal(replace(plan, program=(plan.program[0], streamed))) == "rows-alone"


def is_legal(plan: Plan) -> bool:
    try:
        check(plan)
    except IllegalPlan:
        return False
    return True


def meets(plan: Plan, k: int) -> bool:
    """True if a row of map k shares a byte with a row that is alive meanwhile, found pair by pair."""
    lives = lives_of(plan.network, plan.groups[0]).lives
    maps = rows_of(plan).maps
    for one in (life for life in lives if life.map == k):
        for other in lives:
            if other is one or (maps[k].does == "sums" and other.map == k):
                continue
            together = one.made <= other.last and other.made <= one.last
            if (
                together
                and one.address < other.address + other.bytes
                and other.address < one.address + one.bytes
            ):
                return True
    return False


def test_no_moved_row_passes_that_meets_a_row_alive() -> None:
    _, plan = example()
    choose = random.Random(7)
    refused, allowed = 0, 0
    for _ in range(40):
        k = choose.choice([n for n, one in enumerate(rows_of(plan).maps) if one.addresses])
        row, by = choose.randrange(len(rows_of(plan).maps[k].addresses)), choose.choice((-24, -8, -1, 1, 8))
        at = list(rows_of(plan).maps[k].addresses)
        at[row] = max(0, at[row] + by)
        moved = with_map(plan, k, lambda one, at=tuple(at): replace(one, addresses=at))  # type: ignore[misc]
        if is_legal(moved):
            allowed += 1
            assert not meets(moved, k)
        else:
            refused += 1
    assert refused > 10
    assert allowed > 1


@needs_compiler
@pytest.mark.thorough
def test_the_c_of_rows_makes_every_byte(tmp_path: Path) -> None:
    model, _ = example()
    compared(model, planned(model, held=False), tmp_path)


@needs_compiler
@pytest.mark.parametrize("axis", [1, 2])
def test_heads_of_two_scales_joined_in_another_shape_lie_behind_one_another(
    axis: int, tmp_path: Path
) -> None:
    """What detectors end with: each scale's boxes, reshaped to a list, and the lists one after the other."""
    b = Builder(3)
    x = b.conv(b.input((1, 8, 6, 4)), 6, 3)
    low = b.conv(x, 6, 3, 2)
    boxes = [(b.conv(x, 2), 48), (b.conv(low, 2), 12)]
    lists = [b.reshape(y, (1, n, 2) if axis == 1 else (1, 1, n, 2)) for y, n in boxes]
    model = model_of(b.file(b.concat(*lists, axis=axis)), name="heads", where="heads")
    plan = planned(model)
    assert rows_of(plan).maps[-1].does == "joined"
    compared(model, plan, tmp_path)


@needs_compiler
@pytest.mark.thorough
@pytest.mark.parametrize("seed", [20, 23])
def test_the_c_of_random_networks_by_rows_makes_every_byte(seed: int, tmp_path: Path) -> None:
    """A mean of columns; two resizings of equal sizes, one to the nearest."""
    model = random_model(seed)
    compared(model, planned(model), tmp_path)


def compared(model: Int8Model, plan: Plan, folder: Path) -> None:
    check(plan)
    given = inputs_of(model, 3)
    session = Session(model)
    wanted = b"".join(session.bytes_of(model, x) for x in given)
    assert differences(made_of(plan, model, folder / "project", given, flags=STRICT), wanted) == 0
    assert len(set(np.frombuffer(wanted, np.int8))) > 2
