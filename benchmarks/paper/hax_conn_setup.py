"""Table 6 on the paper's set-up: in each experiment a factor for each unit, so that its two naive columns are
the paper's. What is planned then is a prediction beside the paper's result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import median

from hax_conn_cases import SETS, Beside, experiment, ms, of_experiment, percent, solved
from hax_conn_sensitivity import stronger
from hax_conn_tables import FOUR, claimed, networks_of, our_saved, paper_saved, units_of

from onchip.multi_dnn.dispatch import first_come
from onchip.multi_dnn.objective import Objective
from onchip.multi_dnn.profile import Group, Profile
from onchip.multi_dnn.published import Experiment, experiments
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.workload import Workload

__all__ = ["OnSetup", "on_setup", "paper_naive", "saved_over", "scaled", "setup", "slower", "table_6"]

TAKES_THE_REST = {5: "fcn_resnet18"}
"""A network that Table 5 lacks, and whose synthetic time leaves the paper's *GPU & DSA* out of reach: it
takes on the GPU what the others, by their tables' times, leave of *GPU only*."""
STEPS = 40
"""Halvings of the interval in which the second unit's factor is looked for."""
LEAST, MOST = 0.02, 50.0


@dataclass(frozen=True)
class OnSetup:
    """An experiment on units that are slower or faster by a factor each, and its plan."""

    row: Experiment
    factors: tuple[float, float]
    found: Beside

    @property
    def gain(self) -> float:
        """Time saved over the better of the two naive columns, as a fraction of that."""
        return saved_over(self.found, FOUR[:2])

    @property
    def over_four(self) -> float:
        """Time saved over the best of Table 6's four baselines, as a fraction of that."""
        return saved_over(self.found, FOUR)

    @property
    def off(self) -> float:
        """How far the prediction is from the paper's result, as a fraction of that."""
        return self.found.cost / self.row.ms["hax_conn"] - 1


@cache
def on_setup(
    number: int,
    contention: str,
    where: tuple[int, ...] | None = None,
    *,
    rest: bool = True,
    factor: float = 1,
) -> OnSetup:
    """A row of Table 6, counted from 1, on units as fast as the paper's.

    *GPU & DSA* is the best way to give whole networks to two units, or the one by `where`. Without `rest` no
    network takes what the others leave. `factor` is on what `light`'s memory costs, before the units are
    fitted.
    """
    row = experiments()[number - 1]
    workload = experiment(row, contention)
    if rest:
        workload = with_rest(workload, row)
    if factor != 1:
        workload = replace(workload, model=stronger(workload.soc, factor))
    gpu = row.ms["gpu_only"] / gpu_ms(workload)
    low, high = LEAST, MOST
    for _ in range(STEPS):
        middle = (low * high) ** 0.5
        if whole_networks(scaled(workload, (gpu, middle)), where) < row.ms["split"]:
            low = middle
        else:
            high = middle
    return OnSetup(row, (gpu, high), solved(scaled(workload, (gpu, high)), "latency", contention))


def scaled(workload: Workload, factors: Sequence[float]) -> Workload:
    """The workload with every time on a unit multiplied by the unit's factor.

    A group moves the same bytes as before, so that it asks for less bandwidth where it takes longer.
    """
    jobs = tuple(replace(job, profile=slower(job.profile, factors)) for job in workload.jobs)
    return replace(workload, jobs=jobs)


def slower(profile: Profile, factors: Sequence[float]) -> Profile:
    """A network with every time on a unit multiplied by the unit's factor, its bytes as before."""

    def group(one: Group) -> Group:
        times = tuple(None if ms is None else ms * k for ms, k in zip(one.ms, factors, strict=True))
        asked = tuple(gb / k for gb, k in zip(one.gb_per_second, factors, strict=True))
        return replace(one, ms=times, gb_per_second=asked)

    return replace(profile, groups=tuple(map(group, profile.groups)))


