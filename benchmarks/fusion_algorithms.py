"""How far the paper's algorithms and the baselines are from the optimum: docs/fusion-algorithms.md.

    python benchmarks/fusion_algorithms.py [FOLDER]     graphs (beside the checkout: shared/bench/fusion)

Random graphs need no folder. Words are millions at batch 4, 128 KiB, 16 bits; times are CPU milliseconds of
this machine.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from fusion_graphs import fusion_graph

from onchip.machines.chip import load_chip
from onchip.network import Network
from onchip.planners.fusion import FusionOptions, FusionProblem
from onchip.planners.fusion.online import OnlineFuser
from onchip.planners.fusion.reproduced.algorithm1 import bottom_up, top_down, untangled
from onchip.planners.fusion.reproduced.baselines import NAMES, baseline, oracle_bytes
from onchip.planners.fusion.strategy import Priced, partition
from oracles.fusion_schemes import best_runnable, random_dag, random_traffic

BUDGET = 128 << 10
PAPER = FusionOptions(
    batch_weights="shared", isoa="paper", halo="paper", residency="all", weight_tile=False, blocks="fallback"
)
GRAPHS = ("vgg16", "mobilenet_v1", "squeezenet1_0", "googlenet", "resnet50", "resnet152")


def random_graphs(count: int = 300) -> None:
    """Algorithm 1 against brute force over all schemes that can run, on graphs of 6 to 8 nodes."""
    print(f"Algorithm 1 on {count} random graphs of 6-8 nodes, by most operators in a group")
    print("most  bottom-up not optimal  mean excess  top-down in a cycle  not optimal once cut")
    for most in (2, 3, 4):
        random = Random(7)
        worse = cyclic = cut = 0
        excess = 0.0
        for _ in range(count):
            dag = random_dag(random, random.randint(6, 8))
            cost = random_traffic(random, dag, most)
            best, up, down = best_runnable(dag, cost), bottom_up(dag, cost), top_down(dag, cost)
            worse += up.cost > best
            excess += up.cost / best - 1
            cyclic += bool(dag.knots(down.groups))
            cut += untangled(dag, cost, down).cost > best
        print(f"{most:4}  {worse:21}  {excess / count:10.1%}  {cyclic:19}  {cut:20}")


def searches(folder: Path, options: FusionOptions, title: str) -> None:
    """Every search and every baseline on the papers' graphs."""
    print(f"\n{title}")
    columns = ("exact", "algorithm1", "top-down", "online", *NAMES, "oracle")
    print(f"{'Mwords':14}" + "".join(f"{name:>14}" for name in columns))
    for name in GRAPHS:
        network = fusion_graph(folder / f"{name}.json", 4)
        row = [
            found(network, options),
            found(network, replace(options, search="algorithm1")),
            # half a minute, and the optimum too
            None if name == "googlenet" else found(network, replace(options, search="algorithm1-top-down")),
            found(network, replace(options, search="online")),
        ]
        problem = FusionProblem.of(network, load_chip("optimus"), options, BUDGET)
        price = Priced(problem)
        row += [baseline(problem, which, price).dram_bytes for which in NAMES]
        row.append(oracle_bytes(problem))
        print(f"{name:14}" + "".join("             -" if b is None else f"{b / 2e6:14.2f}" for b in row))


def found(network: Network, options: FusionOptions) -> int:
    """Bytes that a search finds."""
    problem = FusionProblem.of(network, load_chip("optimus"), options, BUDGET)
    chosen = partition(problem, Priced(problem))
    if chosen.note:
        print(f"  {network.name}: {chosen.note}")
    return sum(group.dram_bytes for group in chosen.groups)


def on_line(folder: Path) -> None:
    """The on-line variant: its limit, and how long a plan for a new buffer takes."""
    print("\non line          n  prepare ms  plan ms (CPU, least and median of 18 budgets)")
    for name in GRAPHS:
        network = fusion_graph(folder / f"{name}.json", 4)
        began = time.process_time()
        fuser = OnlineFuser(network, load_chip("optimus"))
        prepare = (time.process_time() - began) * 1e3
        times = []
        for budget in 3 * [*range(BUDGET, BUDGET // 2, -BUDGET // 12)]:
            began = time.process_time()
            fuser.plan(budget)
            times.append((time.process_time() - began) * 1e3)
        times.sort()
        middle = times[len(times) // 2]
        print(f"{name:14} {fuser.limit(BUDGET):3}  {prepare:10.0f}  {times[0]:7.2f} {middle:7.2f}")


if __name__ == "__main__":
    random_graphs()
    here = Path(__file__).resolve().parents[2] / "shared" / "bench" / "fusion"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else here
    if folder.is_dir():
        searches(folder, PAPER, "the paper's options")
        searches(folder, FusionOptions(), "our options")
        on_line(folder)
