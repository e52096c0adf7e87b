"""All networks in which operators run again, and the least traffic of whole operators by elementary moves.

The networks: every operator at most once more, every reader of what it makes with the one or the other. The
moves: load, store, run, drop, each operator at most twice, on the model's network alone.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product
from random import Random

from onchip.network import Network, Operator, bits
from onchip.network.repeats import why_no_repeat
from oracles.fusion_cases import Shape, shaped

__all__ = ["barrier_maps", "least_with_reruns", "with_any_repeats"]


def with_any_repeats(network: Network) -> Iterator[Network]:
    """Every network in which some operators run once more, each of the two read by someone."""
    ids = [op.id for op in network.operators]
    for count in range(len(ids) + 1):
        for again in combinations(ids, count):
            yield from _with(network, again)


def _with(network: Network, again: tuple[int, ...]) -> Iterator[Network]:
    tensors, copy = list(network.tensors), dict[int, int]()
    for v in again:
        for t in network.operators[v].outputs:
            copy[t] = len(tensors)
            tensors.append(replace(tensors[t], id=copy[t], name=f"{tensors[t].name}+"))
    rows: list[Operator] = list(network.operators)
    for v in again:
        op = network.operators[v]
        outputs = tuple(copy[t] for t in op.outputs)
        rows.append(replace(op, id=len(rows), name=f"{op.name}+", outputs=outputs, repeats=v))
    places = [(op.id, i) for op in rows for i, t in enumerate(op.inputs) if t in copy]
    for choice in product((False, True), repeat=len(places)):
        other = [list(op.inputs) for op in rows]
        for (v, i), second in zip(places, choice, strict=True):
            if second:
                other[v][i] = copy[other[v][i]]
        read = {t for inputs in other for t in inputs}
        if not all(t in read or t in network.outputs for op in rows for t in op.outputs):
            continue  # for nothing
        made = replace(
            network,
            tensors=tuple(tensors),
            operators=tuple(replace(op, inputs=tuple(own)) for op, own in zip(rows, other, strict=True)),
        )
        if len(made.order) == len(rows) and why_no_repeat(made) is None:
            yield made


def least_with_reruns(network: Network, budget: int) -> int | None:
    """The least bytes beyond compulsory ones, weights of second runs included; None if nothing fits.

    Operators run whole. A shortest path over (times that each ran, tensors on chip, copies in DRAM, outputs
    and inputs whose compulsory passage is over).
    """
    size = [t.bytes for t in network.tensors]
    outputs, inputs = network.output_roots, network.input_roots
    count = len(network.operators)
    start = ((0,) * count, 0, inputs, 0)
    best = {start: 0}
    queue: list[tuple[int, tuple[tuple[int, ...], int, int, int]]] = [(0, start)]
    while queue:
        paid, state = heapq.heappop(queue)
        if best[state] < paid:
            continue
        ran, there, copied, fetched = state
        if all(ran) and not outputs & ~copied:
            return paid
        used = sum(size[t] for t in bits(there))
        moves: list[tuple[int, tuple[tuple[int, ...], int, int, int]]] = []
        for t in bits(there):
            moves.append((0, (ran, there & ~(1 << t), copied, fetched)))
            if not copied >> t & 1:
                cost = 0 if outputs >> t & 1 else size[t]
                moves.append((cost, (ran, there, copied | 1 << t, fetched)))
        for t in bits(copied & ~there):
            if used + size[t] <= budget:
                first = inputs >> t & 1 and not fetched >> t & 1
                cost = 0 if first else size[t]
                moves.append((cost, (ran, there | 1 << t, copied, fetched | (1 << t if first else 0))))
        for op in network.operators:
            made = network.writes[op.id]
            need = sum(size[t] for t in bits(made & ~there)) + op.workspace
            if ran[op.id] == 2 or network.reads[op.id] & ~there or made & there or used + need > budget:
                continue
            after = (*ran[: op.id], ran[op.id] + 1, *ran[op.id + 1 :])
            moves.append((op.weight_bytes if ran[op.id] else 0, (after, there | made, copied, fetched)))
        for more, new in moves:
            if paid + more < best.get(new, 1 << 62):
                best[new] = paid + more
                heapq.heappush(queue, (paid + more, new))
    return None


def barrier_maps(rng: Random) -> Network:
    """Three or four operators on maps: what the first ones make is read at once, and behind an operator that
    must have all of its operand."""
    high, wide = rng.choice((4, 6, 8)), rng.choice((2, 4))
    c, more = rng.choice((1, 2, 3)), rng.choice((4, 6, 12))
    k = rng.choice((1, 1, 3))
    rows: list[tuple[str, str, list[str], Shape, dict[str, int]]] = []

    def conv(name: str, read: str, channels: int, made: int, k: int) -> None:
        how = {"kernel": k, "padding": k // 2, "weights": channels * made * k * k}
        rows.append((name, "conv", [read], (made, high, wide), how))

    conv("o0", "x", c, more, k)
    if rng.random() < 0.7:
        conv("o1", "o0", more, 1, rng.choice((1, 3)))
        rows.append(("o2", "opaque", ["o1"], (1, high, wide), {}))
        last = "o2"
    else:
        rows.append(("o1", "opaque", ["o0"], (rng.choice((1, 2)), high, wide), {}))
        last = "o1"
    made = (more + rows[-1][3][0], high, wide)
    rows.append(("o3", "concat", ["o0", last], made, {}))
    return shaped("barrier", rows, (c, high, wide), 1)
