"""The parts of a plan's C program that are the same in every one."""

from __future__ import annotations

__all__ = ["HEAD", "MAIN", "PLACES", "TOOLS"]

PLACES = """\
typedef int64_t ix;

/* With -DONCHIP_CHECK every element that is read or written has to be in its place's present region. */
#ifdef ONCHIP_CHECK
#define CHECK(holds) \\
    do { \\
        if (!(holds)) { fprintf(stderr, "line %d: not in its place\\n", __LINE__); abort(); } \\
    } while (0)
#else
#define CHECK(holds) ((void)0)
#endif
"""
"""The type of an index, and the check of a place, of both kinds of programs."""

HEAD = (
    """\
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

"""
    + PLACES
)

WINDOWS = """\
/* The positions, of `size`, that windows need for a range of what they make. */
static inline ix window_low(ix low, ix stride, ix before, ix per, ix size)
{
    const ix first = low * stride - before;
    return first < 0 ? 0 : min_ix(first / per, size);
}

static inline ix window_high(ix low, ix high, ix stride, ix before, ix per, ix span, ix size)
{
    const ix first = window_low(low, stride, before, per, size);
    if (low >= high) return first;
    const ix last = (high - 1) * stride - before;
    const ix end = min_ix((last < 0 ? -((-last + per - 1) / per) : last / per) + span, size);
    return end < first ? first : end;
}

/* A real number as a whole one: to the nearest, halves to the even one, as far as the type goes. */
static inline int32_t rounded(float x, int32_t zero, int32_t low, int32_t high)
{
    const float from = (float)(low - zero), to = (float)(high - zero);
    return (int32_t)rintf(x < from ? from : x > to ? to : x) + zero;
}

static inline ix nearest(float x, ix size)
{
    const ix at = (ix)x;
    return at < 0 ? 0 : at >= size ? size - 1 : at;
}
"""
"""Ranges of windows, and numbers to the nearest, of both kinds of programs."""

TOOLS = (
    """\
static unsigned long long copied, copies, moved;

/* A copy between DRAM and the scratchpad: what a DMA engine does. */
static inline void dma_copy(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    copied += bytes;
    ++copies;
}

/* Bytes that an operator reads or writes straight in DRAM: its weights if it is not cut, what it streams. */
static inline void dma_stream(unsigned long long bytes)
{
    copied += bytes;
}

static inline ix min_ix(ix a, ix b)
{
    return a < b ? a : b;
}

"""
    + WINDOWS
)

MAIN = """
static int transfer(const char *path, int out, const int64_t (*rows)[2], size_t count)
{
    FILE *file = fopen(path, out ? "wb" : "rb");
    int good = file != NULL;
    for (size_t n = 0; good && n < count; ++n) {
        unsigned char *at = dram + rows[n][0];
        const size_t bytes = (size_t)rows[n][1];
        good = (out ? fwrite(at, 1, bytes, file) : fread(at, 1, bytes, file)) == bytes;
    }
    if (file != NULL && fclose(file) != 0) good = 0;
    if (!good) fprintf(stderr, "%s: cannot be %s\\n", path, out ? "written" : "read");
    return good;
}

#define COUNT(rows) (sizeof rows / sizeof rows[0])

int main(int argc, char **argv)
{
    size_t broken = 0;
    if (argc != 4) {
        fprintf(stderr, "%s CONSTANTS INPUTS OUTPUTS\\n", argv[0]);
        return 2;
    }
    dram = calloc(DRAM_BYTES, 1);
    if (dram == NULL) return 1;
    memset(around, 0xFF, sizeof around);
    if (!transfer(argv[1], 0, constants, COUNT(constants))) return 1;
    if (!transfer(argv[2], 0, inputs, COUNT(inputs))) return 1;
    network();
    for (size_t n = 0; n < GUARD_BYTES; ++n)
        broken += (size_t)(around[n] != 0xFF) + (size_t)(around[GUARD_BYTES + PAD_BYTES + n] != 0xFF);
    if (!transfer(argv[3], 1, outputs, COUNT(outputs))) return 1;
    printf("{\\"scratchpad_bytes\\": %lu, \\"copied_bytes\\": %llu, \\"copies\\": %llu,"
           " \\"moved_bytes\\": %llu, \\"sums_beside_bytes\\": %lu, \\"guard_bytes_broken\\": %lu}\\n",
           (unsigned long)PAD_BYTES, copied, copies, moved, (unsigned long)SUMS_BESIDE_BYTES,
           (unsigned long)broken);
    free(dram);
    return broken != 0;
}"""
