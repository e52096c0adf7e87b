"""Plans by rows beside chains and TFLM: RAM as linked, instructions on an emulated core, bytes of tables.

    python benchmarks/mcu_rows.py [--into docs/segments-rows.md] [--inputs held once] MODEL.tflite ...

Each file is planned by rows and in chains (or in whole tensors, where chains do not apply), with the image
held and fetched row by row, written as C, linked and run on an emulated Cortex-M4 with all memory but the
program's closed; every output byte is compared with the reference. TFLM's arena is what its interpreter
reports on this machine. The exit code says whether every byte is right.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from mcu_networks import BOARD
from page_marks import write

from onchip.base.errors import OnchipError
from onchip.machines.board import MOST_BYTES
from onchip.microcontroller.compare.tflm_arena import Arena, tflm_arena
from onchip.microcontroller.load import file_bytes, int8_model
from onchip.microcontroller.project.sources import TABLES
from onchip.microcontroller.result.microcontroller import Microcontroller
from onchip.microcontroller.result.microcontroller_build import Maker
from onchip.microcontroller.segments import SegmentOptions

ROOMY = replace(BOARD, ram_bytes=MOST_BYTES, flash_bytes=MOST_BYTES)


class Table:
    """The table; `good` while every byte is right."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked, self.good = asked, True

    def lines(self) -> Iterator[str]:
        yield (
            "| network | image | bound | rows | linked | chains | linked | TFLM's arena | instructions, M |"
            " of the chains' | tables, B | weights, B |"
        )
        yield "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
        for path in self.asked.models:
            arena = tflm_arena(file_bytes(path))
            for image in self.asked.inputs:
                print(f"{path} {image}", file=sys.stderr)
                rows, chains = (self.made(path, image, method) for method in ("rows", "chains"))
                if rows is None:
                    continue
                yield self.line(path, image, rows, chains, arena)

    def made(self, path: str, image: str, method: str) -> Microcontroller | None:
        """Return the network by a method; None where it does not apply."""
        options = SegmentOptions(input=image, method=method)  # type: ignore[arg-type]
        try:
            found = Maker(int8_model(path), ROOMY, options, 1, lambda _: None).make("auto")
        except OnchipError as problem:
            print(f"{path} {image} {method}: {problem}", file=sys.stderr)
            return None
        self.good &= found.run is not None and found.run.match
        return found

    def line(
        self, path: str, image: str, rows: Microcontroller, chains: Microcontroller | None, arena: Arena | str
    ) -> str:
        constants = dict(rows.sources.constant_bytes)
        tables = constants.pop(TABLES, 0)
        assert rows.run is not None
        count = rows.run.total.instructions
        beside = ["-", "-", "-"]
        if chains is not None and chains.run is not None:
            how = " (whole)" if chains.whole else ""
            factor = count / chains.run.total.instructions
            beside = [f"{chains.arena_bytes:,}{how}", f"{chains.ram_bytes:,}", f"{factor:.3f}"]
        bound = rows.plan.result.peak_lower_bound_bytes or 0
        whole = f"{arena.total:,}" if isinstance(arena, Arena) else "-"
        return (
            f"| {Path(path).stem} | {'held' if image == 'held' else 'by rows'} | {bound:,}"
            f" | {rows.arena_bytes:,} | {rows.ram_bytes:,} | {beside[0]} | {beside[1]} | {whole}"
            f" | {count / 1e6:,.2f} | {beside[2]} | {tables:,} | {sum(constants.values()):,} |"
        )


def main() -> int:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    given.add_argument("models", nargs="+")
    given.add_argument("--inputs", nargs="+", choices=("held", "once"), default=("held", "once"))
    given.add_argument("--into", type=Path)
    asked = given.parse_args()
    table = Table(asked)
    write({"rows in C": table.lines}, asked.into)
    return 0 if table.good else 1


if __name__ == "__main__":
    sys.exit(main())
