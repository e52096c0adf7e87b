"""Sentences of HaX-CoNN's evaluation on single experiments and networks."""

from __future__ import annotations

from hax_conn_cases import OWN, TEN, side_by_side
from hax_conn_figures import THREE
from hax_conn_rivals import MOST, divided_rival
from hax_conn_setup import SCENARIO_2, on_setup
from hax_conn_strength import baselines_at
from hax_conn_tables import on_orin, units_of

__all__ = [
    "DIFFERENT", "best_concurrent_of_5", "mensa_gains", "not_always_better", "on_one_unit", "over_cut_most",
    "over_four_most", "whose_best_is_gpu", "whose_best_is_gpu_at",
]  # fmt: skip

HERALD_AND_H2H = ("Herald-like", "H2H-like")


def over_four_most(contention: str, of: tuple[int, ...] = SCENARIO_2) -> float:
    """How much longer than the result the best of four baselines is, most of these, as a fraction."""
    return max(1 / (1 - on_setup(n, contention).over_four) - 1 for n in of)


def over_cut_most(contention: str) -> float:
    """The same with Herald's and H2H's networks cut everywhere, and nothing else changed."""
    most = 0.0
    for n in SCENARIO_2:
        one = on_setup(n, contention)
        naive = one.found.cost / (1 - one.gain)
        rivals = (divided_rival(n, who, MOST, contention).ms for who in ("Herald", "H2H"))
        most = max(most, min(naive, *rivals) / one.found.cost - 1)
    return most


def whose_best_is_gpu(network: str, contention: str) -> int:
    """Of a network's ten pairs of Table 8, those whose best baseline is the GPU alone."""
    at = TEN.index(network)
    cells = [(max(at, n), min(at, n)) for n in range(len(TEN))]
    return sum(on_orin(i, j, contention).best_of_theirs.name == "gpu alone" for i, j in cells)


def whose_best_is_gpu_at(network: str, factor: float) -> int:
    """The same under `light` times a factor."""
    at = TEN.index(network)
    count = 0
    for n in range(len(TEN)):
        times = baselines_at(max(at, n), min(at, n), factor)
        theirs = {name: time for name, time in times.items() if name != OWN}
        count += min(theirs, key=lambda name: theirs[name]) == "gpu alone"
    return count


def on_one_unit(number: int, contention: str) -> bool:
    """Whether the result of an experiment runs everything on the GPU."""
    return set(units_of(on_setup(number, contention).found)) <= set("G, ")


def not_always_better(contention: str) -> int:
    """Of Fig. 5's ten networks, those whose two copies are slower on GPU & DLA than on the GPU alone."""
    count = 0
    for name in TEN:
        found = side_by_side("orin-agx", name, name, contention)
        gpu, both = found.baseline(THREE[0]), found.baseline(THREE[1])
        count += gpu is not None and both is not None and both > gpu
    return count


def mensa_gains(contention: str) -> float:
    """Fig. 5: the most that Mensa-like gains over the GPU alone, as a fraction."""
    gains = []
    for name in TEN:
        found = side_by_side("orin-agx", name, name, contention)
        gpu, mensa = found.baseline(THREE[0]), found.baseline(THREE[2])
        if gpu is not None and mensa is not None:
            gains.append(gpu / mensa - 1)
    return max(gains)


def best_concurrent_of_5(contention: str) -> tuple[float, float]:
    """Experiment 5: ms of the best of the baselines that use both units, and of the GPU alone."""
    found = on_setup(5, contention).found
    both = [found.baseline(name) for name in ("whole networks", *HERALD_AND_H2H)]
    gpu = found.baseline("gpu alone")
    assert gpu is not None
    return min(time for time in both if time is not None), gpu


DIFFERENT = (1, 6)
"""The same networks on Xavier and on Orin."""
