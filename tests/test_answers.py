"""Ctrl-C after the answer: what `-o` asked for lies in its place, so the command has answered."""

from __future__ import annotations

from pathlib import Path

import pytest

from every_command import CALLS, outputs, prepare, run

AFTER = """
import os, signal, sys
import onchip_command, onchip.cli
onchip.cli.load_all()
renamed = pressed = False
def hear(event, details):
    global renamed, pressed
    if event == "os.rename" and str(details[1]).endswith("TARGET"):
        renamed = True
    elif renamed and not pressed:
        pressed = True
        signal.raise_signal(signal.SIGINT)
sys.addaudithook(hear)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("place")
    prepare(folder)
    return folder


@pytest.mark.thorough
@pytest.mark.parametrize("command", ["plan", "fuse", "branches", "corun", "pack", "export", "report"])
def test_ctrl_c_after_the_output_is_in_its_place_is_an_answer(command: str, place: Path) -> None:
    assert "--output" in outputs(command)
    target = place / f"{command}-made.json"
    for again in (False, True):  # a new file, and one in the place of another
        assert target.exists() is again
        ended = run(
            place,
            [command, *CALLS[command], "--output", target.name],
            first=AFTER.replace("TARGET", target.name),
            fresh=command == "pack",
        )
        assert ended.code == 0, ended
        assert target.stat().st_size
        said = "".join(line for line in ended.err.splitlines(keepends=True) if "now, and goes on" not in line)
        assert said in ("", f"onchip: interrupted after {target.name} was written\n")
