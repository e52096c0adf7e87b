"""Latencies of whole networks by onchip, ZigZag, Stream and SCALE-Sim on one chip: docs/peers.md.

    python benchmarks/peers/times.py [MODEL ...] [--zigzag PYTHON] [--scalesim PYTHON] [--kib N ...]
                                     [--limit SECONDS] [--whole SECONDS] [--cpu SECONDS] [--largest CYCLES]
                                     [--records FILE] [--into PAGE]

MODEL is what `onchip plan` takes. Each PYTHON is an interpreter that has the packages zigzag-dse and
stream-dse (and six, which they need and do not ask for), or scalesim (and numpy 2.2: with 2.4 it ends in an
error).
The chip is `RATES`: an array of 32 x 32 multipliers with outputs along both sides, at 1 GHz; a scratchpad of
N KiB; one channel of 16 bytes a cycle; nothing else takes time. The peers plan one layer at a time, so onchip
plans the same layers alone (in `--limit` seconds each), and then the whole network (in `--whole`). A peer
runs within `--cpu` seconds a network; SCALE-Sim, which simulates every cycle, leaves out layers of more than
`--largest` cycles. `--records` keeps all answers, and takes from there what was asked before; with `--cpu 0`
no peer runs. `--into` puts the tables between their marks on PAGE.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

sys.path += [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]
import time_chains
from page_marks import put_into
from time_layers import Layer, layers_of
from time_nests import figures, nest_of, own, priced
from time_peers import Answer, Peer, Records

from onchip.machines.tile_rates import ArraySide, Channel, TileRates
from onchip.network import Network
from onchip.readers import ReadOptions, load

SIDE, BANDWIDTH, KIB = 32, 16, 1024
GIGA = 10**9
RATES = TileRates(
    GIGA, (Channel(BANDWIDTH * GIGA),), 0, (ArraySide("out", SIDE), ArraySide("out", SIDE))
)  # fmt: skip
SUMS = replace(RATES, sides=(ArraySide("sum", SIDE), ArraySide("out", SIDE)))
"""The same chip with sums along one side, as an array that holds weights in place has them."""

HINTS = {"D1": ["K", "G"], "D2": ["OY", "OX"]}
"""ZigZag's loops on the sides of `RATES`: channels of outputs on one, pixels on the other."""

MODELS = ("zoo:resnet50", "zoo:mobilenet_v2")
TABLE, WHY, FUSED = "times", "times: why", "times: fused"

Many = Mapping[Layer, int]


@dataclass(frozen=True)
class Row:
    """A network in a scratchpad, and what everybody says of its layers; onchip's figure of it as a whole."""

    name: str
    room: int
    layers: Counter[Layer]
    zigzag: dict[Layer, Answer]
    scalesim: dict[Layer, Answer]
    alone: dict[Layer, Answer]
    whole: Answer
    work: float


def summed(layers: Many, figure: Callable[[Layer], float]) -> float:
    """Return the sum of a figure over all layers, equal ones each."""
    return sum(count * figure(layer) for layer, count in layers.items())


def of(answers: Mapping[Layer, Answer], name: str) -> Callable[[Layer], float]:
    """Return a figure of an answer by layer."""
    return lambda layer: float(answers[layer][name])


