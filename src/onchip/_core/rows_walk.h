// A walk through the states of a graph of rows: steps within a limit, free steps, and moves that drive one operator.
#pragma once
#include <vector>

#include "rows_graph.h"

namespace onchip::rows {

struct Rules {
    bool free_steps = true;
    bool valley = true;
    bool cuts = true;
};

class Walk {
  public:
    // From `made` towards `to`, both legal states.
    Walk(const Graph& graph, const Rules& rules, Made made, const Made& to);

    const Made& made() const { return made_; }
    Bytes live() const { return live_; }
    Bytes peak() const { return peak_; }
    const std::vector<Id>& taken() const { return taken_; }
    bool done() const { return left_ == 0; }
    std::int64_t left() const { return left_; }
    bool open(std::size_t i) const { return made_[i] < (*to_)[i]; }

    void begin(Bytes peak) {
        peak_ = peak;
        taken_.clear();
    }
    // One step, which must be ready; false if it needs more than the limit. Then steps that are free at `free`, or
    // at what has been needed so far.
    bool step(std::size_t i, Bytes limit, Bytes free);
    // The operator to its end or until no more is alive than before, with what it needs; operands in either order.
    // `one`: one row of it.
    bool drive(std::size_t i, bool backwards, Bytes limit, Bytes free, bool one = false);
    // True if the last drive could have gone another way backwards.
    bool chose() const { return chose_; }
    // Every step that adds no bytes and needs no more than `free`, or than has been needed.
    void take_free(Bytes free);

  private:
    bool pull(std::size_t i, bool backwards, Bytes limit, Bytes free);
    void apply(std::size_t i, const Graph::Cost& cost);
    void free_among(const std::vector<Id>& some, Bytes free);

    const Graph* graph_;
    const Rules* rules_;
    const Made* to_;
    Made made_;
    Bytes live_, peak_ = 0;
    std::int64_t left_ = 0;
    std::vector<Id> taken_;
    std::vector<Id> dear_;  // steps that would be free but need too much
    bool chose_ = false;
};

}  // namespace onchip::rows
