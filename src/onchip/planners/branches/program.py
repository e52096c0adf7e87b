"""From decisions to a program: addresses for everything that lives in an item, then instructions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from onchip.network import Network
from onchip.planners.branches.acts import Act, Item
from onchip.planners.branches.memory import Memory
from onchip.planners.branches.modules import Branch, Detection, Module
from onchip.planners.branches.regions import Piece
from onchip.plans import Alloc, Free, Instruction, Join, Load, Run, Scratch, Section, Store

__all__ = ["Life", "instructions", "lives", "sections", "with_workspaces"]


@dataclass(frozen=True, slots=True)
class Life:
    """The pieces that live during an item, to be placed: tensors first, then the workspaces of acts.

    `tensors` and `scratch` name the owners of the pieces: a tensor, or the number of an act. `parts` are
    tensors inside another's bytes: (that tensor, offset in it). `output` names the cluster that is handed on.
    """

    pieces: tuple[Piece, ...]
    tensors: tuple[int, ...]
    scratch: tuple[int, ...]
    parts: Mapping[int, tuple[int, int]]
    input: int | None
    output: str | None

    def addresses(self, found: Sequence[int]) -> tuple[dict[int, int], dict[int, int]]:
        """Return addresses by tensor and by act, from those of the pieces."""
        tensor = dict(zip(self.tensors, found, strict=False))
        for t in self.parts:  # one that is loaded into its place has no piece of its own
            root, offset = _root(t, self.parts)
            tensor.setdefault(t, tensor[root] + offset)
        return tensor, dict(zip(self.scratch, found[len(self.tensors) :], strict=True))


def lives(memory: Memory, item: Item) -> Life:
    """Return the pieces of an item: every act is a step."""
    born: dict[int, int] = {} if item.handed is None else {item.handed: 0}
    died: dict[int, int] = {}
    within: dict[int, tuple[int, int]] = {}  # tensor -> the one that contains its bytes, and the offset
    for i, act in enumerate(item.acts):
        for t in (*act.load, *act.made):
            born[t] = i
        if act.over is not None:
            died[act.over] = i
            within[act.over] = act.made[0], 0
        if act.parts:
            offsets = memory.offsets(act.operator) or ()
            at = dict(zip(memory.network.operators[act.operator].inputs, offsets, strict=True))
            for t in act.parts:
                died[t] = i
                within[t] = act.made[0], at[t]
        for t in act.free:
            died[t] = i + 1
    tensors = tuple(t for t in born if died.get(t, len(item.acts)) > born[t])
    pieces = [_tensor(memory, t, born[t], died.get(t, len(item.acts)), within, item) for t in tensors]
    scratch = tuple(i for i, act in enumerate(item.acts) if act.workspace)
    for i in scratch:
        act = item.acts[i]
        name = f"scratch of {memory.network.operators[act.operator].name}"
        pieces.append(Piece(name, act.workspace, i, i + 1))
    handed = None
    if item.handed is not None:  # if the first act overwrites it, that act's output has its address
        handed = tensors.index(item.handed if item.handed in tensors else _root(item.handed, within)[0])
    output = None if item.output is None else _name(memory, _root(item.output, within)[0])
    return Life(tuple(pieces), tensors, scratch, within, handed, output)


def _root(t: int, within: Mapping[int, tuple[int, int]]) -> tuple[int, int]:
    offset = 0
    while t in within:
        t, more = within[t]
        offset += more
    return t, offset


def _name(memory: Memory, t: int) -> str:
    return memory.network.tensors[t].name


def _tensor(
    memory: Memory, t: int, born: int, died: int, within: Mapping[int, tuple[int, int]], item: Item
) -> Piece:
    root, offset = _root(t, within)
    shared = t in within or t in {r for r, _ in within.values()} or t == item.output
    tensor = memory.network.tensors[t]
    return Piece(tensor.name, tensor.bytes, born, died, None, _name(memory, root) if shared else None, offset)


def with_workspaces(network: Network, items: Sequence[Item]) -> Network:
    """Return the network with the workspaces decided for its layers."""
    workspace = {act.operator: act.workspace for item in items for act in item.acts}
    return replace(
        network,
        operators=tuple(replace(op, workspace=workspace[op.id]) for op in network.operators),
    )


def instructions(
    network: Network, item: Item, address: Mapping[int, int], scratch: Mapping[int, int]
) -> list[Instruction]:
    """Return the instructions of an item; `address` by tensor, `scratch` by act.

    A part that is loaded into its place within a concat's output has that place's address.
    """
    made: list[Instruction] = []
    for i, act in enumerate(item.acts):
        made += _act(network, act, address, scratch.get(i))
    return made


def _act(network: Network, act: Act, address: Mapping[int, int], scratch: int | None) -> list[Instruction]:
    def name(t: int) -> str:
        return network.tensors[t].name

    operator = network.operators[act.operator].name
    made: list[Instruction] = [Load(name(t), address[t]) for t in act.load]
    made += [Store(name(t)) for t in act.store_first]
    if act.how == "join":
        made.append(Join(operator))
    else:
        for t in act.made:
            if act.parts:
                made.append(Alloc(name(t), address[t], parts=tuple(name(x) for x in act.parts)))
            elif act.over is not None:
                made.append(Alloc(name(t), address[t], name(act.over), address[act.over] - address[t]))
            else:
                made.append(Alloc(name(t), address[t]))
        if scratch is not None:
            made.append(Scratch(operator, scratch))
        streamed = ((name(t), network.tensors[t].bytes) for t in dict.fromkeys((*act.read, *act.written)))
        made.append(Run(operator, tuple(streamed)))
    made += [Store(name(t)) for t in act.store]
    made += [Free(name(t)) for t in act.free]
    return made


def sections(
    network: Network, detection: Detection, items: Sequence[Item], ends: Sequence[int]
) -> tuple[Section, ...]:
    """Return the sections of a program in which item i ends before instruction `ends[i]`.

    Items outside modules form a stretch: the stem before the first module, the head after the last.
    """
    modules = {m.merge: m for m in detection.items if isinstance(m, Module)}
    taken = {m.name for m in modules.values()}
    last = max((i for i, item in enumerate(items) if item.module is not None), default=-1)
    found: list[Section] = []
    first, between = 0, 0
    for i, item in enumerate(items):
        if item.module is not None:
            module, order = modules[item.module], dict(item.order)
            found.append(
                Section(
                    module.name,
                    first,
                    ends[i],
                    network.tensors[module.start].name,
                    network.operators[module.merge].name,
                    tuple(_operators(network, module.branches[b], order) for b in order[module.merge]),
                    item.processing,
                )
            )
        elif i + 1 == len(items) or items[i + 1].module is not None:
            if all(before.merge is None for before in found):
                name = "stem" if last >= 0 else "network"
            elif i > last:
                name = "head"
            else:
                between += 1
                name = f"between {between}"
            while name in taken:
                name += "'"
            taken.add(name)
            found.append(Section(name, first, ends[i]))
        else:
            continue
        first = ends[i]
    return tuple(found)


def _operators(network: Network, branch: Branch, order: Mapping[int, tuple[int, ...]]) -> tuple[str, ...]:
    """Return the operators of a branch in running order, those of modules inside it included."""
    names: list[str] = []
    for step in branch.steps:
        if isinstance(step, Module):
            for b in order[step.merge]:
                names += _operators(network, step.branches[b], order)
            names.append(network.operators[step.merge].name)
        else:
            names.append(network.operators[step].name)
    return tuple(names)
