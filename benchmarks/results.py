"""The results pages, all of them, printed again: whether they still say what scripts print. Which script
makes which page is in `results_pages.py`.

    python benchmarks/results.py --list
    python benchmarks/results.py --quick [--only PATTERN]    # `make bench-quick`
    python benchmarks/results.py [--only PATTERN] [--note]   # `make bench`: all; writes into docs/

`--quick` runs those whose figures are counts and come soon, prints them, and holds every row of their
tables to the page: a row that the page does not have ends it with exit code 1. Times are passed over,
since they are the machine's. The full run puts sections into their pages where a script can (`--into`), and
tables that others print into the page's table of the same heading; it says how many rows of the page it
changed. It writes what these print to build/results/, and says how many of those rows stood on the page.
DATA files of two-step scripts are kept there, too: measured networks are not measured again. A command that
needs files or checkouts that others publish is left out where they are not there, with a line that says so;
its rows stay as they are on the page. So is a page of times for which no idle cores are there.

`--note` keeps the CPU seconds of each page in results_cpu.json, and writes them into docs/results.md. A page
of which something was left out, or of which data were kept before, gets no figure.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import re
import resource
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from page_marks import put_into, tables_into
from results_pages import (
    BUSY,
    DECIMAL,
    KEPT,
    RESULTS,
    ROOT,
    Quick,
    Result,
    filled,
    idle_cores,
    lacking,
    wanting,
)

CPU = ROOT / "benchmarks" / "results_cpu.json"
"""CPU seconds of the full and the quick commands of each page, as they were measured."""


def run(command: str) -> tuple[int, str]:
    """Run a script of this folder; what it prints, shown as it comes."""
    script, *rest = shlex.split(filled(command))
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "benchmarks" / script), *rest],
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    lines = []
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line)
        print(line, end="", flush=True)
    return process.wait(), "".join(lines)


def rows(text: str, varies: str) -> list[str]:
    """The rows of a text's tables, without what may differ from machine to machine."""
    found = [
        line.strip()
        for line in text.splitlines()
        if line.startswith("|") and not re.match(r"[|:\- ]+$", line)
    ]
    return [re.sub(varies, "#", row) if varies else row for row in found]


def missing(result: Result, printed: str, varies: str) -> list[str]:
    """Rows that were printed and that the page does not have, but for what `varies` matches."""
    page = set(rows(text_of(result), varies))
    return [row for row in rows(printed, varies) if row not in page]


def text_of(result: Result) -> str:
    return (ROOT / "docs" / result.page).read_text("utf-8")


def quick(result: Result) -> bool:
    """Run a result's quick commands and hold them to the page; whether all agree."""
    agreed = [held(result, one) for one in result.quick]  # each is run, whatever the others say
    return all(agreed)


def held(result: Result, one: Quick) -> bool:
    """Run one command and hold what it prints to the page."""
    if absent := wanting(one.programs):
        say(f"{result.page}: left out: {one.command} needs {', '.join(absent)}")
        return True
    print(f"\n## {result.page}: benchmarks/{one.command}\n", flush=True)
    code, printed = run(one.command)
    lost = missing(result, printed, one.varies)
    count = len(rows(printed, one.varies))
    for row in lost[:10]:
        say(f"docs/{result.page} does not have: {row}")
    say(f"{result.page}: {count - len(lost)} of {count} rows stand on the page")
    return code == 0 and not lost and count > 0


def full(result: Result) -> bool:
    """Run all commands of a result; what is printed, and put into no page, is kept."""
    KEPT.mkdir(parents=True, exist_ok=True)
    printed, before = [], text_of(result)
    if busy := disturbed(result):
        say(f"{result.page}: left out, its rows stay: {busy}")
        return True
    for command in result.commands:
        if absent := lacking(result, command):
            say(f"{result.page}: left out, its rows stay: {command.split()[0]} needs {', '.join(absent)}")
            continue
        say(f"{result.page}: benchmarks/{command}")
        code, text = run(command)
        printed.append(text)
        if code:
            say(f"{result.page}: ended with {code}")
            return False
    if any(part.strip() for part in printed):
        kept, text = KEPT / f"{Path(result.page).stem}.txt", "\n".join(printed)
        kept.write_text(text, "utf-8")
        say(f"{result.page}: printed tables are in {kept}; {standing(result, text)}")
        (ROOT / "docs" / result.page).write_text(tables_into(text_of(result), text), "utf-8")
    say(f"{result.page}: {changed(before, text_of(result), result.clock)}")
    return True


def disturbed(result: Result) -> str:
    """What keeps a page from being measured that needs idle cores; empty where nothing does."""
    idle = idle_cores() if result.idle else 0.0
    return f"needs {result.idle} idle cores, {idle:.1f} are" if idle < result.idle - BUSY else ""


