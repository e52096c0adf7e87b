"""Records as JSON and text: what is derived from their fields is what files have always said."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from onchip.base.codec import decode, from_wire, to_object, wire_of
from onchip.base.errors import InputError, OnchipError, PlanFormatError
from onchip.base.fields import AT, WRITTEN, in_order, members, wire
from onchip.machines.chip import Memory
from onchip.network import Constant, Geometry, OperatorSpec, Patches, Reach, Side, Tensor
from onchip.network.json import WireNetwork, wire_network
from onchip.plans import (
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
    PinnedTensor,
    PinnedWeights,
    PlanChip,
    Result,
    Rings,
    Run,
    Scratch,
    Section,
    Stage,
    State,
    Store,
    Tiling,
    Timed,
    from_json,
    to_json,
    to_text,
)
from onchip.plans.lines import line_of, read_line, row_reader, to_row
from onchip.plans.text_words import split
from sample_plan import PLAN
from strategies import hostile_names

# -- what files say ----------------------------------------------------------------------------------------

ROWS: list[tuple[Any, str, str]] = [
    (Load("x", 0), '["load","x",0]', "load x @0"),
    (Load("x", 8, "m"), '["load","x",8,{"in":"m"}]', "load x @8 in m"),
    (Alloc("y", -1), '["alloc","y",-1]', "alloc y @-1"),
    (Alloc("y", 8, "x"), '["alloc","y",8,{"over":"x","by":0}]', "alloc y @8 over x by 0"),
    (
        Alloc("y", 8, "in", -4, memory="m"),
        '["alloc","y",8,{"over":"in","by":-4,"in":"m"}]',
        'alloc y @8 in m over "in" by -4',
    ),
    (
        Alloc("y", 8, parts=("of", "a b"), memory="m"),
        '["alloc","y",8,{"of":["of","a b"],"in":"m"}]',
        'alloc y @8 in m of of "a b"',
    ),
    (Scratch("f", 8, "m"), '["scratch","f",8,{"in":"m"}]', "scratch f @8 in m"),
    (Move("x", 8, "m"), '["move","x",8,{"in":"m"}]', "move x @8 in m"),
    (Run("f"), '["run","f"]', "run f"),
    (
        Run("f", (("x", 4), ("a b", 5))),
        '["run","f",{"streaming":{"x":4,"a b":5}}]',
        'run f streaming x:4 "a b":5',
    ),
    (Store("x"), '["store","x"]', "store x"),
    (Free("x"), '["free","x"]', "free x"),
    (Join("f"), '["join","f"]', "join f"),
]

LINES: list[tuple[Any, str]] = [
    (MemoryUse("m", 1, 2, 3), "used m 1 2 3"),
    (Moved("a", "b c", 3), 'moved a "b c" 3'),
    (PinnedTensor("x"), "pin tensor x"),
    (PinnedTensor("x", 0), "pin tensor x @0"),
    (PinnedWeights("f", 8), "pin weights f @8"),
    (State("h", "g", 8), "state h g @8"),
    (Timed(0, 1, 2), "time 0 1 2"),
    (Timed(0, 1, 2, 0), "time 0 1 2 0"),
]

OBJECTS: list[tuple[Any, str]] = [
    (Memory("m", 4), '{"name":"m","bytes":4}'),
    (Memory("m", 4, False, 1.0), '{"name":"m","bytes":4,"operands":false,"bytes_per_second":1.0}'),
    (MemoryUse("m", 1, 2, 3), '{"memory":"m","peak_bytes":1,"extent_bytes":2,"accessed_bytes":3}'),
    (Moved("a", "b", 3), '{"source":"a","target":"b","bytes":3}'),
    (PinnedTensor("x"), '{"tensor":"x"}'),
    (State("h", "g", 8), '{"input":"h","output":"g","address":8}'),
    (Section("s", 0, 2), '{"name":"s","first":0,"end":2}'),
    (
        Section("s", 0, 2, "x", "f", (("g",), ()), "II"),
        '{"name":"s","first":0,"end":2,"start":"x","merge":"f","branches":[["g"],[]],"processing":"II"}',
    ),
    (Group("g", ("f",), 3), '{"name":"g","operators":["f"],"scratch_bytes":3}'),
    (
        Group("g", ("f",), 3, 2, (("f", 2),), ("f",), Tiling(1)),
        '{"name":"g","operators":["f"],"scratch_bytes":3,"subgroups":2,"refills":{"f":2},'
        '"resident_weights":["f"],"tiling":{"rows":1,"channels":1,"images":1,"streamed":[]}}',
    ),
    (
        Group("g", (), 3, tiling=Blocks(1, 2, 3, 4)),
        '{"name":"g","operators":[],"scratch_bytes":3,'
        '"blocks":{"rows":1,"columns":2,"output_channels":3,"channels":4,"keep_weights":false}}',
    ),
    (
        Group("g", (), 3, tiling=Boxes((1, 2), (1, 0))),
        '{"name":"g","operators":[],"scratch_bytes":3,"boxes":{"sizes":[1,2],"order":[1,0]}}',
    ),
    (
        Group("g", (), 3, tiling=Rings((Stage(("f",)),))),
        '{"name":"g","operators":[],"scratch_bytes":3,"rings":{"stages":[{"operators":["f"],"rows":1}],'
        '"strips":1,"fetched":"rows","traversal":"forward"}}',
    ),
    (PlanChip("c"), '{"name":"c","alignment_bytes":1}'),
    (
        PlanChip("c", 4, 1.0, weight_scratchpad_bytes=3, memories=(Memory("m", 4),)),
        '{"name":"c","alignment_bytes":4,"dram_bytes_per_second":1.0,"weight_scratchpad_bytes":3,'
        '"memories":[{"name":"m","bytes":4}]}',
    ),
    (
        Result("feasible", 1, 2, 3, 4, 5, 6, 7, 8, 9, 0.5, macs=0, moves=(Moved("a", "b", 3),), version="1"),
        '{"status":"feasible","traffic_bytes":1,"spill_bytes":2,"reload_bytes":3,"compulsory_bytes":4,'
        '"weight_bytes":5,"dram_bytes":6,"lower_bound_bytes":7,"peak_bytes":8,"extent_bytes":9,"seconds":0.5,'
        '"macs":0,"moves":[{"source":"a","target":"b","bytes":3}],"version":"1"}',
    ),
    (Tensor(7, "x", 4, "input"), '{"name":"x","bytes":4,"kind":"input"}'),
    (
        Tensor(7, "x", 4, "input", Patches(1, 1, 2, 2, 2)),
        '{"name":"x","bytes":4,"kind":"input","patches":[1,1,2,2,2]}',
    ),
    (
        OperatorSpec("f", "F", ("x",), ("y",), 3, geometry=Geometry("pool", (1, 2), pixels=4)),
        '{"name":"f","type":"F","inputs":["x"],"outputs":["y"],"weight_bytes":3,'
        '"geometry":{"kind":"pool","input":[1,2],"pixels":4}}',
    ),
    (
        OperatorSpec("f", "", (), ("y",), reach=Reach((4,), ((Side(4, 0),), ()), (Constant("w", 3),), (2,))),
        '{"name":"f","type":"","inputs":[],"outputs":["y"],'
        '"reach":{"output":[4],"reads":[[[4,0,1,0,1,1]],[]],"weights":[{"name":"w","bytes":3}],"sums":[2]}}',
    ),
]


def test_every_kind_of_record_is_here() -> None:
    assert {type(record) for record, _, _ in ROWS} == set(get_args(Instruction))


@pytest.mark.parametrize(("record", "row", "line"), ROWS, ids=repr)
def test_instructions_are_written_and_read(record: Any, row: str, line: str) -> None:
    assert msgspec.json.encode(to_row(record)).decode() == row
    assert row_reader(get_args(Instruction))(json.loads(row)) == record
    assert line_of(record) == line
    assert read_line(split(line)[1:], type(record)) == record


@pytest.mark.parametrize(("record", "line"), LINES, ids=repr)
def test_facts_are_written_and_read(record: Any, line: str) -> None:
    assert line_of(record) == line
    assert read_line(split(line)[2 if line.startswith("pin") else 1 :], type(record)) == record


@pytest.mark.parametrize(("record", "written"), OBJECTS, ids=repr)
def test_objects_are_written_and_read(record: Any, written: str) -> None:
    assert msgspec.json.encode(to_object(record)).decode() == written
    if not isinstance(record, Tensor):  # its id is in no file
        wire = decode(written.encode(), wire_of(type(record)), where="f", error=InputError)
        assert from_wire(type(record), wire) == record


# -- a field of any type -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Probe:
    tensor: str
    address: int = field(metadata=AT)
    early: int = 0
    rate: float | None = None
    quiet: bool = False
    way: Literal["up", "down"] = "up"
    other: str | None = field(default=None, metadata=wire("instead"))
    along: int = field(default=0, metadata=wire(beside="other"))
    sizes: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    counts: tuple[tuple[str, int], ...] = ()


words = hostile_names | st.sampled_from([m.key for m in members(Probe)])
numbers = st.integers(-(10**18) + 1, 10**18 - 1)
probes = st.builds(
    lambda along, **rest: Probe(along=along if rest["other"] is not None else 0, **rest),
    tensor=words,
    address=numbers,
    early=numbers,
    rate=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    quiet=st.booleans(),
    way=st.sampled_from(("up", "down")),
    other=st.none() | words,
    along=numbers,
    sizes=st.lists(numbers, max_size=3).map(tuple),
    names=st.lists(words, max_size=3).map(tuple),
    counts=st.lists(st.tuples(words, numbers), max_size=3, unique_by=lambda row: row[0]).map(tuple),
)


@given(probes)
@example(Probe("x", 8, names=("names", "counts"), sizes=(1,), counts=(("names", 1),)))
def test_a_field_of_any_type_is_written_and_read(probe: Probe) -> None:
    row = json.loads(msgspec.json.encode(to_row(probe)))
    assert row_reader((Probe,))(row) == probe
    assert read_line(split(line_of(probe))[1:], Probe) == probe


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"early": True},
        {"early": 10**18},
        {"early": None},
        {"rate": "1"},
        {"quiet": 1},
        {"way": "left"},
        {"instead": "x"},
        {"along": 3},
        {"sizes": []},
        {"sizes": [1.0]},
        {"names": "x"},
        {"counts": {"x": 10**18}},
        {"other": "x"},
    ],
)
def test_attributes_that_say_something_else_are_refused(attributes: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        row_reader((Probe,))(["probe", "x", 8, attributes])


@pytest.mark.parametrize(
    "line",
    [
        "probe x", "probe x 8", "probe x @8 early", "probe x @8 early x", "probe x @8 way left",
        "probe x @8 instead y", "probe x @8 along 3", "probe x @8 sizes", "probe x @8 names",
        "probe x @8 counts x", "probe x @8 quiet quiet", 'probe x @8 "early" 3', "probe x @8 rate yes",
        "probe x @8 counts x:1 early 3",
    ],
)  # fmt: skip
def test_lines_that_say_something_else_are_refused(line: str) -> None:
    try:
        assert read_line(split(line)[1:], Probe) is None
    except ValueError as problem:
        assert str(problem).isprintable()  # noqa: PT017


# -- what no file can hold ---------------------------------------------------------------------------------


def broken() -> Iterator[Any]:
    """Every instruction with one number too large, or one name that is no text."""
    for record in (*[record for record, _, _ in ROWS], Alloc("y", 8, "x", 4)):
        for m in members(type(record)):
            held = getattr(record, m.name)
            for wrong in _wrong(held):
                with contextlib.suppress(ValueError):
                    yield replace(record, **{m.name: wrong})


def _wrong(held: Any) -> tuple[Any, ...]:
    if not held and held != 0:
        return ()
    if isinstance(held, tuple) and isinstance(held[0], tuple):
        return (("\ud800", 1),), (("x", 10**18),)
    if isinstance(held, tuple):
        return (("\ud800",),)
    return (10**18,) if isinstance(held, int) else ("\ud800",)


@pytest.mark.parametrize("write", [to_json, to_text])
def test_no_instruction_is_written_that_would_not_come_back(write: Any) -> None:
    wrong = list(broken())
    assert {type(record) for record in wrong} == set(get_args(Instruction))
    for record in wrong:
        with pytest.raises(PlanFormatError):
            write(replace(PLAN, program=(Store("x"), record)))


# -- keys that are there twice -----------------------------------------------------------------------------


class Pairs(list[Any]):
    """An object, with its keys in order and as often as they are there."""


def dump(value: Any) -> str:
    if isinstance(value, Pairs):
        return "{" + ",".join(f"{json.dumps(k)}:{dump(v)}" for k, v in value) + "}"
    return f"[{','.join(map(dump, value))}]" if isinstance(value, list) else json.dumps(value)


def objects(value: Any) -> Iterator[Pairs]:
    if isinstance(value, Pairs):
        yield value
        for _, held in value:
            yield from objects(held)
    elif isinstance(value, list):
        for held in value:
            yield from objects(held)


@pytest.mark.parametrize("escaped", [False, True])
def test_a_key_that_is_there_twice_is_found_anywhere(escaped: bool) -> None:
    top = json.loads(to_json(PLAN), object_pairs_hook=Pairs)
    for one in objects(top):
        for n in range(len(one)):
            one.insert(n, one[n])
            content = dump(top)
            if escaped:  # as many colons as without the repetition
                content = content.replace('"name":"n"', '"name":"\\u003a"', 1)
            with pytest.raises(OnchipError, match="is given twice"):
                from_json(content)
            del one[n]
    assert from_json(dump(top)) == PLAN


def test_defaults_that_are_stated_are_no_repetition() -> None:
    top = json.loads(msgspec.json.encode(wire_network(PLAN.network)))
    stated = {**top, "granularity": "op", "element": "int8", "format": "onchip.network/1"}
    for op in stated["operators"]:
        op.update({"macs": op.get("macs", 0), "reach": None})
    content = json.dumps(stated).encode()
    assert decode(content, WireNetwork, where="f", error=InputError).granularity == "op"
    with pytest.raises(InputError, match="'macs' is given twice"):
        decode(
            content.replace(b'"macs": 6', b'"macs": 6, "macs": 6'), WireNetwork, where="f", error=InputError
        )


# -- a new field, a new kind -------------------------------------------------------------------------------


def test_a_new_field_and_a_new_kind_of_instruction_are_stated_once() -> None:
    """JSON, text, their readers and the refusal of what does not fit need an edit of the records only."""
    script = Path(__file__).with_name("edited_program.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "['wait', 3]",
        "wait 3",
        "['wait', 4, {'until': 'in', 'speed': -1.5}]",
        'wait 4 until "in" speed -1.5',
        "['free', 'x', {'after': ('y', 'a b')}]",
        'free x after y "a b"',
        "['free', 'x']",
        "free x",
        *["program[0]: 1000000000000000000 does not fit a plan file"] * 2,
        *["program[0]: nan does not fit a plan file"] * 2,
        *["\\ud800: a name with a lone surrogate does not fit a plan file"] * 4,
    ]


Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


@dataclass(frozen=True, slots=True)
class Part:
    share: Share
    note: str = ""


@in_order
@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    name: str
    size: Share = field(default=1.0, metadata=WRITTEN)
    parts: Annotated[Mapping[str, Part], msgspec.Meta(max_length=2)]
    rows: Mapping[str, Sequence[tuple[str, int]]] = field(default_factory=dict, metadata=WRITTEN)


def test_a_record_in_order_has_records_by_name_and_limits() -> None:
    record = Whole(name="n", parts={"b": Part(0.5), "a": Part(0.25, "x")}, rows={"r": (("s", 1),)})
    written = json.dumps(to_object(record))
    assert written == (
        '{"name": "n", "size": 1.0, "parts": {"b": {"share": 0.5}, "a": {"share": 0.25, "note": "x"}},'
        ' "rows": {"r": [["s", 1]]}}'
    )

    def read(text: str) -> Any:
        wire = decode(text.encode(), wire_of(Whole), where="f", error=InputError)
        return from_wire(Whole, wire)

    assert read(written) == record
    assert read('{"name": "n", "parts": {}}') == Whole(name="n", parts={})
    for wrong in (
        written.replace("0.5", "1.5"),
        written.replace('"size": 1.0', '"size": -1'),
        written.replace('"parts": {', '"parts": {"c": {"share": 0},'),
        written.replace('"note"', '"notes"'),
    ):
        with pytest.raises(InputError):
            read(wrong)
