"""`model.c` of a network: its array, helpers, the functions of its units, and its public ones."""

from __future__ import annotations

from collections.abc import Sequence

from onchip.microcontroller.int8.model import State
from onchip.microcontroller.project.header import ends
from onchip.microcontroller.project.storage import Storage
from onchip.microcontroller.project.text import Text
from onchip.microcontroller.project.units import Firmware

__all__ = ["model_source"]


def model_source(
    firmware: Firmware,
    units: Sequence[tuple[str, str]],
    storage: Storage,
    *,
    streamed: bool,
    lines: int,
    includes: Sequence[str],
) -> str:
    """Return the text behind the file's first comment; `units` are functions' names and texts.

    `lines` are the most that a kernel reads, `includes` the headers behind `string.h`, first the network's.
    """
    model, name = firmware.model, storage.name
    body = "\n".join(source for _, source in units)
    marks = "\n".join(f"void onchip_mark_{i}(void);" for i in range(len(model.layers)))
    first, *others = includes
    parts = [f'#include "{first}"\n\n#include <string.h>\n\n']
    parts += ["".join(f'#include "{header}"\n' for header in others), "\n", _MARKS.format(marks=marks)]
    if storage.kind == "own":
        parts.append(_ARENA.format(big=name.upper(), bytes=firmware.arena_bytes))
    if storage.kind != "instance":
        parts.append(_LINES.format(lines=lines))
    if "window(" in body or "clipped(" in body:
        parts.append(_CLIPPED)
    if "window(" in body:
        parts += [_WINDOW_SAYS, str(_window(storage)), "\n"]
    if "_inside(" in body:
        parts.append(_INSIDE)
    if streamed:
        parts += [_READER.format(name=name) if storage.kind != "instance" else ""]
        parts += ["/* Pixels of the input, from the user. */\n", str(_fetch(storage)), "\n"]
    if model.states and storage.kind != "instance":
        parts.append("static int begun; /* whether what is kept between calls has its first bytes */\n\n")
    text = Text()
    if storage.kind == "own":
        text.say(f"#ifdef {name.upper()}_ARENA_GIVEN")
        with text.block(f"void {name}_use(void *memory)"):
            text.say("arena = (int8_t *)memory;")
        text.say("#endif")
        text.say("")
    if storage.kind == "instance":
        _init(text, storage, stateful=bool(model.states))
    if streamed:
        _invoke_streamed(text, firmware, units, storage)
    else:
        _invoke_held(text, firmware, units, storage)
    for (end, _), (_, place) in zip(ends(model, "output", firmware.outputs), firmware.outputs, strict=True):
        with storage.function(text, f"const int8_t *{name}_{end}"):
            text.say(f"return {storage.at(place)};")
    constants = []
    if model.states:
        with storage.function(text, f"void {name}_reset"):
            for i, (state, place) in enumerate(zip(model.states, firmware.states, strict=True)):
                constant, put = _first(state, i, storage.at(place))
                constants.append(constant)
                text.say(put)
            if storage.kind != "instance":
                text.say("begun = 1;")
    return "".join([*parts, body, *constants]) + f"\n{text}"


def _init(text: Text, storage: Storage, *, stateful: bool) -> None:
    """Write the function that makes an instance."""
    state = ", void *state" if storage.apart else ""
    with text.block(f"void {storage.name}_init({storage.takes(f'void *arena{state}')})"):
        text.say("context->arena = (int8_t *)arena;")
        if state:
            text.say("context->state = (int8_t *)state;")
        if stateful:
            text.say(f"{storage.name}_reset(context);")


