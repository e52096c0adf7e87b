"""The report of an execution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain

from onchip.base.units import exact
from onchip.check.as_nests import OF_BYTES
from onchip.run.moved import BytesMoved, GroupMoved

__all__ = ["BytesMoved", "RunReport"]


@dataclass(frozen=True)
class RunReport:
    """One plan, executed, with every tensor compared as it was written and as it was read.

    A difference raises `Mismatch`, so a report means success: `bit_exact` is False only when a tolerance
    allowed `max_difference` (largest absolute difference from `engine` in any tensor), or where groups ran in
    tiles; `relative_difference` is the largest over its tensor's largest magnitude.
    `optimised_difference` is the largest difference of a network output from `optimised`, relative
    to that output's largest magnitude. Slots and addresses were `scale` times the planned ones; `moved` is
    divided by it again. Of concats' operands `in_place_bytes` lay in place on chip and were not moved;
    `joined` concats ran in DRAM. Operators `in_parts` streamed part by part in their scratch; those of
    `streamed_whole` ran whole, for the reasons given. `digests` holds a hash of every tensor compared, by
    name.
    """

    network: str
    operators: int
    tensors: int
    comparisons: int
    bit_exact: bool
    max_difference: float
    optimised_difference: float
    scale: int
    budget_bytes: int
    arena_bytes: int
    moved: BytesMoved
    seed: int
    input_seed: int
    seconds: float
    notes: tuple[str, ...]
    digests: Mapping[str, str]
    engine: str = "unoptimised onnxruntime"
    optimised: str = "optimised onnxruntime"
    tiled: tuple[GroupMoved, ...] = ()
    relative_difference: float = 0.0
    in_place_bytes: int = 0
    joined: int = 0
    in_parts: tuple[str, ...] = ()
    streamed_whole: Mapping[str, str] = field(default_factory=dict)

    def _tiled(self) -> str:
        counted, stated = (sum(getattr(g, f"{x}_bytes") for g in self.tiled) for x in ("counted", "stated"))
        subgroups = sum(g.subgroups for g in self.tiled)
        made = sum(g.elements for g in self.tiled)
        again = sum(g.elements * g.recomputed for g in self.tiled) / max(made, 1)
        others = self._otherwise()
        as_nests = f" for its tiles (run as nests: {', '.join(others)})" if others else ""
        return (
            f"{len(self.tiled):,} groups in {subgroups:,} tiles, {again:.1%} of the elements made again:"
            f" copies inside them moved {exact(counted)}, the plan states {exact(stated)}{as_nests}"
        )

    def _otherwise(self) -> list[str]:
        """Return the reasons why groups in tiles move other bytes as nests."""
        found = (g.why for g in self.tiled if g.counted_bytes != g.stated_bytes)
        return [name for name in dict.fromkeys(chain.from_iterable(found)) if name in OF_BYTES]

    def _shown(self) -> list[tuple[str, str]]:
        """Return the first few operators that ran whole, with the reasons."""
        return list(self.streamed_whole.items())[:5]

    def lines(self) -> list[str]:
        """Return the report for people, a fact a line."""
        verdict = (
            f"bit for bit as in {self.engine}"
            if self.bit_exact
            else f"within {self.max_difference:.3g} ({self.relative_difference:.2g} relative) of"
            f" {self.engine}"
        )
        name = _printable(self.network)
        rows = [
            f"{name}: {self.operators:,} operators executed, {self.tensors:,} tensors {verdict}",
            f"{self.optimised}: outputs within {self.optimised_difference:.2g} of it, relative",
            f"moved, counted by the copies: compulsory {exact(self.moved.compulsory)}, reload"
            f" {exact(self.moved.reload)}, spill {exact(self.moved.spill)}"
            f"{f', weights {exact(self.moved.weights)}' if self.tiled else ''}: as planned"
            f"{' for nests' if self._otherwise() else ''}",
            f"scratchpad: {exact(self.arena_bytes)}, sizes and addresses x{self.scale}",
        ]
        if self.moved.between:
            pairs = ", ".join(
                f"{exact(m.bytes)} from {_printable(m.source)} to {_printable(m.target)}"
                for m in self.moved.between
            )
            rows.append(f"moved between memories, counted by the copies: {pairs}: as planned")
        if self.tiled:
            rows.append(self._tiled())
        if self.in_place_bytes or self.joined:
            rows.append(
                f"concats: {exact(self.in_place_bytes)} of operands lay in place on chip and were not"
                f" moved, {self.joined:,} in DRAM had theirs side by side"
            )
        if self.in_parts or self.streamed_whole:
            rows.append(
                f"streamed in parts that fit their scratch: {len(self.in_parts):,} operators; whole, passing"
                f" through it: {len(self.streamed_whole):,}"
            )
            rows += [f"{_printable(op)} streamed whole: {why}" for op, why in self._shown()]
        return [*rows, *self.notes, f"{self.seconds:.1f} s"]


def _printable(name: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in name)
