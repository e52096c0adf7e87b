#include "fusion_streams.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace onchip::fusion {

std::uint32_t Passes::root(std::uint32_t x) {
    const std::uint32_t up = joined_[x];
    if (up == x) return x;
    const std::uint32_t top = root(up);
    shift_[x] += shift_[up];  // from here on the way to the top; a root's own is 0
    return joined_[x] = top;
}

// Channel c of a and channel c + shift of b are in one pass. False when other channels of them already are.
bool Passes::join(std::uint32_t a, std::uint32_t b, std::int64_t shift) {
    const std::uint32_t top_a = root(a), top_b = root(b);
    if (top_a == top_b) return shift_[a] == shift + shift_[b];
    joined_[top_a] = top_b;
    shift_[top_a] = shift + shift_[b] - shift_[a];
    return true;
}

void Passes::load(const Group& group) {
    made_from_.clear();
    if (group.size() > 64) return;
    made_from_.assign(group.size(), 0);
    for (const Group::Op& op : group.ops)
        for (std::uint32_t e = op.in; e < op.in + op.inputs; ++e)
            for (std::uint32_t y = op.out; y < op.out + op.outputs; ++y)
                made_from_[y] |= Word{1} << group.edges[e].tensor;
}

bool Passes::legal_with(const Group& group, const Choice& in_s, std::uint32_t x) {
    // Only what joins two tensors in one pass can close a circle.
    bool joins = false;
    const auto shares = [&](const Group::Op& op) {
        for (std::uint32_t e = op.in; e < op.in + op.inputs; ++e)
            if (group.edges[e].tensor != x && in_s[group.edges[e].tensor]) return true;
        for (std::uint32_t y = op.out; y < op.out + op.outputs; ++y)
            if (y != x && in_s[y]) return true;
        return false;
    };
    const Group::Map& m = group.maps[x];
    if (m.maker != no_id) {
        const Group::Op& op = group.ops[m.maker];
        joins = op.form != Form::reduce && op.form != Form::rowwise && shares(op);
    }
    for (std::uint32_t i = m.reader; i < m.reader + m.readers && !joins; ++i) {
        const Group::Op& op = group.ops[group.read[i].op];
        joins = op.form == Form::elementwise && op.inputs >= 3 && shares(op);
    }
    return !joins || legal(group, in_s);
}

// The same as below on words: passes one after the other, each when all it is made from is there.
bool Passes::legal_words(const Group& group) {
    const auto n = static_cast<std::uint32_t>(group.size());
    pass_.clear(), taken_.clear();
    Word together = 0;  // maps in a pass with others
    for (std::uint32_t x = 0; x < n; ++x) {
        const std::uint32_t r = root(x);
        if (r != x) together |= Word{1} << x | Word{1} << r;
    }
    std::uint32_t place[64];
    each_bit(together, 0, [&](std::uint32_t x) {
        if (root(x) == x) place[x] = static_cast<std::uint32_t>(pass_.size()), pass_.push_back(0), taken_.push_back(0);
    });
    each_bit(together, 0, [&](std::uint32_t x) {
        pass_[place[root(x)]] |= Word{1} << x;
        taken_[place[root(x)]] |= made_from_[x];
    });
    for (const auto& [held, pass] : before_) taken_[place[root(pass)]] |= Word{1} << held;
    Word done = 0;
    const Word all = n == 64 ? ~Word{0} : (Word{1} << n) - 1;
    for (bool more = true; more;) {
        more = false;
        // Maps stand in a topological order: one sweep makes every held one that can be made.
        each_bit(all & ~done & ~together, 0, [&](std::uint32_t x) {
            if ((made_from_[x] & ~done) == 0) done |= Word{1} << x, more = true;
        });
        for (std::size_t p = 0; p < pass_.size(); ++p)
            if ((pass_[p] & ~done) != 0 && (taken_[p] & ~pass_[p] & ~done) == 0) done |= pass_[p], more = true;
    }
    return done == all;
}

bool Passes::none_waits(const Group& group, const Choice& in_s) {
    before_.clear();
    for (const Group::Op& op : group.ops) {
        if (op.form != Form::elementwise || op.inputs < 3 || in_s[op.out]) continue;
        std::uint32_t slices = 0, first = no_id;
        for (std::uint32_t e = op.in; e < op.in + op.inputs; ++e)
            if (in_s[group.edges[e].tensor]) ++slices, first = group.edges[e].tensor;
        if (slices < 2) continue;
        for (std::uint32_t e = op.in; e < op.in + op.inputs; ++e)
            if (!in_s[group.edges[e].tensor]) before_.emplace_back(group.edges[e].tensor, first);
    }
    const bool result = before_.empty() || legal(group, in_s);
    before_.clear();
    return result;
}

