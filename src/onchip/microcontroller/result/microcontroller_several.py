"""Several networks on one microcontroller, one behind the other: the result of `onchip.mcu_several`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from onchip.base.errors import (
    DoesNotFitBoard,
    Infeasible,
    MissingTool,
    NeedsTraffic,
    NegativeAnswer,
    TooLargeToEmulate,
)
from onchip.base.figures import data
from onchip.base.files import temporary_folder
from onchip.machines.board import Board
from onchip.microcontroller.emulator.build import Image
from onchip.microcontroller.emulator.toolchain import find_toolchain
from onchip.microcontroller.emulator.verify_several import VerifiedSeveral, link_several, verify_several
from onchip.microcontroller.int8.model import Int8Model
from onchip.microcontroller.network import network_of, states_of
from onchip.microcontroller.project.several import SeveralSources, several_files, several_sources
from onchip.microcontroller.result.microcontroller import Kernels
from onchip.microcontroller.result.microcontroller_kernels import shareable
from onchip.microcontroller.result.program_sizes import ProgramSizes
from onchip.microcontroller.result.row_choice import RowPlans, planned_by_method
from onchip.report.grid import Grid
from onchip.report.wording import SENTENCE, visible

if TYPE_CHECKING:
    from onchip.microcontroller.segments import SegmentOptions
    from onchip.plans import Plan

__all__ = ["SeveralMaker", "SeveralNetworks", "several_table"]


@dataclass(frozen=True)
class SeveralNetworks(ProgramSizes):
    """Several networks planned for one array of a board: their plans, their C, and their sizes together.

    `image`, `short`, `run` and `unlinked` are those of one program with all of them, as in
    `Microcontroller`. `shared` are the layers of each that kernels for all shapes make.
    """

    models: tuple[Int8Model, ...]
    board: Board
    plans: tuple[Plan, ...]
    sources: SeveralSources
    image: Image | None
    short: tuple[tuple[str, int, int], ...]
    run: VerifiedSeveral | None
    shared: tuple[frozenset[str], ...]
    unlinked: str | None = None

    @property
    def arena_bytes(self) -> int:
        """RAM for activations of whichever network runs, and for the states of all."""
        return self.sources.extent

    @property
    def apart_bytes(self) -> int:
        """RAM for activations and states if each network had an array of its own."""
        return sum(plan.result.extent_bytes for plan in self.plans)

    @property
    def constant_bytes(self) -> int:
        """Flash for the weights, factors and tables of all."""
        return self.sources.constant_bytes

    def save(self, folder: str | Path) -> None:
        """Write the C project: whole, or not at all; replaces a folder only of onchip's own files."""
        from onchip.microcontroller.project.write import write_project

        write_project(several_files(self.sources, self.models, self.board), Path(folder))

    def data(self) -> dict[str, Any]:
        """Return the figures as JSON data."""
        found: dict[str, Any] = {
            "board": self.board.name,
            "core": self.board.core,
            "fits": self.fits,
            "ram_bytes": self.ram_bytes,
            "flash_bytes": self.flash_bytes,
            "arena_bytes": self.arena_bytes,
            "arena_bytes_apart": self.apart_bytes,
            "state_bytes": self.sources.state_bytes,
            "reentrant": self.sources.reentrant,
            "short": [{"memory": m, "needs": n, "has": h} for m, n, h in self.short],
            "networks": [
                {
                    "network": model.name,
                    "name": one.name,
                    "arena_bytes": one.arena_bytes,
                    "state_bytes": one.state_bytes,
                    "constant_bytes": sum(one.constant_bytes.values()),
                    "status": plan.result.status,
                }
                for model, one, plan in zip(self.models, self.sources.networks, self.plans, strict=True)
            ],
        }
        if self.image is not None:
            found["linked_bytes"] = data(self.image, {})
        if self.run is not None:
            run = self.run
            found["run"] = {
                "match": run.match,
                "machines": list(run.machines),
                "rounds": run.runs,
                "output_bytes": run.output_bytes,
                "different_bytes": run.different,
                "stack_bytes": run.stack_bytes,
                "networks": {name: data(counts, {}) for name, counts in run.by_network.items()},
            }
        return found


