// Quick packings: first fit and best fit in several orders.
#pragma once
#include <cstdint>
#include <vector>

#include "pack_instance.h"

namespace onchip::pack {

struct Greedy {
    std::vector<std::int64_t> offsets;  // in units, by the instance's numbering
    std::int64_t extent = INT64_MAX;    // one past the highest unit used
};

// The lowest packing among the heuristics; stops at the first whose extent is at most `enough`.
Greedy pack_greedily(const Instance& instance, std::int64_t enough);

}  // namespace onchip::pack