def changed(before: str, after: str, clock: str = "") -> str:
    """How many rows of a page are others than before, and how many of these differ in more than decimals.

    What matches `clock` came from a search that a clock ended: it is passed over as decimals are.
    """
    counts = []
    for varies in ("", f"{clock}|{DECIMAL}" if clock else DECIMAL):
        known = set(rows(before, varies))
        counts.append(sum(row not in known for row in rows(after, varies)))
    passed = "decimals and what a clock ended" if clock else "decimals"
    return f"{counts[0]} of {len(rows(after, ''))} rows are new, {counts[1]} of them but for {passed}"


def unused(result: Result) -> bool:
    """Whether nothing that the result's commands keep is there yet."""
    kept = {word for command in result.commands for word in shlex.split(filled(command))}
    return not any(
        word.startswith(str(KEPT)) and word.endswith(".json") and Path(word).exists() for word in kept
    )


def noted(kind: str, do: Callable[[Result], bool], result: Result) -> bool:
    """Do it, and keep its CPU seconds where it was done whole; into docs/results.md, too."""
    lacks = [lacking(result, command) for command in result.commands]
    done = not any(lacks) and unused(result) and not disturbed(result)
    whole = not any(wanting(one.programs) for one in result.quick) if kind == "quick" else done
    began = spent()
    good = do(result)
    seconds = spent() - began
    say(f"{result.page}: {seconds:.0f} s of CPU")
    if whole and good:
        every = measured()
        every.setdefault(result.page, {})[kind] = round(seconds)
        CPU.write_text(json.dumps(every, indent=1, sort_keys=True) + "\n", "utf-8")
        page = ROOT / "docs" / "results.md"
        page.write_text(put_into(page.read_text("utf-8"), "results", table()), "utf-8")
    return good


def spent() -> float:
    """CPU seconds of all commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured() -> dict[str, dict[str, int]]:
    """CPU seconds by page and by kind, `full` or `quick`."""
    found: dict[str, dict[str, int]] = json.loads(CPU.read_text("utf-8")) if CPU.exists() else {}
    return found


def expected(chosen: list[Result], kind: str) -> str:
    """What these pages take, as far as it was measured."""
    every = measured()
    known = [every[r.page][kind] for r in chosen if kind in every.get(r.page, {})]
    line = (
        f"{len(chosen)} pages; {minutes(sum(known))} minutes of CPU for the {len(known)} that were measured"
    )
    unknown = [r.page for r in chosen if kind not in every.get(r.page, {})]
    return line + (f"; not measured: {', '.join(unknown)}" if unknown else "")


def minutes(seconds: int) -> str:
    return f"{seconds / 60:.1f}" if seconds < 600 else f"{seconds / 60:.0f}"


def standing(result: Result, printed: str) -> str:
    """How many printed rows the page has as they are, and but for decimals, times among them."""
    counts = []
    for varies in ("", DECIMAL):
        every = len(rows(printed, varies))
        counts.append(every - len(missing(result, printed, varies)))
    return f"{counts[0]} of {every} rows stand on the page, {counts[1]} but for decimals"


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def table() -> str:
    """The list of docs/results.md."""
    every = measured()
    lines = ["| page | made by | CPU, minutes | quick | needs |", "|---|---|--:|--:|---|"]
    for r in sorted(RESULTS, key=lambda r: r.page):
        scripts = dict.fromkeys("`" + c.split()[0] + "`" for c in r.commands)
        took = every.get(r.page, {})
        whole = minutes(took["full"]) if "full" in took else ""
        fast = (minutes(took["quick"]) if "quick" in took else "yes") if r.quick else ""
        lines.append(f"| [{r.page[:-3]}]({r.page}) | {', '.join(scripts)} | {whole} | {fast} | {r.needs} |")
    sums = [sum(took.get(kind, 0) for took in every.values()) for kind in ("full", "quick")]
    lines.append(f"| all that were measured | | {minutes(sums[0])} | {minutes(sums[1])} | |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print which script makes which page")
    parser.add_argument("--quick", action="store_true", help="hold the pages to what comes soon")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="of pages, as `corun*`")
    parser.add_argument(
        "--note", action="store_true", help="keep what each page took, in docs/results.md too"
    )
    given = parser.parse_args()
    if given.list:
        print(table())
        return
    chosen = [
        r for r in RESULTS if fnmatch.fnmatch(r.page, given.only) or fnmatch.fnmatch(r.page[:-3], given.only)
    ]
    kind, do = ("quick", quick) if given.quick else ("full", full)
    chosen = [r for r in chosen if r.quick or not given.quick]
    say(expected(chosen, kind))
    began = time.perf_counter()
    wrong = [r.page for r in chosen if not (noted(kind, do, r) if given.note else do(r))]
    say(f"{len(chosen) - len(wrong)} of {len(chosen)} pages as printed, {time.perf_counter() - began:.0f} s")
    raise SystemExit(f"not as printed: {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main()
