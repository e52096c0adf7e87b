"""`onchip pack` as a user meets it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from onchip import cli
from onchip.planners.packing import (
    Buffer,
    PackOptions,
    decide,
    fault,
    max_load,
    pack,
    read_buffers,
    write_buffers,
)
from planners.packing.instances import exact_tiling, exhaustive, featured, tight_instance

MISFIT = 6671
"""A seed of `tight_instance` whose load fits everywhere and whose buffers do not."""


def onchip(monkeypatch: pytest.MonkeyPatch, *args: object) -> int:
    monkeypatch.setattr(sys, "argv", ["onchip", *map(str, args)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


@pytest.fixture
def example(tmp_path: Path) -> Path:
    path = tmp_path / "input.csv"
    path.write_text("id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n")
    return path


def test_offsets_are_written_and_right(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = example.parent / "out.csv"
    assert onchip(monkeypatch, "pack", example, "--capacity", "12B", "-o", out) == 0
    given, placed = read_buffers(example), read_buffers(out)
    assert placed.ids == given.ids
    assert fault(given.buffers, [b.offset or 0 for b in placed.buffers], 12) is None
    assert onchip(monkeypatch, "pack", out, "--capacity", 12) == 0


def test_the_smallest_capacity(
    example: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert onchip(monkeypatch, "pack", example, "--minimise", "--alignment", 8, "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["status"] == "packed"
    assert answer["extent"] == answer["lower_bound"] == 20
    assert [row["id"] for row in answer["offsets"]] == ["b1", "b2", "b3", "b4", "b5"]
    assert all(row["offset"] % 8 == 0 for row in answer["offsets"])


@pytest.mark.thorough
def test_what_does_not_fit_is_named_with_the_bytes_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    buffers, capacity = tight_instance(MISFIT)
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    write_buffers(path, buffers, [f"t{i}" for i in range(len(buffers))])
    args = "pack", path, "--capacity", capacity, "-o", out
    assert onchip(monkeypatch, *args, "--json") == 1
    captured = capsys.readouterr()
    answer = json.loads(captured.out)
    conflict = answer["conflict"]
    subset = [buffers[int(row["id"][1:])] for row in conflict["buffers"]]
    assert conflict["minimal"]
    assert not exhaustive(subset, capacity)
    assert all(pack(subset[:i] + subset[i + 1 :], capacity).status == "packed" for i in range(len(subset)))
    assert answer["exact"]
    assert pack(buffers, answer["needs"]).status == "packed"
    assert not exhaustive(buffers, answer["needs"] - 1)
    assert answer["missing"] == answer["needs"] - capacity
    assert captured.err.count("\n") == 1
    assert f"({answer['missing']} missing)" in captured.err
    assert not out.exists()

    assert onchip(monkeypatch, *args) == 1
    captured = capsys.readouterr()
    assert "irreducible" in captured.out
    assert all(row["id"] in captured.out for row in conflict["buffers"])


def test_what_is_not_decided_says_what_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "in.csv"
    write_buffers(path, exact_tiling(300, seed=1))
    assert onchip(monkeypatch, "pack", path, "--capacity", 1000, "--time-limit", 0) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith(
        "onchip: not decided in 0 s: the capacity is 1,000 bytes, at least 1,000 are"
    )
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    ("args", "names"),
    [
        ((), "a capacity is needed"),
        (("--capacity", "12x"), "--capacity"),
        (("--capacity", "12", "--alignment", "0"), "alignment"),
        (("--capacity", "12", "--time-limit", "-1"), "--time-limit"),
        (("--capacity", "12", "--seed", "-1"), "seed"),
        (("--capacity", "12", "-o", "nowhere/out.csv"), "nowhere"),
    ],
)
def test_bad_usage_is_one_line(
    args: tuple[str, ...],
    names: str,
    example: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert onchip(monkeypatch, "pack", example, *args) == 2
    captured = capsys.readouterr()
    assert names in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_the_input_is_not_written_over(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = example.read_text()
    assert onchip(monkeypatch, "pack", example, "--capacity", 12, "-o", example) == 2
    assert example.read_text() == before


def test_fixed_buffers_that_overlap_need_no_capacity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "in.csv"
    write_buffers(
        path, [Buffer(0, 4, 2, offset=4), Buffer(0, 4, 2), Buffer(3, 5, 1, offset=5)], ["a", "b", "c"]
    )
    for args in (("--capacity", 64), ("--minimise",), ("--capacity", 64, "--minimise")):
        assert onchip(monkeypatch, "pack", path, *args) == 1
        captured = capsys.readouterr()
        assert "no capacity is enough" in captured.err
    assert "a (2 B in [0, 4) at 4), c (1 B in [3, 5) at 5)" in captured.err


@pytest.mark.parametrize("name", ["A", "B", "C", "E"])
def test_the_challenging_instances_below_their_load(shared: Path, name: str) -> None:
    buffers = read_buffers(shared / "bench" / "minimalloc" / f"{name}.1048576.csv").buffers
    load = max_load(buffers)
    verdict = decide(buffers, load - 1, PackOptions())
    assert verdict.status == "infeasible"
    assert verdict.conflict is not None
    assert verdict.conflict.minimal
    assert verdict.exact
    assert verdict.needs == load


@pytest.mark.parametrize("seed", range(30))
def test_verdicts_agree_with_trying_everything(seed: int) -> None:
    buffers, capacity = featured(seed)
    fits = exhaustive(buffers, capacity)
    for options in (PackOptions(), PackOptions(minimise=True)):
        verdict = decide(buffers, capacity, options)
        assert verdict.status == ("packed" if fits else "infeasible")
        assert max_load(buffers) <= verdict.lower_bound
        if fits:
            assert verdict.extent is not None
            assert fault(buffers, verdict.offsets, verdict.extent) is None
            assert verdict.lower_bound <= verdict.extent <= capacity
        else:
            assert verdict.conflict is not None
            assert not exhaustive([buffers[i] for i in verdict.conflict.which], capacity)
            if verdict.needs is None:
                assert not exhaustive(buffers, sum(b.size for b in buffers) + 64)
            else:
                assert verdict.exact
                assert not exhaustive(buffers, verdict.needs - 1)
                assert exhaustive(buffers, verdict.needs)
