"""Plan files and networks that are wrong, truncated or malicious: one clear error each, never a traceback."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from onchip.base.errors import ModelError, OnchipError, PlanFormatError
from onchip.network import Network, OperatorSpec
from onchip.plans import Plan, from_json, from_text, read_plan, to_json, to_text
from sample_plan import PLAN

FORMS: dict[str, tuple[Callable[[Plan], str], Callable[[str], Plan]]] = {
    "json": (to_json, from_json),
    "text": (to_text, from_text),
}

# -- files -----------------------------------------------------------------------------------------


def json_with(path: str, value: object) -> str:
    """The plan's JSON with one value put in."""
    top = json.loads(to_json(PLAN))
    *way, last = path.split(".")
    at = top
    for key in way:
        at = at[int(key)] if isinstance(at, list) else at[key]
    if isinstance(at, list):
        at[int(last)] = value
    else:
        at[last] = value
    return json.dumps(top)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("program.0", ["load", "x", True]),
        ("program.0", ["load", "x", 1.0]),
        ("program.0", ["load", "x", 10**30]),
        ("program.0", ["load", "x"]),
        ("program.0", ["jump", "x"]),
        ("program.0", []),
        ("program.0", ["alloc", "x", 0, {"over": "y", "by": 0, "more": 1}]),
        ("program.0", ["alloc", "x", 0, {"of": []}]),
        ("program.0", ["alloc", "x", 0, {"of": "y"}]),
        ("program.0", ["alloc", "x", 0, {"of": ["y", 1]}]),
        ("program.0", ["alloc", "x", 0, {"of": ["y", ["z"]]}]),
        ("program.0", ["alloc", "x", 0, {"of": ["y", "y"]}]),
        ("program.0", ["alloc", "x", 10**30, {"of": ["y"]}]),
        ("program.0", ["alloc", "x", 0, {"of": ["y"], "by": 0}]),
        ("program.0", ["join"]),
        ("program.0", ["join", 1]),
        ("program.0", ["join", "op", {}]),
        ("program.0", ["run", "op", {"streaming": {"x": True}}]),
        ("program.0", ["run", "op", {"streaming": [["x", 1]]}]),
        ("program.0", ["run", 10**30]),
        ("program.0", [[[[]]], {"a": 10**40}]),
        ("program.0", ["load", "x", 0, {"in": 1}]),
        ("program.0", ["load", "x", 0, {"in": "m", "by": 0}]),
        ("program.0", ["load", "x", 0, "m"]),
        ("program.0", ["move", "x", 0]),
        ("program.0", ["move", "x", 0, {}]),
        ("program.0", ["move", "x", True, {"in": "m"}]),
        ("program.0", ["move", "x", 0, {"in": "m"}, {"in": "m"}]),
        ("program.0", ["free", "x", {"in": "m"}]),
        ("chip.memories", 3),
        ("chip.memories", [{"name": "m"}]),
        ("chip.memories.0.bytes", 10**30),
        ("chip.memories.0.bytes", True),
        ("chip.memories.0.operands", 1),
        ("chip.memories.0.bytes_per_second", 0),
        ("chip.memories.0.bytes_per_second", "fast"),
        ("chip.memories.0.more", 1),
        ("result.memories", [{"memory": "m"}]),
        ("result.memories.0.peak_bytes", 10**30),
        ("result.moves.0.bytes", 1.5),
        ("result.move_bytes", 10**30),
        ("budget", 10**30),
        ("budget", 1.5),
        ("chip.alignment_bytes", 0),
        ("chip.extra", 1),
        ("result.extra", 1),
        ("result.seconds", None),
        ("result.status", "perfect"),
        ("result.traffic_bytes", True),
        ("options.a", [1]),
        ("options.a", 10**30),
        ("groups.0.refills", {"op": 10**30}),
        ("groups.1.tiling", 3),
        ("groups.1.tiling", []),
        ("groups.1.tiling", {}),
        ("groups.1.tiling.rows", 10**30),
        ("groups.1.tiling.rows", 1.5),
        ("groups.1.tiling.rows", True),
        ("groups.1.tiling.images", None),
        ("groups.1.tiling.more", 1),
        ("groups.1.tiling.streamed", ["a", "a"]),
        ("groups.1.tiling.streamed", "x"),
        ("groups.1.blocks", {"rows": 1, "columns": 1, "output_channels": 1, "channels": 1}),
        ("groups.2.blocks.columns", -(10**18)),
        ("groups.2.blocks.keep_weights", 1),
        ("groups.2.blocks.more", 1),
        ("groups.2.rings", {"stages": [], "strips": 1, "fetched": "rows", "traversal": "forward"}),
        ("groups.3.rings.stages", 1),
        ("groups.3.rings.stages", [["op"]]),
        ("groups.3.rings.stages", [{"operators": ["op"]}]),
        ("groups.3.rings.stages", [{"operators": ["op"], "rows": 10**18}]),
        ("groups.3.rings.stages", [{"operators": ["op"], "rows": True}]),
        ("groups.3.rings.strips", None),
        ("groups.3.rings.fetched", "diagonals"),
        ("groups.3.rings.traversal", "up"),
        ("groups.3.rings.more", 1),
        ("network.operators.1.geometry.pixels", 1.5),
        ("network.operators.1.geometry.channels", 10**18),
        ("network.tensors.0.bytes", 10**30),
        ("network.tensors.0.bytes", 0),
        ("network.tensors.0.name", "in"),
        ("network.tensors.0.patches", 3),
        ("network.tensors.0.patches", []),
        ("network.tensors.0.patches", [1, 2, 2, 2]),
        ("network.tensors.0.patches", [1, 2, 2, 2, 2, 2]),
        ("network.tensors.0.patches", [1, 2, 2, 2, True]),
        ("network.tensors.0.patches", [1, 2, 2, 2, 0]),
        ("network.tensors.0.patches", [1, 2, 2, 2, 10**30]),
        ("network.tensors.0.patches", [10**12, 10**12, 10**12, 10**12, 10**12]),
        ("network.tensors.0.patches", [1, 3, 2, 2, 2]),
        ("network.tensors.1.patches", [1, 1, 1, 2, 2]),
        ("sections", 3),
        ("sections", [1]),
        ("sections", [{"name": "s", "first": 0}]),
        ("sections", [{"name": "s", "first": 0, "end": True}]),
        ("sections", [{"name": "s", "first": 0, "end": 10**30}]),
        ("sections.1.processing", "III"),
        ("sections.1.branches", "op"),
        ("sections.1.branches", ["op"]),
        ("sections.1.start", 1),
        ("sections.1.more", 1),
        ("network.operators.0.geometry.groups", -1),
        ("network.operators.0.geometry.padding", [10**17]),
        ("network.extra", 1),
        ("network.format", "onchip.network/2"),
        ("format", "onchip.plan/3"),
        ("extra", 1),
    ],
)
def test_json_that_says_something_else_is_refused(path: str, value: object) -> None:
    with pytest.raises(OnchipError) as refusal:
        from_json(json_with(path, value), where="p.json")
    assert "p.json" in str(refusal.value)


