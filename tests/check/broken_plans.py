"""For every rule, a way to break exactly that rule in a legal plan.

A breaker takes a legal plan and returns plans that differ from it in one thing, with the position of the
instruction that must be refused (None when the fault lies in none). It returns nothing where the plan offers
no occasion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import NamedTuple

from byte_machine import ByteMachine, Piece, Snapshot
from legal_plans import rebuilt, scratch_need

from onchip.machines.chip import RATES
from onchip.network import Network, OperatorSpec
from onchip.plans import (
    Alloc,
    Free,
    Group,
    Instruction,
    Join,
    Load,
    Plan,
    Result,
    Run,
    Scratch,
    Store,
    Timed,
    bind,
)


class Broken(NamedTuple):
    plan: Plan
    index: int | None


class Site:
    """A legal plan and what is where at every position of its program."""

    def __init__(self, rng: Random, plan: Plan) -> None:
        self.rng, self.align = rng, plan.chip.alignment_bytes
        # Room above everything, so that a new range breaks no rule of its own.
        self.plan = replace(plan, budget=plan.budget + 4096)
        machine = ByteMachine(plan)
        self.pieces: dict[str, Piece] = machine.pieces
        self.states: list[Snapshot] = list(machine.snapshots())
        self.outputs, self.size = machine.outputs, machine.size
        network = plan.network
        self.views = [network.tensors[v.tensor].name for v in network.views]
        touched = {t for p in self.pieces.values() for t in (*p.reads, *p.writes)}
        roots = [t.name for t in network.tensors if t.name not in self.views]
        # An input that nobody reads is no inner tensor.
        self.inner = [
            t for t in roots if t not in touched and network.producer[network.tensor_id[t]] is not None
        ]
        self.tensors = [t for t in roots if t not in self.inner]
        self.producer = {t: name for name, p in self.pieces.items() for t in p.writes}

    def at(self) -> Iterator[tuple[int, Snapshot]]:
        """Every position, in random order."""
        positions = list(enumerate(self.states))
        self.rng.shuffle(positions)
        yield from positions

    def steps(self, *types: type) -> Iterator[tuple[int, Instruction, Snapshot]]:
        """Every instruction of some types, in random order."""
        for i, state in self.at():
            if i < len(self.plan.program) and isinstance(self.plan.program[i], types):
                yield i, self.plan.program[i], state

    def insert(self, i: int, *new: Instruction) -> Plan:
        return self.with_program(self.plan.program[:i] + new + self.plan.program[i:])

    def put(self, i: int, new: Instruction) -> Plan:
        return self.with_program((*self.plan.program[:i], new, *self.plan.program[i + 1 :]))

    def without(self, *positions: int) -> Plan:
        return self.with_program(tuple(x for i, x in enumerate(self.plan.program) if i not in positions))

    def with_program(self, program: tuple[Instruction, ...]) -> Plan:
        return replace(self.plan, program=program)

    def still_read(self, t: str, state: Snapshot) -> bool:
        return any(t in p.reads for name, p in self.pieces.items() if name not in state.ran)

    def top(self, state: Snapshot) -> int:
        """A multiple of the alignment with nothing at or above it."""
        return state.top + self.align * self.rng.randint(0, 3)

    def workspace(self, name: str) -> int:
        return self.pieces[name].workspace

    def need(self, group: Group) -> int:
        """Bytes that a group of one subgroup must have."""
        resident = self.plan.options.get("weights") == "resident"
        return scratch_need(self.plan.network, self.plan.groups, group, self.align, weights_resident=resident)

    def room(self, name: str) -> int:
        """Bytes of a unit's scratch through which operands can stream."""
        for group in self.plan.groups:
            if group.name == name:
                return group.scratch_bytes - self.need(group)
        return self.workspace(name)


BREAKERS: dict[str, Callable[[Site], Iterator[Broken]]] = {}


