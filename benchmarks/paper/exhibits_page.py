"""The index of the papers' exhibits: docs/exhibits.md, from the records in `exhibits/`.

    python benchmarks/paper/exhibits_page.py [--into docs/exhibits.md]

Exit code 1 when a record names a page, an anchor, a test or a script that is not there.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from exhibits import PAPERS, Exhibit, Paper
from page_marks import write

ROOT = Path(__file__).resolve().parents[2]
HEADING = re.compile(r"^#+ (.+)$", re.M)


def index() -> Iterator[str]:
    """The counts, then a table for each paper."""
    every = [one for paper in PAPERS for one in paper.exhibits]
    counts = Counter(one.outcome for one in every)
    said = ", ".join(
        f"{counts[outcome]} {outcome}" for outcome in ("agrees", "differs", "not explained", "absent")
    )
    yield f"{len(every)} exhibits: {said}. {sum(one.complete for one in every)} are complete.\n"
    for paper in PAPERS:
        yield f"## {paper.title}\n"
        yield "| exhibit | shows | made by | ours | test | outcome | reason |"
        yield "|---|---|---|---|---|---|---|"
        for one in paper.exhibits:
            ours = f"[{one.page.split('#')[0].removesuffix('.md')}]({one.page})" if one.page else ""
            test = f"`{one.test.rpartition('/')[2]}`" if one.test else ""
            made = f"`{one.made_by}`" if one.made_by else ""
            yield f"| {one.name} | {one.shows} | {made} | {ours} | {test} | {one.outcome} | {one.reason} |"
        yield ""


def wrong() -> Iterator[str]:
    """What a record says that is not so, in one line each."""
    for paper in PAPERS:
        names = Counter(one.name for one in paper.exhibits)
        yield from (f"{paper.title}, {name}: {n} records" for name, n in names.items() if n > 1)
        for one in paper.exhibits:
            yield from (f"{paper.title}, {one.name}: {line}" for line in _wrong(one))
        shown = {part for one in paper.exhibits for part in parts_of(one)}
        yield from (
            f"{paper.title}: no record for section {part}" for part in sections(paper) if part not in shown
        )


def parts_of(one: Exhibit) -> tuple[str, ...]:
    """The sections that the record's command prints."""
    _, _, only = one.made_by.partition("--only ")
    return one.parts or tuple(only.split())


@cache
def sections(paper: Paper) -> tuple[str, ...]:
    """The sections of the paper's script, as it lists them."""
    command = [sys.executable, str(ROOT / "benchmarks" / "paper" / paper.script), "--list"]
    return tuple(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as the site and GitHub make them."""
    plain = (re.sub(r"[^\w\- ]", "", title.lower()) for title in HEADING.findall(page.read_text("utf-8")))
    return {title.strip().replace(" ", "-") for title in plain}


def _wrong(one: Exhibit) -> Iterator[str]:
    if one.outcome == "absent" and one.made_by:
        yield "is absent and made by a script"
    if one.outcome == "differs" and not one.reason:
        yield "differs without a reason"
    page, _, anchor = one.page.partition("#")
    if page and not (ROOT / "docs" / page).is_file():
        yield f"no page {page}"
    elif anchor and anchor not in anchors(ROOT / "docs" / page):
        yield f"no heading {anchor} on {page}"
    file, _, function = one.test.partition("::")
    if file and not (ROOT / file).is_file():
        yield f"no file {file}"
    elif function and not re.search(
        rf"^\s*def {re.escape(function.split('::')[-1])}\(", (ROOT / file).read_text("utf-8"), re.M
    ):
        yield f"no {function} in {file}"
    script = one.made_by.split(" ")[0]
    if script.endswith(".py") and not (ROOT / "benchmarks" / script).is_file():
        yield f"no script {script}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--into", type=Path, metavar="PAGE")
    write({"index": index}, parser.parse_args().into)
    lines = list(wrong())
    for line in lines:
        print(line, file=sys.stderr)
    raise SystemExit(1 if lines else 0)


if __name__ == "__main__":
    main()
