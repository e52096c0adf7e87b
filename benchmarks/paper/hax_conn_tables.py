"""Sections of docs/hax-conn.md that stand beside the paper's tables: 2, 4, 5, 6 and 8."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from statistics import median

from hax_conn_cases import (
    ORIN,
    OWN,
    PAPER_8,
    SETS,
    TEN,
    TITLES,
    XAVIER,
    Beside,
    balanced,
    ms,
    of_experiment,
    percent,
    profile_of,
    side_by_side,
    soc_of,
    solved,
)

from onchip.multi_dnn.objective import Objective
from onchip.multi_dnn.profile import Profile
from onchip.multi_dnn.published import Experiment, experiments, googlenet, standalone, table
from onchip.multi_dnn.workload import Job, Workload

BASELINES = ("gpu alone", "whole networks", "Mensa-like", "Herald-like", "H2H-like", OWN)
FOUR = ("gpu alone", "whole networks", "Herald-like", "H2H-like")
"""Baselines of Table 6."""
PAPER_4 = {"xavier-agx": 136.5, "orin-agx": 204.8, "snapdragon-865": 34.1}
"""GB/s of the memories, by Table 4."""


# -- Table 2 ---------------------------------------------------------------------------------------------


def table_2() -> Iterator[str]:
    """GoogleNet's profile as printed, and what it gives for two copies."""
    columns = (
        "GPU, ms",
        "DLA, ms",
        "D/G printed",
        "DLA / GPU",
        "to DLA, ms",
        "to GPU, ms",
        "memory, %",
        "GB/s",
    )
    yield "| group | " + " | ".join(columns) + " |"
    yield "|---|" + "--:|" * len(columns)
    gpu = dla = 0.0
    for row, group in zip(table(2), googlenet().groups, strict=True):
        g, d = float(row["gpu_ms"]), float(row["dla_ms"])
        gpu, dla = gpu + g, dla + d
        yield (
            f"| {row['group']} | {g:.2f} | {d:.2f} | {row['ratio']} | {d / g:.2f} | {row['gpu_to_dla_ms']} |"
            f" {row['dla_to_gpu_ms']} | {row['memory_percent']} | {group.gb_per_second[0]:.1f} |"
        )
    yield f"| all | {gpu:.2f} | {dla:.2f} | | {dla / gpu:.2f} | | | | |"
    yield "\nTwo copies at once, ms until both are done:\n"
    yield "| contention | " + " | ".join(BASELINES) + " | onchip | saved, % | bound | claim |"
    yield "|---|" + "--:|" * (len(BASELINES) + 3) + "---|"
    for contention in SETS:
        found = side_by_side(XAVIER, "googlenet", "googlenet", contention)
        cells = [ms(found.baseline(name), 3) for name in BASELINES]
        s = found.result.solution
        yield (
            f"| {contention} | " + " | ".join(cells) + f" | **{s.cost_ms:.3f}** | {percent(found.saved)} |"
            f" {s.lower_bound_ms:.3f} | {claimed(found)} |"
        )


def readings() -> Iterator[str]:
    """GoogleNet twice under `light`, for other readings of Table 2."""
    yield "| Table 2 read so | best of the paper's baselines, ms | onchip, ms |"
    yield "|---|--:|--:|"
    for name, profile in _readings(googlenet()):
        soc = soc_of(XAVIER)
        workload = Workload(soc, (Job("x", profile), Job("y", profile)), soc.model("light"))
        found = solved(workload, "latency", "light")
        yield f"| {name} | {found.best_of_theirs.cost_ms(Objective.LATENCY):.3f} | {found.cost:.3f} |"


def _readings(profile: Profile) -> Iterator[tuple[str, Profile]]:
    yield "as it is here: the DLA moves the GPU's bytes in its own time", profile
    same = [replace(g, gb_per_second=(g.gb_per_second[0],) * 2) for g in profile.groups]
    yield "the DLA asks for the GPU's bandwidth", replace(profile, groups=tuple(same))
    crossed = [replace(g, out_ms=g.out_ms[::-1]) for g in same]
    yield "that, and the two directions of its transitions exchanged", replace(profile, groups=tuple(crossed))


# -- Tables 4 and 5 --------------------------------------------------------------------------------------


def table_4() -> Iterator[str]:
    """The SoCs' figures that the simulation has, beside what the paper prints."""
    yield "| SoC | units | memory, GB/s: printed | here | reached (peak) | assumed |"
    yield "|---|---|--:|--:|--:|---|"
    for name, printed in PAPER_4.items():
        soc = soc_of(name)
        units = ", ".join(f"{unit.name} ({unit.description})" for unit in soc.units)
        yield (
            f"| {name} | {units} | {printed} | {soc.nominal_gb_per_second} | {soc.peak_gb_per_second} |"
            f" {', '.join(f'`{key}`' for key in soc.assumed)} |"
        )


