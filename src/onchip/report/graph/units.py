"""The drawn parts of a plan: every run as a unit (a group or one operator), with its crossing bytes."""

from __future__ import annotations

from dataclasses import dataclass, field

from onchip.check.replay import Crossed, Ran, events_of
from onchip.network import Geometry, Network, Operator
from onchip.planners.fused_group import TIMES, sides_of
from onchip.plans import Blocks, Boxes, Group, Loop, Nest, Plan, Tiling
from onchip.report.steps import Timeline
from onchip.report.wording import visible

__all__ = [
    "KINDS",
    "Unit",
    "how_it_runs",
    "kind_of",
    "label_of",
    "map_of",
    "units",
]


@dataclass(frozen=True)
class Unit:
    """One run. `into` and `out` are bytes that cross to or from DRAM for it, by tensor.

    Inputs of a unit without an entry in `into` were on chip already. `whole` are the operands that lie on
    chip while it runs: all but those that pass through its scratch.
    """

    step: int
    name: str
    operators: tuple[int, ...]
    group: Group | None
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    scratch: int
    weights: int
    into: dict[int, int] = field(default_factory=dict)
    out: dict[int, int] = field(default_factory=dict)
    whole: tuple[int, ...] = ()

    def halo(self, network: Network) -> int:
        """Return the bytes read beyond each input's size: rows that two bands share."""
        return sum(max(0, n - network.tensors[t].bytes) for t, n in self.into.items())

    @property
    def crossing(self) -> int:
        """All bytes that cross for it."""
        return sum(self.into.values()) + sum(self.out.values()) + self.weights


def units(plan: Plan, line: Timeline) -> tuple[Unit, ...]:
    """Return the runs of the program in order."""
    found: list[Unit] = []
    made: dict[int, Unit] = {}
    loads: dict[int, int] = {}
    for event in events_of(plan):
        match event:
            case Crossed(range=None):
                pass  # its run states what streams
            case Crossed(tensor=t, bytes=n, inward=True):
                loads[t] = loads.get(t, 0) + n
            case Crossed(tensor=t, bytes=n) if (by := made.get(t)) is not None:
                by.out[t] = by.out.get(t, 0) + n
            case Ran():
                s = line.steps[event.step]
                through = dict(s.streamed)
                operands = () if s.joined else (*s.inputs, *s.outputs)
                unit = Unit(
                    s.index,
                    s.name,
                    s.operators,
                    event.group,
                    s.inputs,
                    s.outputs,
                    s.workspace,
                    s.traffic.weights,
                    {t: loads.pop(t) for t in s.inputs if t in loads and t not in through},
                    whole=tuple(t for t in operands if t not in through),
                )
                for t, n in s.streamed:
                    side = unit.out if t in s.outputs else unit.into
                    side[t] = side.get(t, 0) + n
                made.update(dict.fromkeys(s.outputs, unit))
                found.append(unit)
    return tuple(found)


def how_it_runs(unit: Unit) -> tuple[int, int, int, tuple[int, ...] | None, int | None]:
    """Return (rows, sub-groups, images, blocks, loops) of a unit."""
    match unit.group.tiling if unit.group else None:
        case Tiling(rows, _, _, images) if unit.group:
            return rows, unit.group.subgroups, images, None, None
        case (Blocks() | Boxes()) as blocks if unit.group:
            return 0, unit.group.subgroups, 1, sides_of(blocks), None
        case Nest() as nest:
            return 0, 1, 1, None, _loops(nest)
    return 0, 1, 1, None, None


def _loops(nest: Nest | Loop) -> int:
    inner = [item for item in nest.body if isinstance(item, Loop)]
    return len(inner) + sum(map(_loops, inner))


KINDS = ("conv", "depthwise", "pool", "elementwise", "fully_connected", "concat", "other")
"""The kinds of operators, each with a colour of the drawing."""


def kind_of(operator: Operator) -> int:
    """Return an operator's index in `KINDS`."""
    kind = "" if operator.geometry is None else operator.geometry.looks_like
    if operator.type.split("+")[0] == "Concat":
        kind = "concat"
    return KINDS.index(kind) if kind in KINDS else len(KINDS) - 1


def label_of(operator: Operator) -> str:
    """Return an operator's label in a box's width: `conv 3x3 /2`."""
    geometry, name = operator.geometry, operator.type.split("+")[0] or "operator"
    if geometry is None:
        return visible(name)
    kind, windowed = geometry.looks_like, len(geometry.kernel) == 2 and len(geometry.input) == 4
    if kind not in ("conv", "depthwise", "pool") or not windowed:
        return "fc" if kind == "fully_connected" else visible(name)
    short = visible(name).replace("Average", "avg").replace("Max", "max").replace("Pool", "")
    if name.startswith("Global"):
        return short.replace("Global", "global ")
    stride = max(geometry.stride, default=1)
    size = TIMES.join(str(k) for k in geometry.kernel)
    return f"{short if kind == 'pool' else kind} {size}{f' /{stride}' if stride > 1 else ''}"


def map_of(network: Network, tensor: int) -> tuple[int, int, int, int] | None:
    """Return a tensor's images, channels, rows and columns, as its maker or first reader sees it; or None."""
    made = network.producer[tensor]
    found = None if made is None else network.operators[made].geometry
    if found is not None and len(network.operators[made or 0].outputs) == 1:
        return _shape(found, found.output)
    for op in network.operators:
        if op.geometry is not None and op.geometry.promises and op.inputs[:1] == (tensor,):
            return _shape(op.geometry, op.geometry.input)
    return None


def _shape(geometry: Geometry, shape: tuple[int, ...]) -> tuple[int, int, int, int] | None:
    if len(shape) == 2:
        return shape[0], shape[1], 1, 1
    if len(shape) != 4:
        return None
    n, a, b, c = shape
    return (n, a, b, c) if geometry.layout == "NCHW" else (n, c, a, b)
