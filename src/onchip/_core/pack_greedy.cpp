#include "pack_greedy.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <tuple>
#include <utility>

namespace onchip::pack {
namespace {

using Score = std::tuple<double, double>;

// Place buffers one by one at the lowest gap (or the tightest) between those already placed.
Greedy place_in_order(const Instance& in, const std::vector<int>& order, bool tightest) {
    Greedy result;
    result.offsets = in.fixed;
    result.extent = 0;
    std::vector<std::pair<std::int64_t, std::int64_t>> taken;
    for (int b : order) {
        if (in.fixed[b] >= 0) {
            result.extent = std::max(result.extent, in.fixed[b] + in.size[b]);
            continue;
        }
        taken.clear();
        for (int other : in.neighbours[b]) {
            const std::int64_t at = result.offsets[other];
            if (at >= 0) taken.emplace_back(at, at + in.height[other]);
        }
        std::sort(taken.begin(), taken.end());
        const std::int64_t grid = in.alignment[b];
        auto aligned = [grid](std::int64_t at) { return (at + grid - 1) / grid * grid; };
        std::int64_t top = 0, best = -1, best_gap = INT64_MAX;
        for (const auto& [begin, end] : taken) {
            const std::int64_t at = aligned(top), gap = begin - at;
            if (gap >= in.height[b] && gap < best_gap) {
                best = at;
                best_gap = gap;
                if (!tightest) break;
            }
            top = std::max(top, end);
        }
        result.offsets[b] = best >= 0 ? best : aligned(top);
        result.extent = std::max(result.extent, result.offsets[b] + in.size[b]);
    }
    return result;
}

}  // namespace

Greedy pack_greedily(const Instance& in, std::int64_t enough) {
    std::vector<double> busiest(in.size.size(), 0);
    for (int b = 0; b < in.buffers; ++b) {
        for (int s = in.first[b]; s < in.last[b]; ++s) {
            busiest[b] = std::max(busiest[b], static_cast<double>(in.load[s]));
        }
    }
    auto score = [&](int rule, int b) -> Score {
        const double size = static_cast<double>(in.size[b]), width = static_cast<double>(in.width[b]);
        switch (rule) {
            case 0: return {size, width};
            case 1: return {size * width, size};
            case 2: return {width, size};
            case 3: return {busiest[b], size};
            case 4: return {busiest[b], width};
            default: return {-static_cast<double>(in.first[b]), size};
        }
    };
    Greedy best;
    std::vector<int> order(in.size.size());
    for (int rule = 0; rule < 6; ++rule) {
        std::iota(order.begin(), order.end(), 0);
        std::sort(order.begin(), order.end(), [&](int x, int y) {
            const Score sx = score(rule, x), sy = score(rule, y);
            return sx != sy ? sx > sy : x < y;
        });
        for (bool tightest : {false, true}) {
            Greedy found = place_in_order(in, order, tightest);
            if (found.extent < best.extent) best = std::move(found);
            if (best.extent <= enough) return best;
        }
    }
    return best;
}

Greedy pack_by_blame(const Instance& in, int tries, std::uint64_t seed, Clock<std::int64_t>& clock) {
    const auto n = in.size.size();
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> forward(0.02, 0.3);
    std::vector<int> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](int x, int y) { return std::pair(-in.size[x], x) < std::pair(-in.size[y], y); });
    std::vector<double> place(n);
    for (std::size_t i = 0; i < n; ++i) place[order[i]] = static_cast<double>(i) / static_cast<double>(n);
    Greedy best;
    for (int turn = 0; turn < tries; ++turn) {
        Greedy found = place_in_order(in, order, false);
        if (found.extent < best.extent) best = found;
        if (best.extent <= in.capacity || clock.late(turn)) break;
        for (int b = 0; b < in.buffers; ++b) {
            if (found.offsets[b] + in.size[b] > in.capacity) place[b] -= forward(random);
        }
        std::sort(order.begin(), order.end(),
                  [&](int x, int y) { return std::pair(place[x], x) < std::pair(place[y], y); });
    }
    return best;
}

}  // namespace onchip::pack
