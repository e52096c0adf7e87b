"""A network planned by rows, and plans that differ from it in one thing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

from onchip.microcontroller.int8.model import Int8Model
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.made import Builder
from onchip.microcontroller.row_plan import plan_of_rows, row_spaces
from onchip.microcontroller.rows import search
from onchip.microcontroller.rows.addresses import place
from onchip.microcontroller.rows.makers import RowModel
from onchip.microcontroller.rows.of_model import row_model
from onchip.microcontroller.rows.planning import RowPlan
from onchip.plans import Group, Plan, RowMap, Rows

__all__ = ["changed", "example", "number_of", "planned", "rows_of", "with_map"]


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
