"""Keep what onchip's commands print and write, and say what has changed: `scripts/golden.py FOLDER [--against
OLD]`.

    python scripts/golden.py build/before
    ... change the sources ...
    python scripts/golden.py build/after --against build/before

Every case is one command or a few, one after the other, in a folder of its own that holds the inputs which
they name and nothing else. FOLDER/CASE gets `stdout`, `stderr`, `exit` and, below `files`, whatever the
commands wrote. With --against each of these files is compared with OLD's, byte for byte; a difference is
shown and makes the exit code 1.

What may differ between two runs of the same sources on one machine is replaced before it is stored: measured
times, and the case's own folder. Planned times stay. Every search here ends by itself, well within the
limits that commands have, so that the load of the machine decides nothing.

A case that needs a file, a program or a package that is not there is left out, with a note. Models that
nobody may copy into the project are looked for in `shared/` beside the checkout."""

from __future__ import annotations

import argparse
import difflib
import fnmatch
import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from golden_case import Case
from golden_cases import CASES
from golden_inputs import ROOT, fixture

SECONDS = 600.0
"""A command that takes longer is ended, and its case has that for an answer."""

SHOWN = 20
"""Lines of a difference that are shown."""

WIDEST = 160
"""Characters of a line that are shown."""


# --------------------------------------------------------------------------------------- what may differ

NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?"

TIMES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(rf'("(?:simple_|exact_)?seconds": ?){NUMBER}'), r"\1#"),  # JSON
    (re.compile(rf"('(?:simple_|exact_)?seconds': |\b(?:simple_|exact_)?seconds=){NUMBER}"), r"\1#"),  # repr
    (re.compile(rf"^(result seconds ){NUMBER}$", re.M), r"\1#"),  # a plan as text
    (re.compile(rf"(planned in <bdi>){NUMBER} s\b"), r"\1# s"),  # a plan's page
    (re.compile(rf"\s([Ff]ound|Planned)\s+in\s+{NUMBER}\s+(ms|s)\b"), r" \1 in # \2"),
    (re.compile(rf"(\sand\s){NUMBER} ms \(exact"), r"\1# ms (exact"),
    (re.compile(r"^\d+\.\d s$", re.M), "# s"),  # the last line of `onchip run`
    (re.compile(r"onchip-crash-\d+-[0-9a-f]+\.log"), "onchip-crash-#.log"),
)
"""Measured times, and the name of a crash's log, and what stands for them. Planned times are elsewhere:
`dram_seconds` and the like, and whatever ends in `_ms` or `_picoseconds`."""

HEADINGS = ("seconds", "exact ms")
"""Of columns of measured times, in tables."""


def plain(text: str, places: Mapping[str, str]) -> str:
    """The text without what may differ between two runs; `places` are folders and what stands for them."""
    for place, name in places.items():
        text = text.replace(place, name)
    for pattern, instead in TIMES:
        text = pattern.sub(instead, text)
    return "\n".join(without_columns(text.split("\n")))


def without_columns(lines: list[str]) -> Iterator[str]:
    """The lines with `#` in the columns of measured times: right-aligned below their headings, up to an empty
    line."""
    end = 0
    for line in lines:
        heading = re.search(rf"(?<=  )(?:{'|'.join(HEADINGS)})(?=  |$)", line)
        if heading is not None:
            end = heading.end()
        elif not line.strip():
            end = 0
        elif end and (time := re.search(rf"(?<= ){NUMBER}$", line[:end])) is not None:
            line = f"{line[: time.start()]}{'#':>{len(time[0])}}{line[end:]}"
        yield line


def stored(path: Path, places: Mapping[str, str]) -> bytes:
    """What is kept of a file that a command wrote."""
    if path.suffix == ".sqlite":
        return journal(path).encode()
    if path.suffix == ".parquet":
        return plain(rows(path), places).encode()
    content = path.read_bytes()
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return content
    if path.suffix == ".csv" and text.partition("\n")[0].rstrip().endswith(",seconds"):
        text = re.sub(rf",{NUMBER}(?=\r?$)", ",#", text, flags=re.M)
    return plain(text, places).encode()


