"""Reckoned costs beside counted ones: the factor of plans on fronts.

    .venv/bin/python benchmarks/mcu_reckoned.py [--core C] [--into docs/segments.md] MODEL.tflite ...

For each way in which the image comes, up to five plans along the front are written as C and counted on an
emulated core, against the network layer by layer; every output byte is compared. `reckoned` is what
`onchip mcu --front` prints. The exit code says whether the errors are within those that the program states;
`mcu_fitted` does the same for the instructions of whole networks.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import get_args

from mcu_networks import BOARD, layer_by_layer, measured
from page_marks import write

from onchip.microcontroller.load import int8_model
from onchip.microcontroller.network import network_of
from onchip.microcontroller.result.microcontroller_front import RECKONED_ERROR
from onchip.microcontroller.segments import SegmentOptions, front, plan_of
from onchip.microcontroller.segments.options import InputMode


class Tables:
    """The table; `good` while every error is within the stated one and every byte is right."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked, self.good = asked, True
        self.board = replace(BOARD, core=asked.core)

    def fronts(self) -> Iterator[str]:
        yield "| network | input | bytes | work | reckoned | counted | off |"
        yield "|---|---|--:|--:|--:|--:|--:|"
        for path in self.asked.models:
            model = int8_model(path)
            base = measured(layer_by_layer(model), model, self.board, 1)
            for mode in get_args(InputMode):
                options = SegmentOptions(mode, time_limit=self.asked.time_limit)
                found = front(network_of(model), options)
                last = len(found.points) - 1
                for i in sorted({0, last // 4, last // 2, 3 * last // 4, last}):
                    point = found.points[i]
                    plan = plan_of(found.chain, point.choice, BOARD.ram_bytes, options)
                    ran = measured(plan, model, self.board, 1)
                    counted = ran.total.instructions / base.total.instructions
                    off = point.reckoned / counted - 1
                    self.good &= ran.match and base.match and abs(off) <= RECKONED_ERROR + 0.005
                    yield (
                        f"| {model.name} | {mode} | {point.ram_bytes:,} | {point.factor:.3f}"
                        f" | {point.reckoned:.3f} | {counted:.3f} | {100 * off:+.1f} % |"
                    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+")
    parser.add_argument("--core", default="cortex-m4", choices=("cortex-m4", "cortex-m7"))
    parser.add_argument("--time-limit", type=float, default=30.0, help="seconds for each front")
    parser.add_argument("--into", type=Path, help="a page that has the marks of these tables")
    asked = parser.parse_args()
    tables = Tables(asked)
    write({"reckoned": tables.fronts}, asked.into)
    return 0 if tables.good else 1


if __name__ == "__main__":
    sys.exit(main())
