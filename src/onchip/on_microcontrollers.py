"""The calls for microcontrollers: one network, several in one array, one on every board."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from onchip.asked import options_of
from onchip.base.errors import Infeasible, NeedsTraffic, UsageError
from onchip.base.options import takes
from onchip.machines.board import load_board
from onchip.microcontroller.segments.options import SegmentOptions
from onchip.planners.budgets import sized
from onchip.planners.limits import Progress
from onchip.plans import Plan as PlanProgram
from onchip.plans import read_plan
from onchip.results.planned import Plan

if TYPE_CHECKING:
    from onchip.machines.board import Board
    from onchip.microcontroller.int8.model import Int8Model
    from onchip.microcontroller.result.board_fits import BoardFit
    from onchip.microcontroller.result.microcontroller import Kernels, Microcontroller
    from onchip.microcontroller.result.microcontroller_several import SeveralNetworks

__all__ = ["mcu", "mcu_fit", "mcu_several"]


@takes(SegmentOptions)
def mcu(
    model: str | Path | Int8Model,
    board: str | Path | Board = "nucleo-f411re",
    ram: str | int | None = None,
    *,
    plan: str | Path | PlanProgram | None = None,
    kernels: Kernels = "auto",
    compare: bool = False,
    run: bool = False,
    runs: int = 3,
    seed: int = 0,
    run_limit: float | None = None,
    inputs: str | Path | None = None,
    labels: str | Path | None = None,
    reentrant: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> Microcontroller:
    """Plan an int8 network onto a microcontroller and write its C; run it on the emulated core if asked to.

    `model` is a `.tflite` file, `made:NAME` (a network made from a seed), or one read already. `ram` is bytes
    or a size like "24KiB", stack and all; without it, the board's. `plan` is a plan for this network, or its
    file, instead of one made here. `kernels` are `specialised` on the layers' shapes, `shared` by layers of
    all shapes, or specialised but for those that must be shared for the code to fit the flash. `run` builds
    the program, runs it on `runs` random inputs of `seed` behind a guard and compares every byte; the
    emulator is stopped after `run_limit` seconds, by default ample for the network's work. `compare` adds
    other methods' needs for the same network (`beside` of the result). `inputs` is a `.npy` file of inputs to
    compute (`tried` of the result), with `run` those that run, and `labels` one of their classes. The C of a
    `reentrant` network writes no variable: the caller has an array for each instance. `options`
    are the fields of `SegmentOptions`. Without a cross compiler the figures are those of the plan alone.

    Raises `Infeasible` naming the layer that does not fit, `ModelError`, `ChipError`, `UsageError`, and with
    `run` `MissingTool` or `EmulationFailed`. What a board lacks for the linked program is in the result.
    """
    from onchip.microcontroller.load import file_bytes
    from onchip.microcontroller.result.microcontroller_build import Maker
    from onchip.microcontroller.result.microcontroller_kernels import shareable, shared_in

    planning, on = options_of(SegmentOptions, options), _board(board, ram)
    _refuse(kernels, runs, run_limit)
    read_model = _read(model)
    say = progress or (lambda _: None)
    made_of = None
    if inputs is not None:
        from onchip.microcontroller.result.tried import tried

        if not isinstance(model, str | Path):
            raise UsageError("needs the model's file", item="inputs")
        path = None if labels is None else Path(labels)
        made_of = tried(read_model, file_bytes(model), Path(inputs), path, say)
    elif labels is not None:
        raise UsageError("needs --inputs", item="--labels")
    own = None if made_of is None else list(made_of.inputs)
    maker = Maker(
        read_model, on, planning, runs if run else 0, say, seed, run_limit, own, reentrant=reentrant
    )
    if plan is not None:
        given = Plan.of(read_plan(plan) if isinstance(plan, str | Path) else plan)
        given.check()
        if again := next((op.name for op in given.network.operators if op.repeats is not None), None):
            raise UsageError(
                "runs again in this plan, and C for a board runs it once", item=f"operator {again}"
            )
        shared = shareable(read_model) if kernels == "shared" else shared_in(given.network, read_model)
        made = maker.build(given, shared)
    else:
        try:
            made = maker.make(kernels)
        except (Infeasible, NeedsTraffic) as no:
            from onchip.microcontroller.result.microcontroller_needs import with_all_that_is_linked

            every = shareable(read_model) if kernels == "shared" else ()
            raise with_all_that_is_linked(no, maker, every) from None
    made = replace(made, tried=made_of)
    if compare:
        if not isinstance(model, str | Path):
            raise UsageError("needs the model's file", item="compare")
        return maker.beside(made, file_bytes(model))
    return made


@takes(SegmentOptions)
def mcu_several(
    models: Sequence[str | Path | Int8Model],
    board: str | Path | Board = "nucleo-f411re",
    ram: str | int | None = None,
    *,
    name: str = "networks",
    kernels: Kernels = "auto",
    run: bool = False,
    runs: int = 3,
    seed: int = 0,
    run_limit: float | None = None,
    reentrant: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> SeveralNetworks:
    """Plan several int8 networks into one array of a microcontroller: they run one behind the other.

    Arguments are as in `mcu`. The array holds the activations of whichever network runs, and in places of
    their own the states that networks keep between inferences. `name` is the project's in C. `run` runs
    `runs` rounds on the emulated core, every network once a round, and compares every byte.

    Raises as `mcu` does.
    """
    from onchip.microcontroller.result.microcontroller_several import SeveralMaker
    from onchip.microcontroller.result.row_choice import RowPlans

    planning, on = options_of(SegmentOptions, options), _board(board, ram)
    if not models:
        raise UsageError("are no networks", item="models")
    _refuse(kernels, runs, run_limit)
    read_models = tuple(_read(one) for one in models)
    say = progress or (lambda _: None)
    rows = tuple(RowPlans() for _ in read_models)
    maker = SeveralMaker(
        read_models, on, planning, runs if run else 0, say, name, seed, run_limit, reentrant, rows
    )
    return maker.make(kernels)


@takes(SegmentOptions)
def mcu_fit(
    model: str | Path | Int8Model,
    boards: Sequence[str | Path | Board] | None = None,
    *,
    kernels: Kernels = "auto",
    progress: Progress | None = None,
    **options: Any,
) -> tuple[BoardFit, ...]:
    """Return RAM, flash and time of an int8 network on every board: the built-in ones, or those named.

    The network is planned for each board's RAM; every program is built, linked and counted once on the
    emulated core, where there are a cross compiler and an emulator for it, and else reckoned. `options` are
    the fields of `SegmentOptions`. Raises `ModelError`, `ChipError`, `UsageError`.
    """
    from onchip.machines.board import builtin_boards
    from onchip.microcontroller.result.board_fits import board_fits

    planning = options_of(SegmentOptions, options)
    read_model = _read(model)
    _refuse(kernels)
    on = builtin_boards() if boards is None else [_board(board) for board in boards]
    return board_fits(read_model, on, planning, kernels, progress or (lambda _: None))


def _read(model: str | Path | Int8Model) -> Int8Model:
    from onchip.microcontroller.load import int8_model

    return int8_model(model) if isinstance(model, str | Path) else model


def _board(board: str | Path | Board, ram: str | int | None = None) -> Board:
    """Return a board, with the requested bytes of RAM; refuse more than it has."""
    from onchip.machines.board import Board

    on = board if isinstance(board, Board) else load_board(board)
    if ram is None:
        return on
    bytes_ = sized(ram, "--ram")
    if bytes_ > on.ram_bytes:
        raise UsageError(f"{bytes_:,} bytes are more than the {on.ram_bytes:,} of {on.name}", item="--ram")
    return replace(on, ram_bytes=bytes_)


def _refuse(kernels: Kernels, runs: int = 1, run_limit: float | None = None) -> None:
    """Refuse arguments that are out of their range."""
    from onchip.microcontroller.result.microcontroller import Kernels

    if runs < 1:
        raise UsageError("at least 1", item="runs")
    if run_limit is not None and not 0 < run_limit < inf:
        raise UsageError(f"{run_limit!r} is no number of seconds above 0", item="run_limit")
    if kernels not in get_args(Kernels):
        raise UsageError(f"{kernels!r} is not one of {', '.join(get_args(Kernels))}", item="kernels")
