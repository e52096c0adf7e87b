"""The C of places on chip: their region, an element's address, and the copies of boxes to and from DRAM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from onchip.export.loops.steps import Array, Copy, Place
from onchip.export.loops.text import bounds, ctype

__all__ = ["PlaceText"]


class PlaceText:
    """The C of one place. Functions are written as they are asked for, once."""

    def __init__(self, place: Place, arrays: Mapping[str, Array]) -> None:
        self.place, self.arrays = place, arrays
        self.functions: dict[str, list[str]] = {}
        self.rank = range(len(place.sides))

    @property
    def base(self) -> str:
        """Where the region begins in the scratchpad: of several slots where the present one does."""
        return f"{self.place.id}_base" if self.place.slots > 1 else str(self.place.address)

    def length(self, side: int) -> str:
        """Return the C of the length of a side, as what follows it lies apart."""
        always = self.place.length(side)
        return f"{self.place.id}_n{side}" if always is None else str(always)

    def in_ring(self, position: str) -> str:
        """Return the C of the row of a ring in which a position along it lies."""
        p = self.place
        assert p.ring is not None
        shifted = f"({position} + {p.id}_shift)" if p.slot_of else position
        return f"{shifted} % {p.most[p.ring]}"

    @property
    def s(self) -> list[str]:
        """The indices along the sides."""
        return [f"s{i}" for i in self.rank]

    def regions(self) -> Iterator[str]:
        """Yield the statics of the place: its region, and of several slots the present one."""
        p = self.place
        regions = [f"{p.id}_r{i} = 0" for i in self.rank] + [f"{p.id}_n{i} = 0" for i in self.rank]
        yield f"/* {p.id}: {_plain(' over '.join(reversed(p.names)))}, {p.bytes} bytes at {p.address} */"
        yield f"static ix {', '.join(regions)};"
        if p.slots > 1:
            yield f"static ix {self.base} = {p.address}, {p.id}_fills = 0;"
        elif p.slot_of:
            yield f"static ix {p.id}_shift = 0, {p.id}_fills = 0;"
        if p.slot_of:
            said = ", ".join(map(str, p.slot_of))
            yield f"static const uint16_t {p.id}_slot_of[{len(p.slot_of)}] = {{{said}}};"

    def lines(self) -> Iterator[str]:
        """Yield the statics and functions of the place."""
        p = self.place
        yield from self.regions()
        arguments = ", ".join(f"ix {s}" for s in self.s)
        yield f"static inline ix {p.id}_index({arguments})"
        yield "{"
        for i in self.rank:
            yield f"    CHECK(s{i} >= {p.id}_r{i} && s{i} < {p.id}_r{i} + {p.id}_n{i});"
        index = ""
        for i in self.rank:
            one = self.in_ring(f"s{i}") if i == p.ring else f"(s{i} - {p.id}_r{i})"
            index = f"({index}) * {self.length(i)} + {one}" if index else one
        yield f"    return {index};"
        yield "}"
        yield f"static inline size_t {p.id}_at({arguments})"
        yield "{"
        yield f"    return (size_t)({self.base} + {p.id}_index({', '.join(self.s)}) * {p.pitch});"
        yield "}"
        for text in self.functions.values():
            yield from text
        yield ""

    def get(self, kind: np.dtype[Any]) -> str:
        """Return the function that reads an element of a type."""
        name, c = f"{self.place.id}_get_{kind.name}", ctype(kind)
        self.functions[name] = [
            f"static inline {c} {name}({', '.join(f'ix {s}' for s in self.s)})",
            "{",
            f"    {c} v;",
            f"    memcpy(&v, pad + {self.place.id}_at({', '.join(self.s)}), sizeof v);",
            "    return v;",
            "}",
        ]
        return name

    def put(self, kind: np.dtype[Any]) -> str:
        """Return the function that writes an element of a type."""
        name, c = f"{self.place.id}_put_{kind.name}", ctype(kind)
        self.functions[name] = [
            f"static inline void {name}({', '.join(f'ix {s}' for s in self.s)}, {c} v)",
            "{",
            f"    memcpy(pad + {self.place.id}_at({', '.join(self.s)}), &v, sizeof v);",
            "}",
        ]
        return name

    def allocate(self, region: Sequence[Any]) -> Iterator[str]:
        """Yield the statements with which the place begins to hold a region."""
        p = self.place
        if p.slots == 1 and p.slot_of:
            yield f"{p.id}_shift = {p.id}_slot_of[{p.id}_fills++];"
        if p.slots > 1:
            slot = f"{p.id}_slot_of[{p.id}_fills++]" if p.slot_of else f"{p.id}_fills++ % {p.slots}"
            yield f"{self.base} = {p.address} + {slot} * {p.slot_bytes};"
        for i, one in enumerate(region):
            low, high = bounds(one)
            yield f"{self.place.id}_r{i} = {low};"
            yield (
                f"{self.place.id}_n{i} = {high} - {low};" if low != "0" else f"{self.place.id}_n{i} = {high};"
            )

    def copy(self, step: Copy) -> Iterator[str]:
        """Yield the statements of a copy."""
        box = ", ".join(x for one in step.box for x in bounds(one))
        whole = f"{self.transfer(step.direction, sums=False)}({box});"
        ends = " && ".join(f"{bounds(of)[1]} == {size}" for of, size in step.parts)
        begins = " && ".join(f"{bounds(of)[0]} == 0" for of, _ in step.parts)
        if step.back:
            yield f"if (!({begins})) {self.transfer('load', sums=True)}({box});"
        elif not step.parts:
            yield whole
        elif step.late:
            yield f"if ({ends}) {whole}"
        else:
            yield f"if ({ends}) {whole} else {self.transfer('store', sums=True)}({box});"

    def transfer(self, direction: str, *, sums: bool) -> str:
        """Return the function that copies a box."""
        p = self.place
        name = f"{p.id}_{direction}" + ("_sums" if sums else "")
        if name in self.functions:
            return name
        array = self.arrays[(p.sums if sums else p.array) or ""]
        element = array.element if sums else p.element
        offset = array.offset + (0 if sums else p.offset * p.element)
        last = len(p.sides) - 1
        together = p.pitch == element and p.ring != last
        text = [f"static void {name}({', '.join(f'ix lo{i}, ix hi{i}' for i in self.rank)})", "{"]
        deep = "    "
        for i in self.rank:
            if i == last and together:
                text.append(f"{deep}const ix s{i} = lo{i};")
                break
            text.append(f"{deep}for (ix s{i} = lo{i}; s{i} < hi{i}; ++s{i}) {{")
            deep += "    "
        index = ""
        for i in self.rank:
            one = f"(s{i} + {p.first[i]})" if p.first[i] else f"s{i}"
            index = f"({index}) * {p.whole[i]} + {one}" if index else one
        count = f"(size_t)(hi{last} - lo{last}) * {element}" if together else str(element)
        if together:
            text.append(f"{deep}if (hi{last} > lo{last}) {{")
            deep += "    "
        text.append(f"{deep}unsigned char *out = dram + (size_t)({offset} + ({index}) * {element});")
        text.append(f"{deep}unsigned char *in = pad + {p.id}_at({', '.join(self.s)});")
        to, source = ("in", "out") if direction == "load" else ("out", "in")
        text.append(f"{deep}dma_copy({to}, {source}, {count});")
        while len(deep) > 4:
            deep = deep[4:]
            text.append(f"{deep}}}")
        self.functions[name] = [*text, "}"]
        return name

    @property
    def index(self) -> str:
        """The function that gives the position of an element in the place."""
        return f"{self.place.id}_index"

    @property
    def most(self) -> int:
        """The most elements that it holds."""
        return prod(self.place.most)


def _plain(text: str) -> str:
    return "".join(c if (c.isalnum() and c.isascii()) or c in " _.:+-#" else "_" for c in text)[:120]
