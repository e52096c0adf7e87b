"""Algorithms 4 to 6 for one module: its branches one after the other, with I or II.

With I the module's output grows on chip, branch by branch (the occupied MOFM), and is handed on. With II the
last layer of every branch sends its output to DRAM, so that nothing but the module's input is held.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from onchip.planners.branches.memory import Memory
from onchip.planners.branches.modules import Branch, Module
from onchip.planners.branches.reorder import Orders

__all__ = ["Way", "process"]


@dataclass(frozen=True)
class Way:
    """A way to process a module: `hold` its input on chip throughout, or stream it into every branch.

    With `early` the input is freed after its last reader, and a sum may be written over it. Without `forward`
    every layer streams, as outside a module: the last resort. Without `in_place`, the parts of the output lie
    anywhere and are copied together in the end. Without `strict`, I keeps the output although something
    inside goes through DRAM.
    """

    processing: Literal["I", "II"]
    hold: bool
    order: Orders
    early: bool = False
    forward: bool = True
    in_place: bool = True
    strict: bool = True


def process(memory: Memory, module: Module, way: Way) -> None:
    """Decide every layer of the module; raises `DoesNotFit` if the way asks for more than there is.

    The input is on chip, or in DRAM. Afterwards it is on chip only if an operator outside still reads it.
    """
    if way.hold and module.start not in memory.resident:
        memory.load(module.start)
    if not way.hold and module.start in memory.resident:
        memory.let_go(module.start)
    _module(memory, module, way, (), keep=way.processing == "I")
    if module.start in memory.resident:
        memory.let_go(module.start)


def _module(memory: Memory, module: Module, way: Way, branch: tuple[int, ...], *, keep: bool) -> None:
    strict = way.strict and way.processing == "I"
    pinned = not way.early and module.start in memory.resident
    if pinned:
        memory.pinned.append(module.start)
    for place, number in enumerate(way.order[module.merge], 1):
        _branch(memory, module.branches[number], way, (*branch, place), keep=keep)
    if pinned:
        memory.pinned.remove(module.start)
    over = [t for number in reversed(way.order[module.merge]) for t in module.branches[number].outputs]
    if not way.early:
        over = [t for t in over if t != module.start]
    memory.merge(
        module.merge, branch, want=keep, strict=strict, over=over, in_place=way.in_place or bool(branch)
    )


def _branch(memory: Memory, branch: Branch, way: Way, path: tuple[int, ...], *, keep: bool) -> None:
    strict = way.strict and way.processing == "I"
    for step in branch.steps:
        if isinstance(step, Module):
            _module(memory, step, way, path, keep=keep or (way.forward and step.output not in branch.outputs))
        else:
            last = any(t in branch.outputs for t in memory.network.operators[step].outputs)
            memory.run(step, path, want=keep or (way.forward and not last), strict=strict)
