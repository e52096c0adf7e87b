"""The documentation holds together: links and anchors lead somewhere, every page stands in the
navigation, every public name is documented, every picture and every results page has a command that makes
it."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

import onchip
from onchip import zoo

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]

sys.path[:0] = [str(ROOT / "scripts"), str(DOCS / "_ext"), str(ROOT / "benchmarks")]

from navigation import expand  # noqa: E402
from pictures import PICTURES  # noqa: E402
from results import RESULTS, table  # noqa: E402


@cache
def words(page: Path) -> str:
    """A page without its code."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.S | re.M)
    return re.sub(r"^ {4}\S.*$", "", text, flags=re.M)


@cache
def anchors(page: Path) -> set[str]:
    """The anchors that GitHub, and MyST after it, gives a page's headings."""
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} (.*)$", words(page), re.M):
        plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        at, n = slug, 0
        while at in found:
            n += 1
            at = f"{slug}-{n}"
        found.add(at)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"`[^`\n]*`", "", words(page))
    targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|srcset|href)="([^"]+)"', text)
    for target in targets:
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        other = (page.parent / name).resolve() if name else page
        assert other.exists(), f"{page.relative_to(ROOT)} links to {target}, which is not there"
        if anchor and other.suffix == ".md":
            assert anchor in anchors(other), f"{page.relative_to(ROOT)}: {target}: no such heading"


def test_every_page_stands_in_the_navigation_once() -> None:
    nav = tomllib.loads((DOCS / "nav.toml").read_text("utf-8"))
    entries = [*(section["pages"] for section in nav["section"]), *nav["below"].values()]
    pages = {str(p.relative_to(DOCS).with_suffix("")) for p in DOCS.rglob("*.md")}
    named = {name for names in entries for name in names if "*" not in name}
    placed = [page for names in entries for page in expand(names, pages, named)]
    assert named <= pages, f"nav.toml names pages that are not there: {named - pages}"
    assert set(placed) == pages - {"index"}, f"in no navigation: {pages - {'index'} - set(placed)}"
    assert len(placed) == len(set(placed)), [p for p in placed if placed.count(p) > 1]


def public() -> dict[str, list[str]]:
    """What the pages of the interface document: names by module, all of its names where the list is empty."""
    found: dict[str, list[str]] = {}
    for page in (DOCS / "api").rglob("*.md"):
        for module, body in re.findall(
            r"^```\{public\} (\S+)\n(.*?)^```", page.read_text("utf-8"), re.S | re.M
        ):
            found.setdefault(module, []).extend(body.split())
    return found


def test_every_public_name_is_documented() -> None:
    documented = public()
    assert sorted(documented["onchip"]) == sorted(onchip.__all__)
    for name in documented:
        assert importlib.import_module(name).__all__, name


def test_every_public_name_has_words() -> None:
    for module in public():
        here = importlib.import_module(module)
        for name in here.__all__:
            value = getattr(here, name)
            if isinstance(value, type) or inspect.isroutine(value):
                assert (getattr(value, "__doc__", "") or "").strip(), f"{module}.{name} has no docstring"


def test_every_picture_has_a_command_and_is_shown() -> None:
    pictures = {p.name for p in (DOCS / "images").iterdir()}
    assert set(PICTURES) <= pictures
    scripts = "".join(p.read_text("utf-8") for p in (ROOT / "scripts").glob("*.py"))
    shown = "".join(p.read_text("utf-8") for p in PAGES)
    for name in pictures:
        assert name in PICTURES or f"docs/images/{name}" in scripts, f"nothing says what makes {name}"
        assert f"images/{name}" in shown, f"{name} is on no page"


def test_every_results_page_has_scripts_that_are_there() -> None:
    for result in RESULTS:
        assert (DOCS / result.page).exists(), result.page
        for command in (*result.commands, *(one.command for one in result.quick)):
            assert (ROOT / "benchmarks" / command.split()[0]).exists(), command
    for page in PAGES:
        for script in re.findall(r"benchmarks/([\w/]+\.py)", page.read_text("utf-8")):
            assert (ROOT / "benchmarks" / script).exists(), f"{page.name} names benchmarks/{script}"
    assert f"<!-- results: begin -->\n{table()}\n<!-- results: end -->" in (DOCS / "results.md").read_text(
        "utf-8"
    )


@pytest.mark.thorough
def test_a_newcomers_commands_run_on_a_model_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(zoo.model_bytes("squeezenet1_0"))
    text = (ROOT / "README.md").read_text("utf-8")
    (block,) = re.findall(r"```sh\n\. \.venv/bin/activate[^\n]*\n(.*?)```", text, re.S)
    lines = block.splitlines()
    assert len(lines) == 3
    for line in lines:
        program, *arguments = line.split()
        assert program == "onchip"
        done = subprocess.run(
            [sys.executable, "-m", "onchip.cli", *arguments], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "plan.html").exists()
    assert "of unoptimised onnxruntime" in done.stdout


@pytest.mark.thorough
def test_the_python_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)
    exec(code, {})
    assert (tmp_path / "resnet50.html").exists()


@pytest.mark.thorough
def test_the_overview_picture_is_what_the_command_draws(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "overview.py"), "--into", str(tmp_path)],
        check=True,
        capture_output=True,
    )
    for name in ("overview.svg", "overview-dark.svg"):
        words = [
            re.findall(r">([^<]+)</text>", (folder / name).read_text("utf-8"))
            for folder in (DOCS / "images", tmp_path)
        ]
        assert words[0][:20] == words[1][:20], f"make pictures: {name} has changed"
