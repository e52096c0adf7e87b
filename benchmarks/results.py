"""The results pages, all of them, printed again: whether they still say what scripts print. Which script
makes which page is in `results_pages.py`.

    python benchmarks/results.py --list
    python benchmarks/results.py --quick               # `make bench-quick`: some six minutes
    python benchmarks/results.py [--only PATTERN]      # `make bench`: all, some hours; writes into docs/

`--quick` runs those whose figures are counts and come soon, prints them, and holds every row of their
tables to the page: a row that the page does not have ends it with exit code 1. Times are passed over,
since they are the machine's. The full run puts sections into their pages where a script can (`--into`),
writes what others print to build/results/, and says how many of those rows stand on the page as they are.
DATA files of two-step scripts are kept there, too: measured networks are not measured again. A command that
needs files or checkouts that others publish is left out where they are not there, with a line that says so;
its rows stay as they are on the page."""

from __future__ import annotations

import argparse
import fnmatch
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

from results_pages import DECIMAL, KEPT, RESULTS, ROOT, Result, filled, lacking


def run(command: str, *, shown: bool) -> tuple[int, str]:
    """Run a script of this folder; what it prints, shown as it comes if wanted."""
    script, *rest = shlex.split(filled(command))
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "benchmarks" / script), *rest],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    lines = []
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line)
        if shown:
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
    page = set(rows((ROOT / "docs" / result.page).read_text("utf-8"), varies))
    return [row for row in rows(printed, varies) if row not in page]


def quick(result: Result) -> bool:
    """Run a result's quick commands and hold them to the page; whether all agree."""
    agreed = [held(result, command) for command in result.quick]  # each is run, whatever the others say
    return all(agreed)


def held(result: Result, command: str) -> bool:
    """Run one command and hold what it prints to the page."""
    print(f"\n## {result.page}: benchmarks/{command}\n", flush=True)
    code, printed = run(command, shown=True)
    absent = missing(result, printed, result.varies)
    count = len(rows(printed, result.varies))
    for row in absent[:10]:
        print(f"docs/{result.page} does not have: {row}", file=sys.stderr)
    agree = code == 0 and not absent and count > 0
    print(
        f"{result.page}: {count - len(absent)} of {count} rows stand on the page", file=sys.stderr, flush=True
    )
    return agree


def full(result: Result) -> bool:
    """Run all commands of a result; what is printed, and put into no page, is kept."""
    KEPT.mkdir(parents=True, exist_ok=True)
    printed = []
    for command in result.commands:
        if absent := lacking(result, command):
            say(f"{result.page}: left out, its rows stay: {command.split()[0]} needs {', '.join(absent)}")
            continue
        say(f"{result.page}: benchmarks/{command}")
        code, text = run(command, shown=False)
        printed.append(text)
        if code:
            say(f"{result.page}: ended with {code}")
            return False
    if any(part.strip() for part in printed):
        kept = KEPT / f"{Path(result.page).stem}.txt"
        kept.write_text("\n".join(printed), "utf-8")
        say(f"{result.page}: printed tables are in {kept}; {standing(result, kept.read_text('utf-8'))}")
    return True


def standing(result: Result, printed: str) -> str:
    """How many printed rows the page has as they are, and but for decimals, times among them."""
    counts = []
    for varies in (result.varies, DECIMAL):
        every = len(rows(printed, varies))
        counts.append(every - len(missing(result, printed, varies)))
    return f"{counts[0]} of {every} rows stand on the page, {counts[1]} but for decimals"


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def table() -> str:
    """The list of docs/results.md."""
    lines = ["| page | made by | quick | needs |", "|---|---|:-:|---|"]
    for r in sorted(RESULTS, key=lambda r: r.page):
        scripts = dict.fromkeys("`" + c.split()[0] + "`" for c in r.commands)
        fast = "yes" if r.quick else ""
        lines.append(f"| [{r.page[:-3]}]({r.page}) | {', '.join(scripts)} | {fast} | {r.needs} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print which script makes which page")
    parser.add_argument("--quick", action="store_true", help="hold the pages to what comes soon")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="of pages, as `corun*`")
    given = parser.parse_args()
    if given.list:
        print(table())
        return
    chosen = [
        r for r in RESULTS if fnmatch.fnmatch(r.page, given.only) or fnmatch.fnmatch(r.page[:-3], given.only)
    ]
    chosen = [r for r in chosen if (r.quick if given.quick else True)]
    began = time.perf_counter()
    wrong = [r.page for r in chosen if not (quick(r) if given.quick else full(r))]
    print(
        f"{len(chosen) - len(wrong)} of {len(chosen)} pages as printed, {time.perf_counter() - began:.0f} s",
        file=sys.stderr,
    )
    raise SystemExit(f"not as printed: {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main()
