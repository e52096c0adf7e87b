"""The numbers of `onchip.microcontroller.result.reckoned`: fitted to counts on emulated cores.

    .venv/bin/python benchmarks/mcu_fitted.py --folder FOLDER @benchmarks/mcu_fitted_files.txt
        [--cores cortex-m4,...] [--counts FILE.json] [--into docs/mcu-cores.md]

The files are named one by one, or by a list of their paths in FOLDER, which is that of `mcu_files`. Every
network is counted layer by layer on each core, every output byte compared, and networks made here, which have
the layers that few files have; for each kind of layer the instructions a product, a byte made and so on are
those of least squares of the shares by which layers are off, none negative. Prints the table of the source,
and beside it how far whole networks are off: by numbers fitted to all networks, and (*unseen*) by numbers
fitted to all others; files of one operator are fitted to and not shown. `--counts` keeps the counts of cores
in a file, and takes from it those of cores that are not asked for. The exit code says whether the source has
these numbers (to one in a hundred) and the errors of unseen networks are within its own.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from mcu_networks import layer_by_layer
from page_marks import write

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from microcontroller.sixteen_networks import Net
from onchip.machines.board import MOST_BYTES, Board
from onchip.machines.cores import CORES, Core, core_names
from onchip.microcontroller.emulator import build, emulate
from onchip.microcontroller.emulator.verify import inputs_of, program_files, reckoned_seconds
from onchip.microcontroller.int8.model import Int8Model, Layer
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.int8.reference import Session
from onchip.microcontroller.load import int8_model
from onchip.microcontroller.made import Map
from onchip.microcontroller.made.flatbuffer import FileOperator
from onchip.microcontroller.made.wide import WideBuilder
from onchip.microcontroller.network import network_of, states_of
from onchip.microcontroller.project import sources_of
from onchip.microcontroller.result.reckoned import FITTED, UNSEEN, features, kind_of
from onchip.microcontroller.result.reckoned_sixteen import kind_of_sixteen
from onchip.microcontroller.result.row_choice import RowPlans, planned_by_method
from onchip.microcontroller.segments import SegmentOptions
from onchip.plans import Plan

Array = np.ndarray[Any, Any]
Fitted = dict[str, tuple[float, ...]]
STACK = 8192


class Fits:
    """The counts of every core, and what is fitted to them."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.good = True
        self.models = [int8_model(asked.folder / path) for path in asked.models]
        self.all = [*self.models, every_kind(), few_have(), of_sixteen(16, 20), of_sixteen(12, 36)]
        self.counts: dict[str, dict[str, dict[str, int]]] = {}
        """The instructions of every layer, by core and network."""
        if asked.counts and asked.counts.exists():
            self.counts = json.loads(asked.counts.read_text())
        for model in self.all:
            for core in filter(None, asked.cores.split(",")):
                if model.sha256 in self.counts.get(core, {}):
                    continue
                self.counts.setdefault(core, {})[model.sha256] = layers_counted(model, core)
                if asked.counts:
                    asked.counts.write_text(json.dumps(self.counts))
                print(f"{core}: {model.name}", file=sys.stderr, flush=True)
        self.cores: list[Core] = [
            core for core in core_names() if every_kind().sha256 in self.counts.get(core, {})
        ]
        self.fitted = {core: self.fit(core) for core in self.cores}

    def fit(self, core: Core, without: Int8Model | None = None) -> Fitted:
        """The numbers of least squares, of all networks but one."""
        rows: dict[str, list[tuple[tuple[int, ...], int]]] = defaultdict(list)
        for model in self.all:
            for layer in model.layers if model is not without and model.sha256 in self.counts[core] else ():
                counted = self.counts[core][model.sha256].get(layer.name, 0)
                if counted:
                    rows[kind_of(layer)].append((features(layer), counted))
        return {kind: _least_squares(found) for kind, found in sorted(rows.items())}

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
        off: dict[str, list[float]] = {core: [] for core in self.cores}
        for model in self.models:
            if len(model.layers) == 1:
                continue
            cells = []
            for core in self.cores:
                layers = self.counts[core].get(model.sha256)
                fitted = self.fit(core, without=model)
                if layers is None or not {kind_of(layer) for layer in model.layers} <= fitted.keys():
                    cells.append("")
                    continue
                counted = sum(layers.values())
                seen, unseen = (_reckoned(model, by) / counted - 1 for by in (self.fitted[core], fitted))
                off[core].append(abs(unseen))
                cells.append(f"{counted:,} ({100 * seen:+.0f}, {100 * unseen:+.0f} %)")
            yield f"| {model.name} | {' | '.join(cells)} |"
        for what, of in (("half of them", np.median), ("nine in ten", _ninth), ("all", max)):
            shares = (f"{100 * of(off[core]):.0f} %" if off[core] else "" for core in self.cores)
            yield f"| unseen, {what} within | {' | '.join(shares)} |"
        self.good &= all(_ninth(off[core]) <= UNSEEN[core] + 0.005 for core in self.cores)

    def sixteen(self) -> Iterator[str]:
        """How far the worst layer of each kind of 16 bits is off, by numbers fitted to all other networks."""
        yield f"| kind of layer | layers | {' | '.join(CORES[core].title for core in self.cores)} |"
        yield f"|---|--:|{'--:|' * len(self.cores)}"
        off: dict[str, dict[Core, list[float]]] = defaultdict(lambda: defaultdict(list))
        for core in self.cores:
            for model in self.all:
                layers = [layer for layer in model.layers if kind_of_sixteen(layer)]
                fitted = self.fit(core, without=model) if layers else {}
                for layer in layers:
                    counted = self.counts[core].get(model.sha256, {}).get(layer.name, 0)
                    if counted and kind_of(layer) in fitted:
                        off[kind_of(layer)][core].append(abs(_of_layer(layer, fitted) / counted - 1))
        for kind, by_core in sorted(off.items()):
            cells = (f"{100 * max(by_core[core]):.0f} %" if by_core[core] else "" for core in self.cores)
            yield f"| {kind} | {max(map(len, by_core.values()))} | {' | '.join(cells)} |"
        for what, of in (("half of all layers", np.median), ("nine in ten", _ninth)):
            every = ([share for by_core in off.values() for share in by_core[core]] for core in self.cores)
            yield f"| {what} within | | {' | '.join(f'{100 * of(shares):.0f} %' for shares in every)} |"


