"""SIGKILL and Ctrl-C, to real processes: nothing is lost or computed twice, and the table is the same."""

from __future__ import annotations

import os
import random
import signal
import sys
from pathlib import Path

import pytest

from sweep_processes import SPEC, alive, answers, children, finish, log_bytes, start, table, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="children are found in /proc")


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.toml"
    path.write_text(SPEC)
    return path


@pytest.mark.thorough
def test_killed_workers_and_coordinators_change_nothing(spec: Path) -> None:
    calm, killed = spec.with_name("calm"), spec.with_name("killed")
    assert finish(start(spec, calm)) == 0
    chance = random.Random(0)
    known: dict[str, str] = {}
    for round_ in range(2):
        process = start(spec, killed)
        before = log_bytes(killed)
        until(lambda process=process: children(process.pid))
        os.kill(chance.choice(children(process.pid)), signal.SIGKILL)
        until(lambda before=before, more=round_ * 9_000: log_bytes(killed) > before + 20_000 + more or 0)
        orphans = children(process.pid)
        process.kill()
        finish(process)
        until(lambda orphans=orphans: not any(map(alive, orphans)))  # none goes on without it
        now = answers(killed)
        assert known.items() <= now.items(), "lost, or computed again"
        known = now
    assert len(known) > 0
    assert finish(start(spec, killed)) == 0
    assert known.items() <= answers(killed).items(), "lost, or computed again"
    assert table(killed) == table(calm)


@pytest.mark.thorough
def test_ctrl_c_leaves_a_table_and_a_state_to_go_on_from(spec: Path) -> None:
    folder = spec.with_name("cut")
    process = start(spec, folder, "--jobs", "1")
    until(lambda: log_bytes(folder) > 30_000)
    workers = children(process.pid)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert b"Traceback" not in said
    assert not any(map(alive, workers))
    there = len(table(folder))
    assert 0 < there < 120
    known = answers(folder)
    assert len(known) == there
    assert finish(start(spec, folder)) == 0
    assert known.items() <= answers(folder).items()
    assert len(table(folder)) == 120
