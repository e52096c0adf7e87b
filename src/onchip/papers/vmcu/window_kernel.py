"""The paper's fused inverted bottleneck (vMCU 5.2) as a C function: a window of B at a time, made anew.

For every output pixel the k x k pixels of B that its depthwise window reads are made from A into the
workspace, then a pixel of C, one of D, and one of E, which is stored over A at the least safe distance. The
workspace is k * k + 1 + 1 segments; nothing else of the block lies in RAM. The layers' kernels are those of
all programs (`onchip.microcontroller.kernels`), here called for a pixel or a line of the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onchip.base.errors import ModelError
from onchip.microcontroller.int8.model import Add, Conv, Depthwise, Layer
from onchip.microcontroller.kernel_language import c_prelude, c_prototype, c_source
from onchip.microcontroller.kernels.use import KernelUse, kernel_for
from onchip.papers.vmcu.affine import chain_distance
from onchip.papers.vmcu.nests import bottleneck_ends

__all__ = ["WindowKernel", "window_kernel"]


@dataclass(frozen=True)
class WindowKernel:
    """A block as one kernel: its C files, and its RAM to the byte.

    `block(pool, workspace)` reads A at `pool + input_at` and leaves E at `pool`.
    """

    sources: dict[str, str]
    pool_bytes: int
    workspace_bytes: int
    input_at: int
    segments: int
    """Segments of workspace: pixels of B, C and D."""


def window_kernel(layers: Sequence[Layer], *, keep_columns: bool = False) -> WindowKernel:
    """Return the kernel of an inverted bottleneck: pointwise, depthwise, pointwise, perhaps the input added.

    With `keep_columns` the columns of B that the window before has, too, are moved and not made anew; the
    workspace is the same. Raises `ModelError` for other layers, and for a window larger than the map, which
    the paper does not fuse.
    """
    expand, across, added = _block(layers)
    uses = [kernel_for(layer) for layer in layers]
    (_, rows, columns, given), (_, made_rows, made_columns, outputs) = (
        expand.input_shapes[0],
        layers[-1].output_shape,
    )
    inside, side, stride = expand.output_shape[3], across.kernel[0], across.stride[0]
    apart = chain_distance(*bottleneck_ends(rows, given, outputs, side, stride), 2)
    text = _TEXT.format(
        rows=made_rows,
        columns=made_columns,
        map_rows=rows,
        map_columns=columns,
        side=side,
        stride=stride,
        before=across.padding[0],
        given=given,
        inside=inside,
        outputs=outputs,
        input_at=apart,
        words="\n".join(_words(i, use) for i, use in enumerate(uses)),
        window=(_KEPT if keep_columns else _ANEW).format(expand=uses[0].function.name),
        across=uses[1].function.name,
        project=uses[2].function.name,
        rest=_added(added, uses[3]) if added else _moved(),
    )
    functions = {use.function.name: use.function for use in uses}
    kernels = '#include "kernels.h"\n\n' + "\n".join(c_source(f) for f in functions.values())
    header = c_prelude() + "".join(c_prototype(f) + ";\n" for f in functions.values())
    return WindowKernel(
        {"block.c": text, "kernels.c": kernels, "kernels.h": header, "block.h": _HEADER},
        max(rows * columns * given + apart, made_rows * made_columns * outputs),
        (side * side + 1) * inside + outputs,
        apart,
        side * side + 2,
    )


def _block(layers: Sequence[Layer]) -> tuple[Conv, Depthwise, Add | None]:
    match layers:
        case [Conv() as expand, Depthwise() as across, Conv() as project, *rest]:
            pass
        case _:
            raise ModelError("no inverted bottleneck", item=layers[0].name if layers else "no layer")
    plain = all(layer.kernel == layer.stride == (1, 1) and layer.groups == 1 for layer in (expand, project))
    _, rows, columns, _ = across.input_shapes[0]
    square = rows == columns and across.kernel[0] == across.kernel[1] and across.depth_multiplier == 1
    if not plain or not square or across.padding[0] != across.kernel[0] // 2 or across.dilation != (1, 1):
        raise ModelError("a block whose window is not square in a square map", item=across.name)
    if across.kernel[0] > rows:
        raise ModelError("a window larger than its map is not fused", item=across.name)
    match rest:
        case []:
            return expand, across, None
        case [Add(constant=None) as added] if set(added.inputs) == {project.output, expand.inputs[0]}:
            return expand, across, added
    raise ModelError("no sum with the block's input", item=rest[0].name)


def _words(i: int, use: KernelUse) -> str:
    return f"static const int32_t words{i}[] = {{{', '.join(map(str, use.words))}}};"


def _added(layer: Add, use: KernelUse) -> str:
    """Return the C that adds D to the pixel of A in its place and stores E."""
    a = "a + y * COLUMNS * GIVEN"
    d = "made - x * OUTPUTS"
    first, second = (a, d) if layer.inputs[1] == layer.inputs[0] or not _from_block(layer) else (d, a)
    return (
        f"lines[0] = {first};\n            lines[1] = {second};\n"
        f"            {use.function.name}(lines, pool + y * COLUMNS * OUTPUTS, x, x + 1, words3);"
    )


def _from_block(layer: Add) -> bool:
    """Return whether the sum's first operand is what the block made: its input was made before."""
    return layer.inputs[0] > layer.inputs[1]