def with_rest(workload: Workload, row: Experiment) -> Workload:
    """The workload in which a network without a time takes on the GPU what the others leave of *GPU only*."""
    if row.number not in TAKES_THE_REST:
        return workload
    jobs = list(workload.jobs)
    at = [job.name for job in jobs].index(TAKES_THE_REST[row.number])
    own = jobs[at].profile.total_ms(0) or 0.0
    factor = (row.ms["gpu_only"] - (gpu_ms(workload) - own)) / own
    jobs[at] = replace(jobs[at], profile=slower(jobs[at].profile, (factor, factor)))
    return replace(workload, jobs=tuple(jobs))


def gpu_ms(workload: Workload) -> float:
    """ms of all networks on the GPU, one after the other."""
    return sum(job.profile.total_ms(0) or 0.0 for job in workload.jobs)


def whole_networks(workload: Workload, where: tuple[int, ...] | None = None) -> float:
    """ms of whole networks on two units: by `where`, or by the best way that uses both."""
    if where is not None:
        return _whole_ms(workload, where)
    count = len(workload.jobs)
    return min(_whole_ms(workload, tuple(n >> j & 1 for j in range(count))) for n in range(1, 2**count - 1))


def _whole_ms(workload: Workload, where: Sequence[int]) -> float:
    rows = [[(u,) * len(job.profile.groups)] for u, job in zip(where, workload.jobs, strict=True)]
    return Objective.LATENCY.cost_ms(simulate(workload, first_come(workload, rows)))


def saved_over(found: Beside, names: Sequence[str]) -> float:
    """Time saved over the best of some baselines, as a fraction of that."""
    return 1 - found.cost / min(cost for name in names if (cost := found.baseline(name)) is not None)


# -- the sections ----------------------------------------------------------------------------------------


def table_6() -> Iterator[str]:
    """The ten experiments on the paper's set-up: its measurements above our predictions."""
    head = "# | SoC | networks | goal | who | GPU only | GPU & DSA | Herald | H2H | result"
    yield f"| {head} | off the paper's, % | saved over the two naive, % | over all four, % | claim |"
    yield "|--:|---|---|---|---|" + "--:|" * 8 + "---|"
    for row in experiments():
        times = [row.ms[key] for key in ("gpu_only", "split", "herald", "h2h", "hax_conn")]
        cells = [*map(ms, times), "", percent(paper_naive(row)), percent(paper_saved(row)), ""]
        what = f"| {row.number} | {row.soc} | {networks_of(row)} | {row.goal} | paper | "
        yield what + " | ".join(cells) + " |"
        for contention in SETS:
            one = on_setup(row.number, contention)
            costs = [one.found.baseline(name) for name in FOUR]
            shares = [percent(share) for share in (one.off, one.gain, one.over_four)]
            cells = [*map(ms, costs), ms(one.found.cost), *shares, claimed(one.found)]
            yield f"| | | | | {contention} | " + " | ".join(cells) + " |"
    yield "\n| median, % | paper | " + " | ".join(SETS) + " |"
    yield "|---|--:|" + "--:|" * len(SETS)
    for text, numbers, theirs, ours in MEDIANS:
        printed = percent(median(theirs(experiments()[n - 1]) for n in numbers))
        cells = [percent(median(ours(on_setup(n, c)) for n in numbers)) for c in SETS]
        yield f"| {text} | {printed} | " + " | ".join(cells) + " |"
    yield "\nThe paper's layer and direction of each change of unit, and the unit of each of our groups:\n"
    yield "| # | networks | paper | " + " | ".join(SETS) + " |"
    yield "|--:|---|---|" + "---|" * len(SETS)
    for row in experiments():
        theirs_at = ", ".join(f"{at} {way}" for at, way in zip(row.layers, row.directions, strict=True))
        cells = [units_of(on_setup(row.number, contention).found) for contention in SETS]
        yield f"| {row.number} | {networks_of(row)} | {theirs_at} | " + " | ".join(cells) + " |"


