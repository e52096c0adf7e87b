"""The copies of the two threads' program by themselves: a channel's rate, and its costs.

A C program with the very copies of `onchip.export.threads` moves boxes of many shapes between an array out of
caches, which stands for DRAM, and one half of a scratchpad, while the other core works on what was copied to
the other half before: pieces of 64 bytes to 16 KiB, each the third or the eleventh of such pieces of DRAM, or
a page behind the last, up to 64 KiB in all, both ways. The least time of many turns counts; `fitted` finds
the rate and the costs of a transfer and of a piece that are nearest.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onchip.export.threads.frame import CHANNEL, HEAD, TOOLS
from onchip.machines.tile_rates import Channel

__all__ = ["Copy", "Trip", "copies", "fitted", "predicted"]

BURST, PAGE = 64, 4096

PIN = """
static int core[2];

static void pin(int to)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(to, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}
"""

PROGRAM = """
#define ROOM ((size_t)64 << 20)
#define HALF ((size_t)512 << 10)
#define PAGE ((size_t)4096)
static _Alignas(64) unsigned char pad[1 << 20];
static unsigned char *dram;
static _Atomic uint32_t touched, asked;
static volatile unsigned sink;

/* While one half of the scratchpad is copied to, the other core reads and writes the one that was copied to
   before, as steps do with what a fetch ahead of them left. */
