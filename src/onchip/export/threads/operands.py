"""The operands of an operator that is made in vectors: lanes and rows, addresses and strides in C."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from onchip.export.loops.book import Book
from onchip.export.loops.operators import OperatorText
from onchip.export.loops.places import PlaceText
from onchip.export.loops.steps import Compute, Place, Seen
from onchip.export.threads.chain import ROWS, Chain, chain_of
from onchip.network import Operator
from onchip.network.axes import ALL, Cut, Use
from onchip.run.tiled.nests.kernel import Source

__all__ = [
    "F32",
    "ROWS_HIGH",
    "NoBlocks",
    "Operands",
    "Shape",
    "Tap",
    "bias_of",
    "follows",
    "rest_of",
    "wraps",
]

ROWS_HIGH = 8
MOST_TAPS = 25
F32 = np.dtype(np.float32)


class NoBlocks(Exception):
    """An operator that has no vectors."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Where an operator's lanes and rows are: axes, and -1 for no rows."""

    lanes: int
    rows: int


@dataclass(frozen=True, slots=True)
class Tap:
    """A place of a window: of each factor the index along sides, when it exists, and for which lanes."""

    where: Mapping[str, Mapping[int, str]]
    there: str
    lanes: str

    def of(self, name: str) -> Mapping[int, str]:
        return self.where.get(name, {})


def follows(use: Use, axis: int) -> bool:
    return axis in use.axes or any(side is not None and side.axis == axis for side in use.slides)


def _lanes_of(cut: Cut) -> int:
    """Return the axis along which lanes lie: the output's last one."""
    sides = [axis for axis in cut.writes.axes if axis >= 0 and cut.axes[axis] > 1]
    return sides[-1] if sides else max(cut.writes.axes[-1], 0)


def _rows_of(cut: Cut, lanes: int, factors: Sequence[Use]) -> int:
    """Return the axis of rows, -1 without: the longest along which what has lanes does not vary."""
    loaded = [use for use in factors if follows(use, lanes)]
    others = [
        axis
        for axis in dict.fromkeys(cut.writes.axes)
        if axis >= 0 and axis != lanes and cut.axes[axis] > 1 and not any(follows(u, axis) for u in loaded)
    ]
    return max(others, key=lambda axis: cut.axes[axis], default=-1) if factors else -1


def _along(use: Use, sides: Sequence[int], cut: Cut, lanes: int) -> Use:
    """Return a use that is whole along the lanes, as of a row that is made together, by the lanes' axis."""
    if lanes not in cut.together or lanes in use.axes:
        return use
    axes = list(use.axes)
    for n in reversed(range(len(axes))):
        slid = use.slides and use.slides[n] is not None
        if axes[n] == ALL and not slid and sides[n] == cut.axes[lanes]:
            axes[n] = lanes
            break
    return replace(use, axes=tuple(axes))


def _last_side(place: Place) -> int:
    """Return the last side of a place that has several elements, -1 without."""
    return max((n for n, size in enumerate(place.sides) if size > 1), default=-1)


def wraps(place: Place) -> bool:
    """Return whether neighbours along the last side may lie at a ring's end and at its begin."""
    return place.ring is not None and place.ring == _last_side(place)


def distance(place: PlaceText, side: int) -> str:
    """Return the C of the bytes between neighbours along a side."""
    p = place.place
    lengths = [place.length(k) for k in range(side + 1, len(p.sides))]
    return " * ".join([str(p.pitch), *lengths])


def address(place: PlaceText, where: Sequence[str]) -> str:
    """Return the C of an element's address; of one outside of the region the address where it would lie."""
    p = place.place
    index = ""
    for n in place.rank:
        one = place.in_ring(f"s{n}") if n == p.ring else f"(s{n} - {p.id}_r{n})"
        if n == p.ring and wraps(p):  # lanes before the first are none, and those behind them lie on
            one = f"({one} + {p.most[n]}) % {p.most[n]}"
        index = f"({index}) * {place.length(n)} + {one}" if index else one
    place.functions["to"] = [
        f"static inline unsigned char *{p.id}_to({', '.join(f'ix {s}' for s in place.s)})",
        "{",
        f"    return pad + {place.base} + ({index}) * {p.pitch};",
        "}",
    ]
    return f"{p.id}_to({', '.join(where)})"


