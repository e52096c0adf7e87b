"""What the sections of a plan move: the table of the simple method, from the plan program alone.

Every figure is counted on the program and the network that the plan holds: loads, stores and streamed
operands between a section's first and last instruction, against a machine that reads and writes every
layer's feature maps in DRAM. No planner is asked, so its own accounting can be held against this one. KB are
1,024 bytes, as in the paper (Kim et al., A Simple Method, Table 1).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from onchip.check.joins import plain_concat
from onchip.machines.chip import ELEMENTS
from onchip.network import Geometry, Network, Operator, mask
from onchip.plans import Join, Load, Plan, Run, Section, Store

__all__ = [
    "ModuleTable",
    "Row",
    "SkipRow",
    "accesses",
    "counted",
    "kernel_bytes",
    "kilobytes",
    "module_table",
    "rows_of",
    "sections_in_words",
    "skip_rows",
]


@dataclass(frozen=True, slots=True)
class Row:
    """One section, or several together; everything in bytes or counted.

    `weight_bytes` are the kernels of its convolutions and matrix products (all weights of an operator without
    geometry), `parameter_bytes` the rest of the weights: biases, folded norms. The naive figures are of a
    machine where every layer reads each distinct operand and writes each output in DRAM; the others are what
    the plan moves. A plain concat costs the naive machine nothing, unless an operand cannot lie in its
    output: a network input, or what lies in another concat's already.
    """

    name: str
    processing: str | None
    operators: int
    weight_bytes: int
    parameter_bytes: int
    naive_read_bytes: int
    naive_written_bytes: int
    naive_reads: int
    naive_writes: int
    read_bytes: int
    written_bytes: int
    reads: int
    writes: int
    merge: str | None = None

    @property
    def is_module(self) -> bool:
        """A module of branches, rather than a stretch outside any."""
        return self.merge is not None

    @property
    def naive_fm_bytes(self) -> int:
        """Feature maps that the naive machine moves."""
        return self.naive_read_bytes + self.naive_written_bytes

    @property
    def fm_bytes(self) -> int:
        """Feature maps that the plan moves."""
        return self.read_bytes + self.written_bytes

    @property
    def ratio(self) -> float | None:
        """Feature maps and weights that the plan moves, over those of the naive machine; None for 0 / 0."""
        whole = self.weight_bytes + self.naive_fm_bytes
        return (self.weight_bytes + self.fm_bytes) / whole if whole else None

    @property
    def fm_ratio(self) -> float | None:
        """The same of feature maps alone."""
        return self.fm_bytes / self.naive_fm_bytes if self.naive_fm_bytes else None

    def data(self) -> dict[str, object]:
        """The row as JSON has it: KB of 1,024 bytes, ratios in percent."""
        return {
            "weights_kb": kilobytes(self.weight_bytes),
            "parameters_kb": kilobytes(self.parameter_bytes),
            "naive_fm_kb": kilobytes(self.naive_fm_bytes),
            "naive_overall_kb": kilobytes(self.weight_bytes + self.naive_fm_bytes),
            "fm_kb": kilobytes(self.fm_bytes),
            "overall_kb": kilobytes(self.weight_bytes + self.fm_bytes),
            "ratio_percent": _percent(self.ratio),
            "fm_ratio_percent": _percent(self.fm_ratio),
            "naive_reads": self.naive_reads,
            "naive_writes": self.naive_writes,
            "reads": self.reads,
            "writes": self.writes,
            "read_kb": kilobytes(self.read_bytes),
            "written_kb": kilobytes(self.written_bytes),
            "operators": self.operators,
        }


@dataclass(frozen=True, slots=True)
class SkipRow:
    """What one connection around many layers moves; part of the rows of the sections where it happens.

    `fetched_in` is the section of its reader and `stored_in` that of the store, None where there is none: the
    tensor stayed on chip, was there already, or is a network input.
    """

    tensor: str
    reader: str
    read_bytes: int
    reads: int
    fetched_in: str | None
    written_bytes: int
    writes: int
    stored_in: str | None


@dataclass(frozen=True)
class ModuleTable:
    """All sections of a plan, in program order, and their sums."""

    rows: tuple[Row, ...]

    @property
    def modules(self) -> tuple[Row, ...]:
        """The modules of branches."""
        return tuple(row for row in self.rows if row.is_module)

    @property
    def outside(self) -> tuple[Row, ...]:
        """The stretches outside any module: stem, what lies between, head."""
        return tuple(row for row in self.rows if not row.is_module)

    @property
    def total(self) -> Row:
        """All modules together: the last row of Table 1."""
        return _sum("total", self.modules)

    @property
    def total_outside(self) -> Row:
        """All stretches together."""
        return _sum("outside", self.outside)

    @property
    def network(self) -> Row:
        """The whole plan."""
        return _sum("network", self.rows)


def module_table(plan: Plan) -> ModuleTable:
    """The table of a plan; without sections it has no row."""
    return ModuleTable(rows_of(plan))


def rows_of(plan: Plan) -> tuple[Row, ...]:
    """A row for every section of the plan, in its order."""
    counter = _Counter(plan)
    return tuple(counter.row(section) for section in plan.sections)


def skip_rows(plan: Plan, pairs: Iterable[tuple[str, str]]) -> tuple[SkipRow, ...]:
    """What the connections (tensor, reader) move, each access told once.

    The fetch is the load that brought the tensor for that reader, or what its run streams of it, if that lies
    in the reader's section; the store is the first of the tensor.
    """
    counter, found, told = _Counter(plan), [], {_NONE}
    fetches, stores = counter.fetches(), counter.stores()
    for tensor, reader in pairs:
        root = plan.network.root[plan.network.tensor_id[tensor]]
        fetch, store = fetches.get((root, reader), _NONE), stores.get(root, _NONE)
        fetched, stored = (move if move not in told else _NONE for move in (fetch, store))
        told |= {fetch, store}
        found.append(
            SkipRow(
                tensor,
                reader,
                fetched.bytes,
                int(fetched is not _NONE),
                counter.section_at(fetch.index),
                stored.bytes,
                int(stored is not _NONE),
                counter.section_at(store.index),
            )
        )
    return tuple(found)


def sections_in_words(table: ModuleTable) -> tuple[str, ...]:
    """What a plan's modules and the layers outside them move, a line each."""
    kinds = [row.processing for row in table.modules]
    what = ", ".join(f"{kinds.count(kind):,} {kind}" for kind in ("I", "II") if kind in kinds)
    modules, outside = table.total, table.total_outside
    count = counted(len(kinds), "module") + (f" ({what})" if what else "")
    return (
        f"{count}: feature maps {modules.fm_bytes:,} B, {accesses(modules)}",
        f"{counted(outside.operators, 'operator')} outside modules:"
        f" {outside.fm_bytes:,} B, {accesses(outside)}",
    )


