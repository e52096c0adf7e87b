"""Reads the text form of a plan; `onchip.plans.text` writes it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, Literal, TypeVar

from onchip.base.errors import PlanFormatError
from onchip.machines.chip import Memory
from onchip.network import Geometry, Network, OperatorSpec, Patches, Reach, TensorKind
from onchip.plans.limits import CLAIMED, FORMAT, LIMIT, Option, plan_chip
from onchip.plans.program import (
    Alloc,
    Blocks,
    Boxes,
    Free,
    Group,
    Instruction,
    Join,
    Load,
    MemoryUse,
    Move,
    Moved,
    Pin,
    PinnedTensor,
    PinnedWeights,
    Plan,
    Result,
    Rings,
    Run,
    Scratch,
    Section,
    Stage,
    State,
    Status,
    Store,
    Tiling,
    Timed,
)
from onchip.plans.reach import reach_of
from onchip.plans.words import SECTION, TILED, Word, split

__all__ = ["from_text"]

_PLACED = ("load", "alloc", "scratch", "move")
"""The instructions that reserve a range, which `in MEMORY` may follow."""

T = TypeVar("T")
Direction = Literal["forward", "reverse"]

_SIZES = ("input", "output", "kernel", "stride", "padding", "dilation")
_GEOMETRY = ("geometry", *_SIZES, "groups", "layout", "traversal")
_GROUP = ("scratch", "subgroups", "operators", "refills", "resident")


def from_text(content: str, *, where: str = "plan") -> Plan:
    """The plan in a text. Raises `PlanFormatError` naming the line, `ModelError` for no network."""
    return _Reader(where).read(content)


@dataclass
class _Facts:
    """What was read so far."""

    texts: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    tensors: list[tuple[str, int, TensorKind]] = field(default_factory=list)
    patches: dict[str, Patches] = field(default_factory=dict)
    operators: list[OperatorSpec] = field(default_factory=list)
    reaches: dict[str, Reach] = field(default_factory=dict)
    views: list[tuple[str, str, int]] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    pins: list[Pin] = field(default_factory=list)
    state: list[State] = field(default_factory=list)
    options: dict[str, Option] = field(default_factory=dict)
    rates: dict[str, Option] = field(default_factory=dict)
    result: dict[str, str] = field(default_factory=dict)
    timing: list[Timed] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    memories: list[Memory] = field(default_factory=list)
    used: list[MemoryUse] = field(default_factory=list)
    moved: list[Moved] = field(default_factory=list)
    program: list[Instruction] = field(default_factory=list)


class _Reader:
    def __init__(self, where: str) -> None:
        self.where, self.number = where, 0

    def refuse(self, reason: str) -> PlanFormatError:
        return PlanFormatError(reason, where=self.where, item=f"line {self.number}")

    # -- the whole ---------------------------------------------------------------------------------------

    def read(self, content: str) -> Plan:
        facts, in_program = _Facts(), False
        for words in self.lines(content):
            if in_program:
                facts.program.append(self.instruction(words))
            elif words == [("program", False)]:
                in_program = True
            else:
                self.fact(facts, words)
        for key in ("network", "chip", "budget", "program"):
            if not (in_program if key == "program" else key in facts.texts or key in facts.numbers):
                raise PlanFormatError("is missing", where=self.where, item=key)
        if unknown := facts.reaches.keys() - {op.name for op in facts.operators}:
            raise PlanFormatError("is of no operator", where=self.where, item=f"reach {min(unknown)}")
        return self.plan(facts)

    def lines(self, content: str) -> Iterator[list[Word]]:
        """The words of every line that has any, after the first, which must name the format."""
        started = False
        for number, line in enumerate(content.split("\n"), 1):
            self.number = number
            try:
                words = split(line)
            except ValueError as problem:
                raise self.refuse(str(problem)) from None
            if started and words:
                yield words
            elif words:
                if words != [(FORMAT, False)]:
                    raise self.refuse(f"expected the line {FORMAT}")
                started = True
        if not started:
            raise PlanFormatError("is empty", where=self.where)

    def plan(self, facts: _Facts) -> Plan:
        network = Network.build(
            facts.texts["network"],
            facts.tensors,
            [replace(op, reach=facts.reaches.get(op.name)) for op in facts.operators],
            facts.outputs,
            views=facts.views,
            source=facts.texts.get("source", ""),
            sha256=facts.texts.get("sha256", ""),
            granularity=facts.texts.get("granularity", "op"),
            element=facts.texts.get("element", "int8"),
            patches=facts.patches,
            where=self.where,
        )
        return Plan(
            network=network,
            chip=plan_chip(
                facts.texts["chip"],
                facts.numbers["alignment"],
                facts.rates,
                facts.numbers.get("weight scratchpad"),
                facts.memories,
                where=self.where,
            ),
            budget=facts.numbers["budget"],
            program=tuple(facts.program),
            result=replace(self.result(facts.result), memories=tuple(facts.used), moves=tuple(facts.moved)),
            groups=tuple(facts.groups),
            pins=tuple(facts.pins),
            state=tuple(facts.state),
            options=facts.options,
            timing=tuple(facts.timing),
            sections=tuple(facts.sections),
        )

    # -- facts -------------------------------------------------------------------------------------------

    def fact(self, facts: _Facts, words: list[Word]) -> None:
        match [w for w, _ in words]:
            case [("network" | "source" | "sha256" | "granularity" | "element") as key, text]:
                self.once(facts.texts, key, text)
            case ["budget", size]:
                self.once(facts.numbers, "budget", self.integer(size))
            case ["chip", name, alignment] | ["chip", name, alignment, "weights", _]:
                self.once(facts.texts, "chip", name)
                self.once(facts.numbers, "alignment", self.integer(alignment))
                if len(words) == 5:
                    self.once(facts.numbers, "weight scratchpad", self.integer(words[4][0]))
            case ["memory", name, size, *_]:
                facts.memories.append(self.memory(name, self.integer(size), words[3:]))
            case ["used", name, peak, extent, accessed]:
                facts.used.append(MemoryUse(name, *map(self.integer, (peak, extent, accessed))))
            case ["moved", source, target, size]:
                facts.moved.append(Moved(source, target, self.integer(size)))
            case ["rate", key, _]:
                self.once(facts.rates, key, self.scalar(words[2]))
            case ["time", _, _, _] | ["time", _, _, _, _]:
                facts.timing.append(Timed(*(self.integer(n) for n, _ in words[1:])))
            case ["pin", "tensor", name]:
                facts.pins.append(PinnedTensor(name))
            case ["pin", "tensor", name, address]:
                facts.pins.append(PinnedTensor(name, self.address(address)))
            case ["pin", "weights", name, address]:
                facts.pins.append(PinnedWeights(name, self.address(address)))
            case ["state", taken, given, address]:
                facts.state.append(State(taken, given, self.address(address)))
            case ["tensor", name, size, ("input" | "activation") as kind]:
                facts.tensors.append((name, self.integer(size), kind))
            case ["tensor", name, size, ("input" | "activation") as kind, "patches", *sides] if (
                len(sides) == 5
            ):
                facts.tensors.append((name, self.integer(size), kind))
                self.once(facts.patches, name, Patches(*map(self.integer, sides)))
            case ["operator", name, type_, *_]:
                facts.operators.append(self.operator(name, type_, words[3:]))
            case ["reach", name, *_]:
                self.once(facts.reaches, name, reach_of(words[2:], self.refuse))
            case ["view", name, of, offset]:
                facts.views.append((name, of, self.integer(offset)))
            case ["output", name]:
                facts.outputs.append(name)
            case ["group", name, *_]:
                facts.groups.append(self.group(name, words[2:]))
            case ["section", name, first, end, *_]:
                facts.sections.append(self.section(name, self.integer(first), self.integer(end), words[4:]))
            case ["option", key, _]:
                self.once(facts.options, key, self.scalar(words[2]))
            case ["result", key, value]:
                self.once(facts.result, key, value)
            case shown:
                raise self.refuse(f"not understood: {' '.join(shown)[:80]}")

    def memory(self, name: str, size: int, words: Sequence[Word]) -> Memory:
        rates: dict[str, float] = {}
        match [w for w, _ in words]:
            case ["storage", *_]:
                words, operands = words[1:], False
            case _:
                operands = True
        for (key, quoted), value in zip(words[::2], [*words[1::2], ("", False)], strict=False):
            rate = self.scalar(value)
            if quoted or key not in ("bytes_per_second", "picojoules_per_byte"):
                raise self.refuse(f"expected a rate of a memory, found {key[:60]!r}")
            if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < LIMIT:
                raise self.refuse(f"{key} takes a positive number")
            self.once(rates, key, float(rate))
        return Memory(name, size, operands, **rates)

    def operator(self, name: str, type_: str, words: Sequence[Word]) -> OperatorSpec:
        lists = self.lists(words, ("in", "out", "weights", "workspace", "macs", *_GEOMETRY))
        if "geometry" not in lists and lists.keys() & set(_GEOMETRY):
            raise self.refuse("the sizes of a geometry come after `geometry` and its kind")
        return OperatorSpec(
            name,
            type_,
            _names(lists.get("in", ())),
            _names(lists.get("out", ())),
            self.count(lists, "weights", 0),
            self.count(lists, "workspace", 0),
            self.geometry(lists) if "geometry" in lists else None,
            self.count(lists, "macs", 0),
        )

    def geometry(self, lists: dict[str, list[Word]]) -> Geometry:
        sizes = {key: tuple(self.integer(w) for w, _ in lists.get(key, ())) for key in _SIZES}
        groups = self.count(lists, "groups", 1)
        kind, layout = (_names(lists.get(key, ())) for key in ("geometry", "layout"))
        traversal, pixels, channels = self.steps(_names(lists.get("traversal", ())))
        if len(kind) != 1 or layout not in ([], ["NCHW"], ["NHWC"]):
            raise self.refuse("a geometry has one kind and layout NCHW or NHWC")
        return Geometry(
            kind[0],
            **sizes,
            groups=groups,
            layout="NHWC" if layout == ["NHWC"] else "NCHW",
            traversal=traversal,
            pixels=pixels,
            channels=channels,
        )

    def steps(self, words: list[str]) -> tuple[Direction, int, int]:
        """`reverse pixels 4 channels 1`: the traversal of a walk, and what a step of it makes."""
        match words:
            case []:
                return "forward", 1, 0
            case [("forward" | "reverse") as traversal]:
                return traversal, 1, 0
            case [("forward" | "reverse") as traversal, "pixels", pixels, "channels", channels]:
                return traversal, self.integer(pixels), self.integer(channels)
        raise self.refuse(
            "a geometry has traversal forward or reverse, then `pixels N channels N` if need be"
        )

    def group(self, name: str, words: Sequence[Word]) -> Group:
        first, quoted = words[0] if words else ("", True)
        own = () if quoted else TILED.get(first, ())
        stages: list[Stage] = []
        if own == TILED["rings"]:
            words, stages = self.stages(words, (*own, *_GROUP, "traversal"))
            own = (*own, "traversal")
        lists = self.lists(words, (*own, *_GROUP))
        return Group(
            name,
            tuple(_names(lists.get("operators", ()))),
            self.count(lists, "scratch", None),
            self.count(lists, "subgroups", 1),
            self.counts(lists.get("refills", ())),
            tuple(_names(lists.get("resident", ()))),
            self.tiling(lists, stages),
        )

    def stages(self, words: Sequence[Word], keywords: Sequence[str]) -> tuple[list[Word], list[Stage]]:
        """The words outside of any `stage N OP ...`, and the stages in the order in which they come."""
        rest: list[Word] = []
        found: list[list[str]] = []
        inside = False
        for text, quoted in words:
            if not quoted and text in keywords:
                inside = text == "stage"
                if inside:
                    found.append([])
                    continue
            (found[-1].append(text) if inside else rest.append((text, quoted)))
        if any(not stage for stage in found):
            raise self.refuse("a stage has a number of rows, and then its operators")
        return rest, [Stage(tuple(stage[1:]), self.integer(stage[0])) for stage in found]

    def tiling(
        self, lists: dict[str, list[Word]], stages: Sequence[Stage]
    ) -> Tiling | Blocks | Boxes | Rings | None:
        if any(lists.get(key) for key in ("tiling", "blocks", "rings", "keep_weights")):
            raise self.refuse("tiling, blocks, rings and keep_weights take no words of their own")
        if "tiling" in lists:
            streamed = tuple(_names(lists.get("streaming", ())))
            if len(set(streamed)) < len(streamed):
                raise self.refuse("a tiling names a streamed tensor twice")
            rows, channels, images = (self.count(lists, key, None) for key in ("rows", "channels", "images"))
            return Tiling(rows, streamed, channels, images)
        if "blocks" in lists:
            keys = ("rows", "columns", "output_channels", "channels")
            rows, columns, output_channels, channels = (self.count(lists, key, None) for key in keys)
            return Blocks(rows, columns, output_channels, channels, "keep_weights" in lists)
        if "boxes" in lists:
            sizes, order = (lists.get(key, ()) for key in ("boxes", "order"))
            return Boxes(*(tuple(self.integer(n) for n, _ in numbers) for numbers in (sizes, order)))
        if "rings" in lists:
            fetched, traversal = (_names(lists.get(key, ())) for key in ("fetched", "traversal"))
            if fetched not in (["rows"], ["columns"]) or traversal not in (["forward"], ["reverse"]):
                raise self.refuse(
                    "rings have what is fetched, rows or columns, and traversal forward or reverse"
                )
            return Rings(
                tuple(stages),
                self.count(lists, "strips", None),
                "rows" if fetched == ["rows"] else "columns",
                "forward" if traversal == ["forward"] else "reverse",
            )
        return None

    def section(self, name: str, first: int, end: int, words: Sequence[Word]) -> Section:
        found: dict[str, list[str]] = {}
        branches: list[list[str]] = []
        current: list[str] | None = None
        for word, quoted in words:
            if quoted or word not in SECTION:
                if current is None:
                    raise self.refuse(f"expected one of {', '.join(SECTION)}; found {word[:60]!r}")
                current.append(word)
                continue
            current = []
            if word == "branch":
                branches.append(current)
            else:
                self.once(found, word, current)
        for key, given in found.items():
            if len(given) != 1:
                raise self.refuse(f"{key} takes one word")
        start, merge, stated = (found.get(key, [None])[0] for key in ("start", "merge", "processing"))
        processing: Literal["I", "II"] | None = "I" if stated == "I" else "II" if stated == "II" else None
        if stated != processing:
            raise self.refuse(f"processing is I or II, not {str(stated)[:60]!r}")
        return Section(name, first, end, start, merge, tuple(map(tuple, branches)), processing)

    def result(self, rows: dict[str, str]) -> Result:
        def refuse(key: str, reason: str) -> PlanFormatError:
            return PlanFormatError(reason, where=self.where, item=f"result {key}")

        known = [f.name for f in fields(Result) if f.name not in ("memories", "moves")]
        needed = [f.name for f in fields(Result) if f.default is MISSING]
        for key in (*rows, *needed):
            if key not in known or key not in rows:
                raise refuse(key, "is missing" if key in known else "is not known")
        stated, seconds = rows.pop("status"), self.scalar((rows.pop("seconds"), False))
        status: Status = "optimal" if stated == "optimal" else "feasible"
        if stated != status:
            raise refuse("status", f"{stated[:60]!r} is neither optimal nor feasible")
        if isinstance(seconds, str | bool | None):
            raise refuse("seconds", "is not a number")
        texts: dict[str, Any] = {key: rows.pop(key) for key in CLAIMED if key in rows}
        given: dict[str, Any] = {key: self.integer(n) for key, n in rows.items()}
        return Result(status, seconds=seconds, **given, **texts)

    # -- instructions ------------------------------------------------------------------------------------

    def instruction(self, words: list[Word]) -> Instruction:
        memory: str | None = None
        if len(words) > 4 and words[3] == ("in", False) and words[0][0] in _PLACED:
            memory, words = words[4][0], words[:3] + words[5:]
        match [w for w, _ in words]:
            case ["load", tensor, address]:
                return Load(tensor, self.address(address), memory)
            case ["alloc", tensor, address]:
                return Alloc(tensor, self.address(address), memory=memory)
            case ["alloc", tensor, address, "over", over, "by", by]:
                return Alloc(tensor, self.address(address), over, self.integer(by), memory=memory)
            case ["alloc", tensor, address, "of", _, *_]:
                parts = tuple(_names(words[4:]))
                if len(set(parts)) < len(parts):
                    raise self.refuse("names an operand twice")
                return Alloc(tensor, self.address(address), parts=parts, memory=memory)
            case ["scratch", operator, address]:
                return Scratch(operator, self.address(address), memory)
            case ["move", tensor, address] if memory is not None:
                return Move(tensor, self.address(address), memory)
            case ["run", operator]:
                return Run(operator)
            case ["run", operator, "streaming", _, *_]:
                return Run(operator, self.counts(words[3:]))
            case ["store", tensor]:
                return Store(tensor)
            case ["free", tensor]:
                return Free(tensor)
            case ["join", operator]:
                return Join(operator)
            case shown:
                raise self.refuse(f"{' '.join(shown)[:80]} is no instruction")

    # -- parts of lines ----------------------------------------------------------------------------------

    def once(self, table: dict[str, T], key: str, value: T) -> None:
        if key in table:
            raise self.refuse(f"{key[:60]} is given twice")
        table[key] = value

    def lists(self, words: Sequence[Word], keywords: Sequence[str]) -> dict[str, list[Word]]:
        """The words after each keyword, up to the next one."""
        found: dict[str, list[Word]] = {}
        current: list[Word] | None = None
        for word, quoted in words:
            if not quoted and word in keywords:
                current = []
                self.once(found, word, current)
            elif current is None:
                raise self.refuse(f"expected one of {', '.join(keywords)}; found {word[:60]!r}")
            else:
                current.append((word, quoted))
        return found

    def counts(self, words: Iterable[Word]) -> tuple[tuple[str, int], ...]:
        """`x:10 "a b":3`: a plain name and its number are one word; a quoted name is a word, then `:3`."""
        found: dict[str, int] = {}
        rest = iter(words)
        for word, quoted in rest:
            name, _, number = (word, "", next(rest, ("", False))[0]) if quoted else word.rpartition(":")
            if quoted and number[:1] != ":":
                raise self.refuse(f"expected a number like :10 after {word[:60]!r}")
            self.once(found, name, self.integer(number.removeprefix(":")))
        return tuple(found.items())

    def count(self, lists: dict[str, list[Word]], key: str, default: int | None) -> int:
        words = lists.get(key)
        if words is None and default is not None:
            return default
        if words is None or len(words) != 1:
            raise self.refuse(f"{key} takes one number")
        return self.integer(words[0][0])

    def integer(self, text: str) -> int:
        if not re.fullmatch(r"-?[0-9]{1,18}", text, re.ASCII):
            raise self.refuse(f"{text[:60]!r} is not a whole number of at most 18 digits")
        return int(text)

    def address(self, text: str) -> int:
        if not text.startswith("@"):
            raise self.refuse(f"expected an address like @0, found {text[:60]!r}")
        return self.integer(text[1:])

    def scalar(self, word: Word) -> Option:
        """A quoted word is a string; another one a JSON number, true, false or null."""
        text, quoted = word
        if quoted:
            return text
        if re.fullmatch(r"-?[0-9]+", text, re.ASCII):
            return self.integer(text)
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = ()
        if not isinstance(value, float | bool | None) or (type(value) is float and not math.isfinite(value)):
            raise self.refuse(f"{text[:60]!r} is not a JSON string, finite number, true, false or null")
        return value


def _names(words: Iterable[Word]) -> list[str]:
    return [w for w, _ in words]
