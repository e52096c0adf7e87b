"""Reads the text form of a plan; `onchip.plans.text_writing` writes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar, get_args

from onchip.base.errors import PlanFormatError
from onchip.base.fields import LIMIT, members, word_of
from onchip.machines.chip import Memory
from onchip.network import Geometry, Network, OperatorSpec, Patches, Reach, TensorKind
from onchip.network.json import TEXTS
from onchip.plans.file_limits import FORMAT, NESTS, Option, nests_format, plan_chip
from onchip.plans.lines import FACTS, read_line
from onchip.plans.program import (
    Blocks,
    Boxes,
    Cache,
    Group,
    Instruction,
    PinnedTensor,
    PinnedWeights,
    Plan,
    Rings,
    Section,
    Stage,
    State,
    TensorLayout,
    Tiling,
)
from onchip.plans.result import (
    MemoryUse,
    Moved,
    Result,
    Status,
    Timed,
)
from onchip.plans.text_nest import NestBlock
from onchip.plans.text_reach import reach_of
from onchip.plans.text_rows import RowsBlock
from onchip.plans.text_tiles import TileFacts
from onchip.plans.text_words import SECTION, TILED, Word, counts, integer, names, scalar, split

__all__ = ["from_text"]

T = TypeVar("T")
Direction = Literal["forward", "reverse"]

_SIZES = ("input", "output", "kernel", "stride", "padding", "dilation")
_GEOMETRY = ("geometry", *_SIZES, "groups", "layout", "traversal")
_KINDS = {word_of(kind): kind for kind in get_args(Instruction)}
_GROUP = ("scratch", "subgroups", "operators", "refills", "resident")


def from_text(content: str, *, where: str = "plan") -> Plan:
    """Return the plan in a text. Raises `PlanFormatError` naming the line, `ModelError` for a bad network."""
    return _Reader(where).read(content)


@dataclass
class _Facts:
    """The facts read so far."""

    texts: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    tensors: list[tuple[str, int, TensorKind]] = field(default_factory=list)
    patches: dict[str, Patches] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    operators: list[OperatorSpec] = field(default_factory=list)
    reaches: dict[str, Reach] = field(default_factory=dict)
    repeats: dict[str, str] = field(default_factory=dict)
    views: list[tuple[str, str, int]] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    records: list[Any] = field(default_factory=list)
    options: dict[str, Option] = field(default_factory=dict)
    rates: dict[str, Option] = field(default_factory=dict)
    result: dict[str, str] = field(default_factory=dict)
    sections: list[Section] = field(default_factory=list)
    memories: list[Memory] = field(default_factory=list)
    tiles: TileFacts = field(default_factory=TileFacts)
    program: list[Instruction] = field(default_factory=list)


class _Reader:
    def __init__(self, where: str) -> None:
        self.where, self.number, self.nests = where, 0, False

    def refuse(self, reason: str) -> PlanFormatError:
        return PlanFormatError(reason, where=self.where, item=f"line {self.number}")

    # -- the whole ---------------------------------------------------------------------------------------

    def read(self, content: str) -> Plan:
        facts, in_program, lines = _Facts(), False, self.lines(content)
        for words in lines:
            if words == [("program", False)] and not in_program:
                in_program = True
                continue
            try:
                if in_program:
                    facts.program.append(_instruction(words))
                elif words[0] in (("nest", False), ("rows", False)):
                    kind = words[0][0]
                    if not self.nests:
                        what = "a nest needs" if kind == "nest" else "rows need"
                        raise ValueError(f"{what} a file of format {NESTS}")
                    _block(facts, kind, words[1:], lines)
                else:
                    if words[0] in (("layout", False), ("repeats", False)) and not self.nests:
                        raise ValueError(f"{words[0][0]} needs a file of format {NESTS}")
                    _fact(facts, words)
            except ValueError as problem:
                raise self.refuse(str(problem)) from None
        for key in ("network", "chip", "budget", "program"):
            if not (in_program if key == "program" else key in facts.texts or key in facts.numbers):
                raise PlanFormatError("is missing", where=self.where, item=key)
        if unknown := facts.reaches.keys() - {op.name for op in facts.operators}:
            raise PlanFormatError("is of no operator", where=self.where, item=f"reach {min(unknown)}")
        if unknown := facts.repeats.keys() - {op.name for op in facts.operators}:
            raise PlanFormatError("is of no operator", where=self.where, item=f"repeats {min(unknown)}")
        return self.plan(facts)

    def lines(self, content: str) -> Iterator[list[Word]]:
        """Yield the words of every line that has any, after the first, which must name the format."""
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
                if words not in ([(FORMAT, False)], [(NESTS, False)]):
                    raise self.refuse(f"expected the line {FORMAT} or {NESTS}")
                self.nests, started = nests_format(words[0][0]), True
        if not started:
            raise PlanFormatError("is empty", where=self.where)

    def plan(self, facts: _Facts) -> Plan:
        def made(*kinds: type) -> tuple[Any, ...]:
            return tuple([record for record in facts.records if type(record) in kinds])

        network = Network.build(
            facts.texts["network"],
            facts.tensors,
            [
                replace(op, reach=facts.reaches.get(op.name), repeats=facts.repeats.get(op.name))
                for op in facts.operators
            ],
            facts.outputs,
            views=facts.views,
            **{key: facts.texts.get(key, default) for key, default in TEXTS.items()},
            patches=facts.patches,
            shapes=facts.shapes,
            where=self.where,
        )
        try:
            tiles = facts.tiles.rates()
        except ValueError as problem:
            raise PlanFormatError(str(problem), where=self.where, item="tiles") from None
        chip = plan_chip(
            facts.texts["chip"],
            facts.numbers["alignment"],
            facts.rates,
            facts.numbers.get("weights of the chip"),
            facts.memories,
            facts.numbers.get("accumulators of the chip"),
            tiles,
            where=self.where,
        )
        try:
            result = self.result(facts.result)
        except ValueError as problem:
            raise self.refuse(str(problem)) from None
        return Plan(
            network=network,
            chip=chip,
            budget=facts.numbers["budget"],
            program=tuple(facts.program),
            result=replace(result, memories=made(MemoryUse), moves=made(Moved)),
            groups=tuple(facts.groups),
            pins=made(PinnedTensor, PinnedWeights),
            state=made(State),
            caches=made(Cache),
            layouts=made(TensorLayout),
            options=facts.options,
            timing=made(Timed),
            sections=tuple(facts.sections),
        )

    def result(self, rows: dict[str, str]) -> Result:
        def refuse(key: str, reason: str) -> PlanFormatError:
            return PlanFormatError(reason, where=self.where, item=f"result {key}")

        kinds = {
            m.name: m.plain for m in members(Result) if m.plain in (int, float, str) or m.name == "status"
        }
        for key in (*rows, *(m.name for m in members(Result) if m.needed)):
            if key not in kinds or key not in rows:
                raise refuse(key, "is missing" if key in kinds else "is not known")
        stated, seconds = rows.pop("status"), scalar((rows.pop("seconds"), False))
        status: Status = "optimal" if stated == "optimal" else "feasible"
        if stated != status:
            raise refuse("status", f"{stated[:60]!r} is neither optimal nor feasible")
        if isinstance(seconds, str | bool | None):
            raise refuse("seconds", "is not a number")
        given: dict[str, Any] = {key: n if kinds[key] is str else integer(n) for key, n in rows.items()}
        return Result(status, seconds=seconds, **given)


_OF_CHIP = ((), ("weights",), ("accumulators",), ("weights", "accumulators"))
"""The figures, in bytes, that may stand behind a chip's alignment."""


