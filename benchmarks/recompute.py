"""What it saves that operators run again: bytes to and from DRAM, and the work that it costs.

    python benchmarks/recompute.py [--only PATTERN] [--run] [--into docs/joint-recompute.md]
    python benchmarks/recompute.py --time [--into docs/joint-recompute.md]

Every row plans a network twice, with and without `--recompute`, in tiles, at 8 bits. `--run` also executes
the plan with repeats and compares every tensor. `--time` plans the block for the least time, on the two
chips of `benchmarks/time_known_values.py`. Seconds are CPU of planning, on one core.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper, parser
from page_marks import put_into
from time_known_values import CHIPS

import onchip
from onchip.machines.chip import load_chip

SQUEEZE = """
<ir_version: 8, opset_import: ["" : 17]>
squeeze (float[1,16,28,28] x) => (float[1,16,28,28] y) {
  e0 = Conv (x, w1)
  e1 = Relu (e0)
  d0 = Conv <group = 96, kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (e1, w2)
  d1 = Relu (d0)
  g = GlobalAveragePool (d1)
  s0 = Conv (g, w3)
  s1 = Relu (s0)
  s2 = Conv (s1, w4)
  s3 = HardSigmoid (s2)
  m = Mul (d1, s3)
  p = Conv (m, w5)
  y = Add (x, p)
}
"""
"""A block with squeeze and excitation: its middle is six times as wide as its input."""

SHAPES = {
    "w1": (96, 16, 1, 1),
    "w2": (96, 1, 3, 3),
    "w3": (4, 96, 1, 1),
    "w4": (96, 4, 1, 1),
    "w5": (16, 96, 1, 1),
}

TIMED = "16KiB"
"""The scratchpad in which the block is planned for time."""

CASES = (
    ("squeeze", ("4KiB", "8KiB", "16KiB", "32KiB")),
    ("mobilenet_v3_large", ("64KiB", "128KiB", "256KiB")),
    ("lraspp_mobilenet_v3_large", ("64KiB", "128KiB", "256KiB")),
)


def model(name: str, folder: Path) -> str:
    """Return what names the model; the block is written to a file."""
    if name != "squeeze":
        return f"zoo:{name}"
    made = parser.parse_model(SQUEEZE)
    draw = np.random.default_rng(0)
    for weights, shape in SHAPES.items():
        values = (0.3 * draw.standard_normal(shape)).astype(np.float32)
        made.graph.initializer.append(numpy_helper.from_array(values, weights))
    onnx.save(made, folder / "squeeze.onnx")
    return str(folder / "squeeze.onnx")


def planned(network: str, budget: str, *, recompute: bool) -> tuple[onchip.Plan, float]:
    began = time.process_time()
    made = onchip.plan(network, budget=budget, fuse=True, recompute=recompute, dtype="int8")
    return made, time.process_time() - began


def row(name: str, budget: str, network: str, *, run: bool) -> str:
    once, seconds = planned(network, budget, recompute=False)
    again, more = planned(network, budget, recompute=True)
    a, b = once.result, again.result
    saved = 1 - b.dram_bytes / a.dram_bytes
    work = "-" if not a.macs or b.macs is None else f"{100 * (b.macs / a.macs - 1):+.1f} %"
    count = sum(op.repeats is not None for op in again.network.operators)
    if run:
        report = again.run()
        print(f"executed: {name} {budget}, {report.tensors:,} tensors compared", file=sys.stderr, flush=True)
    return (
        f"| {name} | {budget} | {a.dram_bytes:,} | {b.dram_bytes:,} | {100 * saved:.1f} % | {count} | {work}"
        f" | {seconds:.1f} | {more:.1f} |"
    )


def timed(network: str) -> list[str]:
    """Return the rows of the block's least time."""
    lines = [
        "| chip | budget | each once, µs | bytes | with `--recompute`, µs | bytes | CPU s | again |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name, tiles in CHIPS.items():
        chip = replace(load_chip("generic"), tiles=tiles)
        cells = []
        seconds = []
        for again in (False, True):
            began = time.process_time()
            made = onchip.plan(
                network,
                chip=chip,
                budget=TIMED,
                fuse=True,
                objective="latency",
                recompute=again,
                dtype="int8",
            )
            seconds.append(time.process_time() - began)
            cells += [f"{(made.result.latency_picoseconds or 0) / 1e6:.1f}", f"{made.result.dram_bytes:,}"]
        lines.append(f"| {name} | {TIMED} | {' | '.join(cells)} | {seconds[0]:.0f} | {seconds[1]:.0f} |")
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    options.add_argument("--only", default="*", metavar="PATTERN")
    options.add_argument("--run", action="store_true")
    options.add_argument("--time", action="store_true")
    options.add_argument("--into", type=Path)
    args = options.parse_args()
    if args.time:
        with tempfile.TemporaryDirectory() as folder:
            rows = "\n".join(timed(model("squeeze", Path(folder))))
        if args.into is not None:
            args.into.write_text(put_into(args.into.read_text(), "recompute in time", rows))
        return
    lines = [
        "| network | budget | each once, bytes | with `--recompute` | saved | operators again | MACs"
        " | CPU s | with `--recompute` |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    print("\n".join(lines), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, budgets in CASES:
            if fnmatch.fnmatch(name, args.only):
                network = model(name, Path(folder))
                for budget in budgets:
                    lines.append(row(name, budget, network, run=args.run))
                    print(lines[-1], flush=True)
    if args.into is not None:
        args.into.write_text(put_into(args.into.read_text(), "recompute", "\n".join(lines)))


if __name__ == "__main__":
    main()
