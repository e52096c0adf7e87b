"""A plan by rows as the input of the C writer: its maps with the layers that make them.

Everything comes from the plan program and from `check.row_maps`, which derives the rows that every step
reads; this module decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from onchip.base.errors import PlanFormatError
from onchip.check.row_maps import ColumnRun, StepMap
from onchip.check.row_memory import rows_run
from onchip.microcontroller.int8.model import Conv, Depthwise, Int8Model, Layer, Pad
from onchip.microcontroller.project.windows import Operand, operands
from onchip.plans import Group, Plan, RowMap, Rows, Run, Scratch

__all__ = ["MapUnit", "RowsUnit", "rows_unit"]


@dataclass(frozen=True, slots=True)
class MapUnit:
    """A map of so many `columns`, and its layers: by number, the reader and those that change its row.

    `runs` are the columns that the first makes at a time, with the numbers of the maps that hold its
    operands. `workspace` are the bytes that the plan gives the kernel.
    """

    plan: RowMap
    steps: StepMap
    tensor: int
    columns: int
    layers: tuple[tuple[int, Layer, tuple[Operand, ...]], ...]
    runs: tuple[ColumnRun, ...]
    workspace: int

    @property
    def layer(self) -> Layer:
        """The layer that reads."""
        return self.layers[0][1]

    @property
    def sources(self) -> tuple[int, ...]:
        """The maps that hold the operands of the first layer, one an operand; those of its first columns."""
        return self.runs[0].reads if self.runs else ()

    @property
    def first_column(self) -> int:
        """The first column that the map has of its tensor."""
        return self.steps.columns[0]


@dataclass(frozen=True, slots=True)
class RowsUnit:
    """A whole network by rows, its scratch at `address`. `steps` leave out the rows of inputs that are held.

    `inputs` are the addresses of inputs in one piece (None: fetched row by row), `outputs` those of outputs.
    """

    maps: tuple[MapUnit, ...]
    steps: tuple[int, ...]
    address: int
    inputs: Mapping[int, int | None]
    outputs: Mapping[int, int]


def rows_unit(plan: Plan, model: Int8Model) -> RowsUnit | None:
    """Return the network by rows; None if the plan has no rows.

    Raises `PlanFormatError` for a plan that mixes rows with other steps.
    """
    groups = [group for group in plan.groups if isinstance(group.tiling, Rows)]
    if not groups:
        return None
    group = groups[0]
    ran = [step for step in plan.program if not isinstance(step, Scratch)]
    whole = set(group.operators) == {layer.name for layer in model.layers}
    if len(ran) != 1 or not isinstance(ran[0], Run) or not whole or plan.state:
        raise PlanFormatError("runs something beside its rows", where=model.name, item=group.name)
    at = next((step.address for step in plan.program if isinstance(step, Scratch)), 0)
    return _unit(plan, model, group, at)


def _unit(plan: Plan, model: Int8Model, group: Group, at: int) -> RowsUnit:
    rows, network = group.tiling, plan.network
    assert isinstance(rows, Rows)
    ids = [network.operator_id[name] for name in group.operators]
    number = {layer.name: i for i, layer in enumerate(model.layers)}
    tensor = {t.name: t.id for t in model.tensors}
    maps: list[MapUnit] = []
    leaves = [network.tensor_id[model.tensors[t].name] for t in dict.fromkeys(model.outputs)]
    ran = rows_run(network, group, ids, None, leaves)
    for one, steps in zip(rows.maps, ran.maps, strict=True):
        layers = _unpadded([(number[name], model.layers[number[name]]) for name in one.operators], model)
        read = tuple((n, layer, operands(layer, model)) for n, layer in layers)
        made = tensor[one.tensor]
        columns = model.tensors[made].shape[2]
        runs = steps.runs
        if not runs and layers and one.does in ("rows", "whole", "sums"):
            of = {maps[k].tensor: k for k in one.reads}
            runs = (ColumnRun(0, columns, tuple(of[o.tensor] for o in read[0][2])),)
        maps.append(MapUnit(one, steps, made, columns, read, runs, steps.workspace))
    fetches = {k: one.tensor for k, one in enumerate(maps) if one.plan.does == "fetch"}
    first, steps_ = _held(rows, maps, fetches)
    inputs = {t: first.get(t) for t in model.inputs}
    outputs = {
        t: _begin(maps, ran.ends[network.tensor_id[model.tensors[t].name]])
        for t in dict.fromkeys(model.outputs)
    }
    if set(fetches.values()) != set(model.inputs) or (len(inputs) > 1 and None in inputs.values()):
        raise PlanFormatError("does not fetch all inputs", where=model.name, item=group.name)
    return RowsUnit(tuple(maps), steps_, at, inputs, outputs)


def _held(
    rows: Rows, maps: Sequence[MapUnit], fetches: Mapping[int, int]
) -> tuple[dict[int, int], tuple[int, ...]]:
    """Return where inputs lie that are whole before the first other step, and the steps after them."""
    end = next((i for i, k in enumerate(rows.steps) if k not in fetches), len(rows.steps))
    begun = rows.steps[:end]
    found = {}
    for k, tensor in fetches.items():
        one = maps[k]
        whole = begun.count(k) == one.steps.steps and not one.steps.part
        if whole and _plain(one):
            found[tensor] = one.plan.addresses[0]
    if len(found) < len(fetches):  # by rows, or some rows again
        return {}, rows.steps
    return found, rows.steps[end:]


def _plain(one: MapUnit) -> bool:
    first = one.plan.addresses[0]
    return all(at == first + n * one.steps.bytes for n, at in enumerate(one.plan.addresses))


def _begin(maps: Sequence[MapUnit], k: int) -> int:
    """Return where a map begins that the checker has proved to lie in one piece."""
    one = maps[k]
    return _begin(maps, one.plan.reads[0]) if one.plan.does == "joined" else one.plan.addresses[0]


def _unpadded(layers: list[tuple[int, Layer]], model: Int8Model) -> tuple[tuple[int, Layer], ...]:
    """Return the layers of a step, with the padding of those in front as the reader's own."""
    while len(layers) > 1 and isinstance(layers[0][1], Pad):
        (_, pad), (number, layer), *rest = layers
        assert isinstance(pad, Pad)
        fits = isinstance(layer, Conv | Depthwise) and layer.input_shapes[0] == pad.output_shape
        if not fits or any(pad.channels) or pad.value != -layer.input_offset:  # type: ignore[union-attr]
            raise PlanFormatError("pads what no kernel pads", where=model.name, item=pad.name)
        assert isinstance(layer, Conv | Depthwise)
        top, left, bottom, right = (a + b for a, b in zip(layer.padding, pad.padding, strict=True))
        changed = replace(
            layer, inputs=pad.inputs, input_shapes=pad.input_shapes, padding=(top, left, bottom, right)
        )
        layers = [(number, changed), *rest]
    return tuple(layers)