# -- facts -----------------------------------------------------------------------------------------------


def _fact(facts: _Facts, words: list[Word]) -> None:
    texts = names(words)
    for length in (1, 2):
        known = FACTS.get(texts[:length])
        if known is not None and (record := read_line(words[length:], known)) is not None:
            facts.records.append(record)
            return
    match texts:
        case [key, text] if key == "network" or key in TEXTS:
            _once(facts.texts, key, text)
        case ["budget", size]:
            _once(facts.numbers, "budget", integer(size))
        case ["chip", name, alignment, *more] if tuple(more[::2]) in _OF_CHIP and len(more) % 2 == 0:
            _once(facts.texts, "chip", name)
            _once(facts.numbers, "alignment", integer(alignment))
            for key, value in zip(more[::2], more[1::2], strict=True):
                _once(facts.numbers, f"{key} of the chip", integer(value))
        case ["memory", name, size, *_]:
            facts.memories.append(_memory(name, integer(size), words[3:]))
        case ["rate", key, _]:
            _once(facts.rates, key, scalar(words[2]))
        case ["tensor", name, size, ("input" | "activation") as kind, *_]:
            facts.tensors.append((name, integer(size), kind))
            _stored(facts, name, texts[4:])
        case ["operator", name, type_, *_]:
            facts.operators.append(_operator(name, type_, words[3:]))
        case ["reach", name, *_]:
            _once(facts.reaches, name, reach_of(words[2:]))
        case ["repeats", name, of]:
            _once(facts.repeats, name, of)
        case ["view", name, of, offset]:
            facts.views.append((name, of, integer(offset)))
        case ["output", name]:
            facts.outputs.append(name)
        case ["group", name, *_]:
            facts.groups.append(_group(name, words[2:]))
        case ["section", name, first, end, *_]:
            facts.sections.append(_section(name, integer(first), integer(end), words[4:]))
        case ["option", key, _]:
            _once(facts.options, key, scalar(words[2]))
        case ["result", key, value]:
            _once(facts.result, key, value)
        case _:
            if not facts.tiles.line(words):
                raise ValueError(f"not understood: {' '.join(texts)[:80]}")


