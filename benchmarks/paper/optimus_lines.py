"""Efficient-S by the line that it makes of a network: as listed, breadth first, depth first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fusion_algorithms import depth_first
from optimus_data import Data, head, mega
from optimus_schemes import NETWORKS, PAPER, WORD, Bench, Row

from onchip.machines.chip import load_chip
from onchip.network import bits
from onchip.planners.fusion.reproduced.costs import Published
from onchip.planners.fusion.reproduced.dag import Dag
from onchip.planners.fusion.reproduced.spaces import barriers, best_intervals
from onchip.planners.fusion.reproduced.tiles import Tiled
from onchip.planners.fusion.strategy import Priced

__all__ = ["LINES", "LINE_PARTS", "adjacent", "breadth_first", "inside", "lines"]

COSTS = ("rows", "tiles", "ours")
UNPROVED = "nasnetalarge"
"""The network whose exact search ends by the clock; its best partition is figure 14's."""


def breadth_first(dag: Dag) -> list[int]:
    """Operators by the length of the longest way to them: branches lie side by side."""
    depth: dict[int, int] = {}
    for v in dag.order:
        depth[v] = max((depth[p] + 1 for p in bits(dag.predecessors[v])), default=0)
    return sorted(depth, key=lambda v: (depth[v], v))


LINES: dict[str, Callable[[Dag], Sequence[int]]] = {
    "as listed": lambda dag: dag.order,
    "breadth first": breadth_first,
    "depth first": depth_first,
}


def inside(dag: Dag) -> list[tuple[int, int]]:
    """Edges inside a branch: neither end is a barrier, as of {Conv1, Conv4} in figure 5."""
    alone = barriers(dag)
    free = [v for v in range(len(dag)) if not alone >> v & 1]
    return [(v, y) for v in free for y in bits(dag.successors[v] & ~alone)]


def adjacent(dag: Dag, line: Sequence[int]) -> int:
    """How many of them are neighbours on a line, and so a group of two in its space."""
    place = {v: at for at, v in enumerate(line)}
    return sum(place[y] == place[v] + 1 for v, y in inside(dag))


def by_line(bench: Bench, name: str) -> Iterator[Row]:
    """Figures 5, 14 and 15: Efficient-S's words by its line, and the exact partition's."""
    problem = bench.problem(name, load_chip("optimus"), PAPER)
    dag, price = Dag.of(problem.network), Priced(problem)
    if not barriers(dag):  # a chain is its own line
        return
    costs = dict(zip(COSTS, (Published(problem), Tiled(problem), price), strict=True))
    exact = None if name == UNPROVED else bench.scheme(problem, name, "exact").dram_bytes // WORD
    for title, order in LINES.items():
        line = order(dag)
        words = {how: best_intervals((line,), cost, price)[1] // WORD for how, cost in costs.items()}
        yield {
            "line": title,
            "inside": len(inside(dag)),
            "adjacent": adjacent(dag, line),
            "exact": exact,
        } | words


def lines(d: Data) -> Iterator[str]:
    """A row for each network and line."""
    yield from head(
        "network",
        "line",
        "edges inside branches that are adjacent on it",
        "Efficient-S, rows",
        "tiles",
        "its space, our cost",
        "saved by exact: rows",
        "tiles",
        "our cost",
        left=2,
    )
    for r in d.all("cause-line"):
        words = [r[how] for how in COSTS]
        exact = r["exact"]
        saved = ["-" if exact is None else f"{100 * (1 - exact / w):.1f} %" for w in words]
        yield (
            " | ".join(
                (
                    f"| {NETWORKS[r['network']]}",
                    r["line"],
                    f"{r['adjacent']} of {r['inside']}",
                    *map(mega, words),
                    *saved,
                )
            )
            + " |"
        )


LINE_PARTS: dict[str, Callable[[Bench, str], Iterator[Row]]] = {"cause-line": by_line}
