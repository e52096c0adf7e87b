"""The C of a network: a project's files by name, from a plan and the int8 model."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from onchip.base.errors import ModelError, PlanFormatError
from onchip.base.short_names import short_names
from onchip.machines.cores import Forms
from onchip.microcontroller.int8.model import Int8Model, State
from onchip.microcontroller.kernel_language import c_prelude, c_prototype, c_source
from onchip.microcontroller.kernel_language.names import c_comment, c_name
from onchip.microcontroller.project.driver import unit_source
from onchip.microcontroller.project.library import Library
from onchip.microcontroller.project.row_driver import rows_source
from onchip.microcontroller.project.row_units import RowsUnit, rows_unit
from onchip.microcontroller.project.text import Text, plus
from onchip.microcontroller.project.units import Firmware, firmware_of
from onchip.plans import Plan

__all__ = ["Sources", "sources_of"]

LICENCE = "SPDX-License-Identifier: Apache-2.0"
MOST_NAME = 40

TABLES = "steps and addresses of rows"
"""The constants of a plan by rows, beside those of layers."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The C files of a network by name, with their names in C and their sizes.

    `constant_bytes` are those of weights and factors by layer. `streamed` states that the input comes from a
    user's reader. `inputs` and `outputs` are the ends of the functions' names that give their addresses (a
    number where there are several), with their bytes. `users` are the layers that each kernel makes, by its
    name in C.
    """

    name: str
    files: Mapping[str, str]
    arena_bytes: int
    constant_bytes: Mapping[str, int]
    streamed: bool
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]
    users: Mapping[str, frozenset[str]]
    stateful: bool = False

    @property
    def input_bytes(self) -> int:
        """The bytes of all inputs."""
        return sum(size for _, size in self.inputs)

    @property
    def output_bytes(self) -> int:
        """The bytes of all outputs."""
        return sum(size for _, size in self.outputs)


def sources_of(
    plan: Plan,
    model: Int8Model,
    shared: Collection[str] = (),
    *,
    reader: bool = False,
    forms: Forms = "packed",
) -> Sources:
    """Return the network as C: `model.c` and `model.h`, constants, kernels; `shared` as in `network_of`.

    The input comes from a user's `reader` where `reader` is set or the plan fetches it in pieces; in a plan
    that holds it whole, the reader first copies all of it. Kernels make products in the `forms` of the core.
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
    name = _name(model.name)
    library = Library(name, shared, forms)
    units = []
    tables, lines = 0, 2
    for i, unit in enumerate(firmware.units):
        units.append((f"step{i}", unit_source(unit, f"step{i}", library)))
    if by_rows is not None:
        source = rows_source(by_rows, "rows", library)
        tables, lines = source.table_bytes, source.lines
        units.append(("rows", source.text))
    head = _head(model)
    files = {
        "onchip_dsp.h": c_prelude(),
        "kernels.h": _kernels_header(head, library),
        "kernels.c": _kernels(head, library),
        "weights.h": _weights_header(head, library),
        "weights.c": _weights(head, library),
        "model.h": _header(head, name, firmware, streamed),
        "model.c": _model(head, name, firmware, units, streamed, lines),
    }
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
        firmware.arena_bytes,
        constants,
        streamed,
        _ends(model, "input", firmware.inputs),
        _ends(model, "output", firmware.outputs),
        {function: frozenset(layers) for function, layers in library.users.items()},
        bool(model.states),
    )


def _ends(
    model: Int8Model, what: str, tensors: Sequence[tuple[int, int | None]]
) -> tuple[tuple[str, int], ...]:
    """Return the name of each input (or output), numbered where there are several, with its bytes."""
    return tuple(
        (what if len(tensors) == 1 else f"{what}_{i}", model.tensors[t].bytes)
        for i, (t, _) in enumerate(tensors)
    )


def _name(name: str) -> str:
    """Return the model's name as an identifier of C, shortened to be readable."""
    found = c_name(name).lower().strip("_") or "model"
    if len(found) > MOST_NAME:
        found = f"{found[: MOST_NAME - 9]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return found if found[0].isalpha() else f"model_{found}"


def _head(model: Int8Model) -> str:
    """Return the comment at the head of every file."""
    return (
        f"/* {LICENCE}\n"
        f" * Written by onchip from {c_comment(model.name)} (SHA-256 {model.sha256[:16]}...). */\n"
    )


