"""The C of a network: a project's files by name, from a plan and the int8 model."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from onchip.base.errors import ModelError, PlanFormatError
from onchip.machines.cores import Forms
from onchip.microcontroller.int8.model import Int8Model
from onchip.microcontroller.kernel_language import Function, c_prelude, c_prototype, c_source
from onchip.microcontroller.kernel_language.names import c_comment, c_name
from onchip.microcontroller.project.driver import unit_source
from onchip.microcontroller.project.header import END_EXTERN_C, EXTERN_C, ends, header
from onchip.microcontroller.project.library import Library
from onchip.microcontroller.project.model_source import model_source
from onchip.microcontroller.project.row_driver import rows_source
from onchip.microcontroller.project.row_units import RowsUnit, rows_unit
from onchip.microcontroller.project.storage import ALIGNMENT, Storage
from onchip.microcontroller.project.units import Firmware, firmware_of
from onchip.plans import Plan

__all__ = ["LICENCE", "Sources", "Within", "head_of", "kernel_files", "name_of", "sources_of"]

LICENCE = "SPDX-License-Identifier: Apache-2.0"
MOST_NAME = 40
RESERVED = frozenset({"kernels", "onchip_dsp", "weights"})
"""Names that no network has: their headers are others'. A network called `model` has `model.h` itself."""

TABLES = "steps and addresses of rows"
"""The constants of a plan by rows, beside those of layers."""


@dataclass(frozen=True, slots=True)
class Within:
    """The place of a network among several in one project: its name there, and its part of their array.

    `arena_at` and `state_at` are where its activations and its states begin.
    """

    project: str
    name: str
    arena_at: int = 0
    state_at: int = 0


@dataclass(frozen=True, slots=True)
class Sources:
    """The C files of a network by name, with their names in C and their sizes.

    `arena_bytes` are for activations and workspaces, and for states where they do not lie apart in
    `state_bytes` of their own. `constant_bytes` are those of weights and factors by layer. `streamed` states
    that the input comes from a user's reader, `reentrant` that memory belongs to instances. `inputs` and
    `outputs` are the ends of the functions' names that give their addresses (a number where there are
    several), with their bytes. `users` are the layers that each kernel makes, by its name in C; `kernels` are
    the functions themselves.
    """

    name: str
    files: Mapping[str, str]
    arena_bytes: int
    constant_bytes: Mapping[str, int]
    streamed: bool
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]
    users: Mapping[str, frozenset[str]]
    kernels: Mapping[str, Function]
    stateful: bool = False
    reentrant: bool = False
    state_bytes: int = 0

    @property
    def input_bytes(self) -> int:
        """The bytes of all inputs."""
        return sum(size for _, size in self.inputs)

    @property
    def output_bytes(self) -> int:
        """The bytes of all outputs."""
        return sum(size for _, size in self.outputs)

    # -- the C of a program that uses the network

    def call(self, end: str, *arguments: str) -> str:
        """Return a call of one of its functions, of the one instance where there are instances."""
        given = (f"&{self.name}_one", *arguments) if self.reentrant else arguments
        return f"{self.name}_{end}({', '.join(given)})"

    def statics(self, arena: str = "") -> str:
        """Return the variables of an instance; its activations lie in `arena`, or in an array of its own."""
        if not self.reentrant:
            return ""
        big, aligned = self.name.upper(), f"__attribute__((aligned({ALIGNMENT})))"
        lines = [] if arena else [f"static int8_t {self.name}_arena[{big}_ARENA_BYTES] {aligned};"]
        if self.state_bytes:
            lines.append(f"static int8_t {self.name}_state[{big}_STATE_BYTES] {aligned};")
        return "\n".join([*lines, f"static {self.name}_context {self.name}_one;", ""])

    def begins(self, arena: str = "") -> str:
        """Return the statement that makes the instance."""
        if not self.reentrant:
            return ""
        state = [f"{self.name}_state"] if self.state_bytes else []
        return f"{self.call('init', arena or f'{self.name}_arena', *state)};"


