"""A tiled plan as a C program of two threads: one serves the channel to DRAM, one runs the steps.

The channel's thread goes through a table of transfers in the order of the law of nests; the other one through
the plan's loops, without their copies. Each counts what it has done, and waits, spinning, until the other one
has done what the law says: `onchip.export.threads.order`. The tensors lie in one array that stands for DRAM,
out of every cache when a run begins; the scratchpad is one array of the plan's bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from onchip.base.errors import UsageError
from onchip.export.loops.book import Book
from onchip.export.loops.c_program import Made, Writer
from onchip.export.loops.lower import Lowered, book_of
from onchip.export.loops.nest import NestSteps
from onchip.export.loops.operators import OperatorText
from onchip.export.loops.steps import Array, Compute, Copy, Place, Program, RunWhole, Step, Transfer
from onchip.export.threads.blocks import MOST_PANEL
from onchip.export.threads.frame import CHANNEL, HEAD, MAIN, TOOLS
from onchip.export.threads.lanes import VECTORS
from onchip.export.threads.operands import bias_of
from onchip.export.threads.order import Moved, Order, order_of
from onchip.export.threads.vectors import VectorText
from onchip.plans import Plan
from onchip.readers.source import Source
from onchip.run.tiled.nests.levels import Home

__all__ = ["MadeThreads", "threads_of", "write"]


def write(plan: Plan, model: str | Path | None = None) -> str:
    """Return the program's text."""
    return threads_of(plan, model).source


@dataclass(frozen=True)
class MadeThreads(Made):
    """A program of two threads, the order of its steps and transfers, and for the operators that are made in
    blocks the axes that lie on rows and on lanes, as a plan states them.
    """

    order: Order
    arrays: dict[str, tuple[tuple[int, ...], ...]]


def threads_of(plan: Plan, model: Source | str | Path | None = None, *, seed: int = 0) -> MadeThreads:
    """Return the program of a legal plan whose chip states the rates of tiles, with one channel.

    Weights that the model lacks are drawn from `seed`. Raises `UsageError` naming what has no such program,
    `InputError` for another model than the plan's.
    """
    order = order_of(plan)  # groups in tiles, which run as nests that the plan does not time, have none
    book = book_of(plan, str(model) if isinstance(model, Path) else model, seed)
    lowered = Lowered(book)
    program = lowered.program()
    for number, nest in enumerate(lowered.nests):
        _give_slots(
            book, nest, {nest.home[use]: some for (n, use), some in order.slots.items() if n == number}
        )
    table = _Table(book, lowered, order)
    rows = [row for number, moved in enumerate(order.transfers) for row in table.rows(number, moved)]
    writer = _Threads(book, replace(program, places=book.places), order, rows)
    made = writer.made()
    arrays = {
        one.op.name: one.array
        for one in writer.operators
        if isinstance(one, VectorText) and one.array is not None
    }
    return MadeThreads(made.source, made.constants, made.inputs, made.outputs, order, arrays)


def _give_slots(book: Book, nest: NestSteps, turns: Mapping[Home, tuple[int, ...]]) -> None:
    """Let the places of a nest have all of their slots; rings have room for what is new in further turns.

    `turns` are the slots of every turn of homes in some turns of which nothing uses them.
    """
    for home, place in list(nest.places.items()):
        if not isinstance(home, Home) or home.copies < 2:
            continue
        if home.ring is not None and home.turning is not None and home.ring.windows is not None:
            new = max(high - low for low, high in home.ring.windows.moved[home.number])
            most = list(place.most)
            most[home.turning] += (home.copies - 1) * new
            rows = most[home.turning]
            grown = replace(place, most=tuple(most), slot_of=tuple(shift % rows for shift in turns[home]))
        elif home.slots > 1:
            size = book.plan.chip.round_up(prod(place.most) * place.pitch)
            grown = replace(place, slots=home.slots, slot_bytes=size, slot_of=turns.get(home, ()))
        else:
            continue
        nest.places[home] = book.places[place.id] = grown


