// When a search has to stop: time, memory, or the caller's wish.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "guard.h"

namespace onchip {

// nodes: the states that a search may look at are spent; width: the narrow search that was asked for is done.
enum class End : std::uint8_t { complete, time, memory, stopped, nodes, width };

// `Progress` is what a search tells its caller.
template <class Progress>
struct Limits {
    double seconds = -1;                        // wall clock; negative means none
    std::size_t memory = std::size_t{2} << 30;  // bytes of what the search stores
    std::function<bool(const Progress&)> stop;  // asked now and then; true ends the search
};

// How often a clock looks.
struct Pace {
    std::uint32_t calls = 64;                // one check in so many reads the time
    std::chrono::milliseconds between{100};  // from one question to the caller to the next, at least
    bool at_once = false;                    // the first question does not wait
};
// For a search that does not ask at every step: its every check looks.
inline constexpr Pace every_time{.calls = 1, .between = {}};

template <class Progress>
class Clock {
  public:
    explicit Clock(const Limits<Progress>& limits, Pace pace = {})
        : limits_(limits), pace_(pace), began_(Steady::now()),
          next_(pace.at_once ? began_ : began_ + pace.between) {}

    // Why it is over, if it is: cheap enough for every step. Out of memory there is still time to run out of.
    // `seldom`: this call comes so seldom that it is worth reading the time at.
    std::optional<End> check(const Progress& progress, std::size_t bytes, bool seldom = false) {
        if (bytes > limits_.memory || guard::memory_is_full.load(std::memory_order_relaxed)) full();
        return late(progress, seldom);
    }
    // The same of a search that stores next to nothing.
    std::optional<End> late(const Progress& progress, bool seldom = false) {
        if (end_ != End::complete && end_ != End::memory) return end_;
        if (++calls_ % pace_.calls == 0 || seldom) look(progress);
        return ended();
    }
    void full() {
        if (end_ == End::complete) end_ = End::memory;
    }
    // Why it is over, without looking.
    std::optional<End> ended() const { return end_ == End::complete ? std::nullopt : std::optional(end_); }

  private:
    using Steady = std::chrono::steady_clock;

    void look(const Progress& progress) {
        const auto now = Steady::now();
        if (limits_.seconds >= 0 && now - began_ > std::chrono::duration<double>(limits_.seconds)) {
            end_ = End::time;
        } else if (limits_.stop && now >= next_) {
            next_ = now + pace_.between;
            if (limits_.stop(progress)) end_ = End::stopped;
        }
    }

    const Limits<Progress>& limits_;
    const Pace pace_;
    Steady::time_point began_, next_;
    End end_ = End::complete;
    std::uint64_t calls_ = 0;
};

}  // namespace onchip
