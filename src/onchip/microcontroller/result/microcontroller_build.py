"""A network planned, written as C, built where there is a compiler, and run where requested."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from onchip.base.errors import (
    DoesNotFitBoard,
    Infeasible,
    InputError,
    MissingTool,
    ModelError,
    NeedsTraffic,
    NegativeAnswer,
    TooLargeToEmulate,
)
from onchip.base.files import temporary_folder
from onchip.microcontroller.emulator.toolchain import find_toolchain
from onchip.microcontroller.emulator.verify import link, verify
from onchip.microcontroller.network import network_of, states_of
from onchip.microcontroller.project import sources_of
from onchip.microcontroller.result.microcontroller import Kernels, Microcontroller
from onchip.microcontroller.result.microcontroller_kernels import shareable, sharing_what_is_needed
from onchip.microcontroller.result.row_choice import RowPlans, planned_by_method
from onchip.results.planned import Plan

if TYPE_CHECKING:
    from onchip.machines.board import Board
    from onchip.microcontroller.int8.model import Int8, Int8Model
    from onchip.microcontroller.project import Sources
    from onchip.microcontroller.result.microcontroller_plan import MicrocontrollerPlan
    from onchip.microcontroller.segments import SegmentOptions
    from onchip.plans import Plan as PlanProgram

__all__ = ["Maker", "built", "can_build", "constants_beyond"]


@dataclass(frozen=True)
class Maker:
    """Plans, writes and builds a network for a board; runs it on `runs` inputs, or only links it for 0.

    Inputs are random, of `seed`, unless they are `given`; a run takes `seconds` at most (None: an estimate
    from the network). The kernels for all shapes make the layers that are `shared`. A `builder` replaces
    `built`, and fewer bytes than the `known` error needs are refused with it. The C has instances where it is
    to be `reentrant`. Raises `Infeasible`,
    `NeedsTraffic`, `ModelError`, and with `runs` `MissingTool` or `EmulationFailed`.
    """

    model: Int8Model
    board: Board
    options: SegmentOptions
    runs: int
    say: Callable[[str], None]
    seed: int = 0
    seconds: float | None = None
    given: Sequence[Int8] | None = None
    builder: Callable[..., Microcontroller] | None = None
    known: Infeasible | NeedsTraffic | None = None
    reentrant: bool = False
    rows: RowPlans = field(default_factory=RowPlans, compare=False, repr=False)

    def make(self, kernels: Kernels) -> Microcontroller:
        """Return the network with these kernels, in the board's RAM."""
        made = self.in_ram(shareable(self.model) if kernels == "shared" else ())
        if kernels != "auto" or made.image is not None or not can_build(self.board):
            return made
        self.say("choosing kernels to share")
        return sharing_what_is_needed(made, self.sources, self.in_ram)

    def in_ram(self, shared: Collection[str]) -> Microcontroller:
        """Plan and build; plan again where the stack and other statics leave less than the plan takes.

        Programs of rows and of chains take other stacks: where the plan with fewer bytes does not fit, the
        other method's may. If none fits, the answer is the one that lacks least.
        """
        made = self._in_ram(shared)
        if not made.lacks("RAM") or self.options.method != "best" or not self.rows.found:
            return made
        tried = [made]
        for method in ("rows", "chains"):
            other = replace(self, options=replace(self.options, method=method))
            with suppress(Infeasible, NeedsTraffic, ModelError):
                tried.append(other._in_ram(shared))
        return min(tried, key=lambda one: (one.lacks("RAM"), one.ram_bytes))

    def _in_ram(self, shared: Collection[str]) -> Microcontroller:
        made = self.planned(self.board.ram_bytes, shared)
        beside = made.ram_bytes - made.arena_bytes
        if made.lacks("RAM") and 0 < beside < self.board.ram_bytes:
            try:
                again = self.planned(self.board.ram_bytes - beside, shared)
                worse = not again.fits and again.ram_bytes > made.ram_bytes  # of the other method, as a rule
                return made if worse else again
            except (Infeasible, NeedsTraffic) as no:
                # Nothing fits: report the lack for the plan with the fewest bytes.
                fewest = made.arena_bytes <= no.needs
                return made if fewest else self.planned(min(no.needs, self.board.ram_bytes), shared)
            except NegativeAnswer:
                return made
        return made

    def planned(self, ram_bytes: int, shared: Collection[str]) -> Microcontroller:
        """Plan within so many bytes, and build."""
        if self.known is not None and ram_bytes < self.known.needs:
            raise self.known
        self.say("planning")
        found = self._found(ram_bytes, shared)
        return self.build(found.plan, shared, found.whole)

    def build(
        self, program: PlanProgram, shared: Collection[str], whole: str | None = None
    ) -> Microcontroller:
        """Build a plan as C; `whole` as in `Microcontroller`."""
        plan = Plan.of(program)
        sources = self._written(plan, shared)
        self.say("building and running" if self.runs else "building")
        made = (self.builder or built)(
            self.model,
            self.board,
            plan,
            sources,
            runs=self.runs,
            seed=self.seed,
            seconds=self.seconds,
            given=self.given,
        )
        return replace(made, whole=whole, shared=tuple(sorted(shared)))

    def beside(self, made: Microcontroller, content: bytes) -> Microcontroller:
        """Return the result with other methods' needs for the network of this file."""
        from onchip.microcontroller.result.microcontroller_beside import beside

        held = self.options.input == "held"
        network = network_of(self.model)
        methods = beside(content, self.model, network, made.plan, self.say, held=held)
        return replace(made, beside=methods)

    def sources(self, shared: Collection[str]) -> Sources:
        """Return the C alone."""
        return self._written(self._found(self.board.ram_bytes, shared).plan, shared)

    def _found(self, ram_bytes: int, shared: Collection[str]) -> MicrocontrollerPlan:
        network, states = network_of(self.model, shared), states_of(self.model)
        return planned_by_method(self.model, network, ram_bytes, self.options, states, shared, self.rows)

    def _written(self, plan: Plan | PlanProgram, shared: Collection[str]) -> Sources:
        reader = self.options.input != "held"
        forms = self.board.core_type.forms
        return sources_of(plan, self.model, shared, reader=reader, forms=forms, reentrant=self.reentrant)


