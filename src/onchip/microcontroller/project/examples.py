"""Programs that use networks: a `main` for a computer, an Arduino sketch, a few lines for a README."""

from __future__ import annotations

from collections.abc import Sequence

from onchip.microcontroller.project.sources import LICENCE, Sources

__all__ = ["example_c", "host_main", "sketch"]


def host_main(networks: Sequence[Sources], header: str, arena: str = "") -> str:
    """Return a `main` that runs the networks one behind the other for as long as there are inputs.

    Instances put their activations into arrays of their own, or all into an `arena` of so many bytes, as C.
    """
    given = sum(one.input_bytes for one in networks)
    made = sum(one.output_bytes for one in networks)
    first, *others = networks
    begin = [f"    {one.begins('arena' if arena else '')}" for one in networks if one.reentrant]
    body = [*begin, f"    while ({_read(first)}) {{"]
    for one in networks:
        if one is not first:
            body += [f"        if (!({_read(one)}))", "            return 1;"]
        if one.streamed:
            call = one.call("invoke", f"{one.name}_from_image", "0")
            body += [f"        if ({call})", "            return 1;"]
        else:
            body.append(f"        {one.call('invoke')};")
        wrote = " || ".join(
            f"fwrite({one.call(end)}, 1, {size}, stdout) != {size}" for end, size in one.outputs
        )
        body += [f"        if ({wrote})", "            return 1;"]
    runs = "the network on each" if not others else "the networks one behind the other"
    return "\n".join(
        [
            f"/* {LICENCE}",
            f" * Written by onchip. An example: reads inputs of {given} bytes from the standard input, runs",
            f" * {runs}, and writes {made} bytes of outputs to the standard output. */",
            *("#include <stdio.h>", "", f'#include "{header}"', ""),
            *_statics(networks, arena),
            *(_READER.format(name=one.name, big=one.name.upper()) for one in networks if one.streamed),
            *("int main(void)", "{", *body, "    }", "    return 0;", "}", ""),
        ]
    )


def _statics(networks: Sequence[Sources], arena: str) -> list[str]:
    """Return the variables of instances."""
    shared = f"static int8_t arena[{arena}] __attribute__((aligned(4)));" if arena else ""
    return [text for text in (shared, *(one.statics("arena" if arena else "") for one in networks)) if text]


def _read(one: Sources) -> str:
    """Return the reading of all inputs of a network, as a condition."""
    if one.streamed:
        size = one.input_bytes
        return f"fread({one.name}_image, 1, {size}, stdin) == {size}"
    return " && ".join(f"fread({one.call(end)}, 1, {size}, stdin) == {size}" for end, size in one.inputs)


def sketch(networks: Sequence[Sources], header: str, arena: str = "") -> str:
    """Return an Arduino sketch that runs the networks on zeros and prints their outputs."""
    begin = [f"  {one.begins('arena' if arena else '')}" for one in networks if one.reentrant]
    body: list[str] = []
    for one in networks:
        big = one.name.upper()
        body.append("  {")
        if one.streamed:
            body.append(f"    if ({one.call('invoke', f'{one.name}_zeros', '0')}) return;")
        else:
            for end, size in one.inputs:
                body += [
                    f"    int8_t *{end} = {one.call(end)};",
                    f"    for (long i = 0; i < {size}; ++i) {end}[i] = {_low_byte(f'{big}_{end.upper()}')};",
                ]
            body.append(f"    {one.call('invoke')};")
        for end, size in one.outputs:
            body += [
                f"    const int8_t *{end} = {one.call(end)};",
                f"    for (long i = 0; i < {size}; ++i) Serial.println({end}[i]);",
            ]
        body.append("  }")
    return "\n".join(
        [
            f"// {LICENCE}",
            "// Written by onchip. Runs on inputs of real zeros, and prints the bytes of all outputs.",
            *(f"#include <{header}>", "", *_statics(networks, arena)),
            *(_ZEROS.format(name=one.name, big=one.name.upper()) for one in networks if one.streamed),
            *("void setup() {", "  Serial.begin(115200);", *begin, "}", ""),
            *("void loop() {", *body, "  delay(1000);", "}", ""),
        ]
    )


def _low_byte(macro: str) -> str:
    return f"(int8_t){macro}_ZERO_POINT"


def example_c(networks: Sequence[Sources]) -> str:
    """Return the calls of the networks, for a README."""
    lines = []
    for one in networks:
        if one.reentrant:
            lines += [*one.statics().splitlines(), "", f"{one.begins()}   /* once */", ""]
        if one.streamed:
            lines += [_READS, f"if ({one.call('invoke', 'read_rows', '0')} == 0) {{"]
            lines += [
                f"    const int8_t *{end} = {one.call(end)};   /* {size} bytes */"
                for end, size in one.outputs
            ]
            lines.append("}")
            continue
        for end, size in one.inputs:
            lines.append(f"int8_t *{end} = {one.call(end)};   /* {size} bytes; put them there */")
        lines.append(f"{one.call('invoke')};   /* writes over its inputs */")
        lines += [f"const int8_t *{end} = {one.call(end)};   /* {size} bytes */" for end, size in one.outputs]
    streamed = any(one.streamed for one in networks)
    says = (
        "The input is never in RAM as a whole: the network asks a function of yours for the pixels that it"
        " needs next.\n\n"
        if streamed
        else ""
    )
    return "\n".join([f"{says}```c", *lines, "```", ""])


_READS = (
    "int read_rows(void *context, int32_t row, int32_t rows, int32_t column, int32_t columns, int8_t *bytes);"
)

_READER = """\
static int8_t {name}_image[{big}_INPUT_BYTES]; /* instead of a camera */

static int {name}_from_image(
        void *context, int32_t row, int32_t rows, int32_t column, int32_t columns, int8_t *bytes)
{{
    (void)context;
    for (int32_t y = row; y < row + rows; ++y)
        for (int32_t i = 0; i < columns * {big}_INPUT_CHANNELS; ++i)
            *bytes++ = {name}_image[(y * {big}_INPUT_COLUMNS + column) * {big}_INPUT_CHANNELS + i];
    return 0;
}}
"""

_ZEROS = """\
static int {name}_zeros(void *, int32_t, int32_t rows, int32_t, int32_t columns, int8_t *bytes) {{
  for (int32_t i = 0; i < rows * columns * {big}_INPUT_CHANNELS; ++i) bytes[i] = {big}_INPUT_ZERO_POINT;
  return 0;
}}
"""
