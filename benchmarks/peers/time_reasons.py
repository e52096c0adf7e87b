"""Why latencies of layers differ: their parts, and runs in which one thing is changed."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from time_layers import Layer, network_of
from time_nests import nest_of, priced
from time_peers import Answer, Peer
from time_rows import (
    BANDWIDTH,
    HINTS,
    KIB,
    RATES,
    SIDE,
    SUMS,
    Many,
    Row,
    cycles_on,
    of,
    scalesim_asks,
    summed,
    zigzag_asks,
)

from onchip.planners.joint.timed.bound import least_picoseconds

__all__ = ["Reasons"]

Line = tuple[str, Many, float | None, float | None]
"""What, of which layers, and their milliseconds and ours."""


@dataclass(frozen=True)
class Reasons:
    """Lines of reasons; what is changed is run for layers of at most `largest` cycles of the array."""

    zigzag: Peer
    scalesim: Peer
    largest: int

    def table(self, rows: Iterable[Row]) -> Iterator[str]:
        """Yield the lines of the table; figures are milliseconds."""
        yield "| network, KiB | what | layers | theirs | ours |"
        yield "|---|---|--:|--:|--:|"
        for row in rows:
            for what, layers, theirs, ours in (*self.of_zigzag(row), *self.of_scalesim(row)):
                cells = [f"{row.name}, {row.room // KIB:,}", what, str(sum(layers.values()))]
                cells += ["" if n is None else f"{n:,.3f}" for n in (theirs, ours)]
                yield f"| {' | '.join(cells)} |"

    def few(self, layers: Many) -> dict[Layer, int]:
        """Return the layers without groups for which something is changed."""
        small = [layer for layer in layers if layer.groups == 1 and cycles_on(layer) <= self.largest]
        return {layer: layers[layer] for layer in small}

    def of_zigzag(self, row: Row) -> Iterator[Line]:
        """Yield the parts of ZigZag's figures, and what they would be otherwise."""
        every = {layer: n for layer, n in row.layers.items() if layer in row.zigzag}
        if not every:
            return
        parts = {
            name: _cycles(every, row.zigzag, name) for name in ("compute", "stall", "loading", "storing")
        }
        edges = _cycles(every, row.zigzag, "array_cycles") - parts["compute"]
        yield "ZigZag", every, _cycles(every, row.zigzag, "cycles"), _taken(row, every)
        yield "of it: all multipliers in every cycle", every, parts["compute"], None
        yield "of it: sides of the array that are not filled", every, edges, None
        yield "of it: stalls", every, parts["stall"], None
        yield "of it: before the first step", every, parts["loading"], None
        yield "of it: behind the last step", every, parts["storing"], None
        here = under_our_law(row, row.zigzag)
        some = {layer: n for layer, n in every.items() if layer in here}
        yield "ZigZag, its mappings that our law can say", some, _cycles(some, row.zigzag, "cycles"), None
        yield "the same mappings under our law", some, _priced(some, here), _taken(row, some)
        beaten = {layer: n for layer, n in some.items() if here[layer] < row.alone[layer]["picoseconds"]}
        yield "those of them that are faster than ours", beaten, _priced(beaten, here), _taken(row, beaten)
        deep = {layer: n for layer, n in every.items() if layer.groups > 1 and layer.inputs == 1}
        if deep:
            yield "ZigZag, depthwise layers", deep, _cycles(deep, row.zigzag, "cycles"), _taken(row, deep)
            asked = zigzag_asks(row.room, {"D1": ["G"], "D2": ["K"]})
            flat = self.zigzag.answers(deep, asked)
            yield from _changed("the same with channels on one side, nothing on the other", deep, flat)
        few = self.few(every)
        if not few:
            return
        yield "ZigZag, small layers", few, _cycles(few, row.zigzag, "cycles"), _taken(row, few)
        shared = self.zigzag.answers(few, {**zigzag_asks(row.room, HINTS), "shared": True})
        yield from _changed("the same with one port of the scratchpad to DRAM", few, shared)
        if len(shared) == len(few):
            here = under_our_law(row, shared)
            some = {layer: n for layer, n in few.items() if layer in here}
            yield "those that our law can say", some, _cycles(some, shared, "cycles"), None
            yield "the same mappings under our law", some, _priced(some, here), None
        more = self.zigzag.answers(few, {**zigzag_asks(row.room, HINTS), "mappings": 3})
        yield from _changed("the same, the best of three spatial mappings", few, more)

    def of_scalesim(self, row: Row) -> Iterator[Line]:
        """Yield the parts of SCALE-Sim's figures, and what they would be otherwise."""
        every = {layer: n for layer, n in row.layers.items() if layer in row.scalesim}
        if not every:
            return
        whole = _cycles(every, row.scalesim, "with_prefetch")
        filled = summed(every, cycles_on) / 1e6
        most = summed(every, lambda layer: layer.macs) / SIDE**2 / 1e6
        array, stall = (_cycles(every, row.scalesim, name) for name in ("array_cycles", "stall"))
        yield "SCALE-Sim", every, whole, _taken(row, every)
        yield "of it: all multipliers in every cycle", every, most, None
        yield "of it: sides of the array that are not filled", every, filled - most, None
        yield "of it: filling and draining the array for every fold", every, array - filled, None
        yield "of it: stalls", every, stall, None
        yield "of it: before the first step and behind the last", every, whole - array - stall, None
        theirs = _cycles(every, row.scalesim, "dram_bytes") / BANDWIDTH
        yield (
            "bytes that cross, at the full rate",
            every,
            theirs,
            _taken(row, every, "bytes", BANDWIDTH * 1e6),
        )
        few = self.few(every)
        if not few:
            return
        kib = row.room // KIB
        yield "SCALE-Sim, small layers", few, _cycles(few, row.scalesim, "with_prefetch"), _taken(row, few)
        thrice = {**scalesim_asks(kib, "os"), "kib": [kib] * 3}
        yield from _changed(
            "the same with the whole scratchpad for each operand",
            few,
            self.scalesim.answers(few, thrice),
            "with_prefetch",
        )
        held = self.scalesim.answers(few, scalesim_asks(kib, "ws"))
        yield from _changed("the same with weights in place (`ws`)", few, held, "with_prefetch")
        if len(held) == len(few):
            array, ours = _cycles(few, held, "array_cycles"), summed(few, bound_with_sums) / 1e9
            yield "its array alone; our bound, bytes too, with sums along one side", few, array, ours


