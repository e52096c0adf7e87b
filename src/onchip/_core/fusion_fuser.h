// The fuser: candidates for groups, their costs at a budget, and the cheapest way to divide the network into them.
#pragma once
#include <memory>
#include <string>

#include "fusion_clock.h"
#include "fusion_cost.h"
#include "fusion_sets.h"

namespace onchip::fusion {

// Which groups are looked at.
struct Space {
    std::size_t largest = 0;    // operators of a group; 0 means any number
    bool whole_fan_out = false; // an operator is with all its readers or with none (Optimus, section 6)
    bool chains = false;        // no operator with several operands or readers in a group (DNNVM)
    bool shared_inputs = true;  // operators that only read the same tensor may be together
    std::vector<Id> order;      // other than empty: only intervals of this order (Efficient-S)
};

// Rules that do not change the result. All are exact; off means more work.
struct Rules {
    bool lazy = true;      // F1: evaluate a group only where its floor could still improve a state
    bool worth = true;     // F2: drop a group that is not cheaper than its operators one by one
    bool monotone = true;  // F3: what contains a group that does not fit does not fit
    bool incumbent = true; // F4: leave a state from which no better partition than the best known is reached
};

// A group of several operators. No cost of it is below `floor`; `alone` is that of its operators one by one.
struct Candidate {
    Id set = 0;
    std::uint32_t operators = 0;
    Bytes floor = 0, alone = 0;
};

struct Partition {
    std::vector<std::vector<Id>> groups;  // in an order in which they can run
    std::vector<Cost> costs;              // of each
    Bytes cost = unlimited, bound = 0;
    End end = End::complete;
    bool complete = false;
    Id misfit = no_id;  // an operator that fits in nothing: no partition
    std::uint64_t candidates = 0, kept = 0, evaluated = 0, states = 0, transitions = 0;
    std::size_t memory = 0;
};

// Every convex set of the problem, connected or not; `saturated` when there are more than 2^63.
struct Count {
    std::uint64_t sets = 0;
    bool saturated = false;
};
Count count_convex(const Problem& problem);

class Fuser {
  public:
    Fuser(Problem problem, Space space);

    // The candidates that fit `budget` (unlimited: all), up to the limits. False when a limit came first.
    bool enumerate(Bytes budget, const Rules& rules, Clock& clock);
    // Bytes that an operator costs alone in a way that the caller knows of; `unlimited`: none.
    void alone(Id op, Bytes cost) { fallback_[op] = cost; }
    // The operators that fit in no band of their own.
    std::vector<Id> misfits(Bytes budget);

    Partition best(Bytes budget, std::size_t largest, const Rules& rules, const Limits& limits);

    Cost cost(std::span<const Id> members, Bytes budget, Bytes limit);
    Bytes least_scratch(std::span<const Id> members, std::int64_t bands);
    const Sets& sets() const { return sets_; }
    const std::vector<Candidate>& candidates() const { return candidates_; }
    const Problem& problem() const { return *problem_; }
    std::size_t memory() const { return sets_.bytes() + candidates_.size() * sizeof(Candidate); }

  private:
    bool allowed(Id op) const;
    void offer(const Hull& hull, Bytes budget, const Rules& rules);
    bool intervals(Bytes budget, const Rules& rules, Clock& clock);
    Cost single(Id op, Bytes budget);

    std::unique_ptr<Problem> problem_;  // the evaluator refers to it
    Space space_;
    Evaluator evaluator_;
    BlockSearch blocks_;
    Sets sets_;                          // every set that was looked at
    std::vector<Candidate> candidates_;  // those that may fit, or that a larger one that fits may contain
    std::vector<char> grows_;            // by set: whether it is among them
    Bytes enumerated_for_ = -1;
    bool all_ = false;
    std::vector<Bytes> fallback_;
    std::vector<Id> scratch_;
};

}  // namespace onchip::fusion
