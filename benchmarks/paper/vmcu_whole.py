"""Whole networks by every method, and how large a network each of them admits under a RAM limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tflm_arena import inference
from vmcu_networks import largest, network, scaled

from onchip.microcontroller.compare.lives import Lives
from onchip.microcontroller.compare.patches import patched
from onchip.microcontroller.compare.segments import METHODS, ours
from onchip.microcontroller.made import made_model
from onchip.network import Network

__all__ = ["nas", "networks"]

COLUMNS = (*METHODS, "patches, input not held", "onchip, input again")

LIMITS: dict[str, tuple[int, ...]] = {
    "made:resnet8": (32, 64, 128),
    "made:vww_96": (64, 128, 256, 512),
    "made:mcunet_vww": (64,),
}
"""KB of 1,024 bytes."""

STEP, LEAST = 16, 2
"""Image sizes are multiples of it, from twice of it on: below, maps vanish. Channels go by eighths."""


def networks(names: Sequence[str]) -> Iterator[str]:
    yield f"| network | TFLM's arena | of which tensors | {' | '.join(COLUMNS)} |"
    yield f"|---|{'--:|' * (len(COLUMNS) + 2)}"
    for name in names:
        net = network(name)
        content = made_model(name) if name.startswith("made:") else Path(name).read_bytes()
        _, head, total = inference(content, 0)
        found = [make(net) for make in METHODS.values()]
        found += [patched(Lives.of(net), held=False), ours(net, "again")]
        once = Lives.of(net).macs
        cells = (f"{b.ram_bytes:,}" + (f" at {b.macs / once:.2f}" if b.macs != once else "") for b in found)
        yield f"| {Path(name).stem.removeprefix('made:')} | {total:,} | {head:,} | {' | '.join(cells)} |"


def nas() -> Iterator[str]:
    methods = ("in place", "overlap", "window", "onchip")
    yield f"| network | RAM | largest | {' | '.join(methods)} |"
    yield f"|---|--:|---|{'--:|' * len(methods)}"
    for name, limits in LIMITS.items():
        net = network(name)
        geometry = net.operators[net.order[0]].geometry
        assert geometry is not None
        size = geometry.input[1]

        def sized(n: int, net: Network = net) -> Network:
            return scaled(net, STEP * n)

        def widened(n: int, net: Network = net, size: int = size) -> Network:
            return scaled(net, size, n / 8)

        _same(net, sized(size // STEP))
        for limit in limits:
            label = f"| {name.removeprefix('made:')} | {limit} KB |"
            images = _reached(methods, sized, limit << 10, LEAST)
            yield f"{label} image | {' | '.join(str(STEP * n) if n else '-' for n in images)} |"
            widths = _reached(methods, widened, limit << 10, 1)
            yield f"{label} channels | {' | '.join(f'{n / 8:.3g} x' if n else '-' for n in widths)} |"


def _reached(methods: Sequence[str], make: Callable[[int], Network], limit: int, least: int) -> Iterator[int]:
    """The largest n by each method; onchip needs no more than layer by layer, so it begins there."""
    found: dict[str, int] = {}
    for method in methods:
        start = found["overlap"] if method == "onchip" else 0
        found[method] = largest(make, method, limit, max(start, least))
        yield found[method]


def _same(net: Network, again: Network) -> None:
    """A network scaled to its own size is itself."""
    if [t.bytes for t in net.tensors] != [again.tensors[again.tensor_id[t.name]].bytes for t in net.tensors]:
        raise SystemExit(f"{net.name} scaled to its own size is another network")
