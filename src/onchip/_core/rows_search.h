// Orders of rows of small peaks: plunges, best first over moves, and the complete search of small graphs.
#pragma once
#include <vector>

#include "clock.h"
#include "rows_cut.h"
#include "rows_walk.h"

namespace onchip::rows {

struct Found {
    Bytes peak = 0;
    Bytes bound = 0;
    bool complete = false;  // every order was tried: the bound is the peak
    std::int64_t states = 0;
    int binding = -1;  // the operator and its step whose bound is the greatest
    int binding_step = -1;
    std::vector<Id> schedule;
};

// `most_states` of the complete search, `most_moves` states that the search over moves opens. With `below` other
// than 0 only an order of fewer bytes is wanted: the search ends early where none is found soon.
Found search(const Graph& graph, const Rules& rules, std::int64_t most_states, std::int64_t most_moves,
             Bytes below, const Limits<std::int64_t>& limits);

}  // namespace onchip::rows