def _header(head: str, name: str, firmware: Firmware, streamed: bool) -> str:
    model, big = firmware.model, name.upper()
    inputs, outputs = _ends(model, "input", firmware.inputs), _ends(model, "output", firmware.outputs)
    named = [*zip(inputs, firmware.inputs, strict=True), *zip(outputs, firmware.outputs, strict=True)]
    short = short_names(t.name for t in model.tensors)
    rows = [f"#ifndef {big}_H", f"#define {big}_H", "", "#include <stdint.h>", "", *_EXTERN_C, ""]
    for (end, _), (t, _) in named:
        what, tensor = end.upper(), model.tensors[t]
        _, height, width, channels = tensor.shape
        rows += [
            f"/* {c_comment(short[tensor.name])}: rows, columns, channels; real = scale * "
            f"({_NUMBER[tensor.width]} - zero point).{_WIDE[tensor.width]}{_was(model, t)} */",
            f"#define {big}_{what}_BYTES {tensor.bytes}",
            f"#define {big}_{what}_ROWS {height}",
            f"#define {big}_{what}_COLUMNS {width}",
            f"#define {big}_{what}_CHANNELS {channels // tensor.width}",
            f"#define {big}_{what}_SCALE {tensor.scale!r}f",
            f"#define {big}_{what}_ZERO_POINT {_in_brackets(tensor.zero_point)}",
            "",
        ]
    rows += [
        "/* RAM for all activations and workspaces. */",
        f"#define {big}_ARENA_BYTES {firmware.arena_bytes}",
        "",
    ]
    if streamed:
        rows += [
            "/* Puts the input's pixels [row, row + rows) x [column, column + columns) at `bytes`, one row",
            " * behind the other; 0, or what invoke is to return. */",
            f"typedef int (*{name}_reader)(void *context, int32_t row, int32_t rows, int32_t column,",
            "        int32_t columns, int8_t *bytes);",
            "",
            "/* Runs the network; 0, or what the reader returned: then there is no output. */",
            f"int {name}_invoke({name}_reader read, void *context);",
        ]
    else:
        rows += [f"/* Where an input's bytes go before each {name}_invoke, which writes over them. */"]
        rows += [f"int8_t *{name}_{end}(void);" for end, _ in inputs]
        rows += ["", "/* Runs the network. */", f"void {name}_invoke(void);"]
    rows += ["", f"/* Where an output's bytes lie after {name}_invoke. */"]
    rows += [f"const int8_t *{name}_{end}(void);" for end, _ in outputs]
    if model.states:
        rows += [
            "",
            f"/* What {name}_invoke keeps from one call to the next begins anew, as before the first. */",
            f"void {name}_reset(void);",
        ]
    rows += [
        "",
        f"#ifdef {big}_ARENA_GIVEN",
        f"/* Says where {big}_ARENA_BYTES bytes are, aligned to 4: before any other call. */",
        f"void {name}_use(void *memory);",
        "#endif",
        "",
    ]
    for i, ((end, _), (t, _)) in enumerate(named):
        what, text, count = ("quantised", _QUANTISED, len(inputs))
        if i >= len(inputs):
            what, text, count = ("real", _REAL, len(outputs))
        function = f"{name}_{what}" if count == 1 else f"{name}_{end}_{what}"
        width = model.tensors[t].width
        high = (1 << (8 * width - 1)) - 1
        ends = {"low": -high - 1, "high": high, "type": f"int{8 * width}_t", "number": _NUMBER[width]}
        rows += [text.format(function=function, end=end, big=big, what=end.upper(), **ends)]
    rows += [*_END_EXTERN_C, "", "#endif"]
    return head + "\n".join(rows) + "\n"


def _was(model: Int8Model, tensor: int) -> str:
    """Return a sentence on the type that the file gives an input or output, if it is another."""
    original = model.originals.get(tensor)
    if original is None:
        return ""
    if original.through:
        through = c_comment(", ".join(original.through))
        return f" In the file {original.element}, by {through}, left to the caller."
    flip = ", the same byte with its highest bit turned over" if original.element == "UINT8" else ""
    first = ", channels first" if original.channels_first else ""
    return f" In the file {original.element}{flip}{first}."


def _in_brackets(number: int) -> str:
    return f"({number})" if number < 0 else str(number)