def _stored(facts: _Facts, name: str, words: Sequence[str]) -> None:
    """Note a tensor's words after its kind: `shape 1 16 28 28`, `patches` with five numbers, or both."""
    at = words.index("patches") if "patches" in words else len(words)
    shape, patches = words[:at], words[at + 1 :]
    if (shape and (shape[0] != "shape" or len(shape) == 1)) or (at < len(words) and len(patches) != 5):
        raise ValueError(f"not understood: {' '.join(words)[:80]}")
    if shape:
        _once(facts.shapes, name, tuple(map(integer, shape[1:])))
    if patches:
        _once(facts.patches, name, Patches(*map(integer, patches)))


def _memory(name: str, size: int, words: Sequence[Word]) -> Memory:
    rates: dict[str, float] = {}
    match [w for w, _ in words]:
        case ["storage", *_]:
            words, operands = words[1:], False
        case _:
            operands = True
    for (key, quoted), value in zip(words[::2], [*words[1::2], ("", False)], strict=False):
        rate = scalar(value)
        if quoted or key not in ("bytes_per_second", "picojoules_per_byte"):
            raise ValueError(f"expected a rate of a memory, found {key[:60]!r}")
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < LIMIT:
            raise ValueError(f"{key} takes a positive number")
        _once(rates, key, float(rate))
    return Memory(name, size, operands, **rates)


def _operator(name: str, type_: str, words: Sequence[Word]) -> OperatorSpec:
    lists = _lists(words, ("in", "out", "weights", "workspace", "macs", *_GEOMETRY))
    if "geometry" not in lists and lists.keys() & set(_GEOMETRY):
        raise ValueError("the sizes of a geometry come after `geometry` and its kind")
    return OperatorSpec(
        name,
        type_,
        names(lists.get("in", ())),
        names(lists.get("out", ())),
        _count(lists, "weights", 0),
        _count(lists, "workspace", 0),
        _geometry(lists) if "geometry" in lists else None,
        _count(lists, "macs", 0),
    )


def _geometry(lists: dict[str, list[Word]]) -> Geometry:
    sizes = {key: tuple(integer(w) for w, _ in lists.get(key, ())) for key in _SIZES}
    groups = _count(lists, "groups", 1)
    kind, layout = (names(lists.get(key, ())) for key in ("geometry", "layout"))
    traversal, pixels, channels = _steps(names(lists.get("traversal", ())))
    if len(kind) != 1 or layout not in ((), ("NCHW",), ("NHWC",)):
        raise ValueError("a geometry has one kind and layout NCHW or NHWC")
    return Geometry(
        kind[0],
        **sizes,
        groups=groups,
        layout="NHWC" if layout == ("NHWC",) else "NCHW",
        traversal=traversal,
        pixels=pixels,
        channels=channels,
    )


def _steps(words: tuple[str, ...]) -> tuple[Direction, int, int]:
    """Return (traversal, pixels and channels of a step) of a walk: `reverse pixels 4 channels 1`."""
    match words:
        case ():
            return "forward", 1, 0
        case [("forward" | "reverse") as traversal]:
            return traversal, 1, 0
        case [("forward" | "reverse") as traversal, "pixels", pixels, "channels", channels]:
            return traversal, integer(pixels), integer(channels)
    raise ValueError("a geometry has traversal forward or reverse, then `pixels N channels N` if need be")


def _group(name: str, words: Sequence[Word]) -> Group:
    first, quoted = words[0] if words else ("", True)
    own = () if quoted else TILED.get(first, ())
    stages: list[Stage] = []
    if own == TILED["rings"]:
        words, stages = _stages(words, (*own, *_GROUP, "traversal"))
        own = (*own, "traversal")
    lists = _lists(words, (*own, *_GROUP))
    return Group(
        name,
        names(lists.get("operators", ())),
        _count(lists, "scratch", None),
        _count(lists, "subgroups", 1),
        counts(lists.get("refills", ())),
        names(lists.get("resident", ())),
        _tiling(lists, stages),
    )


