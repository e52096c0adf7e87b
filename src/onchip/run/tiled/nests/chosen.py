"""The parts that run an operator of a nest, box by box: its operands, constants' values, its kernel."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from onchip.base.errors import InputError
from onchip.network import Operator
from onchip.network.axes import Buffer, Cut
from onchip.run.state import State
from onchip.run.tiled.nests.exact import InParts, Waiting
from onchip.run.tiled.nests.forms import NotCompact
from onchip.run.tiled.nests.kernels import BoxKernel, Kernel, Source
from onchip.run.tiled.nests.online import OnlineKernel
from onchip.run.tiled.nests.sources import in_sides, sources_of
from onchip.run.tiled.nests.whole_nodes import WholeKernel

if TYPE_CHECKING:
    from onchip.run.onnx_engine import OnnxEngine

__all__ = ["constants_of", "kernel_of", "operands_of"]

Array = np.ndarray[Any, Any]


def operands_of(
    state: State, engine: OnnxEngine, op: Operator, cut: Cut, buffers: Sequence[Buffer]
) -> list[Source]:
    """Return the operands and weights of an operator, in the order of their uses.

    Raises `InputError` for elements that cannot be run in tiles.
    """
    for t in op.inputs:
        root = state.network.root[t]
        for x in (t, root):
            if state.slots.dtype[x] == np.float16 or state.slots.dtype[x].kind not in "fiub":
                raise _refused(f"its elements are {state.slots.dtype[x]}", f"tensor {state.name(x)}")
        if state.slots.dtype[t] != state.slots.dtype[root]:
            raise _refused("it is read as elements of another type", f"tensor {state.name(t)}")
    [target] = op.outputs
    if state.slots.dtype[target] == np.float16:
        raise _refused(f"its elements are {state.slots.dtype[target]}", f"tensor {state.name(target)}")
    return sources_of(engine, op, cut, buffers)


def _refused(why: str, item: str) -> InputError:
    return InputError(f"cannot be run in tiles: {why}", item=item)


def constants_of(engine: OnnxEngine, sources: Sequence[Sequence[Source]]) -> dict[int, Array]:
    """Return by buffer the values of constants in their sides; zeros for what is counted only."""
    found: dict[int, Array] = {}
    for source in (source for of in sources for source in of):
        if source.buffer.tensor is not None:
            continue
        if source.filled:
            found[source.use.buffer] = in_sides(engine.parts.constants[source.name], source.buffer)
        else:
            found[source.use.buffer] = np.broadcast_to(np.uint8(0), source.buffer.sides)
    return found


def kernel_of(
    engine: OnnxEngine,
    op: Operator,
    cut: Cut,
    output: Buffer,
    split: Collection[int],
    sources: list[Source],
    *,
    integers: bool,
) -> Kernel | OnlineKernel:
    """Return what makes an operator's boxes of axes `split` cut, sums of `integers` at once."""
    if cut.carries and set(split).intersection(cut.sums):
        return OnlineKernel(engine, op, cut, sources)

    def made(along: Collection[int]) -> Kernel:
        try:
            return BoxKernel(engine, op, cut, output, along, sources)
        except InParts:
            raise
        except NotCompact as reason:
            if set(along).intersection(cut.sums) and integers:
                raise InParts(str(reason)) from None  # made at once, of what waits for the last part
            return WholeKernel(engine, op, cut, output, along, sources)

    try:
        return made(split)
    except InParts:
        whole = set(split) - set(cut.sums)
        return Waiting(cut, set(split), output, sources, lambda: made(whole))
