"""docs/sweep.md and the page: the commands run, the figures are in the picture, and names stay names."""

from __future__ import annotations

import json
import re
import shlex
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import onchip as onchip_package
from onchip import cli
from onchip.sweeps.points import COLUMNS
from onchip.sweeps.run import SweepOptions
from onchip.sweeps.spec import parse_spec, read_spec

ROOT = Path(__file__).parents[2]
DOC = ROOT / "docs" / "sweep.md"
HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"

sys.path.insert(0, str(ROOT / "scripts"))


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", DOC.read_text("utf-8"), re.S)


def onchip(monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
    monkeypatch.setattr(sys, "argv", ["onchip", *args])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


@pytest.fixture
def made(tmp_path: Path) -> Any:
    (tmp_path / "<b>net.json").write_text(json.dumps(NETWORK))
    asked = {
        "title": HOSTILE,
        "networks": [str(tmp_path / "<b>net.json")],
        "planners": ["plan", "fuse"],
        "budgets": [40, {"from": 50, "to": 400, "factor": 1.2}],
        "plan": {"strategy": ["exact", "greedy"]},
    }
    return onchip_package.sweep(asked, tmp_path / "s", jobs=1)


NETWORK = {
    "format": "onchip.network/1",
    "name": "n",
    "outputs": ["d"],
    "tensors": [
        {"name": "x", "bytes": 40, "kind": "input"},
        {"name": "a", "bytes": 20, "kind": "activation"},
        {"name": "b", "bytes": 30, "kind": "activation"},
        {"name": "c", "bytes": 25, "kind": "activation"},
        {"name": "d", "bytes": 5, "kind": "activation"},
    ],
    "operators": [
        {"name": HOSTILE, "type": "Conv", "inputs": ["x"], "outputs": ["a"], "weight_bytes": 100},
        {"name": "B", "type": "Conv", "inputs": ["x"], "outputs": ["b"], "weight_bytes": 7},
        {"name": "C", "type": "Conv", "inputs": ["a"], "outputs": ["c"]},
        {"name": "D", "type": "Add", "inputs": ["b", "c"], "outputs": ["d"]},
    ],
}


@pytest.mark.thorough
def test_every_point_is_marked_and_no_name_becomes_markup(made: Any) -> None:
    page = made.html()
    assert len(re.findall(r"data-segment=", page)) == len(made.rows)
    assert page.count("<script>") == 1
    assert "<b>net" not in page
    assert "<img" not in page
    knees = sum(curve.knee is not None for curve in made.curves)
    assert page.count('class="ring') == knees


@pytest.mark.thorough
def test_the_commands_of_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a smaller example: the file's own is run by the slow test below."""
    first, second = (shlex.split(line)[1:] for line in blocks("sh")[0].splitlines())
    (tmp_path / "examples").mkdir()
    text = (ROOT / "examples" / "sweep.toml").read_text()
    small = re.sub(r"networks = .*", 'networks = ["zoo:squeezenet1_0"]', text)
    small = small.replace('to = "8MiB", factor = 2', 'to = "512KiB", factor = 4')
    assert len(parse_spec(tomllib.loads(small), "s")) < 20
    (tmp_path / "examples" / "sweep.toml").write_text(small)
    monkeypatch.chdir(tmp_path)
    assert onchip(monkeypatch, *first, "--jobs", "1") == 0
    assert "written: out/sweep/report.html" in capsys.readouterr().out
    assert onchip(monkeypatch, *second) == 0
    assert "from before" in capsys.readouterr().out
    assert onchip(monkeypatch, *first, "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["complete"], data["computed"], data["points"]) == (True, 0, len(data["rows"]))


@pytest.mark.thorough
def test_the_python_and_the_file_of_the_page_are_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    (code,) = blocks("python")
    exec(code, found)
    assert found["made"].complete
    (tmp_path / "ours.toml").write_text(
        'name = "ours"\nalignment_bytes = 1\nelement = "int8"\nscratchpad_bytes = 9999\n'
    )
    (spec,) = blocks("toml")
    (tmp_path / "spec.toml").write_text(spec)
    assert len(read_spec(tmp_path / "spec.toml")) == 6 * 4 * 5 * (3 + 10 + 8 - 1)  # 64KiB is in both


def test_every_option_and_status_is_on_the_page() -> None:
    text = DOC.read_text("utf-8")
    for name in SweepOptions.__dataclass_fields__:
        assert f"--{name.replace('_', '-')}" in text
    for name in (
        "needs_bytes",
        "dram_bound_bytes",
        "gap",
        "reason",
        "compulsory_limit_bytes",
        "dram_seconds",
    ):
        assert name in COLUMNS
        assert f"`{name}`" in text


@pytest.mark.slow
@pytest.mark.campaign
def test_the_example_is_worked_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert onchip(monkeypatch, "sweep", str(ROOT / "examples" / "sweep.toml"), "-o", str(tmp_path)) == 0


@pytest.mark.parametrize(
    ("spec", "more", "parts"),
    [
        ('networks = ["zoo:nope"]\nbudgets = [1]', [], ["spec.toml: networks[0]", "nope"]),
        (
            'networks = ["gone.onnx"]\nbudgets = [1]',
            [],
            ["spec.toml: networks[0]", "gone.onnx", "no such file"],
        ),
        ('networks = ["zoo:alexnet"]', [], ["spec.toml: budgets", "generic"]),
        ('networks = ["zoo:alexnet"]\nbudgets = ["much"]', [], ["spec.toml: budgets[0]", "much"]),
        ("networks = 3", [], ["spec.toml: networks"]),
        ("networks = [", [], ["spec.toml", "TOML"]),
        ('networks = ["zoo:alexnet"]\nbudgets = [1]', ["--jobs", "-1"], ["jobs"]),
        ('networks = ["zoo:alexnet"]\nbudgets = [1]', ["-o", "spec.toml"], ["spec.toml"]),
        ('networks = ["zoo:alexnet"]\nbudgets = [1]', ["-o", "/proc/no"], ["/proc/no"]),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    spec: str,
    more: list[str],
    parts: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("spec.toml").write_text(spec)
    assert onchip(monkeypatch, "sweep", "spec.toml", *more) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    for part in ["onchip: ", *parts]:
        assert part in err


def test_points_that_are_left_are_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("spec.toml").write_text('networks = ["zoo:squeezenet1_0"]\nbudgets = ["MP"]')
    assert onchip(monkeypatch, "sweep", "spec.toml", "--time-limit", "0") == 1
    assert "goes on from here" in capsys.readouterr().out
    assert Path("spec.sweep/table.csv").exists()


@pytest.mark.slow
def test_in_a_browser_it_asks_for_nothing_logs_nothing_and_answers(made: Any) -> None:
    chromium = pytest.importorskip("chromium")
    if chromium.find_chromium() is None:
        pytest.skip("no chromium is installed")
    with chromium.Chromium() as browser:
        browser.open(made.folder / "report.html")
        assert browser.evaluate("document.documentElement.dataset.ready") == "yes"
        assert browser.evaluate("document.title") == f"{HOSTILE}: onchip sweep"
        assert browser.evaluate("performance.getEntriesByType('resource').length") == 0
        browser.evaluate("document.querySelector('svg.sheet').focus()")
        browser.key("ArrowRight")
        said = browser.evaluate("document.getElementById('spoken').textContent")
        assert "net.json in" in said
        assert not browser.evaluate("document.getElementById('tip').hidden")
        assert browser.complaints == []
