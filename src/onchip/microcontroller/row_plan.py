"""From rows with addresses to a plan program, certified like every other."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import get_args

from onchip.check import certify
from onchip.microcontroller.int8.model import Layer
from onchip.microcontroller.row_network import row_network, row_workspaces
from onchip.microcontroller.rows.addresses import Placed, least_bytes, place
from onchip.microcontroller.rows.makers import Maker, Phase, RowModel
from onchip.microcontroller.rows.planning import RowPlan, plan
from onchip.microcontroller.rows.search import Order
from onchip.microcontroller.rows.workspaces import workspaces
from onchip.network import Network
from onchip.planners.limits import NO_LIMITS, Limits
from onchip.plans import Group, Plan, PlanChip, RowMap, Rows, Run, Scratch
from onchip.plans.rows import RowsDoes

__all__ = ["ALIGNMENT", "GROUP", "SPACE", "plan_of_rows", "planned_rows", "row_spaces"]

GROUP = "rows"
"""The name of the one group."""

ANEW = "maps whole, in strips of columns or made anew for a reader, row by row in any order, at any addresses"
"""The space of plans in which something is made twice."""

SPACE = "every map made once and row by row, in any order, rows beside one another at any addresses"

ALIGNMENT = 4
"""The alignment of rows: kernels read words."""

WORTH = 100
"""Kernels take smaller workspaces, and more instructions, where that saves one in so many bytes."""

DOES: Mapping[Phase, RowsDoes] = {
    "input": "fetch",
    "row": "rows",
    "sum": "sums",
    "end": "end",
    "whole": "whole",
    "gather": "gather",
}
assert set(DOES) == set(get_args(Phase))


def plan_of_rows(
    rows: RowModel,
    found: RowPlan,
    sizes: Sequence[int],
    *,
    ram_bytes: int | None = None,
    shared: Collection[str] = (),
    seconds: float = 0.0,
) -> Plan:
    """Return the certified program of a plan of rows whose kernels take workspaces of these `sizes`.

    Raises `IllegalPlan` where `ram_bytes` are too few.

    Held inputs come first, row by row: where they lie is theirs from the start.
    """
    held = any(op.held for op in found.graph.operators)
    fetched = [maker.tensor for maker in rows.makers if maker.phase == "input"]
    anew = any(op.anew for op in found.graph.operators) or any(m.columns is not None for m in rows.makers)
    bound = 0 if anew else found.order.bound
    steps = [i for i, op in enumerate(found.graph.operators) if op.held for _ in range(op.steps)]
    steps += found.placed.schedule
    places = workspaces(found.placed, sizes)
    network = row_network(rows, shared, _by_layer(rows, sizes))
    ends = [a + n for at, n in zip(places, sizes, strict=True) for a in at]
    extent = max([found.placed.bytes, *ends])
    image = "held" if held else "again" if len(fetched) > len(set(fetched)) else "once"
    maps = [*_maps(rows, network, found, places), *_joined(rows, network)]
    group = Group(
        GROUP, tuple(op.name for op in network.operators), extent, tiling=Rows(tuple(maps), tuple(steps))
    )
    crosses = {t: network.tensors[t].bytes for t in rows.model.outputs}
    for op, maker in zip(found.graph.operators, rows.makers, strict=True):
        if maker.phase == "input":
            crosses[maker.tensor] = crosses.get(maker.tensor, 0) + op.bytes * op.steps
    crossing = tuple((network.tensors[t].name, bytes_) for t, bytes_ in crosses.items())
    return certify(
        network,
        PlanChip("mcu"),
        extent if ram_bytes is None else ram_bytes,
        [Scratch(GROUP, 0), Run(GROUP, crossing)],
        status="optimal" if extent == bound else "feasible",
        lower_bound_bytes=0,
        peak_lower_bound_bytes=bound,
        options={"planner": "rows", "objective": "peak", "input": image},
        space=ANEW if anew else SPACE,
        seconds=seconds,
        groups=[group],
    )


def planned_rows(
    rows: RowModel,
    shared: Collection[str] = (),
    limits: Limits = NO_LIMITS,
    *,
    shrink: bool = False,
    known: Order | None = None,
) -> tuple[RowPlan, list[int]]:
    """Return the best plan that is found, and the bytes of the workspace that each operator's kernel takes.

    Kernels that make several pixels at a time take a larger workspace. With `shrink` those for which there is
    no room take a smaller one, where that saves a part of the bytes that is worth their instructions. A
    `known` order is packed, too, and the bound is then not that of minimum cuts; smaller workspaces are then
    tried only where the larger ones bind.
    """
    choices = [_choices(maker, shared) for maker in rows.makers]
    fast, small = ([choice[n] for choice in choices] for n in (0, -1))
    found = plan(rows.graph, rows.outputs, alignment=ALIGNMENT, spaces=fast, known=known, limits=limits)
    schedule = found.placed.schedule
    needs = [least_bytes(rows.graph, schedule, spaces, share=False) for spaces in (fast, small)]
    promising = known is None or needs[0] > needs[1]
    if (
        shrink
        and promising
        and fast != small
        and found.placed.bytes * (WORTH - 1) > found.order.bound * WORTH
    ):
        placed = place(
            rows.graph,
            schedule,
            outputs=rows.outputs,
            alignment=ALIGNMENT,
            spaces=small,
            limits=limits,
        )
        if placed.bytes * WORTH < found.placed.bytes * (WORTH - 1):
            return replace(found, placed=placed), _fitting(placed, choices)
    return found, fast


def row_spaces(rows: RowModel, shared: Collection[str], *, least: bool) -> list[int]:
    """Return the bytes of workspace of each operator's kernel: of the fastest, or the `least`."""
    return [_choices(maker, shared)[-1 if least else 0] for maker in rows.makers]