def journal(path: Path) -> str:
    """A sweep's journal: its tables, and how many rows each has. Their keys depend on the sources."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as opened:
        tables = opened.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
        counts = [
            opened.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name, sql in tables if sql
        ]
    opened.close()
    return "\n".join([*(f"{name}: {sql}" for name, sql in tables), str(counts), ""])


def rows(path: Path) -> str:
    """A Parquet file as text: its columns, then a line for each row."""
    from pyarrow import parquet

    table = parquet.read_table(path)
    return "\n".join([str(table.schema), *(json.dumps(row, default=str) for row in table.to_pylist()), ""])


# --------------------------------------------------------------------------------------------- running


@dataclass
class Ran:
    """A case that was run: the seconds of processors that its commands took, and why it was left out if it
    was."""

    name: str
    cpu: float = 0.0
    calls: int = 0
    left_out: str = ""


def environment(added: Mapping[str, str], temporary: Path) -> dict[str, str]:
    """What commands see: no colour, 100 columns, hashes as they come."""
    unset = {"PYTHONHASHSEED", "FORCE_COLOR", "CLICOLOR_FORCE", "PY_COLORS", "MAKEFLAGS", "LANG", "LANGUAGE"}
    kept = {k: v for k, v in os.environ.items() if k not in unset and not k.startswith("ONCHIP_")}
    fixed = {
        "COLUMNS": "100",
        "LINES": "50",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
    }
    return {**kept, **fixed, "TMPDIR": str(temporary), **added}


def run_call(call: str, folder: Path, env: Mapping[str, str], python: str, logs: Path) -> tuple[str, float]:
    """Run one call with its streams in `logs`; how it ended, and its seconds of processors."""
    if call.startswith("\n"):
        words = [python, "-c", call]
    else:
        words = [str(Path(python).with_name("onchip")), *shlex.split(call)]
    with (logs / "stdout").open("wb") as out, (logs / "stderr").open("wb") as err:
        started = subprocess.Popen(
            words, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err
        )
        until = time.monotonic() + SECONDS
        while True:
            pid, status, usage = os.wait4(started.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > until:
                started.kill()
            time.sleep(0.01)
    code = os.waitstatus_to_exitcode(status)
    started.returncode = code
    return f"{code}" if code >= 0 else f"signal {-code}", usage.ru_utime + usage.ru_stime


def titled(call: str) -> str:
    """A call in one line."""
    return "python" if call.startswith("\n") else f"onchip {call}".rstrip()


def run_case(case: Case, into: Path, python: str) -> Ran:
    """Run a case, and keep what it printed and wrote below `into`."""
    target = into / case.name
    if target.is_dir():
        shutil.rmtree(target)
    target.mkdir(parents=True)
    ran = Ran(case.name)
    if missing := case.missing():
        ran.left_out = f"not there: {', '.join(missing)}"
        (target / "left-out").write_text(f"{ran.left_out}\n")
        return ran
    with tempfile.TemporaryDirectory(prefix="golden-") as made:
        folder, temporary, logs = (Path(made) / name for name in ("here", "tmp", "logs"))
        for each in (folder, temporary, logs):
            each.mkdir()
        given = {name: fixture(name) or b"" for name in case.inputs()}
        for name, content in given.items():
            (folder / name).write_bytes(content)
        places = {str(folder): "<here>", str(temporary): "<tmp>", str(ROOT): "<root>"}
        env = environment(case.env, temporary)
        kept: dict[str, list[str]] = {"stdout": [], "stderr": [], "exit": []}
        for call in case.calls:
            how, seconds = run_call(call, folder, env, python, logs)
            ran.cpu += seconds
            ran.calls += 1
            head = f"$ {titled(call)}\n"
            for stream in ("stdout", "stderr"):
                text = (logs / stream).read_bytes().decode(errors="backslashreplace")
                kept[stream].append(head + plain(text, places))
            kept["exit"].append(f"{head.rstrip()}  # {how}\n")
        for name, parts in kept.items():
            (target / name).write_text("".join(parts))
        for path in sorted(p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
            name = path.relative_to(folder).as_posix()
            if given.get(name) != path.read_bytes():
                (target / "files" / name).parent.mkdir(parents=True, exist_ok=True)
                (target / "files" / name).write_bytes(stored(path, places))
    return ran


def run_all(cases: list[Case], into: Path, python: str, jobs: int) -> list[Ran]:
    """Run the cases, `jobs` at a time; a line for each."""
    into.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(jobs) as pool:
        done = []
        for ran in pool.map(lambda case: run_case(case, into, python), cases):
            print(f"{ran.name}: {ran.left_out or f'{ran.cpu:.1f} s'}", file=sys.stderr, flush=True)
            done.append(ran)
    return done


# ------------------------------------------------------------------------------------------- comparing


def differences(name: str, old: Path, new: Path) -> Iterator[str]:
    """What of a case has changed, a paragraph for each file."""
    if not (old / name).is_dir():
        yield f"{name}: not in {old}"
        return
    before, after = (
        {p.relative_to(f / name).as_posix(): p for p in (f / name).rglob("*") if p.is_file()}
        for f in (old, new)
    )
    for file in sorted({*before, *after}):
        if file not in after:
            yield f"{name}/{file}: gone"
        elif file not in before:
            yield f"{name}/{file}: new"
        elif (was := before[file].read_bytes()) != (now := after[file].read_bytes()):
            yield f"{name}/{file}: differs\n{shown(was, now)}".rstrip()


def shown(was: bytes, now: bytes) -> str:
    """The first lines of a difference; lines as long as a page's or a JSON file's are broken for it."""
    try:
        old, new = (folded(each.decode()) for each in (was, now))
    except UnicodeDecodeError:
        return f"    {len(was):,} bytes, now {len(now):,}"
    lines = list(difflib.unified_diff(old, new, "old", "new", lineterm="", n=1))
    return "\n".join(f"    {line[:WIDEST]}" for line in lines[:SHOWN])


def folded(text: str) -> list[str]:
    """The text's lines, the long ones broken behind commas, semicolons and tags."""
    return [
        part
        for line in text.splitlines()
        for part in (re.sub(r"([,;>])(?=.)", r"\1\n", line).split("\n") if len(line) > WIDEST else [line])
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="where everything is kept")
    parser.add_argument("--against", type=Path, metavar="OLD", help="the folder of an earlier run")
    parser.add_argument("--only", default="*", metavar="GLOB", help="only the cases of these names")
    parser.add_argument("--list", action="store_true", help="list the cases, and run nothing")
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time")
    parser.add_argument("--python", default=sys.executable, help="the Python beside which `onchip` lies")
    given = parser.parse_args()
    cases = [case for case in CASES if fnmatch.fnmatchcase(case.name, given.only)]
    if given.list:
        for case in cases:
            print(case.name, *(f"    {titled(call)}" for call in case.calls), sep="\n")
        return
    if not cases:
        parser.error(f"{given.only}: no such case")
    if given.folder is None:
        parser.error("FOLDER is missing")
    if given.against is not None and not given.against.is_dir():
        parser.error(f"{given.against}: no such folder")
    done = run_all(cases, given.folder, given.python, given.jobs)
    calls, cpu = sum(ran.calls for ran in done), sum(ran.cpu for ran in done)
    left = sum(bool(ran.left_out) for ran in done)
    print(f"{len(done) - left} cases, {calls} commands, {cpu:.0f} s of processors; {left} left out")
    if given.against is None:
        return
    changed = [line for case in cases for line in differences(case.name, given.against, given.folder)]
    for line in changed:
        print(line)
    print(f"{len(changed)} files differ" if changed else "no difference")
    raise SystemExit(1 if changed else 0)


if __name__ == "__main__":
    main()