@pytest.mark.parametrize(
    "content",
    [
        "", "{", "[]", "null", "{}", "[" * 100_000, '{"a":' * 100_000, '{"budget": NaN}', '{"a": "\ud800"}',
        '{"budget": 1' + "0" * 10_000 + "}", "\ufeff{}",
    ],
)  # fmt: skip
def test_what_is_no_json_plan_is_refused(content: str) -> None:
    with pytest.raises(PlanFormatError):
        from_json(content)


def test_a_key_that_is_there_twice_is_refused() -> None:
    twice = to_json(PLAN).replace('"budget": 10', '"budget": 10, "budget": 20')
    with pytest.raises(PlanFormatError, match="'budget' is given twice"):
        from_json(twice)
    twice = to_json(PLAN).replace('"k":4', '"k":4,"k":5')
    with pytest.raises(PlanFormatError, match="'k' is given twice"):
        from_json(twice)


@pytest.mark.parametrize("escape", ["\\ud800", "\\udc00", "\\ud800x", "\\udc00\\ud800"])
def test_a_lone_surrogate_is_no_name(escape: str) -> None:
    for text in (to_json(PLAN), to_text(PLAN)):
        read = from_json if text[0] == "{" else from_text
        changed = text.replace('a \\"b\\"', escape)
        assert changed != text
        with pytest.raises(OnchipError):
            read(changed)


