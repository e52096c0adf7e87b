"""Without OR-Tools: searches that need it say so in one line, and what does not need it answers as ever."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import onchip
from onchip import cli
from onchip.base.errors import MissingExtra
from onchip.planners.fusion.pricing import relax

SOURCES = Path(onchip.__file__).parent
IMPORT = re.compile(r"^( +)from ortools\b")


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ortools", None)


def command(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["onchip", *words])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


@pytest.mark.usefixtures("without")
def test_what_needs_it_says_so_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = command(monkeypatch, "plan", "zoo:alexnet", "--budget", "MR", "--strategy", "ilp")
    assert (code, capsys.readouterr().err) == (2, "onchip: ortools is not installed: pip install ortools\n")
    with pytest.raises(MissingExtra):
        relax(None, 1)  # type: ignore[arg-type]


@pytest.mark.usefixtures("without")
def test_tiles_of_a_small_network_are_planned_without_it() -> None:
    assert onchip.plan("zoo:squeezenet1_0", budget=256 << 10).result.status == "optimal"


def test_no_search_imports_it_without_asking_whether_it_is_there() -> None:
    found = 0
    for path in sorted((SOURCES / "planners").rglob("*.py")):
        before, asked = "", False
        for line in path.read_text("utf-8").splitlines():
            asked = asked or line.strip() == "needs_or_tools()"
            if IMPORT.match(line) and "TYPE_CHECKING" not in before:
                found += 1
                assert asked, f"{path}: {line.strip()}"
            before = line
    assert found >= 8
