"""One network on every board: RAM, flash and time, linked and counted where there are tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from onchip.base.errors import DoesNotFitBoard, Infeasible, MissingTool, NeedsTraffic, TooLargeToEmulate
from onchip.base.files import temporary_folder
from onchip.machines.board import MOST_BYTES, Board
from onchip.microcontroller.emulator import Image, emulate
from onchip.microcontroller.emulator.verify import inputs_of, link, reckoned_seconds
from onchip.microcontroller.result.microcontroller import Kernels, Microcontroller
from onchip.microcontroller.result.microcontroller_build import Maker, constants_beyond
from onchip.microcontroller.result.reckoned import reckoned_instructions
from onchip.microcontroller.result.row_choice import RowPlans

if TYPE_CHECKING:
    from onchip.microcontroller.int8.model import Int8Model
    from onchip.microcontroller.project import Sources
    from onchip.microcontroller.segments import SegmentOptions
    from onchip.results.planned import Plan

__all__ = ["BoardFit", "board_fits", "time_of"]


@dataclass(frozen=True, slots=True)
class BoardFit:
    """A network on one board; `short` are the memories that it lacks: (memory, needed, there).

    RAM and flash are those of the linked program if `linked`, else what the plan and the constants take.
    `instructions` are `counted` on the emulated core, else reckoned; None where neither is known. `work` is
    that of its plan over making everything once. `why` says why a board has no program.
    """

    board: Board
    ram_bytes: int
    flash_bytes: int
    linked: bool
    short: tuple[tuple[str, int, int], ...]
    instructions: int | None = None
    counted: bool = False
    work: float = 1.0
    why: str = ""

    @property
    def fits(self) -> bool:
        return not self.short

    @property
    def seconds(self) -> float | None:
        """The time of one inference at the board's clock, were every instruction one cycle."""
        if self.instructions is None or self.board.clock_hz is None:
            return None
        return self.instructions / self.board.clock_hz

    def data(self) -> dict[str, Any]:
        """Return the row as JSON data."""
        return {
            "board": self.board.name,
            "core": self.board.core,
            "clock_hz": self.board.clock_hz,
            "fits": self.fits,
            "ram_bytes": self.ram_bytes,
            "board_ram_bytes": self.board.ram_bytes,
            "flash_bytes": self.flash_bytes,
            "board_flash_bytes": self.board.flash_bytes,
            "linked": self.linked,
            "work": self.work,
            "instructions": self.instructions,
            "instructions_counted": self.counted,
            "seconds_at_one_instruction_a_cycle": self.seconds,
            "missing": {memory: needs - there for memory, needs, there in self.short},
            "why": self.why,
        }


def board_fits(
    model: Int8Model,
    boards: Sequence[Board],
    options: SegmentOptions,
    kernels: Kernels,
    say: Callable[[str], None],
) -> tuple[BoardFit, ...]:
    """Return the network on every board, planned for its RAM; each program is built and run only once."""
    builder, rows = _Once(say), RowPlans()
    found = []
    for board in boards:
        say(f"board {board.name}")
        maker = Maker(model, board, options, 0, say, builder=builder, rows=rows)
        try:
            found.append(_row(maker.make(kernels), builder))
        except (Infeasible, NeedsTraffic) as no:
            short = (("RAM", no.needs, board.ram_bytes),)
            why = "no plan of its activations and workspaces is that small"
            found.append(BoardFit(board, no.needs, 0, False, short, why=why))
    return tuple(found)


def time_of(seconds: float | None) -> str:
    """Return a time in three digits: `52.3 ms`."""
    if seconds is None:
        return "-"
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} µs"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:,.3g} s"


def _row(made: Microcontroller, builder: _Once) -> BoardFit:
    own = max(sum(op.work for op in made.plan.network.operators), 1)
    work = 1.0 if made.plan.result.macs is None else made.plan.result.macs / own
    known = builder.known(made.board, made.sources)
    instructions, linked = (None, False) if known is None else (known.instructions, True)
    counted = instructions is not None
    if instructions is None and not made.shared:
        once = reckoned_instructions(made.model, made.board.core)
        instructions = None if once is None else round(once * work)
    ram = made.ram_bytes if known is None else known.image.ram_bytes
    flash = made.flash_bytes if known is None else known.image.flash_bytes
    return BoardFit(
        made.board, ram, flash, linked, made.short, instructions, counted, work, made.unlinked or ""
    )


@dataclass(frozen=True, slots=True)
class _Program:
    image: Image
    instructions: int | None


class _Once:
    """Builds and counts as `built` does, each program once: its size does not depend on the memories."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._programs: dict[tuple[str, tuple[tuple[str, str], ...]], _Program | str] = {}

    def known(self, board: Board, sources: Sources) -> _Program | None:
        """Return the program of these sources for the board's core, if it was built."""
        found = self._programs.get(_key(board, sources))
        return found if isinstance(found, _Program) else None

    def __call__(
        self, model: Int8Model, board: Board, plan: Plan, sources: Sources, **_: Any
    ) -> Microcontroller:
        key = _key(board, sources)
        if key not in self._programs:
            self._programs[key] = self._program(model, board, sources)
        found = self._programs[key]
        if isinstance(found, str):
            short = constants_beyond(board, sources)
            return Microcontroller(model, board, plan, sources, None, short, None, unlinked=found)
        short = found.image.beyond(board.ram_bytes, board.flash_bytes)
        image = None if short else found.image
        return Microcontroller(model, board, plan, sources, image, short, None)

    def _program(self, model: Int8Model, board: Board, sources: Sources) -> _Program | str:
        """Return the program, linked tightly and counted, or why there is none."""
        roomy = replace(board, ram_bytes=MOST_BYTES, flash_bytes=MOST_BYTES)
        self._say(f"building and counting for {board.core}")
        with temporary_folder() as folder:
            try:
                image = link(sources, model, roomy, folder)
                content = inputs_of(model, 1)[0].tobytes()
                ran = emulate(image, {"in": content}, outputs=("out",), seconds=reckoned_seconds(model, 1))
            except (MissingTool, TooLargeToEmulate, DoesNotFitBoard) as problem:
                return str(problem)
        counts = ran.by_mark.get(len(model.layers))
        return _Program(image, None if counts is None else counts.instructions)


def _key(board: Board, sources: Sources) -> tuple[str, tuple[tuple[str, str], ...]]:
    return board.core, tuple(sorted(sources.files.items()))
