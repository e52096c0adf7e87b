// Instances too large for the search: the measure of their size, and near-linear addresses for them.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "pack_instance.h"

namespace onchip::pack {

// The search and its heuristics list, for every buffer, the buffers that are live with it: memory and time in
// proportion to the overlaps, of which 100,000 buffers have up to five billion. This is the most pairs of buffers
// live together, plus buffers at the moments at which the live set changes.
inline constexpr std::int64_t most_overlaps = std::int64_t{1} << 22;

// Whether the lists that the search works on would be longer than `most`.
bool is_large(std::span<const Buffer> buffers, std::int64_t most = most_overlaps);

// Offsets in bytes, in the caller's order, and one past the highest byte used.
struct Addresses {
    std::vector<std::int64_t> offsets;
    std::int64_t extent = 0;
};

// Best fit, as an allocator has it, in the order of beginnings and, in reverse, of ends; the lower one of both.
// Fixed buffers, which must not overlap, keep their offsets, all others lie above the last of them and keep their
// bytes in their gaps, too.
Addresses allocate(std::span<const Buffer> buffers);

}  // namespace onchip::pack
