"""Synthetic co-run profiles: how networks are grouped, and GoogLeNet's beside what HaX-CoNN measured.

    python benchmarks/corun_profiles.py [--into docs/corun-profiles.md]

First GoogLeNet on Xavier, cut where Table 2's groups end: time, D/G ratio and requested bandwidth of the
synthetic profile and of Table 2, scaled to the same total; and the costs of changing units. Then the paper's
networks: operators, groups if their number is not limited, groups, and the largest one's share of the time on
Xavier's GPU.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from page_marks import Section, write

from onchip.machines.soc_file import load_soc
from onchip.multi_dnn.grouping import layer_groups
from onchip.multi_dnn.profile import Profile
from onchip.multi_dnn.published import googlenet, standalone
from onchip.multi_dnn.synthetic import synthetic_profile
from onchip.readers import load

ENDS = (
    "maxpool2", "inception3a.cat", "maxpool3", "inception4a.cat", "inception4b.cat", "inception4c.cat",
    "inception4d.cat", "maxpool4", "inception5a.cat", "fc",
)  # fmt: skip
"""The operators that end Table 2's groups, as far as their numbers of layers tell."""

Row = tuple[float, float, float, float, float]
"""GPU ms, DLA ms, GB/s of the GPU, ms from GPU to DLA, ms from DLA to GPU."""


def groups() -> Iterator[str]:
    """How the paper's networks are cut."""
    titles = ("network", "operators", "most groups", "of at most 10", "largest share")
    yield f"| {' | '.join(titles)} |"
    yield "|---|" + "---|" * (len(titles) - 1)
    soc = load_soc("xavier-agx")
    for name in sorted({*standalone("xavier-agx"), "alexnet", "fcn_resnet18"}):
        network = load(f"zoo:{name}").network
        profile = synthetic_profile(network, soc)
        share = max(group.ms[0] or 0 for group in profile.groups) / (profile.total_ms(0) or 1)
        most = len(layer_groups(network, most=len(network.operators)))
        cells = (name, len(network.operators), most, len(profile.groups), f"{share:.0%}")
        yield f"| {' | '.join(map(str, cells))} |"


def beside_table_2() -> Iterator[str]:
    """GoogLeNet's synthetic profile beside what was measured."""
    measured = rows(googlenet())
    made = joined(synthetic_profile(load("zoo:googlenet").network, load_soc("xavier-agx"), most=999))
    totals = [sum(row[unit] for row in made) / sum(row[unit] for row in measured) for unit in (0, 1)]
    pairs = ("GPU ms", "D/G", "GPU GB/s", "G to D ms", "D to G ms")
    yield f"| group ends at | {' | '.join(f'{title} | synthetic' for title in pairs)} |"
    yield "|---|" + "---|" * (2 * len(pairs))
    for end, theirs, ours in zip(ENDS, measured, made, strict=True):
        gpu, dla = ours[0] / totals[0], ours[1] / totals[1]
        cells = [
            f"{theirs[0]:.2f}", f"{gpu:.2f}", f"{theirs[1] / theirs[0]:.2f}", f"{dla / gpu:.2f}",
            f"{theirs[2]:.0f}", f"{ours[2]:.0f}", f"{theirs[3]:.3f}", f"{ours[3]:.3f}",
            f"{theirs[4]:.3f}", f"{ours[4]:.3f}",
        ]  # fmt: skip
        yield f"| {end} | {' | '.join(cells)} |"
    error = [
        sum(abs(o[k] / totals[k] - t[k]) for o, t in zip(made, measured, strict=True))
        / sum(t[k] for t in measured)
        for k in (0, 1)
    ]
    shares = [f"{100 * e / 2:.0f} %" for e in error]
    yield f"\nOf the time, {shares[0]} (GPU) and {shares[1]} (DLA) lie in the wrong group."


def rows(profile: Profile) -> list[Row]:
    """A profile's figures; the last group hands nothing over, so its transitions are what Table 2 says."""
    found = []
    for n, group in enumerate(profile.groups):
        last = n + 1 == len(profile.groups)
        there = group.out_ms[0] if last else profile.transition_ms(n, 0, 1)
        back = group.out_ms[1] if last else profile.transition_ms(n, 1, 0)
        found.append((group.ms[0] or 0.0, group.ms[1] or 0.0, group.gb_per_second[0], there, back))
    return found


def joined(profile: Profile) -> list[Row]:
    """The profile's groups put together up to each of `ENDS`."""
    found: list[Row] = []
    parts: list[Row] = []
    for group, row in zip(profile.groups, rows(profile), strict=True):
        parts.append(row)
        if group.layers[-1] in ENDS:
            gpu, dla = (sum(part[unit] for part in parts) for unit in (0, 1))
            moved = sum(part[0] * part[2] for part in parts)
            found.append((gpu, dla, moved / gpu, row[3], row[4]))
            parts = []
    return found


SECTIONS: dict[str, Section] = {"googlenet": beside_table_2, "groups": groups}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--into", type=Path, metavar="PAGE")
    write(SECTIONS, parser.parse_args().into)


if __name__ == "__main__":
    main()
