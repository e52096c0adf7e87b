"""The instructions, and the plan that holds them. They use names, not ids: plans outlive their planner.

docs/plan-program.md is the formal page: when each instruction is legal and what it costs. JSON, text and
their readers are made from these records: a new field of an instruction, or a new kind, is stated only here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal

from onchip.base.fields import AT, STATED, WRITTEN, wire, without_nulls
from onchip.machines.chip import Memory
from onchip.machines.tile_rates import TileRates
from onchip.network import Network
from onchip.plans.nest import Leaf, Loop, Nest, Ways
from onchip.plans.result import Result, Timed
from onchip.plans.rows import RowMap, Rows

__all__ = [
    "Alloc",
    "Blocks",
    "Boxes",
    "Cache",
    "Free",
    "Group",
    "Instruction",
    "Join",
    "Leaf",
    "Load",
    "Loop",
    "Move",
    "Nest",
    "Pin",
    "PinnedTensor",
    "PinnedWeights",
    "Plan",
    "PlanChip",
    "Rings",
    "RowMap",
    "Rows",
    "Run",
    "Scratch",
    "Section",
    "Stage",
    "State",
    "Store",
    "TensorLayout",
    "TileRates",
    "Tiling",
    "Ways",
]


HOME = wire("in", leads=True)


@dataclass(frozen=True, slots=True)
class Load:
    """Copy `tensor` from DRAM to bytes [address, address + its size) of `memory`.

    Here and below `memory` is one of the chip's memories, or None on a chip with a single scratchpad.
    """

    tensor: str
    address: int = field(metadata=AT)
    memory: str | None = field(default=None, metadata=HOME)


@dataclass(frozen=True, slots=True)
class Alloc:
    """Reserve the range for an operator's output.

    With `over`, the range may share bytes with that tensor, an input whose life ends with that
    operator's run; `by` = address(over) - address. With `parts`, a concat's output is reserved over its
    operands, each of which lies where its part of the output begins.
    """

    tensor: str
    address: int = field(metadata=AT)
    over: str | None = None
    by: int = field(default=0, metadata=wire(beside="over"))
    parts: tuple[str, ...] = field(default=(), metadata=wire("of"))
    memory: str | None = field(default=None, metadata=HOME)

    def __post_init__(self) -> None:
        if len(set(self.parts)) < len(self.parts):
            raise ValueError("names an operand twice")
        if self.parts and self.over is not None:
            raise ValueError("is reserved over one tensor, or over all operands of a concat")
        if self.over is None and self.by:
            raise ValueError("`by` is the distance to the overlapped tensor: it needs `over`")


@dataclass(frozen=True, slots=True)
class Scratch:
    """Reserve the workspace of `operator` (an operator or group) for its one `run`, which releases it."""

    operator: str
    address: int = field(metadata=AT)
    memory: str | None = field(default=None, metadata=HOME)


@dataclass(frozen=True, slots=True)
class Run:
    """Execute `operator` (an operator or group).

    `streaming` are operands that stay in DRAM and pass through its scratch: (tensor, bytes that cross).
    """

    operator: str
    streaming: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        if len(dict(self.streaming)) < len(self.streaming):
            raise ValueError("an operand is streamed once")


@dataclass(frozen=True, slots=True)
class Move:
    """Copy `tensor` to [address, address + its size) of `memory`, and give its old range back."""

    tensor: str
    address: int = field(metadata=AT)
    memory: str = field(metadata=HOME)


@dataclass(frozen=True, slots=True)
class Store:
    """Copy `tensor` to DRAM; it stays resident."""

    tensor: str


@dataclass(frozen=True, slots=True)
class Free:
    """Give the tensor's range back."""

    tensor: str


@dataclass(frozen=True, slots=True)
class Join:
    """Run the concat `operator` in DRAM: its operands lie there side by side, so nothing moves.

    Its output has a DRAM copy afterwards and no range.
    """

    operator: str


Instruction = Load | Alloc | Scratch | Run | Move | Store | Free | Join


@dataclass(frozen=True, slots=True)
class Tiling:
    """A group runs in bands of rows: `rows` of its coarsest map (`t_h` of Optimus), more of the finer ones.

    The scratch holds `channels` channels (`T_c`) at a time of the tensors `streamed`, and rows of them that
    two bands share are made or fetched again. It holds all channels of the other tensors, and keeps the rows
    that two bands share (a line buffer). A sub-group is one band of `images` images.
    """

    rows: int
    streamed: tuple[str, ...] = field(default=(), metadata=WRITTEN)
    channels: int = field(default=1, metadata=STATED)
    images: int = field(default=1, metadata=STATED)

    def __post_init__(self) -> None:
        if len(set(self.streamed)) < len(self.streamed):
            raise ValueError("names a streamed tensor twice")


