"""The records of a network: tensors with sizes, views of them, operators and their known walks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Literal

from onchip.base.fields import OUTSIDE, as_row

__all__ = [
    "ELEMENT_BYTES",
    "GATHERED",
    "KINDS",
    "MOST_CARRIED",
    "MOST_SIDES",
    "Constant",
    "Geometry",
    "Operator",
    "OperatorSpec",
    "Patches",
    "Reach",
    "Side",
    "Tensor",
    "TensorKind",
    "View",
    "most_sides",
]

TensorKind = Literal["input", "activation"]

ELEMENT_BYTES = (1, 2, 4, 8)
"""The possible sizes of a map's element, in bytes."""


@as_row
@dataclass(frozen=True, slots=True)
class Patches:
    """The layout of a feature map when each channel's plane is cut into patches of `height` x `width`.

    Channels come one after the other (those of all images), in each its patches row by row, in each patch its
    elements row by row: [channels, ceil(rows / height), ceil(columns / width), height, width]. Elements of a
    patch beyond the plane's last row or column are padding that nothing reads.
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
        """Elements of one channel, padding included."""
        down, across = self.grid
        return down * across * self.height * self.width

    @property
    def elements(self) -> int:
        """Elements of the map, padding included."""
        return self.channels * self.plane


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor that occupies scratchpad bytes. `bytes` is its exact size, before any alignment.

    `shape` are its dimensions as the model has them, outermost first; empty where they are not stated. With
    `patches` it is stored in patches, and `bytes` includes their padding.
    """

    id: int = field(metadata=OUTSIDE)
    name: str
    bytes: int
    kind: TensorKind
    patches: Patches | None = None
    shape: tuple[int, ...] = field(default=(), repr=False)


KINDS = frozenset({
    "conv", "depthwise", "pool", "fully_connected", "elementwise", "concat", "pad", "rowwise"
})  # fmt: skip
"""The kinds of geometry that promise something."""

GATHERED = "gathered "
"""The prefix of a kind whose operator does not read whole tensors as they lie."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """The walk of an operator over its operands: the basis of proofs about overlapping bytes or halos.

    `kind` is conv, depthwise, pool, fully_connected, elementwise, concat, pad or rowwise (docs/models.md
    states the promise of each), or a word that promises nothing. Even then `output` is the shape of its
    output; but `input` need not be the shape of any tensor: a `gathered conv` walks like a `conv` over an
    input that it cuts or shuffles out of a tensor, or converts, while it reads. Shapes are in the order that
    `layout` names (`NCHW` or `NHWC`); `padding` is (top, left, bottom, right), negative where rows or columns
    are cut off. `traversal` is the order in which output elements are written, by address: `forward` or
    `reverse`. A step of the walk makes `pixels` pixels of one row in NHWC (fewer at the row's end), its
    output channels in chunks of `channels` (0: all at once): each chunk may read all that the step reads, and
    is then written to every pixel of the step.
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
        """True if proofs may rest on the kind, and `input` is the shape of the first operand."""
        return self.kind in KINDS

    @property
    def looks_like(self) -> str:
        """The kind of the computation, wherever its inputs come from: no proof may rest on it."""
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


@as_row
@dataclass(frozen=True, slots=True)
class Side:
    """One side of an operand, `size` elements long, and the elements that one element of the output needs.

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
        """All fields, in the order of files."""
        return self.size, self.axis, self.stride, self.before, self.span, self.per


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant that an operator fetches: its name in the model, its bytes, its sides.

    One that is `late` takes part in a sum once that is complete, as a bias or a scale does: it goes along
    none of the axes that are summed over.
    """

    name: str
    bytes: int
    sides: tuple[Side, ...] = ()
    late: bool = False


MOST_CARRIED = 16
"""The most values that a sum of parts carries."""

MOST_SIDES = 32
"""The most sides of an operand, and axes of an output: the dimensions that array libraries support."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The boxes of every operand that a box of an operator's output needs, in any number of dimensions.

    `output` are the sides of the output, `reads` those of every input in turn, `weights` the constants: each
    cut into sides in the order of its elements in memory, whatever its shape elsewhere. Every axis of the
    output goes along at most one side of an operand. `sums` are further axes, behind those of the output:
    every element of the output is a sum over them, up to functions of that element alone.

    With `carries`, sums of parts are rescaled on the way, as the weighted sum behind a softmax can be: so
    many values come with a sum that is not complete, the same for all elements along the axes `across` of the
    output, and along these the output is not cut.
    """

    output: tuple[int, ...]
    reads: tuple[tuple[Side, ...], ...]
    weights: tuple[Constant, ...] = ()
    sums: tuple[int, ...] = ()
    carries: int = 0
    across: tuple[int, ...] = ()

    @property
    def extents(self) -> tuple[int, ...]:
        """The sizes of all axes that a side may go along."""
        return self.output + self.sums


def most_sides(reach: Reach) -> int:
    """Return the most axes, or sides of an operand, of a reach."""
    return max(map(len, (reach.extents, *reach.reads, *(c.sides for c in reach.weights))))


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator: runs once, reads `inputs` and writes `outputs` (tensor ids, each distinct).

    `weight_bytes` are fetched from DRAM by every run. `workspace` is scratchpad held while it runs, in bytes
    (it includes `weight_bytes` when weights are resident). `macs` are the multiply-accumulates of a run; 0
    states none, and `work` then derives them from the geometry if it can. With `repeats` it is another
    operator (an id) that runs again, as `onchip.network.repeats` says.
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
    repeats: int | None = field(default=None, repr=False)

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
    """An operator by names: the form that readers pass to `Network.build`."""

    name: str
    type: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    weight_bytes: int = 0
    workspace: int = 0
    geometry: Geometry | None = None
    macs: int = 0
    reach: Reach | None = None
    repeats: str | None = None
