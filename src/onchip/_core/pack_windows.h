// Buffers that keep a part of themselves in their gaps: MiniMalloc's gap windows, by its rule for pairs.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "clock.h"
#include "pack_decide.h"
#include "pack_instance.h"

namespace onchip::pack {

// A time in which only bytes [low, high) of the buffer are live; none if they are equal.
struct Gap {
    std::int64_t begin, end;
    std::int64_t low = 0, high = 0;
    bool keeps() const { return low < high; }
};

// Gaps are ascending, disjoint and within [begin, end).
struct Piecewise {
    std::int64_t begin, end, size;
    std::int64_t alignment = 1;
    std::int64_t offset = -1;  // where it must be; -1: anywhere
    std::vector<Gap> gaps;
};

// Of two buffers that are live at one time, one lies above the other: by so much that they are apart whenever both are
// live. Whether offsets in [0, capacity) are so.
bool is_packing(std::span<const Piecewise> buffers, std::span<const std::int64_t> offsets, std::int64_t capacity);

// Offsets, a proof that there are none, or neither.
Decision decide(std::span<const Piecewise> buffers, std::int64_t capacity, std::uint64_t seed, const Effort& effort,
                const Limits<std::int64_t>& limits);

// The lowest packing within the limits; see the other `minimise`.
Lowest minimise(std::span<const Piecewise> buffers, std::uint64_t seed, const Limits<std::int64_t>& limits);

}  // namespace onchip::pack
