// Lower bounds of what is left of a pair, by weights on kinds of time.
//
// Until both networks are done, time is of four kinds: both run (o), only A runs (a), only B runs (b), none
// runs. Network A's last group ends no earlier than o + a + (its moves), B's likewise, and a + b + o is no more
// than the makespan. So for weights p, q >= 0 with p + q <= 1 the makespan is at least
//     o + (1 - q) a + (1 - p) b + p moves(A) + q moves(B),
// and o may be split between the two groups that overlap, x(u) to A's on unit u and y(v) to B's on unit v, as
// long as x(u) + y(v) <= 1 for u != v. A group with work w on unit u that is slowed by at least s wherever it
// overlaps therefore costs at least w min(1 - q, s x(u)), whatever the other does: the networks fall apart, and
// each is a shortest path over its units.
#pragma once
#include <vector>

#include "corun_pair.h"

namespace onchip::corun {

struct Weights {
    double p = 0, q = 0;
    std::vector<double> x, y;  // by unit
};

class Bounds {
  public:
    explicit Bounds(const Pair& pair);

    std::size_t count() const { return weights_.size(); }
    // The bound of the whole pair from its beginning.
    double root() const { return root_; }
    // Least ms from network n's activity, of which `left` ms of work (alone) or of moving remain, to its end
    // when it meets nobody.
    double alone(std::size_t n, std::size_t activity, double left) const;
    // The same from network n's beginning.
    double start(std::size_t n) const;
    // A bound on the ms until both are done; `enough`: stop once the bound reaches it.
    double pair(std::size_t a, double left_a, std::size_t b, double left_b, double enough) const;

  private:
    struct Costs {
        std::vector<double> group;  // per ms of work, at place * count + k
        std::vector<double> after;  // from the end of the group on, same index
        std::vector<double> move;   // per ms of moving, at k
    };
    void add(const Weights& w);
    double of_root(const Weights& w) const;
    double choose(std::vector<Weights>& best) const;
    void fill();

    const Pair& pair_;
    std::vector<double> least_[2];  // least slowdown of a place beside any of the other network's
    std::vector<double> alone_[2];  // from the end of the group on
    std::vector<Weights> weights_;
    Costs costs_[2];
    double root_ = 0;
};

}  // namespace onchip::corun
