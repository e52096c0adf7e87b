"""Every command, when the disk is full, its reader leaves or Ctrl-C comes: one line, no half of a file."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from every_command import CALLS, COMMANDS, JOURNALS, Ended, arguments, outputs, prepare, run


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("given")
    prepare(folder)
    return folder


@pytest.fixture
def place(given: Path, tmp_path: Path) -> Path:
    """A folder with the inputs, and an empty one for outputs."""
    folder = tmp_path / "place"
    shutil.copytree(given, folder)
    (folder / "out").mkdir()
    return folder


def written(place: Path) -> list[str]:
    return sorted(
        str(path.relative_to(place / "out")) for path in (place / "out").rglob("*") if path.is_file()
    )


def test_every_command_has_a_call() -> None:
    assert set(CALLS) == set(COMMANDS)


MOVED = {
    command: f"onchip: {command} is `onchip plan --method {method}` now, and goes on as it was\n"
    for command, method in (("fuse", "optimus"), ("branches", "simple"))
}
"""Lines of commands of the papers, which say where these are now."""


FRESH = {"chips", "pack"}
"""One that writes nothing and one that does: in processes that import everything, as a user's do."""


@pytest.mark.thorough
@pytest.mark.parametrize("command", COMMANDS)
def test_it_works_and_survives_a_full_disk(command: str, place: Path) -> None:
    """Nothing can be written to a disk that takes 10 bytes of a file; and the same call works on another."""
    wanted = outputs(command)
    ended = run(place, arguments(command))
    assert ended.code == 0, ended
    assert ended.err == MOVED.get(command, "")
    assert len(written(place)) >= len(wanted)
    shutil.rmtree(place / "out")
    (place / "out").mkdir()
    if wanted:
        ended = run(place, arguments(command), file_bytes=10, fresh=command in FRESH)
        assert ended.code == 2, ended
        assert ended.is_clear(), ended.err
        assert "File too large" in ended.err or "disk I/O error" in ended.err  # the latter is SQLite's
        # Firmware is linked in a temporary folder first, where there is a compiler for it.
        assert "out/" in ended.err or tempfile.gettempdir() in ended.err
        assert command in JOURNALS or written(place) == []


@pytest.mark.thorough
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_behind_stdout_is_one_line(command: str, place: Path) -> None:
    with open("/dev/full", "wb") as full:
        ended = run(place, arguments(command), stdout=full.fileno(), fresh=command in FRESH)
    assert ended.code == 2, ended
    assert ended.is_clear(), ended.err
    assert "No space left on device" in ended.err


@pytest.mark.thorough
@pytest.mark.parametrize("command", COMMANDS)
def test_a_reader_that_has_left_is_no_error(command: str, place: Path) -> None:
    """As in `onchip ... | head -1`."""
    ended = piped(place, command, "stdout")
    assert ended.code == 0
    assert ended.err in ("", MOVED.get(command))  # the line comes behind the output


@pytest.mark.thorough
def test_a_reader_of_both_streams_that_has_left_is_no_error(place: Path) -> None:
    """As in `onchip ... 2>&1 | head -1`, an error's line included."""
    assert piped(place, "chips", "stdout", "stderr").code == 0
    (place / "plan.json").write_text("{}")
    assert piped(place, "check", "stdout", "stderr").code == 2


def piped(place: Path, command: str, *streams: str) -> Ended:
    """The command with these streams going into a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        into = dict.fromkeys(streams, writing)
        return run(place, arguments(command), fresh=command in FRESH, **into)  # type: ignore[arg-type]
    finally:
        os.close(writing)


PRESSED = """
import os, signal, sys
import onchip_command, onchip.cli
onchip.cli.load_all()
pressed = False
def hear(event, details):
    global pressed
    given = event != "open" or not str(details[0]).endswith((".py", ".pyc", ".so"))
    if event == EVENT and given and not pressed:
        pressed = True
        signal.raise_signal(signal.SIGINT)
sys.addaudithook(hear)
"""


@pytest.mark.thorough
@pytest.mark.parametrize("event", ["open", "os.rename"])
@pytest.mark.parametrize("command", COMMANDS)
def test_ctrl_c_is_one_line_and_no_half_of_a_file(command: str, event: str, place: Path) -> None:
    """Pressed when the first file of the work is opened, and when an output is put in its place."""
    if event == "os.rename" and not outputs(command):
        pytest.skip("writes nothing")
    first = PRESSED.replace("EVENT", repr(event))
    ended = run(place, arguments(command), first=first, fresh=command in FRESH)
    assert ended.code == 130, ended
    assert ended.is_clear(), ended.err
    assert ended.err.endswith("onchip: interrupted\n")
    assert not [*place.rglob(".onchip-*")]
