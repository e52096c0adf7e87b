"""The traffic of a plan's sections: the table of the simple method, from the plan program alone.

Every figure is counted on the checker's replay of the program: loads, stores and streamed operands between a
section's first and last instruction, against a machine that reads and writes every layer's feature maps in
DRAM. No planner takes part, so its own accounting can be compared with this one. KB are 1,024 bytes, as in
the paper (Kim et al., A Simple Method, Table 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from math import prod

from onchip.base.figures import data, derived, figure
from onchip.check.joins import plain_concat
from onchip.check.replay import Crossed, Ran, events_of
from onchip.machines.chip import ELEMENTS
from onchip.network import Geometry, Network, Operator, mask
from onchip.plans import Plan, Section

__all__ = [
    "WRITERS",
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
    geometry), `parameter_bytes` the rest of the weights: biases, folded norms. The naive figures are those of
    a machine where every layer reads each distinct operand and writes each output in DRAM; the others are
    those of the plan. A plain concat costs the naive machine nothing, unless an operand cannot lie in its
    output: a network input, or a tensor that already lies in another concat's.
    """

    name: str
    processing: str | None
    operators: int = figure(key="operators", order=15)
    weight_bytes: int = figure(key="weights_kb", unit="kb", heading="W", page="weights", place=1, order=1)
    parameter_bytes: int = figure(key="parameters_kb", unit="kb", page="parameters", place=99, order=2)
    naive_read_bytes: int = figure()
    naive_written_bytes: int = figure()
    naive_reads: int = figure(key="naive_reads", order=9)
    naive_writes: int = figure(key="naive_writes", order=10)
    read_bytes: int = figure(key="read_kb", unit="kb", order=13)
    written_bytes: int = figure(key="written_kb", unit="kb", order=14)
    reads: int = figure(key="reads", order=11)
    writes: int = figure(key="writes", order=12)
    merge: str | None = None

    @property
    def is_module(self) -> bool:
        """True for a module of branches, false for a stretch outside any."""
        return self.merge is not None

    @derived(key="naive_fm_kb", unit="kb", heading="naive FM", page="naive maps", place=2, order=3)
    def naive_fm_bytes(self) -> int:
        """Feature maps that the naive machine moves."""
        return self.naive_read_bytes + self.naive_written_bytes

    @derived(
        key="naive_overall_kb", unit="kb", heading="overall", page="naive overall", gives_way=3, place=3,
        order=4,
    )  # fmt: skip
    def naive_bytes(self) -> int:
        """Feature maps and weights that the naive machine moves."""
        return self.weight_bytes + self.naive_fm_bytes

    @derived(key="fm_kb", unit="kb", heading="FM", page="maps", place=4, order=5)
    def fm_bytes(self) -> int:
        """Feature maps that the plan moves."""
        return self.read_bytes + self.written_bytes

    @derived(key="overall_kb", unit="kb", heading="overall", page="overall", gives_way=3, place=5, order=6)
    def moved_bytes(self) -> int:
        """Feature maps and weights that the plan moves."""
        return self.weight_bytes + self.fm_bytes

    @derived(
        key="ratio_percent",
        unit="percent",
        heading="ratio %",
        page="overall %",
        gives_way=2,
        place=6,
        order=7,
    )
    def ratio(self) -> float | None:
        """Feature maps and weights that the plan moves, over those of the naive machine; None for 0 / 0."""
        return self.moved_bytes / self.naive_bytes if self.naive_bytes else None

    @derived(
        key="fm_ratio_percent", unit="percent", heading="FM %", page="maps %", gives_way=1, place=7, order=8
    )
    def fm_ratio(self) -> float | None:
        """The same of feature maps alone."""
        return self.fm_bytes / self.naive_fm_bytes if self.naive_fm_bytes else None

    @derived(unit="pair", heading="naive r/w", page="naive accesses", place=8)
    def naive_accesses(self) -> tuple[int, int]:
        """Reads and writes of the naive machine."""
        return self.naive_reads, self.naive_writes

    @derived(unit="pair", heading="r/w", page="accesses", place=9)
    def accesses(self) -> tuple[int, int]:
        """Reads and writes of the plan."""
        return self.reads, self.writes

    def data(self) -> dict[str, object]:
        """Return the row as in JSON: KB of 1,024 bytes, ratios in percent."""
        return data(self, WRITERS)


@dataclass(frozen=True, slots=True)
class SkipRow:
    """The traffic of one connection around many layers; part of the rows of the sections where it happens.

    `fetched_in` is the section of its reader and `stored_in` that of the store, None if there is none: the
    tensor stayed on chip, was there already, or is a network input.
    """

    tensor: str
    reader: str
    read_bytes: int = figure(key="read_kb", unit="kb")
    reads: int = figure(key="reads")
    fetched_in: str | None = figure(key="fetched_in")
    written_bytes: int = figure(key="written_kb", unit="kb")
    writes: int = figure(key="writes")
    stored_in: str | None = figure(key="stored_in")


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
        """The stretches outside any module: stem, stretches between, head."""
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
    """Return the table of a plan; without sections it has no row."""
    return ModuleTable(rows_of(plan))


