"""The C that runs a unit of a plan: the order in which rows are made, and the kernels' addresses.

A group's driver is the rule of docs/plan-program.md in C: a function for each stage that makes the rows up to
a given one, after calling the makers of the rows that it needs. Stages of several layers follow the same rule
along columns.
"""

from __future__ import annotations

from onchip.microcontroller.int8.model import AveragePool, MaxPool, Mean
from onchip.microcontroller.kernel_language.names import c_comment
from onchip.microcontroller.project.calls import Lines, hull, reads
from onchip.microcontroller.project.columns import Columns
from onchip.microcontroller.project.library import Library
from onchip.microcontroller.project.storage import Storage
from onchip.microcontroller.project.text import Text, minus
from onchip.microcontroller.project.units import StageUnit, Unit
from onchip.microcontroller.project.windows import Operand

__all__ = ["unit_source"]


def unit_source(unit: Unit, name: str, library: Library, storage: Storage) -> str:
    """Return the functions that run the unit; the last of them has the unit's name."""
    return _Driver(unit, name, library, storage).source()


class _Driver(Columns):
    def source(self) -> str:
        unit = self.unit
        layers = ", ".join(op.layer.name for stage in unit.stages for op in stage.ops)
        heading = f"/* {c_comment(layers)} */"
        if unit.simple:
            self.simple()
            return f"{heading}\n{self.out}"
        if unit.fetched is not None and not unit.fetched_columns:
            self.fetch_rows()
        for s in range(len(unit.stages)):
            self.stage(s)
        self.run()
        return f"{heading}\n{self.state()}\n{self.out}"

    # -- a unit as a whole

    def simple(self) -> None:
        """Write one layer, row after row."""
        (op,) = self.unit.stages[0].ops
        _, rows, columns, _ = op.layer.output_shape
        with self.storage.function(self.out, f"static void {self.name}"), self.rows_of(Lines("0", str(rows))):
            self.row(op, "y", "0", str(columns), op.pixels)

    def state(self) -> str:
        """Return the state of a group while it runs, as C."""
        unit, text = self.unit, Text()
        if self.edges:
            rows = ", ".join(
                "{" + ", ".join(map(str, strip)) + "}" for strip in zip(*self.edges, strict=True)
            )
            text.say(f"static const int16_t {self.name}_edges[][{len(self.edges)}] = {{{rows}}};")
        with text.block(f"struct {self.name}", "};"):
            text.say(f"int32_t made[{len(unit.stages)}]; /* rows of each stage */")
            if unit.fetched is not None and not unit.fetched_columns:
                text.say("int32_t fetched; /* rows of the input */")
            widest = max((len(stage.ops) for stage in unit.stages if stage.by_columns), default=0)
            if widest:
                count = widest + int(unit.fetched_columns)
                text.say("/* of the stage under way: columns made of each map, and its rows [top, bottom) */")
                text.say(f"int32_t columns[{count}], top[{count}], bottom[{count}];")
            if self.edges:
                text.say("const int16_t *edges; /* of the strip under way */")
        return str(text)

    def run(self) -> None:
        last = len(self.unit.stages) - 1
        final = self.unit.stages[-1]
        height = (final.pool or final.ops[-1]).layer.output_shape[1]
        strips = len(self.unit.origins)
        with self.storage.function(self.out, f"static void {self.name}"):
            if strips == 1:
                self.begun()
                self.out.say(f"{self.name}_stage{last}({self.storage.passes(f'&at, {height}')});")
                return
            with self.out.block(f"for (int32_t strip = 0; strip < {strips}; ++strip)"):
                self.begun()
                if self.edges:
                    self.out.say(f"at.edges = {self.name}_edges[strip];")
                self.out.say(f"{self.name}_stage{last}({self.storage.passes(f'&at, {height}')});")

    def begun(self) -> None:
        """Write the state of a group before its first row; C and C++ agree on no shorter way."""
        self.out.say(f"struct {self.name} at;")
        self.out.say("memset(&at, 0, sizeof at);")

    # -- stages

    def stage(self, s: int) -> None:
        stage = self.unit.stages[s]
        if stage.adds:
            self.adding_stage(s, stage)
            return
        if stage.by_columns:
            self.tops = {}
            for j, op in enumerate(stage.ops):
                self.tops[op.layer.output] = f"at->top[{j}]"
            if self.unit.fetched_columns and self.unit.fetched is not None:
                self.tops[self.unit.fetched] = f"at->top[{len(stage.ops)}]"
            if len(stage.ops) > 0 and self.fetches_columns(stage):
                self.fetch_columns(s, stage)
            for j in range(len(stage.ops)):
                self.column(s, stage, j)
        if stage.pool is not None:
            self.pooling_stage(s, stage)
            return
        with (
            self.maker(f"stage{s}"),
            self.out.block(f"while (at->made[{s}] < upto)"),
        ):
            self.band(s, stage, f"at->made[{s}]")

    def band(self, s: int, stage: StageUnit, made: str) -> None:
        """Write a stage's next band; `made` counts the rows before it."""
        height = stage.ops[-1].layer.output_shape[1]
        if stage.rows == 1:
            row = minus(str(height - 1), made) if self.unit.reverse else made
            self.out.say(f"const int32_t y = {row};")
            band, end = Lines("y", "y + 1"), f"{made} + 1"
        else:
            end = "end"
            self.out.say(f"const int32_t end = smaller({made} + {stage.rows}, {height});")
            first, last = (f"{height} - end", f"{height} - {made}") if self.unit.reverse else (made, "end")
            self.out.say(f"const int32_t top = {first}, bottom = {last};")
            band = Lines("top", "bottom")
        self.needs(stage, band)
        if stage.by_columns:
            j = len(stage.ops) - 1
            count = minus(self.right(stage, stage.sweeps), self.left(stage, stage.sweeps))
            self.made(f"stage{s}_map{j}", count)
        else:
            (op,) = stage.ops
            left, right = self.left(stage, stage.makes), self.right(stage, stage.makes)
            if stage.rows == 1:
                self.row(op, "y", left, right, op.pixels)
            else:
                with self.rows_of(band):
                    self.row(op, "y", left, right, op.pixels)
        self.out.say(f"++{made};" if stage.rows == 1 else f"{made} = {end};")

    def pooling_stage(self, s: int, stage: StageUnit) -> None:
        """Write layers whose map is pooled as they make it, pixel by pixel, and is never stored."""
        assert stage.pool is not None
        layer = stage.pool.layer
        assert isinstance(layer, AveragePool | MaxPool | Mean)
        _, finish, fill = self.library.sums(stage.pool.number, layer)
        channels = layer.output_shape[3]
        sums = self.storage.at(stage.sums)
        with (
            self.maker(f"stage{s}"),
            self.out.block(f"if (at->made[{s}] < upto)"),
        ):
            self.out.say(f"memset({sums}, {fill}, {4 * channels});")
            self.out.say("int32_t made = 0;")
            with self.out.block(f"while (made < {stage.ops[-1].layer.output_shape[1]})"):
                self.band(s, stage, "made")
            self.out.say(f"MARK({stage.pool.number});")
            self.out.say(finish.text({"sums": sums, "out": self.pixel_0(layer.output, channels, "0")}))
            self.out.say(f"at->made[{s}] = 1;")

    def adding_stage(self, s: int, stage: StageUnit) -> None:
        """Write a pool over a whole map, which adds up every row as it is made."""
        (op,) = stage.ops
        (operand,) = op.operands
        assert isinstance(op.layer, AveragePool | MaxPool | Mean)
        add, finish, fill = self.library.sums(op.number, op.layer)
        channels = op.layer.output_shape[3]
        sums = self.storage.at(stage.sums)
        with (
            self.maker(f"stage{s}"),
            self.out.block(f"if (at->made[{s}] < upto)"),
        ):
            self.out.say(f"memset({sums}, {fill}, {4 * channels});")
            with self.out.block(f"for (int32_t row = 0; row < {operand.rows.size}; ++row)"):
                y = minus(str(operand.rows.size - 1), "row") if self.unit.reverse else "row"
                self.make(operand, "row + 1")
                self.out.say(f"lines[0] = {self.pixel_0(operand.tensor, operand.pixel, y)};")
                self.out.say(f"MARK({op.number});")
                self.out.say(
                    add.text({"lines": "lines", "x0": "0", "x1": str(operand.shape[2]), "sums": sums})
                )
            out = self.pixel_0(op.layer.output, channels, "0")
            self.out.say(f"MARK({op.number});")
            self.out.say(finish.text({"sums": sums, "out": out}))
            self.out.say(f"at->made[{s}] = 1;")

    def needs(self, stage: StageUnit, band: Lines) -> None:
        """Write the making of a band's needs; of a stage by columns, also of the rows of its inner maps."""
        inner = {op.layer.output: j for j, op in enumerate(stage.ops)}
        if self.fetches_columns(stage) and self.unit.fetched is not None:
            inner[self.unit.fetched] = len(stage.ops)
        asked: dict[int, list[Lines]] = {stage.sweeps: [band]}
        order = [op.layer.output for op in reversed(stage.ops)]
        for op in reversed(stage.ops):
            mine = self.named(asked[op.layer.output], inner[op.layer.output], stage)
            asked[op.layer.output] = [mine]
            for operand in op.operands:
                asked.setdefault(operand.tensor, []).append(reads(operand.rows, mine))
        fetched = self.unit.fetched
        if fetched is not None and fetched in inner:
            asked[fetched] = [self.named(asked[fetched], inner[fetched], stage)]
            order.append(fetched)
        outer: dict[int, Operand] = {}
        for op in stage.ops:
            for operand in op.operands:
                if operand.tensor not in inner:
                    outer.setdefault(operand.tensor, operand)
        for tensor, operand in outer.items():
            mine = hull(asked[tensor])
            upto = minus(str(operand.rows.size), mine.first) if self.unit.reverse else mine.end
            self.make(operand, upto)
        # Only now: other stages use the same places while they make their rows.
        for tensor in order if stage.by_columns else ():
            j, (mine,) = inner[tensor], asked[tensor]
            self.out.say(f"at->columns[{j}] = 0;")
            self.out.say(f"at->top[{j}] = {mine.first};")
            self.out.say(f"at->bottom[{j}] = {mine.end};")

    def named(self, lines: list[Lines], j: int, stage: StageUnit) -> Lines:
        """Return the rows of a stage's map j in the band; sums get names."""
        mine = hull(lines)
        if not stage.by_columns or j == len(stage.ops) - 1:
            return mine
        self.out.say(f"const int32_t top{j} = {mine.first}, bottom{j} = {mine.end};")
        return Lines(f"top{j}", f"bottom{j}")

    # -- the input from the user

    def fetch_rows(self) -> None:
        tensor = self.unit.fetched
        assert tensor is not None
        operand = next(
            o for stage in self.unit.stages for op in stage.ops for o in op.operands if o.tensor == tensor
        )
        columns = self.edge(
            [
                max(stage.spans[i].get(tensor, (0, 0))[1] for stage in self.unit.stages)
                - origin.get(tensor, 0)
                for i, origin in enumerate(self.unit.origins)
            ]
        )
        with (
            self.maker("fetch"),
            self.out.block("while (at->fetched < upto)"),
        ):
            y = minus(str(operand.rows.size - 1), "at->fetched") if self.unit.reverse else "at->fetched"
            self.out.say(f"const int32_t y = {y};")
            of = f"y, 1, {self.origin(tensor)}, {columns}, {self.address(tensor, 'y')}"
            self.out.say(f"fetch({self.storage.passes(of)});")
            self.out.say("++at->fetched;")
