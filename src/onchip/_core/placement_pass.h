// One pass without search: a schedule in time nearly linear in the edges, so that every limit leaves one.
#pragma once
#include "placement_beam.h"

namespace onchip::placement {

// Problems with more operators or edges than these get a pass before anything is searched.
inline constexpr std::size_t pass_operators = 512, pass_edges = 4096;
inline bool is_large(const Problem& p) {
    std::size_t edges = 0;
    for (const auto& in : p.inputs) edges += in.size();
    return p.operators() > pass_operators || edges > pass_edges;
}

// The operators in the fixed order, or in the order of their ids as far as the data allow; of those done in
// `done` (a State's) none.
std::vector<Id> topological(const Problem& p, const State& from);

// Replaces `best` by a schedule of that order where it is cheaper: what leaves is what costs least for its
// bytes, of equals what is read last (Belady). With the clock out of time all leaves that is not read at once.
// Finds nothing where the order needs more bytes than there are (outputs over inputs only).
void pass(const Problem& p, const std::vector<State>& starts, Clock& clock, Incumbent& best);

}  // namespace onchip::placement
