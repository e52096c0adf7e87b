"""Rows made twice: the plan that `onchip mcu --front --ram` takes, as linked and run on an emulated core.

    python benchmarks/mcu_anew.py MODEL.tflite --ram 112000 87000 [--input again] [--time-limit SECONDS]
        [--run] [--into docs/segments-rows.md]

It prints a table in Markdown: the bytes of the array, the linked RAM and the work as a multiple, each of the
plan with the least work whose program takes at most so many bytes. With `--run` that program makes one
inference on an emulated Cortex-M4 with all memory but its own closed, and every output byte is compared with
the reference. The time is CPU seconds of the front, searched once for all sizes. The exit code is 1 where a
size is not reached or a byte differs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from mcu_networks import BOARD
from page_marks import write

from onchip.base.errors import Infeasible
from onchip.machines.board import MOST_BYTES
from onchip.microcontroller.load import int8_model
from onchip.microcontroller.result.front_linked import point_within
from onchip.microcontroller.result.microcontroller_build import Maker
from onchip.microcontroller.result.ram_front import ram_front
from onchip.microcontroller.segments import SegmentOptions
from onchip.planners.limits import Limits

ROOMY = replace(BOARD, ram_bytes=MOST_BYTES, flash_bytes=MOST_BYTES)


class Table:
    """The table; `good` while every size is reached and every byte is right."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked, self.good = asked, True

    def lines(self) -> Iterator[str]:
        yield "| network | image | RAM asked | array | linked | work | bytes that differ | front, s |"
        yield "|---|---|--:|--:|--:|--:|--:|--:|"
        for path in self.asked.models:
            model = int8_model(path)
            options = SegmentOptions(input=self.asked.input, time_limit=self.asked.time_limit)
            began = time.process_time()
            found = ram_front(model, options, limits=Limits.of(options, print_progress))
            spent = time.process_time() - began
            for point in found.points:
                print(f"{point.ram_bytes:,} at {point.factor:.4f}: {point.how}", file=sys.stderr)
            for ram in self.asked.ram:
                start = f"| {path.stem} | {self.asked.input} | {ram:,}"
                try:
                    taken = point_within(found, model, ROOMY, ram, options, print_progress)
                except Infeasible as no:
                    print(no, file=sys.stderr)
                    self.good = False
                    yield f"{start} | - | - | - | - | {spent:.0f} |"
                    continue
                different = "-"
                if self.asked.run:
                    made = Maker(model, ROOMY, options, 1, print_progress).build(taken.point.program(), ())
                    assert made.run is not None
                    different = f"{made.run.different:,} of {made.run.output_bytes:,}"
                    self.good &= made.run.match
                point = taken.point
                ram_bytes = "-" if taken.linked_ram is None else f"{taken.linked_ram:,}"
                yield (
                    f"{start} | {point.ram_bytes:,} | {ram_bytes} | {point.factor:.3f}"
                    f" | {different} | {spent:.0f} |"
                )


def print_progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    given.add_argument("models", nargs="+", type=Path)
    given.add_argument("--ram", nargs="+", type=int, required=True)
    given.add_argument("--input", choices=("held", "once", "again"), default="again")
    given.add_argument("--time-limit", type=float)
    given.add_argument("--run", action="store_true")
    given.add_argument("--into", type=Path)
    asked = given.parse_args()
    table = Table(asked)
    write({"rows made twice": table.lines}, asked.into)
    return 0 if table.good else 1


if __name__ == "__main__":
    sys.exit(main())