def _ninth(shares: list[float]) -> float:
    return float(np.quantile(shares, 0.9, method="higher"))


def layers_counted(model: Int8Model, core: Core) -> dict[str, int]:
    """The instructions of every layer in one inference on the core, whose bytes must be right."""
    board = Board("bench", core, MOST_BYTES, MOST_BYTES)
    (x,) = inputs_of(model, 1)
    files = program_files(sources_of(alone(model), model, forms=board.core_type.forms), model, marks=True)
    with tempfile.TemporaryDirectory() as folder:
        image = build(files, board, Path(folder), stack_bytes=STACK, defines=("RUNS=1", "ONCHIP_MARKS"))
        ran = emulate(image, {"in": x.tobytes()}, outputs=("out",), seconds=reckoned_seconds(model, 1))
    if ran.files["out"] != Session(model).bytes_of(model, x):
        sys.exit(f"{core}: {model.name}: the outputs differ")
    return {layer.name: ran.by_mark[i].instructions for i, layer in enumerate(model.layers)}


def alone(model: Int8Model) -> Plan:
    """A plan of layers that sweep whole maps, as all do where nothing is asked for but room."""
    if len(model.inputs) == len(model.outputs) == 1 and not model.states:
        return layer_by_layer(model)
    options, states = SegmentOptions(method="chains"), states_of(model)
    return planned_by_method(model, network_of(model), MOST_BYTES, options, states, (), RowPlans()).plan


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


@cache
def few_have() -> Int8Model:
    """A network of layers that few files have, some of each in two sizes."""
    b = WideBuilder()
    x: Map = b.input((1, 12, 12, 16))
    first = b.depthwise(b.depthwise(b.input((1, 24, 24, 1)), 5, 2, multiplier=16), 3, multiplier=2)
    y = b.transpose_conv(b.transpose_conv(x, 24, 3, 2), 8, 4, 2, same=False)
    y = b.sub(b.tanh(y), b.constant(y.shape))
    y = b.transpose(b.average_pool(y, 2, 2), (0, 2, 1, 3))
    y = b.average_pool(y, 2, 2)
    low, sums = b.reduced("REDUCE_MIN", y, (1,)), b.reduced("SUM", y, (3,))
    flat = b.reshape(y, (1, 1, y.shape[1] * y.shape[2], 8))
    y = b.matmul(flat, b.tanh(flat), turned=(False, True))
    file = b.file(b.log_softmax(y), low, sums, first)
    return model_of(file, name="few have", where="few have")


