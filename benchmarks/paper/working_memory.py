"""Algorithms 3 to 6 of the simple method once more, in few lines: to vary what the paper leaves open.

The paper names a working memory (WM) and gives it no size. Here its rule is a function, so that one can see
what each would give; the planner's own computation (`onchip.planners.branches`) shares nothing with this one
but the modules, the stored sizes and the partial weights. Only for modules that concats close, as those of
Inception v3 are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from onchip.network import Network, bits
from onchip.planners.branches.modules import Branch, Module
from onchip.planners.branches.sizes import Sizes

__all__ = ["RULES", "Layer", "Processed", "Rule", "processed"]


@dataclass(frozen=True)
class Rule:
    """What is copied: `working(network, operator)` bytes. With `in_order` the copy of a module's own input
    counts when its branches are ordered; the paper leaves that input itself out there. `fetched` is the part
    of the module's input that the layers that read it hold besides (Algorithm 6's IFM.Partial)."""

    title: str
    working: Callable[[Network, int], int]
    in_order: bool = False
    fetched: Fraction = Fraction(0)


@dataclass(frozen=True)
class Layer:
    """size_req and size_avail of one layer (Algorithm 6), in bytes; `branch` counts from 1, as processed."""

    operator: int
    branch: int
    required: int
    available: int


@dataclass(frozen=True)
class Processed:
    """One module: the order of its branches (from 0), how it is processed, its layers under I, the bytes
    that its branches write with II."""

    module: Module
    order: tuple[int, ...]
    processing: Literal["I", "II"]
    layers: tuple[Layer, ...]
    written: int
    writes: int

    @property
    def descends(self) -> bool:
        """Whether no branch requires more, by its hungriest layer under I, than one before it."""
        most: dict[int, int] = {}
        for layer in self.layers:
            most[layer.branch] = max(most.get(layer.branch, 0), layer.required)
        needs = list(most.values())
        return needs == sorted(needs, reverse=True)


def processed(network: Network, sizes: Sizes, module: Module, rule: Rule, memory: int) -> Processed:
    """Order, try I, else II."""
    order = tuple(sorted(range(len(module.branches)), key=lambda b: -_needs(network, sizes, module, b, rule)))
    layers: list[Layer] = []
    occupied = 0
    for place, b in enumerate(order, 1):
        branch = module.branches[b]
        layers += _branch(
            network, sizes, branch, rule, memory - _bytes(network, [module.start]), occupied, place
        )
        occupied += _bytes(network, branch.outputs)
    part = int(_bytes(network, [module.start]) * rule.fetched)
    layers = [
        replace(one, required=one.required + part) if network.reads[one.operator] >> module.start & 1 else one
        for one in layers
    ]
    fits = all(layer.required <= layer.available for layer in layers)
    sent = [t for branch in module.branches for t in branch.outputs if t != module.start]
    return Processed(
        module, order, "I" if fits else "II", tuple(layers), 0 if fits else _bytes(network, sent), len(sent)
    )


def _needs(network: Network, sizes: Sizes, module: Module, b: int, rule: Rule) -> int:
    """CalcSizeReqMem: what the hungriest layer of a branch needs without inputs and outputs of modules."""
    most = 0
    for v, starts, ends in _layers(module.branches[b], (module.start,), module.branches[b].outputs):
        read = [t for t in bits(network.reads[v]) if t not in starts]
        made = [t for t in bits(network.writes[v]) if t not in ends]
        copy = rule.working(network, v) if read or rule.in_order else 0
        most = max(most, _bytes(network, read) + _bytes(network, made) + copy + sizes.weights(v))
    return most


def _layers(
    branch: Branch, starts: tuple[int, ...], ends: Sequence[int]
) -> Iterator[tuple[int, tuple[int, ...], Sequence[int]]]:
    """(layer, inputs of the modules that it is in, outputs of their branches), free concats left out."""
    for step in branch.steps:
        if isinstance(step, Module):
            for inner in step.branches:
                yield from _layers(inner, (*starts, step.start), (*ends, *inner.outputs))
        else:
            yield step, starts, ends


def _branch(
    network: Network, sizes: Sizes, branch: Branch, rule: Rule, room: int, occupied: int, place: int
) -> Iterator[Layer]:
    """Layers of a branch with `room` beside the inputs of the modules, of which `occupied` is taken."""
    starts: set[int] = {t for v in branch.steps if isinstance(v, int) for t in bits(network.reads[v])}
    made = {t for v in branch.steps if isinstance(v, int) for t in bits(network.writes[v])}
    made |= {v.output for v in branch.steps if isinstance(v, Module)}
    starts -= made  # the module's own input: `room` is without it
    for step in branch.steps:
        if isinstance(step, Module):
            beside = occupied
            held = _bytes(network, [step.start]) if step.start in made else 0
            for inner in step.branches:
                yield from _branch(network, sizes, inner, rule, room - held, beside, place)
                beside += _bytes(network, inner.outputs)
            continue
        read = [t for t in bits(network.reads[step]) if t not in starts]
        need = _bytes(network, read) + _bytes(network, list(bits(network.writes[step])))
        need += rule.working(network, step) + sizes.weights(step)
        yield Layer(step, place, need, room - occupied)


def _bytes(network: Network, tensors: Sequence[int]) -> int:
    return sum(network.tensors[t].bytes for t in tensors)


# -- rules for the working memory ------------------------------------------------------------------------


def _input(network: Network, v: int) -> int:
    return network.tensors[network.operators[v].inputs[0]].bytes


def _window(network: Network, v: int) -> tuple[str, int, int]:
    """Kind, largest side and largest stride of a layer's window; sides of 1 where it has none."""
    g = network.operators[v].geometry
    return ("", 1, 1) if g is None else (g.kind, max(g.kernel, default=1), max(g.stride, default=1))


