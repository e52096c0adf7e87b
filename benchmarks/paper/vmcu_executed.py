"""Table 3: what the blocks of MCUNet-5fps-VWW take to run; instructions where the paper has milliseconds."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from vmcu_networks import layers_of_blocks

__all__ = ["table_3"]

MODEL, BOARD = "made:mcunet_vww", "nucleo-f767zi"

MILLISECONDS = {
    "S1": (37, 37), "S2": (37, 37), "S3": (33, 35), "S4": (28, 29), "S5": (22, 24), "S6": (20, 19),
    "S7": (34, 36), "S8": (27, 28),
}  # fmt: skip
"""Table 3: vMCU's, TinyEngine's."""


def table_3() -> Iterator[str]:
    command = [
        str(Path(sys.executable).with_name("onchip")),
        "mcu",
        MODEL,
        "--board",
        BOARD,
        "--run",
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    run = json.loads(done.stdout)["run"]
    yield "| block | instructions | loads | stores | paper: vMCU, ms | TinyEngine, ms |"
    yield "|---|--:|--:|--:|--:|--:|"
    for name, layers in layers_of_blocks(MODEL):
        counts = [
            sum(run["layers"][layer][what] for layer in layers)
            for what in ("instructions", "loads", "stores")
        ]
        cells = " | ".join(f"{n:,}" for n in counts)
        ours, theirs = MILLISECONDS[name]
        yield f"| {name} | {cells} | {ours} | {theirs} |"
    everything = " | ".join(f"{run[what]:,}" for what in ("instructions", "loads", "stores"))
    yield f"| the whole network | {everything} | | |"
    yield ""
    yield f"Every output byte {'equals' if run['match'] else 'DIFFERS FROM'} the reference's."