def rest_of(place: PlaceText, at: str) -> str:
    """Return the C of how many elements of a ring along the lanes are left from an address on."""
    p = place.place
    size = p.most[p.ring or 0]
    place.functions["rest"] = [
        f"static inline ix {p.id}_rest(const unsigned char *at)",
        "{",
        f"    return {size} - (ix)(at - pad - {place.base}) / {p.pitch} % {size};",
        "}",
    ]
    return f"{p.id}_rest({at})"


def bias_of(book: Book, op: Operator, source: Source) -> str:
    """Return the name of the bias that a plan counts as the rest of a convolution's constants; "" without."""
    engine = book.engine
    operands = [engine.executable.value[t] for t in op.inputs]
    nodes, _ = engine.parts.between(operands, [engine.executable.value[op.outputs[0]]], op.name)
    heads = [node for node in nodes if node.op_type in ("Conv", "Gemm") and len(node.input) > 2]
    if source.buffer.model_name != f"{op.name}.rest" or len(heads) != 1:
        return ""
    value = engine.parts.constants.get(heads[0].input[2])
    fits = value is not None and value.dtype == F32 and value.size == source.buffer.elements
    fits = fits and source.buffer.element == F32.itemsize  # else a plan counts them otherwise
    return str(heads[0].input[2]) if fits else ""


