"""One question, one answer: `plan` gives the best plan that the chip can run, or that of one method."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import replace
from random import Random

import pytest

import onchip
from onchip import cli
from onchip.base.errors import Infeasible, UsageError
from onchip.cli import console
from onchip.machines.chip import Chip, Memory, Rates
from onchip.methods.level import beyond, copied_bytes, crossing_bytes, level_of
from onchip.network import Network
from onchip.planners import placement
from onchip.planners.placement.memories import plan_in_memories
from onchip.plans import Load, Plan, Store, to_json
from onchip.readers import Source
from strategies import network_of, random_network

MODEL = "zoo:squeezenet1_0@64x64"


def command(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["onchip", *words])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


def two(near: int, far: int, *, third: int = 0) -> Chip:
    """A chip of a fast memory and a slower one."""
    memories = [Memory("near", near, True, 4e9), Memory("far", far, True, 1e9)]
    if third:
        memories.append(Memory("third", third, True, 1e8))
    return Chip("two", 1, memories=tuple(memories))


@pytest.fixture(scope="module")
def source() -> Source:
    return onchip.load(MODEL)


@pytest.mark.parametrize("seed", range(6))
def test_nothing_that_plan_knows_moves_less(seed: int) -> None:
    network = random_network(Random(seed), 6)
    budget = placement.Problem.of(network, 1).minimum_budget
    best = onchip.plan(network, budget=budget)
    alone = [onchip.plan(network, budget=budget, fuse=fuse) for fuse in (True, False)]
    assert best.check() == best.result
    assert best.result.dram_bytes == min(made.result.dram_bytes for made in alone)


def test_a_plan_that_moves_the_least_there_is_stays_the_plan_of_whole_tensors() -> None:
    network = network_of({"x": 10, "a": 20, "y": 5}, ["x -> a", "a -> y"], "y")
    best, whole = (onchip.plan(network, budget=40, fuse=fuse) for fuse in (None, False))
    assert not best.groups
    assert to_json(replace(best, result=whole.result)) == to_json(whole)


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        ({"order": "given"}, "--order"),
        ({"objective": "peak"}, "--objective peak"),
        ({"weights": "resident"}, "--weights"),
        ({"strategy": "greedy"}, "--strategy"),
    ],
)
def test_what_tiles_do_not_have_keeps_tensors_whole_and_is_said(
    options: dict[str, str], flag: str, source: Source
) -> None:
    made = onchip.plan(source, budget="2MiB", **options)
    whole = onchip.plan(source, budget="2MiB", fuse=False, **options)
    assert (len(made.notes), whole.notes) == (1, ())
    assert flag in made.notes[0]
    assert made.program == whole.program
    assert made.options == whole.options


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("method", "planner"),
    [("joint", "joint"), ("cosma", "placement"), ("optimus", "fusion"), ("simple", "branches")],
)
def test_a_method_alone_is_its_planner(method: str, planner: str, source: Source) -> None:
    made = onchip.plan(source, budget="256KiB", method=method)
    assert made.options["planner"] == planner
    assert made.check() == made.result


@pytest.mark.thorough
def test_the_methods_of_papers_take_their_own_options(source: Source) -> None:
    ours = onchip.plan(source, budget="64KiB", method="optimus", isoa="off")
    assert ours.result.dram_bytes == onchip.fuse(source, budget="64KiB", isoa="off").dram_bytes
    made = onchip.plan(source, budget="256KiB", method="simple", rules="ours")
    assert made.options["rules"] == "ours"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "nobody"}, "best, joint, cosma, optimus, simple"),
        ({"method": "optimus", "fuse": True}, "--fuse"),
        ({"method": "optimus", "order": "given"}, "--order"),
        ({"isoa": "off"}, "--method optimus"),
        ({"rules": "ours", "method": "optimus"}, "--method simple"),
        ({"method": "cosma", "nests": False}, "--no-nests"),
        ({"level": "sram"}, "one memory"),
        ({"method": 3}, "method"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: dict[str, object], words: str) -> None:
    network = network_of({"x": 10, "y": 5}, ["x -> y"], "y")
    with pytest.raises(UsageError, match=words):
        onchip.plan(network, budget=100, **options)  # type: ignore[arg-type]


@pytest.mark.thorough
def test_the_refusal_says_what_is_needed_and_a_command_that_works(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, "plan", MODEL, "--no-fuse", "--budget=1KiB", "--json") == 1
    out, err = capsys.readouterr()
    error = json.loads(out)["error"]
    assert err.count("\n") == 1
    budgets = placement.budgets(onchip.load(MODEL).network, onchip.chip())
    assert (error["mr"], error["mp"]) == (budgets.mr, budgets.mp)
    assert error["would_work"] in err
    words = shlex.split(error["would_work"])
    assert command(monkeypatch, *words[1:]) == 0
    assert "error" not in json.loads(capsys.readouterr().out)


def test_the_width_of_elements_is_in_the_headline_and_another_than_the_chip_s_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, "plan", MODEL, "--chip", "optimus", "--no-fuse", "--budget", "2MiB") == 0
    out, err = capsys.readouterr()
    assert out.startswith("squeezenet1_0@64x64 (int8) on optimus")
    assert err == (
        "onchip: elements are int8, and those of optimus int16; --dtype int16 plans with the chip's\n"
    )
    assert (
        command(
            monkeypatch,
            "plan",
            MODEL,
            "--no-fuse",
            "--budget",
            "2MiB",
            "--chip",
            "optimus",
            "--dtype",
            "int16",
        )
        == 0
    )
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("old", "method"), [("fuse", "optimus"), ("branches", "simple")])
def test_the_former_commands_go_on_and_say_where_they_are_now(
    old: str, method: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, old, MODEL, "--chip", "generic", "--budget", "256KiB") == 0
    out, err = capsys.readouterr()
    assert out
    assert err.count("\n") == 1
    assert f"`onchip plan --method {method}`" in err


@pytest.mark.thorough
def test_of_several_memories_the_better_plan_is_given(source: Source) -> None:
    tiled = onchip.plan(source, two(24 << 10, 4 << 20), nests=False)
    assert (tiled.options["level"], tiled.options["beyond"]) == ("near", "far")
    assert (tiled.budget, tiled.check()) == (24 << 10, tiled.result)
    assert "tiles in near, far in DRAM's part" in str(tiled)
    whole = onchip.plan(source, two(24 << 10, 4 << 20), fuse=False)
    assert "whole operators over near, far" in str(whole)
    assert tiled.result.dram_bytes < crossing_bytes(whole, {"near"})
    network = network_of({"x": 10, "a": 20, "y": 5}, ["x -> a", "a -> y"], "y")
    roomy = onchip.plan(network, two(100, 100))
    assert roomy.chip.memories
    assert "go 15 bytes with tiles, 15 with whole operators" in roomy.notes[0]
    further = onchip.plan(source, two(24 << 10, 4 << 20), level="far", fuse=True, nests=False)
    assert (further.options["level"], further.options["beyond"]) == ("far", "DRAM")


@pytest.mark.thorough
def test_only_tiles_fit_and_nothing_fits(source: Source) -> None:
    tiled = onchip.plan(source, two(20 << 10, 1 << 10), nests=False)
    assert tiled.options["beyond"] == "DRAM"  # far does not hold what is copied
    assert "whole operators over all memories: infeasible" in tiled.notes[0]
    with pytest.raises(Infeasible) as no:
        onchip.plan(source, two(64, 64), "near=64,far=64", nests=False)
    assert no.value.memory == "near"
    enough = no.value.needs
    assert onchip.plan(source, two(64, 64), f"near={enough},far=64", nests=False).budget == enough


@pytest.mark.thorough
def test_a_memory_that_does_not_hold_the_copies_is_passed_over(source: Source) -> None:
    near = 24 << 10
    held = copied_bytes(onchip.plan(source, two(near, 4 << 20), fuse=True, nests=False))
    for far, takes in ((held, "far"), (held - 1, "third")):
        made = onchip.plan(source, two(near, far, third=8 << 20), fuse=True, nests=False)
        assert made.options["beyond"] == takes


def test_the_innermost_memory_that_operators_read_is_the_level() -> None:
    staged = Memory("staged", 10, False, 9e9)
    slow, fast, twin = (
        Memory("slow", 10, True, 1e9),
        Memory("fast", 10, True, 2e9),
        Memory("twin", 10, True, 2e9),
    )
    on = Chip("three", 1, memories=(staged, slow, fast, twin))
    assert level_of(on, on.memories, None) is fast
    assert beyond(on, on.memories, fast) == (slow,)  # its twin is as near
    for name, words in (("staged", "no operator reads"), ("lost", "operators read slow, fast, twin")):
        with pytest.raises(UsageError, match=words):
            level_of(on, on.memories, name)


@pytest.mark.parametrize("seed", range(5))
def test_bytes_between_memories_are_those_of_the_checker(seed: int) -> None:
    """What the checker counts at the far memory crosses, but for what DRAM brings and takes there."""
    network = random_network(Random(seed), 5)
    needs = placement.Problem.of(network, 1).minimum_budget
    on = Chip("two", 1, memories=two(needs * 2 // 3, needs).memories, rates=Rates())
    plan = plan_in_memories(network, on, on.memories, placement.PlacementOptions(time_limit=3))
    sizes = {t.name: t.bytes for t in network.tensors}
    homes = homes_at(plan, network)
    dram = {"near": 0, "far": 0}
    for step, home in homes:
        dram[home] += sizes[step.tensor]
    far = next(use.accessed_bytes for use in plan.result.memories if use.memory == "far")
    assert crossing_bytes(plan, {"near"}) == far - dram["far"] + dram["near"] + plan.result.weight_bytes


def homes_at(plan: Plan, network: Network) -> list[tuple[Load | Store, str]]:
    """The loads and stores of a plan, with the memory in which each has its tensor."""
    there: dict[str, str] = {}
    found = []
    for step in plan.program:
        memory = getattr(step, "memory", None)
        if memory is not None and hasattr(step, "tensor"):
            there[step.tensor] = memory
        if isinstance(step, Load | Store):
            found.append((step, there[step.tensor]))
    assert {t.name for t in network.tensors} >= set(there)
    return found


@pytest.mark.thorough
def test_progress_is_lines_of_json_where_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        assert command(monkeypatch, "--progress-lines", "plan", MODEL, "--budget", "64KiB", "--json") == 0
        out, err = capsys.readouterr()
        assert json.loads(out)["format"].startswith("onchip.plan/")
        assert all(json.loads(line)["progress"]["text"] for line in err.splitlines())
        with console.progress(quiet=True) as say:
            say("one\ntwo")
            say("three")
        told = [json.loads(line)["progress"] for line in capsys.readouterr().err.splitlines()]
        assert [line["text"] for line in told] == [r"one\ntwo", "three"]
        assert 0 <= told[0]["seconds"] <= told[1]["seconds"]
    finally:
        console.in_lines(False)
    with console.progress(quiet=True) as say:
        say("nobody asked")
    assert capsys.readouterr().err == ""
