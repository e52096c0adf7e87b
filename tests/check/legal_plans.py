"""Random legal plans: any topological order, groups, and any move that the instruction table allows."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

from byte_machine import Piece, pieces, up

from onchip.check import certify
from onchip.machines.chip import RATES, Chip, Rates
from onchip.network import Geometry, Network, Operator, OperatorSpec, Patches
from onchip.plans import Alloc, Free, Group, Instruction, Join, Load, Plan, Run, Scratch, Section, Store
from strategies import random_network


def legal_plan(rng: Random, max_operators: int = 7) -> Plan:
    """A legal plan of a random network, its figures filled in by the checker."""
    network = _enriched(rng, random_network(rng, max_operators))
    alignment = rng.choice((1, 1, 2, 4, 8))
    order = _order(rng, network)
    groups = _groups(rng, network, order, alignment)
    walk = _Walk(rng, network, groups, alignment)
    member = {name: g.name for g in groups for name in g.operators}
    for unit in dict.fromkeys(member.get(name, name) for name in order):
        walk.execute(unit)
    walk.finish()
    # Resident weights leave less of a scratch to stream through.
    streams = any(isinstance(i, Run) and i.streaming for i in walk.program)
    return certify(
        network,
        _chip(rng, alignment),
        walk.top + rng.choice((0, 0, 1, 7)),
        walk.program,
        status="feasible",
        lower_bound_bytes=0,
        seconds=rng.choice((0, 0.25, 1e-9, 12345.678)),
        groups=groups,
        sections=_sections(rng, walk.program),
        options={
            "granularity": "op",
            "weights": "streamed" if streams else rng.choice(("streamed", "resident")),
            "order": "free",
        },
    )


def _chip(rng: Random, alignment: int) -> Chip:
    """A chip that states no rate, those that times need, or all."""
    rates = {key: rng.choice((0.5, 3, 1e3, 7.7e9)) for key in RATES}
    keep = rng.choice(((), ("dram_bytes_per_second", "macs_per_second"), RATES))
    return Chip("test", alignment, rates=Rates(**{key: rates[key] for key in keep}))


def rebuilt(network: Network, specs: list[OperatorSpec]) -> Network:
    """The network with other operators."""
    names = [t.name for t in network.tensors]
    return Network.build(
        network.name,
        [(t.name, t.bytes, t.kind) for t in network.tensors],
        specs,
        [names[t] for t in network.outputs],
        views=[(names[v.tensor], names[v.of], v.offset) for v in network.views],
        patches={t.name: t.patches for t in network.tensors if t.patches is not None},
    )


def _enriched(rng: Random, network: Network) -> Network:
    """Patches, concats, element-wise geometry where sizes allow it, workspaces to stream through."""
    patches = _patches(rng, network)
    size = {t.id: patches[t.id].elements if t.id in patches else t.bytes for t in network.tensors}
    viewed = {t for v in network.views for t in (v.tensor, v.of)}
    concats = set()
    for v in network.order:
        op, rarely = network.operators[v], rng.random() < 0.5
        alike = {patches[t].plane if t in patches else 0 for t in (*op.inputs, *op.outputs)}
        free = not viewed & {*op.inputs, *op.outputs} and len(op.outputs) == 1 and len(op.inputs) > 0
        if rarely and free and len(alike) == 1:
            concats.add(v)
            (t,) = op.outputs
            size[t] = sum(size[i] for i in op.inputs)
            if t in patches:
                patches[t] = replace(patches[t], channels=size[t] // patches[t].plane)
    specs = []
    for op in network.operators:
        ins, outs = [size[t] for t in op.inputs], [size[t] for t in op.outputs]
        geometry, workspace, weights, type_ = None, op.workspace, op.weight_bytes, op.type
        macs = rng.choice((0, 1, 1000))
        shapes = [_shape(patches.get(t), size[t]) for t in (*op.inputs, *op.outputs)]
        if op.id in concats:
            geometry, type_, weights, macs = Geometry("concat", shapes[0], shapes[-1]), "Concat", 0, 0
            workspace = rng.choice((0, 0, workspace))
        elif (
            len(outs) == 1 and ins and ins[0] == outs[0] == max(ins) and shapes[0] == shapes[-1]
            and all(
                op.outputs[0] in patches and shapes[-1][1] % patches[t].channels == 0
                for t in op.inputs if t in patches
            )
        ):  # fmt: skip
            geometry = Geometry(
                "elementwise", shapes[0], shapes[0], traversal=rng.choice(("forward", "reverse"))
            )
        if rng.random() < 0.3:
            workspace += rng.choice((sum([*ins, *outs]), 4, 8))
        names = [network.tensors[t].name for t in (*op.inputs, *op.outputs)]
        specs.append(
            OperatorSpec(
                op.name, type_, names[: len(ins)], names[len(ins) :], weights, workspace, geometry, macs
            )
        )
    names = [t.name for t in network.tensors]
    return Network.build(
        network.name,
        [(t.name, size[t.id], t.kind) for t in network.tensors],
        specs,
        [names[t] for t in network.outputs],
        views=[(names[v.tensor], names[v.of], v.offset) for v in network.views],
        patches={names[t]: stored for t, stored in patches.items()},
    )


def _patches(rng: Random, network: Network) -> dict[int, Patches]:
    """In some networks, all but a few maps are of one plane, cut into the same patches."""
    if rng.random() < 0.6:
        return {}
    viewed = {t for v in network.views for t in (v.tensor, v.of)}
    plane = (rng.randint(1, 3), rng.randint(1, 3), rng.randint(1, 2), rng.randint(1, 2))
    return {
        t.id: Patches(rng.randint(1, 3), *plane)
        for t in network.tensors
        if t.id not in viewed and rng.random() < 0.9
    }


def _shape(stored: Patches | None, size: int) -> tuple[int, ...]:
    return (1, size, 1, 1) if stored is None else (1, stored.channels, stored.rows, stored.columns)


def _sections(rng: Random, program: list[Instruction]) -> tuple[Section, ...]:
    """Now and then stretches."""
    if rng.random() < 0.6:
        return ()
    cuts = sorted(rng.randint(0, len(program)) for _ in range(rng.randint(0, 2)))
    return tuple(Section(f"s{i}", *ends) for i, ends in enumerate(pairwise((0, *cuts, len(program)))))


def _order(rng: Random, network: Network) -> list[str]:
    """A random topological order, by names."""
    left, order = list(network.operators), []
    made = {t for t, p in enumerate(network.producer) if p is None}
    while left:
        ready = [op for op in left if all(network.root[t] in made for t in op.inputs)]
        op = rng.choice(ready)
        left.remove(op)
        made |= set(op.outputs)
        order.append(op.name)
    return order


def _groups(rng: Random, network: Network, order: list[str], alignment: int) -> tuple[Group, ...]:
    """Stretches of the order (those are convex), with scratch enough and some to spare."""
    groups: list[Group] = []
    at = 0
    while rng.random() < 0.4 and at < len(order):
        start = rng.randrange(at, len(order))
        at = min(len(order), start + rng.randint(1, 4))
        names = order[start:at]
        resident = [n for n in names if rng.random() < 0.2]
        refills = [(n, rng.randint(1, 3)) for n in names if n not in resident and rng.random() < 0.3]
        bare = Group(f"group{len(groups)}", tuple(names), 0, 1, tuple(refills), tuple(resident))
        groups.append(bare)
    return tuple(
        Group(
            g.name, g.operators, scratch_need(network, groups, g, alignment) + rng.choice((0, 0, 5)),
            1, g.refills, g.resident_weights,
        )
        for g in groups
    )  # fmt: skip


def scratch_need(
    network: Network,
    groups: list[Group] | tuple[Group, ...],
    group: Group,
    alignment: int,
    *,
    weights_resident: bool = False,
) -> int:
    """Inner tensors, resident weights and the largest workspace of a group.

    With `weights_resident` a workspace includes weights; resident ones do not count twice.
    """
    operators = {op.name: op for op in network.operators}
    boundary = set(pieces(network, tuple(groups))[group.name].writes)
    members = [operators[name] for name in group.operators]
    inner = [network.tensors[t] for op in members for t in op.outputs]
    need = sum(up(t.bytes, alignment) for t in inner if t.name not in boundary)
    need += sum(operators[name].weight_bytes for name in group.resident_weights)
    twice = group.resident_weights if weights_resident else ()
    return need + max(op.workspace - (op.weight_bytes if op.name in twice else 0) for op in members)


class _Walk:
    """Writes a legal program, unit by unit, with random moves in between."""

    def __init__(self, rng: Random, network: Network, groups: tuple[Group, ...], alignment: int) -> None:
        self.rng, self.network, self.alignment = rng, network, alignment
        self.units = pieces(network, groups)
        self.grouped = {g.name for g in groups}
        self.size = {t.name: t.bytes for t in network.tensors}
        names = [t.name for t in network.tensors]
        self.outputs = {names[network.root[t]] for t in network.outputs}
        self.copies = {t.name for t in network.tensors if t.kind == "input"}
        self.produced = set(self.copies)
        self.ranges: dict[str, tuple[int, int]] = {}
        self.left = dict.fromkeys(names, 0)
        for unit in self.units.values():
            for t in unit.reads:
                self.left[t] += 1
        self.spare: dict[str, int] = {
            g.name: g.scratch_bytes - scratch_need(network, groups, g, alignment) for g in groups
        }
        self.restless = rng.choice((0.0, 0.2, 0.6))
        self.top = 0
        self.overlapped: set[str] = set()
        self.joined: set[str] = set()
        self.program: list[Instruction] = []

    # -- one unit --------------------------------------------------------------------------------------

    def execute(self, name: str) -> None:
        unit = self.units[name]
        if self.may_join(name, unit) and self.rng.random() < 0.5:
            self.join(name, unit)
            return
        streaming = self.choose_streaming(name, unit)
        steps = [t for t in [*unit.reads, *unit.writes] if t not in streaming]
        self.rng.shuffle(steps)
        over = self.choose_overlap(name, unit, streaming)
        parts = self.choose_parts(name, unit, streaming)
        if unit.workspace or self.rng.random() < 0.05:
            steps.insert(self.rng.randint(0, len(steps)), "")
        locked = set(unit.reads)
        for t in steps:
            self.fidget(locked)
            if not t:
                address = self.place(unit.workspace, f"scratch {name}")
                self.program.append(Scratch(name, address))
            elif t in unit.reads and t not in self.ranges:
                self.load(t)
            elif t in unit.writes and over is None and not parts:
                self.program.append(Alloc(t, self.place(self.size[t], t)))
        if over is not None:
            self.overlap(unit.writes[0], over)
        if parts:
            self.put_together(unit.writes[0], unit.reads, parts)
        self.fidget(locked)
        self.program.append(Run(name, tuple(streaming.items())))
        for t in unit.reads:
            self.left[t] -= 1
        self.ranges.pop(f"scratch {name}", None)
        for t in unit.writes:
            self.produced.add(t)
            if t in streaming:
                self.copies.add(t)
        for t in self.overlapped:
            del self.ranges[t]
        self.overlapped = set()
        self.tidy()

    def choose_streaming(self, name: str, unit: Piece) -> dict[str, int]:
        room = self.spare[name] if name in self.grouped else unit.workspace
        streaming: dict[str, int] = {}
        patch = self.patch(name) if self.rng.random() < 0.5 else {}
        for t in [*unit.reads, *unit.writes]:
            possible = t in self.copies if t in unit.reads else True
            piece = patch.get(t, 10**9) if patch else self.size[t]
            if possible and piece <= room and self.rng.random() < 0.5:
                streaming[t] = self.size[t]
                room -= piece
        return streaming

    def patch(self, name: str) -> dict[str, int]:
        """The bytes of a patch of every operand that an element-wise operator walks over patch by patch."""
        op = self.operator(name)
        if op is None or op.geometry is None or op.geometry.kind != "elementwise":
            return {}
        tensors = [self.network.tensors[t] for t in (*op.inputs, *op.outputs)]
        stored = tensors[-1].patches
        return {t.name: stored.height * stored.width for t in tensors if stored and t.patches == stored}

    def operator(self, name: str) -> Operator | None:
        return None if name in self.grouped else self.network.operators[self.network.operator_id[name]]

    # -- concats ---------------------------------------------------------------------------------------

    def is_concat(self, name: str) -> bool:
        """As `_enriched` makes them: their operands' bytes, one after another."""
        op = self.operator(name)
        return op is not None and op.geometry is not None and op.geometry.kind == "concat"

    def may_join(self, name: str, unit: Piece) -> bool:
        inputs = {t.name for t in self.network.tensors if t.kind == "input"}
        return self.is_concat(name) and not unit.workspace and not set(unit.reads) & (inputs | self.joined)

    def join(self, name: str, unit: Piece) -> None:
        for t in unit.reads:
            if t not in self.copies:
                self.store(t)
        self.fidget(set())
        self.program.append(Join(name))
        self.joined |= set(unit.reads)
        for t in unit.reads:
            self.left[t] -= 1
        self.produced |= set(unit.writes)
        self.copies |= set(unit.writes)
        self.tidy()

    def choose_parts(self, name: str, unit: Piece, streaming: dict[str, int]) -> list[str]:
        """Operands that end with a concat, and may lie where their parts of its output begin."""
        parts: list[str] = []
        at = 0
        if self.is_concat(name) and unit.writes[0] not in streaming:
            for t in unit.reads:
                ends = self.left[t] == 1 and (t not in self.outputs or t in self.copies)
                if ends and t not in streaming and at % self.alignment == 0 and self.rng.random() < 0.7:
                    parts.append(t)
                at += self.size[t]
        self.rng.shuffle(parts)
        return parts

    def put_together(self, out: str, reads: list[str], parts: list[str]) -> None:
        address = self.place(self.size[out], out)
        at = address
        for t in reads:
            if t in parts:
                self.evict(t)
                self.program.append(Load(t, at))
                self.ranges[t] = (at, at + up(self.size[t], self.alignment))
            at += self.size[t]
        self.program.append(Alloc(out, address, parts=tuple(parts)))
        self.overlapped = set(parts)

    def choose_overlap(self, name: str, unit: Piece, streaming: dict[str, int]) -> str | None:
        """An input that the only output may be written over, element by element in place."""
        if name in self.grouped or len(unit.writes) != 1 or unit.writes[0] in streaming:
            return None
        op = self.network.operators[self.network.operator_id[name]]
        roots = [self.network.tensors[t].name for t in op.inputs if self.network.root[t] == t]
        dying = [
            t for t in unit.reads
            if op.geometry is not None and op.geometry.kind == "elementwise"
            and self.network.tensors[self.network.tensor_id[t]].patches
            == self.network.tensors[op.outputs[0]].patches
            and t not in streaming and self.left[t] == 1
            and roots.count(t) == 1 and self.size[t] == self.size[unit.writes[0]]
            and [self.network.root[i] for i in op.inputs].count(self.network.tensor_id[t]) == 1
            and (t not in self.outputs or t in self.copies)
        ]  # fmt: skip
        return self.rng.choice(dying) if dying and self.rng.random() < 0.6 else None

    def overlap(self, t: str, x: str) -> None:
        start, end = self.ranges[x]
        self.program.append(Alloc(t, start, x, 0))
        self.ranges[t] = (start, end)
        self.overlapped = {x}

    # -- moves -----------------------------------------------------------------------------------------

    def fidget(self, locked: set[str]) -> None:
        """Moves that no planner would make and that are legal all the same."""
        while self.rng.random() < self.restless:
            here = [t for t in self.ranges if t in self.produced]
            away = [t for t in self.copies if t not in self.ranges and not self.is_inner(t)]
            match self.rng.randrange(4):
                case 0 if here:  # spill, evict or relocate
                    t = self.rng.choice(here)
                    if t not in locked:
                        self.evict(t)
                case 1 if away:
                    self.load(self.rng.choice(away))
                case 2 if here:
                    self.store(self.rng.choice(here))
                case 3 if here:  # relocate, even what is needed next
                    t = self.rng.choice(here)
                    if t in self.overlapped:
                        continue
                    self.evict(t)
                    if t in self.copies:
                        self.load(t)

    def is_inner(self, t: str) -> bool:
        return not any(t in u.reads or t in u.writes for u in self.units.values())

    def load(self, t: str) -> None:
        self.program.append(Load(t, self.place(self.size[t], t)))

    def store(self, t: str) -> None:
        self.program.append(Store(t))
        self.copies.add(t)

    def evict(self, t: str) -> None:
        needed = self.left[t] or t in self.outputs
        if needed and t not in self.copies:
            self.store(t)
        self.program.append(Free(t))
        del self.ranges[t]

    def tidy(self) -> None:
        for t in [t for t in self.ranges if t in self.produced and not self.left[t]]:
            if self.rng.random() < 0.8:
                self.evict(t)

    def finish(self) -> None:
        for t in self.outputs - self.copies:
            self.store(t)
        for t in list(self.ranges):
            if self.rng.random() < 0.4:
                self.evict(t)

    def place(self, size: int, owner: str) -> int:
        """A random free place: under, between or above what is there."""
        need = up(size, self.alignment)
        taken = sorted(self.ranges.values())
        gaps, at = [], 0
        for start, end in taken:
            if start - at >= need:
                gaps.append(at + self.rng.randint(0, (start - at - need) // self.alignment) * self.alignment)
            at = max(at, end)
        gaps.append(at)
        address = self.rng.choice(gaps)
        if need:
            self.ranges[owner] = (address, address + need)
        self.top = max(self.top, address + need)
        return address
