#include "pack_decide.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "pack_greedy.h"
#include "pack_large.h"

namespace onchip::pack {
namespace {

// A first search packs most of what first fit cannot; repair packs most of the rest.
constexpr std::int64_t short_search = 20'000;
// First fits, each after moving forward the buffers that the last one left above the capacity.
constexpr int repairs = 300;

constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max();

// Reads the time whenever a search asks, which is seldom; the caller hears at once that it has begun.
constexpr Pace seldom{.calls = 1, .at_once = true};

using Ints = std::vector<std::int64_t>;

struct Event {
    std::int64_t time;
    bool begins;
    std::size_t buffer;
    friend auto operator<=>(const Event&, const Event&) = default;
};

// Beginnings and ends of live ranges; at a moment ends come first.
std::vector<Event> events_of(std::span<const Buffer> buffers) {
    std::vector<Event> events;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        for (const auto& [lower, upper] : buffers[i].live) {
            events.push_back({lower, true, i});
            events.push_back({upper, false, i});
        }
    }
    std::sort(events.begin(), events.end());
    return events;
}

// One call of `decide`: its arguments, and its clock.
class Run {
  public:
    Run(std::span<const Buffer> buffers, std::int64_t capacity, const Rules& rules, std::uint64_t seed,
        const Effort& effort, const Limits<std::int64_t>& limits)
        : buffers_(buffers), capacity_(capacity), rules_(rules), seed_(seed), effort_(effort), limits_(limits) {}

    Decision run() {
        if (most_live(buffers_) > capacity_ || fixed_clash()) {
            made_.status = Outcome::infeasible;
            return std::move(made_);
        }
        if (is_large(buffers_)) {
            made_.method = Method::greedy;
            if (effort_.greedy) {
                Addresses found = allocate(buffers_);
                keep(std::move(found.offsets), found.extent);
            }
            return std::move(made_);
        }
        const Instance instance(buffers_, capacity_, rules_);
        if (effort_.greedy) greedily(instance);
        if (open() && effort_.search && effort_.repair) search(instance, short_search, 1);
        if (open() && effort_.repair) repair(instance);
        if (open() && effort_.search) search(instance, effort_.last_nodes.value_or(no_limit), effort_.share);
        return std::move(made_);
    }

  private:
    using Steady = std::chrono::steady_clock;

    // The same limits, until a share of the time from the beginning of this call.
    Limits<std::int64_t> until(double share) const {
        Limits<std::int64_t> part = limits_;
        if (part.seconds >= 0) {
            const std::chrono::duration<double> spent = Steady::now() - began_;
            part.seconds = std::max(0.0, limits_.seconds * share - spent.count());
        }
        return part;
    }
    bool open() const {
        return made_.status == Outcome::unknown && !stopped_ && (limits_.seconds < 0 || until(1).seconds > 0);
    }
    void keep(Ints offsets, std::int64_t extent) {
        if (extent > capacity_) return;
        made_.status = Outcome::packed;
        made_.offsets = std::move(offsets);
    }
    void keep(const Instance& instance, const Greedy& found) {
        if (found.extent <= instance.capacity) keep(instance.in_bytes(found.offsets), found.extent * instance.unit);
    }
    bool fixed_clash() const {
        std::vector<Buffer> fixed;
        Ints offsets;
        for (const Buffer& b : buffers_) {
            if (b.offset < 0) continue;
            fixed.push_back(b);
            offsets.push_back(b.offset);
        }
        return !is_packing(fixed, offsets, capacity_);
    }
    void greedily(const Instance& instance) {
        made_.method = Method::greedy;
        keep(instance, pack_greedily(instance, instance.capacity));
    }
    void repair(const Instance& instance) {
        made_.method = Method::repair;
        const auto limits = until(1);
        Clock<std::int64_t> clock(limits, seldom);
        keep(instance, pack_by_blame(instance, repairs, seed_, clock));
        stopped_ = clock.ended() == End::stopped;
    }
    void search(const Instance& instance, std::int64_t nodes, double share) {
        made_.method = Method::search;
        if (effort_.nodes) nodes = std::min(nodes, *effort_.nodes - made_.nodes);
        if (nodes <= 0) return;
        const auto limits = until(share);
        Clock<std::int64_t> clock(limits, seldom);
        Search tree(instance, rules_, seed_, clock);
        made_.status = tree.run(nodes);
        made_.nodes += tree.nodes();
        if (made_.status == Outcome::packed) made_.offsets = instance.in_bytes(tree.offsets());
        stopped_ = clock.ended() == End::stopped;
    }

