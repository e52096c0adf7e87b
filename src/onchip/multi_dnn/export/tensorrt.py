"""A Python script that builds the engines of a schedule with only TensorRT.

It builds an engine for every stretch that a unit runs without a break, so that the order between networks can
be enforced where one ends and the next begins (the format `order`): the paper uses a plugin inside of one
engine, which a DLA cannot run. The script is the fixed text of `tensorrt_build.py.txt` behind a table of
literals.
"""

from __future__ import annotations

from importlib import resources

from onchip.multi_dnn.export.devices import Cut, cut_after, device_of, engines_of, network_names
from onchip.multi_dnn.judged import Judged

__all__ = ["write"]


def write(made: Judged) -> str:
    """Return the script; raises `UsageError` if the profile does not state the cuts, or for other units."""
    names = network_names(made)
    table: dict[str, list[tuple[str, str, int, Cut | None, Cut | None]]] = {name: [] for name in names}
    for engine in engines_of(made).values():
        profile = made.workload.jobs[engine.job].profile
        begin = cut_after(profile, engine.first - 1) if engine.first else None
        end = cut_after(profile, engine.last) if engine.last + 1 < len(profile.groups) else None
        table[engine.network].append((engine.file, *device_of(made, engine.unit), begin, end))
    body = (resources.files("onchip.multi_dnn.export") / "tensorrt_build.py.txt").read_text("utf-8")
    rows = []
    for name, engines in table.items():
        rows += [f"    {name!a}: [", *(f"        {row!a}," for row in engines), "    ],"]
    return body.replace("ENGINES = {}\n", "\n".join(["ENGINES = {", *rows, "}"]) + "\n", 1)
