"""Graphs of rows of published networks: peaks, bounds and packed bytes, beside those of a prototype.

`python benchmarks/rows_known.py FOLDER [NAME ...]` reads the structure of networks as texts
(`onchip.microcontroller.rows.text`), each `NAME.txt` in the folder, and plans every one with the image held
and with the image by rows, nothing made twice. Peaks and bounds are with shared bytes, packed bytes with rows
beside one another and image and outputs in one piece. The prototype's figures are those that this planner
was measured against; its code is not here. It prints a table in Markdown, or puts it into a page (`--into`).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from page_marks import write

from onchip.base.errors import OnchipError
from onchip.microcontroller.rows import search
from onchip.microcontroller.rows.addresses import fault
from onchip.microcontroller.rows.planning import plan
from onchip.microcontroller.rows.text import graph_of_text

PROTOTYPE: dict[str, tuple[tuple[int, int | None], tuple[int, int | None]]] = {
    "movenet_192": ((139_791, 148_781), (118_080, 126_336)),
    "blazeface_128": ((58_112, 60_671), (29_504, 34_008)),
    "mcunetv2_detection": ((68_015, 69_898), (18_415, 20_640)),
    "ssd_slim": ((31_855, 34_400), (23_855, 26_065)),
    "unet_96": ((110_079, 111_772), (106_431, 108_096)),
    "person_detect": ((11_552, 12_288), (9_319, 10_080)),
    "mcunet_vww": ((20_407, 21_040), (12_487, 14_000)),
    "resnet8": ((9_823, 10_304), (8_671, 9_152)),
    "vww_96": ((27_749, 28_032), (9_511, 10_176)),
    "palm_192": ((193_600, None), (175_360, None)),
    "mcunet_320kb": ((95_575, None), (55_856, None)),
    "yolo_lc_192": ((112_325, None), (30_976, None)),
    "st_yolo_x_480": ((696_983, None), (401_280, None)),
}
"""Peak with shared bytes, and packed bytes with rows beside: held, then by rows."""


class Table:
    """The table's lines, each as soon as it is known."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked = asked

    def lines(self) -> Iterator[str]:
        yield "| network | image | peak | bound | prototype | packed | bound, beside | prototype | s |"
        yield "|---|---|--:|--:|--:|--:|--:|--:|--:|"
        for name in self.asked.names or PROTOTYPE:
            graph = graph_of_text((self.asked.folder / f"{name}.txt").read_text("utf-8"), f"{name}.txt")
            for how, here, (peak, packed) in zip(
                ("held", "by rows"),
                (graph.held(), graph.by_rows()),
                PROTOTYPE.get(name, ((0, 0), (0, 0))),
                strict=True,
            ):
                began = time.process_time()
                order = search(here)
                found = plan(here) if packed else None
                if found is not None and fault(found.graph, found.placed) is not None:
                    raise AssertionError(name)
                beside = "- | -" if found is None else f"{found.placed.bytes:,} | {found.order.bound:,}"
                yield (
                    f"| {name} | {how} | {order.peak:,} | {order.bound:,} | {_said(peak)} | {beside} |"
                    f" {_said(packed)} | {time.process_time() - began:.1f} |"
                )


def main() -> int:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    given.add_argument("folder", type=Path)
    given.add_argument("names", nargs="*")
    given.add_argument("--into", type=Path)
    asked = given.parse_args()
    try:
        write({"known": Table(asked).lines}, asked.into)
    except (OSError, OnchipError) as problem:
        print(problem, file=sys.stderr)
        return 2
    return 0


def _said(figure: int | None) -> str:
    return f"{figure:,}" if figure else "-"


if __name__ == "__main__":
    sys.exit(main())
