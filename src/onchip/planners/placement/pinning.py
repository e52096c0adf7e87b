"""The tensors and weights that the user keeps on chip (`--pin`, `--state`), as part of the placement problem.

The searches know nothing of it. Two operators are added that compute nothing: `begin`, before all others,
makes what is there at the start (pinned weights, the state's inputs); `end`, after all others, reads what
must be there at the end. Zero-byte tensors keep them first and last. A tensor that must not leave has an
eviction that costs more than any plan without one, so a search evicts it only if it must, and then the answer
is "infeasible". So the proofs for any problem hold here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from onchip.base.errors import Infeasible, NegativeAnswer, UsageError
from onchip.network import Network
from onchip.planners.limits import Limits
from onchip.planners.placement.problem import Kept, Problem
from onchip.planners.placement.schedule import Residency, Schedule
from onchip.planners.placement.search import Found, minimum_peak, minimum_traffic

__all__ = [
    "Pinning",
    "hold",
    "least_budget",
    "one_after_the_other",
    "read_pinning",
    "refuse_if_forbidden",
    "where_kept",
]

_AT = re.compile(r"(?P<name>.+)@(?P<address>[0-9]{1,18})", re.DOTALL)


@dataclass(frozen=True)
class Pinning:
    """The kept tensors and weights, by ids; an address is None if any will do.

    `tensors` are roots, `weights` operators, `state` (input, output, address).
    """

    tensors: tuple[tuple[int, int | None], ...] = ()
    weights: tuple[tuple[int, int | None], ...] = ()
    state: tuple[tuple[int, int, int | None], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.tensors or self.weights or self.state)


def read_pinning(network: Network, pins: Sequence[str], states: Sequence[str], alignment: int = 1) -> Pinning:
    """Return the pinning of `TENSOR[@ADDRESS]`, `weights:OPERATOR[@ADDRESS]` and `INPUT=OUTPUT[@ADDRESS]`.

    Raises `UsageError` naming the text: unknown names, views, weights of an operator that has none, a state
    whose tensors are not an input and a result of one size, anything twice, an address that is no multiple of
    `alignment`.
    """
    tensors: dict[int, int | None] = {}
    weights: dict[int, int | None] = {}
    for text in pins:
        if text.startswith("weights:"):
            v, address = _found(text, text[8:], network.operator_id, "operator")
            if not network.operators[v].weight_bytes:
                raise UsageError("the operator has no weights", item=f"--pin {text}")
            into: dict[int, int | None] = weights
        else:
            v, address = _found(text, text, network.tensor_id, "tensor")
            if network.root[v] != v:
                of = network.tensors[network.root[v]].name
                raise UsageError(f"is a view; pin {of}, which holds its bytes", item=f"--pin {text}")
            into = tensors
        if v in into:
            raise UsageError("is pinned twice", item=f"--pin {text}")
        _aligned(address, alignment, f"--pin {text}")
        into[v] = address
    state = tuple(_pair(network, text) for text in states)
    named = [t for first, last, _ in state for t in (first, last)]
    for text, (first, last, _) in zip(states, state, strict=True):
        if named.count(first) > 1 or named.count(last) > 1:
            raise UsageError("a tensor is in two states", item=f"--state {text}")
        _aligned(state[states.index(text)][2], alignment, f"--state {text}")
    return Pinning(tuple(tensors.items()), tuple(weights.items()), state)


def _aligned(address: int | None, alignment: int, item: str) -> None:
    if address is not None and address % alignment:
        raise UsageError(f"{address:,} is no multiple of the chip's alignment, {alignment:,}", item=item)


def _found(
    text: str, rest: str, table: Mapping[str, int], what: str, option: str = "--pin"
) -> tuple[int, int | None]:
    """Return the id of a name, which may itself look like NAME@ADDRESS, and the address behind it."""
    if rest in table:
        return table[rest], None
    match = _AT.fullmatch(rest)
    if match and match["name"] in table:
        return table[match["name"]], int(match["address"])
    name, _, address = rest.rpartition("@")
    if name in table:
        raise UsageError(f"{address[:40]!r} is no address in whole bytes", item=f"{option} {text}")
    raise UsageError(f"the network has no such {what}", item=f"{option} {text}")


def _pair(network: Network, text: str) -> tuple[int, int, int | None]:
    table = network.tensor_id
    for equals in (m.start() for m in re.finditer("=", text)):
        if text[:equals] not in table:
            continue
        try:
            last, address = _found(text, text[equals + 1 :], table, "tensor", "--state")
        except UsageError:
            continue
        first = table[text[:equals]]
        one, other = network.tensors[first], network.tensors[last]
        if one.kind != "input" or network.output_roots >> first & 1:
            raise UsageError(f"{one.name} is no graph input, or an output too", item=f"--state {text}")
        if network.producer[last] is None or network.root[last] != last:
            raise UsageError(f"no operator writes {other.name} as a whole", item=f"--state {text}")
        if one.bytes != other.bytes:
            raise UsageError(
                f"{one.name} has {one.bytes:,} bytes, {other.name} {other.bytes:,}", item=f"--state {text}"
            )
        return first, last, address
    raise UsageError("is not INPUT=OUTPUT of tensors that the network has", item=f"--state {text}")


def hold(
    network: Network,
    problem: Problem,
    pinning: Pinning,
    *,
    weights_apart: bool,
    alignment: int,
    budget: int | None = None,
) -> Problem:
    """Return the problem in which `pinning` is kept; with `weights_apart` pinned weights take no room in it.

    A state without an address gets the lowest one beside those with one. Pinned weights without an address
    lie at the bottom if no address is given (whatever stays throughout can be moved there), else anywhere.
    Raises `UsageError` for a given address that leaves `budget`.
    """
    size, cost = list(problem.size), list(problem.cost)
    inputs, outputs = [list(ids) for ids in problem.inputs], [list(ids) for ids in problem.outputs]
    begin, end = len(inputs), len(inputs) + 1
    begins: list[int] = []
    ends: list[int] = []

    def up(n: int) -> int:
        return -(-n // alignment) * alignment

    def lowest(occupies: int) -> int:
        """Return the lowest place beside those with an address, and take it."""
        at = 0
        for start, length in sorted([*given, *chosen]):
            if start < at + occupies:
                at = max(at, up(start + length))
        chosen.append((at, occupies))
        return at

    chosen: list[tuple[int, int]] = []

    def tensor(occupies: int) -> int:
        size.append(occupies)
        cost.append(occupies)
        return len(size) - 1

    given = [
        *((at, size[t]) for t, at in pinning.tensors if at is not None),
        *((at, size[first]) for first, _, at in pinning.state if at is not None),
    ]
    if not weights_apart:
        given += [(at, up(network.operators[v].weight_bytes)) for v, at in pinning.weights if at is not None]
    beyond = [(at, n) for at, n in given if budget is not None and at + n > budget]
    if beyond:
        at, n = beyond[0]
        raise UsageError(
            f"{n:,} bytes at address {at:,} leave the budget of {budget:,} bytes", item="--pin or --state"
        )
    fixed: list[tuple[int, int]] = [(t, at) for t, at in pinning.tensors if at is not None]
    weights: list[tuple[int, int]] = []
    if not weights_apart:
        for v, wanted in pinning.weights:
            t = tensor(up(network.operators[v].weight_bytes))
            weights.append((t, v))
            begins.append(t)
            ends.append(t)
            if wanted is not None:
                fixed.append((t, wanted))
            elif not given:
                fixed.append((t, lowest(size[t])))
    state = []
    for first, last, wanted in pinning.state:
        state.append((first, last, lowest(size[first]) if wanted is None else wanted))
        begins.append(first)
        ends.append(last)
    # A pinned network output stays to the end, although its store has made a copy.
    # (An input that is also an output and that nothing reads is never loaded.)
    made_by_operators = {t for ids in problem.outputs for t in ids}
    ends += [
        t
        for t, _ in pinning.tensors
        if problem.graph_outputs >> t & 1 and (t in made_by_operators or problem.readers[t])
    ]
    start = tensor(0)
    begins.append(start)
    for v, made in enumerate(outputs):
        if not made_by_operators.intersection(inputs[v]):
            inputs[v].append(start)
        if not any(problem.readers[t] for t in problem.outputs[v]):
            made.append(tensor(0))
            ends.append(made[-1])
    pinned = frozenset(t for t, _ in pinning.tensors) | {t for t, _ in weights}
    uses = Counter(t for ids in inputs for t in ids)
    forbidden = 1 + sum(c * (uses[t] + 2) for t, c in enumerate(cost))
    for t in pinned:
        cost[t] = forbidden
    apart = ~sum(1 << t for first, last, _ in state for t in (first, last))
    names = [(network.tensors[t].name, size[t]) for t, _ in pinning.tensors]
    names += [(f"weights of {network.operators[v].name}", size[t]) for t, v in weights]
    names += [(network.tensors[t].name, size[t]) for t, _, _ in state]
    return replace(
        problem,
        size=tuple(size),
        cost=tuple(cost),
        inputs=(*map(tuple, inputs), (), tuple(ends)),
        outputs=(*map(tuple, outputs), tuple(begins), ()),
        workspace=(*problem.workspace, 0, 0),
        overwrites=(*problem.overwrites, (), ()) if problem.overwrites else (),
        graph_inputs=problem.graph_inputs & apart,
        graph_outputs=problem.graph_outputs & apart,
        kept=Kept(
            begin,
            end,
            pinned,
            tuple(fixed),
            tuple(state),
            tuple(weights),
            forbidden,
            tuple(sorted(names, key=lambda row: (-row[1], row[0]))),
        ),
    )


def one_after_the_other(problem: Problem) -> Problem | None:
    """Return the problem in which a state's input is read for the last time before its output is made.

    Then both can share one address. None if the data or a given order does not allow it. These are not all
    orders: a proof for them is not a proof for `problem`.
    """
    kept = problem.kept
    if kept is None or not kept.state or problem.order is not None:
        return None
    size, cost = list(problem.size), list(problem.cost)
    inputs, outputs = [list(ids) for ids in problem.inputs], [list(ids) for ids in problem.outputs]
    producer = {t: v for v, ids in enumerate(outputs) for t in ids}
    for first, last, _ in kept.state:
        maker = producer[last]
        for reader in [v for v, ids in enumerate(problem.inputs) if first in ids and v != maker]:
            size.append(0)
            cost.append(0)
            outputs[reader].append(len(size) - 1)
            inputs[maker].append(len(size) - 1)
            producer[len(size) - 1] = reader
    waiting = {v: {producer[t] for t in ids if t in producer} for v, ids in enumerate(inputs)}
    while waiting:
        ready = {v for v, before in waiting.items() if not before & waiting.keys()}
        if not ready:
            return None
        for v in ready:
            del waiting[v]
    return replace(
        problem,
        size=tuple(size),
        cost=tuple(cost),
        inputs=tuple(map(tuple, inputs)),
        outputs=tuple(map(tuple, outputs)),
    )


def where_kept(schedule: Schedule) -> list[tuple[Residency, int | None]]:
    """Return the residencies of a schedule, each with its prescribed address or None.

    If the input of a state is still in the way while the output is made, the output is made elsewhere,
    stored, and loaded where it must end.
    """
    kept = schedule.problem.kept
    if kept is None:
        return [(r, None) for r in schedule.residencies]
    steps, overwrites = len(schedule.order), schedule.problem.overwrites
    fixed = dict(kept.fixed)
    first = {t: at for t, _, at in kept.state}
    last = {t: (of, at) for of, t, at in kept.state}
    until = {r.tensor: r.end for r in schedule.residencies if r.tensor in first and r.start == 0}
    found: list[tuple[Residency, int | None]] = []
    for r in schedule.residencies:
        if r.tensor in fixed:
            found.append((r, fixed[r.tensor]))
        elif r.tensor in first and r.start == 0:
            found.append((r, first[r.tensor]))
        elif r.tensor in last and r.end == steps:
            of, at = last[r.tensor]
            v = schedule.order[r.start]
            over = bool(overwrites) and until[of] == r.start + 1 and of in overwrites[v]
            if r.start < until[of] and not over and len(r.uses) > 1:
                before, after = r.cut(r.uses[-2], steps - 1)
                found += [(before, None), (after, at)]
            else:
                found.append((r, at))
        else:
            found.append((r, None))
    return found


def refuse_if_forbidden(problem: Problem, budget: int, alignment: int, found: Found, limits: Limits) -> None:
    """Raise `Infeasible` with the bytes needed if every schedule evicts something pinned.

    Raises `NegativeAnswer` if a limit ended the search before it was decided.
    """
    kept = problem.kept
    if kept is None or found.value < kept.forbidden:
        return
    if found.bound < kept.forbidden:
        raise NegativeAnswer(
            f"no plan was found within {budget:,} bytes that keeps what is pinned, nor a proof that"
            " there is none: the search ran into a limit"
        )
    enough = least_budget(problem, budget, alignment, limits)
    raise Infeasible(needs=enough, has=budget, tensors=kept.names, at_least=True)


def least_budget(problem: Problem, fails: int, alignment: int, limits: Limits) -> int:
    """Return the least bytes above `fails` in which nothing pinned is ever evicted, without addresses.

    Within `fails` that is impossible. With a limit reached it may be more than the least.
    """
    kept = problem.kept
    assert kept is not None
    # More room never hurts: halve the distance to a budget in which nothing is evicted at all.
    works = max(minimum_peak(problem, limits=limits).value, problem.minimum_budget)
    fails = max(fails, problem.minimum_budget - 1)
    while works - fails > alignment:
        middle = (fails + works) // 2 // alignment * alignment
        middle = max(middle, fails + 1)
        if middle >= works:
            break
        if minimum_traffic(problem, middle, limits=limits).value < kept.forbidden:
            works = middle
        else:
            fails = middle
    return works