def _invoke_streamed(
    text: Text, firmware: Firmware, units: Sequence[tuple[str, str]], storage: Storage
) -> None:
    instance = storage.kind == "instance"
    to, reads = ("context->", "reads") if instance else ("", "reader_context")
    parameters = f"{storage.name}_reader read, void *{'reads' if instance else 'context'}"
    with storage.function(text, f"int {storage.name}_invoke", parameters):
        text.say(f"{to}reader = read;")
        text.say(f"{to}{reads} = {'reads' if instance else 'context'};")
        text.say(f"{to}failed = 0;")
        [(tensor, at)] = firmware.inputs
        if at is not None:
            _, rows, columns, _ = firmware.model.tensors[tensor].shape
            text.say(f"fetch({storage.passes(f'0, {rows}, 0, {columns}, {storage.at(at)}')});")
        for function, _ in units:
            text.say(f"{function}({storage.passes()});")
        text.say(f"return {to}failed;")


def _invoke_held(text: Text, firmware: Firmware, units: Sequence[tuple[str, str]], storage: Storage) -> None:
    model, name = firmware.model, storage.name
    for (end, _), (_, at) in zip(ends(model, "input", firmware.inputs), firmware.inputs, strict=True):
        with storage.function(text, f"int8_t *{name}_{end}"):
            assert at is not None
            text.say(f"return {storage.at(at)};")
    with storage.function(text, f"void {name}_invoke"):
        if model.states and storage.kind != "instance":
            with text.block("if (!begun)"):
                text.say(f"{name}_reset();")
        for function, _ in units:
            text.say(f"{function}({storage.passes()});")


def _window(storage: Storage) -> Text:
    """Return the function that points `lines` to those of a window."""
    text = Text()
    parameters = (
        "const int8_t *map, int32_t top, int32_t apart, int32_t taps, int32_t size,"
        " int32_t slots, int32_t pitch"
    )
    with (
        storage.function(text, "static inline void window", parameters),
        text.block("for (int32_t i = 0; i < taps; ++i)"),
    ):
        text.say("lines[i] = map + clipped(top + i * apart, size) % slots * pitch;")
    return text


def _fetch(storage: Storage) -> Text:
    """Return the function that asks the user's reader."""
    text = Text()
    to, reads = ("context->", "reads") if storage.kind == "instance" else ("", "reader_context")
    parameters = "int32_t row, int32_t rows, int32_t column, int32_t columns, int8_t *bytes"
    with storage.function(text, "static void fetch", parameters), text.block(f"if (!{to}failed)"):
        text.say(f"{to}failed = {to}reader({to}{reads}, row, rows, column, columns, bytes);")
    return text


def _first(state: State, number: int, where: str) -> tuple[str, str]:
    """Return the constant of a state's first bytes, if it needs one, and what puts them there."""
    first, size = state.initial[0], len(state.initial)
    if state.initial == bytes([first]) * size:
        return "", f"memset({where}, {first}, {size});"
    values = ", ".join(str(byte - 256 if byte & 0x80 else byte) for byte in state.initial)
    constant = f"static const int8_t first{number}[{size}] = {{{values}}};\n\n"
    return constant, f"memcpy({where}, first{number}, {size});"


_MARKS = """\
/* What comes next is counted for a layer, in a build that counts. */
#ifdef ONCHIP_MARKS
{marks}
#define MARK(number) onchip_mark_##number()
#else
#define MARK(number) (void)0
#endif

"""

_ARENA = """\
#ifdef {big}_ARENA_GIVEN
static int8_t *arena;
#else
#ifndef {big}_ARENA_ATTRIBUTE
#define {big}_ARENA_ATTRIBUTE
#endif
static int8_t arena[{bytes}] __attribute__((aligned(4))) {big}_ARENA_ATTRIBUTE;
#endif

"""

_LINES = """\
/* The lines of a map that the kernel under way reads. */
static const int8_t *lines[{lines}];

"""

_WINDOW_SAYS = """\
/* Points `lines` to those that a window reads: `taps`, each `apart` from the one before, the first `top`. The
 * map has `size` lines, of which `slots` are there at a time. A line that does not exist is never read. */
"""

_READER = """\
static {name}_reader reader;
static void *reader_context;
static int failed;

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
