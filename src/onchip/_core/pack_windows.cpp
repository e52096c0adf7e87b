#include "pack_windows.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <utility>

namespace onchip::pack {
namespace {

using Ints = std::vector<std::int64_t>;

// Bytes that are live from a time on, until the next one.
struct Stage {
    std::int64_t begin, end, low, high;
};

std::vector<Stage> stages_of(const Piecewise& b) {
    std::vector<Stage> stages;
    std::int64_t time = b.begin;
    for (const Gap& gap : b.gaps) {
        if (time < gap.begin) stages.push_back({time, gap.begin, 0, b.size});
        if (gap.keeps()) stages.push_back({gap.begin, gap.end, gap.low, gap.high});
        time = gap.end;
    }
    if (time < b.end) stages.push_back({time, b.end, 0, b.size});
    return stages;
}

// How far above the offset of the first the second lies at least, if it is the upper one; none if they never meet.
std::optional<std::int64_t> clearance(const std::vector<Stage>& below, const std::vector<Stage>& above) {
    std::optional<std::int64_t> most;
    for (const Stage& x : below) {
        for (const Stage& y : above) {
            if (x.end <= y.begin || y.end <= x.begin) continue;
            most = std::max(most.value_or(std::numeric_limits<std::int64_t>::min()), x.high - y.low);
        }
    }
    return most;
}

// The same buffers without windows: whole in gaps that keep something, or free in them.
std::vector<Buffer> plain(std::span<const Piecewise> buffers, bool whole) {
    std::vector<Buffer> result;
    std::int64_t before = std::numeric_limits<std::int64_t>::min() / 4;  // of all times
    for (const Piecewise& b : buffers) {
        Buffer made{{}, b.size, b.alignment, b.offset};
        std::int64_t time = b.begin;
        for (const Gap& gap : b.gaps) {
            if (whole && gap.keeps()) continue;
            if (time < gap.begin) made.live.emplace_back(time, gap.begin);
            time = gap.end;
        }
        if (time < b.end) made.live.emplace_back(time, b.end);
        if (made.live.empty()) made.live.emplace_back(before, before + 1), before += 2;  // nowhere: alone in a moment of its own
        result.push_back(std::move(made));
    }
    return result;
}

bool has_windows(std::span<const Piecewise> buffers) {
    return std::any_of(buffers.begin(), buffers.end(), [](const Piecewise& b) {
        return std::any_of(b.gaps.begin(), b.gaps.end(), [](const Gap& gap) { return gap.keeps(); });
    });
}

struct Pair {
    std::size_t lower, upper;        // lower: the one with the smaller index
    std::int64_t forward, backward;  // clearance if the first is below, if the second is
};

std::vector<Pair> pairs_of(std::span<const Piecewise> buffers) {
    std::vector<std::vector<Stage>> stages;
    for (const Piecewise& b : buffers) stages.push_back(stages_of(b));
    std::vector<Pair> pairs;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        for (std::size_t j = i + 1; j < buffers.size(); ++j) {
            const auto forward = clearance(stages[i], stages[j]);
            if (forward) pairs.push_back({i, j, *forward, *clearance(stages[j], stages[i])});
        }
    }
    return pairs;
}

// A complete search: of every pair, which one is below. Offsets are as low as the orders so far allow.
class Orders {
  public:
    Orders(std::span<const Piecewise> buffers, std::int64_t capacity, Clock<std::int64_t>& clock, std::int64_t most)
        : buffers_(buffers), pairs_(pairs_of(buffers)), clock_(clock), most_(most), low_(buffers.size()),
          high_(buffers.size()) {
        for (std::size_t i = 0; i < buffers.size(); ++i) {
            low_[i] = std::max<std::int64_t>(buffers[i].offset, 0);
            high_[i] = buffers[i].offset >= 0 ? buffers[i].offset : down(i, capacity - buffers[i].size);
        }
    }

    Outcome run() {
        for (std::size_t i = 0; i < buffers_.size(); ++i) {
            const Piecewise& b = buffers_[i];
            if (low_[i] > high_[i] || low_[i] % b.alignment) return Outcome::infeasible;
        }
        order_.assign(pairs_.size(), 0);
        if (solve(0)) return Outcome::packed;
        return stopped_ ? Outcome::unknown : Outcome::infeasible;
    }
    const Ints& offsets() const { return low_; }
    std::int64_t nodes() const { return nodes_; }

  private:
    static constexpr int deepest = 4000;

    std::int64_t up(std::size_t i, std::int64_t at) const {
        const std::int64_t grid = buffers_[i].alignment;
        return at <= 0 ? 0 : (at + grid - 1) / grid * grid;
    }
    std::int64_t down(std::size_t i, std::int64_t at) const {
        return at < 0 ? -1 : at / buffers_[i].alignment * buffers_[i].alignment;
    }

    // Moves bounds until every order that is decided holds, and decides the pairs of which only one is possible.
    bool propagate() {
        for (bool changed = true; changed;) {
            changed = false;
            for (std::size_t p = 0; p < pairs_.size(); ++p) {
                const Pair& pair = pairs_[p];
                if (order_[p] == 0) {
                    const bool forward = low_[pair.lower] + pair.forward <= high_[pair.upper];
                    const bool backward = low_[pair.upper] + pair.backward <= high_[pair.lower];
                    if (!forward && !backward) return false;
                    if (forward == backward) continue;
                    order_[p] = forward ? 1 : -1;
                }
                const bool first = order_[p] > 0;
                const std::size_t x = first ? pair.lower : pair.upper, y = first ? pair.upper : pair.lower;
                const std::int64_t apart = first ? pair.forward : pair.backward;
                if (const std::int64_t at = up(y, low_[x] + apart); at > low_[y]) low_[y] = at, changed = true;
                if (const std::int64_t at = down(x, high_[y] - apart); at < high_[x]) high_[x] = at, changed = true;
                if (low_[x] > high_[x] || low_[y] > high_[y]) return false;
            }
        }
        return true;
    }

