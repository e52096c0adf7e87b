"""How planning time grows with a network of modules, the simple method beside exact placement.

    python benchmarks/branches_growth.py [--into docs/branches-figures.md] [--time-limit SECONDS] [COUNT ...]

Chains of random modules as in Inception networks: two to five branches of one to four convolutions, a
concat, now and then modules inside; 35x35 maps of 128 to 400 channels, so that some modules need the paper's
processing II in 1 MiB. CPU milliseconds of planning, the checker's certificate included; the least of five
runs where they are under half a second. Exact placement plans the same modules as one network; where its time
is over, a star says so. The last row is ResNet-1202. The exponent is that of the time between a row and the
one before it: with 1 time grows as the network does.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TypeVar

import onchip
from onchip.base.errors import Infeasible
from onchip.machines.chip import load_chip
from onchip.network import Geometry, Network, OperatorSpec, TensorKind
from onchip.planners import placement
from onchip.planners.branches.options import BranchOptions
from onchip.planners.branches.plan import plan_branches
from onchip.planners.branches.sizes import Sizes
from onchip.planners.modules.region import regions
from onchip.planners.placement import PlacementOptions

BEGIN, END = "<!-- growth: begin -->", "<!-- growth: end -->"
COUNTS = (1, 3, 10, 30, 100, 300, 1000)
CHIP = load_chip("exynos-npu")
BUDGET = 1 << 20
T = TypeVar("T")


class _Graph:
    """Convolutions and concats as they come; a tensor is (name, channels), of one height and width."""

    def __init__(self, side: int) -> None:
        self.side = side
        self.tensors: list[tuple[str, int, TensorKind]] = []
        self.operators: list[OperatorSpec] = []

    def tensor(self, name: str, channels: int, kind: TensorKind) -> tuple[str, int]:
        self.tensors.append((name, channels * self.side**2, kind))
        return name, channels

    def conv(self, name: str, x: tuple[str, int], channels: int, kernel: int) -> tuple[str, int]:
        made = self.tensor(name, channels, "activation")
        shape = [(1, c, self.side, self.side) for c in (x[1], channels)]
        geometry = Geometry("conv", *shape, (kernel, kernel), (1, 1), (kernel // 2,) * 4, (1, 1))
        weights = x[1] * channels * kernel**2
        self.operators.append(OperatorSpec(f"{name}.conv", "Conv", [x[0]], [name], weights, 0, geometry))
        return made

    def concat(self, name: str, parts: Sequence[tuple[str, int]]) -> tuple[str, int]:
        channels = sum(c for _, c in parts)
        made = self.tensor(name, channels, "activation")
        shape = [(1, c, self.side, self.side) for c in (parts[0][1], channels)]
        names = [n for n, _ in parts]
        self.operators.append(
            OperatorSpec(f"{name}.cat", "Concat", names, [name], 0, 0, Geometry("concat", *shape))
        )
        return made


def chain(count: int, seed: int = 0) -> Network:
    """`count` random modules, one after the other."""
    random = Random(seed)
    g = _Graph(35)
    x = g.conv("stem", g.tensor("image", 3, "input"), 192, 3)
    for i in range(count):
        x = _module(g, random, f"m{i}", x, random.randint(128, 400), depth=1)
    x = g.conv("head", x, 32, 1)
    return Network.build(f"chain-{count}", g.tensors, g.operators, [x[0]])


def _module(
    g: _Graph, random: Random, name: str, x: tuple[str, int], channels: int, depth: int
) -> tuple[str, int]:
    # No branch makes more than three quarters: then every layer fits the buffer whole.
    middle = range(max(1, channels // 4), channels - channels // 4)
    cuts = sorted(random.sample(middle, random.randint(1, min(4, len(middle)))))
    parts = []
    for b, (low, high) in enumerate(zip((0, *cuts), (*cuts, channels), strict=True)):
        y = x
        for k in range(random.randint(0, 3 if depth == 1 else 1)):
            y = g.conv(f"{name}.b{b}.{k}", y, random.randint(16, 96), random.choice((1, 1, 3, 5)))
        if depth < 2 and high - low >= 4 and random.random() < 0.1:
            parts.append(_module(g, random, f"{name}.b{b}.in", y, high - low, depth + 1))
        else:
            parts.append(g.conv(f"{name}.b{b}.last", y, high - low, random.choice((1, 3))))
    return g.concat(name, parts)


# -- measuring -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One network: seconds, and bytes inside the modules beyond inputs and outputs.

    `exact` is None where an operator alone needs more than the buffer.
    """

    name: str
    modules: int
    operators: int
    simple: dict[str, tuple[float, int]]
    exact: tuple[float, int, str] | None


