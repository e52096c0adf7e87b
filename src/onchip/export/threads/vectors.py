"""The C of an operator as a unit with an array makes it: blocks of 8 rows of as many floats as a vector has.

The law of nests takes an array to make rows x lanes products a cycle (docs/nest-times.md). Here the lanes are
the last side of the output, the rows another axis along which the operand that is loaded for all lanes does
not vary. An operator of other nodes keeps the C of `onchip.export.loops`, which is right, and slower.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onchip.export.loops.operators import OperatorText
from onchip.export.loops.places import PlaceText
from onchip.export.loops.steps import Compute
from onchip.export.loops.text import bounds, literal
from onchip.export.threads.blocks import Products
from onchip.export.threads.chain import BINARY, ROWS, UNARY, Applied
from onchip.export.threads.operands import F32, NoBlocks, address, wraps
from onchip.run.tiled.nests.forms import Dim

__all__ = ["VectorText"]


class VectorText(OperatorText):
    """The C of an operator in blocks, where its nodes allow it."""

    array: tuple[tuple[int, ...], ...] | None = None
    """The axes on the rows and on the lanes, as a plan states them, where they did."""
    panel = False
    """True if it lays one of its factors out in a panel."""

    def in_nest(self, step: Compute, places: Mapping[str, PlaceText]) -> list[str]:
        """Write the operator's function; return the statements that call it."""
        try:
            blocks = Function(self, step, places)
            written = blocks.call()
        except NoBlocks:
            return super().in_nest(step, places)
        rows, lanes = blocks.shape.rows, blocks.shape.lanes
        self.panel = blocks.packable
        if rows < 0:  # rows that share nothing come one by one, each in its part of a block's time
            axes = blocks.cut.axes
            others = (a for a in dict.fromkeys(blocks.cut.writes.axes) if a != lanes and axes[a] > 1)
            rows = max(others, key=lambda axis: axes[axis], default=-1)
        self.array = (() if rows < 0 else (rows,)), (lanes,)
        return written

    def call(self, step: Compute, box: Sequence[Any], total: str, dim: Dim) -> list[str]:
        """Return the statements that make a box, as one step."""
        lines = super().call(step, box, total, dim)
        if not lines[-1].endswith("}"):
            return ["step_begin();", *lines, "step_end();"]
        return [lines[0], "step_begin();", *lines[1:-1], "step_end();", lines[-1]]


class Function(Products):
    """The function of one operator."""

    def __init__(self, text: OperatorText, step: Compute, places: Mapping[str, PlaceText]) -> None:
        super().__init__(text, step, places)
        self.packable = self.chain.product is not None and self.packs()

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
        inner = [f"ix v{axis}" for axis in outs] + [f"ix lo{axis}, ix hi{axis}" for axis in sums]
        given = [f"v{axis}" for axis in outs] + [f"lo{axis}, hi{axis}" for axis in sums]
        lines = []
        for packed in (False, True) if self.packable else (False,):
            for spread in (False, True) if self.even else (True,):
                self.packed, self.spread = packed, spread
                name = (
                    self.prefix + ("_few" if self.spread else "_block") + ("_of_panel" if self.packed else "")
                )
                lines += [
                    f"static inline __attribute__((always_inline)) void {name}(",
                    f"    {', '.join(inner)}, int first, int last, ix begin, ix end, ix wide)",
                    "{",
                    "const struct lanes all = lanes_of(0, wide);",
                    "(void)first; (void)last; (void)begin; (void)end; (void)all;",
                ]
                if rows >= 0 and self.spread:
                    lines += [
                        f"const ix row{r} = v{rows} + min_ix({r}, end - 1);" for r in range(self.height)
                    ]
                lines += self.product() if self.chain.product is not None else []
                lines += [*self.finish(), "}"]
        lines += [f"static void {self.prefix}_run({said}, int first, int last)", "{"]
        for axis in outer:
            lines.append(f"for (ix v{axis} = lo{axis}; v{axis} < hi{axis}; ++v{axis}) {{")
        lanes_loop = f"for (ix v{lanes} = lo{lanes}; v{lanes} < hi{lanes}; v{lanes} += LANES) {{"
        wide = f"const ix wide = min_ix(LANES, hi{lanes} - v{lanes});"
        lines += [lanes_loop, wide]
        if self.packable:
            lines += [f"if (hi{rows} - lo{rows} >= {self.least_rows}) {{", *self.pack()]
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
            # Rows that fill no block are made in one that begins before them; only they are written.
            of_block = [x if x != f"v{rows}" else "row" for x in given]
            block = f"{self.prefix}_block{suffix}({', '.join(of_block)}, first, last"
            lines = [
                f"if (hi{rows} - lo{rows} >= {self.height}) {{",
                f"for (ix v{rows} = lo{rows}; v{rows} < hi{rows}; v{rows} += {self.height}) {{",
                f"const ix row = min_ix(v{rows}, hi{rows} - {self.height}), begin = v{rows} - row;",
                f"if (begin == 0 && wide == LANES) {block}, 0, {self.height}, LANES);",
                f"else {block}, begin, {self.height}, wide);",
                "}", "} else",
            ]  # fmt: skip
        lines.append(f"for (ix v{rows} = lo{rows}; v{rows} < hi{rows}; v{rows} += {self.height})")
        return [*lines, f"{few}, min_ix({self.height}, hi{rows} - v{rows}), wide);"]

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
                body.append(f"const vec c = {last};")
                names[self.chain.total] = "c"
            for n, one in enumerate(before):
                body.append(f"const vec c{n} = {self.applied(one, names, var)};")
                names[one.result] = f"c{n}"
            wanted = before[-1].result if before else self.chain.total or self.first
            value = names[wanted] if wanted in names else self.element(wanted, var)
            body.append(self.lanes_to(self.out, self.put_at(self.out, r), value))
            lines += [guard, *body, "}"]
        return lines

    def stages(self) -> tuple[tuple[Applied, ...], Applied | None]:
        """Return the nodes up to one that needs a whole row, and that one, which has to be the last."""
        applied = self.chain.applied
        at = next((n for n, one in enumerate(applied) if one.node.op_type in ROWS), None)
        if at is None:
            if (
                applied[-1].result if applied else self.chain.total or self.chain.wanted
            ) != self.chain.wanted:
                raise NoBlocks
            return applied, None
        row = applied[at]
        whole = self.shape.lanes not in {axis for axis, _ in enumerate(self.cut.axes)} - self.cut.together
        value = applied[at - 1].result if at else self.chain.total or row.operands[0]
        if at != len(applied) - 1 or not whole or row.operands[0] != value or not self.last_axis(row.node):
            raise NoBlocks
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
        if any(wraps(place.place) for place in (self.out, *(place for _, place in self.reads.values()))):
            raise NoBlocks
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
                    raise NoBlocks
                arguments.append("NULL" if name is None else self.at(str(name), var))
            lines.append(f"norm_row({', '.join(arguments)});")
        return lines + ["}"] * len(outer)

    def element(self, name: str, var: Mapping[int, str]) -> str:
        """Return the C of an operand's vector at the place of the output's."""
        if name not in self.reads:
            raise NoBlocks
        at = self.at(name, var)
        if self.row and not self.spread and self.by_row(self.use(name).axes):
            at += f" + {self.row} * {self.apart(self.use(name).axes, self.place(name))}"
        return self.load(name, at, "all")

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
