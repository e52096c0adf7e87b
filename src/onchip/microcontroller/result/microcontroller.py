"""A network on a microcontroller, as C and in figures: the result of `onchip.mcu`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from onchip.base.figures import data, figure
from onchip.base.short_names import short_names
from onchip.check.replay import Ran, Released, Reserved, events_of
from onchip.microcontroller.result.program_sizes import ProgramSizes
from onchip.microcontroller.result.ram_steps import ram_steps
from onchip.microcontroller.result.step_parts import RamStep, covered
from onchip.plans import Group, Rows

if TYPE_CHECKING:
    from onchip.machines.board import Board
    from onchip.microcontroller.emulator import Image
    from onchip.microcontroller.emulator.verify import Verified
    from onchip.microcontroller.int8.model import Int8Model
    from onchip.microcontroller.project import Sources
    from onchip.microcontroller.result.microcontroller_beside import Beside
    from onchip.microcontroller.result.tried import Tried
    from onchip.results.planned import Plan

__all__ = ["Buffers", "Kernels", "Microcontroller", "buffers"]

Kernels = Literal["auto", "specialised", "shared"]
"""The kernels: for every layer's shape, for all shapes, or shared only if the code exceeds the flash."""


@dataclass(frozen=True, slots=True)
class Buffers:
    """The bytes that a step of the plan, a layer or a group, needs at once.

    `bytes` is less than the sum of `tensors` and `scratch` where the output overlaps the input.
    """

    name: str = figure(key="name")
    layers: tuple[str, ...] = figure(key="layers")
    tensors: tuple[tuple[str, int], ...] = figure(key="tensors", unit="sizes")
    scratch: int = figure(key="scratch_bytes", heading="rings and workspace", place=2)
    bytes: int = figure(key="bytes", heading="bytes", place=1)


