// Two chains of groups that share processing units: what the exact search and its bounds read.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace onchip::corun {

inline constexpr double never = std::numeric_limits<double>::infinity();

// One network. `work` is a group's time alone in ms (never: not supported), at [group * units + unit]; `move`
// what a change of unit after that group delays the network, at [(group * units + unit) * units + next unit].
struct Chain {
    std::size_t groups = 0;
    std::vector<double> work, move;
};

// `slow[n]` is the slowdown (>= 1) of network n's group while the other network's runs, at
// [(group of 0 * units + unit) * (groups of 1 * units) + group of 1 * units + unit].
struct Pair {
    std::size_t units = 0;
    Chain net[2];
    std::vector<double> slow[2];

    std::size_t places(std::size_t n) const { return net[n].groups * units; }
    // Throws std::invalid_argument where a length or a figure cannot be.
    void check() const;
};

// What a network is doing. Ids are dense: place * 3 + phase, and `done` after the last place.
enum Phase : std::size_t { moving = 0, waiting = 1, running = 2 };

inline std::size_t activity(std::size_t place, Phase phase) { return place * 3 + phase; }

}  // namespace onchip::corun
