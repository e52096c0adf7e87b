"""Files damaged at random: every reader answers with a result or one clear line, never with a traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from made import rival
from workloads import random_schedule, random_workload

from onchip.corun.check import check_file
from onchip.corun.fit import fit_contention, read_matrix
from onchip.corun.profile_file import load_profile, profile_json
from onchip.corun.published import googlenet
from onchip.corun.schedule_json import Claim, schedule_json
from onchip.corun.simulate import simulate
from onchip.corun.soc_file import load_soc
from onchip.errors import OnchipError

VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2, 10**30, -(10**30), 1e308, -0.5, "", "gpu", "a", "\ud800", "\n\x1b[31m", [], {},
    [[]], {"a": 1}, ["a", 0, "g0"],
)  # fmt: skip
TOKENS = (
    b"nan", b"inf", b"-1", b"1e999", b"0", b"", b",", b"\n", b'"', b"\x00", b"\xff", b"[", b"]", b"{", b"=",
    b"'''",
)  # fmt: skip


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a JSON document."""
    keys = range(len(value)) if isinstance(value, list) else list(value) if isinstance(value, dict) else ()
    found: list[tuple[Any, Any]] = []
    for key in keys:
        found += [(value, key), *places(value[key])]
    return found


def damaged_json(rng: Random, document: Any) -> bytes:
    """A document with one to three values replaced, removed, doubled or swapped."""
    for _ in range(rng.randint(1, 3)):
        there = places(document)
        if not there:
            break
        container, key = rng.choice(there)
        match rng.randrange(4):
            case 0:
                container[key] = rng.choice(VALUES)
            case 1:
                del container[key]
            case 2 if isinstance(container, list):
                container.insert(key, json.loads(json.dumps(container[key])))
            case _:
                other, place = rng.choice(there)
                if place in other if isinstance(other, dict) else place < len(other):
                    container[key] = json.loads(json.dumps(other[place]))
    return json.dumps(document).encode()


def damaged_bytes(rng: Random, content: bytes) -> bytes:
    """Bytes with one to three stretches cut out or replaced."""
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(content) + 1)
        content = content[:at] + rng.choice(TOKENS) + content[at + rng.choice((0, 0, 1, 3, 20)) :]
    return content


def only_clear_lines(read: Callable[[Path], object], path: Path, content: bytes) -> bool:
    """Whether the content was accepted; anything but a result or one line fails."""
    path.write_bytes(content)
    said = ""
    try:
        read(path)
    except OnchipError as problem:
        said = str(problem) or "\n"
    assert not said or said.isprintable(), said
    assert len(said) < 1000
    return not said


@pytest.mark.parametrize("seed", range(4))
def test_damaged_schedules(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    for _ in range(60):
        work = random_workload(rng)
        schedule = random_schedule(rng, work, idle=True)
        beside = rival(work, "r", random_schedule(rng, work))
        claim = Claim("best found", seconds=1.0, rivals=(beside,))
        text = schedule_json(schedule, simulate(work, schedule), claim=claim)
        only_clear_lines(check_file, tmp_path / "s.json", damaged_json(rng, json.loads(text)))
        only_clear_lines(check_file, tmp_path / "s.json", damaged_bytes(rng, text.encode()))


def test_damaged_profiles(tmp_path: Path) -> None:
    rng = Random(5)
    csv = b"group,gpu_ms,dla_ms,gpu_gb_per_second,dla_emc_percent,gpu_emc_percent,dla_out_ms\n"
    csv += b"a,1,2,30,20,10,0.1\nb,0.5,,20,,,\nc,2,1.5,,1,1,0.3\n"
    accepted = 0
    for _ in range(300):
        document = json.loads(profile_json(googlenet()))
        only_clear_lines(load_profile, tmp_path / "p.json", damaged_json(rng, document))
        accepted += only_clear_lines(
            lambda path: load_profile(path, units=("gpu", "dla")), tmp_path / "p.csv", damaged_bytes(rng, csv)
        )
    assert 0 < accepted < 300


def test_damaged_socs_and_matrices(tmp_path: Path) -> None:
    rng = Random(6)
    toml = (Path(__file__).resolve().parents[2] / "src/onchip/socs/xavier-agx.toml").read_bytes()
    matrix = b"x,10,20,30\n10,99,98,97\n50,90,80,75\n90,80,60,50\n"
    accepted = 0
    for _ in range(300):
        accepted += only_clear_lines(load_soc, tmp_path / "s.toml", damaged_bytes(rng, toml))
    for _ in range(60):
        only_clear_lines(
            lambda path: fit_contention(read_matrix(path), 100.0),
            tmp_path / "m.csv",
            damaged_bytes(rng, matrix),
        )
    assert 0 < accepted < 300
