"""Stages of several layers in C: a band swept column by column, inner maps in rings of columns."""

from __future__ import annotations

from onchip.microcontroller.int8.model import AveragePool, Concat, MaxPool, Mean, Pairwise
from onchip.microcontroller.project.calls import Calls, Lines, clipped, reads, window_start
from onchip.microcontroller.project.text import minus, plus, times
from onchip.microcontroller.project.units import Op, StageUnit

__all__ = ["Columns"]


class Columns(Calls):
    """A function for each layer of a stage, which makes the columns up to a given one."""

    def fetches_columns(self, stage: StageUnit) -> bool:
        fetched = self.unit.fetched
        return self.unit.fetched_columns and any(fetched in op.layer.inputs for op in stage.ops)

    def column(self, s: int, stage: StageUnit, j: int) -> None:
        """Write the making of columns by layer j of a stage, of its part of the band."""
        op, last = stage.ops[j], j == len(stage.ops) - 1
        made = f"at->columns[{j}]"
        with (
            self.maker(f"stage{s}_map{j}"),
            self.out.block(f"while ({made} < upto)"),
        ):
            out = op.layer.output
            if self.unit.reverse:
                x = minus(minus(self.right(stage, out), "1"), made)
            else:
                x = plus(made, self.left(stage, out))
            self.out.say(f"const int32_t x = {x};")
            self.columns_needed(s, stage, op)
            place = self.unit.places[op.operands[0].tensor]
            if place.kind == "columns" and not _element_by_element(op):
                self.column_from_columns(stage, op, j, last)
            else:
                with self.rows_of(self.band_of(stage, j, last)):
                    self.lines_of_row(op, "y", "x")
                    call = self.library.kernel(op, columns=False, pixels=1)
                    first = op.operands[0]
                    pixel = op.layer.output_shape[3]
                    at = minus(self.pixel(out, pixel, "y", "x", f"at->top[{j}]"), times("x", pixel))
                    self.call(op, call, at, "x", "x + 1", first.rows, "y", first.columns.size)
                    self.pooled(stage, last)
            self.out.say(f"++{made};")

    def band_of(self, stage: StageUnit, j: int, last: bool) -> Lines:
        return Lines(f"at->top[{j}]", f"at->bottom[{j}]")

    def columns_needed(self, s: int, stage: StageUnit, op: Op) -> None:
        """Write the making of the columns that a column needs of maps of the same stage."""
        makers = {other.layer.output: str(k) for k, other in enumerate(stage.ops)}
        if self.fetches_columns(stage) and self.unit.fetched is not None:
            makers[self.unit.fetched] = "_input"
        for operand in op.operands:
            maker = makers.get(operand.tensor)
            if maker is None:
                continue
            read = reads(operand.columns, Lines("x", "x + 1"))
            if self.unit.reverse:
                upto = minus(self.right(stage, operand.tensor), read.first)
            else:
                upto = minus(read.end, self.left(stage, operand.tensor))
            self.made(f"stage{s}_map{maker}", upto)

    def column_from_columns(self, stage: StageUnit, op: Op, j: int, last: bool) -> None:
        """Write a column of a layer whose window reads columns in a ring."""
        (operand,) = op.operands
        pixel, out = op.layer.output_shape[3], op.layer.output
        axis = operand.columns
        top = times(self.tops[operand.tensor], operand.pixel)
        base = minus(self.storage.at(self.unit.places[operand.tensor].address), top)
        if axis.taps > 1:
            self.window(operand.tensor, base, axis, "x")
        else:
            column = clipped(axis, window_start(axis, "x"))
            self.out.say(f"lines[0] = {minus(self.address(operand.tensor, column), top)};")
        if last:
            call = self.library.kernel(op, columns=True, pixels=1)
            with self.rows_of(self.band_of(stage, j, last)):
                at = minus(self.pixel(out, pixel, "y", "x", "0"), times("y", pixel))
                self.call(op, call, at, "y", "y + 1", axis, "x", operand.rows.size)
                self.pooled(stage, last)
            return
        call = self.library.kernel(op, columns=True, pixels=min(op.pixels, self.tallest(out, pixel)))
        at = minus(self.address(out, "x"), times(f"at->top[{j}]", pixel))
        self.call(op, call, at, f"at->top[{j}]", f"at->bottom[{j}]", axis, "x", operand.rows.size)

    def pooled(self, stage: StageUnit, last: bool) -> None:
        """Add the pixel that was just made to the sums of the stage's pool, if it has one."""
        if stage.pool is None or not last:
            return
        assert isinstance(stage.pool.layer, AveragePool | MaxPool | Mean)
        add, _, _ = self.library.sums(stage.pool.number, stage.pool.layer)
        self.out.say(f"const int8_t *const pixel[] = {{{self.address(stage.sweeps, '0')}}};")
        self.out.say(f"MARK({stage.pool.number});")
        sums = self.storage.at(stage.sums)
        self.out.say(add.text({"lines": "pixel", "x0": "0", "x1": "1", "sums": sums}))

    def tallest(self, tensor: int, pixel: int) -> int:
        """Return the most rows of a map in a ring of columns."""
        return self.unit.places[tensor].pitch // pixel

    def fetch_columns(self, s: int, stage: StageUnit) -> None:
        tensor, j = self.unit.fetched, len(stage.ops)
        assert tensor is not None
        made = f"at->columns[{j}]"
        with (
            self.maker(f"stage{s}_map_input"),
            self.out.block(f"while ({made} < upto)"),
        ):
            if self.unit.reverse:
                x = minus(minus(self.right(stage, tensor), "1"), made)
            else:
                x = plus(made, self.left(stage, tensor))
            self.out.say(f"const int32_t x = {x};")
            rows = f"at->bottom[{j}] - at->top[{j}]"
            of = f"at->top[{j}], {rows}, x, 1, {self.address(tensor, 'x')}"
            self.out.say(f"fetch({self.storage.passes(of)});")
            self.out.say(f"++{made};")


def _element_by_element(op: Op) -> bool:
    """Return whether a layer reads the same pixel of every operand."""
    return isinstance(op.layer, Pairwise | Concat) or len(op.operands) > 1
