"""`needs N bytes` is the least of the whole network: N bytes are enough, and one byte less is not."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from map_networks import random_map_network
from module_networks import random_module_network
from onchip import cli
from onchip.base.errors import Infeasible, NeedsTraffic
from onchip.machines.chip import Chip, Memory, PartialWeights, PatchSize
from onchip.microcontroller.made import Builder
from onchip.planners import joint, placement
from onchip.planners.branches.plan import plan_branches
from onchip.planners.fusion.fuse import fuse
from onchip.planners.placement import PlacementOptions
from onchip.planners.placement.memories import plan_in_memories
from strategies import network_of, random_network

seeds = st.integers(0, 10**6)


def refusal(attempt: Callable[[int], object], budget: int) -> Infeasible | None:
    """Why there is nothing within a budget; None where there is something."""
    try:
        attempt(budget)
    except Infeasible as no:
        return no
    return None


def holds(attempt: Callable[[int], object], *, start: int = 0, below: bool = True) -> Infeasible | None:
    """What is said to be needed is enough; one byte less is not, and needs as much."""
    no = refusal(attempt, start)
    if no is None:
        return None
    assert no.needs > no.has == start
    assert no.tensors
    assert refusal(attempt, no.needs) is None
    if below and not no.at_least and no.needs > start + 1:
        less = refusal(attempt, no.needs - 1)
        assert less is not None
        assert less.needs == no.needs
    return no


@settings(max_examples=40, deadline=None)
@given(
    seeds,
    st.sampled_from([{}, {"order": "given"}, {"order": "minpeak"}, {"weights": "resident"}]),
    st.booleans(),
)
def test_placement(seed: int, options: dict[str, str], in_place: bool) -> None:
    rng = Random(seed)
    network, chip = random_network(rng, 6), Chip("test", rng.choice((1, 1, 4)))
    asked = PlacementOptions(in_place=in_place, **options)  # type: ignore[arg-type]
    no = holds(lambda budget: placement.plan(network, chip, budget, asked))
    assert no is not None
    assert no.space
    assert no.operator in {op.name for op in network.operators}


@settings(max_examples=25, deadline=None)
@given(seeds)
def test_placement_by_peak(seed: int) -> None:
    network, chip = random_network(Random(seed), 6), Chip("test", 1)
    asked = PlacementOptions(objective="peak")
    with pytest.raises(NeedsTraffic) as no:
        placement.plan(network, chip, 0, asked)  # one byte holds the least of them
    placement.plan(network, chip, no.value.needs, asked)
    with pytest.raises(NeedsTraffic):
        placement.plan(network, chip, no.value.at_least - 1, asked)


@settings(max_examples=25, deadline=None)
@given(seeds)
def test_what_stays_on_chip_counts(seed: int) -> None:
    rng = Random(seed)
    network, chip = random_network(rng, 6), Chip("test", 1)
    pinned = rng.choice([network.tensors[t].name for t in set(network.root)])
    asked = PlacementOptions(pin=(pinned,))
    with pytest.raises(Infeasible) as no:
        placement.plan(network, chip, 0, asked)
    placement.plan(network, chip, no.value.needs, asked)
    assert no.value.at_least


@pytest.mark.thorough
@settings(max_examples=25, deadline=None)
@given(seeds)
def test_fused_and_joint(seed: int) -> None:
    rng = Random(seed)
    network, chip = random_map_network(rng).network, Chip("test", rng.choice((1, 4)))
    holds(lambda budget: fuse(network, chip, budget, beside=False))
    holds(lambda budget: joint.plan(network, chip, budget))


@pytest.mark.thorough
@settings(max_examples=10, deadline=None)
@given(seeds, st.sampled_from(["paper", "ours"]))
def test_branches(seed: int, rules: str) -> None:
    from onchip.planners.branches.options import BranchOptions

    network = random_module_network(Random(seed)).network()
    chip = Chip("npu", 1, patch=PatchSize(2, 2), partial_weights=PartialWeights(1, 1))
    holds(lambda budget: plan_branches(network, chip, budget, BranchOptions(rules=rules)))  # type: ignore[arg-type]


@pytest.mark.thorough
@settings(max_examples=25, deadline=None)
@given(seeds)
def test_in_memories(seed: int) -> None:
    rng = Random(seed)
    network = random_network(rng, 5)
    memories = (
        Memory("fast", rng.randint(1, 20), True, 1e12),
        Memory("slow", rng.randint(1, 60), rng.random() < 0.7, 1e11),
    )
    chip = Chip("two", rng.choice((1, 4)), memories=memories)

    def attempt(size: int) -> object:
        within = (replace(memories[0], bytes=size), memories[1])
        return plan_in_memories(network, chip, within, PlacementOptions(time_limit=0.2))

    no = holds(attempt, start=memories[0].bytes)
    assert no is None or no.memory == "fast"


def test_all_operators_that_need_as_much_are_named() -> None:
    network = network_of({"x": 10, "a": 20, "b": 10, "y": 20}, ["x -> a", "a -> b", "b -> y"], "y")
    with pytest.raises(Infeasible, match=r"operator op0 \(like 2 more\) needs 30 bytes") as no:
        placement.plan(network, Chip("test", 1), 29)
    assert no.value.operators == ("op0", "op1", "op2")


def onchip(monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
    monkeypatch.setattr(sys, "argv", ["onchip", *args])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


@pytest.mark.parametrize(
    "call",
    [
        ("plan", "--budget", "1KiB", "--no-fuse"),
        ("plan", "--budget", "1KiB", "--objective", "peak"),
        ("plan", "--budget", "1KiB", "--pin", "x"),
        ("plan", "--budget", "1KiB", "--fuse", "--no-nests", "--no-concat-views"),
        ("fuse", "--budget", "1KiB"),
        ("branches", "--budget", "1KiB"),
    ],
    ids=" ".join,
)
def test_the_answer_no_is_data(
    call: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command, *options = call
    assert onchip(monkeypatch, command, "zoo:squeezenet1_0", *options, "--json") == 1
    out, err = capsys.readouterr()
    assert err.count("\n") == 1
    error = json.loads(out)["error"]
    assert error["exit_code"] == 1
    assert error["kind"] == ("needs-traffic" if "peak" in call else "infeasible")
    assert error["needs"] > error["has"] == 1024
    assert error["space"]
    assert err == f"onchip: {error['message']}\n"
    options[options.index("1KiB")] = str(error["needs"])
    assert onchip(monkeypatch, command, "zoo:squeezenet1_0", *options, "--json") == 0
    assert "error" not in json.loads(capsys.readouterr().out)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("objective", "way"),
    [
        pytest.param("free", "held", marks=pytest.mark.campaign),
        ("once", "again"),
        pytest.param("least", "once", marks=pytest.mark.campaign),
    ],
)
def test_a_microcontroller_needs_stack_and_statics_too(
    way: str,
    objective: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if shutil.which("arm-none-eabi-gcc") is None or shutil.which("qemu-system-arm") is None:
        pytest.skip("no cross compiler")
    b = Builder()
    x = b.conv(b.input((1, 8, 8, 3)), 8, 3, activation="RELU")
    (tmp_path / "small.tflite").write_bytes(b.file(b.conv(b.depthwise(x, 3, 2), 6)))
    call = ("mcu", str(tmp_path / "small.tflite"), "--objective", objective, "--input", way, "--json")
    assert onchip(monkeypatch, *call, "--ram", "1") == 1
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["kind"] == "infeasible"
    assert not error["at_least"]
    assert onchip(monkeypatch, *call, "--ram", str(error["needs"])) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["arena_bytes"] < made["ram_bytes"] == error["needs"]
    assert onchip(monkeypatch, *call, "--ram", str(error["needs"] - 1)) == 1
    assert f"needs {error['needs']:,} bytes" in capsys.readouterr().err


def test_wrong_input_is_data_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for call, kind in (
        (("plan", "zoo:nothing", "--json"), "model-error"),
        (("plan", "zoo:alexnet", "--no-such-option", "--json"), "usage-error"),
        (("check", str(tmp_path / "none.json"), "--json"), "plan-format-error"),
    ):
        assert onchip(monkeypatch, *call) == 2
        error = json.loads(capsys.readouterr().out)["error"]
        assert (error["kind"], error["exit_code"]) == (kind, 2)
    (tmp_path / "buffers.csv").write_text("id,lower,upper,size\na,0,2,8\nb,1,3,8\n")
    assert onchip(monkeypatch, "pack", str(tmp_path / "buffers.csv"), "--capacity", "12", "--json") == 1
    data = json.loads(capsys.readouterr().out)  # its own document says why
    assert data["status"] == "infeasible"
