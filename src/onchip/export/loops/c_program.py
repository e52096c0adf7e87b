"""A plan as one C99 program: DMA copies and loops that compute the network from a scratchpad of its bytes.

The program reads a file of constants and one of inputs, and writes one of outputs; it prints the bytes that
were copied, and fails if anything was written around the scratchpad.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onchip.export.loops.book import Book
from onchip.export.loops.c_frame import HEAD, MAIN, TOOLS
from onchip.export.loops.lower import book_of, lowered
from onchip.export.loops.operators import OperatorText
from onchip.export.loops.places import PlaceText
from onchip.export.loops.steps import (
    Allocate,
    Array,
    Compute,
    Copy,
    For,
    Give,
    Program,
    RunWhole,
    Step,
    Transfer,
)
from onchip.export.loops.text import bounds
from onchip.plans import Plan
from onchip.readers.source import Source

__all__ = ["Made", "Writer", "program_of", "write"]


def write(plan: Plan, model: str | Path | None = None) -> str:
    """Return the program's text; `onchip.export.loops.constants` writes the file that it reads."""
    return program_of(plan, model).source


@dataclass(frozen=True)
class Made:
    """A program in C, the file of its constants, and what it expects of files: names and bytes, in order."""

    source: str
    constants: bytes
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]


def program_of(plan: Plan, model: Source | str | Path | None = None, *, seed: int = 0) -> Made:
    """Return the program of a legal plan; weights that the model lacks are drawn from `seed`.

    Raises `UsageError` naming what has no C, `InputError` for another model than the plan's.
    """
    book = book_of(plan, str(model) if isinstance(model, Path) else model, seed)
    return Writer(book, lowered(book)).made()


