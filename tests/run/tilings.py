"""Plans of groups in tiles for tests: sizes and crossings as the definition of a sub-group gives them.

Written from docs/fusion's definition of sub-groups, not from the executor: rows by formula, not by demand.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import gcd, lcm

from onchip.network import Network, Operator
from onchip.plans import (
    Alloc,
    Free,
    Group,
    Instruction,
    Load,
    Plan,
    PlanChip,
    Result,
    Run,
    Scratch,
    Store,
    Tiling,
)

Shape = tuple[int, int, int, int]


@dataclass
class Sketch:
    """One group's arithmetic. `shapes` are [images, channels, rows, columns] by tensor id."""

    network: Network
    operators: Sequence[Operator]
    shapes: dict[int, Shape]
    streamed: Collection[int]
    rows: int
    channels: int
    images: int = 1
    resident: Collection[int] = ()
    alignment: int = 1
    whole: Collection[int] = ()
    new: list[dict[int, tuple[int, int]]] = field(default_factory=list)
    low: list[dict[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        written = [op.outputs[0] for op in self.operators]
        self.external = list(dict.fromkeys(t for op in self.operators for t in op.inputs if t not in written))
        self.tensors = [*self.external, *written]
        inside = {op.id for op in self.operators}
        self.escaping = [
            t
            for t in written
            if t in self.network.outputs
            or not self.network.readers[t]
            or any(
                self.network.readers[t] >> v & 1 and v not in inside
                for v in range(len(self.network.operators))
            )
        ]
        self._walk()

    # -- geometry ------------------------------------------------------------------------------------------

    def window(self, op: Operator, t: int) -> tuple[int, int, int] | None:
        """(stride, before, span); None when every row is read."""
        g, rows, out = op.geometry, self.shapes[t][2], self.shapes[op.outputs[0]][2]
        if g is not None and g.kind in ("conv", "depthwise", "pool"):
            if g.kernel[0] == rows and out == 1 and not (g.padding and g.padding[0]) and g.kind == "pool":
                return None
            dilation = g.dilation[0] if g.dilation else 1
            stride, before = g.stride[0] if g.stride else 1, g.padding[0] if g.padding else 0
            return stride, before, (g.kernel[0] - 1) * dilation + 1
        if g is not None and g.kind == "fully_connected" and out == 1 and rows > 1:
            return None
        if g is not None and g.kind == "pad":
            return 1, g.padding[0], 1
        return (1, 0, 1) if rows == out else None

    def scale(self) -> dict[int, int]:
        ratio: dict[int, Fraction] = {}
        result: dict[int, int] = {}
        for start in self.tensors:
            if start in result:
                continue
            ratio = {start: Fraction(1)}
            changed = True
            while changed:
                changed = False
                for op in self.operators:
                    y = op.outputs[0]
                    for t in op.inputs:
                        window = self.window(op, t)
                        if window is None or 1 in (self.shapes[t][2], self.shapes[y][2]):
                            continue
                        for a, b, factor in ((t, y, Fraction(1, window[0])), (y, t, Fraction(window[0]))):
                            if a in ratio and b not in ratio:
                                ratio[b], changed = ratio[a] * factor, True
                            elif a in ratio and ratio[b] != ratio[a] * factor:
                                raise ValueError("inconsistent")
            common = lcm(*(r.denominator for r in ratio.values()))
            whole = {t: int(r * common) for t, r in ratio.items()}
            result |= {t: v // gcd(*whole.values()) for t, v in whole.items()}
        return result

    def at_once(self) -> set[int]:
        """Tensors that the first sub-group makes: of one row, or made into one of one row."""
        found = {t for t in self.tensors if self.shapes[t][2] == 1}
        for op in reversed(self.operators):
            found |= set(op.inputs) if op.outputs[0] in found else set()
        return found

    def _walk(self) -> None:
        scale, at_once = self.scale(), self.at_once()
        before = dict.fromkeys(self.tensors, 0)
        longest = (-(-self.shapes[t][2] // (scale[t] * self.rows)) for t in self.escaping if t not in at_once)
        for j in range(max(longest, default=1)):
            hi = dict.fromkeys(self.tensors, 0)
            for t in self.escaping:
                size = self.shapes[t][2]
                hi[t] = size if t in at_once else min(size, (j + 1) * scale[t] * self.rows)
            for op in reversed(self.operators):
                h = hi[op.outputs[0]]
                for t in op.inputs:
                    window, size = self.window(op, t), self.shapes[t][2]
                    need = 0
                    if h and window is None:
                        need = size
                    elif h and window is not None:
                        s, p, span = window
                        need = min(max((h - 1) * s - p + span, 0), size)
                    hi[t] = max(hi[t], need)
            low = dict(before)
            new = {}
            for t in reversed(self.tensors):
                for op in self.operators:
                    y = op.outputs[0]
                    if t in op.inputs and new[y][0] < new[y][1]:
                        window = self.window(op, t)
                        first = 0 if window is None else new[y][0] * window[0] - window[1]
                        low[t] = min(low[t], max(0, min(first, self.shapes[t][2])))
                new[t] = (low[t] if t in self.streamed else before[t], hi[t])
            self.new.append(new)
            self.low.append(low)
            before = hi

    # -- bytes ---------------------------------------------------------------------------------------------

    def element(self, t: int) -> int:
        n, c, h, w = self.shapes[t]
        return self.network.tensors[t].bytes // (n * c * h * w)

    def up(self, size: int) -> int:
        return -(-size // self.alignment) * self.alignment

    @property
    def subgroups(self) -> int:
        return -(-self.shapes[self.tensors[0]][0] // self.images) * len(self.new)

    def tile(self, op: Operator) -> int:
        c, n = self.channels, op.weight_bytes
        y = self.shapes[op.outputs[0]]
        x = self.shapes[op.inputs[0]]
        g = op.geometry
        kernel = None
        if g is not None and (g.kind == "conv" or (g.kind == "depthwise" and y[1] != x[1])):
            kernel, into = g.kernel, x[1] // g.groups
        elif g is not None and g.kind == "fully_connected":
            kernel, into = ((x[2], x[3]) if y[2] == 1 else (1, 1)), x[1]
        if kernel is None or not n:
            return -(-n * min(c, y[1]) // y[1])
        elements = y[1] * into * kernel[0] * kernel[1]
        w = n // elements
        rest = n - w * elements
        size = w * min(c, y[1]) * min(c, into) * kernel[0] * kernel[1] + -(-rest * min(c, y[1]) // y[1])
        return min(size, n)

    @property
    def scratch(self) -> int:
        total = 0
        for t in self.tensors:
            if t in self.whole:
                continue
            _, c, _, w = self.shapes[t]
            rows = max(new[t][1] - low[t] for new, low in zip(self.new, self.low, strict=True))
            channels = min(c, self.channels) if t in self.streamed else c
            total += self.up(self.element(t) * w * rows * channels * self.images)
        total += sum(self.up(op.weight_bytes) for op in self.operators if op.id in self.resident)
        return total + self.up(
            max((self.tile(op) for op in self.operators if op.id not in self.resident), default=0)
        )

    @property
    def crosses(self) -> list[int]:
        """Operands that stream."""
        return [t for t in (*self.external, *self.escaping) if t not in self.whole]

    def crossing(self, t: int) -> int:
        n, c, _, w = self.shapes[t]
        again = 0
        if t in self.external and t in self.streamed:
            end = 0
            for new, low in zip(self.new, self.low, strict=True):
                again += max(0, end - low[t])
                end = new[t][1]
        return self.network.tensors[t].bytes + n * c * w * again * self.element(t)

    def weights(self) -> int:
        return sum(
            op.weight_bytes * (1 if op.id in self.resident else self.subgroups) for op in self.operators
        )

    def group(self, name: str) -> Group:
        names = [t.name for t in self.network.tensors]
        return Group(
            name,
            tuple(op.name for op in self.operators),
            self.scratch,
            self.subgroups,
            tuple(
                (op.name, self.subgroups)
                for op in self.operators
                if op.id not in self.resident and op.weight_bytes and self.subgroups > 1
            ),
            tuple(op.name for op in self.operators if op.id in self.resident),
            Tiling(
                self.rows,
                tuple(names[t] for t in self.tensors if t in self.streamed),
                self.channels,
                self.images,
            ),
        )

    # -- legality ------------------------------------------------------------------------------------------

    def kind(self, op: Operator) -> str:
        g = op.geometry
        x, y = self.shapes[op.inputs[0]], self.shapes[op.outputs[0]]
        if g is not None and (
            g.kind in ("conv", "fully_connected") or (g.kind == "depthwise" and x[1] != y[1])
        ):
            return "reduce"
        if g is None:
            return "rowwise" if op.type.endswith("Softmax") else "concat"
        return g.kind

    def legal(self) -> bool:
        """Whether these tensors can be streamed: no sum into a stream, one pass each, no circle."""
        s = self.streamed
        meet: list[tuple[int, int, int]] = []  # channel c of the first is there with c + shift of the second
        before: set[tuple[int, int]] = set()
        for op in self.operators:
            y, inside = op.outputs[0], [t for t in op.inputs if t in s]
            kind = self.kind(op)
            if inside and (kind == "rowwise" or (kind == "reduce" and y in s)):
                return False
            size = [a * b * c * d for a, b, c, d in (self.shapes[t] for t in (*op.inputs, y))]
            if kind == "elementwise" and any(
                t in s and n < size[-1] for t, n in zip(op.inputs, size, strict=False)
            ):
                return False
            if y in s and kind != "reduce":
                first = [sum(self.shapes[t][1] for t in op.inputs[:i]) for i in range(len(op.inputs))]
                meet += [
                    (t, y, at if kind == "concat" else 0)
                    for t, at in zip(op.inputs, first, strict=True)
                    if t in s
                ]
            elif kind == "elementwise" and len(op.inputs) > 2 and len(inside) > 1:
                meet += [(inside[0], t, 0) for t in inside[1:]]
                before |= {(t, inside[0]) for t in op.inputs if t not in s}
        # Each meeting makes two passes one; in the end all of them have to hold.
        place = {t: (t, 0) for t in s}
        for x, y, shift in meet:
            (pass_x, at_x), (pass_y, at_y) = place[x], place[y]
            if pass_x != pass_y:
                apart = at_x - shift - at_y
                for t, (p, at) in place.items():
                    if p == pass_y:
                        place[t] = pass_x, at + apart
        if any(place[x][1] != place[y][1] + shift for x, y, shift in meet):
            return False

        def find(t: int) -> int:
            return place[t][0] if t in place else t

        edges = {(find(t), find(op.outputs[0])) for op in self.operators for t in op.inputs}
        edges |= {(find(a), find(b)) for a, b in before}
        edges -= {(a, a) for a in s}
        while True:
            sources = {a for a, _ in edges} - {b for _, b in edges}
            if not sources:
                return not edges
            edges = {(a, b) for a, b in edges if a not in sources}


def plan_of(network: Network, sketches: Sequence[Sketch], budget: int | None = None) -> Plan:
    """The plan that runs these groups one after the other, its figures from their arithmetic.

    What is whole is loaded or made above all scratches, at an address of its own; what a later group has
    whole again stays. It is stored where it is an output, or where a later group streams it.
    """
    groups = [sketch.group(f"g{i}") for i, sketch in enumerate(sketches)]
    program: list[Instruction] = []
    compulsory = reload = spill = 0
    fetched: set[int] = set()
    names = [t.name for t in network.tensors]
    resident: set[int] = set()
    top = max(sketch.up(group.scratch_bytes) for group, sketch in zip(groups, sketches, strict=True))
    for i, (group, sketch) in enumerate(zip(groups, sketches, strict=True)):
        later = sketches[i + 1 :]
        streaming = [(t, sketch.crossing(t)) for t in sketch.crosses]
        for t in sorted(set(sketch.whole) - resident):
            program.append((Load if t in sketch.external else Alloc)(names[t], top))
            top += sketch.up(network.tensors[t].bytes)
            if t in sketch.external:
                first = network.tensors[t].kind == "input" and t not in fetched
                fetched.add(t)
                compulsory += network.tensors[t].bytes * first
                reload += network.tensors[t].bytes * (not first)
        resident |= set(sketch.whole)
        if group.scratch_bytes:
            program.append(Scratch(group.name, 0))
        program.append(Run(group.name, tuple((network.tensors[t].name, n) for t, n in streaming)))
        for t, n in streaming:
            size = network.tensors[t].bytes
            if t in sketch.external:
                first = size if network.tensors[t].kind == "input" and t not in fetched else 0
                fetched.add(t)
                compulsory, reload = compulsory + first, reload + n - first
            elif t in network.outputs:
                compulsory += n
            else:
                spill += n
        for t in set(sketch.whole) & set(sketch.escaping):
            if t in network.outputs:
                compulsory += network.tensors[t].bytes
            elif any(t in other.external and t not in other.whole for other in later):
                spill += network.tensors[t].bytes
            else:
                continue
            program.append(Store(names[t]))
        for t in sorted(t for t in resident if not any(t in other.whole for other in later)):
            program.append(Free(names[t]))
            resident.remove(t)
    weights = sum(sketch.weights() for sketch in sketches)
    traffic = reload + spill
    return Plan(
        network,
        PlanChip("test", sketches[0].alignment),
        budget or top,
        tuple(program),
        Result(
            "feasible",
            traffic,
            spill,
            reload,
            compulsory,
            weights,
            compulsory + traffic + weights,
            0,
            0,
            0,
            0.0,
        ),
        tuple(groups),
    )


def shapes_of(network: Network, shapes: Sequence[tuple[int, ...]]) -> dict[int, Shape]:
    """Maps of tensors of 4 dimensions, and of matrices of as many rows as these have images."""
    return {i: (*shape, *(1,) * (4 - len(shape))) for i, shape in enumerate(shapes)}  # type: ignore[misc]