bool Passes::legal(const Group& group, const Choice& in_s) {
    const auto n = static_cast<std::uint32_t>(group.size());
    joined_.resize(n);
    std::iota(joined_.begin(), joined_.end(), 0U);
    shift_.assign(n, 0);
    bool merged = false;
    for (const Group::Op& op : group.ops) {
        if (op.form == Form::reduce || op.form == Form::rowwise) continue;
        // With a result in S its operands' slices pass through. Of three operands or more two slices would have
        // to wait for a third, and only one has a place to wait: the result's.
        const bool through = in_s[op.out] != 0;
        if (!through && !(op.form == Form::elementwise && op.inputs >= 3)) continue;
        std::uint32_t first = through ? op.out : no_id;
        std::int64_t shift = 0;
        for (std::uint32_t e = op.in; e < op.in + op.inputs; ++e) {
            const std::uint32_t x = group.edges[e].tensor;
            if (in_s[x]) {
                if (first == no_id)
                    first = x;
                else if (!join(x, first, shift))
                    return false;
                else
                    merged = true;
            }
            if (op.form == Form::concat) shift += group.maps[x].channels;
        }
    }
    if (!merged) return true;  // the group itself is acyclic
    if (!made_from_.empty()) return legal_words(group);
    // Count what every pass and held tensor waits for, then run what waits for nothing.
    waiting_.assign(n, 0);
    std::uint32_t left = 0;
    for (std::uint32_t x = 0; x < n; ++x) left += root(x) == x;
    for (const Group::Op& op : group.ops)
        for (std::uint32_t e = op.in; e < op.in + op.inputs; ++e)
            for (std::uint32_t y = op.out; y < op.out + op.outputs; ++y)
                if (root(group.edges[e].tensor) != root(y)) ++waiting_[root(y)];
    for (const auto& [held, pass] : before_) ++waiting_[root(pass)];
    ready_.clear();
    for (std::uint32_t x = 0; x < n; ++x)
        if (root(x) == x && waiting_[x] == 0) ready_.push_back(x);
    while (!ready_.empty()) {
        const std::uint32_t node = ready_.back();
        ready_.pop_back();
        --left;
        for (std::uint32_t x = 0; x < n; ++x) {
            if (root(x) != node) continue;
            const Group::Map& m = group.maps[x];
            for (std::uint32_t i = m.reader; i < m.reader + m.readers; ++i) {
                const Group::Op& c = group.ops[group.read[i].op];
                for (std::uint32_t y = c.out; y < c.out + c.outputs; ++y)
                    if (root(y) != node && --waiting_[root(y)] == 0) ready_.push_back(root(y));
            }
            for (const auto& [held, pass] : before_)
                if (held == x && --waiting_[root(pass)] == 0) ready_.push_back(root(pass));
        }
    }
    return left == 0;
}

void may_stream(const Group& group, Choice& candidate) {
    candidate.assign(group.size(), 0);
    const Isoa isoa = group.problem().options.isoa;
    if (isoa == Isoa::off) return;
    for (std::size_t x = 0; x < group.size(); ++x)
        candidate[x] = group.maps[x].channels > group.maps[x].few && !group.maps[x].whole;
    if (isoa == Isoa::paper) return;
    for (const Group::Op& op : group.ops)
        for (std::uint32_t e = op.in; e < op.in + op.inputs; ++e)
            if (op.form == Form::rowwise || group.edges[e].window.broadcast) candidate[group.edges[e].tensor] = 0;
}