@dataclass(frozen=True)
class Microcontroller(ProgramSizes):
    """A network planned for a board, its C, and its sizes: linked where there is a cross compiler.

    `image` is the program that was linked (None without a compiler, or where it does not fit), `short` the
    memories that the board lacks: (memory, needed, there). `run` is the run on the emulated core, if
    requested. `whole` is the reason why the plan has whole tensors, where it could not overlap and fuse. The
    kernels for all shapes make the layers in `shared`. `shared_flash` are the bytes of flash of the program
    with as many layers sharing kernels as possible, where that was tried and does not fit either: all other
    figures are then of kernels made for each shape. `beside` are other methods, where requested. `unlinked`
    is the reason why there is no image of a program that may fit. `tried` are the outputs for a user's
    inputs.
    """

    model: Int8Model
    board: Board
    plan: Plan
    sources: Sources
    image: Image | None
    short: tuple[tuple[str, int, int], ...]
    run: Verified | None
    whole: str | None = None
    shared: tuple[str, ...] = ()
    beside: Beside = ()
    shared_flash: int | None = None
    unlinked: str | None = None
    tried: Tried | None = None

    @property
    def kernels(self) -> Literal["specialised", "shared", "some shared"]:
        """The kind of kernels of all other figures."""
        from onchip.microcontroller.kernels import SHAREABLE

        if not self.shared:
            return "specialised"
        every = sum(isinstance(layer, SHAREABLE) for layer in self.model.layers)
        return "shared" if len(self.shared) == every else "some shared"

    @property
    def arena_bytes(self) -> int:
        """RAM for activations, workspaces and states: the plan's extent."""
        return self.sources.arena_bytes + self.sources.state_bytes

    @property
    def constant_bytes(self) -> int:
        """Flash for weights, factors and tables."""
        return sum(self.sources.constant_bytes.values())

    @property
    def bottleneck(self) -> Buffers:
        """The step that needs the most RAM at once."""
        return max(buffers(self.plan), key=lambda step: step.bytes)

    def save(self, folder: str | Path) -> None:
        """Write the C project: whole, or not at all; replaces a folder only of onchip's own files."""
        from onchip.microcontroller.project.write import project_files, write_project

        write_project(project_files(self.sources, self.model, self.board), Path(folder))

    @property
    def status(self) -> str:
        """`optimal` only where its RAM is the least of the plan's space, never because of zero traffic."""
        sought = self.plan.options.get("objective") == "peak"
        return self.plan.result.status if sought else "feasible"

    def __repr__(self) -> str:
        from onchip.report.wording import visible

        return (
            f"{visible(self.model.name)} on {visible(self.board.name)}, {self.board.core}:"
            f" {'fits' if self.fits else 'does not fit'};"
            f" RAM {self.ram_bytes:,} of {self.board.ram_bytes:,} B,"
            f" flash {self.flash_bytes:,} of {self.board.flash_bytes:,} B"
        )

    def data(self) -> dict[str, Any]:
        """Return the result as JSON data."""
        found: dict[str, Any] = {
            "network": self.model.name,
            "sha256": self.model.sha256,
            "board": self.board.name,
            "ram_bytes": self.ram_bytes,
            "flash_bytes": self.flash_bytes,
            "board_ram_bytes": self.board.ram_bytes,
            "board_flash_bytes": self.board.flash_bytes,
            "fits": self.fits,
            "linked": self.image is not None,
            "arena_bytes": self.arena_bytes,
            "constant_bytes": self.constant_bytes,
            "constants": dict(self.sources.constant_bytes),
            "buffers": [data(step, {"sizes": dict}) for step in buffers(self.plan)],
            "bottleneck": self.bottleneck.name,
            "status": self.status,
            "space": self.plan.result.space,
            "macs": self.plan.result.macs,
            "whole_tensors": self.whole,
            "kernels": self.kernels,
            "shared_kernels": list(self.shared),
            "flash_bytes_all_shared": self.shared_flash,
        }
        if self.beside:
            found["compare"] = [method.data() for method in self.beside]
        if self.tried is not None:
            found["tried"] = self.tried.data()
        if self.image is not None:
            found["linked_bytes"] = data(self.image, {})
        if self.run is not None:
            run = self.run
            found["run"] = {
                "match": run.match,
                "core": self.board.core,
                "machines": list(run.machines),
                "inputs": run.runs,
                "output_bytes": run.output_bytes,
                "different_bytes": run.different,
                "stack_bytes": run.stack_bytes,
                **data(run.total, {}),
                "layers": {name: data(counts, {}) for name, counts in run.by_layer.items()},
            }
        return found


def buffers(plan: Plan) -> tuple[Buffers, ...]:
    """Return the buffers in RAM while each step of a plan runs."""
    there: list[Reserved] = []
    found = []
    for event in events_of(plan):
        match event:
            case Reserved():
                there.append(event)
            case Released():
                there.remove(event.range)
            case Ran(group=Group(tiling=Rows())):
                found += _fullest(plan)
            case Ran(unit=unit):
                layers = (unit.name,) if event.group is None else event.group.operators
                tensors = tuple((r.name, r.used) for r in there if r.tensor is not None)
                scratch = sum(r.used for r in there if r.cause == "scratch")
                ranges = [(r.address, r.address + r.used) for r in there]
                found.append(Buffers(unit.name, layers, tensors, scratch, covered(ranges)))
    return tuple(found)


def _fullest(plan: Plan) -> list[Buffers]:
    """Return the step of each layer of a plan by rows that needs the most RAM."""
    most: dict[tuple[str, ...], RamStep] = {}
    for step in ram_steps(plan):
        if step.layers and (step.layers not in most or step.bytes > most[step.layers].bytes):
            most[step.layers] = step
    name = {short: long for long, short in short_names(t.name for t in plan.network.tensors).items()}
    found = []
    for step in most.values():
        sizes: dict[str, int] = {}
        for part in step.parts:
            if part.role != "workspace":
                held = name.get(part.name, part.name)
                sizes[held] = sizes.get(held, 0) + part.bytes
        scratch = sum(part.bytes for part in step.parts if part.role == "workspace")
        found.append(Buffers(step.name, step.layers, tuple(sizes.items()), scratch, step.bytes))
    return found
