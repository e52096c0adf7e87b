"""The memory while layers are decided one by one: tensors on chip, tensors in DRAM, and readers to come.

`run` is Algorithm 6 for one layer. It can be undone, so that a module can be tried in several ways.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from onchip.check.joins import concat_offsets
from onchip.check.operator_overlap import may_overwrite
from onchip.network import Network, bits
from onchip.planners.branches.acts import Act, DoesNotFit
from onchip.planners.branches.sizes import Sizes

__all__ = ["Mark", "Memory"]


@dataclass(frozen=True, slots=True)
class Mark:
    """A state to return to. `last` is the act before it, to which stores and frees may be added."""

    acts: int
    last: Act | None
    resident: tuple[int, ...]
    pinned: tuple[int, ...]
    stored: int
    joined: int
    ran: int


class Memory:
    """`budget` bytes on a chip. `skips` are long connections, (tensor, operator): they go through DRAM."""

    def __init__(
        self, network: Network, sizes: Sizes, budget: int, skips: Collection[tuple[int, int]] = ()
    ) -> None:
        self.network, self.sizes, self.budget = network, sizes, budget
        self.skips = frozenset(skips)
        self.acts: list[Act] = []
        self.resident: dict[int, None] = {}
        self.pinned: list[int] = []  # inputs of the modules in progress, once for each
        self.left = [readers.bit_count() for readers in network.readers]
        self.near = list(self.left)  # without the readers at the end of a long connection
        for t, _ in self.skips:
            self.near[t] -= 1
        self._dram = set(bits(network.input_roots))
        self._joined: set[int] = set()
        self._stores: list[int] = []
        self._joins: list[int] = []
        self._ran: list[int] = []
        self._loads: list[int] = []
        self._offsets: dict[int, tuple[int, ...] | None] = {}

    # -- going back --------------------------------------------------------------------------------------

    def mark(self) -> Mark:
        """Return the current state."""
        return Mark(
            len(self.acts),
            self.acts[-1] if self.acts else None,
            tuple(self.resident),
            tuple(self.pinned),
            len(self._stores),
            len(self._joins),
            len(self._ran),
        )

    def undo(self, mark: Mark) -> None:
        """Undo everything since `mark`."""
        del self.acts[mark.acts :]
        if mark.last is not None:
            self.acts[-1] = mark.last
        self._loads.clear()
        self.resident, self.pinned = dict.fromkeys(mark.resident), list(mark.pinned)
        self._dram.difference_update(self._stores[mark.stored :])
        del self._stores[mark.stored :]
        self._joined.difference_update(self._joins[mark.joined :])
        del self._joins[mark.joined :]
        for v in self._ran[mark.ran :]:
            for t in bits(self.network.reads[v]):
                self.left[t] += 1
                self.near[t] += (t, v) not in self.skips
        del self._ran[mark.ran :]

    # -- questions ---------------------------------------------------------------------------------------

    def in_dram(self, t: int) -> bool:
        """Return whether DRAM holds the tensor."""
        return t in self._dram

    def concat(self, v: int) -> bool:
        """Return whether the operator is a concat without cost: its operands lie in order in its output."""
        return self.offsets(v) is not None

    def offsets(self, v: int) -> tuple[int, ...] | None:
        """Return the byte offsets of such a concat's inputs in its output; None for every other operator."""
        if v not in self._offsets:
            found = concat_offsets(self.network, v)
            inputs = self.network.operators[v].inputs
            self._offsets[v] = None if isinstance(found, str) else tuple(found[t] for t in inputs)
        return self._offsets[v]

    def size(self, t: int) -> int:
        """Return the bytes that a tensor occupies."""
        return self.sizes.tensor(t)

    def available(self, v: int) -> int:
        """Return size_avail: the budget less module inputs and all tensors that this layer does not read."""
        reads = self.network.reads[v]
        held = sum(self.size(t) for t in self.resident if t in self.pinned or not reads >> t & 1)
        return self.budget - held

    def needs_copy(self, t: int) -> bool:
        """Return whether a long connection or the network's output still needs the tensor in DRAM."""
        if t in self._dram:
            return False
        return bool(self.network.output_roots >> t & 1) or self.left[t] > self.near[t]

    # -- layers ------------------------------------------------------------------------------------------

    def load(self, t: int) -> None:
        """Load a tensor with the next layer."""
        assert t in self._dram
        assert t not in self.resident
        self.resident[t] = None
        self._loads.append(t)

    def run(
        self, v: int, branch: tuple[int, ...], *, want: bool, strict: bool, over: Sequence[int] = ()
    ) -> None:
        """Decide one layer: Algorithm 6. Its output stays on chip if `want` and it fits.

        With `strict` it must. A sum may be written over one of the tensors `over`. Raises `DoesNotFit`.
        """
        op = self.network.operators[v]
        reads = tuple(bits(self.network.reads[v]))
        away = tuple(t for t in reads if t not in self.resident)
        assert all(t in self._dram for t in away), op.name
        available = self.available(v)
        held = sum(self.size(t) for t in reads if t in self.resident and t not in self.pinned)
        brought = held + sum(self.size(t) for t in away)
        target = self._overwritten(v, over) if want else None
        # Streamed inputs, or else whole ones: both cross once.
        ways = [(away, held), ((), brought)] if away else [((), held)]
        least: DoesNotFit | None = None
        for keep in (True, False) if want else (False,):
            for read, inputs in ways:
                written = () if keep else op.outputs
                workspace = self.sizes.streaming(v, read, written)
                whole = sum(self.size(t) for t in op.outputs) if keep and target is None else 0
                required = inputs + whole + self._rounded(workspace)
                if required <= available:
                    for t in away if not read else ():
                        self.load(t)
                    act = Act(v, branch, "run", required, available, keep, workspace, read=read)
                    self._done(
                        replace(act, over=target, made=op.outputs) if keep else replace(act, written=written)
                    )
                    return
                if least is None or required < least.required:
                    there = {*reads} - {*read} if read else {*reads}
                    made = op.outputs if whole else ()
                    least = DoesNotFit(v, required, available, self._why(v, there, made, workspace, written))
            if strict:
                break
        assert least is not None
        raise least

    def _why(
        self, v: int, there: Collection[int], made: Sequence[int], workspace: int, written: Sequence[int]
    ) -> tuple[tuple[str, int], ...]:
        """Return the uses of a layer's memory: tensors, and its workspace in words."""
        network = self.network
        held = [t for t in self.resident if t not in there]
        found = [(network.tensors[t].name, self.size(t)) for t in (*sorted(there), *made, *held)]
        passing = [t for t in bits(network.reads[v]) if t not in there] + list(written)
        if not passing:
            words = "weights and working memory"
        elif network.operators[v].geometry is None:
            words = "its streamed operands whole, since no geometry says how it walks"
        else:
            names = " and ".join(network.tensors[t].name for t in passing)
            words = f"what passes of {names}, weights and working memory"
        return (*found, (words, workspace)) if workspace else tuple(found)

    def merge(
        self,
        v: int,
        branch: tuple[int, ...],
        *,
        want: bool,
        strict: bool,
        over: Sequence[int],
        in_place: bool = True,
    ) -> None:
        """Decide a merge layer: a concat without cost lies in place or is joined in DRAM.

        Without `in_place`, its operands lie anywhere on chip and are copied: no byte crosses to DRAM.
        """
        if not self.concat(v):
            self.run(v, branch, want=want, strict=strict, over=over)
            return
        network = self.network
        (output,) = network.operators[v].outputs
        reads = tuple(bits(network.reads[v]))
        if want:
            away = tuple(t for t in reads if t not in self.resident)
            parts = self._in_place(v) if in_place else ()
            available = self.available(v)
            required = self.size(output) + sum(
                self.size(t) for t in reads if t not in parts and t not in self.pinned
            )
            if required <= available:
                for t in away:
                    self.load(t)
                self._done(Act(v, branch, "run", required, available, True, made=(output,), parts=parts))
                return
            if strict:
                raise DoesNotFit(v, required, available)
        if any(network.input_roots >> t & 1 or t in self._joined for t in reads):
            self.run(v, branch, want=want, strict=strict)
            return
        first = tuple(t for t in reads if t not in self._dram)
        for t in first:
            self._store(t)
        self._joins += reads
        self._joined.update(reads)
        self._done(Act(v, branch, "join", 0, self.available(v), False, store_first=first, written=(output,)))

    def let_go(self, t: int) -> None:
        """Free a tensor after the last act, after storing it if it is still needed."""
        del self.resident[t]
        wanted = self.left[t] or self.network.output_roots >> t & 1
        store = (t,) if wanted and t not in self._dram else ()
        for s in store:
            self._store(s)
        last = self.acts[-1]
        self.acts[-1] = replace(last, store=(*last.store, *store), free=(*last.free, t))

    def keep_copy(self, t: int) -> None:
        """Store a resident tensor after the last act."""
        self._store(t)
        self.acts[-1] = replace(self.acts[-1], store=(*self.acts[-1].store, t))

    # -- how ---------------------------------------------------------------------------------------------

    def _rounded(self, size: int) -> int:
        return self.sizes.chip.round_up(size)

    def _in_place(self, v: int) -> tuple[int, ...]:
        """Return the operands of a concat that may lie in their places in its output."""
        op, found = self.network.operators[v], list[int]()
        for t, offset in zip(op.inputs, self.offsets(v) or (), strict=True):
            end = offset + self.network.tensors[t].bytes
            whole = self._rounded(offset) == offset and (
                self._rounded(end) == end or end == self.network.tensors[op.outputs[0]].bytes
            )
            if whole and (self._ends(t) or (t not in self.resident and self.left[t] == 1)):
                found.append(t)
        return tuple(found)

    def _ends(self, t: int) -> bool:
        """Return whether a tensor on chip has one reader left, which may therefore take its bytes."""
        output = self.network.output_roots >> t & 1
        return (
            t in self.resident
            and t not in self.pinned
            and self.left[t] == 1
            and (not output or t in self._dram)
        )

    def _overwritten(self, v: int, over: Sequence[int]) -> int | None:
        """Return the first of some tensors that the operator may write its output over."""
        op = self.network.operators[v]
        if len(op.outputs) != 1:
            return None
        for x in over:
            fits = self._ends(x) and self.size(x) == self.size(op.outputs[0])
            if fits and may_overwrite(self.network, v, op.outputs[0], x):
                return x
        return None

    def _store(self, t: int) -> None:
        self._dram.add(t)
        self._stores.append(t)

    def _done(self, act: Act) -> None:
        """Record that the layer has run: free what nothing reads any more, add its outputs."""
        v = act.operator
        loads = tuple(self._loads)
        self._loads.clear()
        self._ran.append(v)
        for t in bits(self.network.reads[v]):
            self.left[t] -= 1
            self.near[t] -= (t, v) not in self.skips
        for t in act.written:
            self._store(t)
        for t in act.made:
            self.resident[t] = None
        for t in (*act.parts, *(() if act.over is None else (act.over,))):
            del self.resident[t]
        store = tuple(t for t in act.made if self.needs_copy(t))
        for t in store:
            self._store(t)
        free = tuple(t for t in self.resident if not self.near[t] and t not in self.pinned)
        late = tuple(
            t for t in free if t not in self._dram and (self.left[t] or self.network.output_roots >> t & 1)
        )
        for t in late:
            self._store(t)
        for t in free:
            del self.resident[t]
        self.acts.append(replace(act, load=loads, store=(*store, *late), free=free))
