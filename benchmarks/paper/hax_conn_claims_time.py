"""HaX-CoNN's sentences on how long searches take, and profiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from time import process_time

from hax_conn_cases import TEN, XAVIER, soc_of
from hax_conn_claim import WITHIN, Claim, always, within
from hax_conn_overhead import PAPER_7, overhead
from hax_conn_rivals import long_pair
from hax_conn_setup import ALL, on_setup
from hax_conn_timed import long_network

import onchip
from onchip.multi_dnn.baselines import h2h, herald
from onchip.multi_dnn.dp import PairOptions, solve_pair
from onchip.multi_dnn.synthetic import synthetic_profile
from onchip.multi_dnn.workload import Workload

__all__ = ["of_time"]


def of_time() -> Iterator[Claim]:
    yield Claim(
        "time to the optimal schedule, most of Table 6",
        "3 s in most",
        lambda c: _under(max(process_of(solve_pair, c, n) for n in ALL)),
        within(lambda cell: cell.startswith("under 1 ")),
        "by [a search over events](#planning-time-beside-z3); Z3 itself takes 0.2 to 5 CPU s on nine, without"
        " contention, and proves few groups with true overlaps; the printed averages were not given to it",
    )
    yield Claim(
        "the same for 985 layers; here ten groups in 985 equal pieces",
        "10 s",
        lambda _: _long_one(),
        lambda ours: f"a schedule: {WITHIN}; the optimum: no",
        "what is found is not proved; by the row below the network falls into far fewer groups",
    )
    yield Claim(
        "the same for this network in the groups that it has, beside GoogleNet",
        "10 s",
        lambda c: _under(process_of_long(c)),
        within(lambda cell: cell.startswith("under 1 ")),
        "proof included, by a search over events; [Z3](#planning-time-beside-z3) takes a minute without"
        " contention",
    )
    yield Claim(
        "profiling a network takes",
        "up to 3, 10 and 15 min",
        lambda _: _under(max(map(_profiling, TEN))),
        lambda ours: "not tried",
        "there each network is run on a board; here nothing is: a profile is computed from shapes and scaled"
        " to Table 5's times",
    )
    yield Claim(
        "Herald and H2H search for",
        "over 10 s",
        lambda c: _under(max(process_of(rule, c) for rule in (herald, h2h))),
        always(lambda cell: not cell.startswith("under")),
        "not explained: [every change judged in Python](#planning-time-beside-z3) and a layer a group, two"
        " changes, take over 10 s",
    )
    yield Claim(
        "a search costs the networks, %: most of twelve, at 1 GB/s of traffic",
        "2",
        lambda c: f"{100 * max(overhead(name, c, 1.0) for name in PAPER_7):.2f}",
        lambda ours: "not explained",
        "1 GB/s is assumed: for the paper's figures it takes 8.6 to more than 40 under `light`; [measured]"
        "(#table-7-what-the-search-costs-others) for three networks on this machine 1 % at most with idle"
        " priority, 3 to 88 at ordinary priority",
    )
    yield Claim(
        "schedules improve while networks change: s to the optimum",
        "1.3 to 5.8",
        lambda c: _under(max(process_of(solve_pair, c, n) for n in (1, 2, 5))),
        within(lambda cell: cell.startswith("under")),
        "[in milliseconds](#fig-7-three-changes-of-networks), proof included",
    )


DECADES = (1.0, 10.0)


def _under(seconds: float) -> str:
    """The power of ten that a time is under: a time by itself is the machine's."""
    return next((f"under {most:g} s" for most in DECADES if seconds < most), f"over {DECADES[-1]:g} s")


def process_of(search: Callable[[Workload], object], contention: str, number: int = 1) -> float:
    """CPU seconds of a search on an experiment of Table 6."""
    workload = on_setup(number, contention).found.result.solution.timeline.workload
    began = process_time()
    search(workload)
    return process_time() - began


@cache
def _long_one() -> str:
    """Time for 985 groups, and how far above its bound the schedule is."""
    began = process_time()
    found = solve_pair(long_pair(985), options=PairOptions(prove=False))
    return f"{_under(process_time() - began)}, {100 * found.gap:.1f} % above its bound"


def process_of_long(contention: str) -> float:
    """CPU seconds to the proof for Inc-res-v2, cut wherever one tensor crosses, beside GoogleNet."""
    workload = long_network(contention)
    began = process_time()
    found = solve_pair(workload)
    assert found.ended == "complete"
    return process_time() - began


def _profiling(network: str) -> float:
    """CPU seconds of reading a network of the zoo and computing its profile."""
    began = process_time()
    synthetic_profile(onchip.load(f"zoo:{network}").network, soc_of(XAVIER))
    return process_time() - began