def sources_of(
    plan: Plan,
    model: Int8Model,
    shared: Collection[str] = (),
    *,
    reader: bool = False,
    forms: Forms = "packed",
    reentrant: bool = False,
    within: Within | None = None,
) -> Sources:
    """Return the network as C: `model.c` and `model.h`, constants, kernels; `shared` as in `network_of`.

    The input comes from a user's `reader` where `reader` is set or the plan fetches it in pieces; in a plan
    that holds it whole, the reader first copies all of it. Kernels make products in the `forms` of the core.
    With `reentrant` every function takes an instance, and no variable is written. `within` a project of
    several networks files have the network's name, and kernels are left to the project.
    Raises `PlanFormatError` or `ModelError` for a
    plan or model that cannot be written.
    """
    if plan.chip.memories:
        raise PlanFormatError("its C has one memory, and the plan several", where=plan.network.name)
    by_rows = rows_unit(plan, model)
    firmware = firmware_of(plan, model) if by_rows is None else _by_rows(plan, model, by_rows)
    streamed = reader or any(at is None for _, at in firmware.inputs)
    if streamed and len(firmware.inputs) > 1:
        raise ModelError("has several inputs: they must be held", where=model.name)
    name = name_of(model) if within is None else within.name
    storage = _storage(firmware, name, reentrant, within)
    library = Library(name, shared, forms, "" if within is None else within.project)
    units = []
    tables, lines = 0, 2
    for i, unit in enumerate(firmware.units):
        units.append((f"step{i}", unit_source(unit, f"step{i}", library, storage)))
    if by_rows is not None:
        source = rows_source(by_rows, "rows", library, storage)
        tables, lines = source.table_bytes, source.lines
        units.append(("rows", source.text))
    lines = _most_lines(firmware, lines)
    main, weights = ("model", "weights") if within is None else (name, f"{name}_weights")
    includes = [f"{main}.h", "kernels.h", "onchip_dsp.h", f"{weights}.h"]
    if storage.kind == "shared":
        includes[0] = f"{storage.project}.h"
    head = head_of(model)
    files = {
        f"{weights}.h": _weights_header(head, library),
        f"{weights}.c": _weights(head, library, f"{weights}.h"),
        f"{main}.h": head + header(firmware, storage, streamed=streamed, lines=lines),
        f"{main}.c": head
        + model_source(firmware, units, storage, streamed=streamed, lines=lines, includes=includes),
    }
    if within is None:
        files = {**kernel_files(head, name, library.functions), **files}
    constants: dict[str, int] = {}
    for words, layer in library.constants.values():
        constants[layer] = constants.get(layer, 0) + 4 * len(words)
    for values, layer in library.maps.values():
        constants[layer] = constants.get(layer, 0) + values.size
    if tables:
        constants[TABLES] = tables
    return Sources(
        name,
        files,
        storage.arena_bytes,
        constants,
        streamed,
        ends(model, "input", firmware.inputs),
        ends(model, "output", firmware.outputs),
        {function: frozenset(layers) for function, layers in library.users.items()},
        library.functions,
        bool(model.states),
        reentrant,
        storage.apart,
    )


def _storage(firmware: Firmware, name: str, reentrant: bool, within: Within | None) -> Storage:
    """Return where the network's memory is."""
    states = zip(firmware.model.states, firmware.states, strict=True)
    state_bytes = max((at + len(state.initial) for state, at in states), default=0)
    storage = Storage("instance" if reentrant else "own", name, firmware.arena_bytes, state_bytes)
    if within is None or reentrant:
        return storage
    return replace(
        storage,
        kind="shared",
        project=within.project,
        arena_at=within.arena_at,
        state_at=within.state_at,
    )


