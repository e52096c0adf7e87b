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

// Steps to the prices for the whole, and to those for what is left after about a half of either network or both.
constexpr std::size_t whole_steps = 120, half_steps = 24;

}  // namespace

Bounds::Bounds(const Pair& pair) : pair_(pair) {
    std::vector<double> after;
    for (std::size_t n = 0; n < 2; ++n) {
        const Chain& c = pair.net[n];
        backwards(c, pair.units, 0, [&](std::size_t place) { return c.work[place]; }, 1.0, after);
        for (std::size_t place = 0; place < pair.places(n); ++place)
            for (Phase phase : {moving, waiting, running})
                alone_[n].push_back(after[place] + (phase == running ? 0.0 : c.work[place]));
        lines_[n].resize(alone_[n].size());
    }
    Pricing pricing(pair);
    Prices whole = pricing.alike_on_a_unit();
    root_ = std::max({start(0), start(1), pricing.climb(whole, whole_steps)});
    fill(0, whole);
    for (std::size_t set = 1; set < sets; ++set) {
        Prices later = whole;
        for (std::size_t n = 0; n < 2; ++n) later.from[n] = set >> n & 1 ? pair.net[n].groups / 2 : 0;
        pricing.climb(later, half_steps);
        fill(set, later);
    }
}

double Bounds::start(std::size_t n) const {
    double best = never;
    for (std::size_t u = 0; u < pair_.units; ++u) best = std::min(best, alone(n, activity(u, waiting), 0));
    return best;
}

void Bounds::fill(std::size_t set, const Prices& prices) {
    std::vector<double> after;
    for (std::size_t n = 0; n < 2; ++n) {
        const Chain& c = pair_.net[n];
        const auto price = [&](std::size_t place) { return c.work[place] * prices.work[n][place]; };
        backwards(c, pair_.units, prices.from[n], price, prices.move[n], after);
        for (std::size_t place = 0; place < pair_.places(n); ++place) {
            const bool holds = place / pair_.units >= prices.from[n];
            for (Phase phase : {moving, waiting, running}) {
                Line& line = lines_[n][activity(place, phase)];
                // An unsupported place has endless work, and is in no label.
                if (holds && phase != waiting) line.per_ms[set] = phase == moving ? prices.move[n] : prices.work[n][place];
                line.rest[set] = holds ? after[place] + (phase == running ? 0.0 : price(place)) : -never;
            }
        }
    }
}

}  // namespace onchip::corun
