"""The parts of a program of two threads that are the same in every one."""

from __future__ import annotations

from onchip.export.loops.c_frame import PLACES, WINDOWS

__all__ = ["CHANNEL", "HEAD", "MAIN", "TOOLS", "VECTORS"]

HEAD = (
    """\
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif
#if defined(__linux__)
#include <sys/mman.h>
#endif

"""
    + PLACES
)

TOOLS = (
    """\
/* What is over: each counter is written by one thread, on a line of its own. */
static _Alignas(128) _Atomic uint32_t transfers_over;
static _Alignas(128) _Atomic uint32_t steps_over;
static _Alignas(128) _Atomic uint32_t run_begun;
static _Alignas(128) uint64_t copied;

static inline void wait_for(_Atomic uint32_t *over, uint32_t count)
{
    uint32_t tries = 0;
    while (atomic_load_explicit(over, memory_order_acquire) < count)
        if (++tries > 1000000) { sched_yield(); tries = 0; }
}

static inline int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* With -DONCHIP_TIMES every step and transfer notes when it had what it waits for, and when it was over. */
#ifdef ONCHIP_TIMES
static inline int64_t tick(void)
{
#if defined(__x86_64__)
    unsigned aux;
    return (int64_t)__rdtscp(&aux);
#else
    return now();
#endif
}
#define NOTE(row, n, end) ((row)[n][end] = tick())
#else
#define NOTE(row, n, end) ((void)0)
#endif

static inline ix min_ix(ix a, ix b)
{
    return a < b ? a : b;
}

static inline ix max_ix(ix a, ix b)
{
    return a > b ? a : b;
}

"""
    + WINDOWS
)

