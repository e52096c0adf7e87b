"""`onchip export` and `onchip run` on `.tflite` files, as a user types them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from onchip import cli
from readers.tflite_build import branching


def onchip(monkeypatch: pytest.MonkeyPatch, *args: str | Path) -> int:
    monkeypatch.setattr(sys, "argv", ["onchip", *map(str, args)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "odd name;[x].tflite").write_bytes(branching())
    path = tmp_path / "plan.json"
    model = tmp_path / "odd name;[x].tflite"
    assert onchip(monkeypatch, "plan", model, "--chip", "tflm", "--budget", "MP", "-o", path) == 0
    return path


@pytest.mark.thorough
def test_plan_check_run_export(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert onchip(monkeypatch, "check", plan) == 0
    assert onchip(monkeypatch, "run", plan) == 0
    assert "bit for bit as in LiteRT's reference kernels" in capsys.readouterr().out
    for to in ("minimalloc", "c", "json", "tflm"):
        assert onchip(monkeypatch, "export", plan, "--to", to, "-o", tmp_path / to) == 0
        assert f"{to} written to" in capsys.readouterr().out
    assert json.loads((tmp_path / "json").read_text())["format"] == "onchip.layout/1"
    assert (tmp_path / "tflm").read_bytes().endswith(branching())


def test_a_model_that_moved_is_named(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    moved = (tmp_path / "odd name;[x].tflite").rename(tmp_path / "moved.tflite")
    out = tmp_path / "out.tflite"
    capsys.readouterr()
    assert onchip(monkeypatch, "export", plan, "--to", "tflm", "-o", out) == 2
    assert "say where it is with --model" in capsys.readouterr().err
    assert not out.exists()
    assert onchip(monkeypatch, "export", plan, "--to", "tflm", "--model", moved, "-o", out) == 0
    assert out.read_bytes().endswith(branching())
    assert onchip(monkeypatch, "export", plan, "--to", "tflm", "--model", moved, "-o", moved) == 2
    assert moved.read_bytes() == branching()


def test_the_extras_are_named_when_they_are_missing(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    monkeypatch.setitem(sys.modules, "ai_edge_litert", None)
    assert onchip(monkeypatch, "run", plan) == 2
    assert "ai-edge-litert is not installed: pip install 'onchip[tflite]'" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "tflite", None)
    model = next(tmp_path.glob("*.tflite"))
    assert onchip(monkeypatch, "plan", model, "--budget", "MP") == 2
    assert "tflite is not installed: pip install 'onchip[tflite]'" in capsys.readouterr().err
