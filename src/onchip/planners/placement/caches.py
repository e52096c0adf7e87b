"""Caches that stay on chip from one inference to the next and grow (`--state` of different sizes).

Their buffers lie at the bottom of the scratchpad, one after the other, and belong to them throughout. So the
searches plan the rest in the room above: whatever stays throughout can be moved there, because a range
beside it never crosses it. The operator that appends reads what is new and writes nothing; a tensor of no
bytes stands for the cache, so that its readers run afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from onchip.base.errors import Infeasible, UsageError
from onchip.network import Growth, Network, bits, growth_of, rows_of
from onchip.planners.placement.pinning import Pinning
from onchip.planners.placement.problem import Problem
from onchip.planners.placement.program import Placed
from onchip.planners.placement.strategy import Answer
from onchip.plans import Cache

__all__ = ["Caches", "lowered", "matching", "raised", "read_caches", "with_caches"]


SHOWN = 4
"""The most caches that a refusal names one by one."""


@dataclass(frozen=True)
class Caches:
    """The caches in their places: `plan` as the plan states them, `ids` as (input or None, output) tensors.

    `append` are the operators that write each, `new` what they put behind the input, as tensors; `bytes` the
    room of all buffers, and `names` their tensors with the bytes of each, for messages.
    """

    plan: tuple[Cache, ...] = ()
    ids: tuple[tuple[int | None, int], ...] = ()
    append: tuple[int, ...] = ()
    new: frozenset[int] = frozenset()
    bytes: int = 0
    names: tuple[tuple[str, int], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.plan)

    @property
    def at(self) -> dict[int, tuple[int, int | None]]:
        """For each output of a cache its address, and its input."""
        return {last: (c.address, first) for c, (first, last) in zip(self.plan, self.ids, strict=True)}

    def outputs(self, network: Network) -> int:
        """Return the bitset of root tensors that must reach DRAM although caches stay on chip."""
        kept = {last for _, last in self.ids} | self.new
        found = 0
        for t in network.outputs:
            if t not in kept:
                found |= 1 << network.root[t]
        return found

    def misfit(self, no: Infeasible, has: int) -> Infeasible:
        """Return a refusal of the rest as one of the whole, which names the caches."""
        shown, rest = self.names[:SHOWN], self.names[SHOWN:]
        if rest:
            shown = (*shown, (f"{len(rest)} more caches", sum(size for _, size in rest)))
        return no.but(needs=no.needs + self.bytes, has=has, tensors=(*shown, *no.tensors))


def matching(network: Network, states: Sequence[str]) -> tuple[str, ...]:
    """Return states with `*` written out: it stands for the same text in an input and a network output.

    Raises `UsageError` where nothing matches.
    """
    inputs = [t.name for t in network.tensors if t.kind == "input"]
    made = [t.name for t in network.tensors if network.producer[t.id] is not None]
    found: list[str] = []
    for text in states:
        first, equals, last = text.partition("=")
        plain = any(text.startswith(f"{t.name}=") for t in network.tensors)
        if not equals or plain or last.count("*") != 1 or first.count("*") != bool(first):
            found.append(text)
            continue
        if re.search(r"@[0-9]+$", last):
            raise UsageError("one address for all that a * stands for", item=f"--state {text}")
        before, behind = (first or last).split("*")
        names = inputs if first else made
        some = [
            n for n in names if len(n) >= len(before + behind) and n.startswith(before) and n.endswith(behind)
        ]
        for name in some:
            middle = name[len(before) : len(name) - len(behind)]
            other = last.replace("*", middle)
            if other not in made:
                raise UsageError(
                    f"there is an input {name}, and nothing makes {other}", item=f"--state {text}"
                )
            found.append(f"{name if first else ''}={other}")
        if not some:
            raise UsageError("names no tensors that the network has", item=f"--state {text}")
    return tuple(found)


def read_caches(
    network: Network, states: Sequence[str], capacity: int | None, alignment: int
) -> tuple[Caches, tuple[str, ...]]:
    """Return the caches among the states INPUT=OUTPUT and =OUTPUT, and the other states.

    A cache's output is its input with new rows behind it, or it has no input. The buffer has room for
    `capacity` rows, without one for those of the output. Raises `UsageError` naming the text.
    """
    rest: list[str] = []
    caches: list[Cache] = []
    ids: list[tuple[int | None, int]] = []
    append: list[int] = []
    new: set[int] = set()
    names: list[tuple[str, int]] = []
    at = 0
    for text in matching(network, states):
        item = f"--state {text}"
        pair = _grown(network, text)
        if pair is None and _grown(network, re.sub(r"@[0-9]+$", "", text)) is not None:
            raise UsageError("caches lie at the bottom, as they are named: no address is taken", item=item)
        if pair is None:
            rest.append(text)
            continue
        first, last = pair
        if any(t in old for old in ids for t in pair if t is not None):
            raise UsageError("a tensor is in two states", item=item)
        maker, axis = _growth(network, first, last, new, item)
        rows = rows_of(network, last, axis)
        if isinstance(rows, str):
            raise UsageError(rows, item=item)
        room = rows.rows if capacity is None else capacity
        if room < rows.rows:
            raise UsageError(
                f"{room:,} rows are fewer than the {rows.rows:,} of {network.tensors[last].name}",
                item="--capacity",
            )
        name = network.tensors[last].name
        caches.append(Cache(name, at, axis, room, None if first is None else network.tensors[first].name))
        ids.append((first, last))
        append.append(maker)
        names.append((f"cache {name}", rows.room(room)))
        at += -(-rows.room(room) // alignment) * alignment
    if capacity is not None and not caches:
        raise UsageError("is for a --state that grows, and there is none", item="--capacity")
    for first_or_none, last in ids:
        for t in (first_or_none, last):
            if t is not None and network.tensors[t].name in {x for s in rest for x in s.split("=")}:
                raise UsageError("a tensor is in two states", item=f"--state {network.tensors[t].name}")
    made = Caches(tuple(caches), tuple(ids), tuple(append), frozenset(new), at, tuple(names))
    return made, tuple(rest)


def _grown(network: Network, text: str) -> tuple[int | None, int] | None:
    """Return the tensors of a state that grows, or begins; None for one of equal sizes, or a wrong one."""
    table = network.tensor_id
    if text.startswith("=") and text[1:] in table:
        return None, table[text[1:]]
    for equals in (m.start() for m in re.finditer("=", text)):
        first, last = table.get(text[:equals]), table.get(text[equals + 1 :])
        if first is not None and last is not None:
            one, other = network.tensors[first], network.tensors[last]
            return None if one.bytes == other.bytes or one.kind != "input" else (first, last)
    return None


def _growth(network: Network, first: int | None, last: int, new: set[int], item: str) -> tuple[int, int]:
    """Return the operator that makes a cache and its axis; add what it appends to `new`."""
    name = network.tensors[last].name
    maker = network.producer[last]
    if maker is None or network.root[last] != last:
        raise UsageError(f"no operator writes {name} as a whole", item=item)
    if first is None:
        return maker, len(network.tensors[last].shape) - 2
    if network.output_roots >> first & 1:
        raise UsageError(f"{network.tensors[first].name} is an output too", item=item)
    growth = growth_of(network, first, last)
    if not isinstance(growth, Growth):
        one = network.tensors[first]
        sizes = f"{one.name} has {one.bytes:,} bytes, {name} {network.tensors[last].bytes:,}"
        raise UsageError(f"{sizes}, and {growth}", item=item)
    new.update(growth.new)
    return maker, growth.axis


def with_caches(network: Network, problem: Problem, caches: Caches, *, given: bool = False) -> Problem:
    """Return the problem of the rest: caches have no bytes, cost nothing, and are never loaded or stored.

    Raises `UsageError` if an input of a cache is also read after it has grown, in all orders or in the
    network's own, if that is `given`.
    """
    size, cost = list(problem.size), list(problem.cost)
    inputs, outputs = [list(ids) for ids in problem.inputs], [list(ids) for ids in problem.outputs]
    graph_inputs, held = problem.graph_inputs, {t for pair in caches.ids for t in pair if t is not None}
    step = {v: i for i, v in enumerate(network.order)}
    for t in held:
        size[t] = cost[t] = 0
    for (first, last), maker in zip(caches.ids, caches.append, strict=True):
        if first is None:
            continue
        graph_inputs &= ~(1 << first)
        for v, ids in enumerate(inputs):
            if first not in ids:
                continue
            ids.remove(first)
            if v != maker:  # it reads before the operator appends
                size.append(0)
                cost.append(0)
                outputs[v].append(len(size) - 1)
                inputs[maker].append(len(size) - 1)
        late = given and any(step[v] > step[maker] for v in bits(network.readers[first]))
        if late or _waits_for_itself(inputs, outputs, maker):
            raise UsageError(
                f"{network.tensors[first].name} is read after new rows are behind it",
                item=f"--state {network.tensors[first].name}={network.tensors[last].name}",
            )
    overwrites = tuple(tuple(x for x in some if x not in held) for some in problem.overwrites)
    return replace(
        problem,
        size=tuple(size),
        cost=tuple(cost),
        inputs=tuple(map(tuple, inputs)),
        outputs=tuple(map(tuple, outputs)),
        graph_inputs=graph_inputs,
        graph_outputs=problem.graph_outputs & caches.outputs(network),
        overwrites=overwrites if any(overwrites) else (),
    )


def _waits_for_itself(inputs: Sequence[Sequence[int]], outputs: Sequence[Sequence[int]], maker: int) -> bool:
    """Return whether an operator needs what only runs after it."""
    producer = {t: v for v, ids in enumerate(outputs) for t in ids}
    seen: set[int] = set()
    todo = [producer[t] for t in inputs[maker] if t in producer]
    while todo:
        v = todo.pop()
        if v == maker:
            return True
        if v not in seen:
            seen.add(v)
            todo += [producer[t] for t in inputs[v] if t in producer]
    return False


def lowered(pinning: Pinning, by: int) -> Pinning:
    """Return the kept tensors with their addresses in the room above the caches."""

    def down(address: int | None) -> int | None:
        if address is None:
            return None
        if address < by:
            raise UsageError(
                f"the caches lie below {by:,}, and {address:,} is given", item="--pin or --state"
            )
        return address - by

    return Pinning(
        tuple((t, down(at)) for t, at in pinning.tensors),
        tuple((v, down(at)) for v, at in pinning.weights),
        tuple((first, last, down(at)) for first, last, at in pinning.state),
    )


def raised(answer: Answer, by: int) -> Answer:
    """Return the answer with its addresses above the caches."""
    scratch: Mapping[int, int] = {v: at + by for v, at in answer.scratch.items()}
    placed = tuple(Placed(p.tensor, p.start, p.end, p.address + by) for p in answer.placed)
    return replace(answer, placed=placed, scratch=scratch)
