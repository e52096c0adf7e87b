"""Layers simulated by SCALE-Sim, by the interpreter that has the package: times.py starts it.

Reads from stdin {"layers": [{"loops", "strides", ...}], "kib": [input, filter, output], "bandwidth",
"array", "dataflow"}; prints a line of JSON for every layer, in their order: {"version", "array_cycles",
"stall", "cycles", "with_prefetch", "dram_bytes", "seconds"}. `loops` are the sizes of G, K, C, OY, OX, FY
and FX.
The simulator knows no groups: it runs one of them, and all figures are multiplied. Its maps have no padding,
so they are as large as all windows together. `bandwidth` is in bytes a cycle of each of its three ports.
One thread.
"""

from __future__ import annotations

import csv
import json
import sys
import tempfile
import time
import warnings
from importlib import metadata
from pathlib import Path
from typing import Any


def config(asked: dict[str, Any]) -> str:
    """Return the package's configuration; its read ports have the rate that it calls a bank's."""
    ports = "".join(
        f"{name}SRAMBankBandwidth: {asked['bandwidth']}\n{name}SRAMBankNum: 1\n{name}SRAMBankPort: 2\n"
        for name in ("Ifmap", "Filter")
    )
    kib = asked["kib"]
    return (
        "[general]\nrun_name: run\n"
        "[architecture_presets]\n"
        f"ArrayHeight: {asked['array'][0]}\nArrayWidth: {asked['array'][1]}\n"
        f"IfmapSramSzkB: {kib[0]}\nFilterSramSzkB: {kib[1]}\nOfmapSramSzkB: {kib[2]}\n"
        "IfmapOffset: 0\nFilterOffset: 100000000\nOfmapOffset: 200000000\n"
        f"Dataflow: {asked['dataflow']}\nBandwidth: {asked['bandwidth']}\n"
        "ReadRequestBuffer: 64\nWriteRequestBuffer: 64\n"
        f"[layout]\nIfmapCustomLayout: False\nFilterCustomLayout: False\n{ports}"
        "[sparsity]\nSparsitySupport: false\n"
        "[run_presets]\nInterfaceBandwidth: USER\nUseRamulatorTrace: False\n"
    )


def topology(layer: dict[str, Any]) -> str:
    """Return the package's table of one group of the layer; it has one stride for both directions."""
    _, outputs, inputs, rows, columns, down, across = layer["loops"]
    strides = layer["strides"]
    stride = strides[1] if columns > 1 else strides[0]
    height, width = (rows - 1) * strides[0] + down, (columns - 1) * strides[1] + across
    sizes = (height, width, down, across, inputs, outputs, stride)
    head = "Layer,IFMAP Height,IFMAP Width,Filter Height,Filter Width,Channels,Num Filter,Strides,"
    return f"{head}\nlayer,{','.join(map(str, sizes))},\n"


def report(folder: Path, groups: int) -> dict[str, Any]:
    """Return the figures of a run of one group out of its reports, for all groups."""

    def row(name: str) -> dict[str, float]:
        with (folder / name).open() as file:
            head, values = list(csv.reader(file))
        return {key.strip(): float(value) for key, value in zip(head, values, strict=True) if value.strip()}

    computed, accesses = row("COMPUTE_REPORT.csv"), row("DETAILED_ACCESS_REPORT.csv")
    cycles, stall = computed["Total Cycles"], computed["Stall Cycles"]
    moved = sum(
        accesses[f"DRAM {name}"] for name in ("IFMAP Reads", "Filter Reads", "OFMAP Writes")
    )  # fmt: skip
    figures = {
        "array_cycles": cycles - stall,
        "stall": stall,
        "cycles": cycles,
        "with_prefetch": computed["Total Cycles (incl. prefetch)"],
        "dram_bytes": moved,
    }
    return {name: groups * value for name, value in figures.items()}


def run(asked: dict[str, Any], layer: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the figures of one layer."""
    from scalesim.scale_sim import scalesim

    (folder / "chip.cfg").write_text(config(asked))
    (folder / "layer.csv").write_text(topology(layer))
    began = time.process_time()
    simulation = scalesim(
        save_disk_space=True,
        verbose=False,
        config=str(folder / "chip.cfg"),
        topology=str(folder / "layer.csv"),
        layout=str(folder / "layer.csv"),
    )
    simulation.run_scale(top_path=str(folder))
    return {
        "version": metadata.version("scalesim"),
        **report(folder / "run", layer["loops"][0]),
        "seconds": time.process_time() - began,
    }


def main() -> None:
    warnings.simplefilter("ignore")
    asked = json.load(sys.stdin)
    for layer in asked["layers"]:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(run(asked, layer, Path(folder))), flush=True)


if __name__ == "__main__":
    main()
