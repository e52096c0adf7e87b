"""One model at many lengths: its network and its placement problem at each, and what is alike in all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from onchip.base.errors import UsageError
from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.planners.placement import PlacementOptions, Problem, as_planned
from onchip.planners.placement.caches import Caches, read_caches, with_caches

__all__ = ["At", "Series"]


@dataclass(frozen=True)
class At:
    """A model at one length: its network as it is planned, and the problem of what is not a cache."""

    length: int
    network: Network
    problem: Problem
    caches: Caches

    @cached_property
    def structure(self) -> tuple[object, ...]:
        """The parts that networks have in common in which every plan of one means the same in the other."""
        p, n = self.problem, self.network
        names = (tuple(t.name for t in n.tensors), tuple(op.name for op in n.operators))
        parts = (
            p.inputs,
            p.outputs,
            p.graph_inputs,
            p.graph_outputs,
            p.overwrites,
            p.order,
            n.root,
            n.outputs,
        )
        return names, parts, self.caches.plan

    @property
    def rooms(self) -> tuple[int, ...]:
        """The bytes on chip of every tensor and workspace, rounded up to the alignment."""
        return (*self.problem.size, *self.problem.workspace)


class Series:
    """A model at any length, read when it is asked for and kept.

    `network_at` reads the network of a length. All lengths have buffers of one size for each cache: the
    capacity that is asked for, or what the longest needs.
    """

    def __init__(
        self,
        network_at: Callable[[int], Network],
        chip: Chip,
        budget: int,
        options: PlacementOptions,
        longest: int,
    ) -> None:
        _refuse(options)
        self.network_at, self.chip, self.budget = network_at, chip, budget
        self._known: dict[int, At] = {}
        self.options = options
        if options.state and options.capacity is None:
            network = network_at(longest)
            caches, _ = read_caches(network, options.state, None, chip.alignment_bytes)
            rows = max((cache.rows for cache in caches.plan), default=None)
            self.options = replace(options, capacity=rows)

    @property
    def read(self) -> list[int]:
        """The lengths at which the model has been read."""
        return sorted(self._known)

    def at(self, length: int) -> At:
        """Return the model at a length."""
        if length not in self._known:
            self._known[length] = self._at(length)
        return self._known[length]

    def _at(self, length: int) -> At:
        options, alignment = self.options, self.chip.alignment_bytes
        read = self.network_at(length)
        caches, rest = read_caches(read, options.state, options.capacity, alignment)
        if rest:
            raise UsageError(
                "has one size at every length: only states that grow are planned so", item="--state"
            )
        network = as_planned(read, self.chip, options)
        problem = Problem.of(network, alignment, in_place=options.in_place)
        if caches:
            problem = with_caches(network, problem, caches, given=options.order == "given")
        if options.order == "given":
            problem = problem.in_order(network.order)
        return At(length, network, problem, caches)


def _refuse(options: PlacementOptions) -> None:
    """Refuse options whose plans are not the best of a space that is the same at every length."""
    for key, allowed in (
        ("strategy", ("exact",)),
        ("objective", ("traffic",)),
        ("order", ("free", "given")),
        ("inputs", ("sensible",)),
    ):
        if getattr(options, key) not in allowed:
            said = " or ".join(allowed)
            raise UsageError(f"plans for many lengths need {said}", item=f"--{key}")
    if options.pin:
        raise UsageError("does not go with plans for many lengths", item="--pin")
