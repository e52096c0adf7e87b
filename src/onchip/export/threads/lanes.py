"""The C of vectors: of as many floats as the widest of the machine that it is compiled for have."""

from __future__ import annotations

__all__ = ["VECTORS"]

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
#if LANES != 4 && LANES != 8 && LANES != 16
#error "LANES is 4, 8 or 16"
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

/* The lanes from `low` to `high` of a vector. */
struct lanes {
    ix low, high;
#if LANES == 16 && defined(__AVX512F__)
    __mmask16 some;
#else
    veci some;
#endif
};

static inline struct lanes lanes_of(ix low, ix high)
{
#if LANES == 16 && defined(__AVX512F__)
    return (struct lanes){low, high, (__mmask16)(((1u << high) - 1u) & ~((1u << low) - 1u))};
#else
    const veci lane = EACH_LANE;
    return (struct lanes){low, high, (lane >= (int32_t)low) & (lane < (int32_t)high)};
#endif
}

static inline vec vec_whole(const unsigned char *from)
{
    vec x;
    memcpy(&x, from, sizeof x);
    return x;
}

/* Some lanes of what begins at `from`; 0 in the others. */
static inline vec vec_load(const unsigned char *from, struct lanes of)
{
#if LANES == 16 && defined(__AVX512F__)
    return (vec)_mm512_maskz_loadu_ps(of.some, from);
#else
    if (__builtin_constant_p(of.high) && of.low <= 0 && of.high >= LANES) return vec_whole(from);
#if LANES == 8 && defined(__AVX__)
    return (vec)_mm256_maskload_ps((const float *)(const void *)from, (__m256i)of.some);
#else
    if (of.low <= 0 && of.high >= LANES) return vec_whole(from);
    vec x = {0};
    for (ix l = of.low; l < of.high; ++l) memcpy((float *)&x + l, from + 4 * l, 4);
    return x;
#endif
#endif
}

static inline vec vec_apart(const unsigned char *from, ix stride, struct lanes of)
{
    vec x = {0};
    for (ix l = of.low; l < of.high; ++l) memcpy((float *)&x + l, from + stride * l, 4);
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
    __m128 part = _mm256_castps256_ps128((__m256)x);
    if (high & 4) {
        _mm_storeu_ps((float *)(void *)to, part);
        part = _mm256_extractf128_ps((__m256)x, 1);
        to += 16;
    }
    if (high & 2) {
        _mm_storel_pi((__m64 *)(void *)to, part);
        part = _mm_movehl_ps(part, part);
        to += 8;
    }
    if (high & 1) _mm_store_ss((float *)(void *)to, part);
#else
    for (ix l = 0; l < high; ++l) memcpy(to + 4 * l, (const float *)&x + l, 4);
#endif
#endif
}

/* The same in a ring of `size` floats along the lanes, of which `rest` are left from `from` on. */
static inline vec vec_load_ring(const unsigned char *from, struct lanes of, ix rest, ix size)
{
    if (of.high <= rest) return vec_load(from, of);
    if (of.low >= rest) return vec_load(from - 4 * size, of);
    return (vec)((veci)vec_load(from, lanes_of(of.low, rest))
                 | (veci)vec_load(from - 4 * size, lanes_of(rest, of.high)));
}

static inline void vec_store_ring(unsigned char *to, vec x, ix high, ix rest, ix size)
{
    vec_store(to, x, high < rest ? high : rest);
    for (ix l = rest; l < high; ++l) memcpy(to + 4 * (l - size), (const float *)&x + l, 4);
}

/* A vector of each of `count` columns of rows that lie `stride` apart, one behind the other to `to`. */
static inline void vec_turn(
    unsigned char *to, const unsigned char *from, ix stride, ix count, struct lanes of)
{
    const veci lane = EACH_LANE;
    ix n = 0;
    for (; of.high >= LANES && n + LANES <= count; n += LANES) {
        vec rows[LANES];
#pragma GCC unroll 16
        for (int l = 0; l < LANES; ++l) rows[l] = vec_whole(from + stride * l + 4 * n);
        /* Squares of 1, 2, 4, ... beside the diagonal change places. */
#pragma GCC unroll 4
        for (int by = 1; by < LANES; by *= 2) {
            const veci right = (lane & by) != 0;
#pragma GCC unroll 16
            for (int l = 0; l < LANES; ++l) {
                if (l & by) continue;
                const vec a = rows[l], b = rows[l + by];
                rows[l] = __builtin_shuffle(a, b, (right & (LANES + lane - by)) | (~right & lane));
                rows[l + by] = __builtin_shuffle(a, b, (right & (LANES + lane)) | (~right & (lane + by)));
            }
        }
#pragma GCC unroll 16
        for (int l = 0; l < LANES; ++l) vec_store(to + 4 * LANES * (n + l), rows[l], LANES);
    }
    for (; n < count; ++n) vec_store(to + 4 * LANES * n, vec_apart(from + 4 * n, stride, of), LANES);
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

/* As many lanes as a row goes on for. */
static inline vec vec_next(const unsigned char *from, ix wide)
{
    return wide >= LANES ? vec_whole(from) : vec_load(from, lanes_of(0, wide));
}

static inline void softmax_row(unsigned char *row, ix size)
{
    vec most = vec_all(-INFINITY), sum = vec_all(0.0f);
    for (ix n = 0; n < size; n += LANES) {
        const ix wide = min_ix(LANES, size - n);
        most = vec_max(most, vec_first(vec_next(row + 4 * n, wide), wide, -INFINITY));
    }
    const float top = vec_most(most);
    for (ix n = 0; n < size; n += LANES) {
        const ix wide = min_ix(LANES, size - n);
        const vec x = vec_exp(vec_next(row + 4 * n, wide) - top);
        sum += vec_first(x, wide, 0.0f);
        vec_store(row + 4 * n, x, wide);
    }
    const float over = 1.0f / vec_sum(sum);
    for (ix n = 0; n < size; n += LANES) {
        const ix wide = min_ix(LANES, size - n);
        vec_store(row + 4 * n, vec_next(row + 4 * n, wide) * over, wide);
    }
}

static inline void norm_row(
    unsigned char *row, ix size, float epsilon, const unsigned char *scale, const unsigned char *bias)
{
    vec sum = vec_all(0.0f), square = vec_all(0.0f);
    for (ix n = 0; n < size; n += LANES) sum += vec_next(row + 4 * n, min_ix(LANES, size - n));
    const float mean = vec_sum(sum) / (float)size;
    for (ix n = 0; n < size; n += LANES) {
        const ix wide = min_ix(LANES, size - n);
        const vec x = vec_first(vec_next(row + 4 * n, wide) - mean, wide, 0.0f);
        square += x * x;
    }
    const float spread = 1.0f / sqrtf(vec_sum(square) / (float)size + epsilon);
    for (ix n = 0; n < size; n += LANES) {
        const ix wide = min_ix(LANES, size - n);
        vec x = (vec_next(row + 4 * n, wide) - mean) * spread;
        if (scale != NULL) x *= vec_next(scale + 4 * n, wide);
        if (bias != NULL) x += vec_next(bias + 4 * n, wide);
        vec_store(row + 4 * n, x, wide);
    }
}
"""
