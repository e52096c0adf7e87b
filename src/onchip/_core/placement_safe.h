// Safe moves (R2, R2+, R2* of docs/placement-proofs.md): operators that may run now, without branching.
#pragma once
#include "placement_state.h"

namespace onchip::placement {

// Finds safe moves and makes them. One object serves a whole search; it only keeps its working memory.
class SafeMoves {
  public:
    // `peak`: the peak search's rule (R4, R4*): nothing is ever evicted, so only sizes are compared.
    // With a clock moves end when it does: then the state that `close` leaves is of no use.
    SafeMoves(const Problem& p, const Rules& rules, bool peak, Clock* clock = nullptr)
        : p_(p), rules_(rules), peak_(peak), clock_(clock) {}

    // Makes safe moves until there is none left; appends the operators run to `ran` when it is given.
    // No step may need more than `limit` bytes.
    void close(State& s, Bytes limit, std::vector<Id>* ran);

  private:
    // A tensor of the boundary: what the chain has to hold at some cut.
    struct Held {
        Bytes size, cost;
    };

    bool try_chain(const State& s, Id first, Bytes limit);
    bool grow(const State& base, const State& s, Bytes limit);
    bool is_safe(const State& base, const State& after);
    bool loss_is_paid(const std::vector<Held>& held, Bytes kept, Bytes arriving, Bytes arriving_cost) const;

    const Problem& p_;
    const Rules& rules_;
    bool peak_;
    Clock* clock_;
    std::vector<Id> chain_, ready_;
    std::vector<Held> held_;
    std::vector<Id> arriving_;
    State after_;
    int tries_ = 0;
};

}  // namespace onchip::placement
