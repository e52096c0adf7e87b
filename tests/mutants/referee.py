"""Executes any plan byte by byte, believes nothing of it, and counts every figure again.

Written from docs/plan-program.md and docs/objectives.md. `Foul` says what is not so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from byte_machine import pieces, up

from mutants.clock import times
from mutants.parts import sections_hold
from mutants.walks import Foul, loses_a_byte, room_to_stream
from onchip.network import Operator
from onchip.plans import (
    Alloc,
    Free,
    Group,
    Instruction,
    Join,
    Load,
    Move,
    PinnedTensor,
    PinnedWeights,
    Plan,
    Run,
    Scratch,
    Store,
)

__all__ = ["Facts", "FactsOf", "Referee", "require"]


def require(truth: object, what: str) -> None:
    if not truth:
        raise Foul(what)


@dataclass(frozen=True)
class Facts:
    """What a group needs of its scratch, what of each streamed tensor crosses, the weights it fetches, and
    whether it loses a byte with (made, over, by); its multiply-accumulates, None if not known."""

    need: int
    crossing: Mapping[str, int]
    weights: int
    loses: Callable[[str, str, int], bool]
    macs: int | None


FactsOf = Callable[[Plan, Group, Mapping[str, int]], Facts]
"""The facts of a group whose run streams some tensors; raises `Foul`."""


MOST = 1 << 22
"""Bytes that one tensor or scratch may take here: every one has a record of its own."""


@dataclass
class Referee:
    """`confirm` raises `Foul` unless a plan is legal and its figures are its own."""

    plan: Plan
    facts_of: FactsOf | None = None
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(
            ("compulsory", "reload", "spill", "weights", "peak", "moved"), 0
        )
    )

    def __post_init__(self) -> None:
        plan, net = self.plan, self.plan.network
        self.align = plan.chip.alignment_bytes
        self.names = [t.name for t in net.tensors]
        self.size = {t.name: t.bytes for t in net.tensors}
        views = {self.names[v.tensor]: self.names[v.of] for v in net.views}
        self.views = set(views)
        self.root = {name: views.get(name, name) for name in self.names}
        self.operators = {op.name: op for op in net.operators}
        self.groups = {g.name: g for g in plan.groups}
        self.pieces = pieces(net, plan.groups)
        self.pinned_weights = {p.operator: p.address for p in plan.pins if isinstance(p, PinnedWeights)}
        self.pinned = {p.tensor: p.address for p in plan.pins if isinstance(p, PinnedTensor)}
        self.state_in = {s.input: s.address for s in plan.state}
        self.state_out = {s.output: s.address for s in plan.state}
        self.outputs = {self.root[self.names[t]] for t in net.outputs} - set(self.state_out)
        self.inputs = {t.name for t in net.tensors if t.kind == "input"}
        self.apart = plan.chip.weight_scratchpad_bytes is not None
        self.resident = plan.options.get("weights") == "resident" and not self.apart
        self.memories = {m.name: m for m in plan.chip.memories}
        sizes: dict[str | None, int] = {m.name: m.bytes for m in plan.chip.memories} or {None: plan.budget}
        require(sum(sizes.values()) == plan.budget, "the memories are not the budget")
        # Whatever nobody has written or owns is not there.
        self.cells: dict[str | None, dict[int, tuple[str, int]]] = {m: {} for m in sizes}
        self.owners: dict[str | None, dict[int, set[str]]] = {m: {} for m in sizes}
        self.owned: dict[str, tuple[str | None, int, int]] = {}
        self.most = sizes
        self.tops = dict.fromkeys(sizes, 0)
        self.peaks = dict.fromkeys(sizes, 0)
        self.accessed = dict.fromkeys(sizes, 0)
        self.waited = 0
        self.moved: dict[tuple[str, str], int] = {}
        self.dram = {t for t in self.inputs if t not in self.state_in}
        self.made = set(self.inputs)
        self.at: dict[str, tuple[str | None, int]] = {}
        self.over: dict[str, str] = {}
        self.by: dict[str, int] = {}
        self.parts: dict[str, tuple[str, ...]] = {}
        self.joined: set[str] = set()
        self.scratch: dict[str, tuple[str | None, int]] = {}
        self.ran: list[str] = []
        self.fetched_whole: set[str] = set()
        self.macs: int | None = 0

    # -- everything ----------------------------------------------------------------------------------------

    def confirm(self) -> None:
        plan = self.plan
        require(type(plan.budget) is int and 0 <= plan.budget <= 2**40, "no budget")
        require(1 <= self.align <= 2**20, "no alignment")
        self.patches_agree()
        self.repeats_agree()
        self.set_out()
        for instruction in plan.program:
            self.step(instruction)
        require(sorted(self.ran) == sorted(self.pieces), "not everything ran once")
        for t in self.outputs:
            require(t in self.dram, f"{t} is not in DRAM at the end")
        for t, address in self.state_out.items():
            require(self.at.get(t) == (None, address), f"{t} is not handed on")
            self.holds(t)
        self.figures()
        self.claims()
        sections_hold(plan)

    def patches_agree(self) -> None:
        """A tensor in patches is the map that every geometry says."""
        for op in self.plan.network.operators:
            g = op.geometry
            if g is None:
                continue

            def sides(shape: Sequence[int], layout: str = g.layout) -> tuple[int, ...] | None:
                if len(shape) != 4:
                    return None
                n, c, h, w = shape if layout == "NCHW" else (shape[0], shape[3], shape[1], shape[2])
                return n * c, h, w

            out = sides(g.output)
            for i, t in enumerate((*op.outputs, *(op.inputs if g.promises else ()))):
                p = self.plan.network.tensors[t].patches
                if p is None or (i < len(op.outputs) and len(op.outputs) > 1):
                    continue
                mine, said = (p.channels, p.rows, p.columns), out
                if i >= len(op.outputs) and g.kind not in ("elementwise", "concat"):
                    said = sides(g.input) if t == op.inputs[0] else None
                if said is None:
                    continue
                if i >= len(op.outputs) and g.kind == "elementwise":
                    fits = said[0] % mine[0] == 0 and all(
                        a in (1, b) for a, b in zip(mine[1:], said[1:], strict=True)
                    )
                elif i >= len(op.outputs) and g.kind == "concat":
                    fits = mine[1:] == said[1:]
                else:
                    fits = mine == said
                require(fits, f"{self.names[t]} lies in other patches than {op.name} says")

    def repeats_agree(self) -> None:
        """What a repeat writes has the value of what its original writes, by the terms of both."""
        net = self.plan.network
        maker = {t: (op, i) for op in net.operators for i, t in enumerate(op.outputs)}
        whole = {v.tensor: (v.of, v.offset) for v in net.views}
        known: dict[int, object] = {}
        numbers: dict[object, int] = {}

        def value(t: int) -> object:
            if t not in known:
                if t in whole:
                    of, offset = whole[t]
                    term: object = ("part", value(of), offset, net.tensors[t].bytes)
                elif t in maker:
                    op, i = maker[t]
                    meant = op if op.repeats is None else net.operators[op.repeats]
                    own = (op.type, op.weight_bytes, op.workspace, op.macs, op.geometry, op.reach)
                    sizes = [(n.bytes, n.shape, n.patches) for n in (net.tensors[x] for x in op.outputs)]
                    term = (meant.name, own, tuple(map(value, op.inputs)), tuple(sizes), i)
                else:
                    term = net.tensors[t].name
                known[t] = numbers.setdefault(term, len(numbers))
            return known[t]

        again = [op for op in net.operators if op.repeats is not None]
        for op in again:
            of = net.operators[op.repeats or 0]
            require(of.repeats is None, f"{op.name} repeats a repeat")
            require(len(op.outputs) == len(of.outputs), f"{op.name} writes more or less than {of.name}")
            for t, other in zip(op.outputs, of.outputs, strict=True):
                require(value(t) == value(other), f"{op.name} does not make what {of.name} makes")
                require(t not in net.outputs, f"{op.name} makes an output again")
                parts = {x for pair in ((v.tensor, v.of) for v in net.views) for x in pair}
                require(not parts & {t, other}, f"{op.name} makes what is, or holds, a part")
        for op in net.operators if again else ():
            own = [value(t) for t in op.inputs]
            require(len(set(own)) == len(own), f"{op.name} reads one value twice")

    def set_out(self) -> None:
        for name, address in self.pinned_weights.items():
            require(name in self.operators and name in self.pieces, f"{name} has no weights to pin")
            require(self.operators[name].weight_bytes > 0, f"{name} has no weights")
            if not self.apart:
                self.take(f"weights {name}", None, address, self.operators[name].weight_bytes)
        for t in self.pinned:
            require(t in self.size and t not in self.views, f"{t} is pinned, and no tensor")
        if self.apart:
            self.weights_fit()
        for s in self.plan.state:
            require(s.input in self.inputs and s.output not in self.inputs, "a state is no pair")
            require(self.size[s.input] == self.size[s.output], "a state changes its size")
            self.take(s.input, None, s.address, self.size[s.input])
            self.at[s.input] = None, s.address
            self.fill(s.input)
        everyone = [g for g in self.plan.groups for _ in g.operators]
        members = [name for g in self.plan.groups for name in g.operators]
        require(len(members) == len(set(members)) and everyone is not None, "an operator is in two groups")
        require(all(g.operators for g in self.plan.groups), "a group is empty")
        require(not set(self.groups) & set(self.operators), "a group has an operator's name")

    def weights_fit(self) -> None:
        size = self.plan.chip.weight_scratchpad_bytes or 0
        used = [False] * size
        for name, address in self.pinned_weights.items():
            need = up(self.operators[name].weight_bytes, self.align)
            require(
                address >= 0 and address % self.align == 0 and address + need <= size, "weights lie outside"
            )
            require(not any(used[address : address + need]), "weights meet")
            used[address : address + need] = [True] * need
        room = best = 0
        for i in range(size + 1):
            if i == size or used[i]:
                start = up(i - room, self.align)
                best, room = max(best, i - start), 0
            else:
                room += 1
        for name, piece in self.pieces.items():
            need = 0 if name in self.pinned_weights else piece.weights
            require(up(need, self.align) <= best, f"the weights of {name} do not fit")

    # -- bytes ---------------------------------------------------------------------------------------------

    def take(
        self, owner: str, memory: str | None, address: int, size: int, beside: Sequence[str] = ()
    ) -> None:
        end = address + up(size, self.align)
        require(memory in self.cells, f"there is no memory {memory}")
        require(address >= 0 and address % self.align == 0, f"{owner} at {address}")
        require(end <= self.most[memory], f"{owner} leaves its memory")
        require(end - address <= MOST, f"{owner} is larger than what is simulated")
        for i in range(address, end):
            cell = self.owners[memory].setdefault(i, set())
            require(cell <= set(beside), f"byte {i} for {owner} is taken")
            cell.add(owner)
        self.owned[owner] = memory, address, end
        taken = {m: len(row) for m, row in self.owners.items()}
        self.peaks[memory] = max(self.peaks[memory], taken[memory])
        self.counts["peak"] = max(self.counts["peak"], sum(taken.values()))
        if size:
            self.tops[memory] = max(self.tops[memory], end)

    def give_back(self, owner: str) -> None:
        memory, start, end = self.owned.pop(owner)
        for i in range(start, end):
            cell = self.owners[memory][i]
            cell.discard(owner)
            if not cell:
                del self.owners[memory][i]

    def fill(self, t: str) -> None:
        memory, address = self.at[t]
        self.cells[memory].update((address + i, (t, i)) for i in range(self.size[t]))

    def holds(self, t: str) -> None:
        """A tensor is on chip, and every byte of it is its own."""
        require(t in self.at and t in self.made, f"{t} is not there")
        memory, address = self.at[t]
        cells = self.cells[memory]
        kept = all(cells.get(address + i) == (t, i) for i in range(self.size[t]))
        require(kept, f"{t} has lost a byte")

    def touch(self, memory: str | None, size: int) -> None:
        self.accessed[memory] += size
        if memory is not None:
            rate = self.memories[memory].bytes_per_second or self.plan.chip.scratchpad_bytes_per_second
            self.waited += 0 if rate is None else math.ceil(size * 10**12 / Fraction(rate))

    def known(self, t: str) -> str:
        require(t in self.size and t not in self.views, f"{t} is no tensor")
        require(
            any(t in (*p.reads, *p.writes) for p in self.pieces.values()) or t in self.inputs, f"{t} is inner"
        )
        return t

    # -- instructions ----------------------------------------------------------------------------------------

    def step(self, step: Instruction) -> None:
        match step:
            case Load(t, address, memory):
                self.known(t)
                require(t in self.dram and t not in self.at, f"{t} cannot be loaded")
                self.place(t, memory, address)
                self.fill(t)
                self.inwards(t, self.size[t])
                self.touch(memory, self.size[t])
            case Alloc(t, address, over, by, parts, memory):
                self.known(t)
                require(t not in self.made and t not in self.at, f"{t} cannot be reserved")
                under = parts or (() if over is None else (over,))
                for x in under:
                    self.holds(self.known(x))
                    require(x not in self.over and self.at[x][0] == memory, f"{x} cannot be written over")
                if over is not None:
                    require(self.at[over][1] - address == by, "another distance")
                self.place(t, memory, address, under)
                self.over |= dict.fromkeys(under, t)
                self.by[t], self.parts[t] = by, parts
            case Scratch(name, address, memory):
                require(
                    name in self.pieces and name not in self.ran and name not in self.scratch,
                    f"scratch {name}",
                )
                self.take(f"scratch {name}", memory, address, self.pieces[name].workspace)
                self.scratch[name] = memory, address
            case Move(t, address, memory):
                self.holds(self.known(t))
                require(t not in self.over and self.memories, f"{t} cannot be moved")
                source, _ = self.at[t]
                self.take(f"new {t}", memory, address, self.size[t])
                self.give_back(t)
                self.give_back(f"new {t}")
                self.place(t, memory, address)
                self.fill(t)
                self.touch(source, self.size[t])
                self.touch(memory, self.size[t])
                assert source is not None
                self.moved[source, memory] = self.moved.get((source, memory), 0) + self.size[t]
            case Run(name, streaming):
                require(name in self.pieces, f"{name} cannot run")
                self.run(name, dict(streaming))
            case Store(t):
                self.holds(self.known(t))
                self.touch(self.at[t][0], self.size[t])
                self.outwards(t, self.size[t])
            case Free(t):
                self.holds(self.known(t))
                require(t not in self.over, f"{t} is freed under what lies over it")
                wanted = t in self.outputs or t in self.state_out or self.to_be_read(t)
                require(t in self.dram or not wanted, f"{t} is lost")
                self.pin_holds(t)
                self.give_back(t)
                del self.at[t]
            case Join(name):
                self.join(name)

    def to_be_read(self, t: str) -> bool:
        return any(t in piece.reads for name, piece in self.pieces.items() if name not in self.ran)

    def pin_holds(self, t: str) -> None:
        """A pinned tensor stays until its last reader ran, an output to the end."""
        require(t not in self.pinned or not (self.to_be_read(t) or t in self.outputs), f"{t} is pinned")

    def place(self, t: str, memory: str | None, address: int, under: Sequence[str] = ()) -> None:
        require(self.pinned.get(t) in (None, address), f"{t} is pinned elsewhere")
        self.take(t, memory, address, self.size[t], under)
        self.at[t] = memory, address

    def run(self, name: str, streaming: dict[str, int]) -> None:
        piece, group = self.pieces[name], self.groups.get(name)
        require(name not in self.ran, f"{name} ran before")
        require(
            set(streaming) <= {*piece.reads, *piece.writes}, f"{name} streams what is none of its operands"
        )
        require(not set(streaming) & set(self.pinned), "what is pinned streams")
        require(not piece.workspace or name in self.scratch, f"{name} has no scratch")
        for t in piece.reads:
            if t in streaming:
                require(t in self.dram, f"{t} streams and is not in DRAM")
            else:
                self.holds(t)
        for t in piece.writes:
            require((t in streaming) != (t in self.at), f"{t} has a range and streams, or neither")
        facts = self.facts(name, group, streaming)
        require(facts.need <= piece.workspace, f"{name} needs {facts.need}, has {piece.workspace}")
        require(dict(facts.crossing) == streaming, f"{name} streams {streaming}, and {facts.crossing} cross")
        self.counts["weights"] += facts.weights
        self.macs = None if self.macs is None or facts.macs is None else self.macs + facts.macs
        for t in piece.writes:
            for x in [x for x, y in self.over.items() if y == t]:
                require(x in piece.reads, f"{x} is no input of {name}")
                require(x not in self.outputs or x in self.dram, f"{x} is an output and lost")
                if not self.parts[t]:
                    require(not facts.loses(t, x, self.by[t]), f"{name} overwrites {x} before it has read it")
        self.accesses(name, streaming)
        self.ran.append(name)
        for t in piece.reads:
            if t in streaming:
                self.inwards(t, streaming[t])
        for t in piece.writes:
            self.made.add(t)
            if t in streaming:
                self.outwards(t, streaming[t])
                continue
            if self.parts[t]:
                self.in_places(name, t)
            self.fill(t)
            for x in [x for x, y in self.over.items() if y == t]:
                require(not self.to_be_read(x), f"{x} is written over and still to be read")
                require(not (x in self.pinned and x in self.outputs), f"{x} is pinned and written over")
                del self.over[x], self.at[x]
                self.give_back(x)
        if name in self.scratch:
            self.give_back(f"scratch {name}")
            memory, address = self.scratch.pop(name)
            for i in range(address, address + piece.workspace):
                self.cells[memory].pop(i, None)
        for t in {*piece.reads, *piece.writes}:
            if t in self.at and t in self.made and t not in self.over:
                self.holds(t)

    def in_places(self, name: str, t: str) -> None:
        """Operands of a plain concat begin where the bytes of those before them end."""
        op = self.operators.get(name)
        require(op is not None and name not in self.groups and self.is_plain(op), f"{name} joins nothing")
        begin = self.at[t][1]
        for x in self.pieces[name].reads:
            if x in self.parts[t]:
                require(self.at[x][1] == begin, f"{x} does not lie in its place")
            begin += self.size[x]

    def is_plain(self, op: Operator | None) -> bool:
        """Whether a concat's output is its operands' bytes in turn: one image, channels outermost."""
        if op is None or op.geometry is None or op.geometry.kind != "concat" or op.geometry.output[0] != 1:
            return False
        tensors = [self.plan.network.tensors[t] for t in op.inputs]
        out = self.plan.network.tensors[op.outputs[0]]
        if "+" in op.type or op.weight_bytes or op.macs or any(t.name in self.views for t in tensors):
            return False
        if sum(t.bytes for t in tensors) != out.bytes:
            return False
        if out.patches is not None:
            p = out.patches
            return all(
                t.patches is not None
                and (t.patches.rows, t.patches.columns, t.patches.height, t.patches.width)
                == (p.rows, p.columns, p.height, p.width)
                and t.bytes * p.elements == out.bytes * t.patches.elements
                for t in tensors
            )
        g = op.geometry
        plane = g.output[2:] if g.layout == "NCHW" or len(g.output) == 2 else g.output[1:3]
        element = out.bytes // math.prod(g.output)
        whole = all(t.patches is None and t.bytes % (element * math.prod(plane)) == 0 for t in tensors)
        return whole and (g.layout == "NCHW" or len(g.output) == 2 or math.prod(plane) == 1)

    def join(self, name: str) -> None:
        require(
            name in self.operators and name in self.pieces and name not in self.ran,
            f"{name} cannot be joined",
        )
        piece, op = self.pieces[name], self.operators[name]
        require(self.is_plain(op) and not op.workspace, f"{name} joins nothing")
        (t,) = piece.writes
        require(t not in self.at and t not in self.pinned, f"{t} is joined and has a range")
        for x in piece.reads:
            require(x in self.dram and x not in self.inputs and x not in self.joined, f"{x} cannot be joined")
        self.joined |= set(piece.reads)
        self.made.add(t)
        self.dram.add(t)
        self.ran.append(name)
        self.macs = None if self.macs is None else self.macs + work(op)
        if name in self.scratch:
            self.give_back(f"scratch {name}")
            del self.scratch[name]

    # -- what a run takes ------------------------------------------------------------------------------------

    def facts(self, name: str, group: Group | None, streaming: Mapping[str, int]) -> Facts:
        if group is not None and group.tiling is not None:
            require(self.facts_of is not None, "nobody knows this tiling")
            assert self.facts_of is not None
            return self.facts_of(self.plan, group, streaming)
        sizes = {t: self.size[t] for t in streaming}
        ids = self.plan.network.tensor_id
        if group is None:
            op = self.operators[name]
            weights = 0 if name in self.pinned_weights else op.weight_bytes
            held = min(weights, op.workspace) if self.resident else 0
            room = op.workspace - held
            if sum(sizes.values()) > room:
                passing = 0 if self.apart or held else weights
                need = room_to_stream(self.plan.network, op, [ids[t] for t in streaming], passing)
                require(need <= room, f"{name} streams through {room} bytes, and needs {need}")

            def loses(t: str, x: str, by: int) -> bool:
                return loses_a_byte(self.plan.network, op, ids[x], by)

            return Facts(op.workspace, sizes, weights, loses, work(op))
        return self.in_turn(group, sizes)

    def in_turn(self, group: Group, sizes: Mapping[str, int]) -> Facts:
        """A group without a tiling: one operator after the other, everything inner in the scratch."""
        net = self.plan.network
        require(group.subgroups == 1, "sub-groups without a tiling")
        members = [self.operators[name] for name in group.operators]
        piece = self.pieces[group.name]
        inner = {self.names[t] for op in members for t in op.outputs} - set(piece.writes)
        refills = dict(group.refills)
        require(set(refills) | set(group.resident_weights) <= set(group.operators), "a stranger's weights")
        require(all(n >= 1 for n in refills.values()), "no refill")
        require(all(refills.get(n, 1) == 1 for n in group.resident_weights), "resident weights are refilled")
        kept = set(group.resident_weights)
        need = sum(up(self.size[t], self.align) for t in inner)
        need += sum(op.weight_bytes for op in members if op.name in kept)
        need += max(
            op.workspace - (op.weight_bytes if self.resident and op.name in kept else 0) for op in members
        )
        room = group.scratch_bytes - need
        require(sum(sizes.values()) <= room, f"{group.name} has no room to stream")
        weights = sum(op.weight_bytes * refills.get(op.name, 1) for op in members)

        def loses(t: str, x: str, by: int) -> bool:
            maker = next(op for op in members if t in {self.names[y] for y in op.outputs})
            before, waiting = set[str](), [maker]
            while waiting:
                reads = {self.root[self.names[y]] for y in waiting.pop().inputs}
                for op in members:
                    if op.name not in before and reads & {self.names[y] for y in op.outputs}:
                        before.add(op.name)
                        waiting.append(op)
            for op in members:
                reads_it = x in {self.root[self.names[y]] for y in op.inputs} and op.name not in before
                if reads_it and (op is not maker or loses_a_byte(net, op, net.tensor_id[x], by)):
                    return True
            return False

        return Facts(need, dict(sizes), weights, loses, sum(map(work, members)))

    def accesses(self, name: str, streaming: Mapping[str, int]) -> None:
        """What a run reads and writes, and where."""
        group = self.groups.get(name)
        scratch = self.scratch[name][0] if name in self.scratch else None

        def touch(memory: str | None, size: int) -> None:
            if self.memories and memory is not None:
                require(self.memories[memory].operands, f"{name} reaches into {memory}")
                self.touch(memory, size)

        for member in (name,) if group is None else group.operators:
            op = self.operators[member]
            operands = [self.names[t] for t in (*op.inputs, *op.outputs)]
            out = operands[-1]
            if group is None and self.parts.get(out):
                for x in operands[:-1]:
                    if x not in self.parts[out]:
                        touch(scratch if x in streaming else self.at[x][0], self.size[x])
                        touch(self.at[out][0], self.size[x])
                continue
            for t in operands:
                root = self.root[t]
                where = scratch if root in streaming or root not in self.at else self.at[root][0]
                touch(where, self.size[t])
        for n in streaming.values():
            touch(scratch, n)
        if group is None and self.pieces[name].workspace:
            touch(scratch, self.pieces[name].workspace)

    # -- figures -----------------------------------------------------------------------------------------

    def inwards(self, t: str, n: int) -> None:
        first = (
            t in self.inputs and t not in self.state_in and t not in self.fetched_whole and n >= self.size[t]
        )
        if first:
            self.fetched_whole.add(t)
        self.counts["compulsory"] += self.size[t] if first else 0
        self.counts["reload"] += n - (self.size[t] if first else 0)

    def outwards(self, t: str, n: int) -> None:
        first = t in self.outputs and t not in self.dram and n >= self.size[t]
        self.counts["compulsory"] += self.size[t] if first else 0
        self.counts["spill"] += n - (self.size[t] if first else 0)
        self.dram.add(t)

    def figures(self) -> None:
        r, c, chip = self.plan.result, self.counts, self.plan.chip
        traffic = c["reload"] + c["spill"]
        dram = traffic + c["compulsory"] + c["weights"]
        found = {
            "spill_bytes": c["spill"], "reload_bytes": c["reload"], "compulsory_bytes": c["compulsory"],
            "weight_bytes": c["weights"], "traffic_bytes": traffic, "dram_bytes": dram,
            "peak_bytes": c["peak"], "extent_bytes": sum(self.tops.values()),
        }  # fmt: skip
        for key, value in found.items():
            require(getattr(r, key) == value, f"{key} is {value}, not {getattr(r, key)}")
        if r.macs is not None:
            require(r.macs == self.macs, f"macs is {self.macs}, not {r.macs}")
        if r.energy_picojoules is not None:
            require(r.energy_picojoules == self.energy(dram), "another energy")
        timed = chip.dram_bytes_per_second is not None and chip.macs_per_second is not None
        derived = times(self.plan) if timed else []
        if self.plan.timing:
            stated = [(t.index, t.start, t.end, t.fetched) for t in self.plan.timing]
            require(stated == derived, "other times")
        if r.latency_picoseconds is not None:
            require(
                timed and r.latency_picoseconds == max((row[2] for row in derived), default=0),
                "another latency",
            )
        if self.memories:
            for use in r.memories:
                mine = self.peaks[use.memory], self.tops[use.memory], self.accessed[use.memory]
                require(
                    (use.peak_bytes, use.extent_bytes, use.accessed_bytes) == mine, f"{use.memory} differs"
                )
            require([u.memory for u in r.memories] == list(self.memories), "other memories")
            require({(m.source, m.target): m.bytes for m in r.moves} == self.moved, "other moves")
            require(r.move_bytes == sum(self.moved.values()), "other bytes moved")
            known = all(
                m.bytes_per_second or chip.scratchpad_bytes_per_second for m in self.memories.values()
            )
            if r.memory_picoseconds is not None:
                require(known and r.memory_picoseconds == self.waited, "another time at memories")
        else:
            require(not r.memories and not r.moves, "figures of memories that are not there")

    def energy(self, dram: int) -> int:
        chip = self.plan.chip
        require(chip.dram_picojoules_per_byte is not None, "no price of a DRAM byte")
        total = dram * Fraction(chip.dram_picojoules_per_byte or 0)
        total += sum(work(op) for op in self.operators.values()) * Fraction(chip.mac_picojoules or 0)
        local = Fraction(chip.scratchpad_picojoules_per_byte or 0)
        weights = sum(op.weight_bytes for op in self.operators.values())
        if self.memories:
            for name, memory in self.memories.items():
                total += self.accessed[name] * Fraction(memory.picojoules_per_byte or local)
            return math.ceil(total + (self.counts["weights"] + weights) * local)
        size = self.plan.network.tensors
        moved = sum(size[t].bytes for op in self.operators.values() for t in (*op.inputs, *op.outputs))
        for step in self.plan.program:
            if isinstance(step, Alloc):
                moved -= 2 * sum(self.size[x] for x in step.parts)
            if isinstance(step, Join):
                op = self.operators[step.operator]
                moved -= sum(size[t].bytes for t in (*op.inputs, *op.outputs))
        return math.ceil(total + (moved + weights + dram) * local)

    def claims(self) -> None:
        r, objective = self.plan.result, self.plan.options.get("objective", "traffic")
        pairs = {
            "traffic": (r.traffic_bytes, r.lower_bound_bytes),
            "peak": (r.extent_bytes, r.peak_lower_bound_bytes),
            "latency": (r.latency_picoseconds, r.latency_lower_bound_picoseconds),
            "energy": (r.energy_picojoules, r.energy_lower_bound_picojoules),
            "dram": (r.dram_bytes, r.dram_lower_bound_bytes),
            "memory": (r.memory_picoseconds, r.memory_lower_bound_picoseconds),
        }  # fmt: skip
        require(objective in pairs, "no objective")
        for value, bound in pairs.values():
            require(
                bound is None or (value is not None and 0 <= bound <= value), "a bound of nothing, or above"
            )
        require(r.status in ("optimal", "feasible"), "no status")
        if r.status == "optimal":
            meant = [str(objective)] + (["traffic"] if objective == "memory" else [])
            require(
                all(a is not None and a == b for a, b in (pairs[m] for m in meant)),
                "optimal, and not its bound",
            )
        require(math.isfinite(r.seconds) and r.seconds >= 0, "no seconds")


def work(op: Operator) -> int:
    """Multiply-accumulates as stated, or those of a convolution or matrix."""
    if op.macs or op.geometry is None:
        return op.macs
    g = op.geometry
    if g.kind in ("conv", "depthwise") and len(g.input) == 4 and g.groups:
        return (
            math.prod(g.output) * math.prod(g.kernel) * (g.input[1 if g.layout == "NCHW" else 3] // g.groups)
        )
    return math.prod(g.output) * g.input[-1] if g.kind == "fully_connected" and g.input else 0
