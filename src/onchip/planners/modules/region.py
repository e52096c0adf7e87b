"""The modules of a branches plan as networks for exact placement, and the plan's traffic over them.

A region is a run of consecutive modules. As a network of its own it has the sizes of the plan, its inputs are
graph inputs and its outputs network outputs: entering tensors have a DRAM copy that costs nothing, and
leaving ones are stored for nothing. Both methods are counted so.

Concats that move nothing are free in the plan as long as their operands lie side by side. Here their readers
read the operands, wherever these lie: a relaxation, so the result of exact placement is a bound that holds
for plans with concats, too. With `copied` they are layers that copy their operands on chip instead: the
result of exact placement for that is a plan as it stands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from onchip.check.joins import plain_concat
from onchip.check.replay import Crossed, Event, Ran, events_of
from onchip.network import Geometry, Network, Operator, OperatorSpec, TensorKind, bits
from onchip.plans import Plan, Section

__all__ = ["Region", "regions"]


@dataclass(frozen=True)
class Region:
    """Consecutive modules of a plan. `workspace`: bytes of an operator whose operands are all on chip."""

    plan: Plan
    sections: tuple[Section, ...]
    workspace: Callable[[int], int]

    @property
    def modules(self) -> tuple[str, ...]:
        """The names of the modules."""
        return tuple(section.name for section in self.sections)

    @cached_property
    def network(self) -> Network:
        """The modules' operators without concats that move nothing."""
        return _network(self.plan.network, self._ran, self._free, self.workspace)

    @cached_property
    def copied(self) -> Network:
        """The same with all concats, which copy."""
        if not self._free:
            return self.network
        return _network(self.plan.network, self._ran, {}, self.workspace)

    @cached_property
    def held(self) -> Network:
        """`network` with an operator at its end that reads the last module's output, whole and on chip."""
        return _network(self.plan.network, self._ran, self._free, self.workspace, self._last)

    @cached_property
    def traffic_bytes(self) -> int:
        """The bytes that the plan moves here beyond inputs and outputs."""
        return _traffic(self.plan.network, self._events, self._free)

    @cached_property
    def strict_bytes(self) -> int:
        """The same with the last module's output, unless it is stored from a whole copy on chip."""
        return _traffic(self.plan.network, self._events, self._free, self._last)

    @cached_property
    def _events(self) -> tuple[Event, ...]:
        first, end = self.sections[0].first, self.sections[-1].end
        return tuple(event for event in events_of(self.plan) if first <= event.index < end)

    @cached_property
    def _ran(self) -> tuple[Operator, ...]:
        operators = self.plan.network.operators
        return tuple(
            operators[v] for event in self._events if isinstance(event, Ran) for v in event.unit.operators
        )

    @cached_property
    def _free(self) -> dict[int, Operator]:
        network = self.plan.network
        return {network.root[op.outputs[0]]: op for op in self._ran if plain_concat(network, op.id)}

    @cached_property
    def _last(self) -> tuple[int, ...]:
        network, merge = self.plan.network, self.sections[-1].merge
        return () if merge is None else tuple(bits(network.writes[network.operator_id[merge]]))


def regions(
    plan: Plan, workspace: Callable[[int], int], apart: Callable[[Network], bool] | None = None
) -> tuple[Region, ...]:
    """Return the runs of consecutive modules of `plan`, in order; empty if it has none.

    `workspace` gives the bytes of an operator (an id of the plan's network) whose operands are all on chip.
    A module for whose network `apart` is true is no part of a longer run.
    """
    runs: list[list[Section]] = []
    joins = False  # whether the next module may continue the last run
    for section in plan.sections:
        if section.merge is None:
            joins = False
            continue
        alone = apart is not None and apart(Region(plan, (section,), workspace).network)
        if not joins or alone:
            runs.append([])
        runs[-1].append(section)
        joins = not alone
    return tuple(Region(plan, tuple(run), workspace) for run in runs)


# -- the network -----------------------------------------------------------------------------------------