_HELPERS = """\
/* What comes next is counted for a layer, in a build that counts. */
#ifdef ONCHIP_MARKS
{marks}
#define MARK(number) onchip_mark_##number()
#else
#define MARK(number) (void)0
#endif

#ifdef {big}_ARENA_GIVEN
static int8_t *arena;
#else
#ifndef {big}_ARENA_ATTRIBUTE
#define {big}_ARENA_ATTRIBUTE
#endif
static int8_t arena[{bytes}] __attribute__((aligned(4))) {big}_ARENA_ATTRIBUTE;
#endif

/* The lines of a map that the kernel under way reads. */
static const int8_t *lines[{lines}];

"""

_NUMBER = {1: "byte", 2: "number"}
_WIDE = {1: "", 2: " A number is two bytes, the lower first, at any address."}

_EXTERN_C = ("#ifdef __cplusplus", 'extern "C" {', "#endif")
_END_EXTERN_C = ("#ifdef __cplusplus", "}", "#endif")

_QUANTISED = """\
/* A real number as a {number} of the {end}, to the nearest. */
static inline {type} {function}(float real)
{{
    const float at = real / {big}_{what}_SCALE + (float){big}_{what}_ZERO_POINT;
    if (!(at > {low}.0f))
        return {low};
    return at >= {high}.0f ? {high} : ({type})(at + (at < 0.0f ? -0.5f : 0.5f));
}}
"""

_REAL = """\
/* The real number of a {number} of the {end}. */
static inline float {function}({type} {number})
{{
    return {big}_{what}_SCALE * (float)({number} - {big}_{what}_ZERO_POINT);
}}
"""

_WINDOW = """\
/* Points `lines` to those that a window reads: `taps`, each `apart` from the one before, the first `top`. The
 * map has `size` lines, of which `slots` are there at a time. A line that does not exist is never read. */
static inline void window(const int8_t *map, int32_t top, int32_t apart, int32_t taps, int32_t size,
        int32_t slots, int32_t pitch)
{
    for (int32_t i = 0; i < taps; ++i)
        lines[i] = map + clipped(top + i * apart, size) % slots * pitch;
}

"""

_CLIPPED = """\
static inline int32_t clipped(int32_t line, int32_t size)
{
    return larger(0, smaller(line, size - 1));
}

"""

_INSIDE = """\
/* Of a window's lines, the first that exists, and the one behind the last. */
static inline int32_t first_inside(int32_t top, int32_t apart)
{
    return top < 0 ? (apart - 1 - top) / apart : 0;
}

static inline int32_t last_inside(int32_t top, int32_t apart, int32_t taps, int32_t size)
{
    return smaller(taps, (size - top + apart - 1) / apart);
}

"""

_FETCH = """\
static {name}_reader reader;
static void *reader_context;
static int failed;

/* Pixels of the input, from the user. */
static void fetch(int32_t row, int32_t rows, int32_t column, int32_t columns, int8_t *bytes)
{{
    if (!failed)
        failed = reader(reader_context, row, rows, column, columns, bytes);
}}

"""


def _by_rows(plan: Plan, model: Int8Model, unit: RowsUnit) -> Firmware:
    """Return what the other files say of a network by rows; its functions come from `row_driver`."""
    outputs = tuple((t, unit.address + at) for t, at in unit.outputs.items())
    inputs = tuple((t, None if at is None else unit.address + at) for t, at in unit.inputs.items())
    return Firmware(model, (), plan.result.extent_bytes, inputs, outputs)