def breaks(rule: str) -> Callable[[Callable[[Site], Iterator[Broken]]], Callable[[Site], Iterator[Broken]]]:
    def register(breaker: Callable[[Site], Iterator[Broken]]) -> Callable[[Site], Iterator[Broken]]:
        assert rule not in BREAKERS
        BREAKERS[rule] = breaker
        return breaker

    return register


def naming(s: Site, state: Snapshot, t: str) -> Instruction:
    """Some instruction that names a tensor."""
    return s.rng.choice((Load(t, s.top(state)), Alloc(t, s.top(state)), Store(t), Free(t)))


# -- header and names ----------------------------------------------------------------------------------


@breaks("bad-budget")
def _(s: Site) -> Iterator[Broken]:
    yield Broken(replace(s.plan, budget=s.rng.choice((-1, -(10**30), (1 << 40) + 1, 10**30))), None)


@breaks("bad-alignment")
def _(s: Site) -> Iterator[Broken]:
    alignment = s.rng.choice((0, -1, -8, (1 << 20) + 1, 10**30))
    yield Broken(replace(s.plan, chip=replace(s.plan.chip, alignment_bytes=alignment)), None)


@breaks("bad-accumulators")
def _(s: Site) -> Iterator[Broken]:
    wide = s.rng.choice((0, -4, 9, 10**30))
    yield Broken(replace(s.plan, chip=replace(s.plan.chip, accumulator_bytes=wide)), None)


@breaks("unknown-tensor")
def _(s: Site) -> Iterator[Broken]:
    for i, state in s.at():
        yield Broken(s.insert(i, naming(s, state, s.rng.choice(("nobody", "", "op0")))), i)
    for i, run, _ in s.steps(Run):
        assert isinstance(run, Run)
        yield Broken(s.put(i, Run(run.operator, (*run.streaming, ("nobody", 1)))), i)


@breaks("unknown-operator")
def _(s: Site) -> Iterator[Broken]:
    for i, state in s.at():
        yield Broken(s.insert(i, s.rng.choice((Run("nobody"), Scratch("t0", s.top(state))))), i)
        yield Broken(replace(s.plan, groups=(*s.plan.groups, Group("g", ("nobody",), 0))), None)


@breaks("names-view")
def _(s: Site) -> Iterator[Broken]:
    for i, state in s.at():
        for t in s.views:
            yield Broken(s.insert(i, naming(s, state, t)), i)


@breaks("inner-tensor")
def _(s: Site) -> Iterator[Broken]:
    for i, state in s.at():
        for t in s.inner:
            yield Broken(s.insert(i, naming(s, state, t)), i)


@breaks("operator-in-group")
def _(s: Site) -> Iterator[Broken]:
    for i, state in s.at():
        for group in s.plan.groups:
            name = s.rng.choice(group.operators)
            yield Broken(s.insert(i, s.rng.choice((Run(name), Scratch(name, s.top(state))))), i)


# -- address ranges ------------------------------------------------------------------------------------


def movable(s: Site) -> Iterator[tuple[int, Load | Alloc | Scratch, Snapshot]]:
    """Instructions that take bytes of their own."""
    for i, step, state in s.steps(Load, Alloc, Scratch):
        if (
            isinstance(step, Load)
            or (isinstance(step, Alloc) and step.over is None and not step.parts)
            or (isinstance(step, Scratch) and s.workspace(step.operator))
        ):
            yield i, step, state


@breaks("misaligned")
def _(s: Site) -> Iterator[Broken]:
    for i, step, state in movable(s):
        if s.align > 1:
            yield Broken(s.put(i, replace(step, address=s.top(state) + s.rng.randint(1, s.align - 1))), i)