VECTORS = """\
typedef float v16 __attribute__((vector_size(64)));
typedef int32_t i16 __attribute__((vector_size(64)));

/* A value that the compiler knows nothing of, so that it adds to it where it is used. */
#define OPAQUE(x) __asm__("" : "+r"(x))

static inline v16 all16(float x)
{
    return x - (v16){0};
}

static inline v16 one16(const unsigned char *from)
{
    float x;
    memcpy(&x, from, sizeof x);
    return all16(x);
}

/* The lanes from `low` to `high` of what begins at `from`; 0 in the others. */
static inline v16 load16(const unsigned char *from, ix low, ix high)
{
#if defined(__AVX512F__)
    const __mmask16 some = (__mmask16)(((1u << high) - 1u) & ~((1u << low) - 1u));
    return (v16)_mm512_maskz_loadu_ps(some, from);
#else
    v16 x = {0};
    for (ix l = low; l < high; ++l) memcpy((float *)&x + l, from + 4 * l, 4);
    return x;
#endif
}

static inline v16 apart16(const unsigned char *from, ix stride, ix low, ix high)
{
    v16 x = {0};
    for (ix l = low; l < high; ++l) memcpy((float *)&x + l, from + stride * l, 4);
    return x;
}

static inline void store16(unsigned char *to, v16 x, ix high)
{
#if defined(__AVX512F__)
    _mm512_mask_storeu_ps(to, (__mmask16)((1u << high) - 1u), (__m512)x);
#else
    memcpy(to, &x, (size_t)high * 4);
#endif
}

/* The same in a ring of `size` floats along the lanes, of which `rest` are left from `from` on. */
static inline v16 load_ring16(const unsigned char *from, ix low, ix high, ix rest, ix size)
{
    if (high <= rest) return load16(from, low, high);
    if (low >= rest) return load16(from - 4 * size, low, high);
    return (v16)((i16)load16(from, low, rest) | (i16)load16(from - 4 * size, rest, high));
}

static inline void store_ring16(unsigned char *to, v16 x, ix high, ix rest, ix size)
{
    store16(to, x, high < rest ? high : rest);
    for (ix l = rest; l < high; ++l) memcpy(to + 4 * (l - size), (const float *)&x + l, 4);
}

static inline v16 max16(v16 x, v16 y)
{
    const i16 more = x > y;
    return (v16)(((i16)x & more) | ((i16)y & ~more));
}

/* e to the x: 2 to a whole number, times a polynomial of the rest. */
static inline v16 exp16(v16 x)
{
    x = max16(x, all16(-87.0f));
    x = -max16(-x, all16(-88.0f));
    const v16 shift = all16(12582912.0f);
    const v16 n = x * 1.44269504f + shift - shift;
    const v16 r = x - n * 0.693359375f + n * 2.12194440e-4f;
    v16 p = all16(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    return p * (v16)((__builtin_convertvector(n, i16) + 127) << 23);
}

/* Abramowitz and Stegun, 7.1.26. */
static inline v16 erf16(v16 x)
{
    const v16 y = max16(x, -x), t = 1.0f / (1.0f + 0.3275911f * y);
    v16 p = all16(1.061405429f);
    p = p * t - 1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = p * t + 0.254829592f;
    const v16 e = 1.0f - p * t * exp16(-y * y);
    const i16 below = x < all16(0.0f);
    return (v16)(((i16)e & ~below) | ((i16)-e & below));
}

static inline v16 first16(v16 x, ix high, float rest)
{
    const i16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const i16 some = lane < (int32_t)high;
    return (v16)(((i16)x & some) | ((i16)all16(rest) & ~some));
}

static inline float sum16(v16 x)
{
    const i16 by8 = {8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7};
    const i16 by4 = {4, 5, 6, 7, 0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7};
    x += __builtin_shuffle(x, by8);
    x += __builtin_shuffle(x, by4);
    return (x[0] + x[1]) + (x[2] + x[3]);
}

static inline float most16(v16 x)
{
    const i16 by8 = {8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7};
    const i16 by4 = {4, 5, 6, 7, 0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7};
    x = max16(x, __builtin_shuffle(x, by8));
    x = max16(x, __builtin_shuffle(x, by4));
    const float a = x[0] > x[1] ? x[0] : x[1], b = x[2] > x[3] ? x[2] : x[3];
    return a > b ? a : b;
}

static inline void softmax_row(unsigned char *row, ix size)
{
    v16 most = all16(-INFINITY), sum = all16(0.0f);
    for (ix n = 0; n < size; n += 16) {
        const ix wide = min_ix(16, size - n);
        most = max16(most, first16(load16(row + 4 * n, 0, wide), wide, -INFINITY));
    }
    const float top = most16(most);
    for (ix n = 0; n < size; n += 16) {
        const ix wide = min_ix(16, size - n);
        const v16 x = exp16(load16(row + 4 * n, 0, wide) - top);
        sum += first16(x, wide, 0.0f);
        store16(row + 4 * n, x, wide);
    }
    const float over = 1.0f / sum16(sum);
    for (ix n = 0; n < size; n += 16) {
        const ix wide = min_ix(16, size - n);
        store16(row + 4 * n, load16(row + 4 * n, 0, wide) * over, wide);
    }
}

static inline void norm_row(
    unsigned char *row, ix size, float epsilon, const unsigned char *scale, const unsigned char *bias)
{
    v16 sum = all16(0.0f), square = all16(0.0f);
    for (ix n = 0; n < size; n += 16) sum += load16(row + 4 * n, 0, min_ix(16, size - n));
    const float mean = sum16(sum) / (float)size;
    for (ix n = 0; n < size; n += 16) {
        const ix wide = min_ix(16, size - n);
        const v16 x = first16(load16(row + 4 * n, 0, wide) - mean, wide, 0.0f);
        square += x * x;
    }
    const float spread = 1.0f / sqrtf(sum16(square) / (float)size + epsilon);
    for (ix n = 0; n < size; n += 16) {
        const ix wide = min_ix(16, size - n);
        v16 x = (load16(row + 4 * n, 0, wide) - mean) * spread;
        if (scale != NULL) x *= load16(scale + 4 * n, 0, wide);
        if (bias != NULL) x += load16(bias + 4 * n, 0, wide);
        store16(row + 4 * n, x, wide);
    }
}
"""