@dataclass(frozen=True, slots=True)
class Blocks:
    """A single operator runs in blocks of its output, if it fits in no band of rows.

    A block is `rows` x `columns` pixels of `output_channels` channels, made from slices of `channels` input
    channels. With `keep_weights` those of the block's output channels stay in the scratch until its last
    pixel.
    """

    rows: int
    columns: int
    output_channels: int
    channels: int
    keep_weights: bool = field(default=False, metadata=WRITTEN)


@dataclass(frozen=True, slots=True)
class Boxes:
    """A single operator runs in boxes of its output, of `sizes` along the axes that its reach names.

    `order` are those axes, that of the outermost loop first. The part of an operand that a box needs is
    fetched when the index along one of the operand's axes has changed.
    """

    sizes: tuple[int, ...]
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """Operators of a group in `Rings` that sweep bands of `rows` rows of the last one's output together."""

    operators: tuple[str, ...]
    rows: int = field(default=1, metadata=STATED)


@dataclass(frozen=True, slots=True)
class Rings:
    """A group's stages each make the rows that the next one's band needs, and hand them on in rings of rows.

    The `stages` cut the group's operators, in topological order; each hands on its last operator's output.
    All run once for each of `strips` equal strips of the group's output. Streamed inputs are `fetched` by
    whole rows into rings of their own, or by the columns that the first stage's band needs.
    `traversal` mirrors every map: rows from the last to the first, columns likewise.
    """

    stages: tuple[Stage, ...]
    strips: int = field(default=1, metadata=STATED)
    fetched: Literal["rows", "columns"] = field(default="rows", metadata=STATED)
    traversal: Literal["forward", "reverse"] = field(default="forward", metadata=STATED)


@dataclass(frozen=True, slots=True)
class Group:
    """A fused group, used like an operator; its inner tensors live only in its scratch.

    `refills` are (operator, times its weights are fetched, at least 1); operators in `resident_weights` keep
    theirs in the scratch and fetch them once. A sub-group is one of the pieces that the group runs in, one
    after the other: all of its operators on a part of their output (a band of rows of some images, a block,
    a box). `subgroups` is their number, and `tiling` says how the output is cut; without it, in rings, in a
    nest of loops and by rows, the group is one sub-group.
    """

    name: str
    operators: tuple[str, ...]
    scratch_bytes: int
    subgroups: int = 1
    refills: tuple[tuple[str, int], ...] = ()
    resident_weights: tuple[str, ...] = ()
    tiling: Tiling | Blocks | Boxes | Rings | Nest | Rows | None = None

    def __post_init__(self) -> None:
        if len(dict(self.refills)) < len(self.refills):
            raise ValueError("an operator has one number of refills")


@dataclass(frozen=True, slots=True)
class PinnedTensor:
    """`tensor` stays in one place from its load or creation until its last reader has run.

    A pinned network output stays to the end. `address` is that place, if the user asks for one.
    """

    tensor: str
    address: int | None = field(default=None, metadata=wire(at=True, placed=True))


@dataclass(frozen=True, slots=True)
class PinnedWeights:
    """The weights of `operator` lie at bytes [address, address + its weight bytes) throughout.

    They are there before the first instruction and after the last, so its run fetches none.
    """

    operator: str
    address: int = field(metadata=AT)


Pin = PinnedTensor | PinnedWeights


@dataclass(frozen=True, slots=True)
class Section:
    """Instructions [first, end) that a planner treats as one: a module of branches, or a stretch outside any.

    A module is exactly its `branches`, operators each, in the order in which they run, and last the `merge`
    that reads from all of them. Every branch reads only the tensor `start`, its own tensors, and tensors
    loaded from DRAM over a long connection; a branch without operators hands `start` to the merge.
    `processing` is "I" if nothing that the module makes passes through DRAM and `start` is loaded at most
    once. Else it is "II": as a rule the branches send the module's output to DRAM, from where the next module
    loads it (simple method, Algorithm 6).
    """

    name: str
    first: int
    end: int
    start: str | None = None
    merge: str | None = None
    branches: tuple[tuple[str, ...], ...] = ()
    processing: Literal["I", "II"] | None = None


@dataclass(frozen=True, slots=True)
class State:
    """A state that one inference hands to the next on chip, as a recurrent network's hidden state.

    Graph input `input` lies at `address` before the first instruction, without a DRAM copy; `output`, of the
    same size, must lie there after the last one. Neither is loaded or stored unless the program spills it.
    """

    input: str
    output: str
    address: int = field(metadata=AT)


