#include "corun_bound.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace onchip::corun {

void Pair::check() const {
    if (units == 0 || units > 16) throw std::invalid_argument("corun: units");
    for (const Chain& c : net) {
        if (c.groups == 0 || c.groups > 100000) throw std::invalid_argument("corun: groups");
        if (c.work.size() != c.groups * units || c.move.size() != c.groups * units * units)
            throw std::invalid_argument("corun: lengths of a network");
        for (double w : c.work)
            if (!(w >= 0)) throw std::invalid_argument("corun: work");
        for (double m : c.move)
            if (!(m >= 0)) throw std::invalid_argument("corun: move");
    }
    for (const auto& s : slow) {
        if (s.size() != places(0) * places(1)) throw std::invalid_argument("corun: slowdowns");
        for (double v : s)
            if (!(v >= 1) || std::isinf(v)) throw std::invalid_argument("corun: a slowdown below 1");
    }
}

namespace {

// Costs to go from the end of every group of one network, backwards: `price` of a place's work and moves' rate.
template <typename Price>
void backwards(const Chain& c, std::size_t units, Price price, double per_move, std::vector<double>& after) {
    after.assign(c.groups * units, 0.0);
    for (std::size_t g = c.groups - 1; g-- > 0;) {
        for (std::size_t u = 0; u < units; ++u) {
            double best = never;
            for (std::size_t v = 0; v < units; ++v) {
                const std::size_t next = (g + 1) * units + v;
                const double move = c.move[(g * units + u) * units + v];
                if (std::isinf(c.work[next]) || std::isinf(move)) continue;
                best = std::min(best, (move > 0 ? per_move * move : 0.0) + price(next) + after[next]);
            }
            after[g * units + u] = best;
        }
    }
}

template <typename Price>
double from_start(const Chain& c, std::size_t units, Price price, const std::vector<double>& after) {
    double best = never;
    for (std::size_t u = 0; u < units; ++u)
        if (!std::isinf(c.work[u])) best = std::min(best, price(u) + after[u]);
    return best;
}

// y as large as x allows: x(u) + y(v) <= 1 for all u != v.
std::vector<double> complement(const std::vector<double>& x) {
    std::vector<double> y(x.size(), 1.0);
    for (std::size_t v = 0; v < x.size(); ++v)
        for (std::size_t u = 0; u < x.size(); ++u)
            if (u != v) y[v] = std::min(y[v], 1 - x[u]);
    return y;
}

}  // namespace

Bounds::Bounds(const Pair& pair) : pair_(pair) {
    const std::size_t units = pair.units;
    for (std::size_t n = 0; n < 2; ++n) {
        const std::size_t others = pair.places(1);
        least_[n].assign(pair.places(n), never);
        for (std::size_t i = 0; i < pair.places(0); ++i) {
            for (std::size_t j = 0; j < others; ++j) {
                if (i % units == j % units || std::isinf(pair.net[0].work[i]) || std::isinf(pair.net[1].work[j]))
                    continue;
                double& least = least_[n][n == 0 ? i : j];
                least = std::min(least, pair.slow[n][i * others + j]);
            }
        }
        const Chain& c = pair.net[n];
        backwards(c, units, [&](std::size_t place) { return c.work[place]; }, 1.0, alone_[n]);
    }
    std::vector<Weights> best;
    root_ = choose(best);
    for (const Weights& w : best) add(w);
    fill();
}

double Bounds::alone(std::size_t n, std::size_t at, double left) const {
    const std::size_t place = at / 3;
    if (place >= pair_.places(n)) return 0;
    const double rest = alone_[n][place];
    return (at % 3 == running ? left : (at % 3 == moving ? left : 0.0) + pair_.net[n].work[place]) + rest;
}

double Bounds::start(std::size_t n) const {
    const Chain& c = pair_.net[n];
    return from_start(c, pair_.units, [&](std::size_t place) { return c.work[place]; }, alone_[n]);
}

void Bounds::add(const Weights& w) { weights_.push_back(w); }

namespace {

// What a ms of work at a place costs at least: alone it weighs `own`, overlapping `share` times its slowdown.
double rate(double own, double share, double least) {
    if (std::isinf(least)) return own;  // overlaps with nothing
    return std::min(own, share * least);
}

}  // namespace

double Bounds::of_root(const Weights& w) const {
    double total = 0;
    for (std::size_t n = 0; n < 2; ++n) {
        const Chain& c = pair_.net[n];
        const double own = 1 - (n == 0 ? w.q : w.p), per_move = n == 0 ? w.p : w.q;
        const std::vector<double>& share = n == 0 ? w.x : w.y;
        const auto price = [&](std::size_t place) {
            return c.work[place] * rate(own, share[place % pair_.units], least_[n][place]);
        };
        std::vector<double> after;
        backwards(c, pair_.units, price, per_move, after);
        total += from_start(c, pair_.units, price, after);
    }
    return total;
}

