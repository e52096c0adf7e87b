"""A plan as the input of the C writer: units that run in sequence, and the address of every tensor.

A unit is a layer that runs alone, or a group in rings. Everything comes from the plan program and from
`check.rings`, which derives a group's rings from the plan; this module decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from onchip.base.errors import ModelError, PlanFormatError
from onchip.check.rings import RingRun, rings_of
from onchip.microcontroller.int8.model import Int8Model, Layer
from onchip.microcontroller.project.windows import Operand, operands
from onchip.network import Network
from onchip.network.maps import Maps
from onchip.plans import Alloc, Free, Group, Load, Plan, Rings, Run, Scratch, Store

__all__ = ["Firmware", "Op", "Place", "Span", "StageUnit", "Unit", "firmware_of"]

Span = tuple[int, int]
"""Columns [first, end)."""


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a tensor: whole, or `slots` rows or columns of `pitch` bytes at a time, or one pixel.

    Row y lies at slot y mod `slots`, from column `origin` of the strip on.
    """

    kind: Literal["whole", "rows", "columns", "pixel"]
    address: int
    slots: int
    pitch: int


@dataclass(frozen=True, slots=True)
class Op:
    """A layer in a unit; `number` is its index in the network.

    A step makes `pixels` pixels where it sweeps whole rows, `channels` (0: all) channels of each at a time.
    A layer that is `in_place` overwrites its input: it must walk as the plan says, to the start if `reverse`.
    `workspace` are the bytes that the plan gives its kernel.
    """

    number: int
    layer: Layer
    operands: tuple[Operand, ...]
    in_place: bool
    reverse: bool
    pixels: int
    channels: int
    workspace: int


@dataclass(frozen=True, slots=True)
class StageUnit:
    """Layers that sweep bands of `rows` rows together; one that `adds` takes its input a row at a time.

    `by_columns` states that it sweeps its bands column by column. `spans[strip]` are the columns of every
    tensor that it touches; `sums` is the address of its sums. A `pool` adds up the pixels that the last of
    the layers makes.
    """

    ops: tuple[Op, ...]
    rows: int
    adds: bool
    by_columns: bool
    spans: tuple[Mapping[int, Span], ...]
    sums: int = 0
    pool: Op | None = None

    @property
    def makes(self) -> int:
        """The tensor that the stage hands on."""
        return self.sweeps if self.pool is None else self.pool.layer.output

    @property
    def sweeps(self) -> int:
        """The tensor whose bands it sweeps."""
        return self.ops[-1].layer.output


@dataclass(frozen=True, slots=True)
class Unit:
    """A layer or a group of them: its stages, in the order in which they hand on.

    `patch` is the address of the kernels' workspace. `origins[strip]` is the first column of every tensor in
    a ring of rows. The tensor `fetched` comes from the user, by rows or, if `fetched_columns`, by columns.
    """

    name: str
    stages: tuple[StageUnit, ...]
    places: Mapping[int, Place]
    patch: int
    reverse: bool = False
    origins: tuple[Mapping[int, int], ...] = ({},)
    fetched: int | None = None
    fetched_columns: bool = False

    @property
    def simple(self) -> bool:
        """True if it is one sweep over rows, with nothing to make in between."""
        stage = self.stages[0]
        plain = not stage.by_columns and not stage.adds and len(self.stages) == 1
        return plain and self.fetched is None and len(self.origins) == 1


@dataclass(frozen=True, slots=True)
class Firmware:
    """A network ready to be written as C: `arena_bytes` hold everything that the units make and read.

    `inputs` and `outputs` are tensors with their addresses; an input without one is fetched by a unit.
    `states` are the addresses of the model's states.
    """

    model: Int8Model
    units: tuple[Unit, ...]
    arena_bytes: int
    inputs: tuple[tuple[int, int | None], ...]
    outputs: tuple[tuple[int, int], ...]
    states: tuple[int, ...] = ()