def accesses(row: Row) -> str:
    """`1 read and 3 writes`."""
    return f"{counted(row.reads, 'read')} and {counted(row.writes, 'write')}"


def counted(n: int, what: str) -> str:
    """`1 read`, `2 reads`."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def kilobytes(n: int) -> int | float:
    """KB of 1,024 bytes, whole where it is."""
    whole, rest = divmod(n, 1024)
    return n / 1024 if rest else whole


def kernel_bytes(network: Network, op: Operator) -> int:
    """Bytes of the kernels among an operator's weights: kernel elements times channels, from its geometry.

    All of its weights where no geometry tells them apart. Weights have the network's elements; what is left
    are biases and the figures of a norm that was folded in.
    """
    elements = _kernel_elements(op.geometry)
    if elements is None:
        return op.weight_bytes
    return min(op.weight_bytes, elements * ELEMENTS.get(network.element, 1))


def _kernel_elements(g: Geometry | None) -> int | None:
    """Elements of a layer's kernels; 0 where all that it has is parameters, None where nothing tells."""
    kind = None if g is None else g.looks_like
    match g:
        case Geometry(_, (_, _, _, _), (_, _, _, _)) if kind in ("conv", "depthwise") and g.groups > 0:
            axis = 1 if g.layout == "NCHW" else 3
            # Each output of a depthwise layer sees one channel, however its groups are written.
            inputs = 1 if kind == "depthwise" else g.input[axis] // g.groups
            return prod(g.kernel) * g.output[axis] * inputs
        case Geometry(_, (*_, inputs), (*_, outputs)) if kind == "fully_connected":
            return int(inputs * outputs)
    return 0 if kind in ("elementwise", "pool", "concat", "pad", "rowwise") else None


@dataclass(frozen=True, slots=True)
class _Move:
    """One copy of one tensor over the chip's border, by the instruction `index`."""

    index: int
    tensor: str
    bytes: int
    inward: bool


