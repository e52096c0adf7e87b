"""How far the paper's algorithms and the baselines are from the optimum: docs/fusion-algorithms.md.

    python benchmarks/fusion_algorithms.py [--only random orders papers ours online] [--into PAGE]

Networks are those of `fusion_graphs.py`, from the zoo. Words are millions at batch 4, 128 KiB, 16 bits; times
are CPU milliseconds of this machine. Ten seconds in all.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from fusion_graphs import papers_network
from page_marks import Section, write

from onchip.machines.chip import load_chip
from onchip.network import bits
from onchip.planners.fusion import FusionOptions, FusionProblem
from onchip.planners.fusion.online import OnlineFuser
from onchip.planners.fusion.reproduced.algorithm1 import bottom_up, top_down, untangled
from onchip.planners.fusion.reproduced.baselines import NAMES, TILED, baseline, oracle_bytes
from onchip.planners.fusion.reproduced.dag import Dag
from onchip.planners.fusion.strategy import Priced, partition
from oracles.fusion_schemes import Traffic, best_runnable, random_dag, random_traffic

BUDGET = 128 << 10
PAPER = FusionOptions(
    batch_weights="shared", isoa="paper", halo="paper", residency="all", weight_tile=False, blocks="fallback"
)
GRAPHS = {
    "vgg16": "VGG16",
    "mobilenet_v1": "MobileNet v1",
    "squeezenet1_0": "SqueezeNet",
    "googlenet": "GoogLeNet",
    "resnet50": "ResNet-50",
    "resnet152": "ResNet-152",
}


def random_graphs(count: int = 300) -> Iterator[str]:
    """Algorithm 1 against brute force over all schemes that can run, on graphs of 6 to 8 nodes."""
    yield "| most | bottom-up is not optimal | mean excess | top-down forms a cycle | not optimal once cut |"
    yield "|---|---|---|---|---|"
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
        yield f"| {most} | {worse} | {100 * excess / count:.1f} % | {cyclic} | {cut} |"


def orders(count: int = 100, drawn: int = 30) -> Iterator[str]:
    """Bottom-up by the order in which operators are visited, which the paper leaves open."""
    yield "| most | nodes as numbered | depth first | the best of 31 orders |"
    yield "|---|---|---|---|"
    for most in (2, 3, 4):
        random = Random(7)
        numbered = deep = least = 0
        for _ in range(count):
            dag = random_dag(random, random.randint(6, 8))
            cost = random_traffic(random, dag, most)
            best = best_runnable(dag, cost)
            costs = [bottom_up(dag, cost).cost]
            costs += [visited(dag, cost, drawn_order(random, dag)) for _ in range(drawn)]
            numbered += costs[0] > best
            least += min(costs) > best
            deep += visited(dag, cost, depth_first(dag)) > best
        yield f"| {most} | {numbered} | {deep} | {least} |"


def visited(dag: Dag, cost: Traffic, order: list[int]) -> int:
    """What bottom-up costs when the nodes are numbered by a topological order."""
    place = {v: at for at, v in enumerate(order)}
    edges = [(place[a], place[b]) for a in order for b in bits(dag.successors[a])]
    again = Dag.from_edges(len(order), edges)
    return bottom_up(again, lambda group: cost(sum(1 << order[at] for at in bits(group)))).cost


def drawn_order(random: Random, dag: Dag) -> list[int]:
    """A topological order, each next node drawn from those that can come."""
    order: list[int] = []
    before = {v: {a for a in range(len(dag)) if dag.successors[a] >> v & 1} for v in range(len(dag))}
    while before:
        order.append(random.choice([v for v, needs in before.items() if needs <= set(order)]))
        del before[order[-1]]
    return order


def depth_first(dag: Dag) -> list[int]:
    """The topological order that goes on from a node to what reads it as long as it can."""
    done: dict[int, None] = {}
    for first in range(len(dag)):
        way = [] if first in done else [(first, iter(bits(dag.successors[first])))]
        while way:
            v, left = way[-1]
            after = next((y for y in left if y not in done), None)
            if after is None:
                done[v] = None
                way.pop()
            else:
                way.append((after, iter(bits(dag.successors[after]))))
    return [*reversed(done)]


def searches(options: FusionOptions) -> Iterator[str]:
    """Every search and every baseline on the papers' graphs."""
    names = (*NAMES, *TILED)
    columns = ("exact", "algorithm1", "top-down", "on-line", *names, "oracle")
    yield "| Mwords | " + " | ".join(columns) + " |"
    yield "|---" * (1 + len(columns)) + "|"
    for name, title in GRAPHS.items():
        problem = FusionProblem.of(papers_network(name, 4), load_chip("optimus"), options, BUDGET)
        price = Priced(problem)
        row = [
            found(problem, price, "exact"),
            found(problem, price, "algorithm1"),
            # half a minute, and the optimum too
            None if name == "googlenet" else found(problem, price, "algorithm1-top-down"),
            found(problem, price, "online"),
        ]
        row += [baseline(problem, which, price).dram_bytes for which in names]
        row.append(oracle_bytes(problem))
        yield f"| {title} | " + " | ".join("" if b is None else f"{b / 2e6:.2f}" for b in row) + " |"


def found(problem: FusionProblem, price: Priced, search: str) -> int:
    """Bytes that a search finds."""
    chosen = partition(replace(problem, options=replace(problem.options, search=search)), price)  # type: ignore[arg-type]
    if chosen.note:
        print(f"{problem.network.name}: {chosen.note}", file=sys.stderr)
    return sum(group.dram_bytes for group in chosen.groups)


def on_line() -> Iterator[str]:
    """The on-line variant: its limit, and how long a plan for a new buffer takes."""
    yield "| | n | prepare, CPU ms | plan, CPU ms (least / median of 18 budgets) |"
    yield "|---|---|---|---|"
    for name, title in GRAPHS.items():
        network = papers_network(name, 4)
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
        yield f"| {title} | {fuser.limit(BUDGET)} | {prepare:.0f} | {times[0]:.2f} / {middle:.2f} |"


SECTIONS: dict[str, Section] = {
    "random": random_graphs,
    "orders": orders,
    "papers": lambda: searches(PAPER),
    "ours": lambda: searches(FusionOptions()),
    "online": on_line,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="SECTION", choices=SECTIONS, default=[*SECTIONS])
    parser.add_argument("--into", type=Path, metavar="PAGE")
    args = parser.parse_args()
    write({name: SECTIONS[name] for name in args.only}, args.into)


if __name__ == "__main__":
    main()
