#include "corun_prices.h"

#include <algorithm>
#include <cmath>

namespace onchip::corun {

namespace {

// What all prices of a pair may cost: steps times meetings of places.
constexpr std::size_t effort_by_unit = 16'000'000, effort = 1'000'000;

std::size_t affordable(std::size_t budget, std::size_t meetings, std::size_t most) {
    return std::clamp<std::size_t>(budget / meetings, 8, most);
}

}  // namespace

Pricing::Pricing(const Pair& pair)
    : pair_(pair), leader_(pair.places(0) < pair.places(1) ? 0u : 1u), follower_(1 - leader_),
      columns_(pair.places(leader_)), least_(columns_, never), held_by_(pair.places(follower_)) {
    const std::size_t rows = pair.places(follower_), units = pair.units, others = pair.places(1);
    reach_.assign(rows * columns_, never);
    ratio_.assign(rows * columns_, 0.0);
    for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t j = 0; j < columns_; ++j) {
            if (i % units == j % units || std::isinf(pair.net[follower_].work[i]) ||
                std::isinf(pair.net[leader_].work[j]))
                continue;
            const std::size_t at = follower_ == 0 ? i * others + j : j * others + i;
            reach_[i * columns_ + j] = pair.slow[follower_][at];
            ratio_[i * columns_ + j] = pair.slow[follower_][at] / pair.slow[leader_][at];
            least_[j] = std::min(least_[j], pair.slow[leader_][at]);
        }
    }
    for (double& least : least_)
        if (std::isinf(least)) least = 1;  // meets nobody
}

// The largest prices of the follower that the leader's allow.
void Pricing::follow(Prices& prices) {
    const std::size_t units = pair_.units, first = prices.from[leader_] * units;
    const double most = 1 - prices.move[leader_];
    const double* leads = prices.work[leader_].data();
    for (std::size_t i = prices.from[follower_] * units; i < pair_.places(follower_); ++i) {
        const double *reach = &reach_[i * columns_], *ratio = &ratio_[i * columns_];
        double least = most;
        std::size_t by = columns_;
        for (std::size_t j = first; j < columns_; ++j) {
            const double may = reach[j] - ratio[j] * leads[j];
            if (may < least) least = may, by = j;
        }
        prices.work[follower_][i] = std::max(0.0, least), held_by_[i] = by;
    }
}

// The cheapest way of network n over its units from the group on from which the prices hold.
void Pricing::walk(std::size_t n, const Prices& prices, Way& way) const {
    const Chain& c = pair_.net[n];
    const std::size_t units = pair_.units, from = prices.from[n];
    const auto price = [&](std::size_t place) { return c.work[place] * prices.work[n][place]; };
    backwards(c, units, from, price, prices.move[n], way.after, &way.next);
    way.places.clear();
    way.cost = never, way.moves = 0;
    std::size_t at = from * units;
    for (std::size_t place = from * units; place < (from + 1) * units; ++place) {
        if (std::isinf(c.work[place])) continue;
        const double cost = price(place) + way.after[place];
        if (cost < way.cost) way.cost = cost, at = place;
    }
    if (std::isinf(way.cost)) return;
    for (;;) {
        way.places.push_back(at);
        if (at / units + 1 == c.groups) return;
        way.moves += c.move[at * units + way.next[at]];
        at = (at / units + 1) * units + way.next[at];
    }
}

// The leader's prices within their limits, the follower's by them, and what they all come to.
double Pricing::settle(Prices& prices) {
    const double most = 1 - prices.move[follower_];
    for (double& price : prices.work[leader_]) price = std::clamp(price, 0.0, most);
    follow(prices);
    for (std::size_t n = 0; n < 2; ++n) walk(n, prices, way_[n]);
    return way_[0].cost + way_[1].cost;
}

