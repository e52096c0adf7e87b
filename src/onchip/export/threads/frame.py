"""The parts of a program of two threads that are the same in every one."""

from __future__ import annotations

from onchip.export.loops.c_frame import PLACES, WINDOWS

__all__ = ["CHANNEL", "HEAD", "MAIN", "TOOLS"]

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
#if defined(__AVX__)
    for (; n + 64 <= bytes; n += 64) {
        const __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)(from + n));
        const __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(from + n + 32));
        _mm256_storeu_si256((__m256i *)(void *)(to + n), low);
        _mm256_storeu_si256((__m256i *)(void *)(to + n + 32), high);
    }
#endif
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
           " \\"lanes\\": %d, \\"sums_beside_bytes\\": %lu, \\"guard_bytes_broken\\": %lu, \\"runs\\": %d,"
           " \\"least_nanoseconds\\": %lld, \\"median_nanoseconds\\": %lld}\\n",
           (unsigned long)PAD_BYTES, (unsigned long long)copied, (unsigned long)TRANSFERS,
           (unsigned long)STEPS, LANES, (unsigned long)SUMS_BESIDE_BYTES, (unsigned long)broken, runs,
           (long long)quickest, (long long)took[runs / 2]);
    free(dram);
    free(took);
    return broken != 0;
}"""