class Operands:
    """The operands of one operator, as its step reads them. Raises `NoBlocks` for nodes that are no chain."""

    var: dict[int, str]
    """The names of indices, by axis."""
    spread = True
    """True if the rows of a block lie anywhere, False if all are as far apart as each other."""
    row = 0

    def __init__(self, text: OperatorText, step: Compute, places: Mapping[str, PlaceText]) -> None:
        self.text, self.step, self.places, self.cut = text, step, places, step.cut
        axes = {*step.cut.writes.axes, *step.cut.sums}  # over others, of one index, there is no loop
        self.var = {axis: f"v{axis}" if axis in axes else "0" for axis in range(len(step.cut.axes))}
        self.prefix = text.prefix
        engine = text.engine
        self.reads: dict[str, tuple[Seen, PlaceText]] = {}
        for seen, _ in step.reads:
            name = seen.source.name if seen.source.filled else bias_of(text.book, text.op, seen.source)
            if not name:
                raise NoBlocks
            self.reads.setdefault(name, (seen, places[seen.place]))
        wanted = engine.executable.value[text.op.outputs[0]]
        found, _ = engine.parts.between(self.reads, [wanted], text.op.name)
        constants = dict(engine.parts.constants)
        nodes = []
        for node in found:
            names = [name for name in node.input if name]
            if all(name in constants and name not in self.reads for name in names):
                constants.update(engine.parts.constant_outputs(node, constants, engine.values, text.op.name))
            else:
                nodes.append(node)
        chain = chain_of(nodes, self.reads, constants, wanted)
        kinds = {place.place.kinds[-1] for seen, place in self.reads.values() if seen.source.filled}
        kinds |= {places[step.writes[0]].place.kinds[-1]}
        if chain is None or kinds - {F32} or any(axis < 0 for axis in self.cut.writes.axes):
            raise NoBlocks
        self.chain: Chain = chain
        lanes = _lanes_of(self.cut)
        self.uses = {
            name: _along(seen.source.use, place.place.sides, self.cut, lanes)
            for name, (seen, place) in self.reads.items()
        }
        self.shape = Shape(lanes, _rows_of(self.cut, lanes, [self.use(name) for name in chain.factors]))
        if chain.product is not None and self.shape.lanes < 0:
            raise NoBlocks
        self.out = places[step.writes[0]]
        written = [self.out, *([places[step.accumulators]] if step.accumulators else [])]
        if not all(self.takes_lanes(place) for place in written):
            raise NoBlocks
        row = next((one for one in chain.applied if one.node.op_type in ROWS), None)
        self.first = chain.wanted if row is None else str(row.operands[0])
        """The operand that is written where no node comes before: rows are made of it, or it moves."""
        self.height = ROWS_HIGH if self.shape.rows >= 0 else 1

    def use(self, name: str) -> Use:
        return self.uses[name]

    def place(self, name: str) -> PlaceText:
        return self.reads[name][1]

    def takes_lanes(self, place: PlaceText) -> bool:
        """Return whether a place has the lanes of what is written side by side, as a vector is stored."""
        last = _last_side(place.place)
        return last < 0 or place.place.pitch == F32.itemsize

    def contiguous(self, name: str) -> bool:
        """Return whether the lanes of an operand lie side by side, in a ring perhaps over its end."""
        use, place = self.use(name), self.place(name).place
        last = _last_side(place)
        if last < 0 or place.pitch != F32.itemsize:
            return False
        window = use.slides[last] if use.slides else None
        if window is not None:
            return window.axis == self.shape.lanes and window.stride == window.per == 1
        return use.axes[last] == self.shape.lanes

    def at(self, name: str, var: Mapping[int, str], taps: Mapping[int, str] = {}) -> str:
        """Return the C of an operand's address at the indices `var` of axes and `taps` of sides."""
        use, place = self.use(name), self.place(name)
        where = []
        for n, (axis, size) in enumerate(zip(use.axes, place.place.sides, strict=True)):
            window = use.slides[n] if use.slides else None
            if use.seen and use.seen[n] is not None:
                raise NoBlocks
            if window is not None:
                if window.per != 1 or n not in taps:
                    raise NoBlocks
                where.append(f"{var[window.axis]} * {window.stride} - {window.before} + {taps[n]}")
            elif axis != ALL:
                where.append(var[axis])
            elif n in taps:
                where.append(taps[n])
            elif size == 1:
                where.append("0")
            else:
                raise NoBlocks
        if any(place.place.first):
            raise NoBlocks
        return address(place, where)

    def stride(self, name: str, axis: int) -> str:
        """Return the C of the bytes between neighbours of an operand along an axis."""
        use, place = self.use(name), self.place(name)
        if any(side is not None and side.axis == axis for side in use.slides):
            raise NoBlocks
        for n, of in enumerate(use.axes):
            if of == axis:
                if n == place.place.ring:
                    raise NoBlocks
                return distance(place, n)
        return "0"

    def load(self, name: str, address: str, lanes: str, rest: str = "") -> str:
        """Return the C of a vector of an operand: some of its lanes, or one element in all.

        `rest` names the elements of its ring that are left from the address on, where they are known.
        """
        if not follows(self.use(name), self.shape.lanes):
            return f"vec_one({address})"
        if self.contiguous(name):
            return self.lanes_from(self.place(name), address, lanes, rest)
        return f"vec_apart({address}, {self.stride(name, self.shape.lanes)}, {lanes})"

    def rests(self, name: str) -> bool:
        """Return whether vectors of an operand may go on behind the end of a ring along their lanes."""
        along = follows(self.use(name), self.shape.lanes) and self.contiguous(name)
        return along and wraps(self.place(name).place)

    def lanes_from(self, place: PlaceText, address: str, lanes: str, rest: str = "") -> str:
        """Return the C of a vector at an address, some of its lanes, which lie side by side."""
        p = place.place
        if not wraps(p):
            return f"vec_load({address}, {lanes})"
        left = rest or rest_of(place, address)
        return f"vec_load_ring({address}, {lanes}, {left}, {p.most[p.ring or 0]})"

    def lanes_to(self, place: PlaceText, address: str, value: str) -> str:
        """Return the statement that writes the first `wide` lanes of a vector to an address."""
        p = place.place
        if not wraps(p):
            return f"vec_store({address}, {value}, wide);"
        left = rest_of(place, address)
        return f"vec_store_ring({address}, {value}, wide, {left}, {p.most[p.ring or 0]});"

    def taps(self) -> tuple[list[Tap], list[str]]:
        """Return the taps of a window, one where there is none, and the statements that say which exist."""
        x, w = self.chain.factors
        node = self.chain.product
        assert node is not None
        if node.op_type != "Conv":
            if any(side is not None for name in (x, w) for side in self.use(name).slides):
                raise NoBlocks
            return [Tap({}, "", "all")], []
        dilations = next((list(a.ints) for a in node.attribute if a.name == "dilations"), [])
        use, sides = self.use(x), self.place(w).place.sides
        over = [n for n, side in enumerate(use.slides) if side is not None]
        kernel = list(self.text.engine.parts.constants[node.input[1]].shape[2:])[-len(over) :] if over else []
        free = [n for n, axis in enumerate(self.use(w).axes) if axis == ALL and sides[n] > 1]
        if len(kernel) != len(over) or prod(sides[n] for n in free) != prod(kernel) or len(free) > 1:
            raise NoBlocks
        found, lines = [Tap({x: {}, w: dict.fromkeys(free, "0")}, "", "all")], list[str]()
        for k, (side, high) in enumerate(zip(over, kernel, strict=True)):
            window = use.slides[side]
            assert window is not None
            step = dilations[len(dilations) - len(over) + k] if len(dilations) >= len(over) else 1
            lane = window.axis == self.shape.lanes
            if high != (window.span - 1) // step + 1 or window.per != 1 or (lane and window.stride != 1):
                raise NoBlocks
            size, before, found = self.place(x).place.sides[side], found, []
            for t in range(high):
                at = f"{self.var[window.axis]} * {window.stride} - {window.before} + {t * step}"
                if lane:
                    lines.append(
                        f"const ix from{t} = max_ix(0, min_ix(wide, -({at}))),"
                        f" to{t} = max_ix(from{t}, min_ix(wide, {size} - ({at})));"
                        f" const struct lanes some{t} = lanes_of(from{t}, to{t});"
                    )
                else:
                    lines.append(f"const int there{k}_{t} = {at} >= 0 && {at} < {size};")
                for one in before:
                    flat = {n: str(int(i) * high + t) for n, i in one.where[w].items()}
                    where = {x: {**one.where[x], side: str(t * step)}, w: flat}
                    there = one.there if lane else " && ".join(filter(None, [one.there, f"there{k}_{t}"]))
                    lanes = f"some{t}" if lane else one.lanes
                    found.append(Tap(where, there, lanes))
        found.sort(key=lambda one: [int(i) for i in one.where[w].values()])
        if len(found) > MOST_TAPS:
            raise NoBlocks
        return found, lines

    def steps_by_row(self, name: str) -> bool:
        """Return whether a factor has another vector in every row of a block."""
        return self.shape.rows >= 0 and follows(self.use(name), self.shape.rows)

    def split(self, name: str, tap: Tap) -> tuple[dict[int, str], int]:
        """Return a tap's indices along sides, without those that are as many bytes away in every region, and
        these bytes.
        """
        where, place, more = dict(tap.of(name)), self.place(name).place, 0
        use, stride = self.use(name), place.pitch
        for n in reversed(range(len(place.sides))):
            if n not in where:
                break
            window = use.slides[n] if use.slides else None
            if window is not None and (n == place.ring or window.axis != self.shape.lanes):
                break
            more += int(where[n]) * stride
            where[n] = "0"
            if window is not None:  # the lanes: of what lies before them not so
                break
            stride *= place.sides[n]
        return where, more

    def of_row(self, r: int) -> dict[int, str]:
        """Return the names of the indices in row r: those of the first row, where rows are as far apart."""
        rows = self.shape.rows
        return self.var if rows < 0 or not self.spread else self.var | {rows: f"row{r}"}

    def by_row(self, axes: Sequence[int]) -> bool:
        return self.shape.rows >= 0 and self.shape.rows in axes

    def put_at(self, place: PlaceText, r: int) -> str:
        """Return the C of the address of the output's vector in row r."""
        var, axes = self.of_row(r), self.cut.writes.axes
        found = address(place, [var[axis] for axis in axes])
        if r and not self.spread and self.by_row(axes):
            found += f" + {r} * {self.apart(axes, place)}"
        return found

    def apart(self, axes: Sequence[int], place: PlaceText) -> str:
        """Return the C of the bytes between the rows of a block."""
        return f"({distance(place, list(axes).index(self.shape.rows))})"

    @property
    def even(self) -> bool:
        """True if the rows of a block are as far apart as each other in every place."""
        rows, places = self.shape.rows, [(self.out, self.cut.writes)]
        if rows < 0:
            return False
        places += [(place, self.use(name)) for name, (_, place) in self.reads.items()]
        if self.step.accumulators:
            places.append((self.places[self.step.accumulators], self.cut.writes))
        return all(
            (place.place.ring is None or use.axes[place.place.ring] != rows)
            and not any(side is not None and side.axis == rows for side in use.slides)
            for place, use in places
        )
