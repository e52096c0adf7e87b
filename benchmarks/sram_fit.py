"""The law of SRAM area and energy in `onchip.machines.sram`: fitted to outputs of CACTI 7, with its errors.

    python benchmarks/sram_fit.py                # print the law, its errors, published figures beside it
    python benchmarks/sram_fit.py --write        # write src/onchip/machines/sram.toml
    python benchmarks/sram_fit.py --page docs/sram.md
    python benchmarks/sram_fit.py --cacti PATH   # ask CACTI again, and write benchmarks/sram_points.csv

`sram_points.csv` is what CACTI 7 answers (the version that ZigZag carries, github.com/KULeuven-MICAS/zigzag
3d12a96e9d52) for one bank of RAM with one port for reading and writing: cells and periphery of low standby
power (itrs-lstp), 300 K, conservative wires, no ECC, optimised for dynamic energy, leakage and area alike; 5
nodes, 3 widths of an access, 8 sizes. `PATH` is its executable; it runs in its own folder.
"""

from __future__ import annotations

import argparse
import csv
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from page_marks import write

HERE = Path(__file__).resolve().parent
POINTS = HERE / "sram_points.csv"
TARGET = HERE.parent / "src" / "onchip" / "machines" / "sram.toml"

NODES = (22, 32, 45, 65, 90)
WIDTHS = (8, 16, 32)
KIBIBYTES = (4, 16, 64, 256, 1024, 4096, 16384, 32768)
COLUMNS = ("nm", "width_bytes", "kib", "read_pj", "write_pj", "mm2", "access_ns", "leakage_mw")

ASKED = """\
-size (bytes) {size}
-Array Power Gating - "false"
-WL Power Gating - "false"
-CL Power Gating - "false"
-Bitline floating - "false"
-Interconnect Power Gating - "false"
-Power Gating Performance Loss 0.01
-block size (bytes) {width}
-output/input bus width {bits}
-associativity 1
-read-write port 1
-exclusive read port 0
-exclusive write port 0
-single ended read ports 0
-UCA bank count 1
-technology (u) {micrometres}
-page size (bits) 8192
-burst length 8
-internal prefetch width 8
-Data array cell type - "itrs-lstp"
-Data array peripheral type - "itrs-lstp"
-Tag array cell type - "itrs-lstp"
-Tag array peripheral type - "itrs-lstp"
-operating temperature (K) 300
-cache type "ram"
-tag size (b) "default"
-access mode (normal, sequential, fast) - "normal"
-design objective (weight delay, dynamic power, leakage power, cycle time, area) 0:100:100:0:100
-deviate (delay, dynamic power, leakage power, cycle time, area) 100000:100000:100000:100000:100000
-NUCAdesign objective (weight delay, dynamic power, leakage power, cycle time, area) 100:100:0:0:100
-NUCAdeviate (delay, dynamic power, leakage power, cycle time, area) 10:10000:10000:10000:10000
-Optimize ED or ED^2 (ED, ED^2, NONE): "ED^2"
-Cache model (NUCA, UCA)  - "UCA"
-NUCA bank count 0
-Wire signaling (fullswing, lowswing, default) - "Global_30"
-Wire inside mat - "semi-global"
-Wire outside mat - "semi-global"
-Interconnect projection - "conservative"
-Core count 8
-Cache level (L2/L3) - "L3"
-Add ECC - "false"
-Print level (DETAILED, CONCISE) - "DETAILED"
-Print input parameters - "true"
-Force cache config - "false"
-Ndwl 1
-Ndbl 1
-Nspd 0
-Ndcm 1
-Ndsam1 0
-Ndsam2 0
-dram_type "DDR3"
-io state "WRITE"
-addr_timing 1.0
-mem_density 4 Gb
-bus_freq 800 MHz
-duty_cycle 1.0
-activity_dq 1.0
-activity_ca 0.5
-num_dq 72
-num_dqs 18
-num_ca 25
-num_clk 2
-num_mem_dq 2
-mem_data_width 8
-rtt_value 10000
-ron_value 34
-tflight_value
-num_bobs 1
-capacity 80
-num_channels_per_bob 1
-first metric "Cost"
-second metric "Bandwidth"
-third metric "Energy"
-DIMM model "ALL"
-mirror_in_bob "F"
"""
"""What CACTI is asked. The lines from `dram_type` on are of DRAM modules, which it always reckons.

It never ends on a file that begins with an empty line."""

ANSWERS = {
    "read_pj": (r"Total dynamic read energy per access \(nJ\): ([\d.e+-]+)", 1000.0),
    "write_pj": (r"Total dynamic write energy per access \(nJ\): ([\d.e+-]+)", 1000.0),
    "access_ns": (r"Access time \(ns\): ([\d.e+-]+)", 1.0),
    "leakage_mw": (r"Total leakage power of a bank[^:]*: ([\d.e+-]+)", 1.0),
}

PUBLISHED = (
    ("Horowitz, ISSCC 2014: cache of 8 KB, 45 nm, 64 bits read", 45, 8, 8, "read", 10 / 8),
    ("Horowitz, ISSCC 2014: cache of 32 KB, 45 nm, 64 bits read", 45, 8, 32, "read", 20 / 8),
    ("Horowitz, ISSCC 2014: cache of 1 MB, 45 nm, 64 bits read", 45, 8, 1024, "read", 100 / 8),
    (
        "Jouppi et al., ISCA 2017: 24 MiB are almost a third of at most 331 mm2, 28 nm",
        28,
        32,
        24 * 1024,
        "area",
        331 / 3,
    ),
)
"""Figures that others published: node, width, KiB, what, value. They are no part of the fit."""