class _Table:
    """The transfers as rows of a C table; constants with one buffer get an array in the order of fills."""

    def __init__(self, book: Book, lowered: Lowered, order: Order) -> None:
        self.book, self.nests, self.order = book, lowered.nests, order
        self.at: dict[tuple[str, tuple[range, ...]], int] = {}
        """Where in DRAM a fill of a place begins."""
        self.addresses = iter([
            step.address for step in lowered.steps if isinstance(step, Transfer) and step.direction != "move"
        ])  # fmt: skip
        filled: dict[str, list[tuple[range, ...]]] = {}
        for moved in order.transfers:
            if moved.in_fills:
                boxes = filled.setdefault(self.place(moved).id, [])
                if (self.place(moved).id, moved.box) not in self.at:
                    self.at[self.place(moved).id, moved.box] = 0
                    boxes.append(moved.box)
        for identity, boxes in filled.items():
            self.pack(book.places[identity], boxes)

    def place(self, moved: Moved) -> Place:
        nest = self.nests[moved.group]
        return nest.places[nest.home[moved.use]]

    def pack(self, place: Place, boxes: Sequence[tuple[range, ...]]) -> None:
        """Lay the fills of a constant one after the other."""
        array = self.book.arrays[place.array or ""]
        size = sum(prod(map(len, box)) for box in boxes) * place.element
        made = self.book.packed(f"{array.name} in fills of {place.id}", size)
        value = self.value(array, place)
        parts, at = [], made.offset
        for box in boxes:
            self.at[place.id, box] = at
            at += prod(map(len, box)) * place.element
            if value is not None:
                whole = np.ascontiguousarray(value).view(np.uint8).reshape(*place.whole, place.element)
                first = place.first or (0,) * len(box)
                where = tuple(slice(f + r.start, f + r.stop) for f, r in zip(first, box, strict=True))
                parts.append(np.ascontiguousarray(whole[where]).reshape(-1))
        if parts:
            self.book.values[made.id] = np.concatenate(parts)

    def value(self, array: Array, place: Place) -> np.ndarray[Any, Any] | None:
        """Return the values of a constant; of what is counted together those of a bias, if it is one."""
        if array.id in self.book.values:
            return self.book.values[array.id]
        for nest in self.nests:
            for at, sources in enumerate(nest.sources):
                for source in sources:
                    if source.buffer.name in place.names and not source.filled:
                        name = bias_of(self.book, nest.operators[at], source)
                        return self.book.engine.parts.constants.get(name)
        return None

    def rows(self, number: int, moved: Moved) -> list[str]:
        """Return the rows of one transfer."""
        if moved.group < 0:
            tensor = self.book.network.tensor_id[moved.tensor]
            array = self.book.arrays[self.book.tensor(tensor)]
            pieces: list[tuple[int, ...]] = [
                (array.offset, 0, 0, next(self.addresses), 0, 0, array.bytes, 1, 1)
            ]
        else:
            pieces = self.pieces(moved)
        last = len(pieces) - 1
        return [
            f"{{{', '.join(map(str, piece))}, {moved.steps}, {int(moved.stored)},"
            f" {int(n == 0)}, {int(n == last)}}}"
            for n, piece in enumerate(pieces)
        ]

    def pieces(self, moved: Moved) -> list[tuple[int, ...]]:
        """Return where the pieces of a box lie in DRAM and in the scratchpad, and how many there are."""
        place = self.place(moved)
        if place.pitch != moved.width:
            raise UsageError("has elements narrower than their place", item=f"buffer {moved.tensor}")
        lengths = [place.length(n) or len(r) for n, r in enumerate(moved.region)]
        near = _strides(lengths, moved.width)
        far = _strides(place.whole, moved.width)
        packed = moved.in_fills
        array = self.book.arrays[(place.sums if moved.sums else place.array) or ""]
        offset = array.offset + (0 if moved.sums else place.offset * place.element)
        shift = moved.slot if place.ring is not None and place.slot_of else 0
        address = place.address + moved.slot % place.slots * place.slot_bytes
        found: list[tuple[int, ...]] = []
        done = 0
        for box in _unwrapped(moved.box, place, shift):
            here, there = address, offset
            for n, r in enumerate(box):
                turned = (
                    (r.start + shift) % place.most[n] if n == place.ring else r.start - moved.region[n].start
                )
                here += near[n] * turned
                there += far[n] * (r.start + (place.first[n] if place.first else 0))
            sizes = [len(r) for r in box]
            if packed:
                there, far = self.at[place.id, moved.box] + done, _strides(sizes, moved.width)
                done += prod(sizes) * moved.width
            found += _folded(there, here, sizes, far, near, moved.width)
        return found


def _strides(sizes: Sequence[int], width: int) -> list[int]:
    return [width * prod(sizes[n + 1 :]) for n in range(len(sizes))]