def firmware_of(plan: Plan, model: Int8Model) -> Firmware:
    """Return the plan's units for this model.

    Raises `PlanFormatError` for a plan that is of another network or moves tensors to a memory that a
    microcontroller does not have, or that does not hold inputs from the start and outputs to the end.
    """
    network = plan.network
    _same(network, model)
    ids = {t.name: t.id for t in model.tensors}
    number = {layer.name: i for i, layer in enumerate(model.layers)}
    groups = {group.name: group for group in plan.groups}
    maps = Maps(network)
    address: dict[int, int] = {}
    scratch: dict[str, int] = {}
    over: dict[int, int] = {}
    units: list[Unit] = []
    loaded: dict[int, int] = {}
    states = _states(plan, model, ids, address)
    stored: set[int] = set()
    for step in plan.program:
        match step:
            case Load(tensor, at) if ids[tensor] in model.inputs and ids[tensor] not in loaded and not units:
                loaded[ids[tensor]] = address[ids[tensor]] = at
            case Alloc(tensor, at, other, _, ()):
                address[ids[tensor]] = at
                if other is not None:
                    over[ids[tensor]] = ids[other]
            case Scratch(operator, at):
                scratch[operator] = at
            case Run(operator, streaming):
                if stored:
                    raise PlanFormatError("runs on after an output is handed over", item=operator)
                at = scratch.get(operator, 0)
                if operator in groups:
                    units.append(
                        _group(network, maps, model, number, groups[operator], streaming, address, at, over)
                    )
                else:
                    if streaming:
                        raise PlanFormatError("only a group in rings fetches its input", item=operator)
                    units.append(_alone(network, model, number[operator], address, at, over))
            case Store(tensor):
                stored.add(ids[tensor])
            case Free():
                pass
            case _:
                raise PlanFormatError(
                    "moves tensors to and from a memory outside: no plan for a microcontroller",
                    where=model.name,
                )
    if len(model.inputs) > 1 and len(loaded) < len(model.inputs):
        raise PlanFormatError("does not hold all inputs from the start", where=model.name)
    return Firmware(
        model,
        tuple(units),
        plan.result.extent_bytes,
        tuple((t, loaded.get(t)) for t in model.inputs),
        tuple((t, address[t]) for t in dict.fromkeys(model.outputs)),
        states,
    )


def _states(plan: Plan, model: Int8Model, ids: Mapping[str, int], address: dict[int, int]) -> tuple[int, ...]:
    """Return the addresses of the model's states, and note where the old bytes of each lie."""
    kept = {(ids[state.input], ids[state.output]): state.address for state in plan.state}
    pairs = [(state.old, state.new) for state in model.states]
    if set(kept) != set(pairs):
        raise PlanFormatError("keeps other bytes between inferences than the network", where=model.name)
    address.update({old: kept[old, new] for old, new in pairs})
    return tuple(kept[pair] for pair in pairs)


def _same(network: Network, model: Int8Model) -> None:
    tensors = {(t.name, t.bytes) for t in network.tensors}
    layers = {
        (op.name, *(network.tensors[t].name for t in dict.fromkeys(op.inputs))) for op in network.operators
    }
    name = [t.name for t in model.tensors]
    mine = {(layer.name, *(name[t] for t in dict.fromkeys(layer.inputs))) for layer in model.layers}
    if tensors != {(t.name, t.bytes) for t in model.tensors} or layers != mine:
        raise PlanFormatError("is a plan of another network", where=model.name)


def _op(
    network: Network, model: Int8Model, number: int, in_place: bool, reverse: bool, *, grouped: bool
) -> Op:
    layer = model.layers[number]
    found = network.operators[network.operator_id[layer.name]]
    read = operands(layer, model)
    g = found.geometry
    if g is None or (grouped and g.kind == "other"):
        raise ModelError("reads no window that a group could follow", where=model.name, item=layer.name)
    for o in read if grouped else ():
        if o.shape != model.tensors[o.tensor].shape and o.shape[1:3] != (1, 1):
            raise ModelError("reshapes its input inside a group", where=model.name, item=layer.name)
    return Op(number, layer, read, in_place, reverse, g.pixels, g.channels, found.workspace)


def _whole(model: Int8Model, tensor: int, address: int) -> Place:
    _, rows, columns, channels = model.tensors[tensor].shape
    return Place("whole", address, rows, columns * channels)


def _alone(
    network: Network,
    model: Int8Model,
    number: int,
    address: Mapping[int, int],
    scratch: int,
    over: Mapping[int, int],
) -> Unit:
    layer = model.layers[number]
    geometry = network.operators[network.operator_id[layer.name]].geometry
    reverse = geometry is not None and geometry.traversal == "reverse"
    op = _op(network, model, number, over.get(layer.output) in layer.inputs, reverse, grouped=False)
    places = {t: _whole(model, t, address[t]) for t in (*layer.inputs, layer.output)}
    for o in op.operands:
        places[o.tensor] = Place("whole", address[o.tensor], o.shape[1], o.pitch)
    return Unit(layer.name, (StageUnit((op,), 1, False, False, ({},)),), places, scratch, reverse)


