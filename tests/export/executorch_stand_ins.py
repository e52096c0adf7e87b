"""Objects with the fields that ExecuTorch's memory planning has, and graphs of them at random."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any


@dataclass(eq=False)
class Spec:
    """A `TensorSpec`: `size` bytes, live from node to node, both included."""

    size: int
    lifetime: list[Any] = field(default_factory=lambda: [None, None])
    shape: list[int] = field(default_factory=list)
    dtype: str = "float32"
    dim_order: tuple[int, ...] = (0,)
    mem_id: int | None = None
    mem_obj_id: int | None = None
    mem_offset: int | None = None
    storage_base: Spec | None = None
    storage_base_offset: int = 0
    alignment: int = 16

    def __post_init__(self) -> None:
        self.shape = self.shape or [self.size]

    @property
    def allocated_memory(self) -> int:
        return -(-self.size // self.alignment) * self.alignment

    def realign(self, alignment: int) -> int:
        self.alignment = alignment
        return self.allocated_memory


@dataclass(frozen=True)
class Schema:
    name: str


class Target:
    """An operator's out variant."""

    def __init__(self, name: str) -> None:
        self._schema = Schema(f"aten::{name}")


def alloc() -> None:
    """What an allocation's node calls."""


@dataclass(eq=False)
class Node:
    name: str
    op: str
    target: Any
    args: tuple[Any, ...]
    meta: dict[str, Any]
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass
class Module:
    """A graph module, its own graph."""

    nodes: list[Node] = field(default_factory=list)
    input_mem_buffer_sizes: list[int] = field(default_factory=list)

    @property
    def graph(self) -> Module:
        return self

    def add(self, op: str, target: Any, args: tuple[Any, ...], spec: Any) -> Node:
        """Add a node, and let all that it names live until now."""
        node = Node(f"n{len(self.nodes)}", op, target, args, {"spec": spec})
        at = len(self.nodes)
        self.nodes.append(node)
        for other in (node, *(a for a in args if isinstance(a, Node))):
            specs = other.meta["spec"] if isinstance(other.meta["spec"], list) else [other.meta["spec"]]
            for s in specs:
                if s is not None:
                    s.lifetime = [at if s.lifetime[0] is None else s.lifetime[0], at]
        return node

    def call(self, name: str, args: tuple[Node, ...], spec: Spec) -> Node:
        """Add an allocation and the operator that writes into it."""
        out = self.add("call_function", alloc, (), spec)
        node = self.add("call_function", Target(name), args, spec)
        node.kwargs["out"] = out
        return node

    def specs(self) -> list[Spec]:
        """Return all tensors once, as ExecuTorch collects them."""
        found: dict[Spec, None] = {}
        for node in self.nodes:
            if isinstance(node.meta["spec"], Spec):
                found[node.meta["spec"]] = None
        return list(found)


def random_module(rng: Random, operators: int) -> Module:
    """Return a graph of element-wise and other operators, with sizes that are often equal."""
    module = Module()
    sizes = [rng.choice((16, 32, 48, 80)) for _ in range(2)]
    made = [module.add("placeholder", f"x{i}", (), Spec(sizes[i])) for i in range(rng.randint(1, 2))]
    for _ in range(operators):
        operands = [rng.choice(made[-4:]) for _ in range(rng.randint(1, 2))]
        if rng.random() < 0.6:
            first = operands[0].meta["spec"].size
            operands = [o for o in operands if o.meta["spec"].size == first]
            made.append(module.call(rng.choice(("relu", "add", "mul")), tuple(operands), Spec(first)))
        else:
            made.append(
                module.call("convolution", tuple(operands), Spec(rng.choice(sizes) + rng.choice((0, 8))))
            )
    module.add("output", "output", (made[-1],), made[-1].meta["spec"])
    return module


def replayed(module: Module) -> str:
    """Execute the graph on bytes that know whose they are; return the first fault, or nothing.

    Element-wise operators read and write byte by byte; every other one writes all of its result first, and
    must find its operands whole all the same.
    """
    held: dict[tuple[int, int], tuple[int, int]] = {}  # (memory, byte) -> (tensor, byte of it)

    def bytes_of(spec: Spec) -> list[tuple[int, int]]:
        assert spec.mem_id is not None
        assert spec.mem_offset is not None
        return [(spec.mem_id, spec.mem_offset + i) for i in range(spec.size)]

    def whole(spec: Spec) -> bool:
        return all(held.get(at) == (id(spec), i) for i, at in enumerate(bytes_of(spec)))

    for node in module.nodes:
        spec = node.meta["spec"]
        if node.target is alloc or spec is None:
            continue
        reads = [a.meta["spec"] for a in node.args]
        if not all(whole(r) for r in reads):
            return f"{node.name} reads what is not there"
        if node.op == "output":
            continue
        for i, at in enumerate(bytes_of(spec)):
            held[at] = (id(spec), i)
        if isinstance(node.target, Target) and node.target._schema.name == "aten::convolution":
            if not all(whole(r) for r in reads):
                return f"{node.name} overwrites its operands"
        elif node.op == "call_function":
            for r in reads:
                for i, at in enumerate(bytes_of(r)):
                    if held.get(at) not in ((id(r), i), (id(spec), i)):
                        return f"{node.name} overwrites an element before it is read"
    return ""
