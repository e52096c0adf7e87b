"""A small network of modules, planned by hand: all that a page of modules has to show, in twenty layers.

A stem and a head that stream, a module with a module inside it, one whose output is joined in DRAM
(processing II), and a sum with a branch of nothing. Addresses come from first fit; no planner is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from onchip.network import Geometry, Network, OperatorSpec, Patches, TensorKind
from onchip.plans import Alloc, Free, Instruction, Join, Load, Plan, PlanChip, Result, Run, Scratch, Section

KIB = 1024


@dataclass
class Draft:
    """A network in the making: every layer is named after what it writes."""

    prefix: str = "net."
    tensors: list[tuple[str, int, TensorKind]] = field(default_factory=list)
    operators: list[OperatorSpec] = field(default_factory=list)
    shape: dict[str, tuple[int, int]] = field(default_factory=dict)
    patches: dict[str, Patches] = field(default_factory=dict)

    def _tensor(self, name: str, channels: int, side: int, kind: TensorKind = "activation") -> str:
        name = self.prefix + name
        self.tensors.append((name, channels * (-(-side // 4) * 4) ** 2, kind))
        self.shape[name] = channels, side
        self.patches[name] = Patches(channels, side, side, 4, 4)
        return name

    def input(self, name: str, channels: int, side: int) -> str:
        return self._tensor(name, channels, side, "input")

    def layer(
        self,
        name: str,
        reads: str,
        channels: int,
        kernel: tuple[int, int],
        stride: int = 1,
        kind: str = "conv",
    ) -> str:
        before, side = self.shape[reads]
        after = -(-side // stride)
        out = self._tensor(name, channels, after)
        weights = before * channels * kernel[0] * kernel[1] if kind == "conv" else 0
        geometry = Geometry(kind, (1, before, side, side), (1, channels, after, after), kernel, (stride,) * 2)
        type_ = "Conv+Relu" if kind == "conv" else "MaxPool"
        workspace = weights * min(channels, 32) // channels + 10 * KIB  # to stream through
        self.operators.append(OperatorSpec(out, type_, [reads], [out], weights, workspace, geometry))
        return out

    def merge(self, name: str, reads: Sequence[str], type_: str) -> str:
        channels, side = self.shape[reads[0]]
        if type_ == "Concat":
            channels = sum(self.shape[t][0] for t in reads)
        out = self._tensor(name, channels, side)
        kind = "concat" if type_ == "Concat" else "elementwise"
        shape, room = (1, channels, side, side), 64 if type_ == "Add" else 0
        self.operators.append(
            OperatorSpec(out, type_, list(reads), [out], 0, room, Geometry(kind, shape, shape))
        )
        return out


@dataclass(frozen=True)
class Item:
    """What becomes a section: layers in order, and for a module its branches."""

    name: str
    layers: tuple[str, ...]
    start: str = ""
    branches: tuple[tuple[str, ...], ...] = ()
    processing: str | None = None
    nested: tuple[str, ...] = ()


def network(prefix: str = "net.") -> tuple[Network, tuple[Item, ...]]:
    """The network, and its sections in order."""
    d = Draft(prefix)
    x = d.input("x", 3, 64)
    s1 = d.layer("stem.1", x, 16, (3, 3), 2)
    s2 = d.layer("stem.2", s1, 64, (3, 3))
    # A module of four branches, one of them with a module inside it.
    a = d.layer("a.one", s2, 16, (1, 1))
    b1 = d.layer("a.two.1", s2, 24, (1, 1))
    b2 = d.layer("a.two.2", b1, 16, (5, 5))
    c1 = d.layer("a.three.1", s2, 32, (1, 1))
    left, right = d.layer("a.three.left", c1, 8, (1, 3)), d.layer("a.three.right", c1, 8, (3, 1))
    inner = d.merge("a.three.cat", [left, right], "Concat")
    p1 = d.layer("a.pool.1", s2, 64, (3, 3), kind="pool")
    p2 = d.layer("a.pool.2", p1, 16, (1, 1))
    first = d.merge("a.cat", [a, b2, inner, p2], "Concat")
    # One whose branches go to DRAM.
    r1 = d.layer("r.conv.1", first, 48, (1, 1))
    r2 = d.layer("r.conv.2", r1, 64, (3, 3), 2)
    r3 = d.layer("r.pool", first, 64, (3, 3), 2, "pool")
    second = d.merge("r.cat", [r2, r3], "Concat")
    # A sum.
    e1 = d.layer("e.1", second, 32, (1, 1))
    e2 = d.layer("e.2", e1, 128, (3, 3))
    third = d.merge("e.add", [second, e2], "Add+Relu")
    end = d.layer("head", third, 10, (1, 1))
    items = (
        Item("stem", (s1, s2)),
        Item(
            prefix + "a",
            (b1, b2, c1, left, right, inner, p1, p2, a, first),
            s2,
            ((b1, b2), (c1, left, right, inner), (p1, p2), (a,)),
            "I",
            (inner,),
        ),
        Item(prefix + "r", (r1, r2, r3, second), first, ((r1, r2), (r3,)), "II"),
        Item(prefix + "e", (e1, e2, third), second, ((e1, e2), ()), "I"),
        Item("head", (end,)),
    )
    return Network.build(prefix + "modules", d.tensors, d.operators, [end], patches=d.patches), items


def planned(net: Network, items: Sequence[Item], budget: int = 256 * KIB) -> Plan:
    """The program that runs the items as they say."""
    return _Writer(net, items, budget).plan()


class _Writer:
    def __init__(self, net: Network, items: Sequence[Item], budget: int) -> None:
        self.net, self.items, self.budget = net, items, budget
        self.size = {t.name: t.bytes for t in net.tensors}
        self.specs = {op.name: op for op in net.operators}
        self.program: list[Instruction] = []
        self.at: dict[str, tuple[int, int]] = {}  # resident: [address, end)
        self.blocks: dict[str, tuple[int, int]] = {}  # room kept for outputs of merges
        self.dram = {t.name for t in net.tensors if t.kind == "input"}
        self.left = {t.name: net.readers[t.id].bit_count() for t in net.tensors}

    def room(self, size: int) -> int:
        taken = sorted([*self.at.values(), *self.blocks.values()])
        address = 0
        for low, high in taken:
            if low - address >= size:
                break
            address = max(address, high)
        assert address + size <= self.budget
        return address

    def reserve(self, name: str, address: int | None = None) -> int:
        address = self.room(self.size[name]) if address is None else address
        self.at[name] = address, address + self.size[name]
        return address

    def reads(self, name: str) -> list[str]:
        return [self.net.tensors[t].name for t in self.specs[name].inputs]

    def release(self, name: str) -> None:
        for t in self.reads(name):
            self.left[t] -= 1
            if not self.left[t] and t in self.at:
                del self.at[t]
                self.program.append(Free(t))

    def plan(self) -> Plan:
        sections = []
        for item in self.items:
            first = len(self.program)
            for layer in item.layers if not item.branches else ():
                self.stream(layer)
            if item.branches:
                self.module(item)
            merge = item.layers[-1] if item.branches else None
            branches = tuple(item.branches)
            sections.append(
                Section(
                    item.name, first, len(self.program), item.start or None, merge, branches,
                    item.processing,  # type: ignore[arg-type]
                )
            )  # fmt: skip
        weights = sum(op.weight_bytes for op in self.net.operators)
        result = Result("feasible", 0, 0, 0, 0, weights, 0, 0, self.budget, self.budget, 0.001)
        chip = PlanChip("exynos-npu")
        return Plan(self.net, chip, self.budget, tuple(self.program), result, sections=tuple(sections))

    def stream(self, layer: str) -> None:
        operands = [t for t in self.reads(layer) if t not in self.at]
        out = layer
        self.scratch(layer)
        self.program.append(Run(layer, tuple((t, self.size[t]) for t in [*operands, out])))
        self.dram.add(out)
        self.release(layer)

    def scratch(self, layer: str) -> None:
        size = self.specs[layer].workspace
        if size:
            self.program.append(Scratch(layer, self.room(size)))

    def module(self, item: Item) -> None:
        if item.start not in self.at:
            self.program.append(Load(item.start, self.reserve(item.start)))
        merge, whole = item.layers[-1], item.processing == "I"
        concat = self.specs[merge].type == "Concat"
        block = self.room(self.size[merge])
        if whole:
            self.blocks[merge] = block, block + self.size[merge]
        place: dict[str, int] = {}
        for name in (merge, *item.nested) if whole and concat else ():
            offset = place.get(name, block)
            for t in self.reads(name):
                place[t] = offset
                offset += self.size[t]
        for layer in item.layers[:-1]:
            if not whole and layer in self.reads(merge):
                self.stream(layer)
            elif layer in item.nested:
                self.in_place(layer, place[layer])
            else:
                address = self.reserve(layer, place.get(layer, block if layer in self.reads(merge) else None))
                self.program.append(Alloc(layer, address))
                self.scratch(layer)
                self.program.append(Run(layer))
                self.release(layer)
        self.blocks.clear()
        if not whole:
            self.program.append(Join(merge))
            self.dram.add(merge)
        elif concat:
            self.in_place(merge, block)
        else:
            (over,) = (t for t in self.reads(merge) if t != item.start)
            del self.at[over]
            self.program += [Alloc(merge, self.reserve(merge, block), over, 0), Run(merge)]
            self.release(merge)

    def in_place(self, layer: str, address: int) -> None:
        parts = tuple(self.reads(layer))
        for t in parts:
            del self.at[t]
        self.program += [Alloc(layer, self.reserve(layer, address), parts=parts), Run(layer)]


@cache
def module_plan(prefix: str = "net.") -> Plan:
    """The network's plan."""
    return planned(*network(prefix))


