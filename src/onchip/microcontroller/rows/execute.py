"""A plan of rows run in one array of exactly its bytes, element by element where rows share bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from onchip.microcontroller.int8.model import Int8
from onchip.microcontroller.rows.addresses import Placed
from onchip.microcontroller.rows.compute import end_of, row_of, sums_of
from onchip.microcontroller.rows.makers import RowModel, Source

__all__ = ["execute"]


def execute(rows: RowModel, placed: Placed, inputs: Sequence[Int8], *, seed: int = 0) -> tuple[Int8, ...]:
    """Return the network's outputs as a plan of rows makes them in one array of `placed.bytes`.

    The array begins with noise, and bytes of rows that nobody reads any more become noise again.
    """
    machine = _Machine(rows, placed, inputs, seed)
    for time in range(len(placed.schedule)):
        machine.step(time)
    return machine.outputs()


class _Machine:
    def __init__(self, rows: RowModel, placed: Placed, inputs: Sequence[Int8], seed: int) -> None:
        self.rows, self.placed = rows, placed
        self.random = np.random.default_rng(seed)
        self.memory: NDArray[np.int8] = self.random.integers(-128, 128, placed.bytes).astype(np.int8)
        self.made = [0] * len(rows.graph.operators)
        self.at = {
            (life.operator, life.row): a for life, a in zip(placed.lives, placed.addresses, strict=True)
        }
        self.dying: dict[int, list[int]] = {}
        for n, life in enumerate(placed.lives):
            self.dying.setdefault(max(life.read, life.made), []).append(n)
        self.images = {
            t: x.reshape(rows.model.tensors[t].shape[1:])
            for t, x in zip(rows.model.inputs, inputs, strict=True)
        }
        for i, op in enumerate(rows.graph.operators):
            if op.held:
                image = self.images[rows.makers[i].tensor]
                for row in range(op.steps):
                    self.write(i, row, image[row].reshape(-1))
                self.made[i] = op.steps

    def step(self, time: int) -> None:
        """Make one row, and spoil the rows that it read last."""
        i = self.placed.schedule[time]
        row, maker = self.made[i], self.rows.makers[i]
        size = self.rows.graph.operators[i].bytes
        here = self.at[i, row]
        gone = [n for n in self.dying.get(time, ()) if self.placed.lives[n].made < time]
        shares = any(
            self.placed.addresses[n] < here + size
            and here < self.placed.addresses[n] + self.placed.lives[n].bytes
            for n in gone
        )
        if not shares:
            self.write(i, row, self.compute(i, row))
        else:
            wide = 4 if maker.phase == "sum" else 1
            for first in range(0, size, wide):  # each element from what the bytes are by then
                self.memory[here + first : here + first + wide] = self.compute(i, row)[first : first + wide]
        self.made[i] += 1
        kept = self.memory[here : here + size].copy()
        for n in gone:
            self.spoil(n)
        self.memory[here : here + size] = kept
        for n in self.dying.get(time, ()):
            if self.placed.lives[n].made == time:
                self.spoil(n)

    def spoil(self, n: int) -> None:
        life, a = self.placed.lives[n], self.placed.addresses[n]
        if not self.rows.graph.operators[life.operator].kept:
            self.memory[a : a + life.bytes] = self.random.integers(-128, 128, life.bytes)

    def write(self, i: int, row: int, values: NDArray[np.int8]) -> None:
        a = self.at[i, row]
        self.memory[a : a + values.size] = values

    def row(self, i: int, row: int) -> NDArray[np.int8]:
        a = self.at[i, row]
        found: NDArray[np.int8] = self.memory[a : a + self.rows.graph.operators[i].bytes]
        return found

    def compute(self, i: int, row: int) -> NDArray[np.int8]:
        """Return the bytes of a row from the bytes that are in memory now."""
        maker = self.rows.makers[i]
        if maker.phase == "input":
            first, end = maker.columns or (0, self.images[maker.tensor].shape[1])
            image: NDArray[np.int8] = self.images[maker.tensor][row, first:end].reshape(-1)
            return image
        if maker.phase == "sum":
            source = maker.sources[0]
            before = None if row == 0 else self.row(i, row - 1).copy().view(np.int32)
            sums: NDArray[np.int32] = sums_of(maker, self.seen(source, row), before)
            return sums.view(np.int8)
        if maker.phase == "gather":
            return self.seen(maker.sources[0], row).reshape(-1)
        if maker.phase == "end":
            below = self.rows.graph.operators[i].operands[0].maker
            found = self.row(below, self.rows.graph.operators[below].steps - 1).copy().view(np.int32)
            shape = maker.layers[0].input_shapes[0]
            return end_of(maker, found, shape[1] * shape[2]).reshape(-1)
        made = row_of(maker, row, [self.seen(source, row) for source in maker.sources])
        first, end = maker.columns or (0, made.shape[2])
        return made[:, :, first:end].reshape(-1)

    def seen(self, source: Source, step: int) -> Int8:
        """Return the rows of a map that a step reads, in the shape in which its layer sees them."""
        first, last = source.windows[step]
        columns = source.shape[2]
        made = source.map
        if source.cuts:
            return self.pieced(source, first, last)
        if made.shape == source.shape and not made.whole:
            parts = [
                np.stack([self.row(op, r).reshape(columns, -1) for r in range(first, last)])
                if first < last
                else np.zeros((0, columns, self.rows.graph.operators[op].bytes // columns), np.int8)
                for op in made.parts
            ]
            return np.concatenate(parts, axis=2)[None]
        assert len(made.parts) == 1
        [op] = made.parts
        whole = np.concatenate([self.row(op, r) for r in range(self.rows.graph.operators[op].steps)])
        part: Int8 = whole.reshape(source.shape)[:, first:last]
        return part

    def pieced(self, source: Source, first: int, last: int) -> Int8:
        """Return rows of which some columns are there, and the others noise."""
        columns, parts = source.shape[2], []
        for cuts in source.cuts:
            pixel = self.rows.graph.operators[cuts[0].operator].bytes // (cuts[0].end - cuts[0].first)
            part = self.random.integers(-128, 128, (last - first, columns, pixel)).astype(np.int8)
            for cut in reversed(cuts):  # the first of those that have a column is read
                for y in range(first, last):
                    row = self.row(cut.operator, y).reshape(-1, pixel)
                    part[y - first, cut.first : cut.end] = row
            parts.append(part)
        return np.concatenate(parts, axis=2)[None]

    def outputs(self) -> tuple[Int8, ...]:
        found = []
        for t, parts in zip(self.rows.model.outputs, self.rows.outputs, strict=True):
            flat = [self.row(op, r) for op in parts for r in range(self.rows.graph.operators[op].steps)]
            found.append(np.concatenate(flat).reshape(self.rows.model.tensors[t].shape))
        return tuple(found)
