"""The header of a network: its functions, and shapes, scales and zero points of inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence

from onchip.base.short_names import short_names
from onchip.microcontroller.int8.model import Int8Model
from onchip.microcontroller.kernel_language.names import c_comment
from onchip.microcontroller.project.storage import ALIGNMENT, Storage
from onchip.microcontroller.project.units import Firmware

__all__ = ["END_EXTERN_C", "EXTERN_C", "ends", "header"]

EXTERN_C = ("#ifdef __cplusplus", 'extern "C" {', "#endif")
END_EXTERN_C = ("#ifdef __cplusplus", "}", "#endif")


def ends(
    model: Int8Model, what: str, tensors: Sequence[tuple[int, int | None]]
) -> tuple[tuple[str, int], ...]:
    """Return the name of each input (or output), numbered where there are several, with its bytes."""
    return tuple(
        (what if len(tensors) == 1 else f"{what}_{i}", model.tensors[t].bytes)
        for i, (t, _) in enumerate(tensors)
    )


def header(firmware: Firmware, storage: Storage, *, streamed: bool, lines: int) -> str:
    """Return the text behind the header's first comment; `lines` are the most that a kernel reads."""
    model, name = firmware.model, storage.name
    big, instance = name.upper(), storage.kind == "instance"
    reads = "reads" if instance else "context"
    inputs, outputs = ends(model, "input", firmware.inputs), ends(model, "output", firmware.outputs)
    named = [*zip(inputs, firmware.inputs, strict=True), *zip(outputs, firmware.outputs, strict=True)]
    short = short_names(t.name for t in model.tensors)
    rows = [f"#ifndef {big}_H", f"#define {big}_H", "", "#include <stdint.h>", "", *EXTERN_C, ""]
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
        f"#define {big}_ARENA_BYTES {storage.arena_bytes}",
        "",
    ]
    if storage.apart:
        rows += [
            "/* RAM for what is kept from one inference to the next. */",
            f"#define {big}_STATE_BYTES {storage.apart}",
            "",
        ]
    if streamed:
        rows += [
            "/* Puts the input's pixels [row, row + rows) x [column, column + columns) at `bytes`, one row",
            " * behind the other; 0, or what invoke is to return. */",
            f"typedef int (*{name}_reader)(void *context, int32_t row, int32_t rows, int32_t column,",
            "        int32_t columns, int8_t *bytes);",
            "",
        ]
    if instance:
        rows += _instance(name, storage, streamed=streamed, lines=lines)
    if streamed:
        rows += [
            "/* Runs the network; 0, or what the reader returned: then there is no output. */",
            f"int {name}_invoke({storage.takes(f'{name}_reader read, void *{reads}')});",
        ]
    else:
        rows += [f"/* Where an input's bytes go before each {name}_invoke, which writes over them. */"]
        rows += [f"int8_t *{name}_{end}({storage.takes()});" for end, _ in inputs]
        rows += ["", "/* Runs the network. */", f"void {name}_invoke({storage.takes()});"]
    rows += ["", f"/* Where an output's bytes lie after {name}_invoke{_until(storage)}. */"]
    rows += [f"const int8_t *{name}_{end}({storage.takes()});" for end, _ in outputs]
    if model.states:
        rows += [
            "",
            f"/* What {name}_invoke keeps from one call to the next begins anew, as before the first. */",
            f"void {name}_reset({storage.takes()});",
        ]
    if storage.kind == "own":
        rows += [
            "",
            f"#ifdef {big}_ARENA_GIVEN",
            f"/* Says where {big}_ARENA_BYTES bytes are, aligned to {ALIGNMENT}: before any other call. */",
            f"void {name}_use(void *memory);",
            "#endif",
        ]
    rows.append("")
    for i, ((end, _), (t, _)) in enumerate(named):
        what, text, count = ("quantised", _QUANTISED, len(inputs))
        if i >= len(inputs):
            what, text, count = ("real", _REAL, len(outputs))
        function = f"{name}_{what}" if count == 1 else f"{name}_{end}_{what}"
        width = model.tensors[t].width
        high = (1 << (8 * width - 1)) - 1
        limits = {"low": -high - 1, "high": high, "type": f"int{8 * width}_t", "number": _NUMBER[width]}
        rows += [text.format(function=function, end=end, big=big, what=end.upper(), **limits)]
    rows += [*END_EXTERN_C, "", "#endif"]
    return "\n".join(rows) + "\n"


def _until(storage: Storage) -> str:
    """Return until when an output lies there."""
    return {
        "own": "",
        "shared": ", until another network's input is put there",
        "instance": ", until its arena is written again",
    }[storage.kind]


def _instance(name: str, storage: Storage, *, streamed: bool, lines: int) -> list[str]:
    """Return the type of an instance, and the function that makes one."""
    big, state = name.upper(), bool(storage.apart)
    fields = ["int8_t *arena;", *(["int8_t *state;"] if state else []), f"const int8_t *lines[{lines}];"]
    if streamed:
        fields += [f"{name}_reader reader;", "void *reads;", "int failed;"]
    kept = [f" * {big}_STATE_BYTES at `state` are its own for ever, and begin anew here."] if state else []
    return [
        "/* An instance of the network: its fields are for these functions alone. */",
        "typedef struct {",
        *(f"    {field}" for field in fields),
        f"}} {name}_context;",
        "",
        f"/* Makes an instance, before any other call. Its {big}_ARENA_BYTES bytes at `arena`, aligned to",
        f" * {ALIGNMENT}, are free for others between reading its outputs and putting its next inputs there.",
        *kept,
        " */",
        f"void {name}_init({name}_context *context, void *arena{', void *state' if state else ''});",
        "",
    ]


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


_NUMBER = {1: "byte", 2: "number"}
_WIDE = {1: "", 2: " A number is two bytes, the lower first, at any address."}

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
