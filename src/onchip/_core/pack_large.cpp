#include "pack_large.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace onchip::pack {
namespace {

using Time = std::int64_t;

// Free memory over time: disjoint, separate holes below `top`, and everything above it.
class Allocator {
  public:
    explicit Allocator(std::int64_t base) : top_(base) {}

    // The beginning of `size` bytes in the smallest sufficient hole, or above everything.
    std::int64_t take(std::int64_t size, std::int64_t grid) {
        auto hole = by_size_.lower_bound({size, -1});
        for (int tried = 0; hole != by_size_.end() && tried < most_tried; ++hole, ++tried) {
            if (fits(*hole, size, grid)) return take_from(hole->second, size, grid);
        }
        if (hole != by_size_.end()) {  // one with room for any alignment
            hole = by_size_.lower_bound({size + grid - 1, -1});
            if (hole != by_size_.end()) return take_from(hole->second, size, grid);
        }
        const std::int64_t at = round_up(top_, grid);
        add(top_, at);
        top_ = at + size;
        return at;
    }

    // Frees [begin, end) again, merged with adjacent holes.
    void give(std::int64_t begin, std::int64_t end) {
        if (const auto after = holes_.find(end); after != holes_.end()) end = drop(after);
        if (auto before = holes_.lower_bound(begin); before != holes_.begin()) {
            --before;
            if (before->second == begin) {
                begin = before->first;
                drop(before);
            }
        }
        if (end == top_) top_ = begin;
        else add(begin, end);
    }

  private:
    static constexpr int most_tried = 32;  // holes before the one that has room for any alignment

    using Hole = std::pair<std::int64_t, std::int64_t>;  // size, beginning

    static bool fits(const Hole& hole, std::int64_t size, std::int64_t grid) {
        return round_up(hole.second, grid) + size <= hole.second + hole.first;
    }
    std::int64_t take_from(std::int64_t begin, std::int64_t size, std::int64_t grid) {
        const std::int64_t end = drop(holes_.find(begin)), at = round_up(begin, grid);
        add(begin, at);
        add(at + size, end);
        return at;
    }
    void add(std::int64_t begin, std::int64_t end) {
        if (begin >= end) return;
        holes_.emplace(begin, end);
        by_size_.emplace(end - begin, begin);
    }
    // Forgets a hole and returns its end.
    std::int64_t drop(std::map<std::int64_t, std::int64_t>::iterator hole) {
        const auto [begin, end] = *hole;
        by_size_.erase({end - begin, begin});
        holes_.erase(hole);
        return end;
    }

    std::int64_t top_;
    std::map<std::int64_t, std::int64_t> holes_;  // end by beginning
    std::set<Hole> by_size_;
};

// At a moment ends come before beginnings, and large buffers before small ones.
Addresses run(std::span<const Buffer> buffers, std::int64_t base, bool backward) {
    struct Moment {
        Time time;
        bool begins;
        std::int64_t order;
        std::size_t buffer;
        auto key() const { return std::tuple(time, begins, order, buffer); }
        bool operator<(const Moment& other) const { return key() < other.key(); }
    };
    Addresses found{std::vector<std::int64_t>(buffers.size()), 0};
    std::vector<Moment> events;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        const Buffer& b = buffers[i];
        found.offsets[i] = std::max<std::int64_t>(b.offset, 0);
        if (b.offset >= 0) continue;
        Time lower = b.live.front().first, upper = b.live.back().second;
        if (backward) std::tie(lower, upper) = std::pair(-upper, -lower);
        events.push_back({lower, true, -b.size, i});
        events.push_back({upper, false, 0, i});
    }
    std::sort(events.begin(), events.end());
    Allocator memory(base);
    for (const Moment& event : events) {
        const Buffer& b = buffers[event.buffer];
        std::int64_t& at = found.offsets[event.buffer];
        if (event.begins) at = memory.take(b.size, b.alignment);
        else memory.give(at, at + b.size);
    }
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        found.extent = std::max(found.extent, found.offsets[i] + buffers[i].size);
    }
    return found;
}

}  // namespace

bool is_large(std::span<const Buffer> buffers, std::int64_t most) {
    std::vector<Time> begins, ends;
    for (const Buffer& b : buffers) {
        for (const auto& [begin, end] : b.live) {
            begins.push_back(begin);
            ends.push_back(end);
        }
    }
    std::sort(begins.begin(), begins.end());
    std::sort(ends.begin(), ends.end());
    std::int64_t overlaps = 0, alive = 0, before = 0;  // live after the last beginning, ended before it
    std::size_t over = 0;
    for (std::size_t i = 0; i < begins.size(); ++i) {
        while (over < ends.size() && ends[over] <= begins[i]) ++over;
        overlaps += static_cast<std::int64_t>(i - over);
        if (i + 1 < begins.size() && begins[i + 1] == begins[i]) continue;
        const auto past = static_cast<std::int64_t>(over);
        if (past != before) overlaps += alive;  // some end between the two: the live set before is not within this
        alive = static_cast<std::int64_t>(i) + 1 - past;
        before = past;
        if (overlaps > most) return true;
    }
    return overlaps + alive > most;
}

Addresses allocate(std::span<const Buffer> buffers) {
    std::int64_t base = 0;
    for (const Buffer& b : buffers) {
        if (b.offset >= 0) base = std::max(base, b.offset + b.size);
    }
    Addresses forward = run(buffers, base, false), backward = run(buffers, base, true);
    return backward.extent < forward.extent ? std::move(backward) : std::move(forward);
}

}  // namespace onchip::pack
