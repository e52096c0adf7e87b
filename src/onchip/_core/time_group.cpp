#include "time_group.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace onchip::timed {

namespace {

__extension__ typedef __int128 Wide;

constexpr std::int64_t picoseconds = 1'000'000'000'000;

// Ways to lay an operator's axes on the sides of the array. One with an axis more on a side is never slower, as a
// rounded product is no more than a product of rounded ones: only those to which no axis can be added are kept.
std::vector<Array> arrays_of(const nests::Operator& op, const Rates& rates) {
    const auto& sides = rates.sides;
    std::vector<Id> axes;
    for (Id a = 0; a < op.axes.size(); ++a)
        if (op.axes[a] > 1) axes.push_back(a);
    std::vector<Set> follows;
    for (const nests::Use& use : op.reads) {
        Set along = 0;
        for (const int a : use.axes)
            if (a >= 0) along |= one(static_cast<Id>(a));
        for (const nests::Slide& slide : use.slides) along |= one(slide.axis);
        follows.push_back(along);
    }
    std::vector<std::vector<Set>> found;
    std::vector<Set> now(sides.size(), 0);
    const auto legal = [&] {
        if (rates.own_operands) return true;
        for (const Set along : follows) {
            int on = 0;
            for (std::size_t s = 0; s < sides.size(); ++s) on += !sides[s].sums && (now[s] & along) != 0;
            if (on > 1) return false;
        }
        return true;
    };
    const auto place = [&](const auto& self, std::size_t next) -> void {
        if (!legal()) return;
        if (next == axes.size()) {
            found.push_back(now);
            return;
        }
        const bool sum = axes[next] >= op.outputs;
        for (std::size_t s = 0; s < sides.size(); ++s)
            if (sides[s].sums == sum) {
                now[s] |= one(axes[next]);
                self(self, next + 1);
                now[s] &= ~one(axes[next]);
            }
        self(self, next + 1);
    };
    place(place, 0);
    std::vector<Array> kept;
    for (const auto& a : found) {
        const bool covered = std::any_of(found.begin(), found.end(), [&](const auto& b) {
            if (a == b) return false;
            for (std::size_t s = 0; s < sides.size(); ++s)
                if ((a[s] & ~b[s]) != 0) return false;
            return true;
        });
        if (covered) continue;
        Array array(sides.size());
        for (std::size_t s = 0; s < sides.size(); ++s)
            for (const Id axis : axes)
                if (has(a[s], axis)) array[s].push_back(axis);
        kept.push_back(std::move(array));
    }
    return kept;
}

}  // namespace

Ratio::Ratio(std::int64_t times, std::int64_t per) {
    const std::int64_t both = std::gcd(times, per);
    up = times / both;
    down = per / both;
    narrow = (std::numeric_limits<std::int64_t>::max() - down) / up;
}

Time Ratio::of(std::int64_t n) const {
    if (n <= narrow) {
        const std::int64_t quick = n * up;
        return down == 1 ? quick : (quick + down - 1) / down;
    }
    const Wide product = static_cast<Wide>(n) * up;
    if (down == 1) return product > never ? never : static_cast<Time>(product);
    const Wide found = (product + down - 1) / down;
    return found > never ? never : static_cast<Time>(found);
}

Problem::Problem(std::vector<nests::Operator> operators, std::vector<nests::Buffer> buffers,
                 std::vector<Stored> stored_, std::vector<Work> work_, Rates rates_, Bytes alignment_, bool paired_)
    : group(std::move(operators), std::move(buffers), false), stored(std::move(stored_)), work(std::move(work_)),
      rates(std::move(rates_)), alignment(alignment_), cycle(picoseconds, rates.clock) {
    // One loop may go along axes that no tensor links, too.
    if (auto both = group.pairings(paired_ ? 1 : 0); !both.empty()) group = std::move(both[0]);
    if (stored.size() != group.buffers.size() || work.size() != group.size() || alignment < 1)
        throw std::invalid_argument("time: buffers and operators are not described");
    for (Id b = 0; b < stored.size(); ++b)
        if (stored[b].whole.size() != group.buffers[b].sides.size())
            throw std::invalid_argument("time: a buffer has other sides than its tensor");
    for (Id b = 0; b < stored.size(); ++b) {
        const auto &tile = stored[b].tile, &sides = group.buffers[b].sides;
        bool fits = tile.empty() || (tile.size() == sides.size() && stored[b].whole == sides);
        for (std::size_t s = 0; fits && s < tile.size(); ++s) fits = tile[s] >= 1 && tile[s] <= sides[s];
        if (!fits) throw std::invalid_argument("time: a buffer lies in tiles of other sides");
    }
    if (group.classes.size() > nests::most) throw std::invalid_argument("time: at most 64 classes of axes");
    if (rates.vector) vector = Ratio(picoseconds, *rates.vector);
    if (rates.scratchpad) scratchpad = Ratio(picoseconds, *rates.scratchpad);
    first_load = first_store = -1;
    std::int64_t rate = 0;
    for (std::size_t c = 0; c < rates.channels.size(); ++c) {
        crossing.emplace_back(picoseconds, rates.channels[c].bytes_per_second);
        rate += rates.channels[c].bytes_per_second;
        if (rates.channels[c].loads && first_load < 0) first_load = static_cast<int>(c);
        if (rates.channels[c].stores && first_store < 0) first_store = static_cast<int>(c);
    }
    if (first_load < 0 || first_store < 0) throw std::invalid_argument("time: no channel loads, or none stores");
    together = Ratio(picoseconds, rate);
    for (Id o = 0; o < group.size(); ++o) {
        arrays.push_back(work[o].products ? arrays_of(group.operators[o], rates) : std::vector<Array>{});
        axis_class.emplace_back(group.operators[o].axes.size(), -1);
        for (std::size_t c = 0; c < group.classes.size(); ++c)
            if (const int axis = group.classes[c].axis[o]; axis >= 0)
                axis_class[o][static_cast<Id>(axis)] = static_cast<int>(c);
    }
    for (const Access& access : group.accesses) {
        side_class.emplace_back();
        for (const int axis : access.axes)
            side_class.back().push_back(axis < 0 ? -1 : axis_class[access.op][static_cast<Id>(axis)]);
    }
}

}  // namespace onchip::timed