def _network(
    network: Network,
    ran: Iterable[Operator],
    free: dict[int, Operator],
    workspace: Callable[[int], int],
    last: Sequence[int] = (),
) -> Network:
    """Return the operators `ran` as a network, without concats whose outputs are `free`; `last` are held."""
    left = [op for op in ran if network.root[op.outputs[0]] not in free]
    read = {v.id: _parts(network, bits(network.reads[v.id]), free) for v in left}
    made = {t for op in left for t in bits(network.writes[op.id])}
    inside = {op.id for op in ran}
    leaving = (
        t
        for op in ran
        for t in bits(network.writes[op.id])
        if network.output_roots >> t & 1 or any(v not in inside for v in bits(network.readers[t]))
    )
    outputs = [t for t in _parts(network, leaving, free) if t in made]
    ids = dict.fromkeys((*(t for op in left for t in read[op.id]), *sorted(made)))
    name = [t.name for t in network.tensors]
    tensors: list[tuple[str, int, TensorKind]] = [
        (name[t], network.tensors[t].bytes, "activation" if t in made else "input") for t in ids
    ]
    operators = [
        OperatorSpec(
            op.name,
            op.type,
            [name[t] for t in read[op.id]],
            [name[t] for t in bits(network.writes[op.id])],
            op.weight_bytes,
            workspace(op.id),
            _flat(network, op),
        )
        for op in left
    ]
    held = _parts(network, last, free)
    if held:
        # It takes no room of its own: it may be written over the largest of its operands.
        size = max(network.tensors[t].bytes for t in held)
        tensors.append((_fresh("handed on", name), size, "activation"))
        over = Geometry("elementwise", (size,), (size,))
        names = [op.name for op in operators]
        operators.append(
            OperatorSpec(_fresh("hand on", names), "", [name[t] for t in held], [tensors[-1][0]], 0, 0, over)
        )
        outputs = [t for t in outputs if t not in held]
    return Network.build(
        "module region",
        tensors,
        operators,
        [*(name[t] for t in outputs), *((tensors[-1][0],) if held else ())],
        element="int8",  # sizes are bytes, whatever the network's element type
    )


def _fresh(name: str, taken: Iterable[str]) -> str:
    """Return a name that is not taken."""
    known = set(taken)
    while name in known:
        name += "'"
    return name


def _parts(network: Network, tensors: Iterable[int], free: dict[int, Operator]) -> list[int]:
    """Return the tensors, with those made by a free concat replaced by its operands."""
    found: dict[int, None] = {}
    for t in tensors:
        parts = _parts(network, (network.root[i] for i in free[t].inputs), free) if t in free else [t]
        found |= dict.fromkeys(parts)
    return list(found)


def _flat(network: Network, op: Operator) -> Geometry | None:
    """Return the geometry of an element-wise operator over its operands as stored, padding included.

    So it may be in place. None for any other, which promises nothing.
    """
    if op.geometry is None or op.geometry.kind != "elementwise" or len(op.outputs) != 1:
        return None
    [output] = op.outputs
    if any(network.tensors[t].patches != network.tensors[output].patches for t in op.inputs):
        return None
    return Geometry("elementwise", (network.tensors[output].bytes,), (network.tensors[output].bytes,))


# -- the traffic of the plan -----------------------------------------------------------------------------


def _traffic(
    network: Network, events: Iterable[Event], free: dict[int, Operator], whole: Sequence[int] = ()
) -> int:
    """Return the bytes that cross in the sections, without the first read of each input and the first write
    of each output; a concat and its operands are one there. For the tensors `whole` only a store of all is
    left out.
    """
    read, written, stored = Counter[int](), Counter[int](), Counter[int]()
    made, inside = set[int](), set[int]()
    for event in events:
        match event:
            case Crossed(tensor=t, bytes=n):
                (read if event.inward else written)[t] += n
                if not event.inward and event.range is not None:
                    stored[t] += n
            case Ran(unit=unit):
                inside |= set(unit.operators)
                made |= set(unit.writes)
    entering = {t for v in inside for t in bits(network.reads[v]) if t not in made}
    leaving = {
        t
        for t in made
        if network.output_roots >> t & 1 or any(v not in inside for v in bits(network.readers[t]))
    }
    must = sum(min(read[t], network.tensors[t].bytes) for t in entering)
    part_of = {p: t for t in leaving for p in (t, *_parts(network, [t], free))}
    for t in leaving:
        out = stored[t] if t in whole else sum(n for p, n in written.items() if part_of.get(p) == t)
        must += min(out, network.tensors[t].bytes)
    return sum(read.values()) + sum(written.values()) - must
