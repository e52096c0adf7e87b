"""docs/fusion.md keeps its word: its commands run, and the output it shows is what they print."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from onchip import cli

PAGE = Path(__file__).parents[1] / "docs" / "fusion.md"


def blocks(language: str) -> list[str]:
    """The page's code blocks in a language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text("utf-8"), re.S)


def onchip(monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
    monkeypatch.setattr(sys, "argv", ["onchip", *args])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


@pytest.mark.slow
def test_the_commands_run_and_print_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "110")
    commands = [line for block in blocks("sh") for line in block.splitlines() if line]
    assert len(commands) == 2
    printed = []
    for command in commands:
        program, *args = shlex.split(command)
        assert program == "onchip"
        assert onchip(monkeypatch, *args) == 0
        printed.append(capsys.readouterr().out)
    assert (tmp_path / "squeezenet.html").exists()
    (shown,) = blocks("text")
    table = printed[0].split("plan written to")[0]
    assert [line.rstrip() for line in shown.splitlines()] == [
        line.rstrip() for line in table.rstrip().splitlines()
    ], "docs/fusion.md shows another output: put in what the command prints"


def test_every_option_is_on_the_page() -> None:
    from onchip.planners.fusion.options import FusionOptions

    text = PAGE.read_text("utf-8")
    for name in FusionOptions.__dataclass_fields__:
        flag = name.replace("_", "-")
        assert f"--{flag}" in text or f"--no-{flag}" in text, name
