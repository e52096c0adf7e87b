// Prices that bound what is left of a pair from below.
//
// Until both networks are done, time is of four kinds: both run (o), only A runs (a), only B runs (b), none
// runs. The makespan is at least o + a + b, at least A's own o + a + (its moves), and at least B's. So for
// p, q >= 0 with p + q <= 1 it is at least
//     o + (1 - q) a + (1 - p) b + p moves(A) + q moves(B).
// Now give every ms of work (as it takes alone) a price, x(i) at A's place i and y(j) at B's place j, such that
//     x(i) <= 1 - q,  y(j) <= 1 - p,  x(i) / s(i, j) + y(j) / r(j, i) <= 1 for i, j on different units,
// s and r being the slowdowns of i beside j and of j beside i. In a ms of o, 1 / s of A's work is done and 1 / r
// of B's: at these prices they never cost more than the time they take. All work at its price, p moves(A) and
// q moves(B) are therefore no more than the makespan, whatever overlaps what: the networks fall apart, and each
// is a shortest path over its units. (This is weak duality of a linear program over all overlaps.)
//
// Given y, the largest x is known; what is then left to choose, y and p and q, is climbed by subgradient steps.
// Any choice on the way is a bound. Prices for what is left from some groups on need to hold for these only.
#pragma once
#include <array>
#include <cmath>
#include <vector>

#include "corun_pair.h"

namespace onchip::corun {

struct Prices {
    std::array<std::size_t, 2> from{0, 0};      // groups of A and B from which on they hold
    std::array<double, 2> move{0, 0};           // p, q: of a ms of moving
    std::array<std::vector<double>, 2> work{};  // of a ms of work, by place
};

// Costs to go from the end of every group of one network on each unit, backwards to group `from`, with `price`
// of a place's work and `per_move` of a ms of moving; `next`, if asked for, has the units taken.
template <typename Price>
void backwards(const Chain& c, std::size_t units, std::size_t from, Price price, double per_move,
               std::vector<double>& after, std::vector<std::uint8_t>* next = nullptr) {
    after.assign(c.groups * units, 0.0);
    if (next) next->assign(c.groups * units, 0);
    for (std::size_t g = c.groups - 1; g-- > from;) {
        for (std::size_t u = 0; u < units; ++u) {
            double best = never;
            for (std::size_t v = 0; v < units; ++v) {
                const std::size_t to = (g + 1) * units + v;
                const double move = c.move[(g * units + u) * units + v];
                if (std::isinf(c.work[to]) || std::isinf(move)) continue;
                const double cost = (move > 0 ? per_move * move : 0.0) + price(to) + after[to];
                if (cost >= best) continue;
                best = cost;
                if (next) (*next)[g * units + u] = static_cast<std::uint8_t>(v);
            }
            after[g * units + u] = best;
        }
    }
}

class Pricing {
  public:
    explicit Pricing(const Pair& pair);

    // Prices for the whole pair to begin with.
    Prices alike_on_a_unit();
    // Raises what the prices bound, of what is left from `prices.from` on, in at most so many steps, and returns
    // that bound.
    double climb(Prices& prices, std::size_t steps);

  private:
    struct Way {
        std::vector<double> after;
        std::vector<std::uint8_t> next;
        std::vector<std::size_t> places;
        double moves = 0, cost = 0;
    };
    void follow(Prices& prices);
    void walk(std::size_t n, const Prices& prices, Way& way) const;
    double settle(Prices& prices);
    void slope(const Prices& prices, std::vector<double>& work, std::array<double, 2>& move) const;
    void lift(Prices& prices) const;

    const Pair& pair_;
    const std::size_t leader_, follower_;  // the network with fewer places, whose prices are chosen; the other one
    const std::size_t columns_;            // places of the leader
    // By follower's place * columns + leader's: a follower's price is at most `reach` - `ratio` * the leader's.
    std::vector<double> reach_, ratio_;
    std::vector<double> least_;         // by leader's place: the least slowdown that it can meet
    std::vector<std::size_t> held_by_;  // by follower's place: the leader's whose price limits its own; columns: none
    Way way_[2];
};

}  // namespace onchip::corun
