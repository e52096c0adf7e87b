"""docs/branches.md keeps its word: its commands run, and the output it shows is what they print."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from onchip import cli

PAGE = Path(__file__).parents[1] / "docs" / "branches.md"


def blocks(language: str) -> list[str]:
    """The page's code blocks in a language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text("utf-8"), re.S)


def onchip(monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
    monkeypatch.setattr(sys, "argv", ["onchip", *args])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


def lines(text: str) -> list[str]:
    """Lines as one sees them; how long planning took is another matter."""
    text = re.sub(r"in [0-9,.]+ ms", "in so many ms", text)
    return [line.rstrip() for line in text.rstrip().splitlines()]


@pytest.mark.slow
def test_the_commands_run_and_print_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "110")
    commands = [line for block in blocks("sh") for line in block.splitlines() if line]
    assert len(commands) == 3
    printed = []
    for command in commands:
        program, *args = shlex.split(command)
        assert program == "onchip"
        assert onchip(monkeypatch, *args) == 0
        printed.append(capsys.readouterr().out)
    assert (tmp_path / "inception.html").exists()
    (shown,) = blocks("text")
    assert lines(shown) == lines(printed[0].split("plan written to")[0]), (
        "docs/branches.md shows another output: put in what the command prints"
    )
    assert "bit for bit" in printed[1]
    assert "Beside exact placement" in printed[2]
    assert "exact 1,015,296 B (991.5 KiB), and from no fewer" in printed[2]
    assert "simple 1,053,696 B (1,029.0 KiB)" in printed[2]


def test_the_python_on_the_page_runs() -> None:
    found: dict[str, object] = {}
    (code,) = blocks("python")
    exec(code, found)
    made = found["made"]
    assert (made.total.fm_bytes, made.total.naive_fm_bytes) == (600 * 1024, 24_904 * 1024)  # type: ignore[attr-defined]


def test_every_option_is_on_the_page() -> None:
    from onchip.planners.branches.options import BranchOptions

    text = PAGE.read_text("utf-8")
    for name in BranchOptions.__dataclass_fields__:
        assert f"--{name.replace('_', '-')}" in text, name