TEXT = to_text(PLAN)


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("onchip.plan/1", "onchip.plan/3"),
        ("onchip.plan/1", ""),
        ("network n", ""),
        ("network n", "network n m"),
        ("network n", "network n\nnetwork n"),
        ("budget 10", "budget 1e3"),
        ("budget 10", "budget 1" + "0" * 20),
        ("budget 10", "budget 10\nbudget 10"),
        ("chip generic 4", "chip generic 0"),
        ("chip generic 4", ""),
        ("tensor x 4 input", "tensor x 4 output"),
        ("tensor x 4 input", "tensor x -4 input"),
        ("tensor x 4 input", 'tensor "x 4 input'),
        ("tensor x 4 input", "tensor x 4 input patches"),
        ("tensor x 4 input", "tensor x 4 input patches 1 2 2 2"),
        ("tensor x 4 input", "tensor x 4 input patches 1 2 2 2 2 2"),
        ("tensor x 4 input", "tensor x 4 input patches 1 2 2 2 x"),
        ("tensor x 4 input", "tensor x 4 input patches 1 2 2 2 0"),
        ("tensor x 4 input", "tensor x 4 input patches 1 2 2 2 -2"),
        ("tensor x 4 input", "tensor x 4 input patches 1 3 2 2 2"),
        ("tensor x 4 input", "tensor x 4 input patches 999999999999 999999999999 1 1 1"),
        ("view half in 2", ""),
        ("option b 1.5", "option b NaN"),
        ("option b 1.5", "option b 1e999"),
        ("option b 1.5", "option b []"),
        ("option b 1.5", "option b x"),
        ("option b 1.5", "option b " + "[" * 100_000),
        ("option b 1.5", "option b 1\noption b 1"),
        ("result status feasible", ""),
        ("result status feasible", "result status perfect"),
        ("result seconds 0.1", "result seconds inf"),
        ("result seconds 0.1", "result seconds true"),
        ("result seconds 0.1", "result seconds 0.1\nresult speed 1"),
        ("result spill_bytes 2", "result spill_bytes 2.0"),
        ("program", ""),
        ("  load x @0", "  load x 0"),
        ("  load x @0", "  load x @0x1"),
        ("  load x @0", "  load x @٣"),
        ("  load x @0", "  jump x"),
        ('  load x @0 in "in"', "  load x @0 in"),
        ('  load x @0 in "in"', "  load x @0 on m"),
        ('  load x @0 in "in"', "  load x @0 in m n"),
        ('  move "in" @4 in "in"', '  move "in" @4'),
        ('  move "in" @4 in "in"', '  move "in" @4 "in" m'),
        ('memory "in" 4', "memory"),
        ('memory "in" 4', "memory m"),
        ('memory "in" 4', "memory m -x"),
        ('memory "in" 4', "memory m 4 storage storage"),
        ('memory "in" 4', "memory m 4 bytes_per_second"),
        ('memory "in" 4', "memory m 4 bytes_per_second 0"),
        ('memory "in" 4', "memory m 4 bytes_per_second 1 bytes_per_second 1"),
        ('memory "in" 4', 'memory m 4 "bytes_per_second" 1'),
        ('memory "in" 4', "memory m 4 speed 1"),
        ('used "in" 1 2 3', "used m 1 2"),
        ('moved "in" "a b" 7', "moved m 7"),
        ("result move_bytes 15", "result moves 15"),
        ("  join op", "  join"),
        ("  join op", "  join op run"),
        ('  alloc "in" @8 of of "x y"', '  alloc "in" @8 of'),
        ('  alloc "in" @8 of of "x y"', '  alloc "in" @8 of x x'),
        ('  alloc "in" @8 of of "x y"', '  alloc "in" 8 of x y'),
        ("section stem 0 2", "section stem 0"),
        ("section stem 0 2", "section stem 0 x"),
        ("section stem 0 2", "section stem 0 2 op"),
        ("section stem 0 2", "section stem 0 2 start"),
        ("section stem 0 2", "section stem 0 2 start x y"),
        ("section stem 0 2", "section stem 0 2 start x start x"),
        ("section stem 0 2", "section stem 0 2 merge"),
        ("section stem 0 2", "section stem 0 2 processing III"),
        ("section stem 0 2", "section stem 0 2 processing I II"),
        ("section stem 0 2", 'section stem 0 2 "branch" op'),
        ("  run run", "  run run streaming"),
        ("  run run", "  run run streaming x:1 x:2"),
        ("  run run", "  run run streaming x"),
        ("  run run", '  run run streaming "x"'),
        ("  run run", '  run run streaming "x" 1'),
        ("  run run", '  run run "\\x"'),
    ],
)
def test_text_that_says_something_else_is_refused(line: str, instead: str) -> None:
    changed = f"\n{TEXT}".replace(f"\n{line}\n", f"\n{instead}\n", 1)
    if line == "view half in 2":
        changed = f"\n{TEXT}".replace('view half "in" 2', 'view half "in" 3')
    assert changed != f"\n{TEXT}"
    with pytest.raises(OnchipError) as refusal:
        from_text(changed, where="p.txt")
    assert "p.txt" in str(refusal.value)
    assert str(refusal.value).isprintable()


