"""Whole networks planned for the shortest time, beside two plans for which no time is searched.

    .venv/bin/python benchmarks/time_networks.py [NETWORK ...] [--chips EDGE ...] [--budgets 256KiB ...]

NETWORK is what `onchip plan` takes, a file, or `zoo:NAME`; or `llama:LAYERS`, below. *Fewest bytes* is the
plan that moves the fewest bytes, with tensors apart, in its nests or those of fewest bytes, with the best
copies of every buffer. *Whole operators* is the plan of least latency of whole operators, at the rates of the
tiles, with weights cut into the best slices along one axis, two copies each. *For time* is what `--objective
latency` makes. The checker prices all three. The chips are below: those of `time_known_values.py`, and three
made of `EDGE`. *Bound* is that of every plan of nests. CPU seconds are of all plans together. Exit code 1
where the plan for time is slower than one of the others.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace

from time_known_values import EDGE, SERVER

from nest_networks import network_of
from onchip.base.errors import NegativeAnswer
from onchip.base.units import parse_bytes
from onchip.check import check
from onchip.machines.chip import Chip
from onchip.machines.tile_rates import ArraySide, Channel
from onchip.network import Network
from onchip.planners.fusion import FusionProblem
from onchip.planners.joint.options import JointOptions, fusion_options
from onchip.planners.joint.planning import BYTES, solve
from onchip.planners.joint.timed.answer import quickest, starts_of
from onchip.planners.limits import Limits
from onchip.planners.placement import PlacementOptions
from onchip.plans import Plan
from onchip.readers import ReadOptions, load

CHIPS = {
    "EDGE": EDGE,
    "SERVER": SERVER,
    "TWO": replace(  # one channel each way
        EDGE,
        channels=(replace(EDGE.channels[0], stores=False), replace(EDGE.channels[0], loads=False)),
    ),
    "SLOW": replace(EDGE, channels=(Channel(8 * 10**8, 500_000, 40_000, 32),)),
    "SMALL": replace(EDGE, sides=(ArraySide("out", 8), ArraySide("sum", 8))),
}


def llama(layers: int, tokens: int = 512) -> Network:
    """Layers of Llama 3.2 1B at 16 bit: 2,048 wide, 32 heads for 8 of keys and values, 8,192 inside."""
    lines = []
    for n in range(layers):
        lines += [
            f"norm{n} RMSNormalization: n{n}(m,d) = x{n}(m,*d) G{n}(d)",
            f"K{n} MatMul: k{n}(p,g,u) = n{n}(p,d) WK{n}(d,g,u)",
            f"turnK{n} RotaryEmbedding: kr{n}(p,g,u) = k{n}(p,g,*u)",
            f"V{n} MatMul: v{n}(p,g,v) = n{n}(p,d) WV{n}(d,g,v)",
            f"Q{n} MatMul: q{n}(m,g,r,u) = n{n}(m,d) WQ{n}(d,g,r,u)",
            f"turnQ{n} RotaryEmbedding: qr{n}(m,g,r,u) = q{n}(m,g,r,*u)",
            f"S{n} MatMul+Softmax: s{n}(g,r,m,p) = qr{n}(m,g,r,u) kr{n}(*p,g,u)",
            f"AV{n} MatMul: a{n}(m,g,r,v) = s{n}(g,r,m,p) v{n}(p,g,v)",
            f"out{n} MatMul: o{n}(m,d) = a{n}(m,g,r,v) WO{n}(g,r,v,d)",
            f"add{n} Add: y{n}(m,d) = o{n}(m,d) x{n}(m,d)",
            f"middle{n} RMSNormalization: b{n}(m,d) = y{n}(m,*d) H{n}(d)",
            f"gate{n} MatMul+Silu: t{n}(m,f) = b{n}(m,d) WG{n}(d,f)",
            f"up{n} MatMul: w{n}(m,f) = b{n}(m,d) WU{n}(d,f)",
            f"mul{n} Mul: z{n}(m,f) = t{n}(m,f) w{n}(m,f)",
            f"down{n} MatMul: c{n}(m,d) = z{n}(m,f) WD{n}(f,d)",
            f"end{n} Add: x{n + 1}(m,d) = c{n}(m,d) y{n}(m,d)",
        ]
    sizes = f"m={tokens} p={tokens} d=2048 g=8 r=4 u=64 v=64 f=8192"
    return network_of(sizes, lines, ["x0"], [f"x{layers}"], 2).network


def milliseconds(plan: Plan | None) -> str:
    """The time of a plan that the checker derives, in milliseconds; a dash without one."""
    return "-" if plan is None else f"{check(plan).latency_picoseconds * 1e-9:,.3f}"  # type: ignore[operator]


def row(name: str, chip_name: str, size: str, seconds: float) -> bool:
    """Print the row of one network; return whether the plan for time is slower than none without a search."""
    began = time.process_time()
    layers = name.removeprefix("llama:")
    network = llama(int(layers)) if layers != name else load(name, ReadOptions(dtype="int8")).network
    chip = Chip(chip_name, 64, "int8", tiles=CHIPS[chip_name])
    budget = parse_bytes(size)
    apart = JointOptions(fuse=True, overlap=False, concat_views=False)
    placing = PlacementOptions(time_limit=seconds)
    limits = Limits.of(placing)
    called = name.removeprefix("zoo:").rpartition("/")[2].removesuffix(".onnx")
    title = f"| {called} | {chip_name} | {size} | {len(network.operators)}"
    try:
        least = solve(network, chip, budget, apart, placing, limits.until(BYTES)).plan
        problem = FusionProblem.of(network, chip, fusion_options(apart), budget)
        starts = starts_of(least, problem, limits.began, limits, "latency")
        made = quickest(least, problem, limits.began, limits, starts=starts)
    except NegativeAnswer as no:
        print(f"{title} | {no} |", flush=True)
        return True
    fast, bound = check(made).latency_picoseconds, made.result.latency_lower_bound_picoseconds
    assert fast is not None
    assert bound is not None
    others = [check(one).latency_picoseconds or 0 for one in starts.plans()]
    faster = f"{1 - fast / min(others):.1%}" if others else "-"
    print(
        f"{title} | {len(made.groups)} | {milliseconds(starts.fewest_bytes)}"
        f" | {milliseconds(starts.whole_operators)} | {fast * 1e-9:,.3f} | {faster} | {bound * 1e-9:,.3f}"
        f" | {fast / bound - 1:.1%} | {least.result.dram_bytes:,} | {made.result.dram_bytes:,}"
        f" | {time.process_time() - began:.0f} |",
        flush=True,
    )
    return all(fast <= other for other in others)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="*", default=["zoo:squeezenet1_0", "zoo:mobilenet_v2"])
    parser.add_argument("--chips", nargs="+", default=["EDGE"], choices=CHIPS)
    parser.add_argument("--budgets", nargs="+", default=["256KiB"])
    parser.add_argument("--time-limit", type=float, default=300.0, help="seconds for each plan")
    asked = parser.parse_args()
    print(
        "| network | chip | scratchpad | operators | groups | fewest bytes, ms | whole operators, ms"
        " | for time, ms | faster than both | bound, ms | above it | fewest bytes | bytes for time | CPU s |"
    )
    print("|---|---|---|" + "--:|" * 11)
    fine = True
    for name in asked.networks:
        for chip in asked.chips:
            for size in asked.budgets:
                fine &= row(name, chip, size, asked.time_limit)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
