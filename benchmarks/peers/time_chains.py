"""Chains of layers, each of which reads what the one before it made, for planners that fuse."""

from __future__ import annotations

import json
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

from time_layers import Layer, Slide, network_of
from time_nests import figures
from time_peers import HERE, Answer, Records, stated

from onchip.machines.tile_rates import TileRates
from onchip.network import Network, OperatorSpec

__all__ = ["CHAINS", "network_of_chain", "table"]

Chain = tuple[Layer, ...]


def _conv(inputs: int, outputs: int, side: int, taps: int = 1, groups: int = 1) -> Layer:
    slide = Slide(side, side, taps, 1, taps // 2)
    return Layer(groups, outputs, inputs, slide, slide)


def _product(inputs: int, outputs: int, rows: int) -> Layer:
    return Layer(1, outputs, inputs, Slide(1, 1), Slide(rows, rows))


CHAINS: dict[str, Chain] = {
    "bottleneck of ResNet-50: 256, 64, 64 (3x3), 256, at 56 x 56": (
        _conv(256, 64, 56),
        _conv(64, 64, 56, 3),
        _conv(64, 256, 56),
    ),
    "block of MobileNetV2: 32, 192, 192 (3x3 depthwise), 32, at 28 x 28": (
        _conv(32, 192, 28),
        _conv(1, 1, 28, 3, 192),
        _conv(192, 32, 28),
    ),
    "feed-forward of BERT-base: 768, 3072, 768, 512 tokens": (
        _product(768, 3072, 512),
        _product(3072, 768, 512),
    ),
}
"""Chains by what they are; without sums around them, norms and activations."""


def network_of_chain(name: str, chain: Chain) -> Network:
    """Return the network of a chain, one byte an element."""
    alone = [network_of(layer) for layer in chain]
    tensors = [("t0", alone[0].tensors[0].bytes, "input")]
    specs = []
    for n, (layer, one) in enumerate(zip(chain, alone, strict=True)):
        tensors.append((f"t{n + 1}", layer.output_bytes, "activation"))
        [op] = one.operators
        specs.append(
            OperatorSpec(
                f"layer{n}",
                op.type,
                [f"t{n}"],
                [f"t{n + 1}"],
                op.weight_bytes,
                macs=op.macs,
                reach=op.reach,
            )
        )
    return Network.build(name, tensors, specs, [f"t{len(chain)}"])


def theirs(python: Path | None, cpu: int, records: Records, asked: Answer, chain: Chain) -> Answer:
    """Return Stream's answer for a chain, empty if there is none."""
    said = [stated(layer) for layer in chain]
    key = {"peer": "Stream", "chain": said, **asked}
    known = records.get(key)
    if known is not None or python is None or not cpu:
        return known or {}

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 5))

    done = subprocess.run(
        [python, HERE / "stream_chains.py"],
        input=json.dumps({"layers": [said], **asked}),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit,
    )
    lines = done.stdout.splitlines()
    return records.put(key, json.loads(lines[-1])) if lines else {}


def table(
    rates: TileRates, side: int, room: int, limit: float, python: Path | None, cpu: int, records: Records
) -> Iterator[str]:
    """Yield the lines of the table: chains by Stream and by onchip, each in the groups that it likes."""
    [channel] = rates.channels
    bandwidth = channel.bytes_per_second // rates.clock_hertz
    asked = {"bytes": room, "bandwidth": bandwidth, "array": [side, side], "limit": 60}
    others = {name: theirs(python, cpu, records, asked, chain) for name, chain in CHAINS.items()}
    said = sorted({other["version"] for other in others.values() if "version" in other})
    yield (
        f"| chain | KiB | {' '.join(['Stream', *said])} | its groups | ours | our groups | our bound"
        " | all multipliers in every cycle | CPU s: Stream | ours |"
    )
    yield "|---|" + "--:|" * 9
    for name, chain in CHAINS.items():
        other, ours = others[name], fused(name, chain, rates, room, limit, records)
        work = sum(layer.macs for layer in chain) / side**2 / 1e6
        cells = [name, f"{room >> 10:,}"]
        cells += _cells(other)
        cells += [f"{ours['picoseconds'] / 1e9:,.3f}", str(ours["groups"]), f"{ours['bound'] / 1e9:,.3f}"]
        cells += [f"{work:,.3f}", f"{other['seconds']:.0f}" if "seconds" in other else ""]
        yield f"| {' | '.join(cells)} | {ours['seconds']:.0f} |"


def fused(name: str, chain: Chain, rates: TileRates, room: int, limit: float, records: Records) -> Answer:
    """Return onchip's figures of a chain."""
    said = [stated(layer) for layer in chain]
    asked = {"peer": "onchip", "chain": said, "bytes": room, "limit": limit, "rates": str(rates)}
    known = records.get(asked)
    return known or records.put(asked, figures(network_of_chain(name, chain), rates, room, limit))


def _cells(answer: Answer) -> list[str]:
    if "failed" in answer:
        return [answer["failed"], ""]
    return [f"{answer['cycles'] / 1e6:,.3f}", str(answer["groups"])] if answer else ["", ""]
