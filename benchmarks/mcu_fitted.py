"""The numbers of `onchip.microcontroller.result.reckoned`: fitted to counts on emulated cores.

    .venv/bin/python benchmarks/mcu_fitted.py [--cores cortex-m4,...] [--into docs/mcu-cores.md] MODEL ...

Every network is counted layer by layer on each core, every output byte compared, and one network made here,
which has the layers without weights; for each kind of layer the instructions a product, a byte made and so on
are those of least squares of the shares by which layers are off, none negative. Prints the table of the
source, and beside it how far whole networks are off. `--counts` keeps the counts of cores in a file, and
takes from it those of cores that are not asked for. The exit code says whether the source has these numbers
(to one in a hundred) and the errors are within its own.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from mcu_networks import BOARD, layer_by_layer, measured
from page_marks import write

from onchip.machines.cores import CORES, Core, core_names
from onchip.microcontroller.int8.model import Int8Model, Layer
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.load import int8_model
from onchip.microcontroller.made.wide import WideBuilder
from onchip.microcontroller.result.reckoned import ERROR, FITTED, features, kind_of

Fitted = dict[str, tuple[float, ...]]


class Fits:
    """The counts of every core, and what is fitted to them."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.good = True
        self.models = [int8_model(path) for path in asked.models]
        self.counts: dict[str, dict[str, dict[str, int]]] = {}
        """The instructions of every layer, by core and network."""
        if asked.counts and asked.counts.exists():
            self.counts = json.loads(asked.counts.read_text())
        for core in filter(None, asked.cores.split(",")):
            for model in (*self.models, every_kind()):
                if model.name in self.counts.get(core, {}):
                    continue
                made = measured(layer_by_layer(model), model, replace(BOARD, core=core), 1)
                if not made.match:
                    sys.exit(f"{core}: {model.name}: the outputs differ")
                layers = {layer.name: made.by_layer[layer.name].instructions for layer in model.layers}
                self.counts.setdefault(core, {})[model.name] = layers | {"": made.total.instructions}
                if asked.counts:
                    asked.counts.write_text(json.dumps(self.counts))
                print(f"{core}: {model.name}", file=sys.stderr, flush=True)
        self.cores: list[Core] = [
            core for core in core_names() if every_kind().name in self.counts.get(core, {})
        ]
        self.fitted = {core: self.fit(core) for core in self.cores}

    def fit(self, core: Core) -> Fitted:
        rows: dict[str, list[tuple[tuple[int, ...], int]]] = defaultdict(list)
        for model in (*self.models, every_kind()):
            for layer in model.layers if model.name in self.counts[core] else ():
                counted = self.counts[core][model.name][layer.name]
                if counted:
                    rows[kind_of(layer)].append((features(layer), counted))
        return {kind: _least_squares(found) for kind, found in rows.items()}

    def table(self) -> Iterator[str]:
        yield "```python"
        for core, fitted in self.fitted.items():
            yield f'"{core}": {{'
            yield from (f'    "{kind}": {numbers},' for kind, numbers in fitted.items())
            yield "},"
            self.good &= _same(fitted, dict(FITTED.get(core, {})))
        yield "```"

    def networks(self) -> Iterator[str]:
        yield f"| network | {' | '.join(CORES[core].title for core in self.cores)} |"
        yield f"|---|{'--:|' * len(self.cores)}"
        worst = dict.fromkeys(self.cores, 0.0)
        for model in self.models:
            cells = []
            for core in self.cores:
                counted = self.counts[core].get(model.name, {}).get("")
                if not counted:
                    cells.append("")
                    continue
                off = _reckoned(model, self.fitted[core]) / counted - 1
                worst[core] = max(worst[core], abs(off))
                cells.append(f"{counted:,} ({100 * off:+.1f} %)")
            yield f"| {model.name} | {' | '.join(cells)} |"
        yield f"| off by at most | {' | '.join(f'{100 * worst[core]:.1f} %' for core in self.cores)} |"
        self.good &= all(worst[core] <= ERROR for core in self.cores)


@cache
def every_kind() -> Int8Model:
    """A network of the layers without weights, some of each in two sizes."""
    b = WideBuilder()
    x, z = b.input((1, 16, 16, 24)), b.constant((1, 16, 16, 24))
    y = b.extremum(b.mul(b.add(x, z), b.logistic(x)), x, greatest=True)
    y = b.max_pool(b.pad(y, (1, 1, 1, 1)), 3, 2)
    y = b.max_pool(b.prelu(y), 2, 1)
    y = b.average_pool(b.concat(y, b.hard_swish(y)), 3, 1)
    wide = b.softmax(b.reshape(b.average_pool(y, 2, 2), (1, 192)))
    return model_of(b.file(b.softmax(b.fully_connected(wide, 12))), name="every kind", where="every kind")


def _least_squares(rows: list[tuple[tuple[int, ...], int]]) -> tuple[float, ...]:
    """The numbers, none negative, by which the shares that layers are off have the least squares."""
    counted = np.array([count for _, count in rows], float)
    shares = np.array([each for each, _ in rows], float) / counted[:, None]
    weight = np.sqrt(counted / counted.sum())  # large layers decide what a network takes
    best, error = np.zeros(shares.shape[1]), np.inf
    for taken in range(1, 1 << shares.shape[1]):  # at most six numbers: every choice of those above zero
        some = [i for i in range(shares.shape[1]) if taken >> i & 1]
        found = np.linalg.lstsq(shares[:, some] * weight[:, None], weight, rcond=None)[0]
        off = float((((shares[:, some] @ found - 1) * weight) ** 2).sum())
        if (found >= 0).all() and off < error - 1e-12:
            best, error = np.zeros(shares.shape[1]), off
            best[some] = found
    return tuple(float(f"{value:.4g}") for value in best)


def _reckoned(model: Int8Model, fitted: Fitted) -> float:
    return sum(_of_layer(layer, fitted) for layer in model.layers)


def _of_layer(layer: Layer, fitted: Fitted) -> float:
    return sum(n * times for n, times in zip(fitted[kind_of(layer)], features(layer), strict=True))


def _same(one: Fitted, other: Fitted) -> bool:
    return one.keys() == other.keys() and all(
        np.allclose(one[kind], other[kind], rtol=0.01, atol=0.01) for kind in one
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+")
    parser.add_argument("--cores", default=",".join(core_names()))
    parser.add_argument("--counts", type=Path, help="a file that keeps the counts")
    parser.add_argument("--into", type=Path, help="a page that has the marks of the networks")
    asked = parser.parse_args()
    fits = Fits(asked)
    write({"fitted": fits.table}, None)
    write({"reckoned": fits.networks}, asked.into)
    return 0 if fits.good else 1


if __name__ == "__main__":
    sys.exit(main())
