"""Files damaged at random: every reader answers with a result or one clear line, never with a traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from made import rival
from workloads import random_schedule, random_workload

from fuzz.mutate import as_json, raw
from onchip.base.errors import LINE, OnchipError
from onchip.machines.soc_file import load_soc
from onchip.multi_dnn.check import check_file
from onchip.multi_dnn.profile_file import load_profile, profile_json
from onchip.multi_dnn.published import googlenet
from onchip.multi_dnn.schedule_json import Claim, schedule_json
from onchip.multi_dnn.simulate import simulate
from onchip.papers.hax_conn.fit import fit_contention, read_matrix


def only_clear_lines(read: Callable[[Path], object], path: Path, content: bytes) -> bool:
    """Whether the content was accepted; anything but a result or one line fails."""
    path.write_bytes(content)
    said = ""
    try:
        read(path)
    except OnchipError as problem:
        said = str(problem) or "\n"
    assert not said or said.isprintable(), said
    assert len(said) <= LINE
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
        only_clear_lines(check_file, tmp_path / "s.json", as_json(rng, text.encode()))
        only_clear_lines(check_file, tmp_path / "s.json", raw(rng, text.encode()))


@pytest.mark.thorough
def test_damaged_profiles(tmp_path: Path) -> None:
    rng = Random(5)
    csv = b"group,gpu_ms,dla_ms,gpu_gb_per_second,dla_emc_percent,gpu_emc_percent,dla_out_ms\n"
    csv += b"a,1,2,30,20,10,0.1\nb,0.5,,20,,,\nc,2,1.5,,1,1,0.3\n"
    accepted = 0
    for _ in range(300):
        content = as_json(rng, profile_json(googlenet()).encode())
        only_clear_lines(load_profile, tmp_path / "p.json", content)
        accepted += only_clear_lines(
            lambda path: load_profile(path, units=("gpu", "dla")), tmp_path / "p.csv", raw(rng, csv)
        )
    assert 0 < accepted < 300


def test_damaged_socs_and_matrices(tmp_path: Path) -> None:
    rng = Random(6)
    toml = (Path(__file__).resolve().parents[2] / "src/onchip/machines/socs/xavier-agx.toml").read_bytes()
    matrix = b"x,10,20,30\n10,99,98,97\n50,90,80,75\n90,80,60,50\n"
    accepted = 0
    for _ in range(300):
        accepted += only_clear_lines(load_soc, tmp_path / "s.toml", raw(rng, toml))
    for _ in range(60):
        only_clear_lines(
            lambda path: fit_contention(read_matrix(path), 100.0),
            tmp_path / "m.csv",
            raw(rng, matrix),
        )
    assert 0 < accepted < 300
