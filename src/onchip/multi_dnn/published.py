"""The measurements of HaX-CoNN's authors, as its tables print them: Table 2, Table 5 and Table 6.

The tables are CSV files in `data/`. Only Table 2 is a profile, GoogleNet's on Xavier; Table 5 has the time of
ten whole networks on each unit of Orin and Xavier, Table 6 pairs and triples of networks on all three SoCs.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources

from onchip.multi_dnn.profile import Group, Profile

__all__ = ["TABLE2_SOURCE", "Experiment", "experiments", "googlenet", "standalone", "table"]

NOMINAL_GB_PER_SECOND = 136.5
"""Xavier's memory (Table 4), the base of Table 2's percentages."""

TABLE2_SOURCE = "HaX-CoNN, Table 2"


@cache
def table(number: int) -> tuple[dict[str, str], ...]:
    """Return the rows of Table 2, 5 or 6 as printed."""
    return _rows(f"table{number}.csv")


def _googlenet_layers() -> tuple[dict[str, str], ...]:
    """Return, for each group of Table 2, its nodes of `zoo:googlenet`, and the tensor that it hands on."""
    return _rows("googlenet_layers.csv")


def _rows(name: str) -> tuple[dict[str, str], ...]:
    path = resources.files("onchip.multi_dnn") / "data" / name
    return tuple(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


@cache
def googlenet() -> Profile:
    """Return GoogleNet on xavier-agx from Table 2.

    The GPU asks for the printed percentage of the nominal bandwidth; the DLA moves the same bytes in its own
    time. The table prints only the sum of leaving a unit and entering the other: all of it is OUT.
    The groups' layers are the nodes of `zoo:googlenet`'s ONNX file; docs/corun-profiles.md explains how the
    table's numbers of layers were matched with them.
    """
    groups = []
    for row, made_of in zip(table(2), _googlenet_layers(), strict=True):
        gpu, dla = float(row["gpu_ms"]), float(row["dla_ms"])
        asked = float(row["memory_percent"]) / 100.0 * NOMINAL_GB_PER_SECOND
        out = (float(row["gpu_to_dla_ms"]), float(row["dla_to_gpu_ms"]))
        bandwidth = (asked, asked * gpu / dla)
        layers, output = tuple(made_of["layers"].split(";")), made_of["output"]
        groups.append(Group(row["group"], (gpu, dla), bandwidth, out, (0.0, 0.0), layers, output))
    return Profile("googlenet", "xavier-agx", ("gpu", "dla"), tuple(groups), TABLE2_SOURCE)


@dataclass(frozen=True, slots=True)
class Experiment:
    """One row of Table 6. Times in ms; `chains` are the networks, those in one chain in sequence.

    `layers` and `directions` are where HaX-CoNN's schedules change units; `latency_percent` and `fps_percent`
    the improvements as printed, which mix definitions (docs/corun.md).
    """

    number: int
    soc: str
    goal: str
    chains: tuple[tuple[str, ...], ...]
    ms: dict[str, float]
    fps: dict[str, float]
    layers: tuple[int, ...]
    directions: tuple[str, ...]
    latency_percent: float
    fps_percent: float


METHODS = ("gpu_only", "split", "herald", "h2h", "hax_conn")


@cache
def experiments() -> tuple[Experiment, ...]:
    """Return Table 6, row by row; `split` is its GPU & DSA column."""
    return tuple(
        Experiment(
            int(row["experiment"]),
            row["soc"],
            row["goal"],
            tuple(tuple(chain.split(">")) for chain in row["networks"].split()),
            {method: float(row[f"{method}_ms"]) for method in METHODS},
            {method: float(row[f"{method}_fps"]) for method in METHODS},
            tuple(map(int, row["transition_layers"].split())),
            tuple(row["directions"].split()),
            float(row["latency_percent"]),
            float(row["fps_percent"]),
        )
        for row in table(6)
    )


def standalone(soc: str) -> dict[str, tuple[float, float | None]]:
    """Return the time of whole networks alone on (gpu, dla or dsp), in ms, by name; None: does not run.

    For Xavier and Orin these are Table 5's. For the Snapdragon Table 6 prints only pairs, so they are
    assumed: the GPU's time for a pair is shared as on Xavier, and in `split` the DSP ran the second network.
    Empty for any other SoC.
    """
    column = {"xavier-agx": "xavier", "orin-agx": "orin"}.get(soc)
    if column is not None:
        return {
            row["network"]: (
                float(row[f"{column}_gpu_ms"]),
                float(row[f"{column}_dla_ms"]) if row[f"{column}_dla_ms"] else None,
            )
            for row in table(5)
        }
    xavier = standalone("xavier-agx")
    found: dict[str, tuple[float, float | None]] = {}
    for row in experiments():
        if row.soc == soc:
            (first,), (second,) = row.chains
            both = xavier[first][0] + xavier[second][0]
            slower = row.ms["split"] / (row.ms["gpu_only"] * xavier[second][0] / both)
            for name in (first, second):
                gpu = row.ms["gpu_only"] * xavier[name][0] / both
                found[name] = (gpu, gpu * slower)
    return found
