"""Who is best before HaX-CoNN in the pairs of Table 8, and what changes that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from statistics import median

from hax_conn_cases import ORIN, PAPER_8, TEN, balanced, soc_of
from hax_conn_rivals import MOST, listed
from hax_conn_tables import SHORT, on_orin, paper_gains

import onchip
from onchip.multi_dnn.baselines import h2h, herald
from onchip.multi_dnn.dispatch import first_come
from onchip.multi_dnn.objective import Objective
from onchip.multi_dnn.profile import Profile
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.synthetic import synthetic_profile
from onchip.multi_dnn.workload import Job, Workload

__all__ = ["Bests", "as_in_ten", "cut_everywhere", "table_8_rivals"]

LETTERS = {"GPU": "G", "D/G": "W", "G/D": "W", "H2H": "2", "Her.": "H"}
"""The paper's names of the baselines, as our cells have them."""
RIVALS = "MH2"


@dataclass(frozen=True)
class Bests:
    """Cells whose best baseline is the paper's, and those where it is Mensa, Herald or H2H; how far each
    gain is from the paper's, in the middle and at most."""

    same: int
    rivals: int
    middle: float
    most: float


Cell = tuple[int, int]
Best = tuple[str, float]
"""The letter of the best baseline, and the gain over it."""


def as_in_ten(contention: str) -> Bests:
    """Those of Table 8 as it stands."""
    found = {}
    for i, j in paper_gains():
        one = on_orin(i, j, contention)
        best = one.best_of_theirs
        found[i, j] = (SHORT[best.name], best.cost_ms(Objective.LATENCY) / one.cost)
    return counted(found)


@cache
def cut_everywhere(by_lists: bool) -> Bests:
    """The same under `light` with Herald and H2H on networks cut everywhere, H2H by its lists or whole."""
    return counted({(i, j): _best(i, j, by_lists) for i, j in paper_gains()})


def counted(found: dict[Cell, Best]) -> Bests:
    """What the section shows of the best baselines."""
    theirs = {(i, j): LETTERS[PAPER_8[i][j].split()[0]] for i, j in found}
    off = [abs(gain - paper_gains()[cell]) for cell, (_, gain) in found.items()]
    return Bests(
        sum(best == theirs[cell] for cell, (best, _) in found.items()),
        sum(best in RIVALS for best, _ in found.values()),
        median(off),
        max(off),
    )


@cache
def _cut(name: str) -> Profile:
    return synthetic_profile(onchip.load(f"zoo:{name}").network, soc_of(ORIN), most=MOST)


def _best(i: int, j: int, by_lists: bool) -> Best:
    """The best baseline of a pair, its rivals' networks cut everywhere."""
    ours, soc = on_orin(i, j, "light"), soc_of(ORIN)
    names = (TEN[j], TEN[i] if i != j else f"{TEN[i]} #2")
    often = balanced(ORIN, TEN[j], TEN[i])
    jobs = (Job(names[0], _cut(TEN[j]), often[0]), Job(names[1], _cut(TEN[i]), often[1]))
    workload = Workload(soc, jobs, soc.model("light"))
    times: dict[str, float] = {}
    for name in ("gpu alone", "whole networks", "Mensa-like"):
        if (time := ours.baseline(name)) is not None:
            times[SHORT[name]] = time
    for letter, rule in (("H", herald), ("2", listed if by_lists else h2h)):
        mapped = [[units] * workload.runs(n) for n, units in enumerate(rule(workload))]
        times[letter] = Objective.LATENCY.cost_ms(simulate(workload, first_come(workload, mapped)))
    best = min(times, key=lambda letter: times[letter])
    return best, times[best] / ours.cost


def table_8_rivals() -> Iterator[str]:
    """Best baselines of the 55 pairs: the paper's, ours, and with one thing changed after the other."""
    heads = ("paper", "in ten groups", "cut everywhere", "cut everywhere, H2H by its lists")
    yield "| best baseline of 55 pairs, `light` | " + " | ".join(heads) + " |"
    yield "|---|" + "--:|" * len(heads)
    theirs = sum(LETTERS[cell.split()[0]] in RIVALS for row in PAPER_8 for cell in row)
    ours = (as_in_ten("light"), cut_everywhere(False), cut_everywhere(True))
    yield "| is the paper's | 55 | " + " | ".join(str(one.same) for one in ours) + " |"
    yield f"| is Herald, H2H or Mensa | {theirs} | " + " | ".join(str(one.rivals) for one in ours) + " |"
    yield "| gain from the paper's: median | 0 | " + " | ".join(f"{one.middle:.2f}" for one in ours) + " |"
    yield "| most | 0 | " + " | ".join(f"{one.most:.2f}" for one in ours) + " |"
