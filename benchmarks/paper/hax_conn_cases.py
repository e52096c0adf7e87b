"""What HaX-CoNN ran, as workloads (Table 6, all pairs of Table 5's networks), and what it printed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement
from time import process_time

import onchip
from onchip.base.errors import OnchipError
from onchip.machines.soc import SoC
from onchip.machines.soc_file import load_soc
from onchip.multi_dnn.baselines import Baseline
from onchip.multi_dnn.check import check_stated
from onchip.multi_dnn.objective import Objective
from onchip.multi_dnn.profile import Profile
from onchip.multi_dnn.published import Experiment, experiments, googlenet, standalone
from onchip.multi_dnn.result.corunned import corunned_of
from onchip.multi_dnn.schedule_file import schedule_from_json
from onchip.multi_dnn.solve import CorunResult, SolveOptions, solve
from onchip.multi_dnn.synthetic import synthetic_profile
from onchip.multi_dnn.workload import Job, Workload

XAVIER, ORIN = "xavier-agx", "orin-agx"
SETS = ("light", "medium", "heavy")
TRIES = 3_000
"""Schedules that local search plays for each."""
ROUNDING = 1e-9
"""Costs closer than this, relatively, are the same."""

TITLES = {
    "caffenet": "CaffeNet",
    "densenet121": "DenseNet",
    "googlenet": "GoogleNet",
    "inception_resnet_v2": "Inc-res-v2",
    "inception_v4": "Inception",
    "resnet18": "ResNet18",
    "resnet50": "ResNet50",
    "resnet101": "ResNet101",
    "resnet152": "ResNet152",
    "vgg19": "VGG19",
    "alexnet": "AlexNet",
    "fcn_resnet18": "FCN-ResNet18",
}
TEN = tuple(standalone("xavier-agx"))
"""Table 5's networks, in its order and Table 8's."""

PAIRS = tuple(combinations_with_replacement(range(len(TEN)), 2))

PAPER_8: tuple[tuple[str, ...], ...] = (
    ("GPU 1.13",),
    ("GPU 1.14", "H2H 1.18"),
    ("GPU 1.06", "D/G 1.18", "GPU 1.22"),
    ("GPU 1.08", "GPU x", "D/G 1.25", "D/G 1.18"),
    ("GPU 1.10", "GPU 1.15", "GPU 1.15", "D/G 1.06", "H2H 1.05"),
    ("GPU x", "D/G 1.14", "G/D 1.13", "D/G 1.32", "GPU 1.19", "GPU 1.23"),
    ("GPU x", "D/G 1.21", "H2H 1.06", "GPU 1.16", "GPU 1.11", "GPU 1.06", "GPU 1.17"),
    ("GPU 1.11", "G/D 1.05", "G/D 1.08", "D/G 1.19", "GPU 1.08", "D/G 1.24", "GPU 1.11", "GPU 1.09"),
    ("GPU 1.09", "G/D 1.08", "G/D 1.17", "GPU 1.14", "Her. 1.07", "D/G 1.18", "H2H 1.09",
     "GPU 1.08", "GPU 1.18"),
    ("GPU x", "GPU 1.11", "GPU 1.04", "GPU x", "GPU x", "GPU 1.08", "GPU x", "GPU x", "GPU x", "GPU x"),
)  # fmt: skip
"""Table 8 of the paper: the best baseline and the gain over it; x is none."""

OWN = "contention-blind"
"""The baseline that the paper does not have: the best order and mapping for a memory without contention."""


def ms(value: float | None, digits: int = 2) -> str:
    """A time in a table; nothing where there is none."""
    return "" if value is None else f"{value:,.{digits}f}"


def percent(fraction: float) -> str:
    """A fraction in a table."""
    return f"{100 * fraction + 0.0:.1f}"


@cache
def soc_of(name: str) -> SoC:
    return load_soc(name)


@cache
def profile_of(network: str, soc: str) -> Profile:
    """Table 2 where it applies, else synthetic."""
    if (network, soc) == ("googlenet", "xavier-agx"):
        return googlenet()
    return synthetic_profile(onchip.load(f"zoo:{network}").network, soc_of(soc))


def pair(
    soc: str,
    first: str,
    second: str,
    contention: str,
    *,
    iterations: tuple[int, int] = (1, 1),
) -> Workload:
    second_name = second if second != first else f"{second} #2"
    jobs = (
        Job(first, profile_of(first, soc), iterations[0]),
        Job(second_name, profile_of(second, soc), iterations[1]),
    )
    return Workload(soc_of(soc), jobs, soc_of(soc).model(contention))


def balanced(soc: str, first: str, second: str) -> tuple[int, int]:
    """Table 8's iterations: the faster one runs as often as fits into the other's time, on the GPU."""
    a, b = (profile_of(name, soc).total_ms(0) or 0.0 for name in (first, second))
    return (1, max(1, round(a / b))) if a >= b else (max(1, round(b / a)), 1)


def experiment(row: Experiment, contention: str) -> Workload:
    """A row of Table 6: chains side by side.

    Scenario 3, a pair in series on a stream, is such a pair, too: in every period the second network works on
    the frame that the first one had in the period before, so that the period is the pair's time.
    """
    soc, jobs = soc_of(row.soc), []
    for chain in row.chains:
        for n, name in enumerate(chain):
            jobs.append(Job(name, profile_of(name, row.soc), 1, chain[n - 1 : n] if n else ()))
    return Workload(soc, tuple(jobs), soc.model(contention))


@dataclass(frozen=True)
class Beside:
    """A result, the baselines split into the paper's and the one that is ours, what is wrong with it, and the
    CPU seconds that it took."""

    result: CorunResult
    wrong: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def cost(self) -> float:
        return self.result.solution.cost_ms

    @property
    def objective(self) -> Objective:
        return self.result.solution.objective

    def baseline(self, name: str) -> float | None:
        for one in self.result.baselines:
            if one.name == name:
                return one.cost_ms(self.objective)
        return None

    @property
    def best_of_theirs(self) -> Baseline:
        theirs = [one for one in self.result.baselines if one.name != OWN]
        return min(theirs, key=lambda one: one.cost_ms(self.objective))

    @property
    def saved(self) -> float:
        """Time saved over the best of the paper's baselines, as a fraction of that."""
        return 1 - self.cost / self.best_of_theirs.cost_ms(self.objective)

    @property
    def over_gpu(self) -> float:
        """Time saved over the GPU alone, which runs every network, as a fraction of that."""
        gpu = self.baseline("gpu alone")
        assert gpu is not None
        return 1 - self.cost / gpu


