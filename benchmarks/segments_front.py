"""RAM against multiply-accumulates: every plan of segments that none beats in both, beside msf-CNN's.

    python benchmarks/segments_front.py made:mcunet_vww mcunet_320kb_imagenet.tflite made:mobilenet_v2_msfcnn

For each network prints the front with the input fetched again where it is needed again, as msf-CNN counts
(or `--input`), and under it every setting that msf-CNN published for that network, as planned and measured,
with the point that beats it in bytes and in work; and the points that this project is to meet. Exit code 1 if
a setting is not beaten (in msf-CNN's own input mode, `again`), or a point not met.

Bytes are those of tensors and rings, as publications count them; `--workspaces` counts the kernels' too. The
network's output counts here; msf-CNN leaves it out.
Every point becomes a plan, and the checker proves its bytes and its work. `--plot` needs onchip[docs].
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from onchip.microcontroller.load import int8_model
from onchip.microcontroller.network import network_of
from onchip.microcontroller.segments import Front, FrontPoint, SegmentOptions, Space, front, plan_of

WIDTH = 40


@dataclass(frozen=True)
class Setting:
    """A point of somebody else's, or one to meet: bytes as planned, times the network's own work."""

    bytes: int
    factor: float
    measured: int | None = None


PUBLISHED: dict[str, tuple[Setting, ...]] = {
    "vww": (
        Setting(89_600, 1.00),
        Setting(38_576, 1.02, 45_283),
        Setting(26_128, 1.11, 26_240),
        Setting(17_760, 1.30, 20_568),
        Setting(13_376, 1.35, 17_904),
        Setting(12_000, 1.96, 15_368),
    ),
    "320kb": (
        Setting(247_808, 1.00),
        Setting(186_736, 1.19, 217_891),
        Setting(156_672, 1.37),
        Setting(94_184, 1.46),
        Setting(62_880, 2.02),
        Setting(42_643, 2.70, 51_164),
    ),
    "mobilenet_v2_msfcnn": (
        Setting(181_440, 1.00),
        Setting(83_065, 1.02),
        Setting(25_674, 1.25),
        Setting(15_340, 1.38),
        Setting(7_887, 1.68, 8_560),
    ),
}
"""Huang and Baccelli, msf-CNN, NeurIPS 2025: planned bytes, factor of work, measured peak where given."""

TO_MEET: dict[tuple[str, str], tuple[Setting, ...]] = {
    ("vww", "again"): (
        Setting(14_195, 1.0),
        Setting(12_664, 1.02),
        Setting(12_000, 1.035),
        Setting(9_904, 1.11),
        Setting(9_840, 1.129),
    ),
    ("vww", "once"): (Setting(14_888, 1.0),),
    ("vww", "held"): (Setting(21_144, 1.0),),
    ("320kb", "again"): (
        Setting(55_728, 1.0),
        Setting(42_643, 1.064),
        Setting(37_120, 1.37),
        Setting(30_891, 2.02),
        Setting(25_435, 7.41),
    ),
    ("320kb", "once"): (Setting(55_728, 1.0),),
    ("320kb", "held"): (Setting(97_176, 1.0),),
    ("mobilenet_v2_msfcnn", "again"): (
        Setting(19_316, 1.0),
        Setting(15_340, 1.013),
        Setting(7_887, 1.168),
        Setting(6_440, 1.445),
    ),
    ("mobilenet_v2_msfcnn", "once"): (Setting(20_585, 1.0),),
    ("person_detect", "again"): (
        Setting(12_704, 1.0),
        Setting(9_344, 1.025),
        Setting(8_069, 1.10),
        Setting(6_619, 1.26),
        Setting(5_628, 1.5845),
    ),
    ("person_detect", "held"): (Setting(14_592, 1.0),),
    ("mobilenet_v2", "again"): (
        Setting(16_000, 1.011),
        Setting(12_000, 1.069),
        Setting(9_200, 1.176),
    ),
}
"""What a prototype of this project reached, with factors rounded to the digits given here."""

ROUNDED = 0.0005


def known_as(name: str) -> str:
    """Which of the published networks a model is, by its name; "" for none."""
    keys = sorted({*PUBLISHED, *(key for key, _ in TO_MEET)}, key=len, reverse=True)
    return next((key for key in keys if key in name), "")


def curve(found: Front) -> str:
    """A line for each point: bytes, times the network's own work, and a bar as long as the bytes."""
    most = found.points[0].ram_bytes
    lines = [f"{'bytes':>9}  {'work':>7}  groups"]
    for p in found.points:
        bar = "#" * max(1, round(WIDTH * p.ram_bytes / most))
        lines.append(f"{p.ram_bytes:>9,}  {p.factor:>6.4f}x  {len(p.choice.groups):>6}  {bar}")
    return "\n".join(lines)


