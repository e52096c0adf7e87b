// The rows of a group's buffers in bands of one height, the bytes of these buffers, and what crosses again.
#include "fusion_cost.h"

#include <algorithm>

namespace onchip::fusion {

// What of the rows does not depend on the height of a band.
void Evaluator::prepare_rows() {
    in_s_.assign(group_.size(), 0);
    overlaps(group_, candidate_, most_back_, held_more_);
    overlaps(group_, in_s_, held_back_, held_more_);
    thin_bounds_ = true;
    if (problem_.options.halo != Halo::lines) return;
    const std::int64_t longest = group_.longest(), thin = std::min(problem_.least_rows, longest);
    for (std::int64_t t = thin; t < longest && thin_bounds_ && near(t - thin); ++t)
        thin_bounds_ = exact({t, group_.bands(t), 1, 1});
}

// Whether the closed form says how many rows every buffer has: in some band no border of a map cuts any of them.
bool Evaluator::exact(const Point& at) const {
    if (problem_.options.halo != Halo::lines) return true;
    if (!group_.plain() || at.bands == 1) return false;
    std::int64_t band = 1;
    for (std::uint32_t x = 0; x < group_.size(); ++x) {
        const Group::Map& m = group_.maps[x];
        if (Group::at_once(m)) continue;
        const std::int64_t step = m.scale * at.t;
        band = std::max(band, (step - 1 - most_back_[x]) / step);
    }
    for (const Group::Map& m : group_.maps)
        if (!Group::at_once(m) && m.scale * at.t * (band + 1) + std::max<std::int64_t>(m.ahead, 0) > m.rows) return false;
    return true;
}

// Whether bands that are higher by so many rows may need fewer rows of some buffer.
bool Evaluator::near(std::int64_t higher) const {
    if (!group_.plain()) return true;
    for (std::uint32_t x = 0; x < group_.size(); ++x) {
        const Group::Map& m = group_.maps[x];
        if (!Group::at_once(m) && m.scale * higher < -most_back_[x]) return true;
    }
    return higher == 0;
}

// Whether no bands as many as these need fewer rows than the closed form says of these.
bool Evaluator::exact_around(const Point& at) const {
    if (problem_.options.halo != Halo::lines) return true;
    Point higher = at;
    do {
        if (!exact(higher)) return false;
        ++higher.t;
    } while (near(higher.t - at.t) && group_.bands(higher.t) == at.bands);
    return true;
}

// From here on rows are those of this height, where the closed form is not exact.
void Evaluator::rows_for(const Point& at) {
    walked_ = !exact(at);
    rows_ = nullptr;
    if (!walked_) return;
    in_s_.assign(group_.size(), 0);
    walk_.buffers(group_, in_s_, at.t, walked_rows_);
    rows_ = &walked_rows_;
}

// From here on rows are no more than in any band of t rows or more.
void Evaluator::rows_from(std::int64_t t) {
    walk_.first(group_, t, fewest_);
    rows_ = &fewest_;
}

// The same for all bands.
void Evaluator::rows_of_all_heights() {
    const std::int64_t longest = group_.longest(), thin = std::min(problem_.least_rows, longest);
    rows_ = nullptr;
    if (!thin_bounds_ || thin == longest) rows_from(thin);
}

inline std::int64_t Evaluator::more(std::uint32_t x, const std::vector<std::int64_t>& by_map,
                                    const Point& at) const {
    return at.bands == 1 ? group_.maps[x].ahead : by_map[x];
}

inline Bytes Evaluator::size(std::uint32_t x, std::int64_t rows_more, const Point& at, bool few) const {
    const Group::Map& m = group_.maps[x];
    if (m.whole) return 0;
    const std::int64_t rows = rows_ ? (*rows_)[x] : rows_of(m, rows_more, at.t);
    return problem_.round_up(at.images * m.row_bytes * rows * (few ? m.few : m.channels));
}

Bytes Evaluator::buffers(const Choice& in_s, const std::vector<std::int64_t>& by_map, const Point& at) const {
    Bytes sum = 0;
    for (std::uint32_t x = 0; x < group_.size(); ++x) sum += size(x, more(x, by_map, at), at, in_s[x] != 0);
    return sum;
}

// The least buffer bytes were S any independent set of the forest `parent_`, and the rows those of a group where
// everything is held: out_[x] and in_[x] are for the candidates that hang from x, with x out of S and in it.
void Evaluator::bound(const Point& at) {
    const std::size_t n = group_.size();
    out_.resize(n), in_.resize(n), extra_.assign(n, 0);
    held_sum_ = 0;
    for (std::uint32_t x = 0; x < n; ++x) {
        const std::int64_t m = rows_ ? 0 : more(x, held_more_, at);
        const Bytes held = size(x, m, at, false);
        if (!candidate_[x]) {
            held_sum_ += held;
            continue;
        }
        out_[x] = held, in_[x] = size(x, m, at, true);
    }
    const bool lines = problem_.options.halo == Halo::lines && at.bands > 1 && !rows_;
    if (lines)
        // A result in S begins its rows anew, so its operand, then held, keeps more of them. At most one result
        // counts for an operand: the rows are a maximum, not a sum.
        for (const std::uint32_t y : order_) {
            const std::uint32_t x = parent_[y];
            if (x == no_id || held_more_[x] >= all_rows) continue;
            const Group::Map& p = group_.maps[x];
            for (std::uint32_t i = p.reader; i < p.reader + p.readers; ++i) {
                const Group::Op& c = group_.ops[group_.read[i].op];
                if (y < c.out || y >= c.out + c.outputs) continue;
                const Window& w = group_.edges[group_.read[i].edge].window;
                const std::int64_t g = w.stride * held_back_[y] - w.padding;
                const std::int64_t m = std::max(held_more_[x], p.ahead - g);
                extra_[y] = size(x, m, at, false) - size(x, held_more_[x], at, false);
            }
        }
    least_ = held_sum_;
    for (std::size_t i = order_.size(); i-- > 0;) {
        const std::uint32_t y = order_[i], x = parent_[y];
        if (x == no_id) {
            least_ += std::min(out_[y], in_[y]);
            continue;
        }
        in_[x] += out_[y];
        out_[x] += std::min(out_[y], in_[y]);
    }
    // The surcharge: of one result of every operand, the dearest. Done as a second pass so that it is exact.
    if (!lines || std::all_of(extra_.begin(), extra_.end(), [](Bytes b) { return b == 0; })) return;
    std::vector<Bytes>& dearest = halo_bound_;  // room that is free here
    dearest.assign(n, 0);
    for (const std::uint32_t y : order_)
        if (parent_[y] != no_id) dearest[parent_[y]] = std::max(dearest[parent_[y]], extra_[y]);
    for (const std::uint32_t y : order_) {
        const std::uint32_t x = parent_[y];
        if (x == no_id || extra_[y] == 0) continue;
        if (extra_[y] == dearest[x])
            dearest[x] = -1;  // later ones of the same operand do not count
        else
            extra_[y] = 0;
    }
    least_ = held_sum_;
    for (const std::uint32_t x : order_) {
        const std::int64_t m = held_more_[x];
        out_[x] = size(x, m, at, false), in_[x] = size(x, m, at, true);
    }
    for (std::size_t i = order_.size(); i-- > 0;) {
        const std::uint32_t y = order_[i], x = parent_[y];
        if (x == no_id) {
            least_ += std::min(out_[y], in_[y]);
            continue;
        }
        in_[x] += out_[y];
        out_[x] += std::min(out_[y], in_[y] + extra_[y]);
    }
}

void Evaluator::least_buffers(std::vector<Bytes>& result) {
    result.assign(group_.size(), unlimited);
    const std::int64_t longest = group_.longest(), thin = std::min(problem_.least_rows, longest);
    // Between them rows only grow; one band alone can need fewer.
    for (const std::int64_t t : {thin, longest}) {
        const Point at{t, group_.bands(t), 1, 1};
        if (at.bands == 1 && problem_.options.halo == Halo::lines) rows_from(t);
        else rows_of_all_heights();
        for (std::uint32_t x = 0; x < group_.size(); ++x) {
            const std::int64_t rows = rows_ ? 0 : more(x, held_more_, at);
            result[x] = std::min(result[x], size(x, rows, at, candidate_[x] != 0));
        }
    }
    rows_ = nullptr;
}

// Bytes of an external map that cross again, by the rows last walked.
Bytes Evaluator::charged(std::uint32_t x) const {
    const Group::Map& m = group_.maps[x];
    const Bytes all = problem_.images * m.row_bytes * m.channels * halo_rows_[x];
    return halo_percent_ < 0 ? all : std::min(all, problem_.tensors[m.id].bytes * halo_percent_ / 100);
}

// Halo of every external candidate at least, by map: what it is when nothing inside begins anew.
void Evaluator::halo_bounds() {
    halo_known_ = true;
    Choice all(group_.size(), 0);
    for (const std::uint32_t x : order_) all[x] = group_.maps[x].external;
    walk_.halo(group_, all, problem_.options.halo == Halo::recompute, at_.t, halo_rows_);
    halo_bound_.assign(group_.size(), 0);
    for (const std::uint32_t x : order_) {
        const Group::Map& m = group_.maps[x];
        if (m.external) halo_bound_[x] = charged(x);
    }
    // With the others S changes nothing: all of it crosses, or none.
    if (problem_.options.halo != Halo::lines) halo_bound_.assign(group_.size(), 0);
}

Bytes Evaluator::halo_of(const Choice& in_s, const Point& at) {
    if (at.bands == 1 || problem_.options.halo == Halo::paper) return 0;
    const bool all = problem_.options.halo == Halo::recompute;
    bool any = all;
    for (std::uint32_t x = 0; x < group_.size() && group_.maps[x].external; ++x) any = any || in_s[x];
    if (!any) return 0;
    walk_.halo(group_, in_s, all, at.t, halo_rows_);
    Bytes sum = 0;
    for (std::uint32_t x = 0; x < group_.size() && group_.maps[x].external; ++x)
        sum += charged(x);
    return sum;
}

}  // namespace onchip::fusion
