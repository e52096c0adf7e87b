"""From the steps of a search to residencies: the steps that every tensor spends in the scratchpad.

Steps count operators in the order they run: step i is the run of the i-th. A residency [start, end) begins
with the load or creation just before step `start` and ends right after step `end - 1`. It is as short as the
schedule allows: loaded for its first use, gone after its last, because bytes that nothing needs only make
packing harder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from onchip.planners.placement.problem import Problem
from onchip.planners.placement.search import Step

__all__ = ["Residency", "Schedule", "reloads_of", "traffic_of"]


@dataclass(frozen=True, slots=True)
class Residency:
    """Tensor `tensor` in the scratchpad during steps [start, end); `uses` are the steps that touch it."""

    tensor: int
    start: int
    end: int
    uses: tuple[int, ...]

    def cut(self, after: int, before: int) -> tuple[Residency, Residency]:
        """Return the two residencies of a tensor evicted after step `after` and back for `before`."""
        return (
            Residency(self.tensor, self.start, after + 1, tuple(u for u in self.uses if u <= after)),
            Residency(self.tensor, before, self.end, tuple(u for u in self.uses if u >= before)),
        )


@dataclass(frozen=True)
class Schedule:
    """An order and the residencies of every tensor that is touched, ascending in time for each tensor."""

    problem: Problem
    order: tuple[int, ...]
    residencies: tuple[Residency, ...]

    @classmethod
    def of(cls, problem: Problem, steps: Sequence[Step]) -> Schedule:
        """Return the schedule of a search's steps."""
        uses = _uses(problem, [step.operator for step in steps])
        evicted: dict[int, list[int]] = {}
        for i, step in enumerate(steps):
            for t in step.evict:
                evicted.setdefault(t, []).append(i)
        residencies = []
        for t, touched in uses.items():
            current: list[int] = []
            for use in touched:
                if current and any(current[-1] < i <= use for i in evicted.get(t, ())):
                    residencies.append(Residency(t, current[0], current[-1] + 1, tuple(current)))
                    current = []
                current.append(use)
            residencies.append(Residency(t, current[0], current[-1] + 1, tuple(current)))
        return cls(problem, tuple(step.operator for step in steps), tuple(residencies))

    @classmethod
    def nothing_kept(cls, problem: Problem, order: Sequence[int]) -> Schedule:
        """Return the schedule that evicts every tensor after each use: it always packs and costs most."""
        residencies = [
            Residency(t, use, use + 1, (use,))
            for t, touched in _uses(problem, order).items()
            for use in touched
        ]
        return cls(problem, tuple(order), tuple(residencies))

    @cached_property
    def reloads(self) -> dict[int, int]:
        """For each tensor that comes back after it left: the number of times."""
        return reloads_of(r.tensor for r in self.residencies)

    @property
    def traffic(self) -> int:
        """Non-compulsory DRAM bytes; see `traffic_of`."""
        return traffic_of(self.problem, self.reloads)

    def has_copy(self, tensor: int) -> bool:
        """Return whether every schedule has it in DRAM: true of graph inputs and outputs."""
        return _has_copy(self.problem, tensor)

    @cached_property
    def scratch(self) -> tuple[tuple[int, int], ...]:
        """(step, operator) of every operator with a workspace."""
        return tuple((i, v) for i, v in enumerate(self.order) if self.problem.workspace[v])


def reloads_of(tensors: Iterable[int]) -> dict[int, int]:
    """Return for each tensor with several residencies how often it comes back; `tensors` names one each."""
    return {t: n - 1 for t, n in Counter(tensors).items() if n > 1}


def traffic_of(problem: Problem, reloads: Mapping[int, int]) -> int:
    """Return the non-compulsory DRAM bytes: every reload, and one write of tensors without another copy."""
    return sum(problem.cost[t] * (n + (not _has_copy(problem, t))) for t, n in reloads.items())


def _has_copy(problem: Problem, tensor: int) -> bool:
    return bool((problem.graph_inputs | problem.graph_outputs) >> tensor & 1)


def _uses(problem: Problem, order: Sequence[int]) -> dict[int, list[int]]:
    """Return for each tensor the steps that make or read it, ascending."""
    uses: dict[int, list[int]] = {}
    for i, v in enumerate(order):
        for t in (*problem.inputs[v], *problem.outputs[v]):
            uses.setdefault(t, []).append(i)
    return uses
