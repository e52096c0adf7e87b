"""The text form of a plan: one fact or instruction a line, so that plans diff and tests read well.

A line is words separated by spaces; a word that is not plain is written as a JSON string. `#` starts a
comment where a word could start. Sections come in any order; `program` is everything after that line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import msgspec

from onchip.errors import PlanFormatError
from onchip.network import Geometry, Network, OperatorSpec, TensorKind
from onchip.plan.json import FORMAT
from onchip.plan.program import (
    Alloc,
    Free,
    Group,
    Instruction,
    Load,
    Plan,
    PlanChip,
    Result,
    Run,
    Scratch,
    Store,
)

__all__ = ["from_text", "instruction_text", "to_text"]

_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./+\-]*", re.ASCII)
_WORD = re.compile(r'\s*(?:#.*|("(?:[^"\\]|\\.)*")|([^\s"#]\S*))', re.ASCII)
_KEYWORDS = frozenset({"in", "out", "over", "by", "streaming", "weights", "workspace", "geometry"})


def _word(name: str) -> str:
    return name if _PLAIN.fullmatch(name) and name not in _KEYWORDS else json.dumps(name)


def instruction_text(instruction: Instruction) -> str:
    """One instruction as its line: `alloc y @150528`."""
    match instruction:
        case Load(tensor, address):
            return f"load {_word(tensor)} @{address}"
        case Alloc(tensor, address, None, _):
            return f"alloc {_word(tensor)} @{address}"
        case Alloc(tensor, address, str(over), by):
            return f"alloc {_word(tensor)} @{address} over {_word(over)} by {by}"
        case Scratch(operator, address):
            return f"scratch {_word(operator)} @{address}"
        case Run(operator, ()):
            return f"run {_word(operator)}"
        case Run(operator, streaming):
            pieces = " ".join(f"{_word(t)}:{n}" for t, n in streaming)
            return f"run {_word(operator)} streaming {pieces}"
        case Store(tensor):
            return f"store {_word(tensor)}"
        case Free(tensor):
            return f"free {_word(tensor)}"
    raise AssertionError(instruction)


def to_text(plan: Plan) -> str:
    """The whole plan as text; `from_text` gives it back unchanged."""
    net = plan.network
    names = [t.name for t in net.tensors]
    lines = [FORMAT, f"network {_word(net.name)}"]
    for key in ("source", "sha256", "granularity", "element"):
        lines.append(f"{key} {_word(getattr(net, key))}")
    lines += [f"tensor {_word(t.name)} {t.bytes} {t.kind}" for t in net.tensors]
    for op in net.operators:
        line = f"operator {_word(op.name)} {_word(op.type)} in"
        line += "".join(f" {_word(names[t])}" for t in op.inputs) + " out"
        line += "".join(f" {_word(names[t])}" for t in op.outputs)
        line += f" weights {op.weight_bytes} workspace {op.workspace}"
        if op.geometry is not None:
            line += " geometry " + json.dumps(msgspec.json.encode(op.geometry).decode())
        lines.append(line)
    lines += [f"view {_word(names[v.tensor])} {_word(names[v.of])} {v.offset}" for v in net.views]
    lines += [f"output {_word(names[t])}" for t in net.outputs]
    lines += [f"chip {_word(plan.chip.name)} {plan.chip.alignment_bytes}", f"budget {plan.budget}"]
    for g in plan.groups:
        row = {"refills": dict(g.refills), "resident_weights": g.resident_weights}
        line = f"group {_word(g.name)} {g.scratch_bytes} {g.subgroups} {json.dumps(json.dumps(row))}"
        lines.append(line + "".join(f" {_word(n)}" for n in g.operators))
    lines += [f"option {_word(k)} {json.dumps(json.dumps(v))}" for k, v in plan.options.items()]
    lines += [f"result {f.name} {getattr(plan.result, f.name)}" for f in fields(Result)]
    lines.append("program")
    lines += ["  " + instruction_text(i) for i in plan.program]
    return "\n".join(lines) + "\n"


def from_text(content: str, *, where: str = "plan") -> Plan:
    """The plan in a text. Raises `PlanFormatError` naming the line, `ModelError` for no network."""
    return _Reader(where).read(content)


class _Reader:
    def __init__(self, where: str) -> None:
        self.where, self.number = where, 0

    def refuse(self, reason: str) -> PlanFormatError:
        return PlanFormatError(reason, where=self.where, item=f"line {self.number}")

    def words(self, line: str) -> list[tuple[str, bool]]:
        """The line's words, each with whether it was quoted."""
        found, at = [], 0
        while at < len(line.rstrip()):
            match = _WORD.match(line, at)
            if match is None:
                raise self.refuse("has an unclosed string")
            at = match.end()
            if match[1] is not None:
                try:
                    found.append((json.loads(match[1]), True))
                except ValueError:
                    raise self.refuse(f"{match[1][:60]} is not a JSON string") from None
            elif match[2] is not None:
                found.append((match[2], False))
        return found

    def integer(self, text: str) -> int:
        if not re.fullmatch(r"-?[0-9]{1,18}", text, re.ASCII):
            raise self.refuse(f"{text[:60]!r} is not a whole number")
        return int(text)

    def address(self, text: str) -> int:
        if not text.startswith("@"):
            raise self.refuse(f"expected an address like @0, found {text[:60]!r}")
        return self.integer(text[1:])

    def json(self, text: str) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise self.refuse(f"{text[:60]!r} is not JSON") from None

    def read(self, content: str) -> Plan:
        single: dict[str, str] = {}
        tensors: list[tuple[str, int, TensorKind]] = []
        operators: list[OperatorSpec] = []
        views: list[tuple[str, str, int]] = []
        outputs: list[str] = []
        groups: list[Group] = []
        options: dict[str, str | int | float | bool | None] = {}
        result: dict[str, str] = {}
        chip: PlanChip | None = None
        program: list[Instruction] | None = None
        for line, words in self.lines(content):
            if program is not None:
                program.append(self.instruction(words))
                continue
            match [w for w, _ in words]:
                case [("network" | "source" | "sha256" | "granularity" | "element" | "budget") as key, value]:
                    single[key] = value
                case ["tensor", name, size, ("input" | "activation") as kind]:
                    tensors.append((name, self.integer(size), kind))
                case ["operator", name, type_, *_]:
                    operators.append(self.operator(name, type_, words[3:]))
                case ["view", name, of, offset]:
                    views.append((name, of, self.integer(offset)))
                case ["output", name]:
                    outputs.append(name)
                case ["chip", name, alignment]:
                    chip = PlanChip(name, self.integer(alignment))
                case ["group", name, scratch, subgroups, row, *members]:
                    groups.append(self.group(name, scratch, subgroups, row, members))
                case ["option", key, value]:
                    scalar = self.json(value)
                    if not isinstance(scalar, str | int | float | bool | None):
                        raise self.refuse(f"option {key} must be a scalar")
                    options[key] = scalar
                case ["result", key, value]:
                    result[key] = value
                case ["program"]:
                    program = []
                case _:
                    raise self.refuse(f"not understood: {line.strip()[:80]}")
        for key in ("network", "budget"):
            if key not in single:
                raise PlanFormatError("is missing", where=self.where, item=key)
        if chip is None or program is None:
            raise PlanFormatError("is missing", where=self.where, item="chip" if chip is None else "program")
        network = Network.build(
            single["network"],
            tensors,
            operators,
            outputs,
            views=views,
            source=single.get("source", ""),
            sha256=single.get("sha256", ""),
            granularity=single.get("granularity", "op"),
            element=single.get("element", "int8"),
            where=self.where,
        )
        return Plan(
            network=network,
            chip=chip,
            budget=self.integer(single["budget"]),
            program=tuple(program),
            result=self.result(result),
            groups=tuple(groups),
            options=options,
        )

    def lines(self, content: str) -> Iterator[tuple[str, list[tuple[str, bool]]]]:
        started = False
        for number, line in enumerate(content.split("\n"), 1):
            self.number = number
            words = self.words(line)
            if not words:
                continue
            if not started:
                if [w for w, _ in words] != [FORMAT]:
                    raise self.refuse(f"expected the line {FORMAT!r}")
                started = True
                continue
            yield line, words
        if not started:
            raise PlanFormatError("is empty", where=self.where)

    def operator(self, name: str, type_: str, words: list[tuple[str, bool]]) -> OperatorSpec:
        lists: dict[str, list[str]] = {k: [] for k in ("in", "out", "weights", "workspace", "geometry")}
        current: list[str] | None = None
        for word, quoted in words:
            if not quoted and word in lists:
                current = lists[word]
            elif current is None:
                raise self.refuse(f"expected `in`, found {word[:60]!r}")
            else:
                current.append(word)
        for key in ("weights", "workspace", "geometry"):
            if len(lists[key]) > 1:
                raise self.refuse(f"{key} takes one value")
        geometry = None
        if lists["geometry"]:
            try:
                geometry = msgspec.json.decode(lists["geometry"][0], type=Geometry)
            except msgspec.DecodeError as problem:
                raise self.refuse(f"geometry: {problem}") from None
        weights, workspace = (self.integer((lists[k] or ["0"])[0]) for k in ("weights", "workspace"))
        return OperatorSpec(name, type_, lists["in"], lists["out"], weights, workspace, geometry)

    def group(self, name: str, scratch: str, subgroups: str, row: str, members: list[str]) -> Group:
        extra = self.json(row)
        try:
            refills = msgspec.convert(extra["refills"], dict[str, int])
            resident = msgspec.convert(extra["resident_weights"], tuple[str, ...])
        except (msgspec.ValidationError, KeyError, TypeError):
            raise self.refuse(
                "a group's fifth word is {refills: {operator: n}, resident_weights: [..]}"
            ) from None
        return Group(
            name,
            tuple(members),
            self.integer(scratch),
            self.integer(subgroups),
            tuple(refills.items()),
            resident,
        )

    def instruction(self, words: list[tuple[str, bool]]) -> Instruction:
        match [w for w, _ in words]:
            case ["load", tensor, address]:
                return Load(tensor, self.address(address))
            case ["alloc", tensor, address]:
                return Alloc(tensor, self.address(address))
            case ["alloc", tensor, address, "over", over, "by", by]:
                return Alloc(tensor, self.address(address), over, self.integer(by))
            case ["scratch", operator, address]:
                return Scratch(operator, self.address(address))
            case ["run", operator]:
                return Run(operator)
            case ["run", operator, "streaming", _, *_]:
                return Run(operator, self.streaming(words[3:]))
            case ["store", tensor]:
                return Store(tensor)
            case ["free", tensor]:
                return Free(tensor)
        raise self.refuse(f"{' '.join(w for w, _ in words)[:80]} is no instruction")

    def streaming(self, words: list[tuple[str, bool]]) -> tuple[tuple[str, int], ...]:
        # A plain name and its size are one word, `x:10`; a quoted name is a word, then `:10`.
        found: list[tuple[str, int]] = []
        rest = iter(words)
        for word, quoted in rest:
            name, _, size = (word, "", next(rest, ("", False))[0][1:]) if quoted else word.rpartition(":")
            found.append((name, self.integer(size)))
        return tuple(found)

    def result(self, rows: dict[str, str]) -> Result:
        try:
            return msgspec.convert(rows, Result, strict=False)
        except msgspec.ValidationError as problem:
            raise PlanFormatError(str(problem), where=self.where, item="result") from None
