"""A prompt and the steps behind it, planned into one arena: caches at one place in all plans.

The prompt begins the caches, every step appends to them. Their buffers are the same in all plans: of one
capacity, in one order, at the bottom of the scratchpad. So each plan is the best by itself, and they follow
each other without a copy (`onchip.check.prove_following`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onchip.base.errors import NegativeAnswer, UsageError
from onchip.base.files import write_atomically
from onchip.by_length.options import SessionOptions
from onchip.by_length.table import Lengths
from onchip.check import check, prove_following
from onchip.network import Network
from onchip.planners.placement import PlacementOptions
from onchip.plans import Plan, write_plan

if TYPE_CHECKING:
    from onchip.readers.source import Source
    from onchip.run.sequence import SequenceReport

__all__ = ["FORMAT", "Session", "new_rows", "plan_prompt"]

FORMAT = "onchip.session/1"


Planner = Callable[[PlacementOptions], Plan]
"""Plans the prompt with the states that it is told."""


def plan_prompt(
    network: Network, asked: SessionOptions, table: Lengths, options: PlacementOptions, planner: Planner
) -> Plan:
    """Return the plan of a prompt that begins the caches of the steps in `table`, where these look for them.

    Raises `UsageError` where it does not make them, or not of their shapes and length.
    """
    caches = table.rows[0].begins.caches
    if table.asked < table.first:
        raise NegativeAnswer(
            f"steps of {table.asked:,} to {table.first - 1:,} were not planned: time is over"
        )
    if not caches:
        raise UsageError("is needed: what grows from the prompt on", item="--state")
    names = asked.begins or tuple(cache.output for cache in caches)
    if len(names) != len(caches):
        raise UsageError(f"names {len(names):,} outputs for {len(caches):,} caches", item="--begins")
    unknown = [name for name in names if name not in network.tensor_id]
    if unknown:
        raise UsageError(f"{network.name} makes no {unknown[0]}", item="--begins")
    for name, cache in zip(names, caches, strict=True):
        shape = network.tensors[network.tensor_id[name]].shape
        rows = shape[cache.axis] if cache.axis < len(shape) else 0
        if rows != table.first:
            raise UsageError(
                f"begins with {table.first:,} rows of {cache.input}, and the prompt leaves {rows:,} of"
                f" {name}",
                item="--length",
            )
    states = tuple(f"={name}" for name in names)
    return planner(replace(options, state=states, capacity=caches[0].rows))


@dataclass(frozen=True)
class Session:
    """A prompt's plan and those of all steps behind it, by length; `steps.rows` are what a runtime follows.

    `sources` gives the model of the prompt (None) or of a step's length.
    """

    prompt: Plan
    steps: Lengths
    sources: Any = field(repr=False)

    def check(self) -> None:
        """Prove each plan legal at both ends of its row, and that all follow each other in one arena."""
        check(self.prompt)
        before = self.prompt
        for row in self.steps.rows:
            check(row.begins)
            check(row.plan)
            prove_following(before, row.begins)
            before = row.plan

    def in_turn(self, steps: int | None = None) -> Iterator[tuple[Plan, Source]]:
        """Yield the plans and models of the prompt and of some steps (None: all), as they are executed."""
        yield self.prompt, self.sources(None)
        length, end, done = self.steps.first, self.steps.rows[-1].last, 0
        while length <= end and (steps is None or done < steps):
            plan = self.steps.plan(length)
            yield plan, self.sources(length)
            length += new_rows(plan)
            done += 1

    def run(self, steps: int | None = None, *, seed: int = 0, progress: Any = None) -> SequenceReport:
        """Execute the prompt and then steps (None: all) in one arena, and compare every tensor.

        Raises `Mismatch` naming the tensor that differs.
        """
        from onchip.run.sequence import run_in_turn

        return run_in_turn(self.in_turn(steps), seed=seed, progress=progress)

    def data(self) -> dict[str, Any]:
        """Return the session as JSON has it: the prompt's plan, the table of the steps, and the caches."""
        caches = []
        for begins, grows in zip(self.prompt.caches, self.steps.rows[0].begins.caches, strict=True):
            t = self.prompt.network.tensors[self.prompt.network.tensor_id[begins.output]]
            size = t.bytes // t.shape[begins.axis] * begins.rows
            caches.append(
                {
                    "begins": begins.output,
                    "input": grows.input,
                    "output": grows.output,
                    "address": begins.address,
                    "bytes": size,
                    "axis": begins.axis,
                    "rows": begins.rows,
                }
            )
        return {"format": FORMAT, "prompt": "prompt.json", "caches": caches, "steps": self.steps.data()}

    def to_json(self) -> str:
        """Return the session as JSON text."""
        return json.dumps(self.data(), indent=1) + "\n"

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Write `session.json`, the prompt's plan and the steps' table and plans into a folder."""
        into = Path(folder)
        written = [*self.steps.save(into), into / "prompt.json", into / "session.json"]
        write_plan(self.prompt, into / "prompt.json")
        write_atomically(into / "session.json", self.to_json())
        return tuple(written)

    def __repr__(self) -> str:
        from onchip.report.grid import one_screen

        return one_screen(str(self))

    def __str__(self) -> str:
        from onchip.by_length.shown import shown_session
        from onchip.report.grid import printed

        return printed(shown_session(self.prompt, self.steps), 100)


def new_rows(plan: Plan) -> int:
    """Return how many rows a step appends."""
    cache = plan.caches[0]
    ids, tensors = plan.network.tensor_id, plan.network.tensors
    assert cache.input is not None
    return tensors[ids[cache.output]].shape[cache.axis] - tensors[ids[cache.input]].shape[cache.axis]
