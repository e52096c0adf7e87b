"""Orders of rows of random small int8 networks against all orders, and their plans run byte by byte.

`python benchmarks/rows_oracle.py --count N --first SEED` makes networks of 3 to 7 layers of all kinds
(`tests/oracles/row_cases.py`), half of them with the image held. Of each it compares the peak found with the
least over all orders (`tests/oracles/rows.py`), with rows beside one another and with shared bytes, gives
every row an address, runs the plan in one array of exactly its bytes, element by element where rows share
bytes, and compares the outputs with those of the whole network. The exit code is 1 for a false claim or a
byte that differs.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from onchip.microcontroller.int8.reference import run
from onchip.microcontroller.rows import search
from onchip.microcontroller.rows.addresses import fault, place
from onchip.microcontroller.rows.execute import execute
from onchip.microcontroller.rows.law import most_alive
from onchip.microcontroller.rows.of_model import row_model
from oracles.row_cases import random_model
from oracles.rows import TooManyStates, least_peak


def main() -> int:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    given.add_argument("--count", type=int, default=2000)
    given.add_argument("--first", type=int, default=0)
    given.add_argument("--most", type=int, default=100_000, help="states that the oracle looks at")
    asked = given.parse_args()
    kinds: Counter[str] = Counter()
    found: Counter[str] = Counter()
    false: list[str] = []
    for seed in range(asked.first, asked.first + asked.count):
        model = random_model(seed)
        kinds.update(type(layer).__name__ for layer in model.layers)
        rows = row_model(model)
        held = seed % 2 == 1
        rows = replace(rows, graph=rows.graph.held() if held else rows.graph.by_rows())
        for share in (False, True):
            false += [
                f"{seed}, share {share}: {what}" for what in _case(rows, seed, share, asked.most, found)
            ]
    print(f"{asked.count} networks, first {asked.first}; layers:")
    print("  " + ", ".join(f"{kind} {count:,}" for kind, count in kinds.most_common()))
    for what, count in sorted(found.items()):
        print(f"{what}: {count:,}")
    print(f"false claims: {len(false)}")
    for line in false[:20]:
        print("  " + line)
    return 1 if false else 0


def _case(rows, seed: int, share: bool, most: int, found: Counter[str]) -> list[str]:  # type: ignore[no-untyped-def]
    wrong = []
    graph = rows.graph
    order = search(graph, share=share)
    found["orders"] += 1
    found["orders called optimal"] += order.optimal
    quick = search(graph, share=share, most_states=0)
    if most_alive(graph, order.schedule, share=share) != order.peak:
        wrong.append("the peak is not the order's")
    try:
        least = least_peak(graph, share=share, most=most)
    except TooManyStates:
        found["orders that the oracle has not tried"] += 1
    else:
        found["orders compared with all"] += 1
        found["of these, least"] += order.peak == least
        found["of these, least without the complete search"] += quick.peak == least
        found["of these, the bound by cuts is the least"] += quick.bound == least
        if order.peak < least or order.bound > least or quick.bound > least:
            wrong.append(f"peak {order.peak}, bound {order.bound}, least {least}")
        if order.optimal and order.peak != least:
            wrong.append(f"called optimal at {order.peak}, least {least}")
    placed = place(graph, order.schedule, share=share, pieces=not share, outputs=rows.outputs)
    if problem := fault(graph, placed, share=share, pieces=not share):
        wrong.append(problem)
    found["plans packed in their peak"] += placed.bytes == order.peak
    random = np.random.default_rng(seed)
    images = [
        random.integers(-128, 128, rows.model.tensors[t].shape).astype(np.int8) for t in rows.model.inputs
    ]
    for whole, made in zip(run(rows.model, images), execute(rows, placed, images), strict=True):
        different = int((whole.reshape(-1) != made.reshape(-1)).sum())
        found["output bytes compared"] += whole.size
        found["output bytes different"] += different
        if different:
            wrong.append(f"{different} bytes differ")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
