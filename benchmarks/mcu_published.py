"""Linked RAM below what others have published of the same networks.

    python benchmarks/mcu_published.py [--into docs/segments.md] [--time-limit 120] MODEL.tflite|made:NAME ...

Of each published point (bytes of RAM, and the work that they cost as a multiple of the network's own) it
takes the plan with the least work whose linked program, stack and all, has fewer bytes on a Cortex-M4, and
runs that program on the emulated core with all memory but its own closed; every output byte is compared with
the reference. TinyEngine's bytes are those that its authors measured, held against plans with the image in
RAM; msf-CNN's are measured where they measured and planned otherwise, with the image fetched again where it
is needed again. The exit code is 1 where a point is not beaten in bytes at no more work, or a byte differs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from mcu_networks import BOARD
from page_marks import write
from segments_front import PUBLISHED, ROUNDED, known_as

from onchip.base.errors import Infeasible
from onchip.machines.board import MOST_BYTES
from onchip.microcontroller.int8.model import Int8Model
from onchip.microcontroller.load import int8_model
from onchip.microcontroller.result.front_linked import point_within
from onchip.microcontroller.result.microcontroller_build import Maker
from onchip.microcontroller.result.ram_front import RamFront, ram_front
from onchip.microcontroller.segments import SegmentOptions
from onchip.microcontroller.segments.options import InputMode
from onchip.planners.limits import Limits

ROOMY = replace(BOARD, ram_bytes=MOST_BYTES, flash_bytes=MOST_BYTES)

KB = 1000
TINYENGINE = {"vww": 59 * KB, "320kb": 215 * KB}
"""Peak memory on an STM32H743, in the README of mit-han-lab/tinyengine 47bb283c: of mcunet-vww0, the smallest
of its networks for visual wake words, and of mcunet-in2."""


@dataclass(frozen=True)
class Point:
    """What somebody published of a network."""

    who: str
    input: InputMode
    bytes: int
    work: float


def points(name: str) -> list[Point]:
    """Return the published points of a network, by its name."""
    key = known_as(name)
    found = [Point("TinyEngine", "held", TINYENGINE[key], 1.0)] if key in TINYENGINE else []
    for setting in PUBLISHED.get(key, ()):
        bytes_, how = (setting.measured, "measured") if setting.measured else (setting.bytes, "planned")
        found.append(Point(f"msf-CNN, {how}", "again", bytes_, setting.factor))
    return found


class Table:
    """The table; `good` while every point is beaten and every byte is right."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked, self.good = asked, True

    def lines(self) -> Iterator[str]:
        yield "| network | published | bytes | work | linked RAM | work | bytes that differ |"
        yield "|---|---|--:|--:|--:|--:|--:|"
        for path in self.asked.models:
            model = int8_model(path)
            fronts: dict[InputMode, RamFront] = {}
            for point in points(model.name):
                options = SegmentOptions(input=point.input, time_limit=self.asked.time_limit)
                if point.input not in fronts:
                    fronts[point.input] = ram_front(model, options, limits=Limits.of(options, print_progress))
                yield self.line(model, point, fronts[point.input], options)

    def line(self, model: Int8Model, point: Point, found: RamFront, options: SegmentOptions) -> str:
        start = f"| {model.name} | {point.who} | {point.bytes:,} | {point.work:.2f}"
        try:
            taken = point_within(found, model, ROOMY, point.bytes - 1, options, print_progress)
        except Infeasible as no:
            print(no, file=sys.stderr)
            self.good = False
            return f"{start} | - | - | - |"
        made = Maker(model, ROOMY, options, 1, print_progress).build(taken.point.program(), ())
        assert made.run is not None
        self.good &= made.run.match and taken.point.factor <= point.work + ROUNDED
        different = f"{made.run.different:,} of {made.run.output_bytes:,}"
        return f"{start} | {taken.linked_ram:,} | {taken.point.factor:.3f} | {different} |"


def print_progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    given.add_argument("models", nargs="+")
    given.add_argument("--time-limit", type=float, help="seconds of each front")
    given.add_argument("--into", type=Path)
    asked = given.parse_args()
    table = Table(asked)
    write({"published": table.lines}, asked.into)
    return 0 if table.good else 1


if __name__ == "__main__":
    sys.exit(main())
