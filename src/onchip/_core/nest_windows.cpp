#include "nest_windows.h"

#include <algorithm>
#include <numeric>

#include "bits.h"

namespace onchip::nests {

namespace {

std::int64_t floored(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

// The first index of a side that a window needs at `low`, and one past the last that it needs up to `high`.
std::int64_t first_of(const Slide& s, std::int64_t low) {
    return std::max<std::int64_t>(0, floored(low * s.stride - s.before, s.per));
}
std::int64_t end_of(const Slide& s, std::int64_t high, std::int64_t size) {
    if (high <= 0) return 0;
    return std::clamp<std::int64_t>(floored((high - 1) * s.stride - s.before, s.per) + s.span, 0, size);
}

struct Ratio {
    std::int64_t up = 0, down = 1;
    bool operator==(const Ratio&) const = default;
};
Ratio ratio(std::int64_t up, std::int64_t down) {
    const std::int64_t common = std::gcd(up, down);
    return {up / common, down / common};
}

// A ring holds from the first index that this turn or a later one needs, and what is new.
Rows ring(const std::vector<std::int64_t>& first, const std::int64_t* high) {
    Rows found{high[first.size() - 1], 0};
    std::int64_t needed = found.moved;
    for (std::size_t j = first.size(); j-- > 0;) {
        needed = std::min(needed, first[j]);
        found.held = std::max(found.held, high[j] - std::min(needed, j ? high[j - 1] : 0));
    }
    return found;
}

void lessen(Rows& rows, const Rows& other) {
    rows.moved = std::min(rows.moved, other.moved);
    rows.held = std::min(rows.held, other.held);
}

}  // namespace

Window::Window(const Group& group, Id loop_class, Set inside, Set whole)
    : group_(group), class_(loop_class), inside_(inside), own_(group.accesses.size(), true),
      scale_(group.size(), 1), size_(group.size(), 0), part_(group.size()), readers_(group.size()),
      fetched_(group.buffers.size()) {
    const bool linked = find_links(whole);
    legal_ = find_scales();
    std::int64_t size = 0;
    // Windows over buffers from outside alone may turn out not to be in the loop: then it is one like any other.
    each_bit(inside_, 0, [&](Id o) {
        legal_ &= linked || !size || size_[o] == size;
        size = size_[o];
    });
    if (!legal_) return;
    find_shares();
    find_points();
}

Slide Window::slide(const Access& access) const {
    const auto side = static_cast<Id>(access.cut[class_]);
    for (const Slide& one : access.slides)
        if (one.side == side) return one;
    return Slide{};
}

// Returns true if windows slide over a buffer that is made here.
bool Window::find_links(Set whole) {
    each_bit(inside_, 0, [&](Id o) {
        const int axis = group_.classes[class_].axis[o];
        size_[o] = group_.operators[o].axes[static_cast<Id>(axis)];
        part_[o] = o;
        const Access& made = group_.accesses[group_.of[o].back()];
        const auto all_in = [&](Id b) {
            const std::vector<Id>& uses = group_.uses[b];
            return std::all_of(uses.begin(), uses.end(), [&](Id u) { return has(inside_, group_.accesses[u].op); });
        };
        if (made.cut[class_] >= 0)
            for (const Id u : group_.uses[made.buffer])
                if (!group_.accesses[u].writes && has(inside_, group_.accesses[u].op)) {
                    readers_[o].push_back({u, group_.accesses[u].op, slide(group_.accesses[u])});
                    slides_ |= group_.slides_along(group_.accesses[u], class_);
                }
        const bool in = all_in(made.buffer);
        if (!readers_[o].empty() && in && !has(whole, made.buffer)) inner_ |= one(made.buffer);
        if (readers_[o].empty() || !in || group_.buffers[made.buffer].leaves) drives_ |= one(o);
    });
    const bool inner_slides = slides_;
    for (Id b = 0; b < group_.buffers.size(); ++b) {
        if (group_.buffers[b].maker >= 0 || has(whole, b)) continue;
        const std::vector<Id>& uses = group_.uses[b];
        bool all = !uses.empty();
        for (const Id u : uses) {
            const Access& access = group_.accesses[u];
            const bool cut = has(inside_, access.op) && access.cut[class_] >= 0;
            all &= cut && access.cut[class_] == group_.accesses[uses[0]].cut[class_];
            if (!cut) continue;
            fetched_[b].push_back({u, access.op, slide(access)});
            slides_ |= group_.slides_along(access, class_);
        }
        if (all) together_ |= one(b);
    }
    return inner_slides;
}

// Least whole numbers: by how many indices an operator goes on while the loop goes on by one. False if two ways between
// operators disagree.
bool Window::find_scales() {
    std::vector<Ratio> ratios(group_.size());
    Set seen = 0;
    bool agree = true;
    for (Id first = 0; first < group_.size(); ++first) {
        if (!has(inside_, first) || has(seen, first)) continue;
        Set part = one(first);
        ratios[first] = {1, 1};
        for (Set before = 0; before != part;) {
            before = part;
            each_bit(inside_, 0, [&](Id maker) {
                for (const auto& [access, reader, slide] : readers_[maker]) {
                    Ratio &m = ratios[maker], &r = ratios[reader];
                    if (has(part, reader)) {
                        const Ratio asked = ratio(r.up * slide.stride, r.down * slide.per);
                        if (!has(part, maker)) m = asked;
                        agree &= m == asked;
                    } else if (has(part, maker)) {
                        r = ratio(m.up * slide.per, m.down * slide.stride);
                    } else {
                        continue;
                    }
                    part |= one(maker) | one(reader);
                }
            });
        }
        std::int64_t whole = 1, least = 0;
        each_bit(part, 0, [&](Id o) { whole = std::lcm(whole, ratios[o].down); });
        each_bit(part, 0, [&](Id o) { least = std::gcd(least, ratios[o].up * (whole / ratios[o].down)); });
        each_bit(part, 0, [&](Id o) {
            scale_[o] = ratios[o].up * (whole / ratios[o].down) / least;
            part_[o] = first;
        });
        seen |= part;
    }
    return agree;
}

// A buffer from outside may live in the loop where the scales stay what they are with it.
void Window::find_shares() {
    for (Id b = 0; b < group_.buffers.size(); ++b) {
        bool share = true;
        std::int64_t steps = 0;
        for (const auto& [access, reader, slide] : fetched_[b]) {
            const std::int64_t up = scale_[reader] * slide.stride;
            own_[access] = up % slide.per == 0;
            if (!steps) steps = up / slide.per;
            share &= own_[access] && steps == up / slide.per;
        }
        if (share || !has(together_, b)) share_ |= one(b);
    }
}

std::int64_t Window::turns(std::int64_t tile) const {
    std::vector<std::int64_t> by_part(group_.size(), 0);
    each_bit(drives_, 0, [&](Id o) {
        const std::int64_t step = scale_[o] * tile;
        by_part[part_[o]] = std::max(by_part[part_[o]], (size_[o] + step - 1) / step);
    });
    std::int64_t count = 0;
    bool alike = true;
    each_bit(inside_, 0, [&](Id o) {
        if (part_[o] != o) return;
        alike &= count == 0 || by_part[o] == count;
        count = by_part[o];
    });
    each_bit(drives_, 0, [&](Id o) {  // a sum goes on in every turn
        const std::int64_t step = scale_[o] * tile;
        const bool sums = group_.classes[class_].axis[o] >= static_cast<int>(group_.operators[o].outputs);
        alike &= !sums || (size_[o] + step - 1) / step == count;
    });
    return alike ? count : 0;
}

void Window::find_points() {
    std::int64_t longest = 0;
    each_bit(drives_, 0, [&](Id o) { longest = std::max(longest, (size_[o] + scale_[o] - 1) / scale_[o]); });
    for (std::int64_t tile = longest - 1; tile > 0; --tile) {
        std::int64_t count = turns(tile);
        if (count == 1) continue;
        if (!slides_ || longest > every_tile_up_to) {
            const std::int64_t about = (longest + tile - 1) / tile;
            if (slides_ && about > every_tile_up_to) break;
            tile = (longest + about - 1) / about;
            count = turns(tile);
        }
        if (count > 1) points_.push_back({count, tile});
    }
}

// From the last operator to the first: each goes as far as its readers need.
Window::Made Window::made(std::size_t point, Set again, Set open, Turned* found) const {
    const auto [turns, tile] = points_[point];
    const auto n = static_cast<std::size_t>(turns);
    std::vector<std::int64_t> low(group_.size() * n), high(group_.size() * n), first(n);
    for (Id o = static_cast<Id>(group_.size()); o-- > 0;) {
        if (!has(inside_, o)) continue;
        std::int64_t *lows = &low[o * n], *highs = &high[o * n];
        const Id buffer = group_.operators[o].writes.buffer;
        const std::int64_t size = size_[o];
        if (has(drives_, o))
            for (std::size_t j = 0; j < n; ++j)
                highs[j] = std::min(size, (static_cast<std::int64_t>(j) + 1) * scale_[o] * tile);
        for (const auto& [access, reader, slide] : readers_[o])
            for (std::size_t j = 0; j < n; ++j)
                highs[j] = std::max(highs[j], end_of(slide, high[reader * n + j], size));
        const bool redone = has(again & inner_, buffer), undecided = has(open & inner_, buffer);
        std::copy(highs, highs + n, first.begin());
        for (const auto& [access, reader, slide] : readers_[o])
            for (std::size_t j = 0; j < n; ++j)
                if (low[reader * n + j] < high[reader * n + j] && end_of(slide, high[reader * n + j], size) > 0)
                    first[j] = std::min(first[j], first_of(slide, low[reader * n + j]));
        Rows unused;
        Shared unshared;
        Rows& own = found ? found->own[group_.of[o].back()] : unused;
        Shared& shared = found ? found->shared[buffer] : unshared;
        if (found) shared.ring = ring(first, highs);
        for (std::size_t j = 0; j < n; ++j) {
            const std::int64_t before = j ? highs[j - 1] : 0;
            if (group_.buffers[buffer].leaves) first[j] = std::min(first[j], before);
            lows[j] = redone ? first[j] : undecided ? std::max(first[j], before) : before;
            // What is made again was stored before.
            own.moved += highs[j] - (group_.buffers[buffer].leaves ? std::max(lows[j], before) : lows[j]);
            own.held = std::max(own.held, highs[j] - lows[j]);
            shared.keeps |= first[j] < before;
            shared.anew.held = std::max(shared.anew.held, highs[j] - first[j]);
        }
        shared.anew.moved = own.moved;
    }
    return {std::move(low), std::move(high)};
}

bool Window::reads_ahead(std::size_t point, Set again, const Access& read, Id writer) const {
    const auto n = static_cast<std::size_t>(points_[point].turns);
    const Made made = this->made(point, again, 0, nullptr);
    const Slide slide = this->slide(read);
    std::int64_t written = 0;
    for (std::size_t j = 0; j < n; ++j) {
        const std::size_t here = read.op * n + j, there = writer * n + j;
        if (made.low[here] < made.high[here] && first_of(slide, made.low[here]) < written) return false;
        if (made.low[there] < made.high[there]) written = std::max(written, made.high[there]);
    }
    return true;
}

Turned Window::at(std::size_t point, Set again, Set open) const {
    const auto n = static_cast<std::size_t>(points_[point].turns);
    Turned found{points_[point].turns, std::vector<Rows>(group_.accesses.size()), std::vector<Shared>(group_.buffers.size())};
    const auto [low, high] = made(point, again, open, &found);
    std::vector<std::int64_t> first(n);
    for (Id b = 0; b < group_.buffers.size(); ++b) {
        if (fetched_[b].empty()) continue;
        const std::int64_t size =
            group_.buffers[b].sides[static_cast<Id>(group_.accesses[fetched_[b][0].access].cut[class_])];
        std::vector<std::int64_t> before(fetched_[b].size(), 0), highs(n);
        Shared& shared = found.shared[b];
        for (std::size_t j = 0; j < n; ++j) {
            const std::int64_t all_before = j ? highs[j - 1] : 0;
            std::int64_t all_high = all_before, all_low = size;
            bool any = false;
            for (std::size_t i = 0; i < fetched_[b].size(); ++i) {
                const auto& [access, reader, slide] = fetched_[b][i];
                const std::int64_t reads = low[reader * n + j], until = high[reader * n + j];
                before[i] = std::max(before[i], end_of(slide, until, size));
                all_high = std::max(all_high, before[i]);
                if (reads >= until || !before[i]) continue;  // all before index 0
                any = true;
                const std::int64_t from = std::min(first_of(slide, reads), before[i]);
                all_low = std::min(all_low, from);
                found.own[access].moved += before[i] - from;
                found.own[access].held = std::max(found.own[access].held, before[i] - from);
            }
            if (!any) all_low = all_high;
            all_low = std::min(all_low, all_high);
            shared.anew.moved += all_high - all_low;
            shared.anew.held = std::max(shared.anew.held, all_high - all_low);
            shared.keeps |= all_low < all_before;
            first[j] = all_low;
            highs[j] = all_high;
        }
        shared.ring = ring(first, highs.data());
    }
    return found;
}

const Turned& Window::least(std::size_t from, std::size_t to, Set again) {
    again &= inner_;
    const auto [known, fresh] = least_.try_emplace({{from, to}, again});
    if (!fresh) return known->second;
    std::vector<Turned>& table = tables_[again];
    if (table.empty())
        for (std::size_t i = 0; i < points_.size(); ++i) table.push_back(at(i, again, ~again));
    Turned& least = known->second = table[from];
    for (std::size_t i = from + 1; i < to; ++i) {
        const Turned& other = table[i];
        least.turns = std::min(least.turns, other.turns);
        for (std::size_t u = 0; u < least.own.size(); ++u) lessen(least.own[u], other.own[u]);
        for (std::size_t b = 0; b < least.shared.size(); ++b) {
            lessen(least.shared[b].anew, other.shared[b].anew);
            lessen(least.shared[b].ring, other.shared[b].ring);
            least.shared[b].keeps |= other.shared[b].keeps;
        }
    }
    return least;
}

}  // namespace onchip::nests
