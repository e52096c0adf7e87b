// When a fusion search has to stop: time, memory, or the caller's wish.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "fusion_problem.h"

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

    std::optional<End> check(const Progress& progress, std::size_t bytes) {
        if (end_) return end_;
        if (bytes > limits_.memory || (limits_.groups && progress.groups > limits_.groups)) return end_ = End::memory;
        if (++calls_ % 32 != 0) return std::nullopt;
        const auto at = Steady::now();
        if (limits_.seconds >= 0 && at - began_ > std::chrono::duration<double>(limits_.seconds))
            return end_ = End::time;
        if (limits_.stop && at >= next_poll_) {
            next_poll_ = at + poll_every;
            if (limits_.stop(progress)) return end_ = End::stopped;
        }
        return std::nullopt;
    }
    std::optional<End> ended() const { return end_; }

  private:
    using Steady = std::chrono::steady_clock;
    static constexpr auto poll_every = std::chrono::milliseconds(100);

    const Limits& limits_;
    Steady::time_point began_, next_poll_;
    std::optional<End> end_;
    std::uint64_t calls_ = 0;
};

}  // namespace onchip::fusion