def setup() -> Iterator[str]:
    """The factors, and what of the difference they and the other baselines make."""
    yield "| # | GPU | " + " | ".join(f"second unit: {c}" for c in SETS) + " |"
    yield "|--:|--:|" + "--:|" * len(SETS)
    for row in experiments():
        factors = [on_setup(row.number, c).factors for c in SETS]
        yield f"| {row.number} | {factors[0][0]:.2f} | " + " | ".join(f"{b:.2f}" for _, b in factors) + " |"
    yield "\n| experiment 5 | second unit, `light` | " + " | ".join(f"result, ms: {c}" for c in SETS) + " |"
    yield "|---|--:|" + "--:|" * len(SETS)
    yield f"| the paper | | {' | '.join([ms(experiments()[4].ms['hax_conn'])] * len(SETS))} |"
    for text, where, rest in READINGS_OF_5:
        fitted = [on_setup(5, c, where, rest=rest) for c in SETS]
        costs = " | ".join(ms(one.found.cost) for one in fitted)
        yield f"| {text} | {fitted[0].factors[1]:.2f} | {costs} |"
    heads = [f"{c}: {way}" for c in SETS for way in WAYS]
    yield "\n| median of ten, saved, % | paper | " + " | ".join(heads) + " |"
    yield "|---|--:|" + "--:|" * len(heads)
    for text, theirs, by_totals, by_setup in AGAINST:
        cells = []
        for c in SETS:
            cells.append(percent(median(by_totals(of_experiment(n, c)) for n in ALL)))
            cells.append(percent(median(by_setup(on_setup(n, c)) for n in ALL)))
        yield f"| {text} | {percent(median(map(theirs, experiments())))} | " + " | ".join(cells) + " |"


READINGS_OF_5: tuple[tuple[str, tuple[int, ...] | None, bool], ...] = (
    ("FCN-ResNet18 takes the rest; GPU & DSA is the best of whole networks (the table above)", None, True),
    ("the same; GPU & DSA is GoogleNet and ResNet152 on the DLA", (1, 1, 0), True),
    ("the same; GPU & DSA is FCN-ResNet18 on the DLA", (0, 0, 1), True),
    ("FCN-ResNet18 by its roofline; GPU & DSA is the best of whole networks", None, False),
    ("the same; GPU & DSA is GoogleNet and ResNet152 on the DLA", (1, 1, 0), False),
)
"""What else the two naive columns of experiment 5 could mean: where whole networks are, and whether the
network that Table 5 lacks takes the rest."""

WAYS = ("Table 5's times", "the set-up")
ALL = tuple(range(1, 11))
SCENARIO_2, SCENARIO_4 = (1, 2, 6, 10), (5, 8)
"""The experiments of Table 6 that section 5.2 says its sentences of."""
SEVEN = (1, 2, 3, 4, 6, 7, 8)
"""The experiments on the two NVIDIA boards whose naive columns are fitted without a rule of their own."""


def paper_naive(row: Experiment) -> float:
    """Time saved over the better of the two naive columns, in the paper's figures."""
    return 1 - row.ms["hax_conn"] / min(row.ms["gpu_only"], row.ms["split"])


Theirs = Callable[[Experiment], float]
Ours = Callable[[OnSetup], float]

AGAINST: tuple[tuple[str, Theirs, Callable[[Beside], float], Ours], ...] = (
    (
        "over GPU only and GPU & DSA",
        paper_naive,
        lambda found: saved_over(found, FOUR[:2]),
        lambda one: one.gain,
    ),
    ("over these and Herald and H2H", paper_saved, our_saved, lambda one: one.over_four),
)

MEDIANS: tuple[tuple[str, tuple[int, ...], Theirs, Ours], ...] = (
    ("saved over the two naive columns, all ten", ALL, paper_naive, lambda one: one.gain),
    ("the same, experiments 1 to 4 and 6 to 8", SEVEN, paper_naive, lambda one: one.gain),
    ("saved over all four, all ten", ALL, paper_saved, lambda one: one.over_four),
    ("distance from the paper's result, all ten", ALL, lambda row: 0.0, lambda one: abs(one.off)),
)
