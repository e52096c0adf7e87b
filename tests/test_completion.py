"""What the shell offers: names of networks, chips, boards and SoCs, files on the way, and colons in bash."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from onchip import zoo
from onchip.cli import complete
from onchip.machines.board import builtin_boards
from onchip.machines.chip import builtin_chips
from onchip.machines.soc_file import builtin_socs


def offered(*words: str, shell: str = "bash", folder: Path | None = None) -> list[str]:
    """What the command answers when the shell asks for the last word, cut as bash cuts."""
    cut = [part for word in words for part in word.replace(":", " : ").split(" ") if part or not word]
    environment = {
        **os.environ,
        "_ONCHIP_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": " ".join(["onchip", *cut]),
        "COMP_CWORD": str(len(cut)),
        "_TYPER_COMPLETE_ARGS": " ".join(["onchip", *words]),
    }
    code = "import sys; sys.argv[0] = 'onchip'; from onchip_command import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=folder, capture_output=True, text=True
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.thorough
def test_names_are_offered_as_bash_and_zsh_ask_for_them(tmp_path: Path) -> None:
    (tmp_path / "mine.onnx").touch()
    (tmp_path / "mine.txt").touch()
    assert offered("pl") == ["plan"]
    assert offered("plan", "zoo:alex") == ["alexnet"]  # behind the colon: the rest is on the line already
    assert set(offered("plan", "zoo")) == {f"zoo:{name}" for name in zoo.names()}
    assert offered("plan", "mi", folder=tmp_path) == ["mine.onnx"]
    assert any("alexnet" in line for line in offered("plan", "zoo:alex", shell="zsh"))


def test_everything_that_has_a_name_is_offered() -> None:
    for complete_it, names in (
        (complete.chips, [chip.name for chip in builtin_chips()]),
        (complete.boards, [board.name for board in builtin_boards()]),
        (complete.socs, [soc.name for soc in builtin_socs()]),
        (complete.zoo_names, list(zoo.names())),
    ):
        assert names
        for name in names:
            assert name in complete_it(name[:2])


@given(st.text(max_size=20))
@example("\x00/")
def test_nothing_that_stands_in_a_line_is_an_error(text: str) -> None:
    for complete_it in (complete.models, complete.chips, complete.int8_models, complete.files(".json")):
        assert all(name.startswith(text) for name in complete_it(text))


@given(st.lists(st.sampled_from(["onchip", "plan", "zoo", ":", "alex", ""]), max_size=6), st.integers(-1, 8))
def test_any_cut_of_a_line_is_mended_or_left(words: list[str], at: int) -> None:
    line = {"_ONCHIP_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(at)}
    before = dict(line)
    complete.mend_colons(line)
    assert line == before or line[complete.PREFIX].endswith(":")


@pytest.mark.thorough
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shells_script_is_shown_and_installed(shell: str, tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    code = "import sys; sys.argv[0] = 'onchip'; from onchip_command import main; main()"
    for option in ("--show-completion", "--install-completion"):
        done = subprocess.run(
            [sys.executable, "-c", code, option, shell], env=environment, capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert "_ONCHIP_COMPLETE" in done.stdout or "installed" in done.stdout
    assert any("_ONCHIP_COMPLETE" in path.read_text() for path in tmp_path.rglob("*") if path.is_file())