def cycles_on(layer: Layer, rows: int = SIDE, columns: int = SIDE) -> int:
    """Return the cycles of an array with pixels along its rows and channels of outputs along its columns, or
    groups where there are several: these fill one side alone. Edges that are not filled count.
    """
    pixels = layer.rows.outputs * layer.columns.outputs
    sums = layer.inputs * layer.rows.taps * layer.columns.taps
    folds = layer.groups * -(-pixels // rows) * -(-layer.outputs // columns)
    return folds * sums


def made(asked: argparse.Namespace, records: Records, model: str, room: int) -> Row:
    """Return the row of one network."""
    network = load(model, ReadOptions(dtype="int8", attention="parts")).network
    try:
        layers = layers_of(network)
    except ValueError as no:
        raise SystemExit(f"{model}: {no}") from None
    zigzag = Peer("ZigZag", "zigzag_layers.py", asked.zigzag, asked.cpu, records)
    scalesim = Peer("SCALE-Sim", "scalesim_layers.py", asked.scalesim, asked.cpu, records)
    small = [
        layer for layer in sorted(layers, key=cycles_on) if cycles_on(layer) / layer.groups <= asked.largest
    ]
    return Row(
        model.removeprefix("zoo:").rpartition("/")[2].partition(".")[0],
        room,
        layers,
        zigzag.answers(layers, zigzag_asks(room, HINTS)),
        scalesim.answers(small, scalesim_asks(room // KIB, "os")),
        {layer: own(layer, RATES, room, asked.limit, records) for layer in layers},
        whole(network, model, room, asked.whole, records),
        max(sum(op.work for op in network.operators) / SIDE**2, crossing(network) / BANDWIDTH) / GIGA * 1e3,
    )


def zigzag_asks(room: int, hints: Mapping[str, list[str]]) -> Answer:
    """Return what ZigZag is asked beside layers: its effort is the default, one spatial mapping a layer."""
    chip = {"bytes": room, "bandwidth": BANDWIDTH, "array": [SIDE, SIDE], "hints": hints}
    return {**chip, "lpf": 6, "mappings": 1}


def scalesim_asks(kib: int, dataflow: str) -> Answer:
    """Return what SCALE-Sim is asked beside layers: a third of the scratchpad for each operand."""
    parts = [kib - 2 * (kib // 3), kib // 3, kib // 3]
    return {"kib": parts, "bandwidth": BANDWIDTH, "array": [SIDE, SIDE], "dataflow": dataflow}


def whole(network: Network, model: str, room: int, limit: float, records: Records) -> Answer:
    """Return onchip's figures of the network as it plans it by itself."""
    asked = {
        "peer": "onchip",
        "network": Path(model).name,
        "bytes": room,
        "limit": limit,
        "rates": str(RATES),
    }
    known = records.get(asked)
    return known or records.put(asked, figures(network, RATES, room, limit))


def crossing(network: Network) -> int:
    """Return the bytes that any plan moves: graph inputs, weights and graph outputs, once each."""
    tensors = {t.id for t in network.tensors if t.kind == "input"} | set(network.outputs)
    weights = sum(op.weight_bytes for op in network.operators)
    return weights + sum(network.tensors[tensor].bytes for tensor in tensors)


# -- the tables ----------------------------------------------------------------------------------------------


def table(rows: list[Row]) -> Iterator[str]:
    """Yield the lines of the main table."""
    yield (
        "| network | KiB | layers | ZigZag | its array alone | SCALE-Sim | its array alone"
        " | ours, layer by layer | bound of that | ours, whole | its bound | work"
        " | CPU s: ZigZag | SCALE-Sim | ours, layers | whole |"
    )
    yield "|---|" + "--:|" * 15
    for row in rows:
        layers = row.layers
        whole_ps, bound = row.whole["picoseconds"], row.whole["bound"]
        cells = [row.name, f"{row.room // KIB:,}", f"{layers.total()} ({len(layers)})"]
        cells += [ms(layers, row.zigzag, "cycles"), ms(layers, row.zigzag, "array_cycles")]
        cells += [ms(layers, row.scalesim, "with_prefetch"), ms(layers, row.scalesim, "array_cycles")]
        cells += [ms(layers, row.alone, "picoseconds"), ms(layers, row.alone, "bound")]
        cells += [f"{whole_ps / 1e9:,.3f}", f"{bound / 1e9:,.3f}", f"{row.work:,.3f}"]
        cells += [seconds(answers) for answers in (row.zigzag, row.scalesim, row.alone)]
        cells.append(f"{row.whole['seconds']:.0f}")
        yield f"| {' | '.join(cells)} |"


def ms(layers: Many, answers: Mapping[Layer, Answer], name: str) -> str:
    """Return the sum of a figure, cycles or picoseconds, in ms; how many layers there are if not all."""
    known = {layer: count for layer, count in layers.items() if layer in answers}
    if not known:
        return ""
    if len(known) < len(layers):
        return f"{len(known)} of {len(layers)}"
    per_ms = 1e9 if name in ("picoseconds", "bound") else GIGA / 1e3
    return f"{summed(known, of(answers, name)) / per_ms:,.3f}"


def seconds(answers: Mapping[Layer, Answer]) -> str:
    """Return the CPU seconds of different layers together."""
    return f"{sum(answer['seconds'] for answer in answers.values()):.0f}" if answers else ""


def why(rows: list[Row], changed: Changed) -> Iterator[str]:
    """Yield the lines of the table of reasons."""
    yield "| network, KiB | what | layers | theirs, ms | ours, ms |"
    yield "|---|---|--:|--:|--:|"
    for row in rows:
        yield from (f"| {row.name}, {row.room // KIB:,} | {line} |" for line in reasons(row, changed))


@dataclass(frozen=True)
class Changed:
    """Runs with one thing changed."""

    zigzag: Callable[[Row, list[Layer], Answer], dict[Layer, Answer]]
    scalesim: Callable[[Row, list[Layer], Answer], dict[Layer, Answer]]
    ours: Callable[[Row, list[Layer], TileRates], dict[Layer, Answer]]


def reasons(row: Row, changed: Changed) -> Iterator[str]:
    """Yield what differs, each with the figures of the layers that there are."""

    def line(what: str, layers: Many, theirs: float | None, ours: float | None) -> str:
        cells = ["" if n is None else f"{n:,.3f}" for n in (theirs, ours)]
        return f"{what} | {sum(layers.values())} | {cells[0]} | {cells[1]}"

    def cycles(layers: Many, answers: Mapping[Layer, Answer], name: str) -> float:
        return summed(layers, of(answers, name)) / 1e6

    def taken(layers: Many) -> float:
        return summed(layers, of(row.alone, "picoseconds")) / 1e9

    every = {layer: n for layer, n in row.layers.items() if layer in row.zigzag}
    if every:
        yield line("ZigZag, as in the table", every, cycles(every, row.zigzag, "cycles"), taken(every))
        yield line("of it: all multipliers in every cycle", every, cycles(every, row.zigzag, "compute"), None)
        edges = cycles(every, row.zigzag, "array_cycles") - cycles(every, row.zigzag, "compute")
        yield line("of it: sides that are not filled", every, edges, None)
        yield line("of it: stalls", every, cycles(every, row.zigzag, "stall"), None)
        yield line("of it: before the first step", every, cycles(every, row.zigzag, "loading"), None)
        yield line("of it: behind the last step", every, cycles(every, row.zigzag, "storing"), None)
        here = under_our_law(row)
        some = {layer: n for layer, n in every.items() if layer in here}
        yield line("its mappings by its own law", some, cycles(some, row.zigzag, "cycles"), taken(some))
        yield line(
            "its mappings under our law, with the best copies and sides",
            some,
            summed(some, lambda layer: here[layer]) / 1e9,
            taken(some),
        )
        beaten = {layer: n for layer, n in some.items() if here[layer] < row.alone[layer]["picoseconds"]}
        yield line(
            "those of them that are faster than ours",
            beaten,
            summed(beaten, lambda layer: here[layer]) / 1e9,
            taken(beaten),
        )
        deep = {layer: n for layer, n in every.items() if layer.groups > 1 and layer.inputs == 1}
        if deep:
            yield line("depthwise layers: ZigZag", deep, cycles(deep, row.zigzag, "cycles"), taken(deep))
            flat = changed.zigzag(row, list(deep), zigzag_asks(row.room, {"D1": ["G"], "D2": ["K"]}))
            if len(flat) == len(deep):
                yield line(
                    "depthwise layers: ZigZag with channels on one side and nothing on the other",
                    deep,
                    cycles(deep, flat, "cycles"),
                    taken(deep),
                )
    timed = {layer: n for layer, n in row.layers.items() if layer in row.scalesim}
    if timed:
        yield line(
            "SCALE-Sim, with its prefetch", timed, cycles(timed, row.scalesim, "with_prefetch"), taken(timed)
        )
        filled = summed(timed, cycles_on) / 1e6
        most = summed(timed, lambda layer: layer.macs) / SIDE**2 / 1e6
        yield line("of it: all multipliers in every cycle", timed, most, None)
        yield line("of it: sides that are not filled", timed, filled - most, None)
        array = cycles(timed, row.scalesim, "array_cycles")
        yield line("of it: filling and draining the array for every fold", timed, array - filled, None)
        yield line("of it: stalls", timed, cycles(timed, row.scalesim, "stall"), None)
        rest = cycles(timed, row.scalesim, "with_prefetch") - cycles(timed, row.scalesim, "cycles")
        yield line("of it: before the first step and behind the last", timed, rest, None)
        bytes_ms = summed(timed, of(row.scalesim, "dram_bytes")) / BANDWIDTH / 1e6
        ours_ms = summed(timed, of(row.alone, "bytes")) / BANDWIDTH / 1e6
        yield line("bytes that cross, at the full rate", timed, bytes_ms, ours_ms)
        parts = {**scalesim_asks(row.room // KIB, "os"), "kib": [row.room // KIB] * 3}
        yield from others(line, "SCALE-Sim with the whole scratchpad for every operand", timed,
                          changed.scalesim(row, list(timed), parts), "with_prefetch", None)  # fmt: skip
        held = changed.scalesim(row, list(timed), scalesim_asks(row.room // KIB, "ws"))
        sides = changed.ours(row, list(timed), SUMS)
        yield from others(line, "weights held in place (`ws`; ours: sums along one side)", timed, held,
                          "with_prefetch", sides)  # fmt: skip
        yield from others(
            line, "the same: its array alone; our bound", timed, held, "array_cycles", sides, "bound"
        )


def others(
    line: Callable[[str, Many, float | None, float | None], str],
    what: str,
    layers: Many,
    theirs: Mapping[Layer, Answer],
    figure: str,
    ours: Mapping[Layer, Answer] | None,
    our_figure: str = "picoseconds",
) -> Iterator[str]:
    """Yield the line of changed runs, of the layers for which there are any."""
    some = {layer: n for layer, n in layers.items() if layer in theirs and (ours is None or layer in ours)}
    if some:
        mine = None if ours is None else summed(some, of(ours, our_figure)) / 1e9
        yield line(what, some, summed(some, of(theirs, figure)) / 1e6, mine)


def under_our_law(row: Row) -> dict[Layer, int]:
    """Return the picoseconds of ZigZag's mappings by the checker, of those that the law can say."""
    found = {}
    for layer, answer in row.zigzag.items():
        nest = nest_of(layer, answer["temporal"])
        time = None if nest is None else priced(layer, nest, RATES, row.room)
        if time is not None:
            found[layer] = time
            if time < row.alone[layer]["picoseconds"]:
                ours = row.alone[layer]["picoseconds"]
                print(f"{row.name}, {layer.name}: {time:,} ps by ZigZag, {ours:,} by us", file=sys.stderr)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--zigzag", type=Path, metavar="PYTHON")
    parser.add_argument("--scalesim", type=Path, metavar="PYTHON")
    parser.add_argument("--kib", type=int, nargs="+", default=[512], metavar="N")
    parser.add_argument("--limit", type=float, default=20, metavar="SECONDS", help="for each layer of ours")
    parser.add_argument(
        "--whole", type=float, default=120, metavar="SECONDS", help="for each network of ours"
    )
    parser.add_argument("--cpu", type=int, default=1800, metavar="SECONDS", help="for each run of a peer")
    parser.add_argument(
        "--largest", type=int, default=100_000, metavar="CYCLES", help="of SCALE-Sim's layers"
    )
    parser.add_argument("--records", type=Path, metavar="FILE")
    parser.add_argument("--into", type=Path, metavar="PAGE")
    asked = parser.parse_args()
    records = Records(asked.records)

    def peer(name: str, script: str, python: Path | None) -> Callable[..., dict[Layer, Answer]]:
        runs = Peer(name, script, python, asked.cpu, records)
        return lambda row, layers, what: runs.answers(layers, what)

    changed = Changed(
        peer("ZigZag", "zigzag_layers.py", asked.zigzag),
        peer("SCALE-Sim", "scalesim_layers.py", asked.scalesim),
        lambda row, layers, rates: {
            layer: own(layer, rates, row.room, asked.limit, records) for layer in layers
        },
    )
    rows = [
        made(asked, records, model, KIB * kib) for model in asked.models or MODELS for kib in asked.kib
    ]  # fmt: skip
    said = Counter(
        f"{name} {answer['version']}"
        for row in rows
        for name, answers in (("ZigZag", row.zigzag), ("SCALE-Sim", row.scalesim))
        for answer in answers.values()
    )
    head = (
        f"<!-- {platform.machine()}, {os.cpu_count()} cores; Python {platform.python_version()};"
        f" {', '.join(sorted(said)) or 'no peer'}; {asked.limit:g} s for each layer of ours,"
        f" {asked.whole:g} s for each network -->"
    )
    chains = [
        line
        for kib in asked.kib
        for line in time_chains.table(
            RATES, SIDE, KIB * kib, asked.whole, asked.zigzag, asked.cpu, records
        )
    ]  # fmt: skip
    made_tables = {
        TABLE: "\n".join([head, *table(rows)]),
        WHY: "\n".join([head, *why(rows, changed)]),
        FUSED: "\n".join([head, *chains]),
    }
    if asked.into is None:
        print("\n\n".join(made_tables.values()))
        return
    page = asked.into.read_text()
    for name, text in made_tables.items():
        page = put_into(page, name, text)
    asked.into.write_text(page)


if __name__ == "__main__":
    main()
