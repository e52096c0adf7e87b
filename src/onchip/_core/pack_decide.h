// Packs by one method after the other: a bound, the quick heuristics, the complete search, repair of first fit.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "clock.h"
#include "pack_instance.h"
#include "pack_search.h"

namespace onchip::pack {

enum class Method : std::uint8_t { bound, greedy, search, repair };

// What may be tried, and for how long; the search's nodes are counted over all of its runs.
struct Effort {
    bool greedy = true, search = true, repair = true;
    std::optional<std::int64_t> nodes;       // of the search in all
    std::optional<std::int64_t> last_nodes;  // of its last run
    double share = 1;                        // of the time limit, until the end of the search's last run
};

struct Decision {
    Outcome status = Outcome::unknown;
    std::vector<std::int64_t> offsets;  // in bytes, in the caller's order; only if packed
    std::int64_t nodes = 0;
    Method method = Method::bound;  // what decided it, or was tried last
};

// A lower bound of the capacity in bytes: the most bytes live at once, and the ends of fixed buffers.
std::int64_t most_live(std::span<const Buffer> buffers);

// Whether these offsets are a packing within `capacity` bytes.
bool is_packing(std::span<const Buffer> buffers, std::span<const std::int64_t> offsets, std::int64_t capacity);

// Offsets in [0, capacity), a proof that there are none, or neither. The limits hear of nodes, and of tries of repair.
Decision decide(std::span<const Buffer> buffers, std::int64_t capacity, const Rules& rules, std::uint64_t seed,
                const Effort& effort, const Limits<std::int64_t>& limits);

// The lowest packing within the limits, and a capacity below which there is none: the load first, then halving.
struct Lowest {
    std::vector<std::int64_t> offsets;
    std::int64_t extent = 0, bound = 0;
};
Lowest minimise(std::span<const Buffer> buffers, const Rules& rules, std::uint64_t seed, const Limits<std::int64_t>& limits);

}  // namespace onchip::pack
