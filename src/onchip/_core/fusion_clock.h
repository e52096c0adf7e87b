// When a fusion search has to stop.
#pragma once
#include <tuple>

#include "clock.h"
#include "fusion_problem.h"

namespace onchip::fusion {

struct Progress {
    std::uint64_t groups = 0, states = 0;

    auto figures() const { return std::tuple(groups, states); }
};

struct Limits : onchip::Limits<Progress> {
    std::size_t groups = 0, states = 0;  // at most so many of each; 0 means no limit
};

// Groups beyond their limit are as good as no memory for more.
class Clock : public onchip::Clock<Progress> {
  public:
    explicit Clock(const Limits& limits) : onchip::Clock<Progress>(limits, {.calls = 32}), groups_(limits.groups) {}

    std::optional<End> check(const Progress& progress, std::size_t bytes, bool seldom = false) {
        if (groups_ && progress.groups > groups_) full();
        return onchip::Clock<Progress>::check(progress, bytes, seldom);
    }

  private:
    const std::size_t groups_;
};

}  // namespace onchip::fusion
