"""Plans executed one after the other in one arena: each begins with the caches that the one before left."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from onchip.base.errors import InputError, Mismatch
from onchip.plans import Plan
from onchip.readers.source import Source
from onchip.run.compare import Comparison
from onchip.run.engine import engine_of
from onchip.run.execute import refuse_other_bytes
from onchip.run.machine import Machine
from onchip.run.slots import make_slots
from onchip.run.source import source_of
from onchip.run.tiled import Tiles
from onchip.run.told import told_of

__all__ = ["SequenceReport", "run_in_turn"]


@dataclass(frozen=True)
class SequenceReport:
    """Plans executed in turn, with every tensor compared, by the words of each execution.

    `handed_over` are the bytes of caches that each execution but the first read out of the arena as the one
    before had left them. `bit_exact` is False where a group ran in tiles.
    """

    networks: tuple[str, ...]
    operators: int
    comparisons: int
    bit_exact: bool
    handed_over: int
    dram_bytes: int
    engine: str

    def lines(self) -> list[str]:
        """Return the report for people, a fact a line."""
        exactly = "bit for bit" if self.bit_exact else "within 1e-4"
        return [
            f"{len(self.networks):,} networks in turn, {self.operators:,} operators: all"
            f" {self.comparisons:,} values {exactly} as in {self.engine}",
            f"caches read where the network before left them: {self.handed_over:,} B in all",
            f"moved, counted by the copies: {self.dram_bytes:,} B in all, as planned",
        ]


def run_in_turn(
    plans: Iterable[tuple[Plan, Source]], *, seed: int = 0, progress: Callable[[str], None] | None = None
) -> SequenceReport:
    """Execute plans that follow each other (`onchip.check.prove_following`) in one arena.

    Each network runs as a whole in its runtime on the caches that the runtime made of the network before, and
    each plan on the bytes that the plan before left in the arena. All but the first draw new inputs. Raises
    `Mismatch` as `run` does.
    """
    say = progress or (lambda line: None)
    before: Machine | None = None
    names: list[str] = []
    operators = comparisons = handed = moved = 0
    exact, engine_name = True, ""
    for n, (stated, source) in enumerate(plans):
        plan = told_of(stated).plan
        network, executable = plan.network, source_of(plan, source)
        slots = make_slots(network, executable)
        engine = engine_of(network, slots, executable, seed)
        inputs = engine.seeded_inputs(seed + n)
        approximate: list[int] = []  # made in parts by the network before, or from such
        if before is not None:
            if before.slots.scale != slots.scale:
                raise InputError(
                    f"is executed at {slots.scale} times its sizes, the network before at"
                    f" {before.slots.scale} times",
                    where=network.name,
                )
            for left, found in zip(before.plan.caches, plan.caches, strict=True):
                assert found.input is not None
                value = before.comparison.reference[before.network.tensor_id[left.output]]
                t = network.tensor_id[found.input]
                if value.shape != slots.shape[t] or value.dtype != slots.dtype[t]:
                    raise Mismatch(f"{found.input} is not what {before.network.name} leaves")
                inputs[t] = np.asarray(value)
                if before.comparison.approximate((before.network.tensor_id[left.output],)):
                    approximate.append(t)
                handed += network.tensors[t].bytes
        say(f"executing {n + 1}: {network.name}")
        ids = {t.id: t.name for t in network.tensors}
        comparison = Comparison(engine.reference(inputs), ids, None, engine.name, roots=network.root)
        comparison.make_approximate(*approximate)
        machine = Machine(plan, slots, inputs, engine.kernel, comparison, Tiles(engine), before)
        machine.execute()
        refuse_other_bytes(machine.bytes_moved(), plan)
        names.append(network.name)
        operators += len(machine.ran)
        comparisons += comparison.comparisons
        exact, engine_name, before = exact and comparison.bit_exact, engine.name, machine
        moved += plan.result.dram_bytes
    return SequenceReport(tuple(names), operators, comparisons, exact, handed, moved, engine_name)