def _model(
    head: str,
    name: str,
    firmware: Firmware,
    units: Iterable[tuple[str, str]],
    streamed: bool,
    lines: int,
) -> str:
    model = firmware.model
    body = "\n".join(source for _, source in units)
    most = max(
        [lines, *(o.rows.taps for u in firmware.units for s in u.stages for op in s.ops for o in op.operands)]
        + [o.columns.taps for u in firmware.units for s in u.stages for op in s.ops for o in op.operands]
        + [len(op.operands) for u in firmware.units for s in u.stages for op in s.ops]
    )
    marks = "\n".join(f"void onchip_mark_{i}(void);" for i in range(len(model.layers)))
    parts = [
        head,
        '#include "model.h"\n\n#include <string.h>\n\n#include "kernels.h"\n#include "onchip_dsp.h"\n',
    ]
    parts.append('#include "weights.h"\n\n')
    parts.append(_HELPERS.format(marks=marks, big=name.upper(), bytes=firmware.arena_bytes, lines=most))
    if "window(" in body or "clipped(" in body:
        parts.append(_CLIPPED)
    if "window(" in body:
        parts.append(_WINDOW)
    if "_inside(" in body:
        parts.append(_INSIDE)
    if streamed:
        parts.append(_FETCH.format(name=name))
    parts.append(body)
    text = Text()
    text.say(f"#ifdef {name.upper()}_ARENA_GIVEN")
    with text.block(f"void {name}_use(void *memory)"):
        text.say("arena = (int8_t *)memory;")
    text.say("#endif")
    text.say("")
    if streamed:
        with text.block(f"int {name}_invoke({name}_reader read, void *context)"):
            text.say("reader = read;")
            text.say("reader_context = context;")
            text.say("failed = 0;")
            [(tensor, at)] = firmware.inputs
            if at is not None:
                _, rows, columns, _ = model.tensors[tensor].shape
                text.say(f"fetch(0, {rows}, 0, {columns}, {plus('arena', str(at))});")
            for function, _ in units:
                text.say(f"{function}();")
            text.say("return failed;")
    else:
        for (end, _), (_, at) in zip(_ends(model, "input", firmware.inputs), firmware.inputs, strict=True):
            with text.block(f"int8_t *{name}_{end}(void)"):
                text.say(f"return {plus('arena', str(at))};")
        with text.block(f"void {name}_invoke(void)"):
            if model.states:
                with text.block("if (!begun)"):
                    text.say(f"{name}_reset();")
            for function, _ in units:
                text.say(f"{function}();")
    for (end, _), (_, place) in zip(_ends(model, "output", firmware.outputs), firmware.outputs, strict=True):
        with text.block(f"const int8_t *{name}_{end}(void)"):
            text.say(f"return {plus('arena', str(place))};")
    if model.states:
        parts.append("static int begun; /* whether what is kept between calls has its first bytes */\n\n")
        with text.block(f"void {name}_reset(void)"):
            for i, (state, place) in enumerate(zip(model.states, firmware.states, strict=True)):
                constant, put = _first(state, i, plus("arena", str(place)))
                parts.append(constant)
                text.say(put)
            text.say("begun = 1;")
    return "".join(parts) + f"\n{text}"


def _first(state: State, number: int, where: str) -> tuple[str, str]:
    """Return the constant of a state's first bytes, if it needs one, and what puts them there."""
    first, size = state.initial[0], len(state.initial)
    if state.initial == bytes([first]) * size:
        return "", f"memset({where}, {first}, {size});"
    values = ", ".join(str(byte - 256 if byte & 0x80 else byte) for byte in state.initial)
    constant = f"static const int8_t first{number}[{size}] = {{{values}}};\n\n"
    return constant, f"memcpy({where}, first{number}, {size});"


def _kernels_header(head: str, library: Library) -> str:
    prototypes = "\n\n".join(f"{c_prototype(f)};" for f in library.functions.values())
    guard = f"{library.prefix.upper()}_KERNELS_H"
    inside = "\n".join([*_EXTERN_C, "", prototypes, "", *_END_EXTERN_C])
    return f"{head}#ifndef {guard}\n#define {guard}\n\n#include <stdint.h>\n\n{inside}\n\n#endif\n"


def _kernels(head: str, library: Library) -> str:
    bodies = "\n".join(c_source(f) for f in library.functions.values())
    return f'{head}#include "kernels.h"\n\n#include "onchip_dsp.h"\n\n{bodies}'


def _weights_header(head: str, library: Library) -> str:
    guard = f"{library.prefix.upper()}_WEIGHTS_H"
    rows = [f"extern const int32_t {name}[{len(words)}];" for name, (words, _) in library.constants.items()]
    rows += [f"extern const int8_t {name}[{map.size}];" for name, (map, _) in library.maps.items()]
    return "\n".join(
        [
            *(f"{head}#ifndef {guard}", f"#define {guard}", "", "#include <stdint.h>", ""),
            *(*_EXTERN_C, "", *rows, "", *_END_EXTERN_C, "", "#endif", ""),
        ]
    )


def _weights(head: str, library: Library) -> str:
    attribute = f"{library.prefix.upper()}_WEIGHTS_ATTRIBUTE"
    parts = [f'{head}#include "weights.h"\n\n#ifndef {attribute}\n#define {attribute}\n#endif\n']
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