@dataclass(frozen=True, slots=True)
class Cache:
    """A cache that one inference hands to the next on chip, and that each makes longer: keys and values.

    Its buffer at `address` has room for `rows` rows along `axis` of the tensor `output`, in each of the
    blocks that the axes before it make; in a block the rows that are there come first. The buffer holds
    nothing else from the first instruction to the last. Graph input `input` lies there before the first one,
    without a DRAM copy, and `output` is made by writing what is new behind it; without an input the cache
    begins with this program. After the last instruction `output` must lie there. Neither is loaded or stored,
    and what is appended need not be.
    """

    output: str
    address: int = field(metadata=AT)
    axis: int = field(metadata=wire("axis"))
    rows: int = field(metadata=wire("rows"))
    input: str | None = None


@without_nulls
@dataclass(frozen=True, slots=True)
class PlanChip:
    """The figures of the chip that the plan rests on. Figures that need a missing rate are not derived.

    With `weight_scratchpad_bytes` weights have a scratchpad of their own, which must hold those of a running
    operator and all pinned ones; the budget is then for tensors and workspaces alone. With `memories` there
    are several instead of one scratchpad: every range names its memory, and the budget is their sum. Sums
    that are not complete take `accumulator_bytes` each in a nest, and no less than an element. `tiles` give
    times to nests.
    """

    name: str
    alignment_bytes: int = field(default=1, metadata=WRITTEN)
    dram_bytes_per_second: float | None = None
    dram_picojoules_per_byte: float | None = None
    macs_per_second: float | None = None
    scratchpad_bytes_per_second: float | None = None
    mac_picojoules: float | None = None
    scratchpad_picojoules_per_byte: float | None = None
    weight_scratchpad_bytes: int | None = None
    memories: tuple[Memory, ...] = ()
    accumulator_bytes: int | None = None
    tiles: TileRates | None = None

    def round_up(self, size: int) -> int:
        """Return `size` bytes rounded up to the alignment."""
        return -(-size // self.alignment_bytes) * self.alignment_bytes

    def accumulated(self, element: int) -> int:
        """Return the bytes of a sum of elements that is not complete."""
        return max(element, self.accumulator_bytes or 0)


@dataclass(frozen=True, slots=True)
class TensorLayout:
    """`tensor` lies in DRAM in tiles, each of which lies there in one piece, and not row by row.

    Its elements are those of `sides`, outermost first, of each of which a tile takes up to `tile` indices.
    Tiles follow each other row-major, and so do the elements of each.
    """

    tensor: str
    sides: tuple[int, ...] = field(metadata=wire("sides"))
    tile: tuple[int, ...] = field(metadata=wire("tile"))


@dataclass(frozen=True, eq=False)
class Plan:
    """A program for one network on one chip within `budget` bytes of scratchpad, with its figures.

    `options` records how it was made (granularity, weights, order, element, ...): values are JSON scalars.
    `layouts` are of tensors between nests that do not lie in DRAM row by row.
    `timing` lists the start and end of every copy and run, in program order; it is empty if the chip has no
    rates. `proof` is the digest of claims that a planner proved in this process (`onchip.plans.claim`): it is
    not a part of the plan, not written to files, and empty in a plan that was read. Neither is `kept`, where
    the checker keeps its findings about the program; copies of a plan share it.
    """

    network: Network
    chip: PlanChip
    budget: int
    program: tuple[Instruction, ...]
    result: Result
    groups: tuple[Group, ...] = ()
    options: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)
    timing: tuple[Timed, ...] = ()
    pins: tuple[Pin, ...] = ()
    state: tuple[State, ...] = ()
    sections: tuple[Section, ...] = ()
    caches: tuple[Cache, ...] = ()
    layouts: tuple[TensorLayout, ...] = ()
    proof: str = field(default="", compare=False, repr=False)
    kept: dict[str, object] = field(default_factory=dict, compare=False, repr=False)

    def __getstate__(self) -> dict[str, object]:
        """Return the state without `kept`, which can be derived again."""
        return {**self.__dict__, "kept": {}}

    def __eq__(self, other: object) -> bool:
        """Return whether both state the same plan, whatever methods their classes add; `proof` is ignored."""
        if not isinstance(other, Plan):
            return NotImplemented
        return all(getattr(self, f.name) == getattr(other, f.name) for f in fields(Plan) if f.compare)

    __hash__ = None  # type: ignore[assignment]  # options are a mapping

    @property
    def limit_bytes(self) -> int:
        """The bytes that every plan of this network moves from and to DRAM: inputs, outputs, weights once.

        Weights that the plan pins on chip are not fetched, and do not count; nor does what runs again.
        """
        pinned = {pin.operator for pin in self.pins if isinstance(pin, PinnedWeights)}
        once = (op for op in self.network.operators if op.repeats is None and op.name not in pinned)
        return self.result.compulsory_bytes + sum(op.weight_bytes for op in once)