// The best weights for the whole pair by a coarse grid and steps that shrink, and others around them, which are
// better once one network is ahead of the other.
double Bounds::choose(std::vector<Weights>& best) const {
    const std::size_t units = pair_.units;
    const auto make = [&](const std::vector<double>& v) {  // x by unit, then p, q
        Weights w;
        w.x.assign(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(units));
        w.y = complement(w.x);
        w.p = v[units], w.q = v[units + 1];
        return w;
    };
    const auto legal = [&](const std::vector<double>& v) {
        for (double value : v)
            if (value < 0 || value > 1) return false;
        return v[units] + v[units + 1] <= 1;
    };
    double top = 0;
    std::vector<double> at(units + 2, 0.5), kept;
    at[units] = at[units + 1] = 0;
    const auto climb = [&](std::vector<double> v, double step) {
        double value = of_root(make(v));
        for (; step > 0.01; step /= 2) {
            for (bool better = true; better;) {
                better = false;
                for (std::size_t i = 0; i < v.size(); ++i) {
                    for (double sign : {-1.0, 1.0}) {
                        std::vector<double> next = v;
                        next[i] += sign * step;
                        if (!legal(next)) continue;
                        const double now = of_root(make(next));
                        if (now > value * (1 + 1e-6)) value = now, v = next, better = true;
                    }
                }
            }
        }
        if (value > top || kept.empty()) top = value, kept = v;
    };
    // A long pair is bounded by a few climbs; a short one can afford more starts.
    climb(at, 0.25);
    if (pair_.places(0) + pair_.places(1) <= 400) {
        for (double first : {0.3, 0.7}) {
            for (double second : {0.3, 0.7}) {
                std::vector<double> v(units + 2, second);
                v[0] = first;
                v[units] = v[units + 1] = 0.1;
                climb(v, 0.2);
            }
        }
    }
    best.push_back(make(kept));
    const auto also = [&](const std::vector<double>& v) {
        if (legal(v)) best.push_back(make(v));
    };
    for (double by : {-0.1, 0.1, -0.25, 0.25}) {
        for (std::size_t i = 0; i < std::min<std::size_t>(units, 4); ++i) {
            std::vector<double> v = kept;
            v[i] = std::clamp(v[i] + by, 0.0, 1.0);
            also(v);
        }
        std::vector<double> v = kept;
        for (std::size_t i = 0; i < units; ++i) v[i] = std::clamp(v[i] + by, 0.0, 1.0);
        also(v);
    }
    // All of it is one network's own time: its chain, moves included.
    std::vector<double> v(units + 2, 1.0);
    v[units] = 1, v[units + 1] = 0;
    also(v);
    std::fill(v.begin(), v.end(), 0.0);
    v[units + 1] = 1;
    also(v);
    for (const Weights& w : best) top = std::max(top, of_root(w));
    return top;
}

void Bounds::fill() {
    const std::size_t count = weights_.size();
    for (std::size_t n = 0; n < 2; ++n) {
        const Chain& c = pair_.net[n];
        Costs& costs = costs_[n];
        costs.group.assign(pair_.places(n) * count, 0.0);
        costs.after.assign(pair_.places(n) * count, 0.0);
        costs.move.assign(count, 0.0);
        for (std::size_t k = 0; k < count; ++k) {
            const Weights& w = weights_[k];
            const double own = 1 - (n == 0 ? w.q : w.p);
            const std::vector<double>& share = n == 0 ? w.x : w.y;
            costs.move[k] = n == 0 ? w.p : w.q;
            const auto price = [&](std::size_t place) {
                return c.work[place] * rate(own, share[place % pair_.units], least_[n][place]);
            };
            std::vector<double> after;
            backwards(c, pair_.units, price, costs.move[k], after);
            for (std::size_t place = 0; place < pair_.places(n); ++place) {
                costs.group[place * count + k] = rate(own, share[place % pair_.units], least_[n][place]);
                costs.after[place * count + k] = after[place];
            }
        }
    }
}

double Bounds::pair(std::size_t a, double left_a, std::size_t b, double left_b, double enough) const {
    double best = std::max(alone(0, a, left_a), alone(1, b, left_b));
    if (best >= enough) return best;
    const std::size_t count = weights_.size(), at[2] = {a, b};
    const double left[2] = {left_a, left_b};
    const double *group[2], *after[2];
    double work[2], move[2];
    for (std::size_t n = 0; n < 2; ++n) {
        const std::size_t place = at[n] / 3;
        if (place >= pair_.places(n)) return best;  // the other one is alone
        group[n] = &costs_[n].group[place * count], after[n] = &costs_[n].after[place * count];
        work[n] = at[n] % 3 == running ? left[n] : pair_.net[n].work[place];
        move[n] = at[n] % 3 == moving ? left[n] : 0.0;
    }
    // The first weights are best for the whole pair and often enough.
    for (std::size_t from = 0; from < count && best < enough; from += 4) {
        for (std::size_t k = from; k < std::min(count, from + 4); ++k) {
            double value = 0;
            for (std::size_t n = 0; n < 2; ++n)
                value += work[n] * group[n][k] + move[n] * costs_[n].move[k] + after[n][k];
            best = std::max(best, value);
        }
    }
    return best;
}

}  // namespace onchip::corun