CHANNEL = """
/* Pieces of a transfer: `bytes` each, n0 times n1 of them, so far apart in DRAM and in the scratchpad. */
struct pieces {
    int64_t dram, far0, far1;
    int32_t pad, near0, near1;
    uint32_t bytes, n0, n1, steps;
    uint8_t stored, begins, ends;
};

/* A contiguous piece, 64 bytes at a time. */
static inline void copy_bytes(unsigned char *restrict to, const unsigned char *restrict from, size_t bytes)
{
    size_t n = 0;
#if defined(__AVX512BW__)
    for (; n + 64 <= bytes; n += 64) _mm512_storeu_si512(to + n, _mm512_loadu_si512(from + n));
    if (n < bytes) {
        const __mmask64 rest = ~UINT64_C(0) >> (64 - (bytes - n));
        _mm512_mask_storeu_epi8(to + n, rest, _mm512_maskz_loadu_epi8(rest, from + n));
    }
#else
    memcpy(to + n, from + n, bytes - n);
#endif
}

/* What a copy leaves of DRAM in caches goes: a DMA engine has none. */
static inline void leave_caches(const unsigned char *there, size_t bytes)
{
#if defined(__CLFLUSHOPT__)
    for (size_t n = 0; n < bytes; n += 64) _mm_clflushopt((void *)(uintptr_t)(there + n));
#elif defined(__x86_64__)
    for (size_t n = 0; n < bytes; n += 64) _mm_clflush(there + n);
#else
    (void)there;
    (void)bytes;
#endif
}

static inline void load_piece(unsigned char *here, const unsigned char *there, size_t bytes)
{
    copy_bytes(here, there, bytes);
    leave_caches(there, bytes);
}

static inline void store_piece(unsigned char *there, const unsigned char *here, size_t bytes)
{
    copy_bytes(there, here, bytes);
    leave_caches(there, bytes);
}
"""

