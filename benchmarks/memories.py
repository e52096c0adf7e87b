"""Zoo networks in several memories: how good the plans are, beside what a greedy planner of banks does.

The baseline gives every tensor one place for life, the largest first, in the fastest memory that has room
beside what was placed before, in the network's own order, addresses left aside: what ExecuTorch's planning
over a memory map does (the largest buffers first, the fastest bank that holds them, or the next). It moves
nothing, so the plan without moves stands beside it.

Run: python benchmarks/memories.py [SECONDS for each plan]
"""

from __future__ import annotations

import sys
from dataclasses import replace

import onchip
from onchip.base.errors import OnchipError
from onchip.machines.chip import Chip, load_chip
from onchip.network import Network
from onchip.planners.budgets import memories_within
from onchip.planners.placement.memories.assign import Assigned, touches_of
from onchip.planners.placement.memories.levels import Levels, MemoryProblem
from onchip.planners.placement.memories.steps import cost_of
from onchip.planners.placement.problem import Problem

BANKS = ",".join(f"bank{i}=1MiB" for i in range(4))

CASES = [
    ("mobilenet_v2", "esp32-s3", None),
    ("squeezenet1_0", "esp32-s3", None),
    ("resnet18", "esp32-s3", None),
    ("googlenet", "esp32-s3", None),
    ("inception_v3", "esp32-s3", "psram=2MiB"),
    ("densenet121", "esp32-s3", None),
    ("densenet121", "esp32-s3", "sram=1MiB,psram=1MiB"),
    ("mobilenet_v2", "banked-npu", None),
    ("resnet50", "banked-npu", None),
    ("googlenet", "banked-npu", BANKS),
]


def largest_first(network: Network, chip: Chip) -> int | None:
    """Picoseconds at the memories of the baseline; None where a tensor finds no room."""
    base = Problem.of(network, chip.alignment_bytes).in_order(network.order)
    problem = MemoryProblem.of(network, base, Levels.of(chip, chip.memories))
    touches = touches_of(problem, network.order)
    left = {m: [problem.levels.capacity[m]] * len(network.order) for m in problem.levels.reached}
    at: dict[tuple[int, int], int] = {}
    for t in sorted(touches, key=lambda t: -base.size[t]):
        begin, end = touches[t][0], touches[t][-1] + 1
        fits = (m for m in problem.levels.reached if min(left[m][begin:end]) >= base.size[t])
        home = next(fits, None)
        if home is None:
            return None
        for s in range(begin, end):
            left[home][s] -= base.size[t]
            at[t, s] = home
    found = Assigned(tuple(network.order), touches, at, {})
    return cost_of(problem, found.steps(problem))[1]


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    print("| network | chip | sizes | status | ms at memories | gap | moved MB | without moves | greedy |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, chip_name, budget in CASES:
        chip = load_chip(chip_name)
        shown = "banks of 1 MiB" if budget == BANKS else budget or "all"
        source = onchip.load(f"zoo:{name}", dtype="int8")
        try:
            plan = onchip.plan(source, chip, budget, time_limit=seconds, fuse=False)
            still = onchip.plan(source, chip, budget, time_limit=seconds, moves=False)
        except OnchipError as refusal:
            print(f"| {name} | {chip_name} | {shown} | {refusal} | | | | | |")
            continue
        within = replace(chip, memories=memories_within(chip, budget))
        greedy = largest_first(source.network, within)
        r = plan.result
        took, bound = r.memory_picoseconds or 0, r.memory_lower_bound_picoseconds or 0
        alone = still.result.memory_picoseconds or 0
        gap = "0" if took == bound else f"{took / bound - 1:.1e}"
        beside = "no room" if greedy is None else f"x {greedy / took:.3f}"
        print(
            f"| {name} | {chip_name} | {shown} | {r.status} | {took / 1e9:.3f} | {gap} |"
            f" {(r.move_bytes or 0) / 1e6:.2f} | x {alone / took:.3f} ({still.result.status}) | {beside} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
