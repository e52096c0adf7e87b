"""The C of a network by rows: a table of steps, and for each map a function that makes its next row."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field

from onchip.base.errors import ModelError
from onchip.microcontroller.int8.model import (
    AveragePool,
    Concat,
    Conv,
    FullyConnected,
    Layer,
    MaxPool,
    Mean,
    Own,
    Resize,
)
from onchip.microcontroller.int8.reference import bilinear_places, nearest_places
from onchip.microcontroller.kernel_language.names import c_comment
from onchip.microcontroller.kernels.windows import conv_shape
from onchip.microcontroller.project.calls import clipped, window_start
from onchip.microcontroller.project.library import Call, Library
from onchip.microcontroller.project.row_addresses import Tables, c_type
from onchip.microcontroller.project.row_units import MapUnit, RowsUnit
from onchip.microcontroller.project.storage import Storage
from onchip.microcontroller.project.text import Text, minus, plus, times
from onchip.microcontroller.project.units import Op
from onchip.microcontroller.project.windows import Operand

__all__ = ["RowsSource", "rows_source"]

Place = Callable[[str], str]
"""The address of a row, in C, from its number in C."""

Made = tuple[int, Layer, tuple[Operand, ...]]
"""A layer with its number and its operands."""


@dataclass(frozen=True, slots=True)
class RowsSource:
    """Functions in C, the last of which is `void NAME(void)`, and the bytes of its tables in flash."""

    text: str
    table_bytes: int
    lines: int


def rows_source(unit: RowsUnit, name: str, library: Library, storage: Storage) -> RowsSource:
    """Return the functions that run the network."""
    return _Driver(unit, name, library, storage).source()


@dataclass
class _Driver:
    unit: RowsUnit
    name: str
    library: Library
    storage: Storage
    tables: Tables = field(default_factory=Tables)
    out: Text = field(default_factory=Text)
    y: str = "y"
    """The row that the function under way makes, in C."""

    def source(self) -> RowsSource:
        functions: list[str] = []
        for k in sorted(set(self.unit.steps)):
            one = self.unit.maps[k]
            self.out = Text()
            self.function(k, one)
            layers = ", ".join(layer.name for _, layer, _ in one.layers) or one.plan.does
            functions.append(f"/* {c_comment(layers)} */\n{_with_use(str(self.out))}")
        self.out = Text()
        self.run()
        taps = [o.rows.taps for one in self.unit.maps for _, _, read in one.layers for o in read]
        most = max([2, *taps, *(len(one.sources) + 1 for one in self.unit.maps)])
        text = "\n".join([f"/* Where rows lie. */\n{self.tables.out}", *functions, str(self.out)])
        return RowsSource(text, self.tables.bytes, most)

    # -- addresses

    def row(self, k: int, row: str) -> str:
        """Return the address of a row of map k."""
        one = self.unit.maps[k]
        addresses = [self.unit.address + at for at in one.plan.addresses]
        if one.steps.steps == one.steps.rows:
            return self.tables.place(f"{self.name}_at{k}", addresses, row)
        return plus(plus("arena", str(addresses[0])), times(row, one.steps.row_bytes))

    def operand(self, k: int, operand: Operand) -> Place:
        """Return the place of column 0 of an operand's rows, in the shape in which its layer sees it."""
        one = self.unit.maps[k]
        if operand.shape[1] == one.steps.rows:
            before = str(one.first_column * operand.pixel)
            return lambda row: minus(self.row(k, row), before)
        base = plus("arena", str(self.unit.address + one.plan.addresses[0]))
        return lambda row: plus(base, times(row, operand.pitch))

    def space(self, k: int, step: str) -> str:
        """Return the address of the workspace of map k in a step."""
        places = [self.unit.address + at for at in self.unit.maps[k].plan.workspace]
        return self.tables.place(f"{self.name}_space{k}", places, step) if places else "arena"

    # -- the function of a map

    def function(self, k: int, one: MapUnit) -> None:
        alone = one.steps.steps == 1 and one.plan.does != "fetch"
        with self.storage.function(
            self.out, f"static void {self.name}_make{k}", "" if alone else "int32_t y"
        ):
            self.y = "0" if alone else "y"
            match one.plan.does:
                case "fetch":
                    first, end = one.steps.columns
                    of = f"y, 1, {first}, {end - first}, {self.row(k, 'y')}"
                    self.out.say(f"fetch({self.storage.passes(of)});")
                case "gather":
                    self.gather(k, one)
                case "sums":
                    self.sums(k, one)
                case "end":
                    self.end(k, one)
                case "whole":
                    self.whole(k, one)
                case _:
                    self.make(k, one, self.row(k, self.y), self.y)

    def gather(self, k: int, one: MapUnit) -> None:
        [below] = one.plan.reads
        rows, size = one.steps.rows, one.steps.row_bytes
        with self.out.block(f"for (int32_t y = 0; y < {rows}; ++y)"):
            self.out.say(
                f"memcpy({plus(self.row(k, '0'), times('y', size))}, {self.row(below, 'y')}, {size});"
            )

    def whole(self, k: int, one: MapUnit) -> None:
        rows = one.layer.output_shape[1]
        size = one.steps.bytes // rows
        base = plus("arena", str(self.unit.address + one.plan.addresses[0]))
        if rows == 1:
            self.make(k, one, base, "0")
            return
        self.y = "y"
        with self.out.block(f"for (int32_t y = 0; y < {rows}; ++y)"):
            self.make(k, one, plus(base, times("y", size)), "0")

    def make(self, k: int, one: MapUnit, out: str, step: str) -> None:
        """Write the making of a row, and its changes."""
        (number, layer, read), *after = one.layers
        columns = one.runs[0].first, one.runs[-1].end
        self.out.say(f"int8_t *const out = {minus(out, str(columns[0] * layer.output_shape[3]))};")
        for run in one.runs:
            reads = [(self.operand(below, o), o) for below, o in zip(run.reads, read, strict=True)]
            with self.out.block("") if len(one.runs) > 1 else nullcontext():
                self.lines(layer, reads)
                made = run.first, run.end
                self.kernel(number, layer, read, one.workspace, self.space(k, step), made)
        self.changes(after, one, self.space(k, step), columns)

    def changes(self, after: list[Made], one: MapUnit, space: str, columns: tuple[int, int]) -> None:
        """Write the element-wise layers that change the row at `out`."""
        for number, layer, read in after:
            self.out.say("lines[0] = out;")
            self.kernel(number, layer, read, one.workspace, space, columns)

    def lines(self, layer: Layer, reads: list[tuple[Place, Operand]]) -> None:
        """Set `lines` to the rows that a row of a layer reads."""
        y = self.y
        if isinstance(layer, Resize):
            ((place, operand),) = reads
            sizes = operand.shape[1], layer.output_shape[1]
            places = (
                [nearest_places(layer, *sizes)]
                if layer.mode == "nearest"
                else list(bilinear_places(layer, *sizes)[:2])
            )
            listed = ", ".join(
                "{" + ", ".join(str(int(row)) for row in pair) + "}" for pair in zip(*places, strict=True)
            )
            kind, size = c_type(operand.shape[1])
            set_ = [f"lines[{i}] = {place(f'places[{y}][{i}]')};" for i in range(len(places))]
            if any("places" in line for line in set_):  # rows of one address need none
                self.out.say(f"static const {kind} places[][{len(places)}] = {{{listed}}};")
                self.tables.bytes += size * len(places) * sizes[1]
            for line in set_:
                self.out.say(line)
            return
        if isinstance(layer, Concat) and layer.axis == 1:
            found, before = "", sum(operand.shape[1] for _, operand in reads)
            for place, operand in reversed(reads):
                before -= operand.shape[1]
                at = place(minus(y, str(before)))
                found = f"{y} < {before + operand.shape[1]} ? {at} : {found}" if found else at
            self.out.say(f"lines[0] = {found};")
            return
        for i, (place, operand) in enumerate(reads):
            rows = operand.rows
            if isinstance(layer, Own):
                self.out.say(f"lines[{i}] = {place('0')};")
            elif rows.taps > 1:
                start = window_start(rows, y)
                with self.out.block(f"for (int32_t i = 0; i < {rows.taps}; ++i)"):
                    row = plus(start, times("i", rows.dilation))
                    row = f"clipped({row}, {rows.size})" if rows.clips else row
                    self.out.say(f"lines[i] = {place(row)};")
            else:
                self.out.say(f"lines[{i}] = {place(clipped(rows, window_start(rows, y)))};")

    def kernel(
        self,
        number: int,
        layer: Layer,
        reads: tuple[Operand, ...],
        workspace: int,
        space: str,
        made: tuple[int, int],
    ) -> None:
        """Write the call of a layer's kernel, which makes columns of a row at `out` from `lines`."""
        pixels = _pixels(layer, workspace, layer.name in self.library.shared)
        op = Op(number, layer, reads, False, False, pixels, 0, workspace)
        call = self.library.kernel(op, columns=False, pixels=pixels)
        columns = layer.output_shape[2]
        if call.operand:
            at = plus(call.operand, times(self.y, columns * layer.output_shape[3]))
            self.out.say(f"lines[{len(reads)}] = {at};")
        self.call(number, call, reads[0], made, space)

    def call(self, number: int, call: Call, first: Operand, made: tuple[int, int], space: str) -> None:
        start = window_start(first.rows, self.y)
        low, high = "0", str(first.rows.taps)
        if first.rows.clips:
            low = f"first_inside({start}, {first.rows.dilation})"
            high = f"last_inside({start}, {first.rows.dilation}, {first.rows.taps}, {first.rows.size})"
        self.out.say(f"MARK({number});")
        arguments = {
            "lines": "lines", "out": "out", "x0": str(made[0]), "x1": str(made[1]), "first": low,
            "last": high, "width": str(first.columns.size), "y": self.y, "patch": space,
        }  # fmt: skip
        self.out.say(call.text(arguments))

    # -- pools that take a row at a time

    def sums(self, k: int, one: MapUnit) -> None:
        ((number, layer, (operand,)),) = one.layers
        assert isinstance(layer, AveragePool | MaxPool | Mean)
        (below,) = one.sources
        add, _, fill = self.library.sums(number, layer)
        size, many = one.steps.bytes, one.steps.steps > 1
        self.out.say(f"int8_t *const sums = {self.row(k, 'y' if many else '0')};")
        if many:
            with self.out.block("if (y == 0)"):
                self.out.say(f"memset(sums, {fill}, {size});")
            with self.out.block("else"):
                self.out.say(f"memmove(sums, {self.row(k, 'y - 1')}, {size});")
        else:
            self.out.say(f"memset(sums, {fill}, {size});")
        self.out.say(f"lines[0] = {self.operand(below, operand)('y' if many else '0')};")
        self.out.say(f"MARK({number});")
        made, pixel = layer.output_shape[2], 4 * layer.output_shape[3]
        if made == 1:
            self.out.say(add.text({"lines": "lines", "x0": "0", "x1": str(operand.shape[2]), "sums": "sums"}))
            return
        with self.out.block(f"for (int32_t x = 0; x < {made}; ++x)"):  # sums of each column
            at = plus("sums", times("x", pixel))
            self.out.say(add.text({"lines": "lines", "x0": "x", "x1": "x + 1", "sums": at}))

    def end(self, k: int, one: MapUnit) -> None:
        (number, layer, _), *after = one.layers
        assert isinstance(layer, AveragePool | MaxPool | Mean)
        [below] = one.plan.reads
        _, finish, _ = self.library.sums(number, layer)
        self.out.say(f"int8_t *const out = {self.row(k, '0')};")
        self.out.say(f"MARK({number});")
        sums = self.row(below, str(self.unit.maps[below].steps.steps - 1))
        made, channels = layer.output_shape[2:]
        if made == 1:
            self.out.say(finish.text({"sums": sums, "out": "out"}))
        else:
            with self.out.block(f"for (int32_t x = 0; x < {made}; ++x)"):
                at = {"sums": plus(sums, times("x", 4 * channels)), "out": plus("out", times("x", channels))}
                self.out.say(finish.text(at))
        self.changes(after, one, self.space(k, "0"), (0, made))

    # -- all steps

    def run(self) -> None:
        """Write the loop over the steps."""
        kind, size = c_type(max(self.unit.steps))
        steps = ", ".join(map(str, self.unit.steps))
        self.tables.bytes += size * len(self.unit.steps)
        self.out.say("/* The maps whose next row is made, step by step. */")
        self.out.say(f"static const {kind} {self.name}_steps[] = {{{steps}}};")
        made = sorted(set(self.unit.steps))
        counted = {k: n for n, k in enumerate(k for k in made if self.counts(k))}
        with self.storage.function(self.out, f"static void {self.name}"):
            if counted:
                most, _ = c_type(max(self.unit.maps[k].steps.steps for k in counted))
                self.out.say(f"{most} next[{len(counted)}] = {{0}};")
            with (
                self.out.block(f"for (int32_t i = 0; i < {len(self.unit.steps)}; ++i)"),
                self.out.block(f"switch ({self.name}_steps[i])"),
            ):
                for k in made:
                    self.out.say(f"case {k}:")
                    argument = f"next[{counted[k]}]++" if k in counted else ""
                    self.out.say(f"    {self.name}_make{k}({self.storage.passes(argument)});")
                    self.out.say("    break;")
                self.out.say("default:")
                self.out.say("    break;")

    def counts(self, k: int) -> bool:
        """Return whether the function of map k takes the number of its row."""
        one = self.unit.maps[k]
        return one.steps.steps > 1 or one.plan.does == "fetch"


def _with_use(function: str) -> str:
    """Return a function that uses its row's number: rows of one address and one window do not."""
    if "int32_t y)" in function and len(re.findall(r"\by\b", function)) == 1:
        return function.replace("{\n", "{\n    (void)y;\n", 1)
    return function


def _pixels(layer: Layer, workspace: int, shared: bool) -> int:
    """Return the most pixels that a kernel makes at a time with so many bytes of workspace."""
    if shared or not isinstance(layer, Conv | FullyConnected):
        return 0
    pixels = conv_shape(layer).pixels
    while pixels > 1 and conv_shape(layer, pixels=pixels).patch_bytes > workspace:
        pixels -= 1
    if conv_shape(layer, pixels=pixels).patch_bytes > workspace:
        raise ModelError(f"needs more workspace than the plan's {workspace} bytes", item=layer.name)
    return pixels
