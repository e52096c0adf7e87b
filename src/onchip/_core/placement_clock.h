// When a search has to stop: time, memory, or the caller's wish.
#pragma once
#include <chrono>
#include <optional>

#include "guard.h"
#include "placement_problem.h"

namespace onchip::placement {

class Clock {
  public:
    explicit Clock(const Limits& limits) : limits_(limits), began_(now()), next_poll_(began_ + poll_every) {}

    // Cheap enough for every expansion; the caller is asked a few times a second. `seldom`: this call comes
    // so seldom that it is worth reading the time at.
    std::optional<End> check(const Progress& progress, std::size_t bytes, bool seldom = false) {
        if (end_) return end_;
        if (bytes > limits_.memory || guard::memory_is_full.load(std::memory_order_relaxed)) return end_ = End::memory;
        if (++calls_ % 64 != 0 && !seldom) return std::nullopt;
        const auto at = now();
        if (limits_.seconds >= 0 && at - began_ > std::chrono::duration<double>(limits_.seconds))
            return end_ = End::time;
        if (limits_.stop && at >= next_poll_) {
            next_poll_ = at + poll_every;
            if (limits_.stop(progress)) return end_ = End::stopped;
        }
        return std::nullopt;
    }

    // Whether it has ended, without looking.
    bool over() const { return end_.has_value(); }

  private:
    using Steady = std::chrono::steady_clock;
    static Steady::time_point now() { return Steady::now(); }
    static constexpr auto poll_every = std::chrono::milliseconds(100);

    const Limits& limits_;
    Steady::time_point began_, next_poll_;
    std::optional<End> end_;
    std::uint64_t calls_ = 0;
};

}  // namespace onchip::placement