def _most_lines(firmware: Firmware, least: int) -> int:
    """Return the most lines that a kernel reads."""
    ops = [op for u in firmware.units for s in u.stages for op in s.ops]
    taps = [max(o.rows.taps, o.columns.taps) for op in ops for o in op.operands]
    return max([least, *taps, *(len(op.operands) for op in ops)])


def name_of(model: Int8Model) -> str:
    """Return the model's name as an identifier of C, shortened to be readable."""
    name = model.name
    found = c_name(name).lower().strip("_") or "model"
    if len(found) > MOST_NAME:
        found = f"{found[: MOST_NAME - 9]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    if found in RESERVED:
        return f"{found}_network"
    return found if found[0].isalpha() else f"model_{found}"


def head_of(model: Int8Model) -> str:
    """Return the comment at the head of every file."""
    return (
        f"/* {LICENCE}\n"
        f" * Written by onchip from {c_comment(model.name)} (SHA-256 {model.sha256[:16]}...). */\n"
    )


def _by_rows(plan: Plan, model: Int8Model, unit: RowsUnit) -> Firmware:
    """Return what the other files say of a network by rows; its functions come from `row_driver`."""
    outputs = tuple((t, unit.address + at) for t, at in unit.outputs.items())
    inputs = tuple((t, None if at is None else unit.address + at) for t, at in unit.inputs.items())
    return Firmware(model, (), plan.result.extent_bytes, inputs, outputs)


def kernel_files(head: str, prefix: str, functions: Mapping[str, Function]) -> dict[str, str]:
    """Return the files of the kernels, and of the core's instructions that they use."""
    prototypes = "\n\n".join(f"{c_prototype(f)};" for f in functions.values())
    guard = f"{prefix.upper()}_KERNELS_H"
    inside = "\n".join([*EXTERN_C, "", prototypes, "", *END_EXTERN_C])
    bodies = "\n".join(c_source(f) for f in functions.values())
    return {
        "onchip_dsp.h": c_prelude(),
        "kernels.h": f"{head}#ifndef {guard}\n#define {guard}\n\n#include <stdint.h>\n\n{inside}\n\n#endif\n",
        "kernels.c": f'{head}#include "kernels.h"\n\n#include "onchip_dsp.h"\n\n{bodies}',
    }


def _weights_header(head: str, library: Library) -> str:
    guard = f"{library.prefix.upper()}_WEIGHTS_H"
    rows = [f"extern const int32_t {name}[{len(words)}];" for name, (words, _) in library.constants.items()]
    rows += [f"extern const int8_t {name}[{map.size}];" for name, (map, _) in library.maps.items()]
    return "\n".join(
        [
            *(f"{head}#ifndef {guard}", f"#define {guard}", "", "#include <stdint.h>", ""),
            *(*EXTERN_C, "", *rows, "", *END_EXTERN_C, "", "#endif", ""),
        ]
    )


def _weights(head: str, library: Library, header: str) -> str:
    attribute = f"{library.prefix.upper()}_WEIGHTS_ATTRIBUTE"
    parts = [f'{head}#include "{header}"\n\n#ifndef {attribute}\n#define {attribute}\n#endif\n']
    for name, (words, layer) in library.constants.items():
        parts.append(
            f"\n/* {c_comment(layer)} */\n"
            f"const int32_t {name}[{len(words)}] __attribute__((aligned(8))) {attribute} = {{\n"
        )
        for i in range(0, len(words), 8):
            row = ", ".join("INT32_MIN" if w == -(1 << 31) else str(w) for w in words[i : i + 8])
            parts.append(f"    {row},\n")
        parts.append("};\n")
    for name, (values, layer) in library.maps.items():
        parts.append(f"\n/* {c_comment(layer)} */\nconst int8_t {name}[{values.size}] {attribute} = {{\n")
        flat = [str(v) for v in values.ravel().tolist()]
        parts += [f"    {', '.join(flat[i : i + 16])},\n" for i in range(0, len(flat), 16)]
        parts.append("};\n")
    return "".join(parts)
