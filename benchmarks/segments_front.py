"""RAM against multiply-accumulates: every plan of onchip.segments that none beats in both, as a curve.

    python benchmarks/segments_front.py made:mcunet_vww --input again
    python benchmarks/segments_front.py mcunet_5fps_vww.tflite --input again --plot front.png

`--bare` leaves out the kernels' workspaces: bytes of tensors and rings alone, as publications count them.
Every point becomes a plan, and the checker proves its bytes and its work. `--plot` needs onchip[docs].
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from onchip.mcu.load import int8_model
from onchip.mcu.network import network_of
from onchip.segments import Front, SegmentOptions, Space, front, plan_of

WIDTH = 50


def curve(found: Front) -> str:
    """A line for each point: bytes, times the network's own work, and a bar as long as the bytes."""
    most = found.points[0].ram_bytes
    lines = [f"{'bytes':>9}  {'work':>7}  groups"]
    for p in found.points:
        bar = "#" * max(1, round(WIDTH * p.ram_bytes / most))
        lines.append(f"{p.ram_bytes:>9,}  {p.factor:>6.4f}x  {len(p.choice.groups):>6}  {bar}")
    return "\n".join(lines)


def plot(found: Front, path: Path, title: str) -> None:
    """The same as a staircase."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4))
    axes.step([p.factor for p in found.points], [p.ram_bytes for p in found.points], where="post", marker=".")
    axes.set_xlabel("multiply-accumulates, times the network's own")
    axes.set_ylabel("bytes of RAM")
    axes.set_title(title)
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="FILE.tflite or made:NAME")
    parser.add_argument("--input", choices=("held", "once", "again"), default="held")
    parser.add_argument("--strips", type=int, nargs="+", default=[1])
    parser.add_argument("--time-limit", type=float, default=None)
    parser.add_argument("--bare", action="store_true")
    parser.add_argument("--plot", type=Path, default=None)
    given = parser.parse_args()
    network = network_of(int8_model(given.model))
    if given.bare:
        network = replace(network, operators=tuple(replace(op, workspace=0) for op in network.operators))
    options = SegmentOptions(given.input, time_limit=given.time_limit)
    found = front(network, options, Space(strips=tuple(given.strips)))
    for p in found.points:
        proved = plan_of(found.chain, p.choice, p.ram_bytes, options).result
        assert (proved.extent_bytes, proved.macs) == (p.ram_bytes, p.macs)
    print(f"{given.model}, input {given.input}: {found.macs:,} multiply-accumulates once")
    print(curve(found))
    print("the whole space was searched" if found.complete else "the time was up: there may be better plans")
    if given.plot is not None:
        plot(found, given.plot, f"{given.model}, input {given.input}")


if __name__ == "__main__":
    main()
