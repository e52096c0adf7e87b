"""A sweep as one self-contained HTML file. Names from files are escaped in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from onchip.base.errors import AMONG
from onchip.report.shell import asset, hash_of, template, version
from onchip.report.wording import short_size, short_time, shorten, visible
from onchip.sweeps.curves import ALL, Curve, Spot
from onchip.sweeps.drawing import chart, key
from onchip.sweeps.latency_maps import drawn as latency_map
from onchip.sweeps.latency_maps import maps_of
from onchip.sweeps.run import Outcome
from onchip.sweeps.sram_columns import SRAM_COLUMNS, law_words

if TYPE_CHECKING:
    import jinja2

__all__ = ["html"]

MOST_ROWS = 2_000
LONGEST_REASON = 600
"""Characters of the reason of a point without a plan, without the plans that it ranges over."""


def _share(value: float) -> str:
    return f"{100 * value:.3g} %"


def _joules(picojoules: float) -> str:
    return f"{picojoules / 1e9:,.3g} mJ"


SHOWN: dict[str, tuple[str, Callable[[Any], str] | None]] = {
    "dram_bytes": ("DRAM bytes", None),
    "gap": ("gap at most", _share),
    "peak_bytes": ("peak bytes", None),
    "needs_bytes": ("needs bytes", None),
    "dram_seconds": ("DRAM busy", lambda seconds: short_time(round(seconds * 10**12))),
    "latency_picoseconds": ("latency", short_time),
    "energy_picojoules": ("energy", _joules),
    **{name: (name.replace("_", " "), None) for name in SRAM_COLUMNS},
}
"""The figures of a point that the page shows: heading, and how a value is written."""


def html(made: Outcome, curves: Sequence[Curve], sentence: str) -> str:
    """Return the page: curves of every network, their knees, and the table. `sentence` counts the answers."""
    from markupsafe import Markup

    style = asset("page.css") + asset("corun.css") + asset("sweep.css")
    script = asset("corun.js")  # answers the pointer and the keyboard on any sheet of segments
    return _template().render(
        **_words(made, curves, sentence),
        style=Markup(style),
        script=Markup(script),
        style_hash=hash_of(style),
        script_hash=hash_of(script),
        version=version(),
    )


@cache
def _template() -> jinja2.Template:
    return template("sweep.html.j2")


def _words(made: Outcome, drawn: Sequence[Curve], sentence: str) -> dict[str, Any]:
    spec = made.spec
    series = list(dict.fromkeys(curve.series for curve in drawn))
    places = {name: i for i, name in enumerate(series)}
    networks = dict.fromkeys(curve.network for curve in drawn)
    ordered = [name for name in networks if name == ALL] + [name for name in networks if name != ALL]
    columns = [name for name in SHOWN if any(row.get(name) is not None for row in made.rows)]
    return {
        "title": visible(spec.title or "Sweep"),
        "sentence": sentence,
        "state": "complete" if made.complete else "under way",
        "state_class": "optimal" if made.complete and not made.failed else "feasible",
        "within": f"{100 * spec.within:g} %",
        "keys": [(key(i), visible(name)) for i, name in enumerate(series[:28])] if len(series) > 1 else [],
        "more_keys": max(0, len(series) - 28),
        "sections": [_section(made, drawn, name, places) for name in ordered],
        "labels": [visible(name.replace("_", " ")) for name in made.labels],
        "columns": [SHOWN[name][0] for name in columns],
        "rows": [_row(row, made.labels, columns) for row in made.rows[:MOST_ROWS]],
        "rows_cut": f"The first {MOST_ROWS:,} of {len(made.rows):,}; table.csv has all."
        if len(made.rows) > MOST_ROWS
        else "",
        "figures": _figures(made),
        "law": "" if spec.sram is None else law_words(spec.sram),
    }


def _figures(o: Outcome) -> list[tuple[str, str]]:
    chips = dict.fromkeys(machine.name for machine in o.spec.machines)
    return [
        ("points", f"{len(o.rows):,} of {o.points:,}"),
        ("networks", f"{len({m.name for m in o.spec.models}):,}"),
        ("chips", ", ".join(visible(name) for name in list(chips)[:4]) + (", …" if len(chips) > 4 else "")),
        ("planners", ", ".join(dict.fromkeys(asked.planner for asked in o.spec.asked))),
        ("budgets", f"{len(o.spec.budgets):,}"),
    ]


def _section(made: Outcome, drawn: Sequence[Curve], network: str, places: dict[str, int]) -> dict[str, Any]:
    curves = [curve for curve in drawn if curve.network == network]
    summed = network == ALL and all(spot.row < 0 for curve in curves for spot in curve.spots)
    return {
        "name": visible(shorten(network, 120)),
        "summed": summed,
        "picture": chart(curves, places, made.rows, visible(shorten(network, 60))),
        "rows": [_named(curve, places) for curve in curves],
        "maps": [
            (visible(shorten(one.series, 120)), latency_map(one))
            for one in maps_of(made.rows, made.labels, network)
        ],
    }


def _named(curve: Curve, places: dict[str, int]) -> dict[str, Any]:
    def size(spot: Spot | None) -> str:
        return "-" if spot is None else short_size(spot.budget)

    def moved(spot: Spot | None) -> str:
        return "-" if spot is None else short_size(spot.dram)

    least = curve.least
    return {
        "key": key(places[curve.series]),
        "series": visible(curve.series) if curve.series else "-",
        "first": size(curve.first),
        "first_dram": moved(curve.first),
        "knee": size(curve.knee),
        "knee_dram": moved(curve.knee),
        "near": size(curve.near),
        "near_dram": moved(curve.near),
        "least": size(least),
        "least_dram": moved(least),
        "over": "-" if least is None or not curve.limit else f"{least.dram / curve.limit:.3f}",
        "nothing": f"{len(curve.nothing):,}" if curve.nothing else "",
    }


def _row(row: dict[str, Any], labels: tuple[str, ...], columns: list[str]) -> dict[str, Any]:
    def shown(value: Any, write: Callable[[Any], str] | None = None) -> str:
        if value is None:
            return ""
        if write is not None:
            return write(value)
        return (
            f"{value:,}"
            if type(value) is int
            else f"{value:.4g}"
            if isinstance(value, float)
            else visible(str(value))
        )

    return {
        "network": visible(row["network"]),
        "chip": visible(row["chip"]),
        "planner": row["planner"],
        "labels": [shown(row[name]) for name in labels],
        "budget": shown(row["budget_bytes"]) or row["budget"],
        "status": row["status"],
        "figures": [shown(row[name], SHOWN[name][1]) for name in columns],
        "reason": visible(row["reason"].split(AMONG)[0], LONGEST_REASON) if row["reason"] else "",
    }
