"""ExecuTorch's tensors as buffers: sizes, live ranges, pins, storage shared with others, control flow.

A `TensorSpec` has its first and last node as `lifetime`, both included. What lies inside the storage of
another (`storage_base`, `inplace_base`, views) is no buffer of its own; it follows its base.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from onchip.base.errors import InputError

__all__ = ["Graph", "Item", "base_of", "node_specs", "nodes_in", "read_graph", "root_of"]

ALLOCATION = "alloc"
"""The name of the function of a node that only stands for the memory of a result."""


@dataclass(frozen=True, slots=True)
class Item:
    """A buffer: `bytes`, rounded up to the graph's alignment, live from node `first` to node `last`.

    `memory` is the `mem_id` that it is pinned to, `offset` a fixed place there. `over` are the buffers whose
    bytes it may take, at the node `written` that writes it.
    """

    name: str
    first: int
    last: int
    bytes: int
    memory: int | None = None
    offset: int | None = None
    over: tuple[int, ...] = ()
    written: int = -1


@dataclass(frozen=True, slots=True)
class Graph:
    """The question of one call: buffers, and where every spec lies relative to them.

    `places` are (spec, buffer or None, offset inside it) of all specs, of those without bytes, too.
    `reserved` are the bytes by `mem_id` that submodules take, at the bottom, at all times.
    """

    items: tuple[Item, ...]
    places: tuple[tuple[Any, int | None, int], ...]
    nodes: tuple[str, ...]
    alignment: int
    padding: int
    reserved: Mapping[int, int]


def root_of(spec: Any) -> Any:
    """Return the spec whose fields a view's spec shares: the spec itself unless it is a view's."""
    base = getattr(spec, "_base", None)
    return spec if base is None else root_of(base)


def base_of(spec: Any) -> tuple[Any, int]:
    """Return the spec in whose storage this one lies, None for its own, and the offset in bytes."""
    offset = getattr(spec, "storage_base_offset", 0) or 0
    base = getattr(spec, "storage_base", None)
    if base is None and not hasattr(spec, "storage_base"):
        base = getattr(spec, "inplace_base", None)
    return (None, 0) if base is None else (root_of(base), offset)


def node_specs(node: Any) -> list[Any]:
    """Return the tensors of a node; a view has that of the node it views."""
    specs = node.meta.get("spec")
    found = specs if isinstance(specs, list | tuple) else [specs]
    return [s for s in found if s is not None and not isinstance(s, int | float | bool | str)]


def nodes_in(value: Any) -> Iterator[Any]:
    """Return the nodes among arguments, in lists and dictionaries, too."""
    if isinstance(value, list | tuple):
        for part in value:
            yield from nodes_in(part)
    elif isinstance(value, Mapping):
        yield from nodes_in(list(value.values()))
    elif hasattr(value, "meta") and hasattr(value, "args"):
        yield value


def is_allocation(node: Any) -> bool:
    """True for a node that only stands for the memory of a result."""
    return getattr(node.target, "__name__", "") == ALLOCATION


def read_graph(alignment: int, specs: Iterable[Any], graph_module: Any, padding: int) -> Graph:
    """Read what ExecuTorch hands to a planning algorithm. Every spec is realigned to `alignment`.

    Raises `InputError` naming the tensor for one without a live range, or whose storage is not planned here.
    """
    nodes = tuple(graph_module.graph.nodes)
    names = names_of(nodes)
    given = list(dict.fromkeys(specs))
    index: dict[int, int] = {}
    items: list[Item] = []
    inside: list[Any] = []
    places: dict[int, tuple[int | None, int]] = {}
    for spec in given:
        root = root_of(spec)
        if id(root) in places:
            continue
        size = root.realign(alignment)
        size = -(-(root.allocated_memory if size is None else size) // alignment) * alignment
        places[id(root)] = None, 0
        if base_of(root)[0] is not None:
            inside.append(root)
        elif size:
            index[id(root)] = len(items)
            places[id(root)] = len(items), 0
            name = names.get(id(root), f"tensor_{len(items)}")
            items.append(Item(name, *lifetime_of(root, name), size, root.mem_id))
    for root in inside:
        name = names.get(id(root), "a tensor")
        base, at = outermost(root, name)
        if id(base) not in places:
            raise InputError(
                "lies in the storage of a tensor that is not planned here", item=f"tensor {name}"
            )
        if at % alignment:
            raise InputError(
                f"lies at byte {at:,} of another, no multiple of {alignment}", item=f"tensor {name}"
            )
        owner = index.get(id(base))
        places[id(root)] = owner, at
        if owner is None:
            continue
        if at + root.allocated_memory > items[owner].bytes:
            raise InputError(f"ends beyond {items[owner].name}, in which it lies", item=f"tensor {name}")
        first, last = lifetime_of(root, name)
        items[owner] = lengthened(items[owner], first, last)
    # A runtime keeps what a submodule leaves in its bytes: they are nobody else's at any time.
    asked = getattr(graph_module, "input_mem_buffer_sizes", None) or ()
    reserved = {memory: size for memory, size in enumerate(asked) if memory and size}
    found = tuple((spec, *places[id(root_of(spec))]) for spec in given)
    return Graph(tuple(items), found, tuple(n.name for n in nodes), alignment, padding, reserved)


def lengthened(item: Item, first: int, last: int) -> Item:
    """Return the item, live at [first, last] as well."""
    return replace(item, first=min(item.first, first), last=max(item.last, last))


def names_of(nodes: Sequence[Any]) -> dict[int, str]:
    """Return the name of every spec by its identity: that of the node that makes it."""
    found: dict[int, str] = {}
    allocated: dict[int, str] = {}
    for node in nodes:
        specs = node_specs(node)
        for number, spec in enumerate(specs):
            name = node.name if len(specs) == 1 else f"{node.name}.{number}"
            (allocated if is_allocation(node) else found).setdefault(id(root_of(spec)), name)
    return {**allocated, **found}


def lifetime_of(spec: Any, name: str) -> tuple[int, int]:
    """Return the first and the last node at which it lives."""
    first, last = spec.lifetime
    if first is None or last is None or first > last:
        raise InputError("has no live range", item=f"tensor {name}")
    return int(first), int(last)


def outermost(spec: Any, name: str) -> tuple[Any, int]:
    """Return the spec at the end of a chain of storages, and the offset in it."""
    at, seen = 0, {id(spec)}
    while (base := base_of(spec))[0] is not None:
        spec, at = base[0], at + base[1]
        if id(spec) in seen:
            raise InputError("lies in its own storage", item=f"tensor {name}")
        seen.add(id(spec))
    if at < 0:
        raise InputError(f"lies at byte {at:,} of another", item=f"tensor {name}")
    return spec, at
