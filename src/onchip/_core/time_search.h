// A search for the nest of one group with the least cost in some room: its time, or its time and a price of its bytes.
// Changes of a nest are kept where they cost little more, less and less so. Its effort counts, not the clock, so that an
// answer does not depend on the machine.
#pragma once
#include <optional>
#include <vector>

#include "clock.h"
#include "time_clock.h"
#include "time_moves.h"

namespace onchip::timed {

struct Found {
    Item nest;
    Times times;
    Bytes scratch = 0;
    std::int64_t walked = 0;  // steps
    Time cost = 0;            // picoseconds, with the price of its bytes
    bool fits = true;
    Time felt = 0;            // the cost, and more for bytes beyond the room
};

struct Answer {
    std::optional<Found> best;
    std::vector<Found> front;  // none of these costs as little as another one in as little scratch; the least cost first
    std::int64_t effort = 0, prices = 0;
};

struct Asks {
    std::vector<Item> starts;
    Bytes room = 0;
    std::int64_t effort = 0;
    std::uint64_t seed = 0;
    int slack = 250'000;  // the part, in millionths, by which a change may cost more at first
    std::int64_t price = 0, of_bytes = 1;  // picoseconds for so many bytes that cross
};

using Progress = std::int64_t;  // the effort so far

class Search {
  public:
    Search(const Problem& problem, const Asks& asks, const Limits<Progress>& limits);
    Answer run();

  private:
    bool price(Item& nest, Time below, std::int64_t steps, std::int64_t dear, Found& into);
    Time cost_of(Bytes bytes) const { return worth_ ? worth_->of(bytes) : 0; }
    void begin(const Item& start, std::vector<Found>& pool);
    Found chain(Found from, std::int64_t effort, int slack, std::int64_t dear);
    std::int64_t beyond(Bytes bytes) const;
    bool fits(Item& nest);
    void note(const Found& found);
    bool over();

    const Problem& problem_;
    const Asks& asks_;
    std::optional<Ratio> worth_;
    std::int64_t dearest_ = 0;
    Clock<Progress> clock_;
    Layout layout_;
    Walk walk_;
    Moves moves_;
    Item tried_;  // its memory is used again
    Answer answer_;
};

}  // namespace onchip::timed
