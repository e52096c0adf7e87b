// The schedules of two networks on shared units, label by label.
//
// A label is a moment at which something has just begun: what each network is doing (moving to a unit, waiting
// for one, running), how much of it is left, and the time. From there the next event is forced, and at an event
// the only choices are the next group's unit and, where both want one unit, who goes first. With `yields` a
// network may also leave a free unit to the other one's next group on it: then every order of the groups on the
// units is reached, else only the non-delay ones. Labels are kept by how far both networks are, level by level.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "clock.h"
#include "corun_bound.h"

namespace onchip::corun {

// What is least: the later end; or 1 / (frames of A / end of A + frames of B / end of B), in ms. With `frames` 0
// it is the makespan.
struct Goal {
    double frames[2] = {0, 0};
    double value(double end_a, double end_b) const;
    // Least value when the ends are at least so late, and the later one at least `both`.
    double bound(double end_a, double end_b, double both) const;
};

struct Rules {
    bool dominance = true;  // earlier with less left is better: not strictly safe, see docs
    bool bounds = true;     // drop what cannot be better than the best known
};

struct Start {
    std::uint32_t net, group, unit;
};

struct Outcome {
    double value = never;       // of `starts`; never when nothing better than `upper` was found
    double bound = 0;           // of any schedule at all, by weights on kinds of time
    std::vector<Start> starts;  // in the order of time
    End end = End::complete;
    std::uint64_t labels = 0;   // kept
    std::uint64_t made = 0;
};

// `width`: labels kept a level, best bound first; 0: all. The caller is told how many labels are kept.
Outcome best_pair(const Pair& pair, const Bounds& bounds, const Goal& goal, double upper, bool yields,
                  const Rules& rules, std::size_t width, const Limits<std::uint64_t>& limits);

}  // namespace onchip::corun