MAIN = """
/* The channel: every transfer in its order, as soon as the steps that it waits for are over. */
static void serve_all(void)
{
    uint32_t over = 0;
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < PIECES; ++k) {
        const struct pieces *p = &all_pieces[k];
        if (p->begins) {
            wait_for(&steps_over, p->steps);
            NOTE(moved_at, over, 0);
        }
        for (uint32_t j = 0; j < p->n1; ++j) {
            unsigned char *there = dram + p->dram + j * p->far1, *here = pad + p->pad + j * (ix)p->near1;
            for (uint32_t i = 0; i < p->n0; ++i, there += p->far0, here += p->near0) {
                if (p->stored) store_piece(there, here, p->bytes); else load_piece(here, there, p->bytes);
            }
        }
        bytes += (uint64_t)p->bytes * p->n0 * p->n1;
        if (p->ends) {
            NOTE(moved_at, over, 1);
            atomic_store_explicit(&transfers_over, ++over, memory_order_release);
        }
    }
    copied = bytes;
}

static void pin(int core)
{
#if defined(__linux__)
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    if (core >= 0 && pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0)
        fprintf(stderr, "core %d cannot be had\\n", core);
#else
    (void)core;
#endif
}

static int runs = 1, cores[2] = {-1, -1};

static void *channel_thread(void *unused)
{
    (void)unused;
    pin(cores[0]);
    for (int run = 1; run <= runs; ++run) {
        wait_for(&run_begun, (uint32_t)run);
        serve_all();
        if (TRANSFERS == 0) atomic_store_explicit(&transfers_over, 0, memory_order_release);
    }
    return NULL;
}

/* DRAM as it is before anything was read: in no cache. */
static void out_of_caches(void)
{
#if defined(__x86_64__)
    for (size_t n = 0; n < DRAM_BYTES; n += 64) _mm_clflush(dram + n);
    _mm_mfence();
#endif
}

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

static int lower(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

#ifdef ONCHIP_TIMES
static int64_t best_steps[STEPS + 1][2], best_moved[TRANSFERS + 1][2];
static int64_t least_steps[STEPS + 1], least_moved[TRANSFERS + 1];

static void keep_least(int64_t (*rows)[2], int64_t *least, size_t count, int first)
{
    for (size_t n = 0; n < count; ++n)
        if (first || rows[n][1] - rows[n][0] < least[n]) least[n] = rows[n][1] - rows[n][0];
}

static void say(
    const char *what, int64_t (*rows)[2], const int64_t *least, size_t count, int64_t t0, double ns)
{
    for (size_t n = 0; n < count; ++n)
        fprintf(stderr, "%s %zu %.1f %.1f %.1f\\n", what, n, (double)(rows[n][0] - t0) * ns,
                (double)(rows[n][1] - t0) * ns, (double)least[n] * ns);
}
#endif

#define COUNT(rows) (sizeof rows / sizeof rows[0])

int main(int argc, char **argv)
{
    size_t broken = 0;
    pthread_t other;
    int64_t *took, quickest = INT64_MAX;
    if (argc < 4 || argc > 7) {
        fprintf(stderr, "%s CONSTANTS INPUTS OUTPUTS [RUNS [CORE CORE]]\\n", argv[0]);
        return 2;
    }
    if (argc > 4) runs = atoi(argv[4]);
    if (argc > 6) { cores[0] = atoi(argv[5]); cores[1] = atoi(argv[6]); }
    if (runs < 1) runs = 1;
    took = calloc((size_t)runs, sizeof *took);
    const size_t room = (DRAM_BYTES + ((size_t)1 << 21) - 1) >> 21 << 21;
    dram = aligned_alloc((size_t)1 << 21, room);
    if (dram == NULL || took == NULL) return 1;
#if defined(__linux__)
    madvise(dram, room, MADV_HUGEPAGE);
#endif
    memset(dram, 0, room);
    memset(around, 0xFF, sizeof around);
    if (!transfer(argv[1], 0, constants, COUNT(constants))) return 1;
    if (!transfer(argv[2], 0, inputs, COUNT(inputs))) return 1;
    pin(cores[1]);
    if (pthread_create(&other, NULL, channel_thread, NULL) != 0) return 1;
#ifdef ONCHIP_TIMES
    const int64_t ns0 = now(), ticks0 = tick();
    int64_t t0 = 0;
#endif
    for (int run = 1; run <= runs; ++run) {
        out_of_caches();
        atomic_store_explicit(&steps_over, 0, memory_order_relaxed);
        atomic_store_explicit(&transfers_over, 0, memory_order_relaxed);
        const int64_t begun = now();
#ifdef ONCHIP_TIMES
        const int64_t began = tick();
#endif
        atomic_store_explicit(&run_begun, (uint32_t)run, memory_order_release);
        network();
        wait_for(&transfers_over, TRANSFERS);
        took[run - 1] = now() - begun;
#ifdef ONCHIP_TIMES
        keep_least(ran_at, least_steps, STEPS, run == 1);
        keep_least(moved_at, least_moved, TRANSFERS, run == 1);
        if (took[run - 1] < quickest) {
            memcpy(best_steps, ran_at, sizeof ran_at);
            memcpy(best_moved, moved_at, sizeof moved_at);
            t0 = began;
        }
#endif
        if (took[run - 1] < quickest) quickest = took[run - 1];
    }
#ifdef ONCHIP_TIMES
    const double ns = (double)(now() - ns0) / (double)(tick() - ticks0);
    say("step", best_steps, least_steps, STEPS, t0, ns);
    say("transfer", best_moved, least_moved, TRANSFERS, t0, ns);
#endif
    pthread_join(other, NULL);
    for (size_t n = 0; n < GUARD_BYTES; ++n)
        broken += (size_t)(around[n] != 0xFF) + (size_t)(around[GUARD_BYTES + PAD_BYTES + n] != 0xFF);
    if (!transfer(argv[3], 1, outputs, COUNT(outputs))) return 1;
    qsort(took, (size_t)runs, sizeof *took, lower);
    printf("{\\"scratchpad_bytes\\": %lu, \\"copied_bytes\\": %llu, \\"transfers\\": %lu, \\"steps\\": %lu,"
           " \\"sums_beside_bytes\\": %lu, \\"guard_bytes_broken\\": %lu, \\"runs\\": %d,"
           " \\"least_nanoseconds\\": %lld, \\"median_nanoseconds\\": %lld}\\n",
           (unsigned long)PAD_BYTES, (unsigned long long)copied, (unsigned long)TRANSFERS,
           (unsigned long)STEPS, (unsigned long)SUMS_BESIDE_BYTES, (unsigned long)broken, runs,
           (long long)quickest, (long long)took[runs / 2]);
    free(dram);
    free(took);
    return broken != 0;
}"""