def _unwrapped(box: tuple[range, ...], place: Place, shift: int) -> list[tuple[range, ...]]:
    """Return the parts of a box that lie in a ring without going over its end."""
    if place.ring is None:
        return [box]
    rows, size = box[place.ring], place.most[place.ring]
    first = -(-(rows.start + shift + 1) // size) * size - shift
    cuts = [rows.start, *range(first, rows.stop, size), rows.stop]
    return [(*box[: place.ring], range(low, high), *box[place.ring + 1 :]) for low, high in pairwise(cuts)]


def _folded(
    there: int, here: int, sizes: Sequence[int], far: Sequence[int], near: Sequence[int], width: int
) -> list[tuple[int, ...]]:
    """Return rows (dram, far0, far1, pad, near0, near1, bytes, n0, n1): two loops each, or more rows."""
    piece, rest = width, len(sizes)
    while rest and far[rest - 1] == near[rest - 1] == piece:
        rest -= 1
        piece *= sizes[rest]
    loops = [(sizes[n], far[n], near[n]) for n in range(rest) if sizes[n] > 1]
    inner = ([(1, 0, 0)] * 2 + loops)[-2:]
    (n1, far1, near1), (n0, far0, near0) = inner
    found: list[tuple[int, ...]] = []
    for at in product(*(range(size) for size, _, _ in loops[:-2])):
        far_ = sum(i * one[1] for i, one in zip(at, loops, strict=False))
        near_ = sum(i * one[2] for i, one in zip(at, loops, strict=False))
        found.append((there + far_, far0, far1, here + near_, near0, near1, piece, n0, n1))
    return found


class _Threads(Writer):
    """The writer of the program."""

    aligned = "_Alignas(64) "

    def __init__(self, book: Book, program: Program, order: Order, rows: Sequence[str]) -> None:
        super().__init__(book, program)
        self.order, self.rows = order, rows

    def head(self) -> list[str]:
        return [
            "   cc -std=gnu11 -O3 -march=native -pthread program.c -lm;",
            "   ./a.out constants inputs outputs [runs [core core]] */",
            HEAD,
        ]

    def tools(self) -> list[str]:
        said = ", ".join(str(step.transfers) for step in self.order.steps) or "0"
        return [
            f"#define STEPS {len(self.order.steps)}",
            f"#define TRANSFERS {len(self.order.transfers)}",
            f"#define PIECES {len(self.rows)}",
            TOOLS,
            VECTORS,
            *self.panel(),
            CHANNEL,
            "static const struct pieces all_pieces[PIECES + 1] = {",
            *(f"    {row}," for row in self.rows),
            "};",
            "",
            "/* The transfers that have to be over before a step. */",
            f"static const uint32_t needed[STEPS + 1] = {{{said}}};",
            "static uint32_t step;",
            "#ifdef ONCHIP_TIMES",
            "static int64_t ran_at[STEPS + 1][2], moved_at[TRANSFERS + 1][2];",
            "#endif",
            "",
            "static inline void step_begin(void)",
            "{",
            "    wait_for(&transfers_over, needed[step]);",
            "    NOTE(ran_at, step, 0);",
            "}",
            "",
            "static inline void step_end(void)",
            "{",
            "    NOTE(ran_at, step, 1);",
            "    atomic_store_explicit(&steps_over, ++step, memory_order_release);",
            "}",
            "",
        ]

    def panel(self) -> list[str]:
        if not any(isinstance(one, VectorText) and one.panel for one in self.operators):
            return []
        return [
            "/* One factor of a product, all that is summed of it for one block: what an array holds. */",
            f"static _Alignas(64) float panel[{MOST_PANEL} * LANES];",
            "",
        ]

    def main(self) -> str:
        return MAIN

    def begins(self) -> list[str]:
        fills = [f"{p.id}_fills = 0;" for p in self.program.places.values() if p.slots > 1 or p.slot_of]
        return ["step = 0;", *fills]

    def statements(self, step: Step) -> list[str]:
        match step:
            case Copy():
                return []
            case Transfer(direction) if direction != "move":
                return []
            case RunWhole():
                raise UsageError("runs an operator that is no nest", item=f"operator {step.operator.name}")
        return super().statements(step)

    def text(self, step: Compute | RunWhole, prefix: str) -> OperatorText:
        return VectorText(self.book, prefix, step.operator)