@dataclass(frozen=True)
class SeveralMaker:
    """Plans networks for one array of a board, writes them, builds and runs them in one program.

    Each is planned in what the board has beyond the states of the others and, once linked, beyond stack and
    statics. Fields as in `Maker`; `runs` of 0 only links.
    """

    models: tuple[Int8Model, ...]
    board: Board
    options: SegmentOptions
    runs: int
    say: Callable[[str], None]
    name: str = "networks"
    seed: int = 0
    seconds: float | None = None
    reentrant: bool = False
    rows: tuple[RowPlans, ...] = field(default=(), compare=False, repr=False)

    def make(self, kernels: Kernels) -> SeveralNetworks:
        """Return the networks with these kernels; `auto` shares them where the flash is short of them."""
        made = self._in_ram(shared=kernels == "shared")
        if kernels == "auto" and made.lacks("flash"):
            self.say("sharing kernels")
            less = self._in_ram(shared=True)
            return less if less.flash_bytes < made.flash_bytes else made
        return made

    def _in_ram(self, *, shared: bool) -> SeveralNetworks:
        """Plan and build; plan again where stack and statics leave less than the plans take."""
        made = self._planned(0, shared=shared)
        beside = made.ram_bytes - made.arena_bytes
        if made.lacks("RAM") and beside > 0:
            try:
                return self._planned(beside, shared=shared)
            except NegativeAnswer:
                return made
        return made

    def _planned(self, beside: int, *, shared: bool) -> SeveralNetworks:
        kept = [sum(len(state.initial) for state in model.states) for model in self.models]
        layers = tuple(shareable(model) if shared else frozenset[str]() for model in self.models)
        plans = []
        for model, own, rows, some in zip(self.models, kept, self.rows, layers, strict=True):
            self.say(f"planning {model.name}")
            room = self.board.ram_bytes - beside - (sum(kept) - own)
            try:
                found = planned_by_method(
                    *(model, network_of(model, some), room, self.options, states_of(model), some, rows)
                )
            except (Infeasible, NeedsTraffic) as no:
                raise NegativeAnswer(f"{model.name}: {no}") from None
            plans.append(found.plan)
        sources = several_sources(
            plans,
            self.models,
            layers,
            name=self.name,
            reader=self.options.input != "held",
            forms=self.board.core_type.forms,
            reentrant=self.reentrant,
        )
        return self._built(
            SeveralNetworks(
                self.models,
                self.board,
                tuple(plans),
                sources,
                None,
                _beyond(self.board, sources),
                None,
                layers,
            )
        )

    def _built(self, made: SeveralNetworks) -> SeveralNetworks:
        """Link the program, and run it."""
        self.say("building and running" if self.runs else "building")
        try:
            find_toolchain(self.board.core_type.family)
            with temporary_folder() as folder:
                of = made.sources, self.models, self.board, folder
                if not self.runs:
                    return replace(made, image=link_several(*of, seconds=self.seconds), short=())
                run = verify_several(*of, runs=self.runs, seed=self.seed, seconds=self.seconds)
                return replace(made, image=run.image, short=(), run=run)
        except DoesNotFitBoard as problem:
            return replace(made, short=problem.short)
        except (MissingTool, TooLargeToEmulate) as problem:
            if self.runs:
                raise
            return replace(made, unlinked=str(problem))


def _beyond(board: Board, sources: SeveralSources) -> tuple[tuple[str, int, int], ...]:
    """Return the memories that are certain to be too small before anything is compiled."""
    needs = (
        ("RAM", sources.extent, board.ram_bytes),
        ("flash", sources.constant_bytes, board.flash_bytes),
    )
    return tuple(row for row in needs if row[1] > row[2])


def several_table(made: SeveralNetworks) -> RenderableType:
    """Return a rich renderable: what each network takes, what they take together, and the run."""
    says = "fit" if made.fits else "do not fit"
    head = Text(visible(f"{len(made.models)} networks on {made.board.name}"), style="bold")
    head.append(f", {made.board.core}: {says}, one behind the other", style="not bold")
    rows = Grid(
        *(("network", False), ("in C", False), ("activations", True), ("state", True), ("constants", True)),
        *([("instructions", True)] if made.run is not None else []),
    )
    for model, one in zip(made.models, made.sources.networks, strict=True):
        cells = [visible(model.name), one.name, f"{one.arena_bytes:,}", f"{one.state_bytes:,}"]
        cells.append(f"{sum(one.constant_bytes.values()):,}")
        if made.run is not None:
            cells.append(f"{made.run.by_network[one.name].instructions:,}")
        rows.add_row(*cells)
    totals = Grid(("memory", False), ("bytes", True), ("of", True), ("what", False))
    image, board = made.image, made.board
    ram = f"one array {made.arena_bytes:,} (arrays of their own: {made.apart_bytes:,})"
    flash = f"constants {made.sources.constant_bytes:,}"
    if image is not None:
        ram += f", other statics {image.bss_bytes + image.data_bytes - made.arena_bytes:,}"
        ram += f", stack {image.stack_bytes:,}"
        flash += f", code {image.flash_bytes - made.sources.constant_bytes:,}"
    totals.add_row("RAM", f"{made.ram_bytes:,}", f"{board.ram_bytes:,}", ram)
    totals.add_row("flash", f"{made.flash_bytes:,}", f"{board.flash_bytes:,}", flash)
    lines = []
    if made.unlinked is not None:
        lines.append(
            f"Not linked, so that stack, statics and code are not in these figures: {made.unlinked}."
        )
    if made.run is not None:
        run = made.run
        verdict = (
            "every byte equal" if run.match else f"{run.different:,} of {run.output_bytes:,} bytes DIFFERENT"
        )
        lines.append(
            f"Ran {run.runs} rounds on the emulated {board.core}, each network once a round: {verdict} to the"
            f" references; {run.stack_bytes:,} bytes of stack used."
        )
    return Group(
        head,
        Text(),
        Padding(rows, (0, 0, 0, 2)),
        Text(),
        Padding(totals, (0, 0, 0, 2)),
        *([Text()] if lines else []),
        *(Text(visible(line, SENTENCE)) for line in lines),
    )
