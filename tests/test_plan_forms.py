"""The two written forms of a plan: both carry everything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.base.errors import PlanFormatError
from onchip.machines.chip import Memory
from onchip.network import Geometry, Network, OperatorSpec, Patches
from onchip.plans import (
    Alloc,
    Blocks,
    Cache,
    Free,
    Group,
    Instruction,
    Join,
    Leaf,
    Load,
    Loop,
    MemoryUse,
    Move,
    Moved,
    Nest,
    PinnedTensor,
    PinnedWeights,
    Plan,
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
    from_text,
    read_plan,
    to_json,
    to_text,
    write_plan,
)
from sample_plan import PLAN
from strategies import hostile_names, hostile_networks

FORMS: dict[str, tuple[Callable[[Plan], str], Callable[[str], Plan]]] = {
    "json": (to_json, from_json),
    "text": (to_text, from_text),
}

# -- any plan, legal or not --------------------------------------------------------------------------------

numbers = st.one_of(st.integers(-5, 100), st.integers(-(10**18) + 1, 10**18 - 1))
finite = st.floats(allow_nan=False, allow_infinity=False)
counts = st.lists(st.tuples(hostile_names, numbers), max_size=3, unique_by=lambda row: row[0]).map(tuple)
names = st.lists(hostile_names, max_size=3).map(tuple)

homes = st.none() | hostile_names | st.sampled_from(("in", "of", "over"))
instructions: st.SearchStrategy[Instruction] = st.one_of(
    st.builds(Load, hostile_names, numbers, homes),
    st.builds(Alloc, hostile_names, numbers, memory=homes),
    st.builds(Alloc, hostile_names, numbers, hostile_names, numbers, memory=homes),
    st.builds(
        lambda t, address, parts, memory: Alloc(t, address, parts=parts, memory=memory),
        hostile_names,
        numbers,
        st.lists(hostile_names, min_size=1, max_size=3, unique=True).map(tuple),
        homes,
    ),
    st.builds(Join, hostile_names),
    st.builds(Scratch, hostile_names, numbers, homes),
    st.builds(Move, hostile_names, numbers, hostile_names | st.just("in")),
    st.builds(Run, hostile_names, counts),
    st.builds(Store, hostile_names),
    st.builds(Free, hostile_names),
)
section_words = hostile_names | st.sampled_from(("start", "merge", "processing", "branch", "I", "of"))
sections = st.builds(
    Section, section_words, numbers, numbers, st.none() | section_words, st.none() | section_words,
    st.lists(st.lists(section_words, max_size=3).map(tuple), max_size=3).map(tuple),
    st.sampled_from((None, "I", "II")),
)  # fmt: skip
keywords = st.sampled_from((
    "tiling", "blocks", "rows", "channels", "keep_weights", "refills", "streaming", "rings", "stage",
    "fetched",
))  # fmt: skip
members = st.lists(hostile_names | keywords, max_size=3, unique=True).map(tuple)
nest_words = hostile_names | st.sampled_from(("for", "run", "end", "keep", "over", "slices", "nest", "x:1"))
nest_axes = st.lists(st.tuples(nest_words, numbers), max_size=3, unique_by=lambda row: row[0]).map(tuple)
nest_leaves = st.builds(
    Leaf, nest_words, st.lists(st.tuples(numbers, numbers), max_size=3).map(tuple), st.none() | nest_words
)
nest_keeps = st.lists(nest_words, max_size=3).map(tuple)
nest_bodies: st.SearchStrategy[tuple[Loop | Leaf, ...]] = st.recursive(
    st.lists(nest_leaves, max_size=2).map(tuple),
    lambda bodies: st.lists(
        nest_leaves | st.builds(Loop, nest_axes, numbers, bodies, nest_keeps), max_size=2
    ).map(tuple),
    max_leaves=6,
)
tilings = st.one_of(
    st.builds(Nest, nest_bodies, nest_keeps),
    st.builds(Tiling, numbers, members, numbers, numbers),
    st.builds(Blocks, numbers, numbers, numbers, numbers, st.booleans()),
    st.builds(
        Rings,
        st.lists(st.builds(Stage, members, numbers), max_size=3).map(tuple),
        numbers,
        st.sampled_from(("rows", "columns")),
        st.sampled_from(("forward", "reverse")),
    ),
)
sizes = st.lists(st.integers(0, 1 << 40), max_size=4).map(tuple)
geometries = st.builds(
    Geometry, hostile_names, sizes, sizes, sizes, sizes, st.lists(st.integers(-3, 3), max_size=4).map(tuple),
    sizes, st.integers(0, 99), st.sampled_from(("NCHW", "NHWC")), st.sampled_from(("forward", "reverse")),
    st.just(1) | st.integers(-3, 99), st.just(0) | st.integers(-3, 99),
)  # fmt: skip


@st.composite
def networks_with_geometry(draw: st.DrawFn) -> Network:
    plain = draw(hostile_networks(3))
    tensor = [t.name for t in plain.tensors]
    viewed = {t for v in plain.views for t in (v.tensor, v.of)}
    patches = {
        t.name: Patches(t.bytes, 1, side, 1, side)
        for t in plain.tensors
        if t.id not in viewed and draw(st.booleans())
        for side in (1 << draw(st.integers(0, 20)),)
    }
    return Network.build(
        plain.name,
        [
            (t.name, t.bytes * patches[t.name].width if t.name in patches else t.bytes, t.kind)
            for t in plain.tensors
        ],
        [
            OperatorSpec(
                op.name, op.type, [tensor[t] for t in op.inputs], [tensor[t] for t in op.outputs],
                op.weight_bytes, op.workspace, draw(st.none() | geometries), draw(st.integers(0, 10**18 - 1)),
            )
            for op in plain.operators
        ],
        [tensor[t] for t in plain.outputs],
        views=[(tensor[v.tensor], tensor[v.of], v.offset) for v in plain.views],
        source=plain.source,
        sha256=draw(hostile_names),
        granularity=draw(hostile_names),
        element=draw(hostile_names),
        patches=patches,
    )  # fmt: skip


rates = st.none() | st.floats(0, 1e18, exclude_min=True, exclude_max=True)
home_names = hostile_names | st.sampled_from(("in", "storage", "bytes_per_second"))
chip_memories = st.lists(st.builds(Memory, home_names, numbers, st.booleans(), rates, rates), max_size=3).map(
    tuple
)
uses = st.lists(st.builds(MemoryUse, home_names, numbers, numbers, numbers), max_size=3).map(tuple)
moves = st.lists(st.builds(Moved, home_names, home_names, numbers), max_size=3).map(tuple)
scalars = st.one_of(hostile_names, numbers, finite, st.booleans(), st.none())
plans = st.builds(
    Plan,
    networks_with_geometry(),
    st.builds(
        PlanChip,
        hostile_names,
        st.integers(1, 1 << 20),
        *[rates] * 6,
        st.none() | numbers,
        chip_memories,
        st.none() | st.integers(1, 8),
    ),
    numbers,
    st.lists(instructions, max_size=6).map(tuple),
    st.builds(
        Result,
        st.sampled_from(("optimal", "feasible")),
        *[numbers] * 9,
        finite,
        *[numbers | st.none()] * 10,
        uses,
        moves,
    ),
    st.lists(
        st.builds(
            Group, hostile_names, members, numbers, numbers, counts, names | members, st.none() | tilings
        ),
        max_size=2,
    ).map(tuple),
    st.dictionaries(
        hostile_names, st.one_of(hostile_names, numbers, finite, st.booleans(), st.none()), max_size=3
    ),
    st.lists(st.builds(Timed, numbers, numbers, numbers, numbers | st.none()), max_size=3).map(tuple),
    st.lists(
        st.builds(PinnedTensor, hostile_names, st.none() | numbers)
        | st.builds(PinnedWeights, hostile_names, numbers),
        max_size=3,
    ).map(tuple),
    st.lists(st.builds(State, hostile_names, hostile_names, numbers), max_size=2).map(tuple),
    st.lists(sections, max_size=3).map(tuple),
    st.lists(
        st.builds(Cache, hostile_names, numbers, numbers, numbers, st.none() | hostile_names), max_size=2
    ).map(tuple),
)


@pytest.mark.thorough
@pytest.mark.parametrize("form", FORMS)
@given(plan=plans)
@settings(max_examples=50)
def test_any_plan_survives_either_form(form: str, plan: Plan) -> None:
    write, read = FORMS[form]
    again = read(write(plan))
    assert again == plan
    # 1 == 1.0 == True: equality alone would let a type slip.
    assert {k: type(v) for k, v in again.options.items()} == {k: type(v) for k, v in plan.options.items()}
    assert write(again) == write(plan)


# -- a plan by hand ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["plan.json", "plan.txt", "plan"])
def test_a_file_is_told_apart_by_its_content(tmp_path: Path, name: str) -> None:
    write_plan(PLAN, tmp_path / name)
    assert read_plan(tmp_path / name) == PLAN
    other = tmp_path / "renamed.whatever"
    (tmp_path / name).rename(other)
    assert read_plan(other) == PLAN


def test_text_is_plain_where_names_are() -> None:
    text = to_text(PLAN)
    assert (
        'operator op Relu in x out "in" weights 3 workspace 2 macs 6 geometry elementwise input 1 4'
        " output 1 4\n" in text
    )
    assert "group g scratch 3 subgroups 2 operators op run refills op:2 resident run\n" in text
    assert (
        'group tiled tiling rows 2 channels 16 images 3 streaming "rows" "x y" scratch 5 subgroups 6'
        " operators op\n" in text
    )
    assert (
        "group blocked blocks rows 1 columns 2 output_channels 3 channels 4 keep_weights"
        ' scratch 5 subgroups 6 operators "rows" run\n' in text
    )
    assert (
        "group ringed rings strips 4 fetched columns traversal reverse stage 2 op rows stage 1"
        ' "stage" stage 3 scratch 5 subgroups 1 operators op "stage" resident run\n' in text
    )
    assert " geometry pool traversal reverse pixels 4 channels 2\n" in text
    assert '  run op streaming "x:1 y":3 k:4\n' in text
    assert 'tensor "a \\"b\\"\\n#" 4 activation patches 1 1 2 2 2\n' in text
    assert '  alloc "in" @8 of of "x y"\n  join op\n' in text
    assert "section stem 0 2\n" in text
    assert (
        'section "a b" 2 10 start "start" merge run processing II branch op "branch" branch branch "merge"\n'
        in text
    )
    assert from_text(text.replace("\n", "   # comment\r\n")) == PLAN


@pytest.mark.parametrize(
    "broken",
    [
        lambda: Alloc("t", 0, None, 4),
        lambda: Alloc("t", 0, "x", 0, ("y",)),
        lambda: Alloc("t", 0, parts=("y", "y")),
        lambda: Run("op", (("x", 1), ("x", 2))),
        lambda: Group("g", ("a",), 0, 1, (("a", 1), ("a", 2))),
        lambda: Tiling(1, ("a", "b", "a")),
        lambda: Loop((("a", 1), ("a", 2)), 1, ()),
    ],
)
def test_what_no_form_can_say_cannot_be_made(broken: Callable[[], object]) -> None:
    with pytest.raises(ValueError):
        broken()


def test_words_of_a_tiled_line_are_names_on_every_other_one() -> None:
    line = "group g scratch 3 subgroups 2 operators op run refills op:2 resident run\n"
    names = "group g scratch 3 subgroups 2 operators tiling rows refills blocks:2 resident keep_weights\n"
    assert line in to_text(PLAN)
    group = from_text(to_text(PLAN).replace(line, names)).groups[0]
    assert group == Group("g", ("tiling", "rows"), 3, 2, (("blocks", 2),), ("keep_weights",))
    assert names in to_text(replaced(groups=(group,)))


def with_tiling(tiling: Tiling | Blocks | Rings | Nest) -> Plan:
    return replaced(groups=(Group("g", ("op",), 0, 1, (), (), tiling),))


def replaced(**changes: object) -> Plan:
    return Plan(**{**{f: getattr(PLAN, f) for f in Plan.__dataclass_fields__}, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "plan",
    [
        replaced(budget=10**18),
        replaced(program=(Load("x", -(10**18)),)),
        replaced(program=(Run("op", (("x", 10**30),)),)),
        replaced(program=(Store("\ud800"),)),
        replaced(options={"\udfff": 1}),
        replaced(options={"a": float("inf")}),
        replaced(options={"a": 10**18}),
        replaced(result=Result("feasible", 1, 2, 3, 4, 5, 6, 7, 8, 9, float("nan"))),
        replaced(result=replace(PLAN.result, latency_picoseconds=10**18)),
        replaced(timing=(Timed(0, 0, 10**18),)),
        replaced(sections=(Section("s", 10**18, 0),)),
        replaced(sections=(Section("s", 0, -(10**18)),)),
        replaced(sections=(Section("\ud800", 0, 0),)),
        replaced(sections=(Section("s", 0, 0, "\ud800"),)),
        replaced(sections=(Section("s", 0, 0, "x", "y", (("a", "\ud800"),)),)),
        replaced(program=(Join("\ud800"),)),
        replaced(program=(Alloc("x", 0, parts=("\ud800",)),)),
        replaced(chip=PlanChip("c", 1, float("nan"))),
        replaced(chip=PlanChip("c", 1, 0.0)),
        with_tiling(Tiling(10**18)),
        with_tiling(Tiling(1, ("\ud800",))),
        with_tiling(Tiling(1, (), -(10**18))),
        with_tiling(Tiling(1, (), 1, 10**30)),
        with_tiling(Blocks(10**18, 1, 1, 1)),
        with_tiling(Blocks(1, 10**18, 1, 1)),
        with_tiling(Blocks(1, 1, 10**18, 1)),
        with_tiling(Blocks(1, 1, 1, 1.5)),  # type: ignore[arg-type]
        with_tiling(Rings((), 10**18)),
        with_tiling(Nest((Leaf("a", ((0, 10**18),)),))),
        with_tiling(Nest((Leaf("a", (), "\ud800"),))),
        with_tiling(Nest((Leaf("\ud800"),))),
        with_tiling(Nest((), ("\ud800",))),
        with_tiling(Nest((Loop((("a", 10**18),), 1, ()),))),
        with_tiling(Nest((Loop((("\ud800", 1),), 1, ()),))),
        with_tiling(Nest((Loop((), -(10**18), ()),))),
        with_tiling(Nest((Loop((), 1.5, ()),))),  # type: ignore[arg-type]
        with_tiling(Nest((Loop((), 1, (Loop((), 1, (), ("\ud800",)),)),))),
        with_tiling(Rings((Stage(("a",), 10**18),))),
        with_tiling(Rings((Stage(("\ud800",), 1),))),
        replaced(result=Result("feasible", 10**18, 2, 3, 4, 5, 6, 7, 8, 9, 1)),
    ],
)
def test_what_would_not_come_back_is_not_written(form: str, plan: Plan) -> None:
    with pytest.raises(PlanFormatError):
        FORMS[form][0](plan)