@pytest.mark.parametrize(
    "words",
    [
        "operator q T x out y", "operator q T in x out y weights", "operator q T in x out y weights 1 2",
        "operator q T in x out y weights 1 weights 1", "operator q T in x out y input 1",
        "operator q T in x out y geometry", "operator q T in x out y geometry a b",
        "operator q T in x out y geometry a layout XY", "operator q T in x out y geometry a traversal up",
        "operator q T in x out y geometry a kernel x", "group h operators op",
        "group h scratch x operators op", "group h scratch 1 operators op refills op",
        "group h scratch 1 operators op refills op:1 op:2", "group h op",
        "group h tiling scratch 1 operators op", "group h tiling rows 1 channels 1 scratch 1 operators op",
        "group h tiling rows 1 rows 1 channels 1 images 1 scratch 1 operators op",
        "group h tiling rows 1 2 channels 1 images 1 scratch 1 operators op",
        "group h tiling 1 rows 1 channels 1 images 1 scratch 1 operators op",
        "group h tiling rows 1 channels 1 images 1e3 scratch 1 operators op",
        "group h tiling rows 1 channels 1 images 1 columns 1 scratch 1 operators op",
        "group h tiling rows 1 channels 1 images 1 streaming x x scratch 1 operators op",
        "group h tiling rows 1 channels 1 images 1 blocks scratch 1 operators op",
        'group h "tiling" rows 1 channels 1 images 1 scratch 1 operators op',
        "group h rows 1 channels 1 images 1 scratch 1 operators op",
        "group h scratch 1 tiling rows 1 channels 1 images 1 operators op",
        "group h blocks rows 1 columns 1 channels 1 scratch 1 operators op",
        "group h blocks rows 1 columns 1 output_channels 1 channels 1 keep_weights 1 scratch 1 operators op",
        "group h blocks rows 1 columns 1 output_channels 1 channels 1 images 1 scratch 1 operators op",
        "group h rings scratch 1 operators op",
        "group h rings fetched rows traversal forward scratch 1 operators op",
        "group h rings strips 1 traversal forward stage 1 op scratch 1 operators op",
        "group h rings strips 1 fetched rows stage 1 op scratch 1 operators op",
        "group h rings strips 1 fetched all traversal forward stage 1 op scratch 1 operators op",
        "group h rings strips 1 fetched rows columns traversal forward stage 1 op scratch 1 operators op",
        "group h rings strips 1 fetched rows traversal up stage 1 op scratch 1 operators op",
        "group h rings 1 strips 1 fetched rows traversal forward stage 1 op scratch 1 operators op",
        "group h rings strips 1 fetched rows traversal forward stage op scratch 1 operators op",
        "group h rings strips 1 fetched rows traversal forward stage scratch 1 operators op",
        "group h rings strips 1 strips 1 fetched rows traversal forward stage 1 op scratch 1 operators op",
        "group h rings strips 1 fetched rows traversal forward rows stage 1 op scratch 1 operators op",
        "group h stage 1 op scratch 1 operators op",
        "operator q T in x out y geometry a traversal forward pixels 4",
        "operator q T in x out y geometry a traversal forward pixels 4 channels x",
        "operator q T in x out y geometry a traversal forward channels 4 pixels 1",
        "operator q T in x out y geometry a traversal pixels 4 channels 1",
    ],
)  # fmt: skip
def test_operators_and_groups_that_are_not_complete_are_refused(words: str) -> None:
    with pytest.raises(PlanFormatError, match="line"):
        from_text(TEXT.replace("\nprogram\n", f"\n{words}\nprogram\n"))


