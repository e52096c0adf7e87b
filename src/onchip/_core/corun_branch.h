// Branch and bound over events for any number of chains and units, depth first.
//
// The choices are those of corun_labels.h: the next group's unit at the end of a group, and who takes a unit that
// becomes free or is reached while free; with `yields` also to leave it to a later one. A chain may be allowed
// only so many changes of unit in a run. What remains is bounded by each chain alone, and by weights on the units: while
// one unit works a ms weighs 1, while several do, weights[u] on each unit u (they sum to 1). On two units a group
// that overlaps is slowed by at least the least slowdown it can meet, so its work weighs min(1, weight * that).
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "corun_labels.h"
#include "corun_play.h"

namespace onchip::corun {

struct Chains {
    Tasks tasks;                     // a row and a task for every group, chain after chain
    std::vector<std::size_t> first;  // of each chain; and the number of tasks
    std::size_t count() const { return first.size() - 1; }
    void check() const;
};

struct BranchOptions {
    bool yields = true;
    std::optional<int> switches;      // changes of unit in a run at most
    bool rates = false;               // 1 / sum of 1 / end instead of the latest end
    double upper = never;             // only what is better is of interest
    std::uint64_t nodes = 1'000'000;  // states looked at, at most
};

struct BranchOutcome {
    double value = never;
    double bound = 0;           // of any schedule, with any number of changes
    std::vector<Start> starts;  // in the order of time; net is the chain
    End end = End::complete;
    std::uint64_t nodes = 0;
};

// The caller is asked often, and told how many states were looked at.
BranchOutcome branch(const Chains& chains, Slowdowns& slow, const BranchOptions& options,
                     const Limits<std::uint64_t>& limits);

}  // namespace onchip::corun
