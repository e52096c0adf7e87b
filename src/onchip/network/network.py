"""The network as planners see it: tensors with sizes, operators that read and write them, nothing else.

Ids are dense (`tensors[i].id == i`), and every set is an `int` bitset over them, so that planners, checker
and report use the same small integers. Names appear at the edges only. `Network.build` validates a network
once; it is then frozen and known to be acyclic and complete.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from onchip.base.errors import ModelError
from onchip.network.bitsets import bits, mask
from onchip.network.build import parts_of
from onchip.network.operators import Operator, OperatorSpec, Patches, Tensor, TensorKind, View

__all__ = ["Network"]


@dataclass(frozen=True)
class Network:
    """A validated, acyclic network. Build it with `Network.build` (or a reader)."""

    name: str
    tensors: tuple[Tensor, ...]
    operators: tuple[Operator, ...]
    outputs: tuple[int, ...]
    views: tuple[View, ...] = ()
    source: str = ""
    sha256: str = ""
    granularity: str = "op"
    element: str = "int8"

    def __repr__(self) -> str:
        return (
            f"Network({self.name[:80]!r}: {len(self.operators):,} operators, {len(self.tensors):,} tensors"
            f" of {self.element}, {sum(op.weight_bytes for op in self.operators):,} B of weights)"
        )

    # -- construction ------------------------------------------------------------------------------------

    @classmethod
    def build(
        cls,
        name: str,
        tensors: Iterable[tuple[str, int, TensorKind]],
        operators: Iterable[OperatorSpec],
        outputs: Sequence[str],
        *,
        views: Iterable[tuple[str, str, int]] = (),
        source: str = "",
        sha256: str = "",
        granularity: str = "op",
        element: str = "int8",
        patches: Mapping[str, Patches] | None = None,
        shapes: Mapping[str, Sequence[int]] | None = None,
        where: str | None = None,
    ) -> Network:
        """Build a network from names; `views` are (tensor, of, offset in bytes).

        `patches` and `shapes` (dimensions in the model's order) are by tensor. An operand named twice counts
        once; a view of a view becomes a view of the root. Raises `ModelError`, naming `where` (the file) and
        the tensor or operator, for invalid networks: duplicate or unknown names, sizes that are not positive
        or exceed `MAX_BYTES`, tensors without a producer or with two, cycles, views that leave their parent,
        patches and shapes that do not have their tensor's size.
        """
        said = {"source": source, "sha256": sha256, "granularity": granularity, "element": element}
        parts = parts_of(name, tensors, operators, outputs, views, patches or {}, shapes or {}, said, where)
        network = cls(name, parts.tensors, parts.operators, parts.outputs, parts.views, **said)
        if len(network.order) < len(network.operators):
            ran = set(network.order)
            stuck = next(op for op in network.operators if op.id not in ran)
            reason = "is on, or waits for, a cycle of the graph"
            raise ModelError(reason, where=where, item=f"operator {stuck.name}")
        return network

    def with_resident_weights(self, but: Collection[int] = ()) -> Network:
        """Return the same network with every operator's weights in its workspace (`--weights resident`).

        The operators `but` keep their workspace: their weights lie elsewhere.
        """
        return replace(
            self,
            operators=tuple(
                op if op.id in but else replace(op, workspace=op.workspace + op.weight_bytes)
                for op in self.operators
            ),
        )

    # -- names -------------------------------------------------------------------------------------------

    @cached_property
    def tensor_id(self) -> Mapping[str, int]:
        """Tensor id by name."""
        return {t.name: t.id for t in self.tensors}

    @cached_property
    def operator_id(self) -> Mapping[str, int]:
        """Operator id by name."""
        return {op.name: op.id for op in self.operators}

    # -- views -------------------------------------------------------------------------------------------

    @cached_property
    def root(self) -> tuple[int, ...]:
        """For each tensor, the tensor whose bytes hold it: itself unless it is a view."""
        roots = list(range(len(self.tensors)))
        for view in self.views:
            roots[view.tensor] = view.of
        return tuple(roots)

    @cached_property
    def offset(self) -> tuple[int, ...]:
        """For each tensor, the byte of its root at which it begins: 0 unless it is a view."""
        offsets = [0] * len(self.tensors)
        for view in self.views:
            offsets[view.tensor] = view.offset
        return tuple(offsets)

    @cached_property
    def roots(self) -> int:
        """Bitset of the tensors that are not views: the ones instructions may name."""
        return ((1 << len(self.tensors)) - 1) & ~mask(view.tensor for view in self.views)

    # -- structure: bitsets over ids, views replaced by their roots -----------------------------------------

    @cached_property
    def read_ids(self) -> tuple[tuple[int, ...], ...]:
        """The ids of `reads`, ascending: bitsets as wide as a network make work quadratic."""
        root = self.root
        return tuple(tuple(sorted({root[t] for t in op.inputs})) for op in self.operators)

    @cached_property
    def write_ids(self) -> tuple[tuple[int, ...], ...]:
        """The ids of `writes`, ascending."""
        root = self.root
        return tuple(tuple(sorted({root[t] for t in op.outputs})) for op in self.operators)

    @cached_property
    def reads(self) -> tuple[int, ...]:
        """For each operator, the bitset of root tensors that must be resident for it as inputs."""
        return tuple(mask(self.root[t] for t in op.inputs) for op in self.operators)

    @cached_property
    def writes(self) -> tuple[int, ...]:
        """For each operator, the bitset of root tensors it writes."""
        return tuple(mask(self.root[t] for t in op.outputs) for op in self.operators)

    @cached_property
    def producer(self) -> tuple[int | None, ...]:
        """For each tensor, the operator that writes it; None for a graph input (and views of one)."""
        result: list[int | None] = [None] * len(self.tensors)
        for op in self.operators:
            for t in op.outputs:
                result[t] = op.id
        for view in self.views:
            if result[view.tensor] is None:
                result[view.tensor] = result[view.of]
        return tuple(result)

    @cached_property
    def readers(self) -> tuple[int, ...]:
        """For each root tensor, the bitset of operators that read it or a view of it (0 for views)."""
        result = [0] * len(self.tensors)
        for op in self.operators:
            for t in bits(self.reads[op.id]):
                result[t] |= 1 << op.id
        return tuple(result)

    @cached_property
    def predecessors(self) -> tuple[int, ...]:
        """For each operator, the bitset of operators that write what it reads."""
        result = []
        for op in self.operators:
            before = 0
            for t in bits(self.reads[op.id]):
                p = self.producer[t]
                if p is not None:
                    before |= 1 << p
            result.append(before & ~(1 << op.id))
        return tuple(result)

    @cached_property
    def input_roots(self) -> int:
        """Bitset of the graph inputs: they have a DRAM copy from the start."""
        return mask(t.id for t in self.tensors if t.kind == "input")

    @cached_property
    def output_roots(self) -> int:
        """Bitset of the root tensors that are network outputs or hold one as a view."""
        return mask(self.root[t] for t in self.outputs)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The given order: operators as listed, moved only as far as their inputs require."""
        order = []
        waiting = [0] * len(self.operators)
        for op in self.operators:
            waiting[op.id] = self.predecessors[op.id].bit_count()
        successors: list[list[int]] = [[] for _ in self.operators]
        for op in self.operators:
            for p in bits(self.predecessors[op.id]):
                successors[p].append(op.id)
        ready = [op.id for op in self.operators if not waiting[op.id]]
        heapq.heapify(ready)
        while ready:
            v = heapq.heappop(ready)
            order.append(v)
            for s in successors[v]:
                waiting[s] -= 1
                if not waiting[s]:
                    heapq.heappush(ready, s)
        return tuple(order)

    # -- totals ------------------------------------------------------------------------------------------

    @cached_property
    def weight_bytes(self) -> int:
        """Bytes of all weights, each operator's once."""
        return sum(op.weight_bytes for op in self.operators)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of all that plans depend on: every field except `name`, `source` and `sha256`, which state
        the network's origin.
        """
        rest = (self.granularity, self.element, self.outputs)
        digest = hashlib.sha256(repr(rest).encode("utf-8", "surrogatepass"))
        for part in (self.tensors, self.operators, self.views):
            digest.update(f"{len(part)}:".encode())
            for row in part:  # a dataclass's repr has all of its fields
                digest.update(repr(row).encode("utf-8", "surrogatepass"))
        if any(t.shape for t in self.tensors):  # networks of files without shapes keep their fingerprints
            digest.update(repr([t.shape for t in self.tensors]).encode())
        if any(op.repeats is not None for op in self.operators):
            digest.update(repr([op.repeats for op in self.operators]).encode())
        return digest.hexdigest()
