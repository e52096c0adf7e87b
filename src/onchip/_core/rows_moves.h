// The search over moves: plunges, which never turn back, and best first.
#pragma once
#include <optional>
#include <vector>

#include "clock.h"
#include "rows_walk.h"

namespace onchip::rows {

struct Path {
    Bytes peak = 0;
    std::vector<Id> steps;
};

class Moves {
  public:
    Moves(const Graph& graph, const Rules& rules, const Made& from, const Made& to, Clock<std::int64_t>& clock);

    // Rows when the last operators ask for them: a path without any limit.
    Path pulled(bool backwards) const;
    // Down where a way down is, else the move that leaves least; none where no move stays within the limit.
    // `late`: of several the last in the file's order.
    std::optional<Path> plunge(Bytes limit, bool late) const;
    // A path below `best`, if there is one that the search finds; `bound` is what every path needs.
    // With a `bound` of one byte less than `best` it is a search for a path within the bound, whatever its peak.
    // `fine`: moves of one row.
    std::optional<Path> best_first(Bytes best, Bytes bound, std::int64_t most, bool fine);

    std::int64_t states() const { return states_; }

  private:
    Bytes peak_of(const std::vector<Id>& steps) const;
    bool descend(Walk& walk, Bytes limit, bool late, std::vector<Id>& path, std::optional<Walk>* least) const;

    const Graph& graph_;
    const Rules& rules_;
    const Made& from_;
    const Made& to_;
    Clock<std::int64_t>& clock_;
    std::int64_t states_ = 0;
};

}  // namespace onchip::rows
