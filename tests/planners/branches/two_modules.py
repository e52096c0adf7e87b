"""A plan of two modules in a row, by hand: a concat of two branches, then a sum with an identity."""

from __future__ import annotations

from itertools import accumulate

from onchip.machines.chip import Chip, PartialWeights
from onchip.network import Geometry, Network, OperatorSpec
from onchip.plans import (
    Alloc,
    Free,
    Instruction,
    Join,
    Load,
    Plan,
    PlanChip,
    Result,
    Run,
    Scratch,
    Section,
    Store,
)

__all__ = ["CHIP", "ON_CHIP", "network", "plan", "runs"]

CHIP = Chip("plain", 1, partial_weights=PartialWeights(16))
ROOM = 192  # to stream through
RESULT = Result("feasible", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.25)


def conv(name: str, read: str, made: str, channels: tuple[int, int]) -> OperatorSpec:
    shapes = [(1, c, 4, 4) for c in channels]
    geometry = Geometry("conv", shapes[0], shapes[1], (1, 1), (1, 1), (0, 0, 0, 0), (1, 1))
    return OperatorSpec(name, "Conv", [read], [made], channels[0] * channels[1], ROOM, geometry)


def network() -> Network:
    """stem; a module of two branches and a concat; one of a convolution and an identity with a sum; head."""
    maps = [("x", 1), ("a", 4), ("p", 2), ("q", 3), ("r", 4), ("m", 6), ("u", 6), ("y", 6), ("z", 2)]
    shape = (1, 6, 4, 4)
    return Network.build(
        "two modules",
        [(name, 16 * channels, "input" if name == "x" else "activation") for name, channels in maps],
        [
            conv("stem", "x", "a", (1, 4)),
            conv("c1", "a", "p", (4, 2)),
            conv("c2", "a", "q", (4, 3)),
            conv("c3", "q", "r", (3, 4)),
            OperatorSpec("cat", "Concat", ["p", "r"], ["m"], 0, 0, Geometry("concat", (1, 2, 4, 4), shape)),
            conv("c4", "m", "u", (6, 6)),
            OperatorSpec("add", "Add", ["u", "m"], ["y"], 0, ROOM, Geometry("elementwise", shape, shape)),
            conv("head", "y", "z", (6, 2)),
        ],
        ["z"],
    )


def plan(*inner: Instruction, split: int, budget: int = 4096) -> Plan:
    """A legal plan whose modules do what `inner` says, the first `split` of them in the first module.

    It goes without reservations; whatever an instruction needs beside is put in before it. What lies around
    the modules streams where all of them do.
    """
    stem: list[Instruction] = [Load("x", 0), Run("stem")]
    head: list[Instruction] = [Run("head"), Store("z")]
    if all(isinstance(i, Join) or (isinstance(i, Run) and len(i.streaming) > 1) for i in inner):
        stem, head = [Run("stem", (("x", 16), ("a", 64)))], [Run("head", (("y", 96), ("z", 32)))]
    parts = tuple(stem), inner[:split], inner[split:], tuple(head)
    writer = _Writer(tuple(i for part in parts for i in part))
    bounds = [0]
    for part in parts:
        for instruction in part:
            writer.write(instruction)
        bounds.append(len(writer.program))
    start, first, second, after, end = bounds
    return Plan(
        writer.network,
        PlanChip("plain"),
        budget,
        tuple(writer.program),
        RESULT,
        sections=(
            Section("before", start, first),
            Section("first", first, second, "a", "cat", (("c1",), ("c2", "c3"))),
            Section("second", second, after, "m", "add", (("c4",), ())),
            Section("after", after, end),
        ),
    )


class _Writer:
    """Every tensor has a place of its own above the scratch; nothing leaves but to come again."""

    def __init__(self, skeleton: tuple[Instruction, ...]) -> None:
        self.network, self.program = network(), list[Instruction]()
        self.there, self.stored = set[str](), {"x"}
        self.later = {i.tensor for i in skeleton if isinstance(i, Load)}
        self.later |= {t for i in skeleton if isinstance(i, Run) for t, _ in i.streaming}
        places = accumulate((t.bytes for t in self.network.tensors), initial=ROOM)
        self.place = dict(zip((t.name for t in self.network.tensors), places, strict=False))

    def write(self, instruction: Instruction) -> None:
        match instruction:
            case Load(name):
                if name in self.there:
                    self.program.append(Free(name))
                self.program.append(Load(name, self.place[name]))
                self.there.add(name)
            case Run(name, streaming):
                self.run(name, dict(streaming), instruction)
            case Join(name):
                self.program.append(instruction)
                op = self.network.operators[self.network.operator_id[name]]
                self.stored |= {self.network.tensors[t].name for t in op.outputs}
            case _:
                self.program.append(instruction)

    def run(self, name: str, streaming: dict[str, int], instruction: Instruction) -> None:
        op = self.network.operators[self.network.operator_id[name]]
        read, made = ([self.network.tensors[t].name for t in ts] for ts in (op.inputs, op.outputs))
        for t in read:
            if t not in self.there and t not in streaming:
                self.write(Load(t, 0))
        for t in made:
            if t not in streaming:
                self.program.append(Alloc(t, self.place[t]))
                self.there.add(t)
        if op.workspace:
            self.program.append(Scratch(name, 0))
        self.program.append(instruction)
        self.stored |= streaming.keys() & set(made)
        for t in set(made) & self.later - self.stored:
            self.program.append(Store(t))
            self.stored.add(t)


def runs(*names: str) -> tuple[Run, ...]:
    return tuple(map(Run, names))


ON_CHIP = plan(*runs("c1", "c2", "c3", "cat", "c4", "add"), split=4)