def _block(facts: _Facts, kind: str, first: Sequence[Word], lines: Iterator[list[Word]]) -> None:
    """Read the lines of a nest, or of rows, up to their `end`; they are those of the last group."""
    if not facts.groups or facts.groups[-1].tiling is not None:
        what = (
            "a nest follows the line of its group"
            if kind == "nest"
            else "rows follow the line of their group"
        )
        raise ValueError(f"{what}, which has no other tiling")
    block = NestBlock(first) if kind == "nest" else RowsBlock(first)
    for words in lines:
        if (tiling := block.line(words)) is not None:
            facts.groups[-1] = replace(facts.groups[-1], tiling=tiling)
            return
    raise ValueError(f"the {kind} has no `end`" if kind == "nest" else "the rows have no `end`")


def _stages(words: Sequence[Word], keywords: Sequence[str]) -> tuple[list[Word], list[Stage]]:
    """Return the words outside of any `stage N OP ...`, and the stages in their order."""
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
        raise ValueError("a stage has a number of rows, and then its operators")
    return rest, [Stage(tuple(stage[1:]), integer(stage[0])) for stage in found]


def _tiling(lists: dict[str, list[Word]], stages: Sequence[Stage]) -> Tiling | Blocks | Boxes | Rings | None:
    if any(lists.get(key) for key in ("tiling", "blocks", "rings", "keep_weights")):
        raise ValueError("tiling, blocks, rings and keep_weights take no words of their own")
    if "tiling" in lists:
        rows, channels, images = (_count(lists, key, None) for key in ("rows", "channels", "images"))
        try:
            return Tiling(rows, names(lists.get("streaming", ())), channels, images)
        except ValueError as problem:
            raise ValueError(f"a tiling {problem}") from None
    if "blocks" in lists:
        keys = ("rows", "columns", "output_channels", "channels")
        rows, columns, output_channels, channels = (_count(lists, key, None) for key in keys)
        return Blocks(rows, columns, output_channels, channels, "keep_weights" in lists)
    if "boxes" in lists:
        sizes, order = (lists.get(key, ()) for key in ("boxes", "order"))
        return Boxes(*(tuple(integer(n) for n, _ in numbers) for numbers in (sizes, order)))
    if "rings" in lists:
        fetched, traversal = (names(lists.get(key, ())) for key in ("fetched", "traversal"))
        if fetched not in (("rows",), ("columns",)) or traversal not in (("forward",), ("reverse",)):
            raise ValueError("rings have what is fetched, rows or columns, and traversal forward or reverse")
        return Rings(
            tuple(stages),
            _count(lists, "strips", None),
            "rows" if fetched == ("rows",) else "columns",
            "forward" if traversal == ("forward",) else "reverse",
        )
    return None


def _section(name: str, first: int, end: int, words: Sequence[Word]) -> Section:
    found: dict[str, list[str]] = {}
    branches: list[list[str]] = []
    current: list[str] | None = None
    for word, quoted in words:
        if quoted or word not in SECTION:
            if current is None:
                raise ValueError(f"expected one of {', '.join(SECTION)}; found {word[:60]!r}")
            current.append(word)
            continue
        current = []
        if word == "branch":
            branches.append(current)
        else:
            _once(found, word, current)
    for key, given in found.items():
        if len(given) != 1:
            raise ValueError(f"{key} takes one word")
    start, merge, stated = (found.get(key, [None])[0] for key in ("start", "merge", "processing"))
    processing: Literal["I", "II"] | None = "I" if stated == "I" else "II" if stated == "II" else None
    if stated != processing:
        raise ValueError(f"processing is I or II, not {str(stated)[:60]!r}")
    return Section(name, first, end, start, merge, tuple(map(tuple, branches)), processing)


# -- instructions ----------------------------------------------------------------------------------------


def _instruction(words: list[Word]) -> Any:
    kind = _KINDS.get(words[0][0])
    found = None if kind is None else read_line(words[1:], kind)
    if found is None:
        raise ValueError(f"{' '.join(names(words))[:80]} is no instruction")
    return found


# -- parts of lines --------------------------------------------------------------------------------------


def _once(table: dict[str, T], key: str, value: T) -> None:
    if key in table:
        raise ValueError(f"{key[:60]} is given twice")
    table[key] = value


def _lists(words: Sequence[Word], keywords: Sequence[str]) -> dict[str, list[Word]]:
    """Return the words after each keyword, up to the next one."""
    found: dict[str, list[Word]] = {}
    current: list[Word] | None = None
    for word, quoted in words:
        if not quoted and word in keywords:
            current = []
            _once(found, word, current)
        elif current is None:
            raise ValueError(f"expected one of {', '.join(keywords)}; found {word[:60]!r}")
        else:
            current.append((word, quoted))
    return found


def _count(lists: dict[str, list[Word]], key: str, default: int | None) -> int:
    words = lists.get(key)
    if words is None and default is not None:
        return default
    if words is None or len(words) != 1:
        raise ValueError(f"{key} takes one number")
    return integer(words[0][0])
