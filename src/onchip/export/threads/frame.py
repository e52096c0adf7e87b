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
/* The widest vectors of the machine that this is compiled for: as many floats as a block has lanes. */
#ifndef LANES
#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif
#endif
typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int32_t veci __attribute__((vector_size(4 * LANES)));
#if LANES == 16
#define EACH_LANE {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
#elif LANES == 8
#define EACH_LANE {0, 1, 2, 3, 4, 5, 6, 7}
#else
#define EACH_LANE {0, 1, 2, 3}
#endif

/* A value that the compiler knows nothing of, so that it adds to it where it is used. */
#define OPAQUE(x) __asm__("" : "+r"(x))

static inline vec vec_all(float x)
{
    return x - (vec){0};
}

static inline vec vec_one(const unsigned char *from)
{
    float x;
    memcpy(&x, from, sizeof x);
    return vec_all(x);
}

/* The lanes from `low` to `high` of what begins at `from`; 0 in the others. */
static inline vec vec_load(const unsigned char *from, ix low, ix high)
{
#if LANES == 16 && defined(__AVX512F__)
    const __mmask16 some = (__mmask16)(((1u << high) - 1u) & ~((1u << low) - 1u));
    return (vec)_mm512_maskz_loadu_ps(some, from);
#else
    vec x = {0};
    if (low <= 0 && high >= LANES) {
        memcpy(&x, from, sizeof x);
        return x;
    }
#if LANES == 8 && defined(__AVX__)
    const veci lane = EACH_LANE, some = (lane >= (int32_t)low) & (lane < (int32_t)high);
    return (vec)_mm256_maskload_ps((const float *)(const void *)from, (__m256i)some);
#else
    for (ix l = low; l < high; ++l) memcpy((float *)&x + l, from + 4 * l, 4);
    return x;
#endif
#endif
}

static inline vec vec_apart(const unsigned char *from, ix stride, ix low, ix high)
{
    vec x = {0};
    for (ix l = low; l < high; ++l) memcpy((float *)&x + l, from + stride * l, 4);
    return x;
}

static inline void vec_store(unsigned char *to, vec x, ix high)
{
#if LANES == 16 && defined(__AVX512F__)
    _mm512_mask_storeu_ps(to, (__mmask16)((1u << high) - 1u), (__m512)x);
#else
    if (high >= LANES) {
        memcpy(to, &x, sizeof x);
        return;
    }
#if LANES == 8 && defined(__AVX__)
    const veci lane = EACH_LANE, some = lane < (int32_t)high;
    _mm256_maskstore_ps((float *)(void *)to, (__m256i)some, (__m256)x);
#else
    memcpy(to, &x, (size_t)high * 4);
#endif
#endif
}

/* The same in a ring of `size` floats along the lanes, of which `rest` are left from `from` on. */
static inline vec vec_load_ring(const unsigned char *from, ix low, ix high, ix rest, ix size)
{
    if (high <= rest) return vec_load(from, low, high);
    if (low >= rest) return vec_load(from - 4 * size, low, high);
    return (vec)((veci)vec_load(from, low, rest) | (veci)vec_load(from - 4 * size, rest, high));
}

static inline void vec_store_ring(unsigned char *to, vec x, ix high, ix rest, ix size)
{
    vec_store(to, x, high < rest ? high : rest);
    for (ix l = rest; l < high; ++l) memcpy(to + 4 * (l - size), (const float *)&x + l, 4);
}

static inline vec vec_max(vec x, vec y)
{
    const veci more = x > y;
    return (vec)(((veci)x & more) | ((veci)y & ~more));
}