Point = dict[str, float]


def asked_of_cacti(program: Path) -> Iterator[Point]:
    """Yield what CACTI answers for every point."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "ram.cfg"
        for nm in NODES:
            for width in WIDTHS:
                for kib in KIBIBYTES:
                    config.write_text(
                        ASKED.format(size=kib * 1024, width=width, bits=8 * width, micrometres=nm / 1000)
                    )
                    command = [str(program.resolve()), "-infile", str(config)]
                    said = subprocess.run(
                        command,
                        cwd=program.resolve().parent,
                        capture_output=True,
                        text=True,
                        timeout=300,
                        check=True,
                    ).stdout
                    sides = re.search(r"Cache height x width \(mm\): ([\d.]+) x ([\d.]+)", said)
                    found = {name: re.search(pattern, said) for name, (pattern, _) in ANSWERS.items()}
                    if sides is None or None in found.values():
                        continue  # CACTI knows no such macro
                    yield {
                        "nm": nm,
                        "width_bytes": width,
                        "kib": kib,
                        "mm2": float(sides[1]) * float(sides[2]),
                    } | {name: float(match[1]) * ANSWERS[name][1] for name, match in found.items() if match}


def read_points() -> list[Point]:
    """Return the points that are kept."""
    with POINTS.open(encoding="utf-8", newline="") as file:
        return [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]


def write_points(points: Iterator[Point]) -> None:
    """Keep points as CSV."""
    with POINTS.open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        out.writeheader()
        for point in points:
            out.writerow({key: f"{point[key]:.6g}" for key in COLUMNS})
            file.flush()


def fitted(points: list[Point], name: str) -> dict[str, float]:
    """Return the law of a figure: least squares of its logarithm."""
    value = {
        "area": lambda p: p["mm2"],
        "read": lambda p: p["read_pj"] / p["width_bytes"],
        "write": lambda p: p["write_pj"] / p["width_bytes"],
    }[name]
    logs = np.log([[p["kib"], p["width_bytes"], p["nm"]] for p in points])
    found = np.log([value(p) for p in points])
    law, *_ = np.linalg.lstsq(np.column_stack([np.ones(len(points)), logs]), found, rcond=None)
    away = np.abs(np.expm1(law[0] + logs @ law[1:] - found))
    return {
        "factor": float(f"{np.exp(law[0]):.6g}"),
        **{key: float(f"{one:.6g}") for key, one in zip(("size", "width", "node"), law[1:], strict=True)},
        "mean_error": float(f"{away.mean():.3g}"),
        "most_error": float(f"{away.max():.3g}"),
    }


DRAM = {"lpddr4": 8.0, "lpddr": 40.0, "ddr3": 70.0, "gddr5": 14.0, "hbm2": 3.9}
"""Picojoules of a bit: the table `type2energy` of the CACTI plug-in of Accelergy, which names its sources."""


def written(laws: dict[str, dict[str, float]], count: int) -> str:
    """Return the TOML of the law."""
    lines = [
        "# benchmarks/sram_fit.py --write writes this file.",
        f'source = "CACTI 7, itrs-lstp, 300 K, a bank, a port: {count} points, benchmarks/sram_points.csv"',
        'dram_source = "github.com/Accelergy-Project/accelergy-cacti-plug-in 291018b12cc9, cacti_wrapper.py"',
    ]
    for name, law in laws.items():
        lines += ["", f"[{name}]", *(f"{key} = {value}" for key, value in law.items())]
    lines += ["", "# Picojoules of a byte.", "[dram]"]
    lines += [f"{kind} = {round(8 * bit, 6)}" for kind, bit in DRAM.items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cacti", type=Path, help="the executable of CACTI 7, to ask it again")
    parser.add_argument("--write", action="store_true", help="write the law")
    parser.add_argument("--page", type=Path, help="put the tables into this page, docs/sram.md")
    asked = parser.parse_args()
    if asked.cacti is not None:
        write_points(asked_of_cacti(asked.cacti))
    points = read_points()
    laws = {name: fitted(points, name) for name in ("area", "read", "write")}
    if asked.write:
        TARGET.write_text(written(laws, len(points)), encoding="utf-8")
    sections = {"law": lambda: law_rows(laws), "published": lambda: published_rows(laws)}
    write(sections, asked.page)


def law_rows(laws: dict[str, dict[str, float]]) -> Iterator[str]:
    """Yield the table of the laws with their errors."""
    yield "| figure | law | mean error | largest |"
    yield "|---|---|---:|---:|"
    for name, law in laws.items():
        unit = "mm2" if name == "area" else f"pJ a byte {'read' if name == 'read' else 'written'}"
        terms = (
            f"{law['factor']:.3g} · KiB^{law['size']:.3f} · width^{law['width']:.3f} · nm^{law['node']:.3f}"
        )
        yield f"| {unit} | {terms} | {law['mean_error']:.1%} | {law['most_error']:.1%} |"


def published_rows(laws: dict[str, dict[str, float]]) -> Iterator[str]:
    """Yield the table of what others published, beside the law."""
    yield "| published | says | law | law / published |"
    yield "|---|---:|---:|---:|"
    for title, nm, width, kib, what, value in PUBLISHED:
        law = laws[what]
        ours = law["factor"] * kib ** law["size"] * width ** law["width"] * nm ** law["node"]
        unit = "mm2" if what == "area" else "pJ/B"
        yield f"| {title} | {value:.3g} {unit} | {ours:.3g} {unit} | {ours / value:.2f} |"


if __name__ == "__main__":
    main()
