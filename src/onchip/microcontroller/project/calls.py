"""Kernels' calls in C: the lines' addresses, the clipping of windows, and the arguments."""

from __future__ import annotations

from dataclasses import dataclass, field

from onchip.microcontroller.int8.model import Concat, Own, Resize
from onchip.microcontroller.int8.reference import bilinear_places, nearest_places
from onchip.microcontroller.project.library import Call, Library
from onchip.microcontroller.project.storage import Storage
from onchip.microcontroller.project.text import Text, minus, plus, times
from onchip.microcontroller.project.units import Op, StageUnit, Unit
from onchip.microcontroller.project.windows import Operand
from onchip.network.windows import Window

__all__ = ["Calls", "Lines", "clipped", "hull", "reads", "window_start"]


@dataclass(frozen=True, slots=True)
class Lines:
    """Rows or columns [first, end) as C."""

    first: str
    end: str


@dataclass
class Calls:
    """The state of writing a unit's functions; `name` is the unit's in C."""

    unit: Unit
    name: str
    library: Library
    storage: Storage
    out: Text = field(default_factory=Text)
    edges: list[list[int]] = field(default_factory=list)
    """Columns that differ from strip to strip: by index, for every strip."""
    tops: dict[int, str] = field(default_factory=dict)
    """First rows of the maps in rings of columns, of the stage that is being written."""

    def edge(self, columns: list[int]) -> str:
        """Return a column, one for every strip, as C."""
        if len(set(columns)) == 1:
            return str(columns[0])
        if columns not in self.edges:
            self.edges.append(columns)
        return f"at->edges[{self.edges.index(columns)}]"

    def left(self, stage: StageUnit, tensor: int) -> str:
        return self.edge([span.get(tensor, (0, 0))[0] for span in stage.spans])

    def right(self, stage: StageUnit, tensor: int) -> str:
        return self.edge([span.get(tensor, (0, 0))[1] for span in stage.spans])

    def origin(self, tensor: int) -> str:
        return self.edge([origins.get(tensor, 0) for origins in self.unit.origins])

    # -- the functions of a group

    def maker(self, end: str) -> Text.Block:
        """Return the block of a function that makes rows or columns up to a given one."""
        parameters = f"struct {self.name} *at, int32_t upto"
        return self.storage.function(self.out, f"static void {self.name}_{end}", parameters)

    def made(self, end: str, upto: str) -> None:
        """Write a call of such a function."""
        self.out.say(f"{self.name}_{end}({self.storage.passes(f'at, {upto}')});")

    # -- addresses of tensors

    def address(self, tensor: int, slot: str) -> str:
        """Return the address of a tensor's slot in the arena: its row or column of this number."""
        place = self.unit.places[tensor]
        at = self.storage.at(place.address)
        if place.kind != "whole":
            slot = "0" if place.slots == 1 else f"{_factor(slot)} % {place.slots}"
        return plus(at, times(slot, place.pitch))

    def pixel_0(self, tensor: int, pixel: int, y: str) -> str:
        """Return the address of column 0 of a row, which may lie outside: columns count from there."""
        place = self.unit.places[tensor]
        there = self.address(tensor, y)
        return there if place.kind == "whole" else minus(there, times(self.origin(tensor), pixel))

    def pixel(self, tensor: int, pixel: int, y: str, x: str, top: str) -> str:
        """Return the address of a pixel, in any place; `top` is the first row of columns in a ring."""
        place = self.unit.places[tensor]
        if place.kind == "pixel":
            return self.address(tensor, "0")
        if place.kind == "columns":
            return plus(self.address(tensor, x), times(minus(y, top), pixel))
        return plus(self.pixel_0(tensor, pixel, y), times(x, pixel))

    # -- rows

    def rows_of(self, rows: Lines) -> Text.Block:
        """Return a loop over rows, in the unit's direction."""
        if rows.first.isdigit() and rows.end.isdigit() and int(rows.end) == int(rows.first) + 1:
            return self.out.block("", before=f"const int32_t y = {rows.first};")
        if self.unit.reverse:
            return self.out.block(f"for (int32_t y = {minus(rows.end, '1')}; y >= {rows.first}; --y)")
        return self.out.block(f"for (int32_t y = {rows.first}; y < {rows.end}; ++y)")

    def row(self, op: Op, y: str, x0: str, x1: str, pixels: int) -> None:
        """Make the pixels [x0, x1) of a layer's row y."""
        self.lines_of_row(op, y, None)
        call = self.library.kernel(op, columns=False, pixels=pixels)
        first = op.operands[0]
        out = self.pixel_0(op.layer.output, op.layer.output_shape[3], y)
        self.call(op, call, out, x0, x1, first.rows, y, first.columns.size)

    def lines_of_row(self, op: Op, y: str, x: str | None) -> None:
        """Set `lines` for row y; with `x`, only its pixel x is read, which may lie in a ring of columns."""
        if isinstance(op.layer, Resize):
            self.resized_lines(op, op.layer, y)
            return
        if isinstance(op.layer, Concat) and op.layer.axis == 1:
            self.stacked_lines(op, y)
            return
        if isinstance(op.layer, Own):
            for i, operand in enumerate(op.operands):
                self.out.say(f"lines[{i}] = {self.address(operand.tensor, '0')};")
            return
        for i, operand in enumerate(op.operands):
            rows = operand.rows
            if rows.taps > 1:
                base = self.storage.at(self.unit.places[operand.tensor].address)
                shift = self.unit.places[operand.tensor]
                if shift.kind != "whole":
                    base = minus(base, times(self.origin(operand.tensor), operand.pixel))
                self.window(operand.tensor, base, rows, y)
                continue
            row = clipped(rows, window_start(rows, y))
            if x is not None and self.unit.places[operand.tensor].kind == "columns":
                column = clipped(operand.columns, window_start(operand.columns, x))
                at = self.pixel(operand.tensor, operand.pixel, row, column, self.tops[operand.tensor])
                at = minus(at, times(column, operand.pixel))
            else:
                at = self.pixel_0(operand.tensor, operand.pixel, row)
            self.out.say(f"lines[{i}] = {at};")

    def resized_lines(self, op: Op, layer: Resize, y: str) -> None:
        """Set the one or two rows from which a resized row is made."""
        (operand,) = op.operands
        sizes = operand.shape[1], layer.output_shape[1]
        if layer.mode == "nearest":
            places = [nearest_places(layer, *sizes)]
        else:
            places = list(bilinear_places(layer, *sizes)[:2])
        rows = ", ".join(
            "{" + ", ".join(str(int(row)) for row in pair) + "}" for pair in zip(*places, strict=True)
        )
        self.out.say(f"static const int16_t places[][{len(places)}] = {{{rows}}};")
        for i in range(len(places)):
            self.out.say(f"lines[{i}] = {self.address(operand.tensor, f'places[{y}][{i}]')};")

    def stacked_lines(self, op: Op, y: str) -> None:
        """Set the row of the one of several concatenated maps that has it."""
        found, before = "", sum(operand.shape[1] for operand in op.operands)
        for operand in reversed(op.operands):
            before -= operand.shape[1]
            at = self.address(operand.tensor, minus(y, str(before)))
            found = f"{y} < {before + operand.shape[1]} ? {at} : {found}" if found else at
        self.out.say(f"lines[0] = {found};")

    def window(self, tensor: int, base: str, axis: Window, at: str) -> None:
        """Set `lines` for the rows, or columns in a ring, that a window reads."""
        place = self.unit.places[tensor]
        slots = axis.size if place.kind == "whole" else place.slots
        start = window_start(axis, at)
        of = f"{base}, {start}, {axis.dilation}, {axis.taps}, {axis.size}, {slots}, {place.pitch}"
        self.out.say(f"window({self.storage.passes(of)});")

    def call(
        self, op: Op, call: Call, out: str, x0: str, x1: str, across: Window, at: str, width: int
    ) -> None:
        """Write the kernel's call; its window's lines are those that start `across` line `at`."""
        if call.operand:
            columns, channels = op.layer.output_shape[2:]
            self.out.say(f"lines[{len(op.operands)}] = {plus(call.operand, times('y', columns * channels))};")
        start = window_start(across, at)
        first, last = "0", str(across.taps)
        if across.clips:
            first = f"first_inside({start}, {across.dilation})"
            last = f"last_inside({start}, {across.dilation}, {across.taps}, {across.size})"
        self.out.say(f"MARK({op.number});")
        self.out.say(
            call.text(
                {
                    "lines": "lines",
                    "out": out,
                    "x0": x0,
                    "x1": x1,
                    "first": first,
                    "last": last,
                    "width": str(width),
                    "y": "y",
                    "patch": self.storage.at(self.unit.patch),
                }
            )
        )

    def make(self, operand: Operand, upto: str) -> None:
        """Call the maker of a tensor for its rows up to `upto`, if they are not there already."""
        tensor = operand.tensor
        if operand.flattened:
            upto = str(operand.flattened)
        if tensor == self.unit.fetched and not self.unit.fetched_columns:
            self.made("fetch", upto)
            return
        for r, stage in enumerate(self.unit.stages):
            if stage.makes == tensor:
                self.made(f"stage{r}", upto)


def _factor(text: str) -> str:
    return f"({text})" if " " in text else text


def window_start(axis: Window, at: str) -> str:
    """Return the first line that an output line reads, which may not exist."""
    return minus(times(at, axis.stride), str(axis.before))


def clipped(axis: Window, line: str) -> str:
    """Return the one line of a window, clipped to those that exist."""
    return f"clipped({line}, {axis.size})" if axis.clips else line


def reads(axis: Window, made: Lines) -> Lines:
    """Return the existing lines that output lines read."""
    first = window_start(axis, made.first)
    end = plus(window_start(axis, minus(made.end, "1")), str(axis.span))
    if axis.before > 0:
        first = f"larger({first}, 0)"
    if (axis.outputs - 1) * axis.stride - axis.before + axis.span > axis.size:
        end = f"smaller({end}, {axis.size})"
    return Lines(first, end)


def hull(lines: list[Lines]) -> Lines:
    """Return the lines from the first of any to the last."""
    first, end = lines[0].first, lines[0].end
    for other in lines[1:]:
        first = first if other.first == first else f"smaller({first}, {other.first})"
        end = end if other.end == end else f"larger({end}, {other.end})"
    return Lines(first, end)