/* e to the x: 2 to a whole number, times a polynomial of the rest. */
static inline vec vec_exp(vec x)
{
    x = vec_max(x, vec_all(-87.0f));
    x = -vec_max(-x, vec_all(-88.0f));
    const vec shift = vec_all(12582912.0f);
    const vec n = x * 1.44269504f + shift - shift;
    const vec r = x - n * 0.693359375f + n * 2.12194440e-4f;
    vec p = vec_all(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    return p * (vec)((__builtin_convertvector(n, veci) + 127) << 23);
}

/* Abramowitz and Stegun, 7.1.26. */
static inline vec vec_erf(vec x)
{
    const vec y = vec_max(x, -x), t = 1.0f / (1.0f + 0.3275911f * y);
    vec p = vec_all(1.061405429f);
    p = p * t - 1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = p * t + 0.254829592f;
    const vec e = 1.0f - p * t * vec_exp(-y * y);
    const veci below = x < vec_all(0.0f);
    return (vec)(((veci)e & ~below) | ((veci)-e & below));
}

static inline vec vec_first(vec x, ix high, float rest)
{
    const veci lane = EACH_LANE, some = lane < (int32_t)high;
    return (vec)(((veci)x & some) | ((veci)vec_all(rest) & ~some));
}

/* The lanes turned by so many: what a lane is added to, or compared with. */
static inline vec vec_turned(vec x, int32_t by)
{
    const veci lane = EACH_LANE;
    return __builtin_shuffle(x, (lane + by) & (LANES - 1));
}

static inline float vec_sum(vec x)
{
#if LANES == 16
    x += vec_turned(x, 8);
#endif
#if LANES >= 8
    x += vec_turned(x, 4);
#endif
    return (x[0] + x[1]) + (x[2] + x[3]);
}

static inline float vec_most(vec x)
{
#if LANES == 16
    x = vec_max(x, vec_turned(x, 8));
#endif
#if LANES >= 8
    x = vec_max(x, vec_turned(x, 4));
#endif
    const float a = x[0] > x[1] ? x[0] : x[1], b = x[2] > x[3] ? x[2] : x[3];
    return a > b ? a : b;
}

static inline void softmax_row(unsigned char *row, ix size)
{
    vec most = vec_all(-INFINITY), sum = vec_all(0.0f);
    for (ix n = 0; n < size; n += LANES) {
        const ix wide = min_ix(LANES, size - n);
        most = vec_max(most, vec_first(vec_load(row + 4 * n, 0, wide), wide, -INFINITY));
    }
    const float top = vec_most(most);
    for (ix n = 0; n < size; n += LANES) {
        const ix wide = min_ix(LANES, size - n);
        const vec x = vec_exp(vec_load(row + 4 * n, 0, wide) - top);
        sum += vec_first(x, wide, 0.0f);
        vec_store(row + 4 * n, x, wide);
    }
    const float over = 1.0f / vec_sum(sum);
    for (ix n = 0; n < size; n += LANES) {
        const ix wide = min_ix(LANES, size - n);
        vec_store(row + 4 * n, vec_load(row + 4 * n, 0, wide) * over, wide);
    }
}

static inline void norm_row(
    unsigned char *row, ix size, float epsilon, const unsigned char *scale, const unsigned char *bias)
{
    vec sum = vec_all(0.0f), square = vec_all(0.0f);
    for (ix n = 0; n < size; n += LANES) sum += vec_load(row + 4 * n, 0, min_ix(LANES, size - n));
    const float mean = vec_sum(sum) / (float)size;
    for (ix n = 0; n < size; n += LANES) {
        const ix wide = min_ix(LANES, size - n);
        const vec x = vec_first(vec_load(row + 4 * n, 0, wide) - mean, wide, 0.0f);
        square += x * x;
    }
    const float spread = 1.0f / sqrtf(vec_sum(square) / (float)size + epsilon);
    for (ix n = 0; n < size; n += LANES) {
        const ix wide = min_ix(LANES, size - n);
        vec x = (vec_load(row + 4 * n, 0, wide) - mean) * spread;
        if (scale != NULL) x *= vec_load(scale + 4 * n, 0, wide);
        if (bias != NULL) x += vec_load(bias + 4 * n, 0, wide);
        vec_store(row + 4 * n, x, wide);
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