class Writer:
    """The writer of a program: its parts are those of one thread, which may be other ones."""

    def __init__(self, book: Book, program: Program) -> None:
        self.book, self.program = book, program
        self.places = {name: PlaceText(place, program.arrays) for name, place in program.places.items()}
        self.operators: list[OperatorText] = []
        self.tables: list[str] = []

    def made(self) -> Made:
        parts = [self.part(n, step) for n, step in enumerate(self.program.steps)]
        book = self.book
        network = book.network
        inputs = [t.id for t in network.tensors if t.kind == "input"]
        outputs = list(dict.fromkeys(network.root[t] for t in network.outputs))
        constants = [array for array in book.arrays.values() if array.id in book.values]
        text = [
            f"/* {_plain(network.name)}: a checked plan as a program, written by onchip.",
            *self.head(),
            f"#define PAD_BYTES {book_pad(self.program)}",
            f"#define DRAM_BYTES {max(book.end, 1)}",
            "/* Partial sums of elements narrower than 4 bytes, where the chip states no accumulators. */",
            f"#define SUMS_BESIDE_BYTES {sum(one.beside for one in self.operators)}",
            "#define GUARD_BYTES 4096",
            "",
            "/* The scratchpad, with bytes around it that nobody may write. */",
            f"static {self.aligned}unsigned char around[GUARD_BYTES + PAD_BYTES + GUARD_BYTES];",
            "static unsigned char *const pad = around + GUARD_BYTES;",
            "static unsigned char *dram;",
            "",
            *self.tools(),
        ]
        for place in self.places.values():
            if place.functions:
                text += place.lines()
            else:
                text += place.regions()
        for one in self.operators:
            text += one.lines
        text += [*self.tables, ""]
        for part in parts:
            text += part
        text += [
            "",
            "static void network(void)",
            "{",
            *(f"    {line}" for line in self.begins()),
            *(f"    step_{n}();" for n in range(len(parts))),
            "}",
            "",
        ]
        text += _rows("constant", [(a.offset, a.bytes) for a in constants])
        text += _rows("input", [(self.place(t).offset, self.place(t).bytes) for t in inputs])
        text += _rows("output", [(self.place(t).offset, self.place(t).bytes) for t in outputs])
        text.append(self.main())
        data = b"".join(np.ascontiguousarray(book.values[a.id]).tobytes() for a in constants)
        return Made(
            "\n".join(_indented(text)) + "\n",
            data,
            tuple((network.tensors[t].name, self.place(t).bytes) for t in inputs),
            tuple((network.tensors[t].name, self.place(t).bytes) for t in outputs),
        )

    aligned = ""
    """Words before the scratchpad's type."""

    def head(self) -> list[str]:
        """Return the first lines, behind the title."""
        return ["   cc -std=c99 -O2 program.c -lm; ./a.out constants inputs outputs */", HEAD]

    def tools(self) -> list[str]:
        """Return what places and operators use."""
        return [TOOLS]

    def begins(self) -> list[str]:
        """Return the statements with which the network begins."""
        return []

    def main(self) -> str:
        """Return the last lines."""
        return MAIN

    def text(self, step: Compute | RunWhole, prefix: str) -> OperatorText:
        """Return the empty text of an operator."""
        return OperatorText(self.book, prefix, step.operator)

    def place(self, t: int) -> Array:
        """Return the array of a tensor."""
        return self.book.arrays[self.book.tensor(t)]

    def part(self, number: int, step: Step) -> list[str]:
        """Return the function of one of the program's steps."""
        return [f"static void step_{number}(void)", "{", *self.statements(step), "}", ""]

    def statements(self, step: Step) -> list[str]:
        match step:
            case For():
                return self.loop(step)
            case Allocate(place, region):
                return list(self.places[place].allocate(region))
            case Give():
                return []
            case Copy():
                return list(self.places[step.place].copy(step))
            case Compute():
                text = self.operator(step)
                return text.in_nest(step, self.places)
            case RunWhole():
                text = self.operator(step)
                return text.whole(step)
            case Transfer(direction, array, address, size, to):
                there = f"dram + {self.book.arrays[array].offset}"
                if direction == "move":
                    return [f"memmove(pad + {to}, pad + {address}, {size});", f"moved += {size};"]
                if direction == "load":
                    return [f"dma_copy(pad + {address}, {there}, {size});"]
                return [f"dma_copy({there}, pad + {address}, {size});"]

    def operator(self, step: Compute | RunWhole) -> OperatorText:
        """Return the text of an operator, which begins here."""
        made = self.text(step, f"o{len(self.operators)}")
        self.operators.append(made)
        return made

    def loop(self, step: For) -> list[str]:
        turns = step.turns
        body = [line for inner in step.body for line in self.statements(inner)]
        text = "\n".join(body)
        name = turns.name
        if not turns.tables:
            low, high = bounds(turns.of)
            lines = [f"for (ix {name} = {low}; {name} < {high}; {name} += {turns.tile}) {{"]
            if re.search(rf"\b{name}_lo\b", text):
                lines.append(f"const ix {name}_lo = {name};")
            if re.search(rf"\b{name}_hi\b", text):
                lines.append(f"const ix {name}_hi = min_ix({name} + {turns.tile}, {high});")
            return [*lines, *body, "}"]
        lines = [f"for (ix {name} = 0; {name} < {turns.count}; ++{name}) {{"]
        for table, rows in turns.tables.items():
            used = [end for end in ("lo", "hi") if re.search(rf"\b{table}_{end}\b", text)]
            if used:
                said = ", ".join(f"{{{low}, {high}}}" for low, high in rows)
                self.tables.append(f"static const int32_t {table}_turns[{len(rows)}][2] = {{{said}}};")
            lines += [f"const ix {table}_{end} = {table}_turns[{name}][{int(end == 'hi')}];" for end in used]
        return [*lines, *body, "}"]


def book_pad(program: Program) -> int:
    """Return the bytes of the scratchpad; one if there are none, as C has no empty array."""
    return max(program.pad, 1)


def _rows(name: str, rows: Sequence[tuple[int, int]]) -> list[str]:
    said = ", ".join(f"{{{offset}, {size}}}" for offset, size in rows) or "{0, 0}"
    return [f"static const int64_t {name}s[{max(len(rows), 1)}][2] = {{{said}}};"]


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.:+\- ]", "_", text)[:120]


def _indented(text: Sequence[str]) -> Iterator[str]:
    """Yield lines, those of steps indented by their braces."""
    deep, inside = 0, False
    for line in text:
        if line.startswith("static void step_") and not line.endswith(";"):
            inside, deep = True, 0
        if not inside or "\n" in line:
            yield line
            continue
        if line.startswith("}"):
            deep -= 1
        yield "    " * max(deep, 0) + line
        deep += line.endswith("{")
        if line == "}" and deep == 0:
            inside = False
