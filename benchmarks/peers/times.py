"""Latencies of whole networks by onchip, ZigZag, Stream and SCALE-Sim on one chip: docs/peers.md.

    python benchmarks/peers/times.py [MODEL ...] [--zigzag PYTHON] [--scalesim PYTHON] [--kib N ...]
                                     [--limit SECONDS] [--whole SECONDS] [--cpu SECONDS] [--largest CYCLES]
                                     [--small CYCLES] [--records FILE] [--into PAGE]

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
from collections.abc import Iterator, Mapping
from pathlib import Path

sys.path += [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]
import time_chains
from page_marks import put_into
from time_layers import Layer, layers_of
from time_nests import figures, own
from time_peers import Answer, Peer, Records
from time_reasons import Reasons
from time_rows import (
    BANDWIDTH,
    GIGA,
    HINTS,
    KIB,
    RATES,
    SIDE,
    Many,
    Row,
    cycles_on,
    of,
    scalesim_asks,
    summed,
    zigzag_asks,
)

from onchip.base.errors import NegativeAnswer, OnchipError
from onchip.network import Network
from onchip.readers import ReadOptions, load

MODELS = ("zoo:resnet50", "zoo:mobilenet_v2")
TABLE, WHY, FUSED = "times", "times: why", "times: fused"


def made(asked: argparse.Namespace, peers: list[Peer], records: Records, model: str, room: int) -> Row:
    """Return the row of one network."""
    zigzag, scalesim = peers
    network = load(model, ReadOptions(dtype="int8", attention="parts")).network
    layers = layers_of(network)
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
    if known is not None:
        return known
    try:
        return records.put(asked, figures(network, RATES, room, limit))
    except NegativeAnswer as no:
        return records.put(asked, {"no": str(no).splitlines()[0]})


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
        cells = [row.name, f"{row.room // KIB:,}", f"{layers.total()} ({len(layers)})"]
        cells += [ms(layers, row.zigzag, "cycles"), ms(layers, row.zigzag, "array_cycles")]
        cells += [ms(layers, row.scalesim, "with_prefetch"), ms(layers, row.scalesim, "array_cycles")]
        cells += [ms(layers, row.alone, "picoseconds"), ms(layers, row.alone, "bound")]
        figures_of = [row.whole[name] / 1e9 for name in ("picoseconds", "bound") if "no" not in row.whole]
        cells += [f"{n:,.3f}" for n in figures_of] or [row.whole["no"], ""]
        cells.append(f"{row.work:,.3f}")
        cells += [seconds(answers) for answers in (row.zigzag, row.scalesim, row.alone)]
        cells.append(f"{row.whole.get('seconds', 0):.0f}")
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


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--zigzag", type=Path, metavar="PYTHON")
    parser.add_argument("--scalesim", type=Path, metavar="PYTHON")
    parser.add_argument("--kib", type=int, nargs="+", default=[512], metavar="N")
    parser.add_argument("--limit", type=float, default=20.0, metavar="SECONDS", help="for each layer of ours")
    parser.add_argument(
        "--whole", type=float, default=150.0, metavar="SECONDS", help="for each network of ours"
    )
    parser.add_argument("--cpu", type=int, default=1800, metavar="SECONDS", help="for each run of a peer")
    parser.add_argument("--largest", type=int, default=45_000, metavar="CYCLES", help="of SCALE-Sim's layers")
    parser.add_argument(
        "--small", type=int, default=6_000, metavar="CYCLES", help="of layers for which something is changed"
    )
    parser.add_argument("--records", type=Path, metavar="FILE")
    parser.add_argument("--into", type=Path, metavar="PAGE")
    asked = parser.parse_args()
    records = Records(asked.records)

    peers = [
        Peer(name, script, python, asked.cpu, records)
        for name, script, python in (
            ("ZigZag", "zigzag_layers.py", asked.zigzag),
            ("SCALE-Sim", "scalesim_layers.py", asked.scalesim),
        )
    ]
    reasons = Reasons(*peers, asked.small)
    try:
        rows = [
            made(asked, peers, records, model, KIB * kib)
            for model in asked.models or MODELS
            for kib in asked.kib
        ]  # fmt: skip
    except (OnchipError, ValueError) as no:
        parser.error(str(no))
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
            RATES, SIDE, KIB * kib, asked.limit, asked.zigzag, asked.cpu, records
        )
    ]  # fmt: skip
    made_tables = {
        TABLE: "\n".join([head, *table(rows)]),
        WHY: "\n".join([head, *reasons.table(rows)]),
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
