"""Bytes against work of graphs of rows, maps made anew: `python benchmarks/rows_front.py FOLDER NAME ...`.

Each `NAME.txt` in the folder is a graph as text (`onchip.microcontroller.rows.text`). It prints a table in
Markdown: the peak with rows beside one another, the bytes with addresses (`--pack`), the work as a multiple.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from page_marks import write

from onchip.base.errors import OnchipError
from onchip.microcontroller.rows.front import front
from onchip.microcontroller.rows.planning import plan
from onchip.microcontroller.rows.text import graph_of_text
from onchip.planners.limits import Limits


class Table:
    """The table's lines, each as soon as it is known."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked = asked

    def lines(self) -> Iterator[str]:
        asked = self.asked
        yield "| network | image | peak | packed | work |"
        yield "|---|---|--:|--:|--:|"
        for name in asked.names:
            graph = graph_of_text((asked.folder / f"{name}.txt").read_text("utf-8"), f"{name}.txt")
            for how, here in ("held", graph.held()), ("by rows", graph.by_rows()):
                for point in front(here, rounds=asked.rounds, limits=Limits(time_limit=asked.seconds)):
                    packed = "-"
                    if asked.pack:
                        graph_of_point = point.pieces.graph
                        packed = f"{plan(graph_of_point, known=point.order).placed.bytes:,}"
                    yield f"| {name} | {how} | {point.bytes:,} | {packed} | {point.work:.3f} |"


def main() -> int:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    given.add_argument("folder", type=Path)
    given.add_argument("names", nargs="+")
    given.add_argument("--rounds", type=int, help="changes one after another; without it, by counts")
    given.add_argument("--seconds", type=float, help="of wall clock, for each front")
    given.add_argument("--pack", action="store_true", help="give rows addresses, too")
    given.add_argument("--into", type=Path)
    asked = given.parse_args()
    try:
        write({"fronts of rows": Table(asked).lines}, asked.into)
    except (OSError, OnchipError) as problem:
        print(problem, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
