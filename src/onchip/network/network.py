"""The network as planners see it: tensors with sizes, operators that read and write them, nothing else.

Ids are dense (`tensors[i].id == i`), and every set is an `int` bitset over them, so that planners, checker
and report speak of the same small integers. Names appear at the edges only. A network is built with
`Network.build`, which validates it once; from then on it is frozen and known to be acyclic and complete.
"""

from __future__ import annotations

import hashlib
import heapq
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Literal

__all__ = [
    "KINDS",
    "MOST_SIDES",
    "Constant",
    "Geometry",
    "Network",
    "Operator",
    "OperatorSpec",
    "Patches",
    "Reach",
    "Side",
    "Tensor",
    "TensorKind",
    "View",
    "bits",
    "mask",
    "most_sides",
]

TensorKind = Literal["input", "activation"]


_WORD, _FEW = 64, 8
"""Bits that are looked at together, and ids that are dealt with one by one."""


def bits(bitset: int) -> Iterator[int]:
    """The ids in a bitset, ascending."""
    if bitset.bit_length() > _WORD and bitset.bit_count() > _FEW:
        # Word by word: to take one bit off costs as much as the whole set is long.
        words = memoryview(
            bitset.to_bytes(-(-bitset.bit_length() // _WORD) * _WORD // 8, sys.byteorder)
        ).cast("Q")
        for place, word in enumerate(words if sys.byteorder == "little" else reversed(words)):
            base = place * _WORD - 1
            while word:
                low = word & -word
                yield base + low.bit_length()
                word ^= low
        return
    while bitset:
        low = bitset & -bitset
        yield low.bit_length() - 1
        bitset ^= low


def mask(ids: Iterable[int]) -> int:
    """The bitset of some ids."""
    ids = tuple(ids)
    if len(ids) > _FEW:
        room = bytearray(max(ids) // 8 + 1)
        for i in ids:
            room[i >> 3] |= 1 << (i & 7)
        return int.from_bytes(room, "little")
    result = 0
    for i in ids:
        result |= 1 << i
    return result


@dataclass(frozen=True, slots=True)
class Patches:
    """How a feature map lies in memory when each channel's plane is cut into patches of `height` x `width`.

    Channels come one after the other (those of all images), in each its patches row by row, in each patch its
    elements row by row: [channels, ceil(rows / height), ceil(columns / width), height, width]. What a patch
    has beyond the plane's last row or column is padding that nobody reads.
    """

    channels: int
    rows: int
    columns: int
    height: int
    width: int

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        return -(-self.rows // self.height), -(-self.columns // self.width)

    @property
    def plane(self) -> int:
        """Elements that one channel takes, padding included."""
        down, across = self.grid
        return down * across * self.height * self.width

    @property
    def elements(self) -> int:
        """Elements that the map takes, padding included."""
        return self.channels * self.plane


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor that occupies scratchpad bytes. `bytes` is its exact size, before any alignment.

    With `patches` it is stored in patches, and `bytes` includes their padding.
    """

    id: int
    name: str
    bytes: int
    kind: TensorKind
    patches: Patches | None = None


KINDS = frozenset({
    "conv", "depthwise", "pool", "fully_connected", "elementwise", "concat", "pad", "rowwise"
})  # fmt: skip
"""The kinds of geometry that promise something."""

GATHERED = "gathered "
"""What a kind begins with that reads something else than whole tensors as they lie."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """How an operator walks over its operands: what a proof about overlapping bytes or halos needs.

    `kind` is conv, depthwise, pool, fully_connected, elementwise, concat, pad or rowwise (docs/models.md says
    what each promises), or a word that promises nothing. Even then `output` is the shape of its output; but
    `input` need not be the shape of any tensor: a `gathered conv` walks like a `conv` over an input that it
    cuts or shuffles out of a tensor, or converts, while it reads.
    Shapes are in the order that `layout` names (`NCHW` or `NHWC`); `padding` is (top, left, bottom, right),
    negative where rows or columns are cut off.
    `traversal` says in which order output elements are written, by address: `forward` or `reverse`.
    A step of the walk makes `pixels` pixels of one row in NHWC (fewer at the row's end), its output channels
    in chunks of `channels` (0: all at once): each chunk may read whatever the step reads, and is then written
    to every pixel of the step.
    """

    kind: str
    input: tuple[int, ...] = ()
    output: tuple[int, ...] = ()
    kernel: tuple[int, ...] = ()
    stride: tuple[int, ...] = ()
    padding: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    groups: int = 1
    layout: Literal["NCHW", "NHWC"] = "NCHW"
    traversal: Literal["forward", "reverse"] = "forward"
    pixels: int = 1
    channels: int = 0

    @property
    def promises(self) -> bool:
        """Whether the kind is one that proofs may rest on, and `input` the shape of the first operand."""
        return self.kind in KINDS

    @property
    def looks_like(self) -> str:
        """The kind of what the operator computes, wherever its inputs come from: no proof may rest on it."""
        return self.kind.removeprefix(GATHERED)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of a convolution or matrix product; 0 for every other kind."""
        match self.kind:
            case "conv" | "depthwise" if len(self.input) == 4 and self.groups:
                channels = self.input[1 if self.layout == "NCHW" else 3] // self.groups
                return prod(self.output) * prod(self.kernel) * channels
            case "fully_connected" if self.input:
                return prod(self.output) * self.input[-1]
        return 0


@dataclass(frozen=True, slots=True)
class Side:
    """One side of an operand, `size` elements long, and which of them one element of the output needs.

    At index o along `axis` of the output these are the `span` from floor((o * stride - before) / per) on, as
    far as they exist. Without an axis (-1) they are the same for every element, those for o = 0.
    """

    size: int
    axis: int = -1
    stride: int = 1
    before: int = 0
    span: int = 1
    per: int = 1

    @property
    def numbers(self) -> tuple[int, int, int, int, int, int]:
        """All that it says, as files have it."""
        return self.size, self.axis, self.stride, self.before, self.span, self.per


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant that an operator fetches: what it is called in the model, its bytes, its sides."""

    name: str
    bytes: int
    sides: tuple[Side, ...]


MOST_SIDES = 32
"""Sides of an operand, and axes of an output: as many dimensions as every array library has."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What a box of an operator's output needs, in any number of dimensions: a box of every operand.

    `output` are the sides of the output, `reads` those of every input in turn, `weights` what is constant:
    each cut into sides in the order in which its elements lie, whatever shape others give it. Every axis of
    the output goes along one side of an operand at most. `sums` are further axes, behind those of the output:
    every element of the output is a sum over them, up to functions of that element alone.
    """

    output: tuple[int, ...]
    reads: tuple[tuple[Side, ...], ...]
    weights: tuple[Constant, ...] = ()
    sums: tuple[int, ...] = ()

    @property
    def extents(self) -> tuple[int, ...]:
        """The sizes of all axes that a side may go along."""
        return self.output + self.sums


def most_sides(reach: Reach) -> int:
    """The most axes, or sides of an operand, that it has."""
    return max(map(len, (reach.extents, *reach.reads, *(c.sides for c in reach.weights))))


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator: runs once, reads `inputs` and writes `outputs` (tensor ids, each distinct).

    `weight_bytes` are fetched from DRAM by every run. `workspace` is scratchpad held while it runs, in bytes
    (it includes `weight_bytes` when weights are resident). `macs` are the multiply-accumulates of a run; with
    0 none are stated, and `work` derives them where the geometry allows.
    """

    id: int
    name: str
    type: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    weight_bytes: int = 0
    workspace: int = 0
    geometry: Geometry | None = None
    macs: int = 0
    reach: Reach | None = None

    @property
    def work(self) -> int:
        """Multiply-accumulates of one run: as stated, else as the geometry gives them, else 0."""
        return self.macs or (0 if self.geometry is None else self.geometry.macs)


@dataclass(frozen=True, slots=True)
class View:
    """Tensor `tensor` is bytes [offset, offset + its size) of `of`, and resident exactly when that is."""

    tensor: int
    of: int
    offset: int


@dataclass(frozen=True, slots=True)
class OperatorSpec:
    """An operator by names: what readers hand to `Network.build`."""

    name: str
    type: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    weight_bytes: int = 0
    workspace: int = 0
    geometry: Geometry | None = None
    macs: int = 0
    reach: Reach | None = None


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
        where: str | None = None,
    ) -> Network:
        """A network from names; `views` are (tensor, of, offset in bytes), `patches` by tensor.

        An operand named twice counts once; a view of a view becomes a view of the root. Raises `ModelError`,
        naming `where` (the file) and the tensor or operator, for anything that is not a network: duplicate or
        unknown names, sizes that are not positive or beyond `MAX_BYTES`, tensors without a producer or with
        two, cycles, views that leave their parent, patches that do not have their tensor's size.
        """
        from onchip.network.build import build_network

        return build_network(
            cls,
            name,
            tensors,
            operators,
            outputs,
            views,
            source,
            sha256,
            granularity,
            element,
            patches,
            where,
        )

    def with_resident_weights(self, but: Collection[int] = ()) -> Network:
        """The same network with every operator's weights in its workspace (`--weights resident`).

        The operators `but` are left as they are: their weights lie elsewhere.
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
    def roots(self) -> int:
        """Bitset of the tensors that are not views: the ones instructions may name."""
        return ((1 << len(self.tensors)) - 1) & ~mask(view.tensor for view in self.views)

    # -- structure: bitsets over ids, views replaced by their roots -----------------------------------------

    @cached_property
    def read_ids(self) -> tuple[tuple[int, ...], ...]:
        """What `reads` says as ids, ascending: bitsets as wide as a network make work quadratic."""
        root = self.root
        return tuple(tuple(sorted({root[t] for t in op.inputs})) for op in self.operators)

    @cached_property
    def write_ids(self) -> tuple[tuple[int, ...], ...]:
        """What `writes` says as ids, ascending."""
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
        """The given order: operators as listed, moved only as far as their inputs demand."""
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
        """SHA-256 of all that plans depend on: every field but `name`, `source` and `sha256`, which say
        where the network comes from.
        """
        rest = (self.granularity, self.element, self.outputs)
        digest = hashlib.sha256(repr(rest).encode("utf-8", "surrogatepass"))
        for part in (self.tensors, self.operators, self.views):
            digest.update(f"{len(part)}:".encode())
            for row in part:  # a dataclass's repr has all of its fields
                digest.update(repr(row).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()
