"""A prompt and the steps behind it in one arena: caches at one place, each plan on what the last one left."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onchip
from growing import model, saved
from onchip.base.errors import IllegalPlan, Infeasible, Mismatch, NegativeAnswer, PlanFormatError, UsageError
from onchip.by_length.judge import check_session, is_session
from onchip.check import prove_following
from onchip.plans import PlanChip
from onchip.replanning import network_at, session_in_turn
from onchip.run.caches import Buffer
from onchip.run.sequence import run_in_turn
from onchip.run.state import State

STATE = ("past.*=present.*",)
HOW: dict[str, Any] = {
    "prompt_dims": "words=4",
    "length": "past=4..15",
    "budget": 3000,
    "state": STATE,
    "capacity": 16,
}


@pytest.fixture(name="models", scope="module")
def _models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("words")
    prompt = saved(folder, "prompt.onnx", model(words="words", past=None, layers=2))
    return prompt, saved(folder, "decode.onnx", model(words=1, past="past", layers=2))


@pytest.fixture(name="session", scope="module")
def _session(models: tuple[Path, Path]) -> onchip.Session:
    return onchip.session(*models, **HOW)


def test_caches_lie_at_one_place_in_all_plans(session: onchip.Session) -> None:
    session.check()
    places = [(c.address, c.rows, c.axis) for c in session.prompt.caches]
    assert places == [(16 * 32 * i, 16, 2) for i in range(4)]
    for row in session.steps.rows:
        assert [(c.address, c.rows, c.axis) for c in row.plan.caches] == places
    assert session.steps.rows[0].first == 4
    assert session.steps.rows[-1].last == 15


def test_steps_read_what_the_prompt_wrote_bit_for_bit(session: onchip.Session) -> None:
    report = session.run()
    assert len(report.networks) == 1 + 12
    assert report.bit_exact
    assert report.handed_over == sum(4 * words * 32 for words in range(4, 16))
    assert report.dram_bytes == session.prompt.result.dram_bytes + sum(
        session.steps.plan(n).result.dram_bytes for n in range(4, 16)
    )


def test_a_byte_that_is_lost_between_two_plans_is_found(
    session: onchip.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = State.hold

    def loses(
        self: State, buffer: Buffer, inputs: Mapping[int, np.ndarray[Any, Any]], before: State | None
    ) -> None:
        hold(self, buffer, inputs, before)
        if before is not None and buffer.name == "present.1.v":
            self.arena.bytes[buffer.address] ^= 1

    monkeypatch.setattr(State, "hold", loses)
    with pytest.raises(Mismatch, match=r"past\.1\.v"):
        session.run(1)


def test_the_files_are_checked_and_executed(session: onchip.Session, tmp_path: Path) -> None:
    session.save(tmp_path)
    path = tmp_path / "session.json"
    assert is_session(path)
    assert check_session(path, network_at) == session.data() == json.loads(path.read_text())
    report = run_in_turn(session_in_turn(path, 2))
    assert (len(report.networks), report.bit_exact) == (3, True)
    data = session.data()
    data["caches"][1]["address"] += 4
    path.write_text(json.dumps(data, indent=1))
    with pytest.raises(NegativeAnswer, match="its caches are not those of"):
        check_session(path, network_at)
    for wrong, message in (
        ({**data, "caches": 3}, "has no caches"),
        ({**data, "prompt": "../prompt.json"}, "names no plan"),
    ):
        path.write_text(json.dumps(wrong, indent=1))
        with pytest.raises(PlanFormatError, match=message):
            check_session(path, network_at)


def test_plans_that_do_not_follow_each_other(session: onchip.Session) -> None:
    prompt, step = session.prompt, session.steps.rows[0].begins
    prove_following(prompt, step)
    first, *rest = step.caches
    longer = session.steps.plan(9)
    for wrong, message in (
        (replace(step, budget=step.budget + 1), "a budget of"),
        (replace(step, chip=PlanChip("other")), "chip generic, then chip other"),
        (replace(step, caches=tuple(rest)), "4 caches, then 3"),
        (replace(step, caches=(*rest, first)), "at 0 with 16 rows along axis 2, then at 512"),
        (replace(step, caches=(replace(first, address=8), *rest)), "then at 8 with 16"),
        (replace(step, caches=(replace(first, rows=17), *rest)), "then at 0 with 17"),
        (replace(step, caches=(replace(first, input=None), *rest)), r"present\.0\.k begins anew"),
        (longer, r"present\.0\.k leaves 4 rows, and past\.0\.k has 9"),
    ):
        with pytest.raises(IllegalPlan, match=f"hand-over.*{message}"):
            prove_following(prompt, wrong)


@pytest.mark.parametrize(
    ("how", "kind", "message"),
    [
        ({"prompt_dims": "words=5"}, UsageError, "begins with 4 rows of past.0.k, and the prompt leaves 5"),
        ({"begins": ("present.0.k",)}, UsageError, "names 1 outputs for 4 caches"),
        ({"begins": ("a", "b", "c", "d")}, UsageError, "makes no a"),
        ({"state": (), "capacity": None}, UsageError, "--state: is needed"),
        ({"budget": 600}, Infeasible, r"cache present\.0\.k"),
        ({"prompt_dims": 4}, UsageError, "is no text like"),
        ({"begins": "present.0.k"}, UsageError, "is no tuple"),
    ],
)
def test_what_makes_no_session(
    models: tuple[Path, Path], how: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        onchip.session(*models, **{**HOW, **how})


def test_a_prompt_may_name_its_caches_otherwise(models: tuple[Path, Path], tmp_path: Path) -> None:
    made = model(words="words", past=None, layers=2)
    for node in made.graph.node:
        for names in (node.input, node.output):
            for i, name in enumerate(names):
                names[i] = name.replace("present.", "begun.")
    for output in made.graph.output:
        output.name = output.name.replace("present.", "begun.")
    renamed = saved(tmp_path, "renamed.onnx", made)
    begins = tuple(f"begun.{i}.{x}" for i in range(2) for x in "kv")
    session = onchip.session(renamed, models[1], **{**HOW, "begins": begins})
    assert [c["begins"] for c in session.data()["caches"]] == list(begins)
    assert session.run(2).bit_exact


@pytest.mark.thorough
def test_a_fused_prompt_hands_its_caches_over(models: tuple[Path, Path]) -> None:
    how = {**HOW, "prompt_dims": "words=12", "length": "past=12..13", "budget": 3000}
    with pytest.raises(Infeasible):
        onchip.session(*models, **how)
    session = onchip.session(*models, **how, fuse=True, time_limit=2)
    assert session.prompt.groups
    report = session.run()
    assert len(report.networks) == 3
    assert report.handed_over == sum(4 * words * 32 for words in range(12, 14))
