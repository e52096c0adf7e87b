"""Orders of rows of random small int8 networks against all orders, and their plans run byte by byte.

`python benchmarks/rows_oracle.py --count N --first SEED` makes networks of 3 to 7 layers of all kinds
(`tests/oracles/row_cases.py`), half of them with the image held. Of each it compares the peak found with the
least over all orders (`tests/oracles/rows.py`), with rows beside one another and with shared bytes, gives
every row an address, runs the plan in one array of exactly its bytes, element by element where rows share
bytes, and compares the outputs with those of the whole network. `--keep FILE` adds a line for every network
as it is done, and goes on where it stopped; `--into docs/segments-rows.md` puts the table into the page. The
exit code is 1 for a false claim or a byte that differs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from page_marks import write

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from onchip.microcontroller.int8.reference import run
from onchip.microcontroller.rows import search
from onchip.microcontroller.rows.addresses import fault, place
from onchip.microcontroller.rows.execute import execute
from onchip.microcontroller.rows.law import most_alive
from onchip.microcontroller.rows.of_model import row_model
from oracles.row_cases import random_model
from oracles.rows import TooManyStates, least_peak

COUNTED = {
    "orders": "orders",
    "optimal": "called optimal",
    "compared": "compared with all orders (the others have more than {most:,} states)",
    "least": "of these, least",
    "quick": "of these, least without the complete search",
    "bound": "of these, the bound by cuts is the least",
    "packed": "plans packed in their peak",
    "bytes": "output bytes compared",
    "different": "different",
}
"""What is counted, and how the table says it."""


@dataclass(frozen=True)
class Network:
    """A random network: its kinds of layers, what was counted, and what was wrong."""

    seed: int
    kinds: dict[str, int]
    found: dict[str, int]
    wrong: list[str]


def tried(seed: int, most: int) -> Network:
    """Return what became of the network of a seed."""
    model = random_model(seed)
    rows = row_model(model)
    rows = replace(rows, graph=rows.graph.held() if seed % 2 == 1 else rows.graph.by_rows())
    found: Counter[str] = Counter()
    wrong: list[str] = []
    for share in (False, True):
        wrong += [f"{seed}, share {share}: {what}" for what in _case(rows, seed, share, most, found)]
    return Network(seed, dict(Counter(type(layer).__name__ for layer in model.layers)), dict(found), wrong)


class Campaign:
    """Networks of seeds, those that are kept among them; `false` are the claims that do not hold."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked = asked
        self.false: list[str] = []

    def networks(self) -> Iterator[Network]:
        keep: Path | None = self.asked.keep
        kept = keep.read_text().splitlines() if keep is not None and keep.exists() else []
        known = {network.seed: network for network in (Network(**json.loads(line)) for line in kept)}
        for seed in range(self.asked.first, self.asked.first + self.asked.count):
            if seed in known:
                yield known[seed]
                continue
            made = tried(seed, self.asked.most)
            if keep is not None:
                with keep.open("a") as file:
                    file.write(json.dumps(vars(made)) + "\n")
            yield made

    def lines(self) -> Iterator[str]:
        kinds: Counter[str] = Counter()
        found: Counter[str] = Counter()
        for network in self.networks():
            kinds.update(network.kinds)
            found.update(network.found)
            self.false += network.wrong
        print(", ".join(f"{kind} {count:,}" for kind, count in kinds.most_common()), file=sys.stderr)
        yield f"| of {self.asked.count:,} networks (`--count {self.asked.count}`) | |"
        yield "|---|--:|"
        for what, said in COUNTED.items():
            yield f"| {said.format(most=self.asked.most)} | {found[what]:,} |"
        yield f"| claims that do not hold | {len(self.false):,} |"


def main() -> int:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    given.add_argument("--count", type=int, default=2000)
    given.add_argument("--first", type=int, default=0)
    given.add_argument("--most", type=int, default=100_000, help="states that the oracle looks at")
    given.add_argument("--keep", type=Path, help="a file of what was tried before")
    given.add_argument("--into", type=Path)
    campaign = Campaign(given.parse_args())
    write({"all orders": campaign.lines}, campaign.asked.into)
    for line in campaign.false[:20]:
        print(line, file=sys.stderr)
    return 1 if campaign.false else 0


def _case(rows, seed: int, share: bool, most: int, found: Counter[str]) -> list[str]:  # type: ignore[no-untyped-def]
    wrong = []
    graph = rows.graph
    order = search(graph, share=share)
    found["orders"] += 1
    found["optimal"] += order.optimal
    quick = search(graph, share=share, most_states=0)
    if most_alive(graph, order.schedule, share=share) != order.peak:
        wrong.append("the peak is not the order's")
    try:
        least = least_peak(graph, share=share, most=most)
    except TooManyStates:
        pass
    else:
        found["compared"] += 1
        found["least"] += order.peak == least
        found["quick"] += quick.peak == least
        found["bound"] += quick.bound == least
        if order.peak < least or order.bound > least or quick.bound > least:
            wrong.append(f"peak {order.peak}, bound {order.bound}, least {least}")
        if order.optimal and order.peak != least:
            wrong.append(f"called optimal at {order.peak}, least {least}")
    placed = place(graph, order.schedule, share=share, pieces=not share, outputs=rows.outputs)
    if problem := fault(graph, placed, share=share, pieces=not share):
        wrong.append(problem)
    found["packed"] += placed.bytes == order.peak
    random = np.random.default_rng(seed)
    images = [
        random.integers(-128, 128, rows.model.tensors[t].shape).astype(np.int8) for t in rows.model.inputs
    ]
    for whole, made in zip(run(rows.model, images), execute(rows, placed, images), strict=True):
        different = int((whole.reshape(-1) != made.reshape(-1)).sum())
        found["bytes"] += whole.size
        found["different"] += different
        if different:
            wrong.append(f"{different} bytes differ")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
