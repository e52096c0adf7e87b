// Deduction inside one search state, and its undo trail. Every raise of a lower bound carries the decisions
// it rests on; a failure returns theirs as the conflict.
#include <algorithm>

#include "pack_search.h"

namespace onchip::pack {

void Search::undo(const Mark& to) {
    forget_touched();
    beyond_ = -1;
    for (; changed_.size() > to.changed; changed_.pop_back()) {
        sections_[changed_.back().section] = changed_.back().before;
    }
    for (; placed_.size() > to.placed; placed_.pop_back()) {
        const int b = placed_.back().buffer;
        where_[b] = Where::open;
        why_[b] = placed_.back().why;
        for (int cut = in_.first[b]; cut + 1 < in_.last[b]; ++cut) ++crossing_[cut];
    }
    for (; raised_.size() > to.raised; raised_.pop_back()) {
        const Raised& r = raised_.back();
        lo_[r.buffer] = r.lo;
        // A raise made before the buffer was placed still finds its own reasons: `placed_` restored them.
        why_[r.buffer] = r.why;
    }
}

void Search::touch(int b) {
    for (const Stretch& part : in_.live[b]) {
        for (int s = part.begin; s < part.end; ++s) {
            if (dirty_[s]) continue;
            dirty_[s] = 1;
            dirty_list_.push_back(s);
        }
    }
}

void Search::forget_touched() {
    for (int s : dirty_list_) dirty_[s] = 0;
    for (int c : cut_list_) cut_dirty_[c] = 0;
    dirty_list_.clear();
    cut_list_.clear();
}

// Every raise goes on to the next offset that is aligned and clear of fixed neighbours.
void Search::raise(int b, std::int64_t at_least, const Reasons& why) {
    raised_.push_back({b, lo_[b], why_[b]});
    lo_[b] = in_.lift(b, at_least);
    if (lo_[b] > in_.most[b]) beyond_ = b;
    why_[b] = why;
    touch(b);
}

// b sits at its lower bound. No unplaced neighbour can lie below it (each shares a section whose floor is
// lo[b]), so all of them lie above.
void Search::place(int b, const Reasons& why) {
    placed_.push_back({b, why_[b]});
    where_[b] = Where::placed;
    why_[b] = why;
    for (int cut = in_.first[b]; cut + 1 < in_.last[b]; ++cut) --crossing_[cut];
    touch(b);
    const std::int64_t top = lo_[b] + in_.height[b];
    for (int other : in_.neighbours[b]) {
        if (!unplaced(other) || lo_[other] >= top) continue;
        Reasons reasons = why_[other];
        reasons.merge(why);
        raise(other, top, reasons);
    }
}

// A gap: no candidate of the section sits at its floor. In a packing that is pushed down, a buffer above its
// lower bound rests on a neighbour that is still unplaced (a placed one ends at or below that bound) or fixed.
bool Search::forbid_floor(int section, int level, Reasons& conflict) {
    const std::vector<int> lifted = candidates(section);
    const std::int64_t floor = sections_[section].floor;
    for (int pass = 0; pass < 3; ++pass) {
        bool changed = false;
        for (int c : lifted) {
            Reasons why = why_[c];
            why.add(level);
            std::int64_t next = rules_.canonical_skip ? never : floor + 1;
            if (rules_.canonical_skip) {
                for (int other : in_.neighbours[c]) {
                    why.merge(why_[other]);
                    if (where_[other] == Where::placed) continue;
                    const std::int64_t top = lo_[other] + in_.height[other];
                    if (unplaced(other) || top > lo_[c]) next = std::min(next, top);
                }
            }
            if (next != never) next = in_.lift(c, next);
            if (next > in_.most[c]) {
                conflict = why;
                last_conflict_ = section;
                return false;
            }
            if (next <= lo_[c]) continue;
            raise(c, next, why);
            changed = true;
        }
        if (!changed) break;
    }
    return true;
}

bool Search::propagate(Reasons& conflict) {
    for (;;) {
        if (beyond_ >= 0) {
            conflict = why_[beyond_];
            last_conflict_ = in_.first[beyond_];
            return false;
        }
        for (std::size_t i = 0; i < dirty_list_.size(); ++i) {
            const int s = dirty_list_[i];
            if (!settle(s, conflict)) {
                last_conflict_ = s;
                return false;
            }
            dirty_[s] = 0;
            if (!rules_.boundary || waste(s) != 0) continue;
            for (int cut : {s - 1, s}) {
                if (cut < 0 || cut + 1 >= in_.sections || cut_dirty_[cut]) continue;
                cut_dirty_[cut] = 1;
                cut_list_.push_back(cut);
            }
        }
        dirty_list_.clear();
        for (int cut : cut_list_) {
            if (!balance(cut, conflict)) {
                last_conflict_ = cut;
                return false;
            }
            cut_dirty_[cut] = 0;
        }
        cut_list_.clear();
        if (dirty_list_.empty()) return true;
    }
}

// Recompute a section. Its bound is the earliest end of stacking its unplaced members in order of their lower
// bounds, which is the least any stacking reaches.
bool Search::settle(int section, Reasons& conflict) {
    const auto row = sorted_[section];
    for (std::size_t i = 0; i < row.size(); ++i) {
        Entry entry = row[i];
        entry.lo = where_[entry.buffer] == Where::placed ? never : lo_[entry.buffer];
        std::size_t at = i;
        for (; at > 0 && row[at - 1].lo > entry.lo; --at) row[at] = row[at - 1];
        row[at] = entry;
    }
    std::size_t begin = 0;  // what is fixed below the floor is in nobody's way
    if (in_.has_fixed) {
        while (begin < row.size() && where_[row[begin].buffer] == Where::fixed) ++begin;
    }
    Section now;
    now.floor = begin == row.size() ? never : row[begin].lo;
    std::int64_t top = 0;
    for (std::size_t live = begin; now.floor != never && live < row.size() && row[live].lo != never; ++live) {
        const std::int64_t size = in_.height[row[live].buffer];
        now.total += size;
        now.candidates += row[live].lo == now.floor;
        top = rules_.section_bound ? std::max(top, row[live].lo) + size : now.floor + now.total;
        if (top <= in_.top[section]) continue;
        // The shortest tail of the order that overflows by itself is the explanation.
        conflict = Reasons{};
        std::int64_t tail = 0;
        for (std::size_t i = live + 1; i-- > begin;) {
            tail += in_.height[row[i].buffer];
            conflict.merge(why_[row[i].buffer]);
            if (rules_.section_bound && row[i].lo + tail > in_.top[section]) break;
        }
        return false;
    }
    changed_.push_back({section, sections_[section]});
    sections_[section] = now;
    return true;
}

bool Search::fixed_above(int section, std::int64_t floor) const {
    return std::ranges::any_of(in_.members[section], [&](int b) {
        return where_[b] == Where::fixed && lo_[b] + in_.height[b] > floor;
    });
}

// Whether each candidate of the section is the lowest wherever it is live: nothing can come to lie below it.
bool Search::at_bottom(int section) const {
    for (int b : in_.members[section]) {
        if (!in_.gapped(b) || !unplaced(b) || lo_[b] != sections_[section].floor) continue;
        for (const Stretch& part : in_.live[b]) {
            for (int s = part.begin; s < part.end; ++s) {
                if (sections_[s].floor < lo_[b]) return false;
            }
        }
    }
    return true;
}

void Search::explain_section(int section, Reasons& conflict) const {
    for (int b : in_.members[section]) {
        if (unplaced(b)) conflict.merge(why_[b]);
    }
}

// The boundary rule. In two adjacent sections without room for a gap, the unplaced fill [floor, capacity)
// exactly. What crosses the cut fills the same addresses on both sides, so what ends there (E) and what starts
// there (S) fill the same addresses above the higher floor. The stretch that begins at the lower floor without
// a crossing buffer is tiled by a part of E and, above the higher floor, by a part of S. Not applied where
// something fixed lies above a floor, or where the sections end at different heights.
bool Search::balance(int cut, Reasons& conflict) {
    const Section &left = sections_[cut], &right = sections_[cut + 1];
    if (crossing_[cut] == 0 || waste(cut) != 0 || waste(cut + 1) != 0) return true;
    if (in_.top[cut] != in_.top[cut + 1]) return true;
    const std::int64_t floor = std::min(left.floor, right.floor);
    if (in_.has_fixed && (fixed_above(cut, floor) || fixed_above(cut + 1, floor))) return true;
    constexpr int most = 6;
    std::array<int, most> lower_side{}, upper_side{};
    int lower_count = 0, upper_count = 0;
    const bool left_is_lower = left.floor <= right.floor;
    for (const bool is_left : {true, false}) {
        const bool is_lower = is_left == left_is_lower;
        auto& side = is_lower ? lower_side : upper_side;
        int& count = is_lower ? lower_count : upper_count;
        for (int b : is_left ? in_.ends[cut] : in_.starts[cut]) {
            if (!unplaced(b)) continue;
            if (count == most) return true;
            side[count++] = b;
        }
    }
    if (lower_count == 0) return true;  // equal floors, nothing ends and nothing starts
    const std::int64_t step = std::max(left.floor, right.floor) - floor;

    Reasons why;
    explain_section(cut, why);
    explain_section(cut + 1, why);
    std::int64_t least_crossing = never;
    for (int b : in_.members[cut]) {
        if (unplaced(b) && in_.lives(b, cut + 1)) least_crossing = std::min(least_crossing, lo_[b]);
    }

    if (least_crossing > floor) {
        auto sums = [&](const std::array<int, most>& side, int count, std::vector<std::int64_t>& out) {
            out.assign(1, 0);
            for (int i = 0; i < count; ++i) {
                for (std::size_t k = 0, size = out.size(); k < size; ++k) {
                    out.push_back(out[k] + in_.height[side[i]]);
                }
            }
            std::sort(out.begin(), out.end());
        };
        sums(lower_side, lower_count, lower_sums_);
        sums(upper_side, upper_count, upper_sums_);
        std::int64_t bridge = never;
        std::size_t k = 0;
        for (std::int64_t sum : lower_sums_) {
            while (k < upper_sums_.size() && step + upper_sums_[k] < sum) ++k;
            if (k == upper_sums_.size()) break;
            if (sum > 0 && step + upper_sums_[k] == sum) {
                bridge = sum;
                break;
            }
        }
        if (bridge == never) {
            conflict = why;
            return false;
        }
        for (int b : in_.members[cut]) {
            if (unplaced(b) && in_.lives(b, cut + 1) && lo_[b] < floor + bridge) raise(b, floor + bridge, why);
        }
    }
    if (step == 0) {  // E and S fill the same addresses: neither begins below the other
        std::int64_t ends = never, starts = never;
        for (int i = 0; i < lower_count; ++i) ends = std::min(ends, lo_[lower_side[i]]);
        for (int i = 0; i < upper_count; ++i) starts = std::min(starts, lo_[upper_side[i]]);
        const std::int64_t base = std::max(ends, starts);
        for (int i = 0; i < lower_count; ++i) {
            if (lo_[lower_side[i]] < base) raise(lower_side[i], base, why);
        }
        for (int i = 0; i < upper_count; ++i) {
            if (lo_[upper_side[i]] < base) raise(upper_side[i], base, why);
        }
    }
    return true;
}

}  // namespace onchip::pack