void excluded_pairs(const Group& group, const Choice& candidate, std::vector<std::uint32_t>& parent) {
    const auto n = static_cast<std::uint32_t>(group.size());
    parent.assign(n, no_id);
    // mixed[x]: maps from which a path leads to x that some operator on it sums or mixes channels.
    // plain[x]: maps from which any path leads to x. Built only if some operator could use them.
    bool asked = false;
    const bool paper = group.problem().options.isoa == Isoa::paper;
    for (const Group::Op& op : group.ops) {
        if (op.form == Form::reduce || paper) {
            for (std::uint32_t y = op.out; y < op.out + op.outputs; ++y)
                for (std::uint32_t e = op.in; e < op.in + op.inputs && candidate[y]; ++e)
                    if (candidate[group.edges[e].tensor]) parent[y] = group.edges[e].tensor;
        } else if (op.inputs > 1 && candidate[op.out]) {
            asked = true;
        }
    }
    if (!asked || group.problem().options.isoa == Isoa::sums) return;
    const std::size_t words = words_for(n);
    static thread_local std::vector<Word> mixed, plain;  // asked for every candidate: no allocation each time
    mixed.assign(n * words, 0), plain.assign(n * words, 0);
    for (const Group::Op& op : group.ops) {
        const bool mixes = op.form == Form::reduce || op.form == Form::rowwise;
        for (std::uint32_t y = op.out; y < op.out + op.outputs; ++y)
            for (std::uint32_t e = op.in; e < op.in + op.inputs; ++e) {
                const std::uint32_t x = group.edges[e].tensor;
                for (std::size_t w = 0; w < words; ++w) {
                    plain[y * words + w] |= plain[x * words + w];
                    mixed[y * words + w] |= mixes ? plain[x * words + w] : mixed[x * words + w];
                }
                add(&plain[y * words], x);
                if (mixes) add(&mixed[y * words], x);
            }
        if (mixes || op.inputs < 2 || !candidate[op.out]) continue;
        // The operand and this result would share a pass, which a held tensor between them would split.
        for (std::uint32_t e = op.in; e < op.in + op.inputs && parent[op.out] == no_id; ++e) {
            const std::uint32_t x = group.edges[e].tensor;
            if (candidate[x] && test(&mixed[op.out * words], x)) parent[op.out] = x;
        }
    }
}

void overlaps(const Group& group, const Choice& in_s, std::vector<std::int64_t>& back,
              std::vector<std::int64_t>& more) {
    const std::size_t n = group.size();
    const Halo halo = group.problem().options.halo;
    back.assign(n, 0), more.assign(n, 0);
    for (std::size_t x = n; x-- > 0;) {
        const Group::Map& m = group.maps[x];
        if (m.ahead >= all_rows) {
            more[x] = all_rows;
            continue;
        }
        std::int64_t g = m.begins, paper = m.escaping ? 0 : -all_rows;
        for (std::uint32_t i = m.reader; i < m.reader + m.readers; ++i) {
            const Window& w = group.edges[group.read[i].edge].window;
            const Group::Op& c = group.ops[group.read[i].op];
            for (std::uint32_t y = c.out; y < c.out + c.outputs; ++y) {
                const bool anew = halo == Halo::recompute || in_s[y];
                const std::int64_t from = w.stride * (anew ? back[y] : group.maps[y].surely) - w.padding;
                g = std::min(g, from);
                paper = std::max(paper, w.stride * more[y] + w.span - w.stride);
            }
        }
        back[x] = g;
        more[x] = halo == Halo::paper ? paper : std::max(m.ahead, m.ahead - g);
    }
}

// How far every map is made at the end of band j.
void Walk::band(const Group& group, std::int64_t j, std::int64_t t) {
    for (std::size_t x = group.size(); x-- > 0;) {
        const Group::Map& m = group.maps[x];
        std::int64_t high = 0;
        if (m.escaping) high = Group::at_once(m) ? m.rows : std::min(m.rows, (j + 1) * m.scale * t);
        for (std::uint32_t i = m.reader; i < m.reader + m.readers; ++i) {
            const Window& w = group.edges[group.read[i].edge].window;
            const Group::Op& c = group.ops[group.read[i].op];
            for (std::uint32_t y = c.out; y < c.out + c.outputs; ++y)
                high = std::max(high, Group::need(w, high_[y], m));
        }
        high_[x] = high;
    }
}

// How many bands after this one are like it: every map goes on by its scale, or is done.
std::int64_t Walk::steady(const Group& group, const Choice& in_s, bool all, std::int64_t t) const {
    std::int64_t bands = std::numeric_limits<std::int64_t>::max();
    for (std::size_t x = 0; x < group.size(); ++x) {
        const Group::Map& m = group.maps[x];
        const std::int64_t step = m.scale * t, made = high_[x] - before_[x], moved = low_[x] - last_low_[x];
        if (made == step && moved == step && !Group::at_once(m)) {
            bands = std::min(bands, (m.last - high_[x]) / step);
            continue;
        }
        const bool anew = all || in_s[x];
        if (made != 0 || high_[x] != m.last || moved < 0 || (anew && moved != 0)) return 0;
    }
    return bands;
}