def _rows(network: Network, v: int) -> int:
    """As many rows of the input, in whole patches, as a row of output patches sees."""
    g = network.operators[v].geometry
    p = network.tensors[network.operators[v].inputs[0]].patches
    if g is None or p is None or len(g.kernel) != 2:
        return 0
    rows = g.kernel[0] + (p.height - 1) * max(g.stride, default=1)
    seen = min(-(-rows // p.height), p.grid[0])
    return p.channels * seen * p.height * p.grid[1] * p.width


def _if(kinds: str, kernel: int, stride: int) -> Callable[[Network, int], int]:
    """A copy of the whole input of layers of those kinds, with a window and a stride of at least that."""

    def working(network: Network, v: int) -> int:
        kind, k, s = _window(network, v)
        return _input(network, v) if kind in kinds.split() and k >= kernel and s >= stride else 0

    return working


RULES = {
    "none": Rule("no working memory", lambda network, v: 0),
    "rows": Rule("the rows that a row of output patches sees", _rows),
    "conv": Rule("a copy of the input of strided convolutions", _if("conv depthwise", 1, 2)),
    "pools": Rule("a copy of the input of strided pools", _if("pool", 1, 2)),
    "strided": Rule(
        "a copy of the input of every strided layer (the chip file's)", _if("conv depthwise pool", 1, 2)
    ),
    "counted": Rule(
        "the same, counted in the order of branches, too", _if("conv depthwise pool", 1, 2), in_order=True
    ),
    "fetched": Rule(
        "the same, and a quarter of the module's input where it is read (IFM.Partial)",
        _if("conv depthwise pool", 1, 2),
        in_order=True,
        fetched=Fraction(1, 4),
    ),
    "eighth": Rule(
        "the same, but an eighth",
        _if("conv depthwise pool", 1, 2),
        in_order=True,
        fetched=Fraction(1, 8),
    ),
    "conv-fetched": Rule(
        "a quarter, too, but a copy for strided convolutions alone",
        _if("conv depthwise", 1, 2),
        in_order=True,
        fetched=Fraction(1, 4),
    ),
    "all-pools": Rule("a copy of the input of every pool", _if("pool", 2, 1)),
    "all": Rule("a copy of the input of every layer with a window", _if("conv depthwise pool", 2, 1)),
}
"""By name. With strides of 2 and windows of 3 a copy of what a layer reads is a copy of its whole input."""