_NONE = _Move(-1, "", 0, True)


class _Counter:
    """Counts what a plan's instructions move."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.network = plan, plan.network
        self.members = {g.name: g.operators for g in plan.groups}
        self.firsts = [section.first for section in plan.sections]
        self.free = self._free_concats()

    def row(self, section: Section) -> Row:
        steps = range(section.first, min(section.end, len(self.plan.program)))
        layers = [op for i in steps for op in self.layers(i)]
        kernels = sum(kernel_bytes(self.network, op) for op in layers)
        costly = [op for op in layers if op.id not in self.free]
        read = [t for op in costly for t in op.inputs]
        written = [t for op in costly for t in op.outputs]
        moved = [move for i in steps for move in self.moves(i)]
        into, out = ([m.bytes for m in moved if m.inward is side] for side in (True, False))
        return Row(
            section.name,
            section.processing,
            len(layers),
            kernels,
            sum(op.weight_bytes for op in layers) - kernels,
            self._bytes(read),
            self._bytes(written),
            len(read),
            len(written),
            sum(into),
            sum(out),
            len(into),
            len(out),
            section.merge,
        )

    def _free_concats(self) -> set[int]:
        """The concats that cost the naive machine nothing, in the plan's order."""
        free, placed = set[int](), self.network.input_roots
        for i in range(len(self.plan.program)):
            for op in self.layers(i):
                parts = mask(op.inputs)
                if not parts & placed and plain_concat(self.network, op.id):
                    free.add(op.id)
                    placed |= parts
        return free

    def layers(self, index: int) -> list[Operator]:
        """The operators that instruction `index` runs, those of a group one by one."""
        step = self.plan.program[index]
        if not isinstance(step, Run | Join):
            return []
        names = self.members.get(step.operator, (step.operator,))
        return [self.network.operators[self.network.operator_id[name]] for name in names]

    def moves(self, index: int) -> list[_Move]:
        """What instruction `index` moves to and from DRAM, weights aside."""
        match self.plan.program[index]:
            case Load(tensor, _):
                return [_Move(index, tensor, self._bytes([self.network.tensor_id[tensor]]), True)]
            case Store(tensor):
                return [_Move(index, tensor, self._bytes([self.network.tensor_id[tensor]]), False)]
            case Run(_, streaming):
                made = {self._root(t) for op in self.layers(index) for t in op.outputs}
                return [
                    _Move(index, tensor, n, self._root(self.network.tensor_id[tensor]) not in made)
                    for tensor, n in streaming
                ]
        return []

    def fetches(self) -> dict[tuple[int, str], _Move]:
        """By (root tensor, reader): the copy from DRAM by which the reader has it, if in its own section."""
        last, found = dict[int, _Move](), {}
        for i in range(len(self.plan.program)):
            now = {self._root(self.network.tensor_id[m.tensor]): m for m in self.moves(i) if m.inward}
            layers = self.layers(i)
            if not layers:
                last |= now
            for op in layers:
                for t in {self._root(t) for t in op.inputs}:
                    move = now.get(t, last.get(t, _NONE))
                    if self.section_at(move.index) == self.section_at(i):
                        found[t, op.name] = move
        return found

    def stores(self) -> dict[int, _Move]:
        """By root tensor: its first copy to DRAM."""
        found: dict[int, _Move] = {}
        for i in range(len(self.plan.program)):
            for m in self.moves(i):
                if not m.inward:
                    found.setdefault(self._root(self.network.tensor_id[m.tensor]), m)
        return found

    def section_at(self, index: int) -> str | None:
        """The section that an instruction lies in."""
        at = bisect_right(self.firsts, index) - 1
        return self.plan.sections[at].name if at >= 0 and index < self.plan.sections[at].end else None

    def _root(self, t: int) -> int:
        return self.network.root[t]

    def _bytes(self, tensors: Sequence[int]) -> int:
        return sum(self.network.tensors[t].bytes for t in tensors)


def _sum(name: str, rows: Sequence[Row]) -> Row:
    keys = ("operators", "weight_bytes", "parameter_bytes", "naive_read_bytes", "naive_written_bytes",
            "naive_reads", "naive_writes", "read_bytes", "written_bytes", "reads", "writes")  # fmt: skip
    return Row(name, None, **{key: sum(getattr(row, key) for row in rows) for key in keys})


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else round(100 * ratio, 4)
