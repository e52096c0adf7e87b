"""The C of an operator as a unit with an array makes it: blocks of 8 rows of 16 floats, one index of the
sum after the other.

The law of nests takes an array to make `rows` x `lanes` products a cycle (docs/nest-times.md). Here the lanes
are the last side of the output, the rows another axis along which the operand that is loaded for all lanes
does not vary. An operator of other nodes keeps the C
of `onchip.export.loops`, which is right, and slower.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from onchip.export.loops.book import Book
from onchip.export.loops.operators import OperatorText
from onchip.export.loops.places import PlaceText
from onchip.export.loops.steps import Compute, Seen
from onchip.export.loops.text import bounds, literal
from onchip.export.threads.chain import BINARY, ROWS, UNARY, Applied, Chain, chain_of
from onchip.network import Operator
from onchip.network.axes import ALL, Cut, Use
from onchip.run.tiled.nests.forms import Dim
from onchip.run.tiled.nests.kernel import Source

__all__ = ["LANES", "ROWS_HIGH", "VectorText", "bias_of"]

LANES, ROWS_HIGH = 16, 8
MOST_TAPS = 25
LEAST_BLOCKS, MOST_PANEL = 3, 1024
"""Blocks of rows from which on a panel is made, and the most indices of a sum that it holds."""
F32 = np.dtype(np.float32)


class _Other(Exception):
    """An operator that has no vectors."""


@dataclass(frozen=True, slots=True)
class _Shape:
    """Where an operator's lanes and rows are: axes, and -1 for no rows."""

    lanes: int
    rows: int


@dataclass(frozen=True, slots=True)
class _Tap:
    """A place of a window: of each factor the index along sides, when it exists, and for which lanes."""

    where: Mapping[str, Mapping[int, str]]
    there: str
    lanes: tuple[str, str]

    def of(self, name: str) -> Mapping[int, str]:
        return self.where.get(name, {})


def _follows(use: Use, axis: int) -> bool:
    return axis in use.axes or any(side is not None and side.axis == axis for side in use.slides)


def _lanes_of(cut: Cut) -> int:
    """Return the axis along which lanes lie: the output's last one."""
    sides = [axis for axis in cut.writes.axes if axis >= 0 and cut.axes[axis] > 1]
    return sides[-1] if sides else max(cut.writes.axes[-1], 0)


