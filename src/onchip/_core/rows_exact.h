// The complete search: every step a choice.
#pragma once
#include <optional>

#include "clock.h"
#include "rows_moves.h"

namespace onchip::rows {

struct Exact {
    Bytes bound = 0;  // no path needs less
    std::optional<Path> path;  // one that needs `bound`, if there is one below `best`
    bool complete = false;
    std::int64_t states = 0;
};

// States in the order of what they need, from `from` to `to`; `best` is what a known path needs. Every state before
// which the search ends needs `bound` at least.
Exact exact(const Graph& graph, const Rules& rules, const Made& from, const Made& to, Bytes best, Bytes bound,
            std::int64_t most, Clock<std::int64_t>& clock);

}  // namespace onchip::rows
