"""What a quantised network moves beside its float twin read as int8: the table of docs/today.md.

    python benchmarks/quantised_twins.py FLOAT.onnx QUANTISED.onnx [--kib 64 128 256 512] [--seconds 20]

Every plan is checked by the planner's own verbs. *Within* is how far all bytes lie above the twin's once the
wider biases and the scales, which only the quantised file has, are taken off.
"""

from __future__ import annotations

import argparse

import onchip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("float", help="the twin, which is read with --dtype int8")
    parser.add_argument("quantised")
    parser.add_argument("--kib", type=int, nargs="+", default=[64, 128, 256, 512])
    parser.add_argument("--seconds", type=float, default=20)
    asked = parser.parse_args()
    twin = onchip.load(asked.float, dtype="int8")
    network = onchip.load(asked.quantised)
    floats = onchip.load(asked.quantised, float_boundary=True)
    beside = network.network.weight_bytes - twin.network.weight_bytes
    print(f"Weights: {network.network.weight_bytes:,} and {twin.network.weight_bytes:,} of the twin.\n")
    print("| KiB | read as | boundary | spilled and reloaded | weights | all | within |")
    print("|--:|---|--:|--:|--:|--:|--:|")
    for size in asked.kib:
        least = 0
        for source, words in (
            (twin, "the float twin"),
            (network, "its integers"),
            (floats, "`--float-boundary`"),
        ):
            plan = onchip.plan(source, budget=size * 1024, fuse=True, time_limit=asked.seconds)
            plan.check()
            r = plan.result
            least = least or r.dram_bytes
            above = r.dram_bytes - least - (beside if source is not twin else 0)
            print(
                f"| {size} | {words} | {r.compulsory_bytes:,} | {r.traffic_bytes:,} | {r.weight_bytes:,}"
                f" | {r.dram_bytes:,} | {100 * above / least:.1f} % |",
                flush=True,
            )


if __name__ == "__main__":
    main()
