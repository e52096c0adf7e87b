"""The acceptance sweep of co-run: every pair, objective and set of constants, and GoogleNet twice.

    python benchmarks/paper/hax_conn_acceptance.py

GoogleNet twice on Xavier from Table 2 under `light`: the GPU alone takes 4.640 ms, the result at most 3.598,
and as much as a search of every choice that uses neither dominance nor bounds. Then all 55 pairs of Table 5's
networks, on Xavier with its three sets of constants and on Orin with the same sets scaled to its peak
bandwidth (assumed), for each objective: never worse than any baseline, accepted when it is judged again from
the schedule file that a user would get, and for latency as good as the search without dominance. Exit code 1,
and a line for each violation. About a minute.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import mean, median

from hax_conn_cases import (
    ORIN,
    PAIRS,
    ROUNDING,
    SETS,
    TEN,
    WRONG,
    XAVIER,
    Beside,
    pair,
    side_by_side,
    soc_of,
    solved,
)

from onchip.multi_dnn.chains import chains_of, contention_table
from onchip.multi_dnn.dp import Pair, Rules
from onchip.multi_dnn.objective import Objective
from onchip.multi_dnn.workload import Workload

GPU_ALONE, AT_MOST = 4.640, 3.598
"""ms of GoogleNet twice under `light`."""
FRAMES, IN_FLIGHT = 12, 2
"""Of the streams whose throughput is looked at."""
BETTER = 5e-4
"""What counts as a win over the best baseline, as a fraction of it."""


@dataclass(frozen=True)
class Row:
    """All pairs on one SoC for one objective under one set of constants."""

    soc: str
    objective: Objective
    contention: str
    found: tuple[Beside, ...]
    seconds: tuple[float, ...]
    wrong: tuple[str, ...]

    @property
    def over_best(self) -> list[float]:
        return [one.result.gain for one in self.found]

    @property
    def claims(self) -> str:
        """How many results have which claim."""
        counts: dict[str, int] = {}
        for one in self.found:
            claim = one.result.solution.claim
            text = f"optimal ({claim.space})" if claim.proved else "best found"
            counts[text] = counts.get(text, 0) + 1
        return ", ".join(f"{n} {text}" for text, n in sorted(counts.items(), key=lambda item: -item[1]))


def every_choice(workload: Workload, *, bounds: bool = True) -> float:
    """ms of the best schedule by a search that knows none and leaves nothing out by dominance."""
    chains = chains_of(workload)
    assert chains is not None
    units = len(workload.soc.units)
    one = Pair(chains[0], chains[1], contention_table(workload.model, chains[0], chains[1], units), units)
    found = one.search(rules=Rules(dominance=False, bounds=bounds))
    assert found.end == "complete", found.end
    return found.value


def pairs() -> Iterator[str]:
    """The section of the page: the sweep's table, once GoogleNet twice is what it must be."""
    googlenet_twice()
    yield from lines(swept())


def swept() -> Iterator[Row]:
    """The sweep, a row at a time."""
    for soc in (XAVIER, ORIN):
        for objective in Objective:
            for contention in SETS:
                yield sweep(soc, objective, contention)


def sweep(soc: str, objective: Objective, contention: str) -> Row:
    """All pairs on one SoC."""
    found: list[Beside] = []
    seconds: list[float] = []
    wrong: list[str] = []
    for i, j in PAIRS:
        workload = pair(soc, TEN[i], TEN[j], contention)
        if objective == "latency":
            one = side_by_side(soc, TEN[i], TEN[j], contention)
        elif objective == "throughput":
            one = solved(replace(workload, frames=FRAMES, in_flight=IN_FLIGHT), objective, contention)
        else:
            one = solved(workload, objective, contention)
        seconds.append(one.seconds)
        wrong += one.wrong
        if objective == "latency" and not _same(one.cost, best := every_choice(workload)):
            pair_name = f"{soc}, {TEN[i]} and {TEN[j]}, {contention}"
            wrong.append(f"{pair_name}: {one.cost:.6f} ms, without dominance {best:.6f} ms")
        found.append(one)
    WRONG.update(dict.fromkeys(wrong))
    return Row(soc, objective, contention, tuple(found), tuple(seconds), tuple(wrong))


def googlenet_twice() -> Beside:
    """The pair that has an expected result."""
    workload = pair(XAVIER, "googlenet", "googlenet", "light")
    found = side_by_side(XAVIER, "googlenet", "googlenet", "light")
    wrong = []
    gpu = found.baseline("gpu alone")
    if gpu is None or abs(gpu - GPU_ALONE) > 5e-4:
        wrong.append(f"GPU alone takes {gpu} ms, not {GPU_ALONE}")
    if found.cost > AT_MOST:
        wrong.append(f"takes {found.cost:.4f} ms, more than {AT_MOST}")
    if not _same(found.cost, best := every_choice(workload, bounds=False)):
        wrong.append(f"takes {found.cost:.6f} ms, the search of every choice finds {best:.6f}")
    if not found.result.solution.claim.proved:
        wrong.append("is not proved")
    WRONG.update(dict.fromkeys(f"GoogleNet twice, light: {line}" for line in wrong))
    return found


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= ROUNDING * other


HEAD = (
    "| SoC | objective | contention | better than every baseline"
    " | over the best of them, %: mean | least | most | over the GPU alone, %: mean | least | most"
    " | claims | planned in, CPU ms: median | most | violations |"
)


def lines(rows: Iterator[Row]) -> Iterator[str]:
    """The table, a row as soon as it is there."""
    yield HEAD
    yield "|---|---|---|" + "--:|" * 7 + "---|" + "--:|" * 3
    for row in rows:
        soc = f"{row.soc} (assumed)" if "contention" in soc_of(row.soc).assumed else row.soc
        better = f"{sum(gain > BETTER for gain in row.over_best)} of {len(row.found)}"
        gains = (row.over_best, [one.over_gpu for one in row.found])
        cells = [f"{100 * f(gain) + 0.0:.1f}" for gain in gains for f in (mean, min, max)]
        times = [f"{1000 * f(row.seconds):.0f}" for f in (median, max)]
        yield (
            f"| {soc} | {row.objective} | {row.contention} | {better} | {' | '.join(cells)} | {row.claims} |"
            f" {' | '.join(times)} | {len(row.wrong)} |"
        )


def main() -> None:
    began = time.perf_counter()
    found = googlenet_twice()
    print("GoogleNet twice on xavier-agx from Table 2, light, ms until both are done:\n")
    for one in found.result.baselines:
        print(f"- {one.name}: {one.cost_ms(Objective.LATENCY):.3f}")
    solution = found.result.solution
    print(f"- onchip: {solution.cost_ms:.3f} ({solution.claim}; bound {solution.lower_bound_ms:.3f})\n")
    for line in lines(swept()):
        print(line, flush=True)
    print(f"\n{len(WRONG)} violations, {time.perf_counter() - began:.0f} s")
    for line in WRONG:
        print(line, file=sys.stderr)
    raise SystemExit(1 if WRONG else 0)


if __name__ == "__main__":
    main()
