#include "nest_rates.h"

#include <functional>

namespace onchip::nests {

void Rates::clear(std::size_t leaves) {
    count_ = leaves;
    crossing_ = 0;
    if (leaves_.size() < leaves) leaves_.resize(leaves);
    for (std::size_t o = 0; o < leaves; ++o) {
        leaves_[o].held = leaves_[o].back = 0;
        leaves_[o].rates.clear();
    }
}

void Rates::add(std::span<const Bytes> crossing, std::span<const Bytes> held) {
    const Bytes cheapest = *std::min_element(crossing.begin(), crossing.end());
    crossing_ = plus(crossing_, cheapest);
    for (std::size_t o = 0; o < count_; ++o) {
        Bytes at = unlimited, back = 0;
        for (std::size_t i = 0; i < crossing.size(); ++i)
            if (crossing[i] == cheapest) at = std::min(at, held[i * count_ + o]);
        // No home gives back more than the one that holds least, nor any at a better rate than the best.
        double rate = 0;
        for (std::size_t i = 0; i < crossing.size(); ++i) {
            const Bytes less = at - held[i * count_ + o];
            if (less <= 0) continue;
            back = std::max(back, less);
            rate = std::max(rate, static_cast<double>(less) / static_cast<double>(crossing[i] - cheapest));
        }
        Leaf& leaf = leaves_[o];
        leaf.held = plus(leaf.held, at);
        leaf.back = plus(leaf.back, back);
        if (back > 0) leaf.rates.push_back({rate, back});
    }
}

Bytes Rates::least(Bytes room, Bytes limit) {
    Bytes bound = crossing_;
    for (std::size_t o = 0; o < count_ && bound < limit; ++o) {
        Leaf& leaf = leaves_[o];
        Bytes excess = leaf.held - room;
        if (excess <= 0) continue;
        if (excess > leaf.back) return unlimited;
        std::sort(leaf.rates.begin(), leaf.rates.end(), std::greater<>());
        double more = 0;
        for (std::size_t i = 0; i < leaf.rates.size() && excess > 0; ++i) {
            const Bytes given = std::min(leaf.rates[i].second, excess);
            more += static_cast<double>(given) / leaf.rates[i].first;
            excess -= given;
        }
        // No more than the sum is, whatever was rounded.
        bound = std::max(bound, plus(crossing_, static_cast<Bytes>(more * (1 - 1e-9))));
    }
    return bound;
}

}  // namespace onchip::nests
