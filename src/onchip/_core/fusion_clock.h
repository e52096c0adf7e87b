// When a fusion search has to stop: time, memory, or the caller's wish.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "fusion_problem.h"
#include "guard.h"

namespace onchip::fusion {

enum class End : std::uint8_t { complete, time, memory, stopped };

struct Progress {
    std::uint64_t groups = 0, states = 0;
};

struct Limits {
    double seconds = -1;                        // wall clock; negative means none
    std::size_t memory = std::size_t{2} << 30;  // bytes of groups and states
    std::size_t groups = 0, states = 0;         // at most so many of each; 0 means no limit
    std::function<bool(const Progress&)> stop;  // polled a few times a second; true ends the search
};

class Clock {
  public:
    explicit Clock(const Limits& limits) : limits_(limits), began_(Steady::now()), next_poll_(began_ + poll_every) {}

    // Why it is over, if it is. Out of memory there is still time to run out of.
    std::optional<End> check(const Progress& progress, std::size_t bytes) {
        if (end_ == End::time || end_ == End::stopped) return end_;
        if (bytes > limits_.memory || guard::memory_is_full.load(std::memory_order_relaxed) || (limits_.groups && progress.groups > limits_.groups)) end_ = End::memory;
        if (++calls_ % 32 != 0) return ended();
        const auto at = Steady::now();
        if (limits_.seconds >= 0 && at - began_ > std::chrono::duration<double>(limits_.seconds))
            end_ = End::time;
        if (limits_.stop && at >= next_poll_ && end_ != End::time) {
            next_poll_ = at + poll_every;
            if (limits_.stop(progress)) end_ = End::stopped;
        }
        return ended();
    }
    std::optional<End> ended() const { return end_ == End::complete ? std::nullopt : std::optional(end_); }

  private:
    using Steady = std::chrono::steady_clock;
    static constexpr auto poll_every = std::chrono::milliseconds(100);

    const Limits& limits_;
    Steady::time_point began_, next_poll_;
    End end_ = End::complete;
    std::uint64_t calls_ = 0;
};

}  // namespace onchip::fusion