def _rows_of(cut: Cut, lanes: int, factors: Sequence[Use]) -> int:
    """Return the axis along which rows lie, -1 without: the longest along which what has lanes does not vary."""
    loaded = [use for use in factors if _follows(use, lanes)]
    others = [
        axis
        for axis in dict.fromkeys(cut.writes.axes)
        if axis >= 0 and axis != lanes and cut.axes[axis] > 1 and not any(_follows(u, axis) for u in loaded)
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


def distance(place: PlaceText, side: int) -> str:
    """Return the C of the bytes between neighbours along a side."""
    p = place.place
    lengths = [str(p.most[k] if k == p.ring else f"{p.id}_n{k}") for k in range(side + 1, len(p.sides))]
    return " * ".join([str(p.pitch), *lengths])


def address(place: PlaceText, where: Sequence[str]) -> str:
    """Return the C of an element's address; of one outside of the region the address where it would lie."""
    p = place.place
    index = ""
    for n in place.rank:
        one = f"s{n} % {p.most[n]}" if n == p.ring else f"(s{n} - {p.id}_r{n})"
        length = str(p.most[n]) if n == p.ring else f"{p.id}_n{n}"
        index = f"({index}) * {length} + {one}" if index else one
    place.functions["to"] = [
        f"static inline unsigned char *{p.id}_to({', '.join(f'ix {s}' for s in place.s)})",
        "{",
        f"    return pad + {place.base} + ({index}) * {p.pitch};",
        "}",
    ]
    return f"{p.id}_to({', '.join(where)})"


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
    return str(heads[0].input[2]) if fits else ""


class VectorText(OperatorText):
    """The C of an operator in blocks, where its nodes allow it."""

    array: tuple[tuple[int, ...], ...] | None = None
    """The axes on the rows and on the lanes, as a plan states them, where they did."""
    panel = False
    """True if it lays one of its factors out in a panel."""

    def in_nest(self, step: Compute, places: Mapping[str, PlaceText]) -> list[str]:
        """Write the operator's function; return the statements that call it."""
        try:
            blocks = _Blocks(self, step, places)
            written = blocks.call()
        except _Other:
            return super().in_nest(step, places)
        rows, lanes = blocks.shape.rows, blocks.shape.lanes
        self.panel = blocks.packable
        self.array = (() if rows < 0 else (rows,)), (lanes,)
        return written

    def call(self, step: Compute, box: Sequence[Any], total: str, dim: Dim) -> list[str]:
        """Return the statements that make a box, as one step."""
        lines = super().call(step, box, total, dim)
        if not lines[-1].endswith("}"):
            return ["step_begin();", *lines, "step_end();"]
        return [lines[0], "step_begin();", *lines[1:-1], "step_end();", lines[-1]]


class _Blocks:
    """The function of one operator."""

    spread = True
    """Whether the rows of a block lie anywhere, or as far apart as each other."""
    row = 0

    def __init__(self, text: OperatorText, step: Compute, places: Mapping[str, PlaceText]) -> None:
        self.text, self.step, self.places, self.cut = text, step, places, step.cut
        self.prefix = text.prefix
        engine = text.engine
        self.reads: dict[str, tuple[Seen, PlaceText]] = {}
        for seen, _ in step.reads:
            name = seen.source.name if seen.source.filled else bias_of(text.book, text.op, seen.source)
            if not name:
                raise _Other
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
            raise _Other
        self.chain: Chain = chain
        lanes = _lanes_of(self.cut)
        self.uses = {
            name: _along(seen.source.use, place.place.sides, self.cut, lanes)
            for name, (seen, place) in self.reads.items()
        }
        self.shape = _Shape(lanes, _rows_of(self.cut, lanes, [self.use(name) for name in chain.factors]))
        if chain.product is not None and self.shape.lanes < 0:
            raise _Other
        self.out = places[step.writes[0]]
        row = next((one for one in chain.applied if one.node.op_type in ROWS), None)
        self.first = chain.wanted if row is None else str(row.operands[0])
        """What is written where no node comes before: an operand, of which rows are made, or that moves."""
        self.height = ROWS_HIGH if self.shape.rows >= 0 else 1
        self.packed = False
        self.packable = chain.product is not None and self.packs()

    # -- uses ------------------------------------------------------------------------------------------------

    def use(self, name: str) -> Use:
        return self.uses[name]

    def place(self, name: str) -> PlaceText:
        return self.reads[name][1]

    def contiguous(self, name: str) -> bool:
        """Return whether the lanes of an operand lie side by side."""
        use, place = self.use(name), self.place(name).place
        sides = [n for n, size in enumerate(place.sides) if size > 1]
        last = sides[-1] if sides else -1
        if last < 0 or place.pitch != 4 or place.ring == last:
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
                raise _Other
            if window is not None:
                if window.per != 1 or n not in taps:
                    raise _Other
                where.append(f"{var[window.axis]} * {window.stride} - {window.before} + {taps[n]}")
            elif axis != ALL:
                where.append(var[axis])
            elif n in taps:
                where.append(taps[n])
            elif size == 1:
                where.append("0")
            else:
                raise _Other
        if any(place.place.first):
            raise _Other
        return address(place, where)

    def stride(self, name: str, axis: int) -> str:
        """Return the C of the bytes between neighbours of an operand along an axis."""
        use, place = self.use(name), self.place(name)
        if any(side is not None and side.axis == axis for side in use.slides):
            raise _Other
        for n, of in enumerate(use.axes):
            if of == axis:
                if n == place.place.ring:
                    raise _Other
                return distance(place, n)
        return "0"

    def load(self, name: str, address: str, low: str, high: str) -> str:
        """Return the C of a vector of an operand: its lanes from `low` to `high`, or one element in all."""
        if not _follows(self.use(name), self.shape.lanes):
            return f"one16({address})"
        if self.contiguous(name):
            return f"load16({address}, {low}, {high})"
        return f"apart16({address}, {self.stride(name, self.shape.lanes)}, {low}, {high})"

    # -- the function ----------------------------------------------------------------------------------------

    def call(self) -> list[str]:
        """Write the function; return the statements that call it."""
        step, cut = self.step, self.cut
        outs = list(dict.fromkeys(cut.writes.axes))
        sums = list(cut.sums) if self.chain.product is not None else []
        arguments = [x for axis in (*outs, *sums) for x in bounds(step.axes[axis])]
        said = ", ".join(f"ix lo{axis}, ix hi{axis}" for axis in (*outs, *sums))
        first, last = ["1"], ["1"]
        if step.parts:
            first = [f"{bounds(of)[0]} == 0" for of, _ in step.parts]
            last = [f"{bounds(of)[1]} == {size}" for of, size in step.parts]
        rows, lanes = self.shape.rows, self.shape.lanes
        outer = [axis for axis in outs if axis not in (lanes, rows)]
        self.var = {axis: f"v{axis}" for axis in range(len(cut.axes))}
        inner = [f"ix v{axis}" for axis in outs] + [f"ix lo{axis}, ix hi{axis}" for axis in sums]
        given = [f"v{axis}" for axis in outs] + [f"lo{axis}, hi{axis}" for axis in sums]
        lines = []
        for self.packed in (False, True) if self.packable else (False,):
            for self.spread in (False, True) if self.even else (True,):
                name = self.prefix + ("_few" if self.spread else "_block") + ("_of_panel" if self.packed else "")
                lines += [
                    f"static inline __attribute__((always_inline)) void {name}(",
                    f"    {', '.join(inner)}, int first, int last, ix begin, ix end, ix wide)",
                    "{",
                    "(void)first; (void)last; (void)begin; (void)end;",
                ]
                if rows >= 0 and self.spread:
                    lines += [f"const ix row{r} = v{rows} + min_ix({r}, end - 1);" for r in range(self.height)]
                lines += self.product() if self.chain.product is not None else []
                lines += [*self.finish(), "}"]
        lines += [f"static void {self.prefix}_run({said}, int first, int last)", "{"]
        for axis in outer:
            lines.append(f"for (ix v{axis} = lo{axis}; v{axis} < hi{axis}; ++v{axis}) {{")
        lanes_loop = f"for (ix v{lanes} = lo{lanes}; v{lanes} < hi{lanes}; v{lanes} += {LANES}) {{"
        wide = f"const ix wide = min_ix({LANES}, hi{lanes} - v{lanes});"
        call = f"{', '.join(given)}, first, last"
        lines += [lanes_loop, wide]
        if self.packable:
            lines += [f"if (hi{rows} - lo{rows} > {self.height * (LEAST_BLOCKS - 1)}) {{", *self.pack()]
            lines += [*self.blocks(given, "_of_panel"), "} else {", *self.blocks(given, ""), "}"]
        else:
            lines += self.blocks(given, "")
        lines += ["}"] * (len(outer) + 1)
        lines += [*self.rows_whole(), "}", ""]
        self.text.lines += lines
        call = f"{self.prefix}_run({', '.join([*arguments, ' && '.join(first), ' && '.join(last)])});"
        some = {bounds(one) for one in step.axes if not str(bounds(one)[0]).isdigit()}
        there = " && ".join(f"{low} < {high}" for low, high in sorted(some))
        body = ["step_begin();", call, "step_end();"]
        return body if not there else [f"if ({there}) {{", *body, "}"]

    def blocks(self, given: Sequence[str], suffix: str) -> list[str]:
        """Return the loop over the blocks of the present lanes."""
        rows, lines = self.shape.rows, list[str]()
        call = f"{', '.join(given)}, first, last"
        few = f"{self.prefix}_few{suffix}({call}, 0"
        if rows < 0:
            return [f"{few}, 1, wide);"]
        if self.even:
            # Rows that fill no block are made in one that begins before them, and of which they alone are written.
            of_block = [x if x != f"v{rows}" else "row" for x in given]
            block = f"{self.prefix}_block{suffix}({', '.join(of_block)}, first, last"
            lines = [
                f"if (hi{rows} - lo{rows} >= {self.height}) {{",
                f"for (ix v{rows} = lo{rows}; v{rows} < hi{rows}; v{rows} += {self.height}) {{",
                f"const ix row = min_ix(v{rows}, hi{rows} - {self.height}), begin = v{rows} - row;",
                f"if (begin == 0 && wide == {LANES}) {block}, 0, {self.height}, {LANES});",
                f"else {block}, begin, {self.height}, wide);",
                "}", "} else",
            ]  # fmt: skip
        lines.append(f"for (ix v{rows} = lo{rows}; v{rows} < hi{rows}; v{rows} += {self.height})")
        return [*lines, f"{few}, min_ix({self.height}, hi{rows} - v{rows}), wide);"]

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

    def product(self) -> list[str]:
        """Return the statements that sum the products of a block into `a0`, `a1`, ..."""
        step, cut, chain = self.step, self.cut, self.chain
        sums = list(cut.sums)
        lines = []
        begin = "all16(0.0f)"
        if step.parts:
            if not step.accumulators:
                raise _Other
            self.beside = self.places[step.accumulators]
        for r in range(self.height):
            start = f"first ? {begin} : load16({self.put_at(self.beside, r)}, 0, wide)" if step.parts else begin
            lines.append(f"v16 a{r} = {start};")
        x, w = chain.factors
        if not any(_follows(self.use(name), self.shape.lanes) for name in (x, w)):
            raise _Other
        if self.packed:
            return lines + self.from_panel() + self.partial()
        taps, before = self.taps()
        lines += before
        inner = sums[-1] if sums else -1
        for axis in sums[:-1]:
            lines.append(f"for (ix v{axis} = lo{axis}; v{axis} < hi{axis}; ++v{axis}) {{")
        from_ = {inner: f"lo{inner}"}
        names = (x, w)
        for number, name in enumerate(names):
            if inner >= 0:
                lines.append(f"const ix d{number} = {self.stride(name, inner)};")
            if self.steps_by_row(name) and not self.spread:
                lines += [f"ix e{number} = {self.stride(name, self.shape.rows)};", f"OPAQUE(e{number});"]
        heads: dict[tuple[int, str], int] = {}
        for tap in taps:
            for number, name in enumerate(names):
                where, _ = self.split(name, tap)
                key = number, str(where)
                if key in heads:
                    continue
                heads[key] = len(heads)
                for r in range(self.height if self.spread and self.steps_by_row(name) else 1):
                    at = self.at(name, self.of_row(r) | from_, where)
                    held = f"{tap.there} ? {at} : pad" if tap.there and number == 0 else at
                    lines.append(f"const unsigned char *p{heads[key]}_{r} = {held};")
                if not self.spread and self.steps_by_row(name):
                    for r in (3, 6):
                        lines.append(f"const unsigned char *p{heads[key]}_{r} = p{heads[key]}_0 + {r} * e{number};")
                        lines.append(f"OPAQUE(p{heads[key]}_{r});")
        if inner >= 0:
            lines.append(f"for (ix n = hi{inner} - lo{inner}; n > 0; --n) {{")
        for tap in taps:
            lines.append(f"if ({tap.there}) {{" if tap.there else "{")
            some = []
            for number, name in enumerate(names):
                where, more = self.split(name, tap)
                head = f"p{heads[number, str(where)]}"
                if not self.steps_by_row(name):
                    at = [f"{head}_0"]
                elif self.spread:
                    at = [f"{head}_{r}" for r in range(self.height)]
                else:
                    at = [
                        f"{head}_{r // 3 * 3}" + (f" + {r % 3} * e{number}" if r % 3 else "")
                        for r in range(self.height)
                    ]
                loads = [self.load(name, one + (f" + {more}" if more else ""), *tap.lanes) for one in at]
                if len(loads) == 1:
                    lines.append(f"const v16 f{number} = {loads[0]};")
                    loads = [f"f{number}"] * self.height
                some.append(loads)
            lines += [f"a{r} += {one} * {two};" for r, (one, two) in enumerate(zip(*some, strict=True))]
            lines.append("}")
        if inner >= 0:
            for (number, _), head in heads.items():
                by_row = self.steps_by_row(names[number])
                rows = range(self.height) if self.spread and by_row else (0, 3, 6) if by_row else (0,)
                lines += [f"p{head}_{r} += d{number};" for r in rows]
        lines += ["}"] * len(sums)
        return lines + self.partial()

    def partial(self) -> list[str]:
        """Return the statements that leave sums where they go on, if they do."""
        if not self.step.parts:
            return []
        lines = ["if (!last) {"]
        for r in range(self.height):
            guard = f"if ({r} >= begin && {r} < end) " if self.shape.rows >= 0 else ""
            lines.append(f"{guard}store16({self.put_at(self.beside, r)}, a{r}, wide);")
        return [*lines, "return;", "}"]

    # -- a panel of the factor that is loaded -------------------------------------------------------------

    def packs(self) -> bool:
        """Return whether the factor that has lanes is laid out in a panel first: all of the sum, 16 lanes wide.

        That takes a pass over it, and is left out where few blocks of rows use it.
        """
        if self.shape.rows < 0 or -(-self.cut.axes[self.shape.rows] // self.height) < LEAST_BLOCKS:
            return False
        loaded = [name for name in self.chain.factors if _follows(self.use(name), self.shape.lanes)]
        if len(loaded) != 1 or not self.cut.sums:
            return False
        self.loaded, (self.other,) = loaded[0], [n for n in self.chain.factors if n != loaded[0]]
        taps, _ = self.taps()
        if len(taps) > 1:
            # The other factor's taps have to lie in one piece, from index to index of the last axis summed.
            use, place = self.use(self.other), self.place(self.other).place
            ends = [n for n in range(len(place.sides)) if n in taps[-1].of(self.other)]
            first = len(place.sides) - len(ends)
            if ends != list(range(first, len(place.sides))) or not first:
                return False
            if use.axes[first - 1] != self.cut.sums[-1] or place.pitch != 4:
                return False
        self.count = len(taps)
        for axis in self.cut.sums:
            self.count *= self.cut.axes[axis]
        return self.count <= MOST_PANEL

    def pack(self) -> list[str]:
        """Return the statements that fill the panel of the present lanes."""
        sums, name = list(self.cut.sums), self.loaded
        taps, lines = self.taps()
        lines = ["{", "unsigned char *q = (unsigned char *)panel;", *lines]
        for axis in sums[:-1]:
            lines.append(f"for (ix v{axis} = lo{axis}; v{axis} < hi{axis}; ++v{axis}) {{")
        inner, heads = sums[-1], dict[str, int]()
        for tap in taps:
            where, _ = self.split(name, tap)
            if str(where) not in heads:
                heads[str(where)] = len(heads)
                at = self.at(name, self.var | {inner: f"lo{inner}"}, where)
                held = f"{tap.there} ? {at} : pad" if tap.there else at
                lines.append(f"const unsigned char *x{heads[str(where)]} = {held};")
        lines += [f"const ix d = {self.stride(name, inner)};"]
        lines += [f"for (ix n = hi{inner} - lo{inner}; n > 0; --n) {{"]
        for tap in taps:
            where, more = self.split(name, tap)
            head = f"x{heads[str(where)]}"
            one = self.load(name, head + (f" + {more}" if more else ""), *tap.lanes)
            lines.append(f"store16(q, {f'{tap.there} ? {one} : all16(0.0f)' if tap.there else one}, 16);")
            lines.append("q += 64;")
        lines += [f"x{head} += d;" for head in heads.values()]
        return [*lines, *["}"] * len(sums), "}"]

    def from_panel(self) -> list[str]:
        """Return the statements that sum the products of a block, with the panel."""
        sums, name = list(self.cut.sums), self.other
        taps, _ = self.taps()
        lines = ["const unsigned char *q = (const unsigned char *)panel;"]
        for axis in sums[:-1]:
            lines.append(f"for (ix v{axis} = lo{axis}; v{axis} < hi{axis}; ++v{axis}) {{")
        inner = sums[-1]
        step = "4" if len(taps) > 1 else self.stride(name, inner)
        lines.append(f"const ix d = {step};")
        by_row = self.steps_by_row(name)
        start = self.var | {inner: f"lo{inner}"}
        zero = {side: "0" for side in taps[0].of(name)}
        if self.spread and by_row:
            for r in range(self.height):
                lines.append(f"const unsigned char *p{r} = {self.at(name, self.of_row(r) | {inner: f'lo{inner}'}, zero)};")
            at, heads = [f"p{r}" for r in range(self.height)], range(self.height)
        elif by_row:
            lines += [f"ix e = {self.stride(name, self.shape.rows)};", "OPAQUE(e);"]
            lines += [f"const unsigned char *p0 = {self.at(name, start, zero)};"]
            lines += ["const unsigned char *p3 = p0 + 3 * e, *p6 = p0 + 6 * e;", "OPAQUE(p3);", "OPAQUE(p6);"]
            at = [f"p{r // 3 * 3}" + (f" + {r % 3} * e" if r % 3 else "") for r in range(self.height)]
            heads = (0, 3, 6)
        else:
            lines += [f"const unsigned char *p0 = {self.at(name, start, zero)};"]
            at, heads = ["p0"] * self.height, (0,)
        lines.append(f"for (ix n = (hi{inner} - lo{inner}) * {len(taps)}; n > 0; --n) {{")
        lines.append("const v16 f = load16(q, 0, 16);")
        lines.append("q += 64;")
        lines += [f"a{r} += one16({one}) * f;" for r, one in enumerate(at)]
        lines += [f"p{r} += d;" for r in heads]
        return [*lines, *["}"] * len(sums)]

    def steps_by_row(self, name: str) -> bool:
        """Return whether a factor has another vector in every row of a block."""
        return self.shape.rows >= 0 and _follows(self.use(name), self.shape.rows)

    def split(self, name: str, tap: _Tap) -> tuple[dict[int, str], int]:
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

    def taps(self) -> tuple[list[_Tap], list[str]]:
        """Return the taps of a window, one where there is none, and the statements that say which exist."""
        x, w = self.chain.factors
        node = self.chain.product
        assert node is not None
        if node.op_type != "Conv":
            if any(side is not None for name in (x, w) for side in self.use(name).slides):
                raise _Other
            return [_Tap({}, "", ("0", "wide"))], []
        dilations = next((list(a.ints) for a in node.attribute if a.name == "dilations"), [])
        use, sides = self.use(x), self.place(w).place.sides
        over = [n for n, side in enumerate(use.slides) if side is not None]
        kernel = list(self.text.engine.parts.constants[node.input[1]].shape[2:])[-len(over) :] if over else []
        free = [n for n, axis in enumerate(self.use(w).axes) if axis == ALL and sides[n] > 1]
        if len(kernel) != len(over) or prod(sides[n] for n in free) != prod(kernel) or len(free) > 1:
            raise _Other
        found, lines = [_Tap({x: {}, w: dict.fromkeys(free, "0")}, "", ("0", "wide"))], list[str]()
        for k, (side, high) in enumerate(zip(over, kernel, strict=True)):
            window = use.slides[side]
            assert window is not None
            step = dilations[len(dilations) - len(over) + k] if len(dilations) >= len(over) else 1
            lane = window.axis == self.shape.lanes
            if high != (window.span - 1) // step + 1 or window.per != 1 or (lane and window.stride != 1):
                raise _Other
            size, before, found = self.place(x).place.sides[side], found, []
            for t in range(high):
                at = f"v{window.axis} * {window.stride} - {window.before} + {t * step}"
                if lane:
                    lines.append(
                        f"const ix from{t} = max_ix(0, min_ix(wide, -({at}))),"
                        f" to{t} = max_ix(from{t}, min_ix(wide, {size} - ({at})));"
                    )
                else:
                    lines.append(f"const int there{k}_{t} = {at} >= 0 && {at} < {size};")
                for one in before:
                    flat = {n: str(int(i) * high + t) for n, i in one.where[w].items()}
                    where = {x: one.where[x] | {side: str(t * step)}, w: flat}
                    there = one.there if lane else " && ".join(filter(None, [one.there, f"there{k}_{t}"]))
                    lanes = (f"from{t}", f"to{t}") if lane else one.lanes
                    found.append(_Tap(where, there, lanes))
        found.sort(key=lambda one: [int(i) for i in one.where[w].values()])
        if len(found) > MOST_TAPS:
            raise _Other
        return found, lines

    def finish(self) -> list[str]:
        """Return the statements that make results of sums, and write them."""
        lines = []
        before, _ = self.stages()
        for r in range(self.height):
            self.row = r
            var = self.of_row(r)
            guard = f"if ({r} >= begin && {r} < end) {{" if self.shape.rows >= 0 else "{"
            names: dict[str, str] = {}
            body = []
            if self.chain.product is not None:
                last = f"a{r}"
                if self.chain.bias:
                    last += " + " + self.element(self.chain.bias, var)
                body.append(f"const v16 c = {last};")
                names[self.chain.total] = "c"
            for n, one in enumerate(before):
                body.append(f"const v16 c{n} = {self.applied(one, names, var)};")
                names[one.result] = f"c{n}"
            wanted = before[-1].result if before else self.chain.total or self.first
            value = names[wanted] if wanted in names else self.element(wanted, var)
            body.append(f"store16({self.put_at(self.out, r)}, {value}, wide);")
            lines += [guard, *body, "}"]
        return lines

    def stages(self) -> tuple[tuple[Applied, ...], Applied | None]:
        """Return the nodes up to one that needs a whole row, and that one, which has to be the last."""
        applied = self.chain.applied
        at = next((n for n, one in enumerate(applied) if one.node.op_type in ROWS), None)
        if at is None:
            if (applied[-1].result if applied else self.chain.total or self.chain.wanted) != self.chain.wanted:
                raise _Other
            return applied, None
        row = applied[at]
        whole = self.shape.lanes not in {axis for axis, _ in enumerate(self.cut.axes)} - self.cut.together
        value = applied[at - 1].result if at else self.chain.total or row.operands[0]
        if at != len(applied) - 1 or not whole or row.operands[0] != value or not self.last_axis(row.node):
            raise _Other
        if not at and not self.chain.total:  # a row of an operand
            return (), row
        return applied[:at], row

    def last_axis(self, node: Any) -> bool:
        axis = next((a.i for a in node.attribute if a.name == "axis"), -1)
        rank = len(self.text.engine.values[node.output[0]][1])
        shape = self.text.engine.values[node.output[0]][1]
        return axis % rank == rank - 1 and shape[-1] == self.cut.axes[self.shape.lanes]

    def rows_whole(self) -> list[str]:
        """Return the statements that go on with whole rows, where a node needs them."""
        _, row = self.stages()
        if row is None:
            return []
        cut, lanes = self.cut, self.shape.lanes
        lines = ["if (!last) return;"] if self.step.parts else []
        outer = [axis for axis in dict.fromkeys(cut.writes.axes) if axis != lanes]
        for axis in outer:
            lines.append(f"for (ix v{axis} = lo{axis}; v{axis} < hi{axis}; ++v{axis}) {{")
        var = {axis: f"v{axis}" for axis in outer} | {lanes: f"lo{lanes}"}
        at = address(self.out, [var[axis] for axis in cut.writes.axes])
        arguments = [at, f"hi{lanes} - lo{lanes}"]
        if row.node.op_type == "Softmax":
            lines.append(f"softmax_row({', '.join(arguments)});")
        else:
            epsilon = next((a.f for a in row.node.attribute if a.name == "epsilon"), 1e-5)
            arguments.append(literal(np.float32(epsilon), F32))
            for n in (1, 2):
                name = row.operands[n] if len(row.operands) > n else None
                if name is not None and (not isinstance(name, str) or not self.contiguous(name)):
                    raise _Other
                arguments.append("NULL" if name is None else self.at(str(name), var))
            lines.append(f"norm_row({', '.join(arguments)});")
        return lines + ["}"] * len(outer)

    def element(self, name: str, var: Mapping[int, str]) -> str:
        """Return the C of an operand's vector at the place of the output's."""
        if name not in self.reads:
            raise _Other
        at = self.at(name, var)
        if self.row and not self.spread and self.by_row(self.use(name).axes):
            at += f" + {self.row} * {self.apart(self.use(name).axes, self.place(name))}"
        return self.load(name, at, "0", "wide")

    def applied(self, one: Applied, names: Mapping[str, str], var: Mapping[int, str]) -> str:
        """Return the C of a node's vector."""
        some = []
        for given in one.operands:
            if isinstance(given, float):
                some.append(literal(np.float32(given), F32))
            else:
                some.append(names[given] if given in names else self.element(given, var))
        if one.node.op_type in UNARY:
            return UNARY[one.node.op_type].replace("{x}", f"({some[0]})")
        return f"{some[0]} {BINARY[one.node.op_type]} {some[1]}"
