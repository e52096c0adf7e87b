"""Small workloads for the tests of co-run: drawn at random, and by hand."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from onchip.machines.soc import SoC, Unit
from onchip.multi_dnn.profile import Group, Profile
from onchip.multi_dnn.workload import Job, Workload

__all__ = ["Shared", "profiles", "soc_of", "workloads"]


@dataclass(frozen=True)
class Shared:
    """A contention model without regions: a group that asks for x beside y slows down by a share of x y."""

    strength: float = 0.01

    def slowdown(self, unit: int, requested: float, external: float) -> float:
        return 1 + self.strength * (unit + 1) * requested * external


def soc_of(units: int) -> SoC:
    return SoC("tiny", tuple(Unit(f"u{n}") for n in range(units)), 100.0, 90.0)


def _tenths(low: int, high: int) -> st.SearchStrategy[float]:
    return st.integers(low, high).map(lambda n: n / 8)


@st.composite
def profiles(draw: st.DrawFn, units: int, groups: int, name: str = "net") -> Profile:
    rows = []
    for g in range(draw(st.integers(1, groups))):
        ms: list[float | None] = draw(st.lists(_tenths(1, 24), min_size=units, max_size=units))
        if draw(st.integers(0, 7)) == 0:
            ms[draw(st.integers(0, units - 1))] = None
        if all(t is None for t in ms):
            ms[0] = 1.0
        figures = st.lists(_tenths(0, 8), min_size=units, max_size=units).map(tuple)
        moves = st.one_of(st.just((0.0,) * units), figures)
        rows.append(Group(f"g{g}", tuple(ms), draw(figures), draw(moves), draw(moves)))
    return Profile(name, "tiny", tuple(f"u{n}" for n in range(units)), tuple(rows))


@st.composite
def workloads(draw: st.DrawFn, *, jobs: int = 2, units: int = 2, groups: int = 3) -> Workload:
    """Independent networks of at most `groups` groups, one frame, under a strong contention or none."""
    model = Shared(draw(st.sampled_from([0.0, 0.1, 0.5, 2.0])))
    members = tuple(Job(f"n{j}", draw(profiles(units, groups, f"n{j}"))) for j in range(jobs))
    return Workload(soc_of(units), members, model)