def bound_with_sums(layer: Layer) -> int:
    """Return the picoseconds that our array takes at least with sums along one of its sides, or the bytes."""
    return least_picoseconds(network_of(layer), SUMS, layer.least_bytes)


def _changed(
    what: str, layers: Many, answers: Mapping[Layer, Answer], name: str = "cycles"
) -> Iterator[Line]:
    """Yield the line of changed runs, if there are all."""
    if layers and len(answers) == len(layers):
        yield what, layers, _cycles(layers, answers, name), None


def _cycles(layers: Many, answers: Mapping[Layer, Answer], name: str) -> float:
    return summed(layers, of(answers, name)) / 1e6


def _priced(layers: Many, times: Mapping[Layer, int]) -> float:
    return summed(layers, lambda layer: times[layer]) / 1e9


def _taken(row: Row, layers: Many, name: str = "picoseconds", per_ms: float = 1e9) -> float:
    return summed(layers, of(row.alone, name)) / per_ms


def under_our_law(row: Row, answers: Mapping[Layer, Answer]) -> dict[Layer, int]:
    """Return the picoseconds of ZigZag's mappings by the checker, of those that the law can say.

    Those that are faster than ours are told on stderr.
    """
    found = {}
    for layer, answer in answers.items():
        nest = nest_of(layer, answer["temporal"])
        time = None if nest is None else priced(layer, nest, RATES, row.room)
        if time is not None:
            found[layer] = time
            if time < (ours := row.alone[layer]["picoseconds"]):
                said = f"{time:,} ps by ZigZag, {ours:,} by us: {nest}"
                print(f"{row.name}, {layer.name}: {said}", file=sys.stderr)
    return found