@st.composite
def damaged(draw: st.DrawFn, content: str) -> str:
    """A file with pieces cut out, doubled, swapped for other pieces, or written over."""
    for _ in range(draw(st.integers(1, 4))):
        a, b = sorted(draw(st.tuples(st.integers(0, len(content)), st.integers(0, len(content)))))
        b = min(b, a + draw(st.sampled_from((0, 1, 2, 5, 30, 1000))))
        piece = draw(
            st.one_of(
                st.just(""),
                st.just(content[a:b] * 2),
                st.sampled_from((
                    '"', "\\", "{", "}", "[", "]", ",", ":", "@", "-", "0", "9" * 30, "1e999", "null", "true",
                    "NaN", "\n", " ", "#", "\ud800", "\\ud800", "\0", "in", "out", "program\n", "streaming",
                )),
                st.text(st.characters(), max_size=4),
            )
        )  # fmt: skip
        content = content[:a] + piece + content[b:]
    return content


@pytest.mark.thorough
@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
@settings(max_examples=150)
def test_damaged_files_are_read_or_refused(form: str, data: st.DataObject) -> None:
    write, read = FORMS[form]
    content = data.draw(damaged(write(PLAN)))
    plan = refusal = None
    try:
        plan = read(content)
    except OnchipError as error:
        refusal = error
    assert refusal is None or str(refusal).isprintable()
    assert plan is None or read(write(plan)) == plan  # what is accepted can be written again


def test_a_lone_surrogate_in_text_is_refused_with_its_line() -> None:
    text = to_text(PLAN).replace("operators op", "operators \ud800op")
    with pytest.raises(PlanFormatError, match="lone surrogate"):
        from_text(text)


@given(st.binary(max_size=60), st.booleans())
@example(b"\xff\xfe", False)
@example(b"\xed\xa0\x80", True)
def test_bytes_that_are_no_plan_are_refused(content: bytes, brace: bool) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write((b"{" if brace else b"") + content)
        file.flush()
        with pytest.raises(PlanFormatError):
            read_plan(file.name)


# -- networks: what a name or a number may be ----------------------------------------------------------------


@given(
    st.text(st.characters(categories=["Cs"]), min_size=1, max_size=2),
    st.sampled_from(("t", "op", "type", "n")),
)
def test_a_network_refuses_surrogates_in_any_name(text: str, where: str) -> None:
    assume(not text.isprintable())

    def name(key: str) -> str:
        return text if key == where else key

    with pytest.raises(ModelError, match="surrogate"):
        Network.build(
            name("n"),
            [("x", 1, "input"), (name("t"), 1, "activation")],
            [OperatorSpec(name("op"), name("type"), ["x"], [name("t")])],
            [name("t")],
        )


@pytest.mark.thorough
def test_long_chains_of_views_and_cycles_of_operators_are_judged_at_once() -> None:
    n = 20_000
    tensors = [("x", 9, "input"), ("y", 1, "activation")] + [(f"v{i}", 9, "activation") for i in range(n)]
    views = [(f"v{i}", f"v{i + 1}" if i + 1 < n else "x", 0) for i in range(n)]
    spec = OperatorSpec("f", "F", ["v0"], ["y"])
    network = Network.build("n", tensors, [spec], ["y"], views=views)  # type: ignore[arg-type]
    assert {v.of for v in network.views} == {network.tensor_id["x"]}
    with pytest.raises(ModelError, match="view of itself"):
        Network.build("n", tensors, [spec], ["y"], views=[*views[:-1], (f"v{n - 1}", "v0", 0)])  # type: ignore[arg-type]


def test_an_operator_that_reads_a_view_of_its_own_output_is_a_cycle() -> None:
    with pytest.raises(ModelError, match="cycle"):
        Network.build(
            "n",
            [("y", 2, "activation"), ("half", 1, "activation")],
            [OperatorSpec("f", "F", ["half"], ["y"])],
            ["y"],
            views=[("half", "y", 0)],
        )
