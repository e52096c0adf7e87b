"""RAM while each step of a plan runs, by address: tensors, rings of rows, sums, the kernels' workspace."""

from __future__ import annotations

from collections.abc import Iterator

from onchip.base.short_names import short_names
from onchip.check.replay import Ran, Released, Reserved, events_of
from onchip.check.rings import rings_of
from onchip.microcontroller.result.row_steps import row_steps
from onchip.microcontroller.result.step_parts import Part, RamStep, Role, covered
from onchip.network.maps import Maps
from onchip.plans import Group, Plan, Rings, Rows, Run

__all__ = ["Part", "RamStep", "covered", "ram_steps", "step_name"]


def ram_steps(plan: Plan) -> tuple[RamStep, ...]:
    """Return the steps of a plan in the order in which they run; tensors have their readable names."""
    short = short_names(t.name for t in plan.network.tensors)
    there: list[Reserved] = []
    found: list[RamStep] = []
    for event in events_of(plan):
        match event:
            case Reserved():
                there.append(event)
            case Released():
                there.remove(event.range)
            case Ran(group=Group(tiling=Rows()) as group):
                at = next((r.address for r in there if r.cause == "scratch"), 0)
                found += row_steps(plan, group, at, short)
            case Ran(unit=unit):
                layers = (unit.name,) if event.group is None else event.group.operators
                parts: list[Part] = []
                for range_ in there:
                    if range_.cause == "scratch":
                        parts += _in_scratch(plan, unit.name, range_, short)
                    else:
                        end = range_.address + range_.used
                        role = _role(plan, layers, range_.name)
                        parts.append(Part(short[range_.name], role, range_.address, end))
                found.append(RamStep(step_name(layers), layers, tuple(parts)))
    return tuple(found)


def step_name(layers: tuple[str, ...]) -> str:
    """Return the name of a step: its layer, or the first and the last of a group."""
    if len(layers) == 1:
        return layers[0]
    return f"{layers[0]} ... {layers[-1]} ({len(layers)} layers)"


def _role(plan: Plan, layers: tuple[str, ...], tensor: str) -> Role:
    network = plan.network
    operators = [network.operators[network.operator_id[name]] for name in layers]
    number = network.tensor_id[tensor]
    if any(number in operator.outputs for operator in operators):
        return "made"
    return "read" if any(number in operator.inputs for operator in operators) else "kept"


def _in_scratch(plan: Plan, unit: str, range_: Reserved, short: dict[str, str]) -> Iterator[Part]:
    """Yield the parts of a step's scratch, in the order in which the C lays them out."""
    at, end = range_.address, range_.address + range_.used
    group = next((group for group in plan.groups if group.name == unit), None)
    if group is None or not isinstance(group.tiling, Rings):
        yield Part("the kernel's workspace", "workspace", at, end)
        return
    network = plan.network
    fetched = [
        name
        for step in plan.program
        if isinstance(step, Run) and step.operator == unit
        for name, _ in step.streaming
    ]
    run = rings_of(Maps(network), group, [network.tensor_id[name] for name in fetched], alignment=1)
    fixed = (("sums of a pool", "sums", run.sums), ("the kernels' workspace", "workspace", run.workspace))
    for name, role, size in fixed:
        if size:
            yield Part(name, role, at, at + size)  # type: ignore[arg-type]
            at += size
    columns = {part.tensor for stage in run.column_rings for part in stage}
    for part in run.parts:
        if part.tensor is None:
            continue
        what = "columns" if part.tensor in columns else "rows"
        count = part.columns if what == "columns" else part.rows
        whole = run.maps[part.tensor].columns if what == "columns" else run.maps[part.tensor].rows
        name = short[network.tensors[part.tensor].name]
        yield Part(name, "ring", at, at + part.bytes, f"{count} of {whole} {what}")
        at += part.bytes
    if at < end:
        yield Part("unused", "workspace", at, end)