@cache
def wide_plan(count: int) -> Plan:
    """`count` modules of nine layers in a row, each the next one's input; every fifth by processing II."""
    d = Draft("row.")
    tensor = d.layer("stem", d.input("x", 3, 32), 16, (3, 3), 2)
    items = [Item("stem", (tensor,))]
    for i in range(count):
        start, name = tensor, f"m{i}"
        one = d.layer(f"{name}.one", start, 4, (1, 1))
        two = [d.layer(f"{name}.two.1", start, 6, (1, 1))]
        two.append(d.layer(f"{name}.two.2", two[-1], 4, (3, 3)))
        three = [d.layer(f"{name}.three.1", start, 8, (1, 1))]
        three.append(d.layer(f"{name}.three.2", three[-1], 8, (1, 7)))
        three.append(d.layer(f"{name}.three.3", three[-1], 4, (7, 1)))
        pool = [d.layer(f"{name}.pool.1", start, 16, (3, 3), kind="pool")]
        pool.append(d.layer(f"{name}.pool.2", pool[-1], 4, (1, 1)))
        branches = (tuple(pool), tuple(three), tuple(two), (one,))
        tensor = d.merge(f"{name}.cat", [one, two[-1], three[-1], pool[-1]], "Concat")
        layers = (*(t for b in branches for t in b), tensor)
        items.append(Item(f"row.{name}", layers, start, branches, "II" if i % 5 == 4 else "I"))
    end = d.layer("head", tensor, 10, (1, 1))
    items.append(Item("head", (end,)))
    return planned(Network.build("row", d.tensors, d.operators, [end], patches=d.patches), items, 64 * KIB)


def skip_plan() -> Plan:
    """A module that a tensor goes around, to a sum after it."""
    d = Draft()
    begin = d.layer("stem", d.input("x", 3, 32), 16, (3, 3), 2)
    one, two = d.layer("m.one", begin, 8, (1, 1)), d.layer("m.two", begin, 8, (3, 3))
    both = d.merge("m.cat", [one, two], "Concat")
    last = d.layer("tail", both, 16, (3, 3))
    end = d.merge("sum", [last, begin], "Add")
    items = [
        Item("stem", (begin,)),
        Item("net.m", (two, one, both), begin, ((two,), (one,)), "I"),
        Item("tail", (last, end)),
    ]
    return planned(Network.build("skip", d.tensors, d.operators, [end], patches=d.patches), items)
