"""Damaged files of every kind are read or refused in one line; minutes of the same are `make fuzz`."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from random import Random

import pytest

from fuzz.targets import TARGETS, Target, survives

PRESENT = [target for target in TARGETS.values() if not target.missing]


@pytest.mark.parametrize("target", PRESENT, ids=lambda target: target.name)
def test_what_fuzzing_starts_from_is_accepted(target: Target) -> None:
    assert all(survives(target, content) for content in target.seeds())


@pytest.mark.thorough
@pytest.mark.parametrize("target", PRESENT, ids=lambda target: target.name)
def test_damaged_files_are_read_or_refused(target: Target) -> None:
    """Damage upon damage: what is accepted is damaged further, so that it wanders away from the seeds."""
    rng = Random(target.name)
    pool = [content for content in target.seeds() if len(content) < 5000] or target.seeds()
    accepted = 0
    for _ in range(20 if target.needs else 150):
        content = target.mutate(rng, rng.choice(pool))
        if survives(target, content):
            accepted += 1
            pool.append(content)
    assert accepted


@pytest.mark.slow
@pytest.mark.campaign
@pytest.mark.skipif(find_spec("atheris") is None, reason="atheris is not installed")
def test_the_fuzzer_itself_finds_its_way(tmp_path: Path) -> None:
    """It runs, is guided by onchip's own code, and keeps inputs beyond those that it began with."""
    tests = Path(__file__).resolve().parents[1]
    command = [sys.executable, "-m", "fuzz", "plan-text", "--runs", "200", "--folder", str(tmp_path)]
    done = subprocess.run(command, cwd=tests, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    seeds = len(set(TARGETS["plan-text"].seeds()))
    assert len(list((tmp_path / "corpus" / "plan-text").iterdir())) > seeds


def test_a_failure_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no clear line, takes too long or does not come back is told from a refusal."""

    def endless(content: bytes) -> None:
        while content:
            pass

    def broken(content: bytes) -> None:
        raise ValueError(content)

    with pytest.raises(ValueError):
        survives(Target("t", broken, list, lambda rng, c: c), b"x")
    with pytest.raises(BaseException, match="processor time"):
        survives(Target("t", endless, list, lambda rng, c: c, seconds=0.05), b"x")
