// A beam over executed-set sizes: no proof, but a whole schedule soon, and so an incumbent for the exact search.
#pragma once
#include "placement_safe.h"

namespace onchip::placement {

struct Incumbent {
    std::vector<Step> steps;
    Bytes paid = -1;  // -1: none
    std::size_t start = 0;  // number of the start it came from
    State last;

    bool beats(Bytes other) const { return paid >= 0 && paid <= other; }
};

// Replaces `best` when the beam of this width finds a cheaper schedule. `seed` other than 0: random ties.
void beam(const Problem& p, const std::vector<State>& starts, const Rules& rules, std::size_t width, Clock& clock, Progress& progress,
          std::uint64_t seed, Incumbent& best);

}  // namespace onchip::placement
