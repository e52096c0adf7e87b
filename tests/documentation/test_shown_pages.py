"""Pages that show commands, programs and what they print: they are run, and must show what comes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

sys.path.insert(0, str(ROOT / "scripts"))

from pages import agrees, blocks, commands  # noqa: E402


def run(page: Path) -> None:
    """In a process of its own: what a page imports and declares is nobody else's."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "pages.py"), str(page)],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    again = f"scripts/pages.py --write {page.relative_to(ROOT)}"
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\nif that is right: {again}"


@pytest.mark.thorough
@pytest.mark.parametrize("page", sorted((DOCS / "extend").glob("*.md")), ids=lambda p: p.stem)
def test_the_examples_of_extending_run(page: Path) -> None:
    run(page)


@pytest.mark.thorough
def test_the_page_on_caches_runs() -> None:
    run(DOCS / "caches.md")


@pytest.mark.thorough
def test_the_page_on_loops_runs() -> None:
    run(DOCS / "loops.md")


@pytest.mark.thorough
def test_the_page_on_operators_that_run_again_runs() -> None:
    run(DOCS / "joint-recompute.md")


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted((DOCS / "tutorials").glob("*.md")), ids=lambda p: p.stem)
def test_the_tutorials_run(page: Path) -> None:
    run(page)


def test_every_kind_of_user_has_a_tutorial_that_shows_something() -> None:
    pages = sorted((DOCS / "tutorials").glob("*.md"))
    assert len(pages) == 4
    for page in pages:
        shown = [b for b in blocks(page.read_text("utf-8")) if b.language in ("console", "python")]
        assert len(shown) >= 4, page


@pytest.mark.thorough
def test_a_page_that_shows_something_else_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo 7 bytes in 3.2 s\n7 bytes in 0.1 s\n```\n", "utf-8")
    script = [sys.executable, str(ROOT / "scripts" / "pages.py"), str(page)]
    assert subprocess.run(script, capture_output=True).returncode == 0
    page.write_text("```console\n$ echo 7 bytes in 3.2 s\n8 bytes in 0.1 s\n```\n", "utf-8")
    assert subprocess.run(script, capture_output=True).returncode == 1
    assert subprocess.run([*script, "--write"], capture_output=True).returncode == 0
    assert page.read_text("utf-8") == "```console\n$ echo 7 bytes in 3.2 s\n7 bytes in 3.2 s\n```\n"
    page.write_text("```console\n$ false\n```\n", "utf-8")
    assert subprocess.run(script, capture_output=True).returncode == 1
    page.write_text("```python\nprint(1)\n```\n```text\n2\n```\n", "utf-8")
    assert subprocess.run(script, capture_output=True).returncode == 1


def test_what_stands_for_any_lines_stands_for_them_only() -> None:
    assert agrees("a\n…\nz\n", "a\nb\nc\nz\n")
    assert agrees("a\n…\n", "a\n")
    assert agrees("…\nm\n…\nz", "a\nm\nz")
    assert not agrees("a\n…\nz\n", "a\nb\n")
    assert not agrees("…\nm\n…\nn\n…", "n\nm")
    assert not agrees("a\n…\na", "a")
    assert agrees("12 loads", "13 loads", r"\d+")
    assert not agrees("12 loads", "13 stores", r"\d+")


def test_commands_over_several_lines_are_one() -> None:
    assert [(c, s) for c, s, _ in commands("$ a \\\n  b\nout\n$ c\n")] == [("a \\\n  b", "out\n"), ("c", "")]
