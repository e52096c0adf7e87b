"""Latency with and without prefetching, its bound and its gap, for zoo networks on a chip with rates.

    python benchmarks/objectives.py [NAME ...] [--budget MR] [--chip FILE.toml]

Prints the table of docs/objectives.md. Every plan is checked. The chip is an invented 8-bit accelerator,
given below: the point is the shape of the answer, not the chip.
"""

from __future__ import annotations

import argparse
import platform

import onchip
from onchip.machines.chip import Chip, Rates, load_chip

EDGE = Chip(
    "edge",
    64,
    "int8",
    "an invented 8-bit accelerator: 1 TMAC/s, 6.4 GB/s of DRAM",
    rates=Rates(
        dram_bytes_per_second=6.4e9,
        dram_picojoules_per_byte=160.0,
        macs_per_second=1e12,
        scratchpad_bytes_per_second=64e9,
        mac_picojoules=0.2,
        scratchpad_picojoules_per_byte=1.0,
    ),
)

NETWORKS = (
    "squeezenet1_0",
    "mobilenet_v2",
    "resnet50",
    "googlenet",
    "inception_v3",
    "densenet121",
    "vit_b_16",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=NETWORKS)
    parser.add_argument("--budgets", nargs="*", default=["MR", "MP"])
    parser.add_argument("--chip", help="a chip's name or TOML file instead of the invented one")
    parser.add_argument("--time-limit", type=float, default=None)
    given = parser.parse_args()
    chip = EDGE if given.chip is None else load_chip(given.chip)
    print(f"{platform.machine()}, Python {platform.python_version()}, chip {chip.name}\n")
    print(
        "| network | budget | weights | planned for traffic | for latency | bound | gap | saved |"
        " energy | seconds |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in given.names:
        source = onchip.load(f"zoo:{name}")
        for budget in given.budgets:
            for weights in ("streamed", "resident"):
                row(name, source, chip, budget, weights, given.time_limit)


def row(name: str, source: object, chip: Chip, budget: str, weights: str, time_limit: float | None) -> None:
    options = {"weights": weights, "time_limit": time_limit}
    plain = onchip.plan(source, chip, budget, fuse=False, **options).result  # type: ignore[arg-type]
    made = onchip.plan(source, chip, budget, objective="latency", **options)  # type: ignore[arg-type]
    made.check()
    seconds = made.result.seconds
    before, after = plain.latency_picoseconds, made.result.latency_picoseconds
    bound, energy = made.result.latency_lower_bound_picoseconds, plain.energy_picojoules
    assert before is not None
    assert after is not None
    assert bound is not None
    assert energy is not None
    gap = "optimal" if after == bound else f"{100 * (after / bound - 1):.1f} %"
    print(
        f"| {name} | {budget} | {weights} | {before / 1e9:.3f} ms | {after / 1e9:.3f} ms |"
        f" {bound / 1e9:.3f} ms | {gap} | {100 * (1 - after / before):.1f} % | {energy / 1e9:.3f} mJ |"
        f" {seconds:.1f} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
