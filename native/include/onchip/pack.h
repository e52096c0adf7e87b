/* onchip: addresses for buffers with fixed live ranges, for C99 and C++.
 *
 * Link with the static library `onchip` (native/CMakeLists.txt) and the C++ standard library. No function keeps
 * anything between calls, so threads may call at the same time. Times are integers from -2^60 to 2^60, sizes and
 * offsets bytes. All sizes together, rounded up to their alignments, are at most 2^60.
 */
#ifndef ONCHIP_PACK_H
#define ONCHIP_PACK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows when a structure or a function changes; `onchip_abi` is the one of the library. */
#define ONCHIP_ABI 1
int onchip_abi(void);

/* A part [begin, end) of a live range in which only bytes [low, high) of the buffer are live; none if low == high. */
typedef struct onchip_gap {
    int64_t begin, end;
    int64_t low, high;
} onchip_gap;

/* A buffer that is live in the half-open range [begin, end), but for its gaps, which ascend and do not overlap. */
typedef struct onchip_buffer {
    int64_t begin, end;
    int64_t size;      /* 1 to 2^48 */
    int64_t alignment; /* its offset is a multiple of this; 1: any */
    int64_t offset;    /* where it must be; -1: anywhere */
    const onchip_gap *gaps;
    size_t gap_count;
} onchip_buffer;

/* Limits of a search; a null pointer stands for none. `stop` is called a few times a second, unless it is null; a
 * result other than 0 ends the search. */
typedef struct onchip_limits {
    double seconds; /* of wall clock; negative: no limit */
    int64_t nodes;  /* of the search; negative: no limit */
    uint64_t seed;
    int (*stop)(void *context, int64_t nodes);
    void *context;
} onchip_limits;

typedef enum onchip_status {
    ONCHIP_PACKED = 0,
    ONCHIP_INFEASIBLE = 1, /* proved: no offsets within the capacity */
    ONCHIP_UNKNOWN = 2,    /* a limit was reached */
    ONCHIP_INVALID = 3,    /* an argument that the comments above do not allow */
    ONCHIP_NO_MEMORY = 4
} onchip_status;

/* The status in a few English words. */
const char *onchip_status_text(onchip_status status);

/* Writes one offset a buffer, in [0, capacity), so that buffers that are live at the same time share no byte, and
 * returns ONCHIP_PACKED; else `offsets` stays as it is. The search is complete: without limits the answer is never
 * ONCHIP_UNKNOWN, but for instances with millions of pairs that are live together and for very deep searches. */
onchip_status onchip_pack(const onchip_buffer *buffers, size_t count, int64_t capacity, const onchip_limits *limits,
                          int64_t *offsets);

/* Writes offsets of the least extent that was found within the limits, the extent (one past the last byte used), and a
 * capacity below which no packing exists: equal to the extent if that is proved to be the least. ONCHIP_INFEASIBLE if
 * fixed buffers overlap. `extent` and `lower_bound` may be null. */
onchip_status onchip_pack_lowest(const onchip_buffer *buffers, size_t count, const onchip_limits *limits,
                                 int64_t *offsets, int64_t *extent, int64_t *lower_bound);

/* Whether these offsets are a packing: 1 or 0; 0 for arguments that are not allowed, too. */
int onchip_is_packing(const onchip_buffer *buffers, size_t count, const int64_t *offsets, int64_t capacity);

#ifdef __cplusplus
}
#endif
#endif