def can_build(board: Board) -> bool:
    """Return whether there is a cross compiler and an emulator for the board's core."""
    try:
        find_toolchain(board.core_type.family)
    except MissingTool:
        return False
    return True


def built(
    model: Int8Model,
    board: Board,
    plan: Plan,
    sources: Sources,
    *,
    runs: int,
    seed: int = 0,
    seconds: float | None = None,
    given: Sequence[Int8] | None = None,
) -> Microcontroller:
    """Return the network on the board, run on `runs` inputs; 0 only links it, where there is a compiler.

    Raises `MissingTool` if it is to run and cannot, `EmulationFailed`, `InputError` naming the temporary
    folder where that cannot be written.
    """
    short = constants_beyond(board, sources)
    if not runs:
        try:
            find_toolchain(board.core_type.family)
        except MissingTool as problem:
            return Microcontroller(model, board, plan, sources, None, short, None, unlinked=str(problem))
    with temporary_folder() as folder:
        try:
            if not runs:
                image = link(sources, model, board, folder, seconds=seconds)
                return Microcontroller(model, board, plan, sources, image, (), None)
            run = verify(sources, model, board, folder, runs=runs, seed=seed, seconds=seconds, given=given)
            return Microcontroller(model, board, plan, sources, run.image, (), run)
        except DoesNotFitBoard as problem:
            return Microcontroller(model, board, plan, sources, None, problem.short, None)
        except TooLargeToEmulate as problem:
            if runs:
                raise
            return Microcontroller(model, board, plan, sources, None, short, None, unlinked=str(problem))
        except OSError as problem:  # the disk with the temporary folder is full, or takes no files
            reason = problem.strerror or "cannot be written"
            raise InputError(reason, where=str(problem.filename or folder)) from None


def constants_beyond(board: Board, sources: Sources) -> tuple[tuple[str, int, int], ...]:
    """Return the memories that are certain to be too small before anything is compiled."""
    constants = sum(sources.constant_bytes.values())
    needs = (
        ("RAM", sources.arena_bytes + sources.state_bytes, board.ram_bytes),
        ("flash", constants, board.flash_bytes),
    )
    return tuple(row for row in needs if row[1] > row[2])
