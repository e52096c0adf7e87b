#include "pack_instance.h"

#include <algorithm>
#include <numeric>
#include <ranges>

namespace onchip::pack {
namespace {

// The kept slots as times: a slot begins at an event and is kept iff something ends right after it and
// something started since the last kept one. Any other is contained in the next or in the last kept one.
// Without gaps these are exactly the maximal cliques of the interval graph.
std::vector<std::int64_t> kept_slots(std::span<const Buffer> buffers, bool cliques) {
    std::vector<std::int64_t> times, starts, ends;
    for (const Buffer& b : buffers) {
        for (const auto& [lower, upper] : b.live) {
            starts.push_back(lower);
            ends.push_back(upper);
        }
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
    choose_unit(given, rules.divide);
    capacity = bytes / unit;

    auto section_at = [&](std::int64_t time) {
        return static_cast<int>(std::lower_bound(slots.begin(), slots.end(), time) - slots.begin());
    };
    std::vector<std::vector<Stretch>> stretches;
    for (const Buffer& b : given) {
        std::vector<Stretch> row;
        for (const auto& [lower, upper] : b.live) {
            const Stretch next{section_at(lower), section_at(upper)};
            if (!row.empty() && row.back().end == next.begin) {
                row.back().end = next.end;
            } else {
                row.push_back(next);
            }
        }
        has_gaps = has_gaps || row.size() > 1;
        stretches.push_back(std::move(row));
    }
    original.resize(given.size());
    std::iota(original.begin(), original.end(), 0);
    std::stable_sort(original.begin(), original.end(), [&](int a, int b) {
        return std::pair(stretches[a].front().begin, stretches[a].back().end) <
               std::pair(stretches[b].front().begin, stretches[b].back().end);
    });
    for (int i : original) {
        const Buffer& b = given[i];
        size.push_back(b.size / unit);
        alignment.push_back(b.alignment % unit == 0 ? b.alignment / unit : 1);
        fixed.push_back(b.offset < 0 ? -1 : b.offset / unit);
        has_fixed = has_fixed || b.offset >= 0;
        plain = plain && b.offset < 0 && alignment.back() == 1;
        std::int64_t time = 0;
        for (const auto& [lower, upper] : b.live) time += upper - lower;
        width.push_back(time);
        live.push(stretches[i]);
        first.push_back(stretches[i].front().begin);
        last.push_back(stretches[i].back().end);
    }

    std::vector<std::vector<int>> present(slots.size());
    for (int b = 0; b < buffers; ++b) {
        for (const Stretch& part : live[b]) {
            for (int s = part.begin; s < part.end; ++s) present[s].push_back(b);
        }
    }
    int next = 0;
    for (int s = 0; s < sections; ++s) {
        while (next < buffers && first[next] < s) ++next;
        first_of_section.push_back(next);
        std::int64_t total = 0;
        for (int b : present[s]) total = std::min(total + size[b], capacity + 1);
        load.push_back(total);
        members.push(present[s]);
    }
    first_of_section.push_back(buffers);

    for (int s = 0; s + 1 < sections; ++s) {
        std::vector<int> end, start;
        for (int b : members[s]) {
            if (!lives(b, s + 1)) end.push_back(b);
        }
        for (int b : members[s + 1]) {
            if (!lives(b, s)) start.push_back(b);
        }
        ends.push(end);
        starts.push(start);
    }
    find_neighbours();
    find_heights();
    find_kinds();
    find_limits();
}

// With every size, fixed offset and alignment a multiple of the unit, so is every offset that is a sum of
// sizes rounded up by alignments. An alignment that divides the unit asks for nothing more.
void Instance::choose_unit(std::span<const Buffer> given, bool divide) {
    if (!divide) return;
    unit = 0;
    for (const Buffer& b : given) unit = std::gcd(std::gcd(unit, b.size), std::max<std::int64_t>(b.offset, 0));
    unit = std::max<std::int64_t>(unit, 1);
    for (std::int64_t before = 0; before != unit;) {
        before = unit;
        for (const Buffer& b : given) {
            if (unit % b.alignment != 0) unit = std::gcd(unit, b.alignment);
        }
    }
}

std::vector<std::int64_t> Instance::in_bytes(const std::vector<std::int64_t>& offsets) const {
    std::vector<std::int64_t> result(offsets.size());
    for (int b = 0; b < buffers; ++b) result[original[b]] = offsets[b] * unit;
    return result;
}

bool Instance::lives(int b, int section) const {
    for (const Stretch& part : live[b]) {
        if (section < part.end) return section >= part.begin;
    }
    return false;
}

void Instance::find_neighbours() {
    std::vector<int> seen(size.size(), -1);
    for (int b = 0; b < buffers; ++b) {
        std::vector<int> near;
        seen[b] = b;
        auto meet = [&](int other) {
            if (seen[other] == b) return;
            seen[other] = b;
            near.push_back(other);
        };
        for (const Stretch& part : live[b]) {
            // Live at the first section, or starts (again) later.
            for (int other : members[part.begin]) meet(other);
            for (int s = part.begin + 1; s < part.end; ++s) {
                for (int other : starts[s - 1]) meet(other);
            }
        }
        neighbours.push(near);
    }
}

// Above b, neighbours begin at multiples of g, the gcd of their alignments; if b itself begins at one, nothing
// can begin below the next after its end.
void Instance::find_heights() {
    height = size;
    if (plain) return;
    auto grid = [&](int b) { return fixed[b] >= 0 ? fixed[b] : alignment[b]; };
    for (int b = 0; b < buffers; ++b) {
        std::int64_t g = grid(b);
        for (int other : neighbours[b]) g = std::gcd(g, grid(other));
        if (g > 0) height[b] = round_up(size[b], g);
    }
}

void Instance::find_kinds() {
    auto alike = [&](int a, int b) {
        return size[a] == size[b] && alignment[a] == alignment[b] && fixed[a] < 0 && fixed[b] < 0 &&
               std::ranges::equal(live[a], live[b]);
    };
    for (int b = 0; b < buffers; ++b) {
        int same = b;
        for (int other = b - 1; other >= 0 && first[other] == first[b] && last[other] == last[b]; --other) {
            if (!alike(other, b)) continue;
            same = kind[other];
            break;
        }
        kind.push_back(same);
    }
}

void Instance::find_limits() {
    for (int b = 0; b < buffers; ++b) {
        std::vector<Zone> zones, merged;
        for (int other : neighbours[b]) {
            if (fixed[other] < 0) continue;
            zones.push_back({fixed[other] - height[b], fixed[other] + height[other]});
        }
        std::ranges::sort(zones, {}, &Zone::below);
        for (const Zone& zone : zones) {
            if (!merged.empty() && zone.below < merged.back().above) {
                merged.back().above = std::max(merged.back().above, zone.above);
            } else {
                merged.push_back(zone);
            }
        }
        zones_.push(merged);
        const bool is_fixed = fixed[b] >= 0;
        most.push_back(is_fixed ? fixed[b] : sink_around(b, capacity - size[b]));
        if (size[b] > capacity || most[b] < 0 || most[b] > capacity - size[b]) possible = false;
        if (is_fixed && lift_around(b, fixed[b]) != fixed[b]) possible = false;
    }
    for (int s = 0; s < sections; ++s) {
        std::int64_t end = 0;
        for (int b : members[s]) end = std::max(end, most[b] + height[b]);
        top.push_back(end);
    }
}

std::int64_t Instance::lift_around(int b, std::int64_t lo) const {
    lo = round_up(lo, alignment[b]);
    for (const Zone& zone : zones_[b]) {
        if (zone.below < lo && lo < zone.above) lo = round_up(zone.above, alignment[b]);
    }
    return lo;
}

std::int64_t Instance::sink_around(int b, std::int64_t lo) const {
    auto aligned = [&](std::int64_t at) { return at < 0 ? -1 : at - at % alignment[b]; };
    lo = aligned(lo);
    const auto zones = zones_[b];
    for (std::size_t i = zones.size(); i-- > 0;) {
        if (zones[i].below < lo && lo < zones[i].above) lo = aligned(zones[i].below);
    }
    return lo;
}

}  // namespace onchip::pack
