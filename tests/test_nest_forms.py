"""Nests in files: their format, their two written forms, and what is refused in one line."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from onchip.base.errors import OnchipError, PlanFormatError
from onchip.plans import FORMAT, NESTS, Group, Leaf, Loop, Nest, Plan, from_json, from_text, to_json, to_text
from onchip.plans.nest import MOST_DEEP
from sample_plan import PLAN

NEST = Nest(
    (
        Loop(
            (("up", 1), ("a b", 2)),
            2,
            (
                Leaf("up", ((2, 1), (0, 1))),
                Loop((("a b", 0),), 3, (Leaf("a b", (), "over"),), ("keep", "x"), ("x", "ring")),
            ),
        ),
        Leaf("last"),
    ),
    ("z",),
)


def in_nest(nest: Nest) -> Plan:
    group = Group("g", ("up", "a b", "last"), 11, tiling=nest)
    return replace(PLAN, groups=(PLAN.groups[0], group))


def test_text_is_a_block_behind_the_line_of_the_group() -> None:
    text = to_text(in_nest(NEST))
    assert text.startswith("onchip.plan/2\n")
    assert (
        'group g scratch 11 subgroups 1 operators up "a b" last\n'
        "  nest keep z\n"
        '    for 2 over up:1 "a b":2\n'
        "      run up slices 2:1 0:1\n"
        '      for 3 over "a b":0 keep "keep" x ring x "ring"\n'
        '        run "a b" over "over"\n'
        "      end\n"
        "    end\n"
        "    run last\n"
        "  end\n"
    ) in text
    assert from_text(text) == in_nest(NEST)
    assert from_text(text.replace("\n", " # comment\n\n")) == in_nest(NEST)


def test_json_is_lists_like_instructions() -> None:
    stated = json.loads(to_json(in_nest(NEST)))
    assert stated["format"] == NESTS
    assert stated["groups"][1]["nest"] == {
        "body": [
            [
                "for",
                {"up": 1, "a b": 2},
                2,
                [
                    ["run", "up", {"slices": [[2, 1], [0, 1]]}],
                    [
                        "for",
                        {"a b": 0},
                        3,
                        [["run", "a b", {"over": "over"}]],
                        {"keep": ["keep", "x"], "ring": ["x", "ring"]},
                    ],
                ],
            ],
            ["run", "last"],
        ],
        "keep": ["z"],
    }
    assert from_json(to_json(in_nest(NEST))) == in_nest(NEST)


def test_only_a_file_with_a_nest_has_the_new_format_and_both_are_read() -> None:
    for write, read in ((to_json, from_json), (to_text, from_text)):
        assert NESTS not in write(PLAN)
        assert read(write(PLAN).replace(FORMAT, NESTS)) == PLAN
        old = write(in_nest(NEST)).replace(NESTS, FORMAT)
        with pytest.raises(PlanFormatError, match=r"nest needs a file of format .?onchip\.plan/2") as refusal:
            read(old)
        assert "\n" not in str(refusal.value)


def deep(loops: int) -> Nest:
    body: tuple[Loop | Leaf, ...] = (Leaf("up"),)
    for _ in range(loops):
        body = (Loop((("up", 0),), 1, body),)
    return Nest(body)


def test_a_nest_of_very_many_loops_is_refused_in_one_line() -> None:
    plan = in_nest(deep(MOST_DEEP))
    assert from_json(to_json(plan)) == from_text(to_text(plan)) == plan
    for loops in (MOST_DEEP + 1, 1000, 100_000):
        with pytest.raises(ValueError, match="more than 64 loops deep"):
            deep(loops)
        text = to_text(in_nest(deep(1))).replace("    for 1 over up:0\n", loops * "    for 1 over up:0\n")
        raw = to_json(in_nest(deep(1)))
        start = '["for",{"up":0},1,['
        assert start in raw
        nested = raw.replace(start + '["run","up"]]]', loops * start + '["run","up"]' + loops * "]]")
        for read, content in ((from_text, text), (from_json, nested)):
            with pytest.raises(OnchipError) as refusal:
                read(content)
            assert "\n" not in str(refusal.value)
            assert len(str(refusal.value)) < 200


def test_a_nest_of_very_many_leaves_is_read() -> None:
    plan = in_nest(Nest(tuple(Leaf(f"op{i}") for i in range(20_000))))
    assert from_json(to_json(plan)) == from_text(to_text(plan)) == plan


@pytest.mark.parametrize(
    "nest",
    [
        [],
        {},
        {"body": {}},
        {"body": [], "keep": "x"},
        {"body": [], "keep": [1]},
        {"body": [], "other": 1},
        {"body": [[]]},
        {"body": ["run"]},
        {"body": [["run"]]},
        {"body": [["run", 1]]},
        {"body": [["run", "up", {}]]},
        {"body": [["run", "up", {"slices": [[1]]}]]},
        {"body": [["run", "up", {"slices": [[True, 1]]}]]},
        {"body": [["run", "up", {"slices": {}}]]},
        {"body": [["run", "up", {"over": 1}]]},
        {"body": [["run", "up", {"keep": []}]]},
        {"body": [["run", "up", {"over": "x"}, 1]]},
        {"body": [["for", {"up": 1}, 1]]},
        {"body": [["for", {"up": 1.5}, 1, []]]},
        {"body": [["for", [["up", 1]], 1, []]]},
        {"body": [["for", {"up": 1}, 10**18, []]]},
        {"body": [["for", {"up": 1}, 1, [], {"slices": []}]]},
        {"body": [["for", {"up": 1}, 1, [], {"ring": "x"}]]},
        {"body": [["for", {"up": 1}, 1, [], {"ring": [["x"]]}]]},
        {"body": [["run", "up", {"ring": ["x"]}]]},
        {"body": [], "ring": ["x"]},
    ],
)
def test_what_is_no_nest_is_refused_in_one_line(nest: object) -> None:
    stated = json.loads(to_json(in_nest(NEST)))
    stated["groups"][1]["nest"] = nest
    with pytest.raises(OnchipError, match=r"groups\[1\]") as refusal:
        from_json(json.dumps(stated))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "lines",
    [
        ["nest"],  # without an end
        ["nest x", "end"],
        ["nest keep a keep b", "end"],
        ["nest ring a", "end"],
        ["nest", "for 1 over up:1 ring a ring b", "end", "end"],
        ["nest", "run up ring a", "end"],
        ["nest", "for over up:1", "end", "end"],
        ["nest", "for 1 over up", "end", "end"],
        ["nest", "for 1 over up:1 up:2", "end", "end"],
        ["nest", "for x over up:1", "end", "end"],
        ["nest", "run", "end"],
        ["nest", "run up over", "end"],
        ["nest", "run up over a b", "end"],
        ["nest", "run up slices 1", "end"],
        ["nest", "run up slices 1:x", "end"],
        ["nest", "budget 3", "end"],
        ["nest", "end", "nest", "end"],  # two of one group
        ["nest", "end", "end"],
    ],
)
def test_lines_that_are_no_nest_are_refused_with_their_number(lines: list[str]) -> None:
    text = to_text(in_nest(Nest(()))).replace("  nest\n  end\n", "\n".join(lines) + "\n")
    with pytest.raises(PlanFormatError, match="line ") as refusal:
        from_text(text)
    assert "\n" not in str(refusal.value)


def test_a_nest_needs_a_group_before_it() -> None:
    with pytest.raises(PlanFormatError, match="follows the line of its group"):
        from_text("onchip.plan/2\nnest\nend\n")
