// Lower bounds of what is left of a pair: each network alone, and both by sets of prices (corun_prices.h).
#pragma once
#include <algorithm>
#include <array>
#include <vector>

#include "corun_prices.h"

namespace onchip::corun {

class Bounds {
  public:
    explicit Bounds(const Pair& pair);

    // The bound of the whole pair from its beginning.
    double root() const { return root_; }
    // Least ms from network n's activity, of which `left` ms of work (alone) or of moving remain, 0 if it waits, to
    // its end when it meets nobody.
    double alone(std::size_t n, std::size_t activity, double left) const { return left + alone_[n][activity]; }
    // The same from network n's beginning.
    double start(std::size_t n) const;
    // The bound by prices of the ms until both are done, from activities as above.
    double both(std::size_t a, double left_a, std::size_t b, double left_b) const {
        const Line &one = lines_[0][a], &two = lines_[1][b];
        double best = 0;
        for (std::size_t k = 0; k < sets; ++k)
            best = std::max(best, left_a * one.per_ms[k] + one.rest[k] + left_b * two.per_ms[k] + two.rest[k]);
        return best;
    }

  private:
    static constexpr std::size_t sets = 4;
    // Of an activity, by set: what a ms of it costs, and all that follows it; -never where the prices do not hold.
    struct Line {
        std::array<double, sets> per_ms{}, rest{};
    };
    void fill(std::size_t set, const Prices& prices);

    const Pair& pair_;
    std::vector<double> alone_[2];  // by activity: what follows it
    std::vector<Line> lines_[2];
    double root_ = 0;
};

}  // namespace onchip::corun