@breaks("outside-budget")
def _(s: Site) -> Iterator[Broken]:
    for i, step, _ in movable(s):
        beyond = -(-s.plan.budget // s.align) * s.align
        address = s.rng.choice((-s.align, -s.align * 10**20, beyond, beyond * 10**20))
        yield Broken(s.put(i, replace(step, address=address)), i)


@breaks("range-not-free")
def _(s: Site) -> Iterator[Broken]:
    for i, step, state in movable(s):
        for address in state.address.values():
            yield Broken(s.put(i, replace(step, address=address)), i)


# -- load, alloc, store, free --------------------------------------------------------------------------


@breaks("load-no-dram-copy")
def _(s: Site) -> Iterator[Broken]:
    for i, state in s.at():
        for t in s.tensors:
            if t not in state.copies and t not in state.address:
                yield Broken(s.insert(i, Load(t, s.top(state))), i)


@breaks("already-resident")
def _(s: Site) -> Iterator[Broken]:
    for i, state in s.at():
        for t in state.address:
            if t in state.copies:
                yield Broken(s.insert(i, Load(t, s.top(state))), i)
            if t not in state.produced:
                yield Broken(s.insert(i, Alloc(t, s.top(state))), i)


@breaks("already-produced")
def _(s: Site) -> Iterator[Broken]:
    for i, state in s.at():
        for t in s.tensors:
            if t in state.produced and t not in state.address:
                yield Broken(s.insert(i, Alloc(t, s.top(state))), i)


@breaks("not-resident")
def _(s: Site) -> Iterator[Broken]:
    for i, state in s.at():
        for t in s.tensors:
            if t in state.copies and t not in state.address:
                yield Broken(s.insert(i, s.rng.choice((Store(t), Free(t)))), i)


@breaks("not-produced")
def _(s: Site) -> Iterator[Broken]:
    for i, state in s.at():
        for t in state.address:
            if t not in state.produced:
                yield Broken(s.insert(i, s.rng.choice((Store(t), Free(t)))), i)


@breaks("free-loses-data")
def _(s: Site) -> Iterator[Broken]:
    for i, state in s.at():
        for t in state.address:
            lost = t in state.produced and t not in state.copies and t not in state.over
            if lost and (s.still_read(t, state) or t in s.outputs):
                yield Broken(s.insert(i, Free(t)), i)


# -- alloc over ----------------------------------------------------------------------------------------


def overlaps(s: Site) -> Iterator[tuple[int, Alloc, Snapshot]]:
    for i, step, state in s.steps(Alloc):
        if isinstance(step, Alloc) and step.over is not None:
            yield i, step, state


@breaks("overlap-not-input")
def _(s: Site) -> Iterator[Broken]:
    for i, step, state in movable(s):
        if isinstance(step, Alloc):
            for x in state.address:
                if x in state.produced and x not in s.pieces[s.producer[step.tensor]].reads:
                    yield Broken(s.put(i, replace(step, over=x, by=state.address[x] - step.address)), i)


@breaks("overlap-distance")
def _(s: Site) -> Iterator[Broken]:
    for i, step, _ in overlaps(s):
        yield Broken(s.put(i, replace(step, by=s.rng.choice((-1, 1, s.align, 10**30)))), i)


@breaks("overlap-unproved")
def _(s: Site) -> Iterator[Broken]:
    for i, step, _ in overlaps(s):
        specs = [
            replace(spec, geometry=None) if spec.name == s.producer[step.tensor] else spec
            for spec in specs_of(s.plan.network)
        ]
        earlier = [
            j for j, other, _ in overlaps(s) if j < i and s.producer[other.tensor] == s.producer[step.tensor]
        ]
        if not earlier:
            yield Broken(replace(s.plan, network=rebuilt(s.plan.network, specs)), i)


@breaks("overlap-unsafe")
def _(s: Site) -> Iterator[Broken]:
    # Turned around, an element-wise walk still is in place; one element further it is not. A second element
    # is needed to be lost.
    for i, step, state in overlaps(s):
        x = str(step.over)
        geometry = s.plan.network.operators[s.plan.network.operator_id[s.producer[step.tensor]]].geometry
        assert geometry is not None
        if s.size[x] <= s.align:
            continue
        # x moves to the top first, so that the bytes around it are free.
        base = s.top(state) + 2 * s.align
        address = base + s.align if geometry.traversal == "forward" else base - s.align
        new = Alloc(step.tensor, address, x, base - address)
        plan = s.insert(i, Store(x), Free(x), Load(x, base), new)
        yield Broken(plan, i + 3)


@breaks("overlap-still-needed")
def _(s: Site) -> Iterator[Broken]:
    # An overlapped tensor that becomes an output has no DRAM copy, unless it was spilled.
    for i, step, _ in overlaps(s):
        run = next(
            j for j, r, _ in s.steps(Run) if j > i and r == s.plan.program[j] and runs(r, s, step.tensor)
        )
        x = str(step.over)
        if x not in s.states[run].copies and x not in s.outputs and safe_as_output(s, x, run):
            network = s.plan.network
            outputs = (*network.outputs, network.tensor_id[x])
            yield Broken(replace(s.plan, network=replace(network, outputs=outputs)), run)


def under(step: Instruction) -> tuple[str, ...]:
    """What a tensor is reserved over."""
    if not isinstance(step, Alloc):
        return ()
    return step.parts if step.over is None else (step.over,)


def runs(step: Instruction, s: Site, t: str) -> bool:
    return isinstance(step, Run) and step.operator == s.producer[t]


def safe_as_output(s: Site, x: str, run: int) -> bool:
    """Nothing before `run` is illegal if x is an output."""
    return all(step != Free(x) for step in s.plan.program[:run]) and x not in s.inner


@breaks("overlap-freed")
def _(s: Site) -> Iterator[Broken]:
    for i, step, state in overlaps(s):
        x = str(step.over)
        if x in state.copies:
            yield Broken(s.insert(i + 1, Free(x)), i + 1)


# -- scratch and run -----------------------------------------------------------------------------------


@breaks("scratch-twice")
def _(s: Site) -> Iterator[Broken]:
    for i, state in s.at():
        for name in state.scratch:
            yield Broken(s.insert(i, Scratch(name, s.top(state))), i)


@breaks("already-run")
def _(s: Site) -> Iterator[Broken]:
    for i, state in s.at():
        for name in state.ran:
            yield Broken(s.insert(i, s.rng.choice((Run(name), Scratch(name, s.top(state))))), i)


@breaks("input-not-resident")
def _(s: Site) -> Iterator[Broken]:
    for i, run, state in s.steps(Run):
        assert isinstance(run, Run)
        for x in s.pieces[run.operator].reads:
            if (
                x in state.copies
                and x in state.address
                and x not in state.over
                and x not in dict(run.streaming)
            ):
                yield Broken(s.insert(i, Free(x)), i + 1)


@breaks("input-not-produced")
def _(s: Site) -> Iterator[Broken]:
    # A run that comes only after its result was read, with nothing in between that touches what it writes.
    for i, run, state in s.steps(Run):
        assert isinstance(run, Run)
        made, later = s.pieces[run.operator].writes, s.plan.program[i + 1 :]
        if set(made) & set(state.over.values()):
            continue
        touched = [*made, *s.pieces[run.operator].reads]
        if run.streaming or s.workspace(run.operator):
            continue
        for j, step in enumerate(later, i + 1):
            if isinstance(step, Run) and set(s.pieces[step.operator].reads) & set(made):
                if not set(made) & set(dict(step.streaming)):
                    program = list(s.plan.program)
                    program.insert(j, program.pop(i))
                    yield Broken(s.with_program(tuple(program)), j - 1)
                break
            if isinstance(step, Run | Store | Free) and (isinstance(step, Run) or step.tensor in touched):
                break
            if isinstance(step, Join) and set(s.pieces[step.operator].reads) & set(made):
                break
            if isinstance(step, Alloc) and (step.over is not None or step.parts):
                break


@breaks("output-not-reserved")
def _(s: Site) -> Iterator[Broken]:
    for i, step, _ in s.steps(Alloc):
        assert isinstance(step, Alloc)
        run = next(j for j, r in enumerate(s.plan.program) if runs(r, s, step.tensor))
        yield Broken(s.without(i), run - 1)


@breaks("no-scratch")
def _(s: Site) -> Iterator[Broken]:
    for i, step, _ in s.steps(Scratch):
        assert isinstance(step, Scratch)
        if s.workspace(step.operator):
            run = next(
                j for j, r in enumerate(s.plan.program) if isinstance(r, Run) and r.operator == step.operator
            )
            yield Broken(s.without(i), run - 1)


# -- streaming -----------------------------------------------------------------------------------------


@breaks("streaming-operand")
def _(s: Site) -> Iterator[Broken]:
    for i, run, state in s.steps(Run):
        assert isinstance(run, Run)
        piece = s.pieces[run.operator]
        for t in state.copies:
            if t not in piece.reads and t in s.tensors:
                yield Broken(s.put(i, Run(run.operator, (*run.streaming, (t, s.size[t])))), i)


@breaks("streaming-no-dram-copy")
def _(s: Site) -> Iterator[Broken]:
    for i, run, state in s.steps(Run):
        assert isinstance(run, Run)
        for t in s.pieces[run.operator].reads:
            room = s.room(run.operator) - sum(n for _, n in run.streaming)
            if t not in state.copies and t not in state.over and s.size[t] <= room:
                yield Broken(s.put(i, Run(run.operator, (*run.streaming, (t, s.size[t])))), i)


@breaks("streaming-reserved")
def _(s: Site) -> Iterator[Broken]:
    for i, run, state in s.steps(Run):
        assert isinstance(run, Run)
        for t in s.pieces[run.operator].writes:
            room = s.room(run.operator) - sum(n for _, n in run.streaming)
            if t in state.address and t not in state.over.values() and s.size[t] <= room:
                yield Broken(s.put(i, Run(run.operator, (*run.streaming, (t, s.size[t])))), i)


@breaks("streaming-unproved")
def _(s: Site) -> Iterator[Broken]:
    for i, run, state in s.steps(Run):
        assert isinstance(run, Run)
        for t in s.pieces[run.operator].reads:
            known = s.plan.network.operator_id.get(run.operator)
            vague = known is None or s.plan.network.operators[known].geometry is None
            room = s.room(run.operator) - sum(n for _, n in run.streaming)
            if t in state.copies and t not in dict(run.streaming) and s.size[t] > room and vague:
                yield Broken(s.put(i, Run(run.operator, (*run.streaming, (t, s.size[t])))), i)


@breaks("streaming-bytes")
def _(s: Site) -> Iterator[Broken]:
    for i, run, _ in s.steps(Run):
        assert isinstance(run, Run)
        for k, (t, n) in enumerate(run.streaming):
            wrong = (t, s.rng.choice((n - 1, n + 1, 0, -n, 2 * n, 10**30)))
            yield Broken(s.put(i, Run(run.operator, (*run.streaming[:k], wrong, *run.streaming[k + 1 :]))), i)


# -- groups --------------------------------------------------------------------------------------------


def regrouped(s: Site) -> Iterator[tuple[Group, Callable[[Group], Plan]]]:
    """Every group, with what puts another one in its place."""
    for k, group in enumerate(s.plan.groups):
        yield (
            group,
            lambda new, k=k: replace(s.plan, groups=(*s.plan.groups[:k], new, *s.plan.groups[k + 1 :])),
        )


def loose(s: Site) -> list[str]:
    """Operators in no group."""
    taken = {name for g in s.plan.groups for name in g.operators}
    return [op.name for op in s.plan.network.operators if op.name not in taken]


@breaks("group-name")
def _(s: Site) -> Iterator[Broken]:
    for group, put in regrouped(s):
        yield Broken(put(replace(group, name=s.rng.choice(s.plan.network.operators).name)), None)
        if loose(s):
            yield Broken(
                replace(s.plan, groups=(*s.plan.groups, Group(group.name, (loose(s)[0],), 10**6))), None
            )


@breaks("group-members")
def _(s: Site) -> Iterator[Broken]:
    for group, put in regrouped(s):
        yield Broken(put(replace(group, operators=())), None)
        yield Broken(put(replace(group, operators=(*group.operators, group.operators[0]))), None)
        yield Broken(put(replace(group, subgroups=s.rng.choice((0, -1)))), None)


@breaks("group-overlap")
def _(s: Site) -> Iterator[Broken]:
    for group in s.plan.groups:
        again = Group("again", (s.rng.choice(group.operators),), 10**6)
        yield Broken(replace(s.plan, groups=(*s.plan.groups, again)), None)


@breaks("group-not-convex")
def _(s: Site) -> Iterator[Broken]:
    network, free = s.plan.network, set(loose(s))
    for last in network.operators:
        for t in last.inputs:
            middle = network.producer[t]
            for u in () if middle is None else network.operators[middle].inputs:
                first = network.producer[u]
                names = [network.operators[i].name for i in (first, last.id) if i is not None]
                if len(names) == 2 and set(names) <= free:
                    yield Broken(
                        replace(s.plan, groups=(*s.plan.groups, Group("ends", tuple(names), 10**6))), None
                    )


@breaks("group-weights")
def _(s: Site) -> Iterator[Broken]:
    for group, put in regrouped(s):
        inside = s.rng.choice(group.operators)
        outside = s.rng.choice([*loose(s), "nobody"])
        alone = replace(group, refills=(), resident_weights=())
        yield Broken(put(replace(alone, refills=((inside, s.rng.choice((0, -1))),))), None)
        yield Broken(put(replace(alone, refills=((outside, 1),))), None)
        yield Broken(put(replace(alone, resident_weights=(outside,))), None)
        yield Broken(
            put(replace(alone, refills=((inside, 2),), resident_weights=(inside,), scratch_bytes=10**6)), None
        )


@breaks("group-scratch")
def _(s: Site) -> Iterator[Broken]:
    for group, put in regrouped(s):
        need = s.need(group)
        yield Broken(put(replace(group, scratch_bytes=s.rng.choice((need - 1, -1, (1 << 40) + 1)))), None)


@breaks("group-unproved")
def _(s: Site) -> Iterator[Broken]:
    for group, put in regrouped(s):
        yield Broken(put(replace(group, subgroups=s.rng.choice((2, 10**30)))), None)


# -- the end -------------------------------------------------------------------------------------------


@breaks("operator-not-run")
def _(s: Site) -> Iterator[Broken]:
    # An operator whose results nobody needs, forgotten with all that touches them.
    overlapped = {x for _, step, _ in s.steps(Alloc) for x in under(step)}
    for _, run, state in s.steps(Run):
        assert isinstance(run, Run)
        made, read = s.pieces[run.operator].writes, set(s.pieces[run.operator].reads)
        # What it reads is never freed for having been read here.
        if not read <= state.copies or read & overlapped:
            continue
        if any(t in s.outputs or any(t in p.reads for p in s.pieces.values()) for t in made):
            continue
        gone = [
            i for i, step in enumerate(s.plan.program)
            if step in (run, *map(Store, made), *map(Free, made))
            or (isinstance(step, Load | Alloc) and step.tensor in made)
            or (isinstance(step, Scratch) and step.operator == run.operator)
        ]  # fmt: skip
        if not any(under(s.plan.program[i]) for i in gone):
            yield Broken(s.without(*gone), None)


@breaks("output-not-stored")
def _(s: Site) -> Iterator[Broken]:
    for t in s.outputs:
        stores = [i for i, step in enumerate(s.plan.program) if step == Store(t)]
        others = [
            step for step in s.plan.program
            if step == Free(t) or (isinstance(step, Run) and t in dict(step.streaming))
            or t in under(step)
            or (isinstance(step, Join) and t in joins(s, step))
        ]  # fmt: skip
        made = s.plan.network.producer[s.plan.network.tensor_id[t]] is not None  # DRAM holds a graph input
        if made and stores and not others:
            yield Broken(s.without(*stores), None)


def joins(s: Site, step: Join) -> set[str]:
    return {*s.pieces[step.operator].reads, *s.pieces[step.operator].writes}


@breaks("bad-rate")
def _(s: Site) -> Iterator[Broken]:
    rate = s.rng.choice((0.0, -1.0, float("nan"), float("inf"), 1e18))
    yield Broken(replace(s.plan, chip=replace(s.plan.chip, **{s.rng.choice(RATES): rate})), None)


@breaks("timing")
def _(s: Site) -> Iterator[Broken]:
    times = list(s.plan.timing)
    if not times:
        yield Broken(replace(s.plan, timing=(Timed(0, 0, 1),)), None)
        return
    i = s.rng.randrange(len(times))
    one = times[i]
    wrong = [
        times[:i] + times[i + 1 :],
        [*times, one],
        [*times[:i], replace(one, start=one.start + s.rng.choice((-1, 1))), *times[i + 1 :]],
        [*times[:i], replace(one, end=one.end + s.rng.choice((-1, 1))), *times[i + 1 :]],
        [*times[:i], replace(one, fetched=(one.fetched or 0) + 1), *times[i + 1 :]],
        [*times[:i], replace(one, index=one.index + s.rng.choice((-1, 1))), *times[i + 1 :]],
    ]
    changed = s.rng.choice(wrong)
    if changed:  # a plan without times claims none
        yield Broken(replace(s.plan, timing=tuple(changed)), None)


@breaks("result")
def _(s: Site) -> Iterator[Broken]:
    result = s.plan.result
    wrong: list[Result] = [
        replace(result, **{name: getattr(result, name) + s.rng.choice((-1, 1, 10**30))})
        for name in (
            "traffic_bytes", "spill_bytes", "reload_bytes", "compulsory_bytes", "weight_bytes", "dram_bytes",
            "peak_bytes", "extent_bytes",
        )
    ]  # fmt: skip
    wrong += [replace(result, lower_bound_bytes=n) for n in (-1, result.traffic_bytes + 1)]
    wrong += [replace(result, peak_lower_bound_bytes=n) for n in (-1, result.extent_bytes + 1)]
    latency, energy = result.latency_picoseconds, result.energy_picojoules
    wrong += [replace(result, latency_picoseconds=n) for n in (-1, 3 if latency is None else latency + 1)]
    wrong += [replace(result, energy_picojoules=n) for n in (-1, 3 if energy is None else energy + 1)]
    wrong.append(replace(result, latency_lower_bound_picoseconds=10 if latency is None else latency + 1))
    wrong.append(replace(result, energy_lower_bound_picojoules=10 if energy is None else energy + 1))
    wrong += [replace(result, seconds=x) for x in (-1.0, float("nan"), float("inf"))]
    wrong.append(replace(result, status="perfect"))  # type: ignore[arg-type]
    if result.traffic_bytes:
        wrong.append(replace(result, status="optimal"))
    yield Broken(replace(s.plan, result=s.rng.choice(wrong)), None)
    for objective in ("peak", "latency", "energy"):
        claimed = replace(result, status="optimal")  # without any bound, or of what this chip does not tell
        yield Broken(
            replace(s.plan, result=claimed, options={**s.plan.options, "objective": objective}), None
        )
    yield Broken(replace(s.plan, options={**s.plan.options, "objective": "beauty"}), None)


def specs_of(network: Network) -> list[OperatorSpec]:
    names = [t.name for t in network.tensors]
    return [
        OperatorSpec(
            op.name, op.type, [names[t] for t in op.inputs], [names[t] for t in op.outputs],
            op.weight_bytes, op.workspace, op.geometry,
        )
        for op in network.operators
    ]  # fmt: skip


@breaks("claim")
def _(s: Site) -> Iterator[Broken]:
    made = bind(s.plan)
    options = {**made.options, "strategy": "another"}
    network = replace(made.network, granularity=made.network.granularity + "'")
    chip = replace(made.chip, name=made.chip.name + "'")
    for changed in (
        replace(made, options=options),
        replace(made, network=network),
        replace(made, chip=chip),
        replace(made, result=replace(made.result, space="everything")),
    ):
        yield Broken(changed, None)
