#include "fusion_group.h"

#include <algorithm>
#include <numeric>

namespace onchip::fusion {

bool Group::load(std::span<const Id> members) {
    for (const Map& m : maps) local_[m.id] = no_id;
    ops.clear(), edges.clear(), maps.clear(), read.clear();
    crossing = 0;
    ++loads_;
    for (const Id v : members) member_of_[v] = loads_;
    const auto inside = [&](Id op) { return member_of_[op] == loads_; };
    const auto place = [&](Id t, bool external) {
        const Tensor& x = problem_.tensors[t];
        local_[t] = static_cast<std::uint32_t>(maps.size());
        maps.push_back({t, external, false, x.channels, std::min(problem_.channel_tile, x.channels), x.rows,
                        x.row_bytes, 1, 0, 0, 0, no_id});
    };
    bool banded = true;
    for (const Id v : members) {
        const Operator& op = problem_.operators[v];
        banded = banded && op.form != Form::opaque;
        for (const Window& w : op.inputs)
            if (local_[w.tensor] == no_id) {
                const Id p = problem_.tensors[w.tensor].producer;
                if (p == no_id || !inside(p)) place(w.tensor, true), crossing += problem_.tensors[w.tensor].bytes;
            }
    }
    for (const Id v : members) {
        const Operator& op = problem_.operators[v];
        ops.push_back({v, op.form, static_cast<std::uint32_t>(edges.size()),
                       static_cast<std::uint32_t>(op.inputs.size()), static_cast<std::uint32_t>(maps.size()),
                       static_cast<std::uint32_t>(op.outputs.size())});
        for (const Window& w : op.inputs) {
            edges.push_back({local_[w.tensor], w});
            ++maps[local_[w.tensor]].readers;
        }
        for (const Id t : op.outputs) {
            place(t, false);
            const Tensor& x = problem_.tensors[t];
            const bool escapes = x.output || x.readers.empty() ||
                                 std::any_of(x.readers.begin(), x.readers.end(), [&](Id r) { return !inside(r); });
            maps.back().escaping = escapes;
            maps.back().maker = static_cast<std::uint32_t>(ops.size() - 1);
            if (escapes) crossing += x.bytes;
        }
    }
    std::uint32_t at = 0;
    for (Map& m : maps) m.reader = at, at += m.readers, m.readers = 0;
    read.resize(at);
    for (std::uint32_t o = 0; o < ops.size(); ++o)
        for (std::uint32_t e = ops[o].in; e < ops[o].in + ops[o].inputs; ++e) {
            Map& m = maps[edges[e].tensor];
            read[m.reader + m.readers++] = {o, e};
        }
    return banded && scales();
}

void Group::plan_bands() {
    rows_ahead();
    rows_in_all();
    counted_.clear();
    longest_ = 1;
    for (const Map& m : maps)
        if (m.escaping && m.rows > 1 && m.ahead < all_rows) {
            const auto same = std::find_if(counted_.begin(), counted_.end(), [&](const Counted& c) {
                return c.rows == m.rows && c.scale == m.scale;
            });
            if (same == counted_.end()) counted_.push_back({m.rows, m.scale});
            longest_ = std::max(longest_, (m.rows + m.scale - 1) / m.scale);
        }
}

// A_in = A_out * stride along every window that moves, smallest whole numbers in every connected part.
bool Group::scales() {
    const auto binds = [&](const Edge& e, std::uint32_t y) {
        return !e.window.whole && maps[e.tensor].rows > 1 && maps[y].rows > 1;
    };
    const bool plain = std::all_of(edges.begin(), edges.end(), [](const Edge& e) { return e.window.stride == 1; });
    if (plain) return true;  // every scale is 1
    ratio_.assign(maps.size(), {});
    for (std::uint32_t start = 0; start < maps.size(); ++start) {
        if (ratio_[start].up) continue;
        ratio_[start] = {1, 1};
        waiting_.assign(1, start), part_.assign(1, start);
        std::int64_t common = 1;
        while (!waiting_.empty()) {
            const std::uint32_t x = waiting_.back();
            waiting_.pop_back();
            bool fits = true;
            const auto relate = [&](std::uint32_t y, std::int64_t up, std::int64_t down) {
                const std::int64_t divisor = std::gcd(up, down);
                up /= divisor, down /= divisor;
                if (!ratio_[y].up) {
                    ratio_[y] = {up, down};
                    common = std::lcm(common, down);
                    waiting_.push_back(y), part_.push_back(y);
                } else if (ratio_[y].up != up || ratio_[y].down != down) {
                    fits = false;
                }
            };
            const Ratio r = ratio_[x];
            for (std::uint32_t i = maps[x].reader; i < maps[x].reader + maps[x].readers; ++i) {
                const Edge& e = edges[read[i].edge];
                const Op& c = ops[read[i].op];
                for (std::uint32_t y = c.out; y < c.out + c.outputs; ++y)
                    if (binds(e, y)) relate(y, r.up, r.down * e.window.stride);
            }
            if (!maps[x].external) {
                const Op& maker = ops[maps[x].maker];
                for (std::uint32_t i = maker.in; i < maker.in + maker.inputs; ++i)
                    if (binds(edges[i], x)) relate(edges[i].tensor, r.up * edges[i].window.stride, r.down);
            }
            // Beyond any real network: refused before a product can overflow.
            if (!fits || common > (std::int64_t{1} << 24) || r.up > (std::int64_t{1} << 24)) return false;
        }
        std::int64_t divisor = 0;
        for (const std::uint32_t x : part_) {
            maps[x].scale = ratio_[x].up * (common / ratio_[x].down);
            divisor = std::gcd(divisor, maps[x].scale);
        }
        for (const std::uint32_t x : part_) maps[x].scale /= divisor;
    }
    return true;
}

void Group::rows_ahead() {
    for (std::uint32_t x = static_cast<std::uint32_t>(maps.size()); x-- > 0;) {
        Map& m = maps[x];
        std::int64_t f = m.escaping ? 0 : -all_rows, surely = f, begins = m.escaping ? 0 : all_rows;
        for (std::uint32_t i = m.reader; i < m.reader + m.readers && f < all_rows; ++i) {
            const Window& w = edges[read[i].edge].window;
            const Op& c = ops[read[i].op];
            for (std::uint32_t y = c.out; y < c.out + c.outputs; ++y) {
                const Map& made = maps[y];
                if (w.whole || made.ahead >= all_rows || (made.rows == 1 && m.rows > 1)) {
                    f = all_rows;
                    break;
                }
                f = std::max(f, w.stride * (made.ahead - 1) - w.padding + w.span);
                std::int64_t made_for = w.stride * (made.surely - 1) - w.padding + w.span;
                if (made.scale + made.surely < 1) made_for = std::min(made_for, w.stride * made.surely);
                surely = std::max(surely, made_for);
                if (!m.escaping) begins = std::min(begins, made_for);
            }
        }
        m.ahead = f;
        m.surely = surely;
        m.begins = begins;
    }
}

// What is needed of every map in the end, and whether the closed form says how many rows of it a buffer has.
void Group::rows_in_all() {
    plain_ = tidy_ = true;
    first_.assign(maps.size(), 0);  // of a map that is made at once: its rows after the first band
    for (std::uint32_t x = static_cast<std::uint32_t>(maps.size()); x-- > 0;) {
        Map& m = maps[x];
        m.last = m.escaping ? m.rows : 0;
        if (m.escaping && at_once(m)) first_[x] = m.rows;
        std::int64_t begin = all_rows;
        for (std::uint32_t i = m.reader; i < m.reader + m.readers; ++i) {
            const Window& w = edges[read[i].edge].window;
            const Op& c = ops[read[i].op];
            for (std::uint32_t y = c.out; y < c.out + c.outputs; ++y) {
                const Map& made = maps[y];
                m.last = std::max(m.last, need(w, made.last, m));
                tidy_ = tidy_ && (w.whole || (made.rows - 1) * w.stride - w.padding < m.rows);
                if (at_once(made)) first_[x] = std::max(first_[x], need(w, first_[y], m));
                else if (!w.whole) begin = std::min(begin, w.stride * made.surely - w.padding);
            }
        }
        if (at_once(m))
            plain_ = plain_ && first_[x] == m.rows;
        else
            plain_ = plain_ && m.surely == m.ahead && (m.begins == m.ahead || m.begins >= begin);
    }
}

}  // namespace onchip::fusion
