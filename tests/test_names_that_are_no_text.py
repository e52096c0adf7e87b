"""File names are bytes: one that is not UTF-8 is read and written, or refused in one line."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from every_command import COMMANDS, arguments, prepare, run

ODD = os.fsdecode(b"d\xff")


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with such a name, with the files of every command's call."""
    folder = tmp_path_factory.mktemp("names") / ODD
    folder.mkdir()
    prepare(folder)
    (folder / "out").mkdir()
    return folder


@pytest.mark.thorough
@pytest.mark.parametrize("command", COMMANDS)
def test_an_argument(command: str, odd: Path) -> None:
    ended = run(odd, [command, os.fsdecode(b"\xff")])
    assert ended.code == 2
    assert ended.is_clear()
    assert len(ended.err.splitlines()) == 1


@pytest.mark.thorough
@pytest.mark.parametrize("command", ["plan", "mcu", "sweep", "corun", "check"])
def test_the_current_folder_and_that_of_temporary_files(command: str, odd: Path) -> None:
    place = f"import os; os.environ['TMPDIR'] = {str(odd)!r}; "
    ended = run(odd, arguments(command), first=place, fresh=command == "check")
    assert (ended.code, ended.err) == (0, "")
    left = {entry.name for entry in odd.iterdir()}
    assert not any(name.startswith("onchip-") for name in left)


@pytest.mark.thorough
def test_an_output(odd: Path) -> None:
    name = os.fsdecode(b"p\xff.json")
    assert run(odd, ["plan", "net.json", "--budget", "MP", "-o", name]).code == 0
    assert run(odd, ["check", name]).code == 0
    ended = run(odd, ["plan", "net.json", "--budget", "MP", "-o", f"{ODD}/{name}"])
    assert ended.code == 2
    assert ended.err == "onchip: d\\udcff/p\\udcff.json: its folder does not exist\n"


def test_a_crash(odd: Path) -> None:
    place = f"import os; os.environ['TMPDIR'] = {str(odd)!r}; "
    fault = "import sys, onchip.cli.app; sys.modules['onchip.cli.app']._Lazy.get_command = lambda *_: 1 / 0; "
    ended = run(odd, ["plan", os.fsdecode(b"\xff")], first=place + fault, fresh=True)
    assert ended.code == 70
    assert len(ended.err.splitlines()) == 1
    assert "/d\\udcff/onchip-crash-" in ended.err


def test_a_crash_of_native_code_while_a_limit_holds(odd: Path) -> None:
    place = f"import os; os.environ['TMPDIR'] = {str(odd)!r}; "
    killed = f"os.kill(os.getpid(), {int(signal.SIGSEGV)})"
    fault = f"import onchip.base.files; onchip.base.files.os.fsync = lambda _: {killed}\n"
    call = ["plan", "net.json", "--budget", "MP", "--time-limit", "60", "-o", os.fsdecode(b"q\xff.json")]
    ended = run(odd, call, first=place + fault, fresh=True)
    assert ended.code == 70
    assert len(ended.err.splitlines()) == 1
    assert "/d\\udcff/onchip-crash-" in ended.err
    assert not any(entry.name.endswith(".tmp") for entry in odd.iterdir())
