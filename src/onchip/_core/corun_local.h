// Local search over mappings and orders, for any number of networks and units.
//
// A candidate is a unit for every group of one frame and a sequence of those groups, from which every unit takes
// its order; a sequence that keeps each network's own order can always be run. A stream of frames repeats it,
// each network by its `lag` frames behind. Moves give a stretch of groups another unit, shift where a network
// changes its unit, and let a group go earlier or later; worse candidates are taken ever more seldom.
#pragma once
#include <cstdint>
#include <tuple>

#include "clock.h"
#include "corun_play.h"

namespace onchip::corun {

// What the timeline's figures are made of: `last[job][frame]` is the task that ends it.
struct Aim {
    enum Kind : std::uint8_t { latency, throughput, rates } kind = latency;
    std::vector<std::vector<Task>> last;
    std::vector<std::vector<std::uint32_t>> firsts;  // jobs by whose end a frame is taken in, per job
    bool pipelined = false;

    double value(const std::vector<double>& ends) const;  // ms, less is better
};

struct Candidate {
    std::vector<std::uint8_t> unit;       // by token, a group of one frame
    std::vector<std::uint32_t> sequence;  // of tokens
};

struct Stream {
    std::vector<std::vector<Task>> task;  // [token][frame]
    std::vector<std::uint32_t> chain;     // tokens of one chain keep their order in any sequence
    std::vector<std::uint32_t> lag;       // frames behind, by token
};

struct LocalProgress {
    std::uint64_t tries = 0;
    double best = never;  // so far

    auto figures() const { return std::tuple(tries, best); }
};

struct LocalOutcome {
    Candidate best;
    Order order;  // in which the units run its tasks
    double value = never;
    std::uint64_t tries = 0;
    End end = End::complete;  // also when all tries are done
};

// Plays `tries` schedules at most, and asks the caller often.
LocalOutcome improve(const Tasks& tasks, Slowdowns& slow, const Stream& stream, const Aim& aim,
                     const std::vector<Candidate>& starts, std::uint64_t tries, std::uint64_t seed,
                     const Limits<LocalProgress>& limits);

}  // namespace onchip::corun