def measure(network: Network, time_limit: float) -> Row:
    simple, region = {}, None
    for rules in ("paper", "ours"):
        options = BranchOptions(rules=rules)  # type: ignore[arg-type]
        made, seconds = quickest(lambda: plan_branches(network, CHIP, BUDGET, options))  # noqa: B023
        found = regions(made.plan, Sizes(made.plan.network, CHIP).resident)
        simple[rules] = seconds, sum(r.traffic_bytes for r in found)
        region = max(found, key=lambda r: len(r.network.operators))
    assert region is not None
    asked = PlacementOptions(in_place=True, time_limit=time_limit)
    try:
        placed, seconds = quickest(lambda: placement.plan(region.network, CHIP, BUDGET, asked).result)
        exact = seconds, placed.traffic_bytes, placed.status
    except Infeasible:
        exact = None
    return Row(network.name, len(region.modules), len(network.operators), simple, exact)


def quickest(work: Callable[[], T]) -> tuple[T, float]:
    """What `work` gives and its CPU seconds, of what is quick the least of five."""
    fastest = math.inf
    for _ in range(5):
        began = time.process_time()
        result = work()
        fastest = min(fastest, time.process_time() - began)
        if fastest > 0.5:
            break
    return result, fastest


def table(rows: Sequence[Row], time_limit: float) -> Iterator[str]:
    yield (
        "| network | modules | operators | paper ms | exponent | ours ms | exponent | exact ms | paper KB"
        " | ours KB | exact KB |"
    )
    yield "|---|" + "--:|" * 10
    before: Row | None = None
    for r in rows:
        grown = before if before is not None and before.name.startswith("chain") else None
        cells = [f"{r.modules:,}", f"{r.operators:,}"]
        for rules, (seconds, _) in r.simple.items():
            growth = ""
            if grown is not None and r.name.startswith("chain"):
                times, size = seconds / grown.simple[rules][0], r.operators / grown.operators
                growth = f"{math.log(times) / math.log(size):.2f}"
            cells += [f"{1e3 * seconds:,.2f}", growth]
        if r.exact is None:
            cells.append("does not fit")
        else:
            cells.append(f"{1e3 * r.exact[0]:,.1f}" + ("" if r.exact[2] == "optimal" else " \\*"))
        cells += [f"{moved / 1024:,.0f}" for _, moved in r.simple.values()]
        cells.append("-" if r.exact is None else f"{r.exact[1] / 1024:,.0f}")
        yield f"| {r.name} | " + " | ".join(cells) + " |"
        before = r
    yield f"\n\\*: not proved least in {time_limit:g} seconds."


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("counts", nargs="*", type=int, default=list(COUNTS))
    parser.add_argument("--time-limit", type=float, default=20.0)
    parser.add_argument("--into", type=Path, metavar="PAGE")
    args = parser.parse_intermixed_args()
    began = time.perf_counter()
    networks = [*(chain(n) for n in args.counts), onchip.load("zoo:resnet1202").network]
    rows = []
    for network in networks:
        rows.append(measure(network, args.time_limit))
        print(rows[-1], file=sys.stderr, flush=True)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, one used; Python {platform.python_version()}"
    text = f"<!-- {machine} -->\n" + "\n".join(table(rows, args.time_limit)) + "\n"
    if args.into is None:
        print(text, f"{time.perf_counter() - began:.0f} s in all")
        return
    old = args.into.read_text()
    if BEGIN not in old or END not in old:
        raise SystemExit(f"{args.into}: has no {BEGIN} ... {END}")
    new = re.sub(f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n{text}{END}", old, flags=re.DOTALL)
    args.into.write_text(new)


if __name__ == "__main__":
    main()