def _moved() -> str:
    return "for (int32_t o = 0; o < OUTPUTS; ++o) pool[(y * COLUMNS + x) * OUTPUTS + o] = made[o];"


_HEADER = """#include <stdint.h>
void block(int8_t *pool, int8_t *workspace);
"""

_ANEW = """{expand}(lines, workspace + (i * SIDE - left) * INSIDE, most(left, 0),
                    least(left + SIDE, MAP_COLUMNS), words0);"""

_KEPT = """const int32_t kept = x ? most(SIDE - STRIDE, 0) : 0;
                int8_t *line = workspace + i * SIDE * INSIDE;
                memmove(line, line + STRIDE * INSIDE, kept * INSIDE);
                if (most(left + kept, 0) < least(left + SIDE, MAP_COLUMNS))
                    {expand}(lines, workspace + (i * SIDE - left) * INSIDE, most(left + kept, 0),
                        least(left + SIDE, MAP_COLUMNS), words0);"""

_TEXT = """#include <string.h>
#include "kernels.h"
#include "block.h"

enum {{ ROWS = {rows}, COLUMNS = {columns}, MAP_ROWS = {map_rows}, MAP_COLUMNS = {map_columns} }};
enum {{ SIDE = {side}, STRIDE = {stride}, BEFORE = {before} }};
enum {{ GIVEN = {given}, INSIDE = {inside}, OUTPUTS = {outputs} }};

{words}

static int32_t most(int32_t a, int32_t b) {{ return a > b ? a : b; }}
static int32_t least(int32_t a, int32_t b) {{ return a < b ? a : b; }}

void block(int8_t *pool, int8_t *workspace)
{{
    const int8_t *a = pool + {input_at}, *lines[SIDE + 1];
    int8_t *across = workspace + SIDE * SIDE * INSIDE, *made = workspace + (SIDE * SIDE + 1) * INSIDE;
    for (int32_t y = 0; y < ROWS; ++y)
        for (int32_t x = 0; x < COLUMNS; ++x) {{
            const int32_t top = y * STRIDE - BEFORE, left = x * STRIDE - BEFORE;
            const int32_t first = most(-top, 0), last = least(MAP_ROWS - top, SIDE);
            for (int32_t i = first; i < last; ++i) {{
                lines[0] = a + (top + i) * MAP_COLUMNS * GIVEN;
                {window}
            }}
            for (int32_t i = 0; i < SIDE; ++i)
                lines[i] = workspace + (i * SIDE - left) * INSIDE;
            {across}(lines, across - x * INSIDE, x, x + 1, first, last, MAP_COLUMNS, words1);
            lines[0] = across;
            {project}(lines, made, 0, 1, words2);
            {rest}
        }}
}}
"""
