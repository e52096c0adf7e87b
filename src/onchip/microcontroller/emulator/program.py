"""The `main` that an emulated core runs: reads inputs from the host, runs networks, writes their outputs."""

from __future__ import annotations

from collections.abc import Sequence

from onchip.microcontroller.project import Sources

__all__ = ["program_main"]


def program_main(
    networks: Sequence[Sources], header: str, *, layers: int, marks: bool, arena: str = ""
) -> str:
    """Return the C of a program that runs the networks one behind the other, `RUNS` times.

    The inputs of a run lie behind one another in the file `in`, its outputs in `out`. The marks from `layers`
    on count each network, and what runs outside them; with `marks` each of a network's layers has one, too.
    Instances put their activations into an array of theirs, or all into an `arena` of so many bytes, as C.
    """
    outside = layers + len(networks)
    numbers: Sequence[int] = range(0 if marks else layers, outside + 1)
    size, at, body, readers = sum(s.input_bytes for s in networks), 0, [], []
    shared = f"static int8_t arena[{arena}] __attribute__((aligned(4)));" if arena else ""
    for inside, one in enumerate(networks, layers):
        call = one.call("invoke")
        if one.streamed:
            call = one.call("invoke", f"{one.name}_from_host", "0")
            readers.append(_READER.format(name=one.name, big=one.name.upper(), size=size, at=at))
            body += ["image = i;", f"onchip_mark_{inside}();", f"if ({call})", "    return 3;"]
        else:
            body += _reads(one, size, at)
            body += [f"onchip_mark_{inside}();", f"{call};"]
        at += one.input_bytes
        body.append(f"onchip_mark_{outside}();")
        for end, bytes_ in one.outputs:
            body += [f"if (host_write(out, {one.call(end)}, {bytes_}))", "    return 4;"]
    return _MAIN.format(
        header=header,
        marks="\n".join(
            f'__attribute__((noinline)) void onchip_mark_{i}(void) {{ __asm volatile("/* {i} */"); }}'
            for i in numbers
        ),
        image="static uint32_t image;\n" if readers else "",
        readers="".join(readers),
        statics="\n".join(
            filter(None, [shared, *(one.statics("arena" if arena else "") for one in networks)])
        ),
        begins="\n".join(f"    {one.begins('arena' if arena else '')}" for one in networks if one.reentrant),
        run="\n".join(f"        {line}" for line in body),
    )


def _reads(one: Sources, size: int, at: int) -> list[str]:
    """Return the reading of all inputs of one inference."""
    lines = []
    for end, bytes_ in one.inputs:
        place = f"i * {size} + {at}"
        lines += [f"if (host_read(in, {one.call(end)}, {place}, {bytes_}))", "    return 3;"]
        at += bytes_
    return lines


_MAIN = """\
#include "host.h"
#include "{header}"

{marks}

static int in;
{image}{statics}
{readers}
int main(void)
{{
    in = host_open_to_read("in");
    const int out = host_open_to_write("out");
{begins}
    for (uint32_t i = 0; i < RUNS; ++i) {{
{run}
    }}
    return 0;
}}
"""

_READER = """\
static int {name}_from_host(
        void *context, int32_t row, int32_t rows, int32_t column, int32_t columns, int8_t *bytes)
{{
    (void)context;
    const int32_t pixel = {big}_INPUT_CHANNELS, size = columns * pixel;
    for (int32_t y = row; y < row + rows; ++y, bytes += size) {{
        const int32_t at = (y * {big}_INPUT_COLUMNS + column) * pixel;
        if (host_read(in, bytes, image * {size} + {at} + (uint32_t)at, (uint32_t)size))
            return 1;
    }}
    return 0;
}}
"""
