// The least bytes by room, as far as that is known.
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "fusion_problem.h"

namespace onchip::joint {

using fusion::Bytes;
using fusion::Id;
using fusion::no_id;
using fusion::unlimited;

// The least bytes by room: a falling step function, known in parts.
class Stairs {
  public:
    // The least bytes in `room`, where that is known.
    std::optional<Bytes> at(Bytes room) const;
    // The least room that is known to move no more than `room` does.
    Bytes least_room(Bytes room) const;
    // In rooms from `needs` to `room` it is `cost` (`unlimited`: nothing fits in `room` or less). `mark` says which way it
    // was that costs so much in `needs` bytes.
    void learn(Bytes room, Bytes cost, Bytes needs, std::size_t mark = 0);
    std::size_t mark(Bytes room) const;
    // In `room` or less it is not below `cost`.
    void learn_bound(Bytes room, Bytes cost) { bounds_.emplace_back(room, cost); }
    bool below(Bytes room, Bytes limit) const;
    // In `room` or less it is not below `cost`, whatever was cut off.
    void learn_floor(Bytes room, Bytes cost);
    Bytes floor(Bytes room) const;
    bool cut = false;  // some of it may be too much
    // Ask again what was cut off: what was found stays for `fitting`, and floors stay.
    void reopen();

    // In rooms from `from` to `to`.
    struct Part {
        Bytes from, to, cost;
        std::size_t mark;
    };
    // What is known to cost least of all that fits in `room`.
    std::optional<Part> fitting(Bytes room) const;

  private:
    const Part* cheapest(Bytes room) const;
    std::vector<Part> parts_;  // disjoint, where no search was cut off
    std::vector<Part> before_;  // before the stairs were reopened
    std::vector<std::pair<Bytes, Bytes>> bounds_, floors_;
    Bytes too_small_ = -1;     // in this room and less nothing fits
};

}  // namespace onchip::joint
