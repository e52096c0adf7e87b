"""Kernels specialised on every shape against the library's two for all shapes: code, RAM and instructions.

    .venv/bin/python benchmarks/mcu_shared.py [--into docs/kernels.md] MODEL.tflite|made:NAME ...

Every network is planned, written as C, linked and run on an emulated Cortex-M4 in both forms; each output
byte is compared with the reference. Prints a table in Markdown, or puts it into a page.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

from page_marks import write

from onchip.machines.board import Board
from onchip.microcontroller.emulator.verify import Verified, verify
from onchip.microcontroller.int8.model import Int8Model
from onchip.microcontroller.load import int8_model
from onchip.microcontroller.network import network_of
from onchip.microcontroller.project import Sources, sources_of
from onchip.microcontroller.result.microcontroller_kernels import shareable
from onchip.microcontroller.segments import plan

BOARD = Board("bench", "cortex-m4", 4 << 20, 4 << 20)


def measured(model: Int8Model, shared: Collection[str]) -> tuple[Sources, Verified]:
    sources = sources_of(plan(network_of(model, shared), BOARD.ram_bytes), model, shared)
    with tempfile.TemporaryDirectory() as folder:
        made = verify(sources, model, BOARD, Path(folder), runs=1)
    if not made.match:
        sys.exit(f"{model.name}: {made.different} bytes differ")
    return sources, made


def table(models: list[str]) -> Iterator[str]:
    yield "| network | kernels | their code | all code | constants | linked RAM | instructions | |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|"
    for name in models:
        model = int8_model(name)
        least = 0
        for form, shared in (("specialised", frozenset[str]()), ("shared", shareable(model))):
            sources, made = measured(model, shared)
            image, total = made.image, made.total.instructions
            least = least or total
            constants = sum(sources.constant_bytes.values())
            kernels = sum(f.bytes for f in image.functions if f.name in sources.users)
            cells = (kernels, image.flash_bytes - constants, constants, image.ram_bytes, total)
            yield f"| {model.name} | {form} | {' | '.join(f'{n:,}' for n in cells)} | {total / least:.2f} |"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+")
    parser.add_argument("--into", type=Path, help="a page that has the marks of this table")
    asked = parser.parse_args()
    write({"shared": lambda: table(asked.models)}, asked.into)
    return 0


if __name__ == "__main__":
    sys.exit(main())