    std::span<const Buffer> buffers_;
    std::int64_t capacity_;
    const Rules& rules_;
    std::uint64_t seed_;
    const Effort& effort_;
    const Limits<std::int64_t>& limits_;
    Steady::time_point began_ = Steady::now();
    Decision made_;
    bool stopped_ = false;
};

// Bytes that divide the least extent: the gcd of sizes, fixed offsets and larger alignments.
std::int64_t grain(std::span<const Buffer> buffers) {
    std::int64_t unit = 0, before = -1;
    for (const Buffer& b : buffers) unit = std::gcd(unit, std::gcd(b.size, std::max<std::int64_t>(b.offset, 0)));
    while (before != unit) {
        before = unit;
        for (const Buffer& b : buffers) {
            if (unit % b.alignment) unit = std::gcd(unit, b.alignment);
        }
    }
    return std::max<std::int64_t>(unit, 1);
}

std::int64_t end_of(std::span<const Buffer> buffers, const Ints& offsets) {
    std::int64_t end = 0;
    for (std::size_t i = 0; i < buffers.size(); ++i) end = std::max(end, offsets[i] + buffers[i].size);
    return end;
}

}  // namespace

std::int64_t most_live(std::span<const Buffer> buffers) {
    constexpr std::int64_t most_work = 5'000'000;  // steps after which the bound may stay weaker
    // An offset of 0 is a multiple of everything.
    const auto grid = [&](std::size_t i) { return buffers[i].offset < 0 ? buffers[i].alignment : buffers[i].offset; };
    std::int64_t load = 0, most = 0, work = 0;
    bool padded = false;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        if (buffers[i].offset >= 0) most = std::max(most, buffers[i].offset + buffers[i].size);
        padded = padded || grid(i) != 1;
    }
    const auto events = events_of(buffers);
    std::set<std::size_t> live;
    for (auto event = events.begin(); event != events.end();) {
        const std::int64_t now = event->time;
        for (; event != events.end() && event->time == now; ++event) {
            const std::int64_t size = buffers[event->buffer].size;
            load += event->begins ? size : -size;
            if (!padded) continue;
            if (event->begins) live.insert(event->buffer);
            else live.erase(event->buffer);
        }
        most = std::max(most, load);
        work += static_cast<std::int64_t>(live.size());
        if (!padded || work > most_work) continue;
        // All live together are aligned to some grid: sizes count rounded up to it, but for the one that can be on top.
        std::int64_t common = 0, pads = 0, largest = 0;
        for (const std::size_t i : live) common = std::gcd(common, grid(i));
        if (common <= 1) continue;
        for (const std::size_t i : live) {
            const std::int64_t pad = (common - buffers[i].size % common) % common;
            pads += pad;
            largest = std::max(largest, pad);
        }
        most = std::max(most, load + pads - largest);
    }
    return most;
}

bool is_packing(std::span<const Buffer> buffers, std::span<const std::int64_t> offsets, std::int64_t capacity) {
    if (offsets.size() != buffers.size()) return false;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        const Buffer& b = buffers[i];
        if (offsets[i] < 0 || offsets[i] + b.size > capacity || offsets[i] % b.alignment) return false;
        if (b.offset >= 0 && b.offset != offsets[i]) return false;
    }
    std::map<std::int64_t, std::int64_t> live;  // end by beginning; disjoint
    for (const Event& event : events_of(buffers)) {
        const std::int64_t at = offsets[event.buffer], end = at + buffers[event.buffer].size;
        if (!event.begins) {
            live.erase(at);
            continue;
        }
        const auto above = live.lower_bound(at);
        if (above != live.end() && above->first < end) return false;
        if (above != live.begin() && std::prev(above)->second > at) return false;
        live.emplace_hint(above, at, end);
    }
    return true;
}

Decision decide(std::span<const Buffer> buffers, std::int64_t capacity, const Rules& rules, std::uint64_t seed,
                const Effort& effort, const Limits<std::int64_t>& limits) {
    return Run(buffers, capacity, rules, seed, effort, limits).run();
}

Lowest minimise(std::span<const Buffer> buffers, const Rules& rules, std::uint64_t seed,
                const Limits<std::int64_t>& limits) {
    const auto began = std::chrono::steady_clock::now();
    const auto left = [&] {
        const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - began;
        return std::max(0.0, limits.seconds - spent.count());
    };
    Lowest made;
    made.bound = most_live(buffers);
    if (is_large(buffers)) {
        Addresses found = allocate(buffers);
        made.offsets = std::move(found.offsets);
        made.extent = found.extent;
        return made;
    }
    {
        const Instance instance(buffers, made.bound, rules);
        const Greedy found = pack_greedily(instance, instance.capacity);
        made.offsets = instance.in_bytes(found.offsets);
        made.extent = end_of(buffers, made.offsets);
    }
    const std::int64_t step = grain(buffers);
    std::int64_t open = made.bound;  // capacities from here to below the extent are undecided
    for (std::int64_t target = made.bound; open < made.extent; target = open + (made.extent - open) / 2) {
        Limits<std::int64_t> part = limits;
        if (limits.seconds >= 0) {
            if (left() == 0) break;
            part.seconds = left() / 3;
        }
        Decision found = decide(buffers, target, rules, seed, {}, part);
        if (found.status == Outcome::packed) {
            made.offsets = std::move(found.offsets);
            made.extent = end_of(buffers, made.offsets);
            continue;
        }
        open = (target / step + 1) * step;
        if (found.status == Outcome::infeasible) made.bound = std::max(made.bound, open);
        else if (limits.seconds < 0) break;
    }
    made.bound = std::min(made.bound, made.extent);
    return made;
}

}  // namespace onchip::pack
