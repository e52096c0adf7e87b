"""Run what a page of the documentation shows, and hold its words to it: `scripts/pages.py [--write] PAGE
...`.

A page's blocks are run from top to bottom in one empty folder:

- `console`: each line that begins with `$ ` is run by a shell; the lines below it are what it prints.
- `python`: run in one process for the whole page, one after another; a `text` block right below one is
  what it prints.
- a block below `<!-- file: NAME -->` is written to that file.
- `<!-- exit: N -->` above a console block: its last command ends with N. `<!-- needs: PROGRAM ... -->`:
  the block is passed over where one of the programs is missing. `<!-- varies: REGEX -->`: what matches
  may be something else, as instructions counted of what a compiler made. `<!-- not run -->`: the block is
  only shown.

Times (`3.1 s`, `12 ms`) may differ; all else must be the same. A line of `…` stands for any lines. With
`--write` what differs is put into the page. Everything runs with COLUMNS=100 and the programs beside this
Python first in PATH."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FENCE = re.compile(
    r"^(?P<fence>`{3,})(?P<language>[\w+-]*)[^\n]*\n(?P<body>.*?)^(?P=fence)[ \t]*$", re.S | re.M
)
NOTE = re.compile(r"<!-- (?P<word>file|exit|needs|varies|not run)(?:: (?P<value>.*?))? -->")
TIME = re.compile(r"(?<![\w.])\d[\d,.]* ?(ms|s|seconds?|µs)\b")
ELISION = "…"
SHOWN, WIDTH = ("console", "python", "text"), "100"


@dataclass
class Block:
    """A fenced block: its language, its words, where they begin in the page, and the notes above it."""

    language: str
    body: str
    start: int
    line: int
    touching: bool
    """Only empty lines stand between it and the block before."""
    notes: dict[str, str] = field(default_factory=dict)


@dataclass
class Difference:
    """What a page shows and what comes instead; `start` is where the shown text begins in the page."""

    line: int
    what: str
    start: int
    shown: str
    got: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}\n--- shown\n{self.shown}\n--- got\n{self.got}"


def blocks(page: str) -> list[Block]:
    """The page's fenced blocks, in order."""
    found: list[Block] = []
    end = 0
    for match in FENCE.finditer(page):
        between = page[end : match.start()]
        above = re.search(r"(?:<!-- [^>]* -->\s*)*\Z", between)
        assert above is not None
        notes = {n["word"]: n["value"] or "" for n in NOTE.finditer(above[0])}
        line = page.count("\n", 0, match.start()) + 1
        touching = bool(found) and not between.strip()
        found.append(Block(match["language"], match["body"], match.start("body"), line, touching, notes))
        end = match.end()
    return found


def seen(text: str, varies: str) -> list[str]:
    """Lines as a reader sees them: no space at the end, times are some time, what varies some value."""
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    if varies:
        lines = [re.sub(rf" *(?:{varies})", " #", line) for line in lines]
    return [TIME.sub(lambda m: f"# {m[1]}", line).rstrip() for line in lines]


def agrees(shown: str, got: str, varies: str = "") -> bool:
    """Whether the page shows what came; `…` alone on a line stands for any lines."""
    parts: list[list[str]] = [[]]
    for line in seen(shown, varies):
        if line.strip() == ELISION:
            parts.append([])
        else:
            parts[-1].append(line)
    lines = seen(got, varies)
    if len(parts) == 1:
        return parts[0] == lines
    first, *middle, last = parts
    if lines[: len(first)] != first or (last and lines[-len(last) :] != last):
        return False
    at, end = len(first), len(lines) - len(last)
    for part in middle:
        at = next(
            (i + len(part) for i in range(at, end - len(part) + 1) if lines[i : i + len(part)] == part), -1
        )
        if at < 0:
            return False
    return at <= end


def commands(body: str) -> Iterator[tuple[str, str, int]]:
    """A console block's commands: the command, what is shown below it, and where that begins in the block."""
    for match in re.finditer(
        r"^\$ (?P<command>(?:[^\n]*\\\n)*[^\n]*)\n(?P<shown>(?:(?!\$ )[^\n]*\n)*)", body, re.M
    ):
        yield match["command"], match["shown"], match.start("shown")


def run_shell(command: str, folder: Path) -> tuple[int, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "COLUMNS": WIDTH, "NO_COLOR": "1", "PYTHONPATH": str(folder)}
    made = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    # A terminal would show both streams; what a command says of its progress is for the moment only.
    return made.returncode, made.stdout + (made.stderr if made.returncode else "")


def check(path: Path, folder: Path) -> list[Difference]:
    """Run a page in a folder; what it shows that is not so. A command that fails ends it."""
    page = path.read_text("utf-8")
    names: dict[str, Any] = {"__name__": "__main__"}
    differences: list[Difference] = []
    printed: tuple[Block, str] | None = None
    for block in blocks(page):
        if "not run" in block.notes or any(
            shutil.which(p) is None for p in block.notes.get("needs", "").split()
        ):
            printed = None
            continue
        if "file" in block.notes:
            target = folder / block.notes["file"]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.body, "utf-8")
        elif block.language == "console":
            expected, every = int(block.notes.get("exit", "0")), list(commands(block.body))
            for i, (command, shown, at) in enumerate(every):
                code, got = run_shell(command.replace("\\\n", " "), folder)
                line = block.line + 1 + block.body.count("\n", 0, at)
                if code != (expected if i == len(every) - 1 else 0):
                    return [*differences, Difference(line, f"$ {command} ended with {code}", -1, shown, got)]
                if not agrees(shown, got, block.notes.get("varies", "")):
                    differences.append(Difference(line, f"$ {command}", block.start + at, shown, got))
        elif block.language == "python":
            out = io.StringIO()
            with contextlib.chdir(folder), contextlib.redirect_stdout(out):
                sys.path.insert(0, str(folder))
                try:
                    exec(compile("\n" * block.line + block.body, str(path), "exec"), names)
                finally:
                    sys.path.remove(str(folder))
            printed = (block, out.getvalue())
            continue
        elif block.language == "text" and block.touching and printed:
            above, got = printed
            if not agrees(block.body, got, above.notes.get("varies", "")):
                differences.append(Difference(block.line, "python", block.start, block.body, got))
        printed = None
    return differences


def put_right(path: Path, differences: list[Difference]) -> None:
    """Put what came in the place of what is shown."""
    page = path.read_text("utf-8")
    for d in sorted(differences, key=lambda d: -d.start):
        if d.start < 0:
            raise SystemExit(f"{path}: {d}")
        got = "\n".join(line.rstrip() for line in d.got.strip("\n").splitlines())
        page = page[: d.start] + (got + "\n" if got else "") + page[d.start + len(d.shown) :]
    path.write_text(page, "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("pages", type=Path, nargs="+")
    parser.add_argument("--write", action="store_true", help="put what differs into the pages")
    given = parser.parse_args()
    os.environ["COLUMNS"] = WIDTH
    wrong = 0
    for path in given.pages:
        with tempfile.TemporaryDirectory() as folder:
            differences = check(path.resolve(), Path(folder))
        if given.write and differences:
            put_right(path, differences)
        wrong += len(differences)
        for difference in differences:
            print(f"{path}: {difference}\n")
        print(f"{path}: {'as shown' if not differences else f'{len(differences)} differ'}", file=sys.stderr)
    raise SystemExit(1 if wrong and not given.write else 0)


if __name__ == "__main__":
    main()
