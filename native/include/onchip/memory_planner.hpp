// The exact packer behind the signature of a static memory planner, as MLIR's `bestFitMemoryPlanner` has it: any
// struct with `sizeInBytes`, `alignment`, `timeStart` and `timeEnd` (half-open), offsets in the order of the input, no
// capacity, never a failure. C++17; link with the static library `onchip`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "onchip/pack.h"

namespace onchip {

// Returns offsets of the least extent that is found within the limits, as an `Offsets` (a vector of 64-bit integers).
// They are multiples of their own alignment in an arena whose beginning is aligned to all of them, the
// `arenaAlignment`. What is never live, or has no bytes, lies at 0.
template <class Offsets, class Allocations>
Offsets exactMemoryPlanner(std::int64_t /* arenaAlignment */, const Allocations& allocations,
                           const onchip_limits* limits = nullptr) {
    std::vector<onchip_buffer> buffers;
    std::vector<std::size_t> placed;
    std::size_t count = 0;
    for (const auto& a : allocations) {
        if (a.sizeInBytes > 0 && a.timeStart < a.timeEnd) {
            buffers.push_back({a.timeStart, a.timeEnd, a.sizeInBytes, a.alignment, -1, nullptr, 0});
            placed.push_back(count);
        }
        ++count;
    }
    std::vector<std::int64_t> found(buffers.size());
    if (onchip_pack_lowest(buffers.data(), buffers.size(), limits, found.data(), nullptr, nullptr) != ONCHIP_PACKED) {
        std::int64_t top = 0;  // one after the other: always right
        for (std::size_t i = 0; i < buffers.size(); ++i) {
            top = (top + buffers[i].alignment - 1) / buffers[i].alignment * buffers[i].alignment;
            found[i] = std::exchange(top, top + buffers[i].size);
        }
    }
    Offsets offsets;
    for (std::size_t i = 0, next = 0; i < count; ++i) {
        const bool here = next < placed.size() && placed[next] == i;
        offsets.push_back(here ? found[next] : 0);
        if (here) ++next;
    }
    return offsets;
}

}  // namespace onchip