def _fitting(placed: Placed, choices: Sequence[Sequence[int]]) -> list[int]:
    """Return the largest workspace of each operator that has room between the rows."""
    found = [choice[-1] for choice in choices]
    for i, choice in enumerate(choices):
        for size in choice[:-1]:
            places = workspaces(placed, [size if n == i else 0 for n in range(len(choices))])[i]
            if all(at + size <= placed.bytes for at in places):
                found[i] = size
                break
    return found


def _choices(maker: Maker, shared: Collection[str]) -> Sequence[int]:
    """Return the bytes of workspace of the kernels that may make an operator's row, the fastest first."""
    if maker.phase in ("sum", "end") or not maker.layers:
        return (0,)
    first = row_workspaces(maker.layers[0], shared)
    rest = max((row_workspaces(layer, shared)[0] for layer in maker.layers[1:]), default=0)
    return [max(n, rest) for n in first]


def _by_layer(rows: RowModel, sizes: Sequence[int]) -> dict[str, int]:
    """Return the workspace of each layer."""
    found: dict[str, int] = {}
    for maker, size in zip(rows.makers, sizes, strict=True):
        for layer in maker.layers:
            found[layer.name] = max(size, found.get(layer.name, 0))
    return found


def _maps(
    rows: RowModel, network: Network, found: RowPlan, places: Sequence[tuple[int, ...]]
) -> list[RowMap]:
    placed = found.placed
    address = {(life.operator, life.row): a for life, a in zip(placed.lives, placed.addresses, strict=True)}
    maps = []
    for i, (op, maker) in enumerate(zip(rows.graph.operators, rows.makers, strict=True)):
        layers: tuple[Layer, ...] = maker.layers if maker.pad is None else (maker.pad, *maker.layers)
        made = maker.layers[0].output if maker.phase == "sum" else maker.tensor
        maps.append(
            RowMap(
                network.tensors[made].name,
                tuple(address[i, row] for row in range(op.steps)),
                tuple(layer.name for layer in layers),
                tuple(dict.fromkeys(o.maker for o in op.operands if o.maker != i)),
                DOES[maker.phase],
                places[i],
                maker.columns or (),
            )
        )
    return maps


def _joined(rows: RowModel, network: Network) -> list[RowMap]:
    """Return the outputs that are other maps, one behind the other."""
    found = []
    for t, parts in zip(rows.model.outputs, rows.outputs, strict=True):
        if all(rows.makers[i].tensor != t for i in parts):
            layer = rows.model.producer[t]
            found.append(RowMap(network.tensors[t].name, (), (layer.name,), parts, "joined"))
    return found