void Walk::run(const Group& group, const Choice& in_s, bool all, std::int64_t t) {
    const std::size_t n = group.size();
    most_.assign(n, 0), again_.assign(n, 0);
    before_.assign(n, 0), high_.assign(n, 0), low_.assign(n, 0), last_low_.assign(n, 0);
    const std::int64_t bands = group.bands(t);
    for (std::int64_t j = 0; j < bands; ++j) {
        band(group, j, t);
        for (std::size_t x = n; x-- > 0;) {
            const Group::Map& m = group.maps[x];
            std::int64_t low = before_[x];
            for (std::uint32_t i = m.reader; i < m.reader + m.readers; ++i) {
                const Window& w = group.edges[group.read[i].edge].window;
                const Group::Op& c = group.ops[group.read[i].op];
                for (std::uint32_t y = c.out; y < c.out + c.outputs; ++y) {
                    const std::int64_t begin = all || in_s[y] ? low_[y] : before_[y];
                    if (begin < high_[y])
                        low = std::min(low, w.whole ? 0 : std::clamp<std::int64_t>(begin * w.stride - w.padding, 0, m.rows));
                }
            }
            low_[x] = low;
            most_[x] = std::max(most_[x], high_[x] - low);
            if (m.external && (all || in_s[x])) again_[x] += std::max<std::int64_t>(0, before_[x] - low);
        }
        const std::int64_t alike =
            j > 0 && group.tidy() ? std::min(bands - 1 - j, steady(group, in_s, all, t)) : 0;
        if (alike > 0) {
            for (std::size_t x = 0; x < n; ++x) {
                const Group::Map& m = group.maps[x];
                if (m.external && (all || in_s[x])) again_[x] += alike * std::max<std::int64_t>(0, before_[x] - low_[x]);
                if (high_[x] == before_[x]) continue;  // done
                high_[x] += alike * m.scale * t, low_[x] += alike * m.scale * t;
            }
            j += alike;
        }
        // A reader looks at before_ of maps after it, so the band is closed only now.
        before_ = high_, last_low_ = low_;
    }
}

void Walk::halo(const Group& group, const Choice& in_s, bool all, std::int64_t t, std::vector<std::int64_t>& rows) {
    run(group, in_s, all, t);
    rows = again_;
}

void Walk::buffers(const Group& group, const Choice& in_s, std::int64_t t, std::vector<std::int64_t>& rows) {
    run(group, in_s, false, t);
    rows = most_;
}

void Walk::first(const Group& group, std::int64_t t, std::vector<std::int64_t>& rows) {
    high_.assign(group.size(), 0);
    band(group, 0, t);
    rows = high_;
}

bool may_join(const Group& group, const Choice& in_s, std::uint32_t x) {
    const std::uint32_t maker = group.maps[x].maker;
    if (maker == no_id) return true;
    const Group::Op& op = group.ops[maker];
    if (op.form != Form::reduce && group.problem().options.isoa != Isoa::paper) return true;
    for (std::uint32_t e = op.in; e < op.in + op.inputs; ++e)
        if (in_s[group.edges[e].tensor]) return false;
    return true;
}

void rows_at_least(const Group& group, std::vector<std::int64_t>& ahead, std::vector<std::int64_t>& rows) {
    const Problem& problem = group.problem();
    const bool paper = problem.options.halo == Halo::paper;
    rows.assign(group.size(), 0), ahead.assign(group.size(), 0);
    for (std::size_t x = group.size(); x-- > 0;) {
        const Group::Map& m = group.maps[x];
        const Tensor& tensor = problem.tensors[m.id];
        std::int64_t far = paper ? tensor.least_more : tensor.least_ahead;
        Shared shared;
        for (std::uint32_t i = m.reader; i < m.reader + m.readers && far < all_rows; ++i) {
            const Window& w = group.edges[group.read[i].edge].window;
            const Group::Op& c = group.ops[group.read[i].op];
            for (std::uint32_t y = c.out; y < c.out + c.outputs; ++y) {
                const Tensor& made = problem.tensors[group.maps[y].id];
                if (w.whole || ahead[y] >= all_rows) {
                    far = all_rows;
                    break;
                }
                far = std::max(far, paper ? w.stride * (ahead[y] - 1) + w.span : least_need(w, ahead[y], made.surely >= 1));
                if (paper || problem.padded) continue;
                const Shared one = Shared::of(w, tensor.rows, made.needed);
                if (one.apart > shared.apart) shared = one;
            }
        }
        ahead[x] = far;
        const std::int64_t own = m.scale * problem.least_rows;
        rows[x] = far >= all_rows ? tensor.needed : std::clamp<std::int64_t>(own + shared.beyond(own, far), 0, tensor.needed);
    }
}

}  // namespace onchip::fusion
