"""A spec: every combination once, every mistake by its file and key, whatever is in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onchip.base.errors import ChipError, UsageError
from onchip.machines.chip import PEArray, load_chip
from onchip.planners import registry
from onchip.sweeps.points import points, task_of
from onchip.sweeps.spec import parse_spec, read_spec

SMALL = {"networks": ["zoo:alexnet"], "budgets": ["64KiB"]}


def keys(table: dict[str, Any], content: str = "n") -> list[str]:
    spec = parse_spec(table, "spec.toml")
    return [task_of(point, content, None).key for point in points(spec)]


def test_points_are_all_combinations_in_the_specs_order() -> None:
    spec = parse_spec(
        {
            "networks": ["zoo:alexnet", {"model": "zoo:resnet18", "batch": [1, 2]}],
            "chips": ["optimus"],
            "planners": ["plan", "fuse"],
            "budgets": [{"from": 1024, "to": 4096, "factor": 2}, "MR"],
            "chip": {"array": ["8x8", "16x16"]},
            "plan": {"strategy": ["exact", "greedy"]},
        },
        "spec.toml",
    )
    found = points(spec)
    assert len(found) == len(spec) == 3 * 2 * 3 * 4
    assert len({task_of(p, p.model.name + str(p.model.read), None).key for p in found}) == len(found)
    assert [p.model.read for p in found[::24]] == [(), (("batch", 1),), (("batch", 2),)]
    assert [p.budget.text for p in found[:4]] == ["1024", "2048", "4096", "MR"]


def test_an_array_keeps_one_multiplication_for_each_element_and_cycle() -> None:
    (machine,) = parse_spec({**SMALL, "chips": "optimus", "chip": {"array": "8x4"}}, "s").machines
    assert machine.chip.array == PEArray(8, 4, 64)
    assert machine.chip.rates.macs_per_second == 8 * 4 * 800e6
    (told,) = parse_spec(
        {**SMALL, "chips": "optimus", "chip": {"array": "8x4", "macs_per_second": 1e9}}, "s"
    ).machines
    assert told.chip.rates.macs_per_second == 1e9
    assert load_chip("optimus").rates.macs_per_second == 16 * 16 * 800e6


def test_a_key_is_of_what_the_answer_depends_on_and_of_nothing_else() -> None:
    (key,) = keys(SMALL)
    assert keys({**SMALL, "title": "other", "limits": {"seconds_per_point": 3}}) == [key]
    assert keys({**SMALL, "plan": {"strategy": "exact"}}) == [key]  # the default, said
    assert keys({**SMALL, "networks": ["zoo:resnet18", "zoo:alexnet"]})[1:] == [key]
    assert keys({**SMALL, "budgets": ["64KiB", "32KiB"]})[0] == key
    for other in (
        {"plan": {"strategy": "greedy"}},
        {"planners": "fuse"},
        {"budgets": ["65KiB"]},
        {"chip": {"alignment_bytes": 4}},
    ):
        assert key not in keys({**SMALL, **other})
    assert keys(SMALL, "other content") != [key]


def test_paths_are_found_from_the_specs_folder(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text('name = "own"\nalignment_bytes = 1\nelement = "int8"\n')
    (tmp_path / "spec.toml").write_text(
        'networks = ["net.json", "pkg.mod:function"]\nchips = ["./own.toml"]\nbudgets = [100]\n'
    )
    spec = read_spec(tmp_path / "spec.toml")
    assert [m.model for m in spec.models] == [str(tmp_path / "net.json"), "pkg.mod:function"]
    assert spec.machines[0].chip.name == "own"


def test_options_that_hold_lists_take_a_list_of_lists_to_sweep() -> None:
    one = parse_spec({**SMALL, "plan": {"pin": ["a", "b"]}}, "s")
    assert [a.options.pin for a in one.asked] == [("a", "b")]
    two = parse_spec({**SMALL, "plan": {"pin": [["a"], ["b"]]}}, "s")
    assert [a.options.pin for a in two.asked] == [("a",), ("b",)]


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"netwroks": []}, ["netwroks", "did you mean networks"]),
        ({"networks": []}, ["networks"]),
        ({"networks": [3]}, ["networks[0]"]),
        ({"networks": [{"model": "a.onnx", "batchh": 1}]}, ["networks[0].batchh", "batch"]),
        ({"networks": [{"dims": "x"}]}, ["networks[0]", "model"]),
        ({"read": {"grain": 1}}, ["read.grain"]),
        ({"read": {"batch": [[1]]}}, ["batch"]),
        ({"chips": ["nope"]}, ["chips", "nope", "onchip chips"]),
        ({"chips": []}, ["chips", "empty"]),
        ({"chip": {"pe_rowz": 1}}, ["chip.pe_rowz", "pe_rows"]),
        ({"chip": {"pe_rows": 8}}, ["chip", "pe_columns"]),
        ({"chip": {"array": "8*8"}}, ["chip.array", "8*8"]),
        ({"chip": {"array": "8x8", "pe_rows": 8}}, ["chip.array"]),
        ({"chip": {"array": []}}, ["chip.array", "empty"]),
        ({"planners": ["magic"]}, ["planners", "magic", "fuse"]),
        ({"fuse": {}}, ["fuse", "not among the planners"]),
        ({"plan": {"strateggy": "exact"}}, ["plan.strateggy", "strategy"]),
        ({"plan": {"strategy": "best"}}, ["plan", "best"]),
        ({"plan": {"strategy": 3}}, ["plan", "strategy"]),
        ({"plan": {"memory_limit": "much"}}, ["plan.memory_limit", "much"]),
        ({"plan": {"in_place": "yes"}}, ["plan.in_place"]),
        ({"plan": {"time_limit": 3}}, ["plan.time_limit", "seconds_per_point"]),
        ({"plan": 3}, ["plan", "[plan]"]),
        ({"limits": {"seconds_per_point": -1}}, ["limits.seconds_per_point"]),
        ({"limits": {"seconds": 1}}, ["limits.seconds"]),
        ({"page": {"within": "x"}}, ["page.within"]),
        ({"title": 3}, ["title"]),
        ({"budgets": ["chip"]}, ["budgets", "generic", "scratchpad"]),
        ({"budgets": {"from": 1}}, ["budgets[0].to"]),
    ],
)
def test_mistakes_are_one_line_with_the_file_and_the_key(change: dict[str, Any], parts: list[str]) -> None:
    with pytest.raises((UsageError, ChipError)) as problem:
        parse_spec({**SMALL, **change}, "spec.toml")
    for part in ["spec.toml", *parts]:
        assert part in str(problem.value)
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize("content", [b"networks = [", b"\xff\xfe", b"a = " + b"[" * 5_000])
def test_a_file_that_is_no_toml_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"bad\.toml"):
        read_spec(path)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
PLANNERS = [planner.key for planner in registry.listed()]
OPTIONS = sorted({name for p in registry.listed() for name in p.options.__dataclass_fields__})
SECTIONS = st.dictionaries(
    st.sampled_from([*OPTIONS, "array", "pe_rows", "clock_hertz", "batch", "dims", "within"]),
    ANYTHING,
    max_size=3,
)


@pytest.mark.thorough
@given(
    st.dictionaries(
        st.sampled_from(
            ["networks", "chips", "planners", "budgets", "read", "chip", "limits", "page", "title", *PLANNERS]
        ),
        ANYTHING | SECTIONS | st.sampled_from(["optimus", "fuse", ["plan", "fuse"], ["MR"], "zoo:alexnet"]),
    )
)
def test_whatever_is_in_a_spec_it_is_read_or_refused_in_one_line(change: dict[str, Any]) -> None:
    try:
        spec = parse_spec({**SMALL, **change}, "spec.toml")
    except (UsageError, ChipError) as problem:
        said = str(problem)
    else:
        said = f"spec.toml: {len(spec)} points"
    assert said.startswith("spec.toml")
    assert "\n" not in said
