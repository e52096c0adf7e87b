#include "pack_instance.h"

#include <algorithm>
#include <numeric>

namespace onchip::pack {
namespace {

// The kept slots as times: a slot begins at an event and is kept iff something ends right after it and
// something started since the last kept one. Those are exactly the maximal cliques of the interval graph.
std::vector<std::int64_t> kept_slots(std::span<const Buffer> buffers, bool cliques) {
    std::vector<std::int64_t> times, starts, ends;
    for (const Buffer& b : buffers) {
        starts.push_back(b.lower);
        ends.push_back(b.upper);
    }
    std::sort(starts.begin(), starts.end());
    std::sort(ends.begin(), ends.end());
    std::merge(starts.begin(), starts.end(), ends.begin(), ends.end(), std::back_inserter(times));
    times.erase(std::unique(times.begin(), times.end()), times.end());
    if (!cliques) {
        if (!times.empty()) times.pop_back();
        return times;
    }
    std::vector<std::int64_t> kept;
    bool started = false;
    for (std::size_t i = 0; i + 1 < times.size(); ++i) {
        started = started || std::binary_search(starts.begin(), starts.end(), times[i]);
        if (started && std::binary_search(ends.begin(), ends.end(), times[i + 1])) {
            kept.push_back(times[i]);
            started = false;
        }
    }
    return kept;
}

}  // namespace

Instance::Instance(std::span<const Buffer> given, std::int64_t bytes, const Rules& rules) {
    const auto slots = kept_slots(given, rules.cliques);
    buffers = static_cast<int>(given.size());
    sections = static_cast<int>(slots.size());
    if (rules.divide) {
        unit = 0;
        for (const Buffer& b : given) unit = std::gcd(unit, b.size);
        unit = std::max<std::int64_t>(unit, 1);
    }
    capacity = bytes / unit;

    auto section_at = [&](std::int64_t time) {
        return static_cast<int>(std::lower_bound(slots.begin(), slots.end(), time) - slots.begin());
    };
    original.resize(given.size());
    std::iota(original.begin(), original.end(), 0);
    std::vector<std::pair<int, int>> range;
    for (const Buffer& b : given) range.emplace_back(section_at(b.lower), section_at(b.upper));
    std::stable_sort(original.begin(), original.end(), [&](int a, int b) {
        return range[a] < range[b];
    });
    for (int i : original) {
        size.push_back(given[i].size / unit);
        width.push_back(given[i].upper - given[i].lower);
        first.push_back(range[i].first);
        last.push_back(range[i].second);
    }

    std::vector<std::vector<int>> live(slots.size());
    for (int b = 0; b < buffers; ++b) {
        for (int s = first[b]; s < last[b]; ++s) live[s].push_back(b);
    }
    int next = 0;
    for (int s = 0; s < sections; ++s) {
        while (next < buffers && first[next] < s) ++next;
        first_of_section.push_back(next);
        std::int64_t total = 0;
        for (int b : live[s]) {
            total = std::min(total + size[b], capacity + 1);
        }
        load.push_back(total);
        members.push(live[s]);
    }
    first_of_section.push_back(buffers);

    for (int s = 0; s + 1 < sections; ++s) {
        std::vector<int> end, start;
        for (int b : members[s]) {
            if (last[b] == s + 1) end.push_back(b);
        }
        for (int b : members[s + 1]) {
            if (first[b] == s + 1) start.push_back(b);
        }
        ends.push(end);
        starts.push(start);
    }
    // A neighbour of b is live at b's first section or starts inside b's range.
    for (int b = 0; b < buffers; ++b) {
        std::vector<int> near;
        for (int other : members[first[b]]) {
            if (other != b) near.push_back(other);
        }
        for (int other = first_of_section[first[b] + 1];
             other < buffers && first[other] < last[b]; ++other) {
            near.push_back(other);
        }
        neighbours.push(near);
    }
}

}  // namespace onchip::pack