def table_5() -> Iterator[str]:
    """Totals of whole networks; ours are scaled to them, but for the GoogleNet of Table 2."""
    columns = ("GPU", "DLA", "groups", "sum GPU", "sum DLA")
    head = " | ".join(f"{soc} {column}" for soc in ("Orin", "Xavier") for column in columns)
    yield f"| network | {head} |"
    yield "|---|" + "--:|" * 10
    for name in TEN:
        cells = []
        for soc in (ORIN, XAVIER):
            profile = profile_of(name, soc)
            cells += [ms(value) for value in standalone(soc)[name]]
            cells += [str(len(profile.groups)), ms(profile.total_ms(0)), ms(profile.total_ms(1))]
        yield f"| {TITLES[name]} | " + " | ".join(cells) + " |"


# -- Table 6 ---------------------------------------------------------------------------------------------


def totals() -> Iterator[str]:
    """The ten experiments by Table 5's times, our simulation under the three sets."""
    head = "# | SoC | networks | goal | who | GPU only | GPU & DSA | Herald | H2H | result"
    yield f"| {head} | saved, % | saved over all, % | claim |"
    yield "|--:|---|---|---|---|" + "--:|" * 7 + "---|"
    for row in experiments():
        label = f"| {row.number} | {row.soc} | {networks_of(row)} | {row.goal} |"
        for contention in SETS:
            found = of_experiment(row.number, contention)
            costs = " | ".join(ms(found.baseline(name)) for name in FOUR)
            yield (
                f"{label} {contention} | {costs} | {ms(found.cost)} | {percent(our_saved(found))} |"
                f" {percent(found.result.gain)} | {claimed(found)} |"
            )
            label = "| | | | |"


def networks_of(row: Experiment) -> str:
    return ", ".join(" > ".join(TITLES[name] for name in chain) for chain in row.chains)


def units_of(found: Beside) -> str:
    """The unit of every group of every network, a letter each: G or D."""
    workload, schedule = found.result.solution.timeline.workload, found.result.solution.schedule
    letters = [unit.name[0].upper() for unit in workload.soc.units]
    return ", ".join("".join(letters[u] for u in runs[0]) for runs in schedule.units)


def paper_saved(row: Experiment) -> float:
    """Of the best baseline's time, in the paper's figures."""
    return 1 - row.ms["hax_conn"] / min(time for method, time in row.ms.items() if method != "hax_conn")


def our_saved(found: Beside) -> float:
    """The same of ours, against the same four."""
    return 1 - found.cost / min(cost for name in FOUR if (cost := found.baseline(name)) is not None)


def claimed(found: Beside) -> str:
    return "proved" if found.result.solution.claim.proved else "found"


# -- Table 8 ---------------------------------------------------------------------------------------------

SHORT = {
    "gpu alone": "G",
    "dla alone": "D",
    "whole networks": "W",
    "Mensa-like": "M",
    "Herald-like": "H",
    "H2H-like": "2",
}


def table_8() -> Iterator[str]:
    """All pairs on Orin with iterations balanced: gain over the best baseline."""
    yield "| | " + " | ".join(str(n + 1) for n in range(len(TEN))) + " |"
    yield "|---|" + "---|" * len(TEN)
    for i, second in enumerate(TEN):
        row = []
        for j in range(i + 1):
            best = on_orin(i, j, "light").best_of_theirs.name
            row.append(f"{PAPER_8[i][j]}<br>{SHORT[best]} {gain_on_orin(i, j, 'light'):.2f}")
        row += [""] * (len(TEN) - len(row))
        yield f"| {i + 1} {TITLES[second]} | " + " | ".join(row) + " |"
    yield "\n| gains | pairs with one | median | most | of VGG19's ten | of GoogleNet's ten |"
    yield "|---|--:|--:|--:|--:|--:|"
    for name, gains in (("paper", paper_gains()), *((c, our_gains(c)) for c in SETS)):
        with_one = [sum(better(g) for g in gains_with(gains, network)) for network in ("vgg19", "googlenet")]
        yield (
            f"| {name} | {sum(map(better, gains.values()))} of {len(gains)} | {median(gains.values()):.2f} |"
            f" {max(gains.values()):.2f} | {with_one[0]} | {with_one[1]} |"
        )


Cell = tuple[int, int]


@cache
def on_orin(i: int, j: int, contention: str) -> Beside:
    """Two networks on Orin, the faster one repeated."""
    return side_by_side(ORIN, TEN[j], TEN[i], contention, balanced(ORIN, TEN[j], TEN[i]))


def gain_on_orin(i: int, j: int, contention: str) -> float:
    """Time of the best of the paper's baselines over ours."""
    found = on_orin(i, j, contention)
    return found.best_of_theirs.cost_ms(Objective.LATENCY) / found.cost


def our_gains(contention: str) -> dict[Cell, float]:
    return {(i, j): gain_on_orin(i, j, contention) for i in range(len(TEN)) for j in range(i + 1)}


def paper_gains() -> dict[Cell, float]:
    """The factors that Table 8 prints; 1 for its x."""
    return {
        (i, j): 1.0 if cell.endswith("x") else float(cell.split()[1])
        for i, row in enumerate(PAPER_8)
        for j, cell in enumerate(row)
    }


def gains_with(gains: dict[Cell, float], network: str) -> list[float]:
    """Those of pairs that have the network."""
    return [gain for cell, gain in gains.items() if TEN.index(network) in cell]


def better(gain: float) -> bool:
    """Whether a factor counts as a gain."""
    return gain > 1.0005