@cache
def of_sixteen(size: int, channels: int) -> Int8Model:
    """A network of 16 bits, of layers that the public files of 16 bits have not."""
    n = Net(seed=1)
    x = n.pool("MAX_POOL_2D", n.input((1, size, size, channels), 3e-4), 3, 1)
    y = n.pair("MUL", n.single("LOGISTIC", x, 1 / 32768), n.single("TANH", x, 1 / 32768))
    y = n.pool("AVERAGE_POOL_2D", n.pair("MAXIMUM", x, n.to(y, "INT16", n.scale(x))), 2, 2)
    shares = n.single("SOFTMAX", y, 1 / 32768, "SoftmaxOptions", Beta=1.0)
    z = n.pair("SUB", n.depthwise(shares), n.constant((1, 1, 1, channels), 1e-4))
    less = n.to(z, "INT8", 256 * n.scale(z))
    wide = n.tensor(n.shape(less), 2.0**-16, zero=-32768)
    n.operators.append(FileOperator("SOFTMAX", (less,), (wide,), "SoftmaxOptions", {"Beta": 1.0}))
    z = n.conv(n.conv(y, channels // 2, 3), channels, 3, 2, bias="INT32")
    z = n.pair("ADD", z, n.single("LEAKY_RELU", z, n.scale(z), "LeakyReluOptions", Alpha=0.3))
    up = n.transpose_conv(n.to(z, "INT16", 1.1 * n.scale(z)), channels // 2, 3, 2)
    ends = n.fully_connected(n.fully_connected(z, 24), 30, "INT32")
    name = f"of sixteen, {size}x{size}x{channels}"
    return model_of(n.file(wide, up, ends), name=name, where=name)


def _least_squares(rows: list[tuple[tuple[int, ...], int]]) -> tuple[float, ...]:
    """The numbers, none negative, by which the shares that layers are off have the least squares."""
    counted = np.array([count for _, count in rows], float)
    weight = np.sqrt(counted / counted.sum())  # large layers decide what a network takes
    shares = np.array([each for each, _ in rows], float) / counted[:, None] * weight[:, None]
    sizes = np.maximum(np.linalg.norm(shares, axis=0), 1e-12)
    return tuple(float(f"{value:.4g}") for value in _none_negative(shares / sizes, weight) / sizes)


def _none_negative(terms: Array, wanted: Array) -> Array:
    """Least squares with no number below zero, by the active sets of Lawson and Hanson."""
    taken, best = np.zeros(terms.shape[1], bool), np.zeros(terms.shape[1])
    while not taken.all():
        gain = np.where(taken, -np.inf, terms.T @ (wanted - terms @ best))
        if gain.max() <= 1e-10:
            break
        taken[gain.argmax()] = True
        while True:
            found = np.zeros_like(best)
            found[taken] = np.linalg.lstsq(terms[:, taken], wanted, rcond=None)[0]
            below = taken & (found <= 0)
            if not below.any():
                break
            best += (best[below] / (best[below] - found[below])).min() * (found - best)
            taken &= best > 1e-12
        best = found
    return best


def _reckoned(model: Int8Model, fitted: Fitted) -> float:
    return sum(_of_layer(layer, fitted) for layer in model.layers)


def _of_layer(layer: Layer, fitted: Fitted) -> float:
    return sum(n * times for n, times in zip(fitted[kind_of(layer)], features(layer), strict=True))


def _same(one: Fitted, other: Fitted) -> bool:
    return one.keys() == other.keys() and all(
        len(one[kind]) == len(other[kind]) and np.allclose(one[kind], other[kind], rtol=0.01, atol=0.01)
        for kind in one
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        fromfile_prefix_chars="@",
    )
    parser.add_argument("models", nargs="+")
    parser.add_argument("--folder", type=Path, default=Path(), help="where the files are")
    parser.add_argument("--cores", default=",".join(core_names()))
    parser.add_argument("--counts", type=Path, help="a file that keeps the counts")
    parser.add_argument("--into", type=Path, help="a page that has the marks of the networks")
    asked = parser.parse_args()
    fits = Fits(asked)
    write({"fitted": fits.table}, None)
    write({"reckoned": fits.networks, "reckoned sixteen": fits.sixteen}, asked.into)
    return 0 if fits.good else 1


if __name__ == "__main__":
    sys.exit(main())