WRONG: dict[str, None] = {}
"""What was wrong with any result, in the order in which it was found: there must be nothing."""


def solved(workload: Workload, objective: Objective | str = "latency", contention: str = "") -> Beside:
    """The planner's result, held against the baselines and judged again from the file that a user gets."""
    began = process_time()
    result = solve(workload, objective, SolveOptions(tries=TRIES))
    seconds = process_time() - began
    name = (
        f"{workload.soc.name}, {' and '.join(job.name for job in workload.jobs)}, {objective}, {contention}"
    )
    wrong = tuple(f"{name}: {why}" for why in violations(result, contention))
    WRONG.update(dict.fromkeys(wrong))
    return Beside(result, wrong, seconds)


def violations(result: CorunResult, contention: str) -> Iterator[str]:
    """Why a result is not to be had: a baseline is better, or the check of schedule files refuses it."""
    objective = result.solution.objective
    if result.solution.cost_ms > result.best_baseline.cost_ms(objective) * (1 + ROUNDING):
        yield f"{result.solution.cost_ms:.4f} ms, {result.best_baseline.name} is better"
    try:
        check_stated(schedule_from_json(corunned_of(result, contention).to_json().encode(), "the schedule"))
    except OnchipError as refused:
        yield str(refused)


@cache
def side_by_side(
    soc: str, first: str, second: str, contention: str, iterations: tuple[int, int] = (1, 1)
) -> Beside:
    """Two networks for latency; several tables ask for the same."""
    return solved(pair(soc, first, second, contention, iterations=iterations), "latency", contention)


@cache
def of_experiment(number: int, contention: str) -> Beside:
    """A row of Table 6, counted from 1, for latency of the slower chain."""
    return solved(experiment(experiments()[number - 1], contention), "latency", contention)