def rows_of(plan: Plan) -> tuple[Row, ...]:
    """Return a row for every section of the plan, in its order."""
    counter = _Counter(plan)
    return tuple(counter.row(place, section) for place, section in enumerate(plan.sections))


def skip_rows(plan: Plan, pairs: Iterable[tuple[str, str]]) -> tuple[SkipRow, ...]:
    """Return the traffic of the connections (tensor, reader), each access counted once.

    The fetch is the load that brought the tensor for that reader, or the part of it that its run streams, if
    that is in the reader's section; the store is the first of the tensor.
    """
    counter, found, told = _Counter(plan), [], set[Crossed]()
    fetches, stores = counter.fetches(), counter.stores()
    for tensor, reader in pairs:
        root = plan.network.root[plan.network.tensor_id[tensor]]
        fetch, store = fetches.get((root, reader)), stores.get(root)
        fetched, stored = (move if move not in told else None for move in (fetch, store))
        told |= {move for move in (fetch, store) if move is not None}
        found.append(
            SkipRow(
                tensor,
                reader,
                0 if fetched is None else fetched.bytes,
                int(fetched is not None),
                counter.section_of(fetch),
                0 if stored is None else stored.bytes,
                int(stored is not None),
                counter.section_of(store),
            )
        )
    return tuple(found)


def sections_in_words(table: ModuleTable) -> tuple[str, ...]:
    """Return the traffic of a plan's modules and of the layers outside them, a line each."""
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
    """Return `1 read and 3 writes`."""
    return f"{counted(row.reads, 'read')} and {counted(row.writes, 'write')}"


def counted(n: int, what: str) -> str:
    """Return `1 read`, `2 reads`."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def kilobytes(n: int) -> int | float:
    """Return KB of 1,024 bytes, whole if exact."""
    whole, rest = divmod(n, 1024)
    return n / 1024 if rest else whole


def kernel_bytes(network: Network, op: Operator) -> int:
    """Return the bytes of the kernels among an operator's weights: kernel elements times channels.

    All of its weights if no geometry tells them apart. Weights have the network's elements; the rest are
    biases and the figures of a norm that was folded in.
    """
    elements = _kernel_elements(op.geometry)
    if elements is None:
        return op.weight_bytes
    return min(op.weight_bytes, elements * ELEMENTS.get(network.element, 1))


def _kernel_elements(g: Geometry | None) -> int | None:
    """Return the elements of a layer's kernels; 0 if it has only parameters, None if it is not known."""
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


class _Counter:
    """Counts the bytes that a plan's program moves, as the checker replays it."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.network, self.events = plan, plan.network, events_of(plan)
        self.runs: dict[int | None, list[Operator]] = {}
        self.moves: dict[int | None, list[Crossed]] = {}
        self.free, placed = (
            set[int](),
            self.network.input_roots,
        )  # concats that cost the naive machine nothing
        for event in self.events:
            if isinstance(event, Crossed):
                self.moves.setdefault(event.section, []).append(event)
            if isinstance(event, Ran):
                layers = [self.network.operators[v] for v in event.unit.operators]
                self.runs.setdefault(event.section, []).extend(layers)
                for op in layers:
                    parts = mask(op.inputs)
                    if not parts & placed and plain_concat(self.network, op.id):
                        self.free.add(op.id)
                        placed |= parts

    def row(self, place: int, section: Section) -> Row:
        layers, moved = self.runs.get(place, []), self.moves.get(place, [])
        kernels = sum(kernel_bytes(self.network, op) for op in layers)
        costly = [op for op in layers if op.id not in self.free]
        read = [t for op in costly for t in op.inputs]
        written = [t for op in costly for t in op.outputs]
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

    def fetches(self) -> dict[tuple[int, str], Crossed]:
        """Return by (root tensor, reader) the copy from DRAM for the reader, if in its own section."""
        last, passing, found = dict[int, Crossed](), dict[int, Crossed](), {}
        for event in self.events:
            if isinstance(event, Crossed) and event.inward:
                (passing if event.range is None else last)[event.tensor] = event
            if isinstance(event, Ran):
                for op in (self.network.operators[v] for v in event.unit.operators):
                    for t in {self.network.root[t] for t in op.inputs}:
                        move = passing.get(t, last.get(t))
                        if move is not None and move.section == event.section:
                            found[t, op.name] = move
                passing = {}
        return found

    def stores(self) -> dict[int, Crossed]:
        """Return by root tensor its first copy to DRAM."""
        found: dict[int, Crossed] = {}
        for event in self.events:
            if isinstance(event, Crossed) and not event.inward:
                found.setdefault(event.tensor, event)
        return found

    def section_of(self, move: Crossed | None) -> str | None:
        """Return the section in which a transfer happens."""
        return None if move is None or move.section is None else self.plan.sections[move.section].name

    def _bytes(self, tensors: Sequence[int]) -> int:
        return sum(self.network.tensors[t].bytes for t in tensors)


def _sum(name: str, rows: Sequence[Row]) -> Row:
    keys = [f.name for f in fields(Row) if f.type == "int"]
    return Row(name, None, **{key: sum(getattr(row, key) for row in rows) for key in keys})


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else round(100 * ratio, 4)


WRITERS = {"kb": kilobytes, "percent": _percent}
"""The forms of figures of modules in JSON."""
