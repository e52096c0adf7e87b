#include "joint_downsets.h"

#include <algorithm>

namespace onchip::joint {

Downsets::Downsets(Prices& prices)
    : prices_(prices),
      problem_(prices.problem()),
      operator_words_(problem_.words()),
      tensor_words_(words_for(problem_.tensors.size())) {
    const auto n = static_cast<Id>(problem_.operators.size());
    starts_.resize(n);
    worth_.resize(n);
    std::vector<Id> mark(n, no_id);
    for (Id g = 0; g < prices_.groups(); ++g) {
        const std::vector<Id>& members = prices_.members(g);
        for (const Id v : members) mark[v] = g;
        Start s{g, static_cast<std::uint32_t>(ids_.size()), 0, 0};
        for (const Id v : members)
            for (const Id p : problem_.before[v])
                if (mark[p] != g) ids_.push_back(p);
        std::sort(ids_.begin() + s.needs, ids_.end());
        ids_.erase(std::unique(ids_.begin() + s.needs, ids_.end()), ids_.end());
        s.needed = static_cast<std::uint32_t>(ids_.size()) - s.needs;
        for (const Id v : members)
            if (std::none_of(problem_.before[v].begin(), problem_.before[v].end(), [&](Id p) { return mark[p] == g; }))
                ids_.push_back(v);
        s.begun = static_cast<std::uint32_t>(ids_.size()) - s.needs - s.needed;
        starts_[members.front()].push_back(s);
    }
    for (Id v = 0; v < n; ++v) worth_[v] = prices_.floor(prices_.alone(v));
    pool_.assign(operator_words_ + tensor_words_, 0);
    sets_.push_back({0, 0, 0, 0});
    table_.put(0, 0, [](Id) { return 0; });
    refresh(0);
}

// Which tensors are live in a set, and what the rest costs at least by the worth of its operators.
void Downsets::refresh(Id set) {
    const Word* const ran = done(set);
    Word* const live = &pool_[sets_[set].at + operator_words_];
    std::fill_n(live, tensor_words_, Word{0});
    for (Id t = 0; t < problem_.tensors.size(); ++t) {
        const fusion::Tensor& x = problem_.tensors[t];
        if (x.producer != no_id && !test(ran, x.producer)) continue;
        if (std::any_of(x.readers.begin(), x.readers.end(), [&](Id r) { return !test(ran, r); })) add(live, t);
    }
    Bytes ahead = 0;
    for (Id v = 0; v < worth_.size(); ++v)
        if (!test(ran, v)) ahead += worth_[v];
    sets_[set].ahead = ahead;
}

std::pair<Id, bool> Downsets::reach(Id from, std::span<const Id> members) {
    std::uint64_t hash = sets_[from].hash;
    for (const Id v : members) hash ^= fusion::random_word(v);
    const std::size_t at = pool_.size();
    pool_.resize(at + operator_words_ + tensor_words_, 0);
    std::copy_n(pool_.begin() + static_cast<std::ptrdiff_t>(sets_[from].at), operator_words_,
                pool_.begin() + static_cast<std::ptrdiff_t>(at));
    for (const Id v : members) add(&pool_[at], v);
    const Id known = table_.find(hash, [&](Id i) {
        const Set& s = sets_[i];
        return s.hash == hash && std::equal(&pool_[at], &pool_[at] + operator_words_, &pool_[s.at]);
    });
    if (known != no_id) {
        pool_.resize(at);
        return {known, false};
    }
    const auto id = static_cast<Id>(sets_.size());
    table_.put(id, hash, [&](Id i) { return sets_[i].hash; });
    sets_.push_back({at, hash, sets_[from].count + static_cast<std::uint32_t>(members.size()), 0});
    refresh(id);
    return {id, true};
}

bool Downsets::ready(Id op, const Word* ran) const {
    if (test(ran, op)) return false;
    const std::vector<Id>& before = problem_.before[op];
    return std::all_of(before.begin(), before.end(), [&](Id p) { return test(ran, p); });
}

void Downsets::moves(Id set, std::vector<Move>& result) {
    result.clear();
    for (Id v = 0; v < problem_.operators.size(); ++v) {
        if (!ready(v, done(set))) continue;
        for (const Start& s : starts_[v]) {
            ++looked_;
            const Word* const ran = done(set);
            const Id* const needs = ids_.data() + s.needs;
            if (!std::all_of(needs, needs + s.needed, [&](Id p) { return test(ran, p); })) continue;
            if (std::any_of(needs + s.needed, needs + s.needed + s.begun, [&](Id p) { return test(ran, p); })) continue;
            result.push_back({s.group, reach(set, prices_.members(s.group)).first, 0});
        }
    }
}

void Downsets::worth(std::vector<Bytes> of) {
    worth_ = std::move(of);
    for (Id set = 0; set < sets_.size(); ++set) refresh(set);
}

// What no way to a set costs less than, by quick bounds of the groups. `order`: sets of fewer operators last.
std::vector<Bytes> Downsets::least_before(std::span<const Id> order) {
    std::vector<Bytes> before(sets_.size(), unlimited);
    before[0] = 0;
    std::vector<Move> from;
    for (std::size_t i = order.size(); i-- > 0;) {
        if (before[order[i]] >= unlimited) continue;
        moves(order[i], from);
        for (const Move& m : from) {
            const Bytes bound = prices_.bound(m.group);
            if (bound < unlimited) before[m.to] = std::min(before[m.to], before[order[i]] + bound);
        }
    }
    return before;
}

bool Downsets::price(std::size_t most, Bytes below, fusion::Clock& clock) {
    for (Id set = 0; set < sets_.size(); ++set) refresh(set);  // what was known may hold for less than `below` alone
    // Operators one by one reach every downset.
    for (Id set = 0; set < sets_.size(); ++set) {
        if (sets_.size() > most || clock.check({prices_.groups(), sets_.size()}, bytes())) return false;
        for (Id v = 0; v < problem_.operators.size(); ++v)
            if (ready(v, done(set))) {
                const Id one[] = {v};
                reach(set, one);
            }
    }
    std::vector<Id> order(sets_.size());
    for (Id i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](Id a, Id b) { return sets_[a].count > sets_[b].count; });
    std::vector<Bytes> before;
    if (below < unlimited) before = least_before(order);
    std::vector<Move> from;
    for (const Id set : order) {
        if (sets_[set].count == problem_.operators.size()) continue;
        const Bytes most_left = before.empty() ? unlimited : before[set] >= below ? 0 : below - before[set];
        if (sets_[set].ahead >= most_left) continue;  // nothing below `below` comes this way
        // What a way costs at least is sharpened only while it could be the least.
        moves(set, from);
        for (Move& m : from) m.bound = std::min(prices_.bound(m.group), unlimited / 2) + ahead(m.to);
        std::sort(from.begin(), from.end(), [](const Move& a, const Move& b) { return a.bound < b.bound; });
        Bytes best = most_left;
        for (const Move& m : from) {
            if (m.bound >= best || m.bound >= unlimited / 2) break;
            if (clock.check({prices_.groups(), sets_.size()}, bytes() + prices_.bytes())) return false;
            const Bytes limit = best >= unlimited ? unlimited : best - ahead(m.to);
            const Bytes least = prices_.least(m.group, limit);
            if (least < limit) best = std::min(best, least + ahead(m.to));
        }
        sets_[set].ahead = std::max(sets_[set].ahead, best);
    }
    return true;
}

}  // namespace onchip::joint
