"""Operators that run again: a network in which some of them stand several times, and the one that it means.

A tensor that is read in two distant places is stored and fetched, or kept; or its operator runs again for the
second place. A plan says so in its network: an operator that `repeats` another one computes the same values
from the same operands, or from repeats of these, and writes tensors of its own. Its readers name the tensors
that they read. So all laws hold of a repeat as of any operator, and what it costs, its weights and its work,
is counted as it runs. Without the repeats, and with the original tensors in place of theirs, the network is
that of the model.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from onchip.network.operators import Operator, Tensor, View

if TYPE_CHECKING:
    from onchip.network.network import Network

__all__ = ["Folded", "folded", "has_repeats", "repeated", "why_no_repeat"]


@dataclass(frozen=True)
class Folded:
    """A network without repeats, and by id in the other one what each operator and tensor is in it."""

    network: Network
    operators: tuple[int, ...]
    tensors: tuple[int, ...]


def has_repeats(network: Network) -> bool:
    """Return whether an operator of a network runs again."""
    return any(op.repeats is not None for op in network.operators)


def folded(network: Network) -> Folded:
    """Return the network that a network with repeats means: the same one if nothing repeats.

    The repeats must be such (`why_no_repeat`).
    """
    tensors, kept = network.tensors, [op for op in network.operators if op.repeats is None]
    if len(kept) == len(network.operators):
        return Folded(network, tuple(range(len(kept))), tuple(range(len(tensors))))
    meant = _meant(network)
    alike = [t for t in tensors if meant[t.id] == t.id]
    new = {t.id: n for n, t in enumerate(alike)}
    at = {op.id: n for n, op in enumerate(kept)}
    made = replace(
        network,
        tensors=tuple(replace(t, id=new[t.id]) for t in alike),
        operators=tuple(
            replace(
                op,
                id=at[op.id],
                inputs=tuple(new[meant[t]] for t in op.inputs),
                outputs=tuple(new[t] for t in op.outputs),
            )
            for op in kept
        ),
        outputs=tuple(new[t] for t in network.outputs),
        views=tuple(View(new[v.tensor], new[v.of], v.offset) for v in network.views),
    )
    return Folded(
        made,
        tuple(at[op.id if op.repeats is None else op.repeats] for op in network.operators),
        tuple(new[meant[t.id]] for t in tensors),
    )


def why_no_repeat(network: Network) -> tuple[str, str] | None:
    """Return the first operator that repeats nothing, or reads what it may not, and the reason; None if all
    is well.

    A repeat has all figures of its original, and reads, in the same places, what that reads or repeats of it.
    It writes as many tensors of the same sizes; they hold no view, are none and are no output, and neither
    do the tensors of its original hold views. No operator reads a tensor and a repeat of it.
    """
    meant = _meant(network)
    for op in network.operators:
        if len({meant[t] for t in op.inputs}) < len(op.inputs):
            return op.name, "reads a tensor and a repeat of it"
        if op.repeats is not None and (reason := _differs(network, op, network.operators[op.repeats], meant)):
            return op.name, reason
    return None


def _meant(network: Network) -> list[int]:
    """Return by tensor the one that it repeats: itself if none."""
    meant = list(range(len(network.tensors)))
    for op in network.operators:
        if op.repeats is not None:
            for t, of in zip(op.outputs, network.operators[op.repeats].outputs, strict=False):
                meant[t] = of
    return meant


def _differs(network: Network, op: Operator, of: Operator, meant: Sequence[int]) -> str:
    """Return why an operator is no repeat of another; empty if it is."""
    names = [t.name for t in network.tensors]
    for key in ("type", "weight_bytes", "workspace", "geometry", "macs", "reach"):
        if getattr(op, key) != getattr(of, key):
            return f"repeats {of.name}, and its {key} is another one"
    if len(op.inputs) != len(of.inputs) or len(op.outputs) != len(of.outputs):
        return f"repeats {of.name}, and has another number of operands"
    for t, other in zip(op.inputs, of.inputs, strict=True):
        if meant[t] != meant[other]:
            return f"repeats {of.name}, and reads {names[t]} where that reads {names[other]}"
    apart = {v.tensor for v in network.views} | {v.of for v in network.views}
    for t, other in zip(op.outputs, of.outputs, strict=True):
        if _plain(network.tensors[t]) != _plain(network.tensors[other]):
            return f"repeats {of.name}, and {names[t]} has another size or shape than {names[other]}"
        if t in network.outputs:
            return f"repeats {of.name}, and {names[t]} is an output of the network"
        if t in apart or other in apart:
            return f"repeats {of.name}, and {names[t if t in apart else other]} is, or holds, a view"
    return ""


def _plain(tensor: Tensor) -> Tensor:
    return replace(tensor, id=0, name="")


def repeated(network: Network, operators: Collection[str], readers: Collection[str]) -> Network:
    """Return a network in which `operators` run once more, for `readers` alone: these read the new tensors.

    The new ones read what the originals read, or each other's tensors, and stand before the first reader.
    What they repeat may itself be a repeat. Raises `ValueError` where a tensor is, or holds, a view.
    """
    again = [op for op in network.operators if op.name in operators]
    meant, apart = _meant(network), {v.tensor for v in network.views} | {v.of for v in network.views}
    known = {op.name for op in network.operators} | {t.name for t in network.tensors}

    def fresh(name: str) -> str:
        n = 1
        while (made := f"{name}.again{n if n > 1 else ''}") in known:
            n += 1
        known.add(made)
        return made

    tensors, copy = list(network.tensors), dict[int, int]()
    for t in (t for op in again for t in op.outputs):
        if t in apart:
            raise ValueError(f"{tensors[t].name} is, or holds, a view")
        copy[t] = len(tensors)
        tensors.append(replace(tensors[t], id=len(tensors), name=fresh(tensors[meant[t]].name)))

    def run_again(op: Operator) -> Operator:
        of = op.id if op.repeats is None else op.repeats
        inputs, outputs = (tuple(copy.get(t, t) for t in some) for some in (op.inputs, op.outputs))
        name = fresh(network.operators[of].name)
        return replace(op, id=-1, name=name, inputs=inputs, outputs=outputs, repeats=of)

    rows: list[Operator] = []
    first = min(op.id for op in network.operators if op.name in readers)
    for op in network.operators:
        if op.id == first:
            rows += map(run_again, again)
        if op.name in readers:
            op = replace(op, inputs=tuple(copy.get(t, t) for t in op.inputs))
        rows.append(op)
    new = {op.id: n for n, op in enumerate(rows)}
    return replace(
        network,
        tensors=tuple(tensors),
        operators=tuple(
            replace(op, id=n, repeats=None if op.repeats is None else new[op.repeats])
            for n, op in enumerate(rows)
        ),
    )
