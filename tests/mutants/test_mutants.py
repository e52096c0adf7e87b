"""A hundred mutants of every kind, and a referee that can tell: it refuses what breaks a rule."""

from __future__ import annotations

import itertools
from random import Random

import pytest

from mutants.campaign import ALL, tally
from mutants.referee import Referee

import broken_joins  # noqa: F401  isort: skip  registers its breakers
import broken_memories  # noqa: F401  isort: skip
import broken_pins  # noqa: F401  isort: skip
import broken_repeats  # noqa: F401  isort: skip
from broken_plans import BREAKERS, Site  # isort: skip
from legal_plans import legal_plan  # isort: skip


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ALL)
def test_what_the_checker_accepts_of_mutants_is_confirmed(kind: str) -> None:
    found = tally(kind, 20 if kind in ("sections", "patches") else 100, 10**6)
    assert not found.differences, found.differences[0][:2]
    assert found.confirmed == found.accepted > 1
    assert found.accepted < found.mutants  # some are refused


HARMLESS = {
    # What the page forbids so that a program says what it means; no byte and no figure tells.
    "already-resident", "bad-accumulators", "bad-rate", "claim",
    "group-weights", "names-view", "overlap-distance", "pin", "scratch-twice",
    "state", "unknown-operator", "unknown-tensor",
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("rule", sorted(set(BREAKERS)))
def test_the_referee_refuses_what_breaks_a_rule(rule: str) -> None:
    rng, seen = Random(5), 0
    for _ in range(25):
        for plan, _ in itertools.islice(BREAKERS[rule](Site(rng, legal_plan(rng))), 3):
            seen += 1
            try:
                Referee(plan).confirm()
            except Exception:
                continue
            assert rule in HARMLESS, plan
        if seen > 5:
            return


def nothing(*_: object, **__: object) -> None:
    """A proof that proves all."""


HOLES = [
    ("placement", "onchip.check.interpreter.prove_overlap", nothing),
    ("repeats", "onchip.check.machine_state.why_no_repeat", nothing),
    ("tiled", "onchip.check.units._refilled", nothing),
    ("rings", "onchip.check.interpreter.loses_a_byte", lambda *_, **__: False),
    ("sections", "onchip.check.interpreter.prove_sections", nothing),
    ("patches", "onchip.check.patches.ring_rows", lambda *_: 1),
    ("timed", "onchip.check.released.Released.latest", lambda *_: 0),
    ("timed", "onchip.check.timing.Clock.transfer", lambda self, n: n),
    ("tiled", "onchip.check.interpreter.prove_group_overlap", nothing),
    ("schedules", "onchip.multi_dnn.check._check_figures", nothing),
    ("schedules", "onchip.multi_dnn.check._check_bound", nothing),
    ("schedules", "onchip.multi_dnn.timeline.Timeline._taken_in", lambda *_: 0.0),
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "proof", "without"), HOLES)
def test_a_checker_with_a_hole_is_found_out(
    monkeypatch: pytest.MonkeyPatch, kind: str, proof: str, without: object
) -> None:
    monkeypatch.setattr(proof, without)
    assert any(tally(kind, 25, 5000 + first).differences for first in range(0, 400, 25))
