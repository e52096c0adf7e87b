// Quick packings, without any proof: first fit and best fit in several orders, and first fit repaired.
#pragma once
#include <cstdint>
#include <vector>

#include "clock.h"
#include "pack_instance.h"

namespace onchip::pack {

struct Greedy {
    std::vector<std::int64_t> offsets;  // in units, by the instance's numbering
    std::int64_t extent = INT64_MAX;    // one past the highest unit used
};

// The lowest packing among the heuristics; stops at the first whose extent is at most `enough`.
Greedy pack_greedily(const Instance& instance, std::int64_t enough);

// Squeaky-wheel repair of first fit: whatever ends above the capacity is placed earlier the next time. Good
// where there is slack in most places and a search would get lost in it. The clock hears of tries.
Greedy pack_by_blame(const Instance& instance, int tries, std::uint64_t seed, Clock<std::int64_t>& clock);

}  // namespace onchip::pack