// On every unit one share of what the least slowdown allows; by steps that shrink.
Prices Pricing::alike_on_a_unit() {
    const std::size_t units = pair_.units;
    std::vector<double> at(units + 2, 0.5), next;  // by unit, then p, q
    at[units] = at[units + 1] = 0;
    const auto value_at = [&](const std::vector<double>& v, Prices& to) {
        for (std::size_t j = 0; j < columns_; ++j) to.work[leader_][j] = v[j % units] * least_[j];
        to.move = {v[units], v[units + 1]};
        return settle(to);
    };
    Prices best;
    for (std::size_t n = 0; n < 2; ++n) best.work[n].assign(pair_.places(n), 0.0);
    Prices trial = best;
    double value = value_at(at, best);
    std::size_t left = affordable(effort_by_unit, reach_.size(), 400);
    for (double step = 0.25; step > 0.01; step /= 2) {
        for (bool better = true; better;) {
            better = false;
            for (std::size_t i = 0; i < at.size(); ++i) {
                for (double by : {-step, step}) {
                    next = at;
                    next[i] += by;
                    if (next[i] < 0 || next[i] > 1 || next[units] + next[units + 1] > 1) continue;
                    if (left-- == 0) return best;
                    const double now = value_at(next, trial);
                    if (now > value * (1 + 1e-6)) value = now, at = next, std::swap(best, trial), better = true;
                }
            }
        }
    }
    return best;
}

// Which way is up: by leader's place, and of the moves.
void Pricing::slope(const Prices& prices, std::vector<double>& work, std::array<double, 2>& move) const {
    work.assign(columns_, 0.0);
    move = {way_[0].moves, way_[1].moves};
    for (std::size_t j : way_[leader_].places) work[j] += pair_.net[leader_].work[j];
    for (std::size_t i : way_[follower_].places) {
        const double ms = pair_.net[follower_].work[i];
        if (held_by_[i] == columns_) move[leader_] -= ms;  // its price is 1 less that of a move
        else work[held_by_[i]] -= ms * ratio_[i * columns_ + held_by_[i]];
    }
    const double most = 1 - prices.move[follower_];
    for (std::size_t j = 0; j < columns_; ++j)
        if (prices.work[leader_][j] >= most && work[j] > 0) move[follower_] -= work[j];
    for (std::size_t n = 0; n < 2; ++n)
        if (prices.move[n] <= 0) move[n] = std::max(0.0, move[n]);
}

double Pricing::climb(Prices& prices, std::size_t steps) {
    std::vector<double> work;
    std::array<double, 2> move{};
    Prices now = prices;
    double value = settle(now), best = value, hope = 0.012 * best;
    prices = now;
    std::size_t in_vain = 0;
    for (std::size_t left = affordable(effort, reach_.size(), steps); left > 0 && !std::isinf(best); --left) {
        slope(now, work, move);
        double norm = move[0] * move[0] + move[1] * move[1];
        for (double up : work) norm += up * up;
        if (norm <= 0) break;
        // As far as it takes if `best` + `hope` can be had and the slope holds (Polyak's length).
        const double length = (best + hope - value) / norm;
        for (std::size_t j = 0; j < columns_; ++j) now.work[leader_][j] += length * work[j];
        for (std::size_t n = 0; n < 2; ++n) now.move[n] = std::clamp(now.move[n] + length * move[n], 0.0, 1.0);
        const double over = now.move[0] + now.move[1];
        if (over > 1)
            for (double& price : now.move) price /= over;
        value = settle(now);
        if (value > best + 0.1 * hope) in_vain = 0;
        else if (++in_vain >= 4) in_vain = 0, hope /= 2;
        if (value > best) best = value, prices = now;
    }
    lift(prices);
    return best;
}

// Where the follower leaves room, the leader's prices rise to what it allows.
void Pricing::lift(Prices& prices) const {
    const std::size_t units = pair_.units;
    std::vector<double>& leads = prices.work[leader_];
    for (std::size_t j = prices.from[leader_] * units; j < columns_; ++j) {
        double least = 1 - prices.move[follower_];
        for (std::size_t i = prices.from[follower_] * units; i < pair_.places(follower_); ++i) {
            const std::size_t at = i * columns_ + j;
            if (ratio_[at] > 0) least = std::min(least, (reach_[at] - prices.work[follower_][i]) / ratio_[at]);
        }
        leads[j] = std::max(leads[j], least);
    }
}

}  // namespace onchip::corun
