"""What every command prints, on terminals of 60 and 80 columns: no figure is cut, and no line too long.

A figure that a narrow terminal shows is one that a wide one shows: what was cut would be another. The work is
done once; then its answer is printed at each width.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from every_command import CALLS, COMMANDS, prepare
from onchip import cli

NARROW = 60, 80
WIDE = 99, 200
"""Below 100 columns a table of groups has one figure for what it has three for above."""

MORE = {
    "plan --fuse": ("plan", "zoo:squeezenet1_0", "--fuse", "--budget", "64KiB"),
    "plan in memories": (
        "plan",
        "zoo:squeezenet1_0@64x64",
        "--chip",
        "esp32-s3",
        "--no-fuse",
        "--time-limit",
        "5",
    ),
    "plan by latency": ("plan", "zoo:resnet50", "--chip", "exynos-npu", "--budget", "MR"),
    "plan of many": ("plan", "zoo:nasnetalarge", "--budget", "MR", "--no-fuse"),
    "fuse for another": ("fuse", "zoo:squeezenet1_0", "--chip", "optimus", "--batch", "4"),
    "branches and exact": ("branches", "zoo:inception_v3", "--beside", "--map"),
    "compare what does not fit": ("compare", "zoo:squeezenet1_0", "--budget", "512KiB"),
    "compare what spills": ("compare", "zoo:nasnetalarge", "--budget", "MR", "--planners", "none"),
    "corun": ("corun", "zoo:googlenet", "zoo:googlenet", "zoo:resnet18", "--time-limit", "2"),
    "mcu --compare": ("mcu", "made:kws", "--compare"),
    "report of groups": ("report", "fused.json"),
    "pack what does not fit": ("pack", "buffers.csv", "--capacity", "9"),
    "zoo": ("zoo", "nasnetalarge", "lraspp_mobilenet_v3_large", "r2plus1d_18"),
}

WORK = {
    "onchip.api": ("plan", "fuse", "branches", "corun", "mcu", "compare", "sweep"),
    "onchip.cli.pack": ("decide",),
    "onchip.run": ("run",),
    "onchip.comparison.beside": ("beside",),
}
"""What takes time, and tells how much: each is done once."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("narrow")
    prepare(folder)
    import onchip

    onchip.plan("zoo:squeezenet1_0", budget="64KiB", fuse=True).save(folder / "fused.json")
    return folder


def once(work: Callable[..., object]) -> Callable[..., object]:
    """The same function, whose first answer is its answer to everything."""
    answers: list[object] = []

    def answer(*given: object, **options: object) -> object:
        if not answers:
            answers.append(work(*given, **options))
        return answers[0]

    return answer


def figures(text: str) -> set[str]:
    """Numbers that are no part of a name; `(3)` tells apart names that would be cut to the same."""
    text = re.sub(r"\(\d+\)", "", text)
    return set(re.findall(r"(?<![\w.…/:@-])\d[\d,.]*(?<![,.])(?![\d,]*\.[^\W\d])", text))


CASES = {**{name: (name, *CALLS[name]) for name in COMMANDS}, **MORE}
CASES["export"] = (*CASES["export"], "-o", "exported.json")


CHOOSES = {
    *("fuse", "plan --fuse", "fuse for another", "report of groups"),
    *("branches", "branches and exact", "corun", "plan of many"),
}
"""Have columns that only a wide terminal has."""

PLAIN = {"check", "run", "export"}
"""Lines of these are printed as they are: the terminal folds them."""


@pytest.mark.thorough
@pytest.mark.parametrize("case", CASES)
def test_no_figure_is_cut_on_a_narrow_terminal(
    case: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    cli.load_all()
    for module, names in WORK.items():
        for name in names:
            monkeypatch.setattr(f"{module}.{name}", once(getattr(import_module(module), name)))
    monkeypatch.setattr(sys, "argv", ["onchip", *CASES[case]])
    shown: dict[int, str] = {}
    for width in (*WIDE, *NARROW):
        monkeypatch.setenv("COLUMNS", str(width))
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert end.value.code in (0, None, 1), capsys.readouterr().err
        shown[width] = capsys.readouterr().out
    known = figures("".join(shown[width] for width in WIDE))
    for width in NARROW:
        lines = shown[width].splitlines()
        found = figures(shown[width])
        assert found <= known, (width, found - known)
        assert case in CHOOSES or found == known, (width, known - found)
        assert not re.search(r"\d,\d*…", shown[width]), width
        if case not in PLAIN:
            assert max(len(line) for line in lines if not line.startswith("Next: ")) <= width
