"""Caches that stay on chip: the proof that each is appended to in its buffer, and stays there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onchip.base.units import MAX_BYTES
from onchip.check.pinned import root_of
from onchip.check.rules import broken
from onchip.network import Growth, Network, Rows, growth_of, rows_of
from onchip.plans import Cache, Plan

__all__ = ["HeldCache", "HeldCaches", "caches_of"]


@dataclass(frozen=True, slots=True)
class HeldCache:
    """One cache by ids: what lies in the buffer at first (None: nothing) and at last, and the buffer.

    `new` are the tensors whose rows operator `append` writes behind those of `first`.
    """

    first: int | None
    last: int
    address: int
    bytes: int
    append: int
    new: tuple[int, ...]


@dataclass(frozen=True)
class HeldCaches:
    """All caches of a plan by the tensors in their buffers, and the network outputs that must reach DRAM."""

    by_tensor: Mapping[int, HeldCache]
    outputs: frozenset[int]

    @property
    def all(self) -> tuple[HeldCache, ...]:
        """Every cache once, in the plan's order."""
        return tuple(dict.fromkeys(self.by_tensor.values()))

    def __contains__(self, tensor: int) -> bool:
        return tensor in self.by_tensor

    def grows(self, tensor: int) -> bool:
        """Return whether a tensor is of a cache that has an input."""
        return tensor in self.by_tensor and self.by_tensor[tensor].first is not None

    @property
    def inputs(self) -> frozenset[int]:
        """The graph inputs that lie on chip at the start."""
        return frozenset(c.first for c in self.all if c.first is not None)


def caches_of(plan: Plan) -> HeldCaches:
    """Return the plan's caches, proved as far as the program is not needed. Raises `Broken`."""
    network = plan.network
    if plan.caches and plan.chip.memories:
        broken("memory", "what is handed to the next inference lies in a single scratchpad")
    held: dict[int, HeldCache] = {}
    states = {name for s in plan.state for name in (s.input, s.output)}
    for cache in plan.caches:
        made = _held(network, cache)
        for t in (made.first, made.last):
            if t is None:
                continue
            if t in held or network.tensors[t].name in states:
                broken("cache", f"{network.tensors[t].name} is in two caches or states")
            held[t] = made
    appended = {t for made in held.values() for t in (made.last, *made.new)}
    left = frozenset(network.root[t] for t in network.outputs if t not in appended)
    for made in held.values():
        if made.last in left:
            broken("cache", f"a view of {network.tensors[made.last].name} is an output")
    return HeldCaches(held, left)


def _held(network: Network, cache: Cache) -> HeldCache:
    last = root_of(network, cache.output)
    maker = network.producer[last]
    if maker is None:
        broken("cache", f"{cache.output} is made by no operator")
    rows = rows_of(network, last, cache.axis)
    if not isinstance(rows, Rows):
        broken("cache", rows)
    if not rows.rows <= cache.rows or rows.room(cache.rows) > MAX_BYTES:
        broken("cache", f"{cache.output} has {rows.rows:,} rows, and its buffer room for {cache.rows:,}")
    size = rows.room(cache.rows)
    if cache.input is None:
        return HeldCache(None, last, cache.address, size, maker, ())
    first = root_of(network, cache.input)
    if not network.input_roots >> first & 1 or network.output_roots >> first & 1:
        broken("cache", f"{cache.input} is no graph input, or an output too")
    growth = growth_of(network, first, last)
    if not isinstance(growth, Growth):
        broken("cache", growth)
    if growth.axis != cache.axis:
        broken("cache", f"{cache.output} grows along axis {growth.axis}, not {cache.axis}")
    return HeldCache(first, last, cache.address, size, maker, growth.new)
