"""The choice of operators that run in parts; the others pass whole through their scratch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from onchip.base.errors import InputError
from onchip.network import Operator
from onchip.run.state import State
from onchip.run.streamed.chain import Chain, chain_of
from onchip.run.streamed.kernels import Kernels
from onchip.run.streamed.maps import Map, map_of
from onchip.run.streamed.part import Part
from onchip.run.streamed.pieces import run_pieces
from onchip.run.streamed.strips import run_strips

__all__ = ["run_in_parts"]

WINDOWED = ("conv", "pool", "pad")
PIECEWISE = ("elementwise", "concat")


def run_in_parts(state: State, kernels: Kernels | None, op: Operator, streamed: Sequence[int]) -> bool:
    """Run an operator that streams maps in patches, unless all of them fit its scratch at once.

    Return False, without effect, when it has to run whole; `state.whole` then has the reason where a part
    would have sufficed. Without `kernels` no operator can be cut. Raises as the machine does; `IllegalPlan`
    when the scratch is too small for a part.
    """
    network = state.network
    reads = [t for t in streamed if t not in op.outputs]
    if not reads or any(network.tensors[t].patches is None for t in streamed):
        return False
    start, end = state.scratch.get(op.name, (0, 0))
    if sum(state.slots.slot[t] for t in streamed) <= end - start:
        return False
    if kernels is None:
        state.whole[op.name] = "models of TensorFlow Lite are not cut"
        return False
    found = _chain(state, kernels, op, reads)
    if isinstance(found, str):
        state.whole[op.name] = found
        return False
    chain, maps = found
    part = Part(state, op, chain, kernels, maps, frozenset(streamed))
    part.begin()
    if chain.kind in PIECEWISE:
        run_pieces(part)
    else:
        run_strips(part)
    part.end()
    state.in_parts.append(op.name)
    return True


def _chain(
    state: State, kernels: Kernels, op: Operator, reads: Sequence[int]
) -> tuple[Chain, dict[int, Map]] | str:
    """Return the operator taken apart, or a sentence why it cannot be."""
    slots, network = state.slots, state.network
    out = op.outputs[0]
    if out in state.parts:
        return "its output is written around what it reads"
    maps: dict[int, Map] = {}
    for t in (*op.inputs, *op.outputs):
        found = map_of(slots.shape[t], images=True)
        if found is None or slots.dtype[t].kind != "f" or slots.dtype[t] == np.float16:
            return f"{network.tensors[t].name} is no map of single precision"
        maps[t] = found
    try:
        chain = chain_of(kernels.engine, op, maps, images=True)
    except InputError as problem:
        return problem.reason
    if chain.kind in PIECEWISE:
        alike = [*reads, out, *(x for x in [state.over.get(out)] if x is not None)]
        grids = [replace(p, channels=1) for t in alike if (p := network.tensors[t].patches)]
        if network.tensors[out].patches is None or any(grid != grids[0] for grid in grids):
            return "its operands are not stored alike"
        if len(grids) < len(alike) or (chain.kind == "concat" and out in state.over):
            return "its output is written over what it reads"
        if chain.kind == "elementwise" and any(not maps[t].same_as(maps[out]) for t in alike):
            return "a streamed operand is broadcast"
        return chain, maps
    if out in state.over:
        return "its output is written over what it reads"
    if chain.kind not in WINDOWED or reads != [chain.reads[0]]:
        return "it reads more than the windows of one operand"
    others = [t for t in op.inputs if t not in reads]
    if any(not maps[t].same_as(maps[out]) for t in others):
        return "it reads another operand of another shape"
    return chain, maps