def beating(points: Sequence[FrontPoint], bytes_: int, factor: float) -> FrontPoint | None:
    """A point with fewer bytes and no more work, or no more bytes and less work: the least work of all."""
    for p in points:
        if p.ram_bytes <= bytes_ and p.factor <= factor and (p.ram_bytes < bytes_ or p.factor < factor):
            return p
    return None


def compared(found: Front, name: str, mode: str) -> bool:
    """Prints each published setting with what beats it; whether those of `again`, and those to meet, are."""
    good, key = True, known_as(name)
    for setting in PUBLISHED.get(key, ()) if mode != "held" else ():
        for bytes_, how in (setting.bytes, "planned"), (setting.measured, "measured"):
            if bytes_ is None:
                continue
            ours = beating(found.points, bytes_, setting.factor)
            good &= ours is not None or mode != "again"
            said = "not beaten" if ours is None else f"{ours.ram_bytes:>7,} at {ours.factor:.4f}"
            print(f"  msf-CNN {how:<8} {bytes_:>7,} at {setting.factor:<5} | {said}")
    for setting in TO_MEET.get((key, mode), ()):
        ours = beating(found.points, setting.bytes + 1, setting.factor + ROUNDED)
        good &= ours is not None
        said = "NOT MET" if ours is None else f"{ours.ram_bytes:>7,} at {ours.factor:.4f}"
        print(f"  to meet          {setting.bytes:>7,} at {setting.factor:<5} | {said}")
    return good


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


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", help="FILE.tflite or made:NAME")
    parser.add_argument("--input", choices=("held", "once", "again"), nargs="+", default=["again"])
    parser.add_argument("--strips", type=int, nargs="+", default=list(Space().strips))
    parser.add_argument("--time-limit", type=float, default=None, help="seconds for each search")
    parser.add_argument("--workspaces", action="store_true", help="count the kernels' workspaces too")
    parser.add_argument("--plot", type=Path, default=None)
    given = parser.parse_args()
    good = True
    for model in given.models:
        network = network_of(int8_model(model))
        if not given.workspaces:
            network = replace(network, operators=tuple(replace(op, workspace=0) for op in network.operators))
        for mode in given.input:
            options = SegmentOptions(mode, time_limit=given.time_limit)
            began = time.process_time()
            found = front(network, options, Space(strips=tuple(given.strips)))
            for p in found.points:
                proved = plan_of(found.chain, p.choice, p.ram_bytes, options).result
                assert (proved.extent_bytes, proved.macs) == (p.ram_bytes, p.macs)
            print(f"{network.name}, input {mode}: {found.macs:,} multiply-accumulates once")
            print(curve(found))
            seen = (
                "the whole space was searched" if found.complete else "the time was up: there may be better"
            )
            print(
                f"{seen}; {found.seconds:.0f} s, {time.process_time() - began:.0f} of them computing",
                flush=True,
            )
            good &= compared(found, network.name, mode)
            print(flush=True)
            if given.plot is not None:
                plot(found, given.plot, f"{network.name}, input {mode}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