    bool solve(int level) {
        if (++nodes_ > most_ || level > deepest || clock_.late(nodes_)) {
            stopped_ = true;
            return false;
        }
        if (!propagate()) return false;
        std::size_t worst = pairs_.size();
        std::int64_t weight = -1;
        for (std::size_t p = 0; p < pairs_.size(); ++p) {  // the heaviest that do not keep apart where they are now
            const Pair& pair = pairs_[p];
            const std::int64_t x = low_[pair.lower], y = low_[pair.upper];
            if (x + pair.forward <= y || y + pair.backward <= x) continue;
            const std::int64_t size = buffers_[pair.lower].size + buffers_[pair.upper].size;
            if (size > weight) worst = p, weight = size;
        }
        if (worst == pairs_.size()) return true;
        const auto low = low_, high = high_;
        const auto order = order_;
        const bool larger_below = buffers_[pairs_[worst].lower].size >= buffers_[pairs_[worst].upper].size;
        for (const int way : {larger_below ? 1 : -1, larger_below ? -1 : 1}) {
            order_[worst] = static_cast<signed char>(way);
            if (solve(level + 1)) return true;
            low_ = low, high_ = high, order_ = order;
            if (stopped_) return false;
        }
        return false;
    }

    std::span<const Piecewise> buffers_;
    std::vector<Pair> pairs_;
    Clock<std::int64_t>& clock_;
    std::int64_t most_, nodes_ = 0;
    bool stopped_ = false;
    Ints low_, high_;
    std::vector<signed char> order_;  // per pair: 1 the first below, -1 the second, 0 open
};

}  // namespace

bool is_packing(std::span<const Piecewise> buffers, std::span<const std::int64_t> offsets, std::int64_t capacity) {
    if (offsets.size() != buffers.size()) return false;
    if (!has_windows(buffers)) return is_packing(plain(buffers, true), offsets, capacity);
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        const Piecewise& b = buffers[i];
        if (offsets[i] < 0 || offsets[i] + b.size > capacity || offsets[i] % b.alignment) return false;
        if (b.offset >= 0 && b.offset != offsets[i]) return false;
    }
    const auto pairs = pairs_of(buffers);
    return std::all_of(pairs.begin(), pairs.end(), [&](const Pair& pair) {
        const std::int64_t x = offsets[pair.lower], y = offsets[pair.upper];
        return x + pair.forward <= y || y + pair.backward <= x;
    });
}

Decision decide(std::span<const Piecewise> buffers, std::int64_t capacity, std::uint64_t seed, const Effort& effort,
                const Limits<std::int64_t>& limits) {
    const Rules rules;
    const bool windows = has_windows(buffers);
    Effort some = effort;
    if (windows) some.last_nodes = 100'000;  // a simpler problem must not take all the time
    Decision made = decide(plain(buffers, true), capacity, rules, seed, windows ? some : effort, limits);
    if (!windows || made.status == Outcome::packed) return made;
    Decision free = decide(plain(buffers, false), capacity, rules, seed, some, limits);
    free.nodes += made.nodes;
    if (free.status == Outcome::infeasible) return free;
    if (free.status == Outcome::packed && is_packing(buffers, free.offsets, capacity)) return free;
    Clock<std::int64_t> clock(limits, every_time);
    Orders orders(buffers, capacity, clock, effort.nodes.value_or(std::numeric_limits<std::int64_t>::max()));
    Decision found{orders.run(), {}, free.nodes, Method::search};
    found.nodes += orders.nodes();
    if (found.status == Outcome::packed) found.offsets = orders.offsets();
    return found;
}

Lowest minimise(std::span<const Piecewise> buffers, std::uint64_t seed, const Limits<std::int64_t>& limits) {
    const Rules rules;
    Lowest made = minimise(plain(buffers, true), rules, seed, limits);
    if (!has_windows(buffers)) return made;
    const auto began = std::chrono::steady_clock::now();
    made.bound = most_live(plain(buffers, false));
    for (std::int64_t open = made.bound; open < made.extent;) {
        Limits<std::int64_t> part = limits;
        if (limits.seconds >= 0) {
            const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - began;
            part.seconds = std::max(0.0, limits.seconds - spent.count()) / 3;
            if (part.seconds == 0) break;
        }
        const std::int64_t target = open + (made.extent - open) / 2;
        Decision found = decide(buffers, target, seed, {}, part);
        if (found.status == Outcome::packed) {
            made.offsets = std::move(found.offsets);
            made.extent = 0;
            for (std::size_t i = 0; i < buffers.size(); ++i) {
                made.extent = std::max(made.extent, made.offsets[i] + buffers[i].size);
            }
            continue;
        }
        open = target + 1;
        if (found.status == Outcome::infeasible) made.bound = std::max(made.bound, open);
        else if (limits.seconds < 0) break;
    }
    return made;
}

}  // namespace onchip::pack