static void *toucher(void *unused)
{
    (void)unused;
    pin(core[1]);
    for (uint32_t n = 1; n; ++n) {
        wait_for(&asked, n);
        unsigned char *before = pad + (n & 1 ? 0 : HALF);
        for (size_t k = 0; k < 131072; k += 64) ++before[k];
        atomic_store_explicit(&touched, n, memory_order_release);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const int turns = argc > 3 ? atoi(argv[1]) : 100;
    pthread_t other;
    core[0] = argc > 3 ? atoi(argv[2]) : 0;
    core[1] = argc > 3 ? atoi(argv[3]) : 1;
    dram = aligned_alloc((size_t)1 << 21, ROOM);
    madvise(dram, ROOM, MADV_HUGEPAGE);
    memset(dram, 1, ROOM);
    if (pthread_create(&other, NULL, toucher, NULL) != 0) return 1;
    pin(core[0]);
    uint32_t turn = 0;
    for (int stored = 0; stored < 2; ++stored)
        for (size_t piece = 64; piece <= 16384; piece *= 2)
            for (size_t count = 1; count * piece <= 65536; count *= 4)
            for (int gap = 0; gap < (count == 1 ? 1 : piece < PAGE ? 3 : 2); ++gap) {
                const size_t apart = gap == 0 ? 3 : gap == 1 ? 11 : PAGE / piece;
                const size_t far = count == 1 ? piece : apart * piece;
                int64_t least = INT64_MAX;
                for (int n = 0; n < turns; ++n) {
                    const size_t room = 4 * (far * count + 4096);
                    const size_t at = ((size_t)n * 1234567 % (ROOM - room)) & ~(size_t)63;
                    const size_t near = count * piece > 16384 ? 0 : 16384;
                    for (size_t four = 0; four < 4; ++four)
                        for (size_t k = 0; k < count; ++k)
                            for (size_t line = 0; line < piece; line += 64)
                                _mm_clflush(dram + at + four * (far * count + 4096) + k * far + line);
                    _mm_mfence();
                    wait_for(&touched, turn);
                    atomic_store_explicit(&asked, ++turn, memory_order_release);
                    unsigned char *half = pad + (turn & 1 ? HALF : 0);
                    const int64_t began = now();
                    for (size_t four = 0; four < 4; ++four)
                        for (size_t k = 0; k < count; ++k) {
                            unsigned char *there = dram + at + four * (far * count + 4096) + k * far;
                            unsigned char *here = half + four * near + k * piece;
                            if (stored) store_piece(there, here, piece); else load_piece(here, there, piece);
                        }
                    const int64_t took = now() - began;
                    if (took < least) least = took;
                }
                printf("%d %zu %zu %zu %.1f\\n", stored, piece, count, apart, (double)least / 4.0);
            }
    return 0;
}
"""


TRIP = """
static _Atomic uint32_t there, back;

static void *other(void *unused)
{
    (void)unused;
    pin(core[1]);
    for (uint32_t n = 1; n <= 20000; ++n) {
        wait_for(&there, n);
        atomic_store_explicit(&back, n, memory_order_release);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    int64_t least = INT64_MAX;
    core[0] = argc > 2 ? atoi(argv[1]) : 0;
    core[1] = argc > 2 ? atoi(argv[2]) : 1;
    if (pthread_create(&thread, NULL, other, NULL) != 0) return 1;
    pin(core[0]);
    for (uint32_t n = 1; n <= 20000;) {
        const int64_t began = now();
        for (int k = 0; k < 20; ++k, ++n) {
            atomic_store_explicit(&there, n, memory_order_release);
            wait_for(&back, n);
        }
        const int64_t took = now() - began;
        if (took < least) least = took;
    }
    printf("%.1f\\n", (double)least / 20.0);
    return 0;
}
"""


class Trip:
    """The nanoseconds of a round trip of two counters between the cores: whether they share a cache now.

    On a rented machine the host moves them: near each other it takes a hundred, far apart many hundreds.
    """

    def __init__(self, folder: Path, cores: Sequence[int]) -> None:
        (folder / "trip.c").write_text(HEAD + TOOLS + PIN + TRIP)
        _compile(folder, "trip")
        self.command = [str(folder / "trip"), *map(str, cores)]

    def nanoseconds(self) -> float:
        """Measure it."""
        return float(subprocess.run(self.command, check=True, capture_output=True, text=True).stdout)


def _compile(folder: Path, name: str) -> None:
    command = ["gcc", "-std=gnu11", "-O3", "-march=native", "-pthread", "-w", f"{name}.c", "-o", name]
    subprocess.run(command, check=True, cwd=folder, timeout=300)


@dataclass(frozen=True)
class Copy:
    """A box of `count` pieces of `piece` bytes, stored or loaded, and its least time in nanoseconds.

    A piece begins `apart` pieces behind the one before it.
    """

    stored: bool
    piece: int
    count: int
    apart: int
    nanoseconds: float


def copies(folder: Path, turns: int, cores: Sequence[int]) -> list[Copy]:
    """Compile and run the program; return what it measured, each the fourth part of four copies in a row."""
    (folder / "copies.c").write_text(HEAD + TOOLS + CHANNEL + PIN + PROGRAM)
    _compile(folder, "copies")
    asked = ["./copies", str(turns), *map(str, cores)]
    done = subprocess.run(asked, check=True, cwd=folder, capture_output=True, text=True, timeout=600)
    rows = [line.split() for line in done.stdout.splitlines()]
    return [Copy(bool(int(s)), int(piece), int(n), int(far), float(ns)) for s, piece, n, far, ns in rows]


def fitted(rows: Sequence[Copy]) -> Channel:
    """Return the channel of the least sum of squares of the logarithms of predicted over measured.

    Loads are taken, for which steps wait: the law has one rate for both ways. Boxes below 1 KiB, which take
    as long as reading the clock, are left out, and pieces that begin a page after each other, whose lines
    share a few sets of the caches: what they take is shown alone. All rates and costs of a grid are tried,
    which is twice made finer around the best.
    """
    kept = [
        row
        for row in rows
        if row.count * row.piece >= 1024 and not row.stored and row.apart * row.piece != PAGE
    ]
    count, moved, took = np.array([(row.count, row.count * row.piece, row.nanoseconds) for row in kept]).T
    centre, wide = np.array([0.08, 10.0, 100.0]), np.array([0.9, 1.0, 1.0])
    for _ in range(3):
        scale = np.linspace(-1, 1, 41)[:, None] * wide * centre + centre
        byte, piece, start = np.meshgrid(*np.clip(scale, 1e-4, None).T, indexing="ij")
        off = np.zeros_like(byte)
        for n, b, t in zip(count, moved, took, strict=True):
            off += np.log((start + n * piece + b * byte) / t) ** 2
        at = np.unravel_index(np.argmin(off), off.shape)
        centre, wide = np.array([byte[at], piece[at], start[at]]), wide / 8
    byte, piece, start = map(float, centre)
    return Channel(round(1e9 / byte), round(start * 1e3), round(piece * 1e3), BURST)


def predicted(row: Copy, channel: Channel) -> float:
    """Return the nanoseconds of a copy by the law."""
    return (
        channel.transfer_picoseconds / 1e3
        + row.count * channel.piece_picoseconds / 1e3
        + row.count * row.piece * 1e9 / channel.bytes_per_second
    )
