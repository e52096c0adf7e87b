"""What a `run` executes: an operator or a declared group, reduced to what it reads, writes and holds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from onchip.check.rules import broken
from onchip.network import Network, bits, mask
from onchip.plan import Group
from onchip.units import MAX_BYTES

__all__ = ["Unit", "units_of"]

MAX_FETCHED = 10**18
"""Weights fetched beyond this many bytes are a mistake, and do not fit a file's integers."""


@dataclass(frozen=True, slots=True)
class Unit:
    """An operator, or a group used like one. Tensors are ids of roots: views are gone here.

    `workspace` is what its scratch reserves, before alignment; `held` the part of it that is taken already
    (by inner tensors, resident weights), so that the rest is there for streamed pieces; `weights` the bytes
    of weights that its run fetches.
    """

    name: str
    operators: tuple[int, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    inner: tuple[int, ...]
    workspace: int
    held: int
    weights: int
    group: bool


def units_of(
    network: Network,
    groups: Sequence[Group],
    *,
    alignment: int,
    weights_resident: bool,
    pinned: Collection[int] = (),
) -> dict[str, Unit]:
    """Every unit by name: the groups, and the operators in none. Raises `Broken` for a bad group.

    `pinned` are operators whose weights are on chip throughout: they fetch none and hold none in a scratch.
    """
    member: dict[int, str] = {}
    units: dict[str, Unit] = {}
    for group in groups:
        if group.name in units or group.name in network.operator_id:
            broken("group-name", f"{group.name} is declared already")
        ids = _members(network, group, member)
        units[group.name] = _group_unit(network, group, ids, alignment, weights_resident)
    for op in network.operators:
        if op.id not in member:
            reads, writes = tuple(bits(network.reads[op.id])), tuple(bits(network.writes[op.id]))
            weights = 0 if op.id in pinned else op.weight_bytes
            held = min(weights, op.workspace) if weights_resident else 0
            units[op.name] = Unit(op.name, (op.id,), reads, writes, (), op.workspace, held, weights, False)
    return units


def _members(network: Network, group: Group, member: dict[int, str]) -> tuple[int, ...]:
    if not group.operators or len(set(group.operators)) < len(group.operators) or group.subgroups < 1:
        broken("group-members", f"group {group.name} is empty, names an operator twice or has no subgroup")
    for name in group.operators:
        op = network.operator_id.get(name)
        if op is None:
            broken("unknown-operator", f"group {group.name} names {name}, which the network does not have")
        if op in member:
            broken("group-overlap", f"{name} is in group {member[op]} and in group {group.name}")
        member[op] = group.name
    return tuple(network.operator_id[name] for name in group.operators)


def _group_unit(
    network: Network, group: Group, ids: tuple[int, ...], alignment: int, weights_resident: bool
) -> Unit:
    inside = mask(ids)
    _convex(network, group, inside)
    written = read = 0
    for op in ids:
        written |= network.writes[op]
        read |= network.reads[op]
    inner = tuple(
        t
        for t in bits(written & read & ~network.output_roots)
        if not network.readers[t]
        & ~inside  # an output that nothing reads leaves the group, like one read outside
    )
    weights = _fetched(network, group, ids)
    if group.tiling is not None:
        broken("group-unproved", f"group {group.name} runs in tiles, and nothing is proved of them yet")
    if group.subgroups > 1:
        broken("group-unproved", f"group {group.name} runs in {group.subgroups} subgroups; only 1 is proved")
    resident = {network.operator_id[name] for name in group.resident_weights}
    need = sum(-(-network.tensors[t].bytes // alignment) * alignment for t in inner)
    need += sum(network.operators[op].weight_bytes for op in resident)
    # With resident weights a workspace includes them: those of `resident` are counted already.
    need += max(
        network.operators[op].workspace
        - (network.operators[op].weight_bytes if weights_resident and op in resident else 0)
        for op in ids
    )
    if not need <= group.scratch_bytes <= MAX_BYTES:
        broken("group-scratch", f"group {group.name} states {group.scratch_bytes:,} bytes and needs {need:,}")
    return Unit(
        group.name,
        ids,
        tuple(bits(read & ~written)),
        tuple(bits(written & ~mask(inner))),
        inner,
        group.scratch_bytes,
        need,
        weights,
        True,
    )


def _fetched(network: Network, group: Group, ids: Iterable[int]) -> int:
    """Bytes of weights that a group fetches: each operator's as often as it is refilled."""
    refills: Mapping[str, int] = dict(group.refills)
    names = set(group.operators)
    wrong = [name for name in (*refills, *group.resident_weights) if name not in names]
    wrong += [name for name, times in group.refills if times < 1]
    wrong += [name for name in group.resident_weights if refills.get(name, 1) != 1]
    total = sum(network.operators[op].weight_bytes * refills.get(network.operators[op].name, 1) for op in ids)
    if wrong:
        broken("group-weights", f"group {group.name}: {wrong[0]} cannot be refilled or kept so")
    if total > MAX_FETCHED:
        broken("group-weights", f"group {group.name} fetches an absurd {total:,} bytes")
    return total


def _convex(network: Network, group: Group, inside: int) -> None:
    """Refuse when some operator outside depends on the group and the group on it."""
    after = 0  # operators outside that depend on a member, found in topological order
    for op in network.order:
        before = network.predecessors[op]
        if inside >> op & 1:
            if before & after:
                through = network.operators[next(bits(before & after))].name
                broken(
                    "group-not-convex", f"a path leaves group {group.name}, passes {through} and comes back"
                )
        elif before & (inside | after):
            after |= 1 << op