def _group(
    network: Network,
    maps: Maps,
    model: Int8Model,
    number: Mapping[str, int],
    group: Group,
    streaming: Sequence[tuple[str, int]],
    address: Mapping[int, int],
    scratch: int,
    over: Mapping[int, int],
) -> Unit:
    rings = group.tiling
    if not isinstance(rings, Rings):
        raise PlanFormatError("is no group in rings", where=model.name, item=group.name)
    tensor_of = [_tensor(network, model, t) for t in range(len(network.tensors))]
    streamed = [network.tensor_id[name] for name, _ in streaming]
    run = rings_of(maps, group, streamed, alignment=1)
    fetched = [tensor_of[t] for t in streamed]
    if fetched and fetched != list(model.inputs):
        raise PlanFormatError("fetches what is not the network's input", where=model.name, item=group.name)
    output = model.layer[group.operators[-1]].output
    target = over.get(output)
    stages = []
    sums = scratch
    for s, stage in enumerate(rings.stages):
        ops = tuple(
            _op(
                network,
                model,
                number[name],
                target in model.layer[name].inputs and model.layer[name].output == output,
                run.reverse,
                grouped=True,
            )
            for name in stage.operators
        )
        spans = tuple(
            {
                tensor_of[t]: _span(columns, run.maps[t].columns, run.reverse)
                for t, columns in strip[s].columns.items()
            }
            for strip in run.strips
        )
        reads_columns = rings.fetched == "columns" and any(
            t in fetched for op in ops for t in op.layer.inputs
        )
        by_columns = len(ops) > 1 or reads_columns
        pool = ops[-1] if run.accumulates[s] and len(ops) > 1 else None
        body = ops if pool is None else ops[:-1]
        adds = run.accumulates[s] and pool is None
        stages.append(StageUnit(body, stage.rows, adds, by_columns, spans, sums, pool))
        if run.accumulates[s]:
            sums += 4 * ops[-1].layer.output_shape[3]
    places = _rings(run, scratch, tensor_of)
    for unit in stages:
        if unit.pool is not None:
            places[unit.sweeps] = _pooled(unit, run, scratch)
    for name in group.operators:
        for t in (*model.layer[name].inputs, model.layer[name].output):
            if t not in places and t in address:
                places[t] = _whole(model, t, address[t])
    return Unit(
        group.name,
        tuple(stages),
        places,
        scratch + run.sums,
        run.reverse,
        _origins(stages, places),
        fetched[0] if fetched else None,
        rings.fetched == "columns" and bool(fetched),
    )


def _pooled(stage: StageUnit, run: RingRun, scratch: int) -> Place:
    """Return the place of a pixel until it is added up: behind the workspace of the kernel that makes it."""
    op = stage.ops[-1]
    pixel = op.layer.output_shape[3]
    if op.workspace + pixel > run.workspace:
        raise PlanFormatError("leaves no place for the pixels that a pool adds up", item=op.layer.name)
    return Place("pixel", scratch + run.sums + op.workspace, 1, pixel)


def _tensor(network: Network, model: Int8Model, tensor: int) -> int:
    name = network.tensors[tensor].name
    return next(t.id for t in model.tensors if t.name == name)


def _span(columns: Span, width: int, reverse: bool) -> Span:
    """Return columns in the map's own direction."""
    first, end = columns
    return (width - end, width - first) if reverse else (first, end)


def _rings(run: RingRun, scratch: int, tensor_of: Sequence[int]) -> dict[int, Place]:
    """Return the rings behind the sums and the workspace: of rows, then of columns, one stage at a time."""
    found = {}
    at = scratch + run.sums + run.workspace
    for part in run.row_rings:
        assert part.tensor is not None
        found[tensor_of[part.tensor]] = Place("rows", at, part.rows, part.columns * part.channels)
        at += part.bytes
    for stage in run.column_rings:
        behind = at
        for part in stage:
            assert part.tensor is not None
            found[tensor_of[part.tensor]] = Place("columns", behind, part.columns, part.rows * part.channels)
            behind += part.bytes
    return found


def _origins(stages: Sequence[StageUnit], places: Mapping[int, Place]) -> tuple[dict[int, int], ...]:
    """Return, per strip, the first column that a ring of rows holds: the first that any stage touches."""
    found = []
    for strip in range(len(stages[0].spans)):
        first: dict[int, int] = {}
        for stage in stages:
            for t, (left, right) in stage.spans[strip].items():
                if t in places and places[t].kind == "rows" and left < right:
                    first[t] = min(left, first.get(t, left))
        found.append(first)
    return tuple(found)
