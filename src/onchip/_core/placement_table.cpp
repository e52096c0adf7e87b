#include "placement_table.h"

#include <memory>
#include <new>

namespace onchip::placement {

namespace {
// Words of a group before its D.
constexpr std::size_t group_header = 3;
constexpr std::size_t state_header = 3;

std::span<const Id> live_ids(const Word* group, std::size_t operator_words) {
    return {reinterpret_cast<const Id*>(group + group_header + operator_words),
            static_cast<std::size_t>(group[1] & 0xffffffff)};
}
Word join(std::size_t high, std::size_t low) { return Word{high} << 32 | Word{low}; }
Ref high(Word w) { return static_cast<Ref>(w >> 32); }
Ref low(Word w) { return static_cast<Ref>(w & 0xffffffff); }
}  // namespace

Ref Arena::allocate(std::size_t words) {
    if (words > chunk_words) throw std::bad_alloc();  // a network beyond any that is accepted
    if ((next_ & (chunk_words - 1)) + words > chunk_words) next_ = (next_ | (chunk_words - 1)) + 1;
    if (next_ + words > std::size_t{1} << 32) throw std::bad_alloc();
    while (chunks_.size() * chunk_words < next_ + words)
        chunks_.push_back(std::make_unique_for_overwrite<Word[]>(chunk_words));
    const Ref r = static_cast<Ref>(next_);
    next_ += words;
    return r;
}

Ref Table::find_group(const State& s) const {
    return slots_.find(s.hash, [&](Ref r) {
        const Word* g = arena_.at(r);
        return g[0] == s.hash && std::equal(s.done(), s.done() + s.operator_words(), g + group_header);
    });
}

Ref Table::group_of(const State& s) {
    if (const Ref found = find_group(s); found != no_ref) return found;
    std::size_t live = 0;
    for (std::size_t w = 0; w < s.tensor_words(); ++w) live += static_cast<std::size_t>(std::popcount(s.live()[w]));
    const Ref r = arena_.allocate(group_header + s.operator_words() + (live + 1) / 2);
    Word* g = arena_.at(r);
    g[0] = s.hash, g[1] = join(no_ref, live), g[2] = s.depth;
    std::copy_n(s.done(), s.operator_words(), g + group_header);
    Id* id = reinterpret_cast<Id*>(g + group_header + s.operator_words());
    each(s.live(), s.tensor_words(), [&](Id t) { std::construct_at(id++, t); });
    slots_.put(r, s.hash, [&](Ref group) { return arena_.at(group)[0]; });
    return r;
}

void Table::pack(const State& s, std::span<const Id> live) {
    const std::size_t words = words_for(live.size());
    packed_.assign(2 * words, 0);
    for (Id i = 0; i < live.size(); ++i) {
        if (test(s.resident(), live[i])) add(packed_.data(), i);
        if (test(s.copied(), live[i])) add(packed_.data() + words, i);
    }
}

// R1 for equal D: does (g1, M1, H1) make (g2, M2, H2) needless? With E = M1 \ M2:
// g1 + evict_cost(E) + cost of what only state 2 has a copy of, were E evicted, <= g2.
bool Table::dominates(std::span<const Id> live, Bytes g1, const Word* m1, const Word* h1, Bytes g2,
                      const Word* m2, const Word* h2) const {
    if (g1 > g2) return false;
    const std::size_t words = words_for(live.size());
    if (!dominance_) return std::equal(m1, m1 + words, m2) && std::equal(h1, h1 + words, h2);
    Bytes total = g1;
    for (std::size_t w = 0; w < words && total <= g2; ++w) {
        const Word evicted = m1[w] & ~m2[w];
        const auto charge = [&](Id i) { total += p_.cost[live[i]]; };
        const Id base = static_cast<Id>(w * 64);
        each_bit(evicted, base, charge);
        each_bit(evicted & ~h1[w], base, charge);
        each_bit(h2[w] & ~(h1[w] | evicted), base, charge);
    }
    return total <= g2;
}

Ref Table::insert(const State& s, Ref parent) {
    const Ref group = group_of(s);
    Word* g = arena_.at(group);
    const auto live = live_ids(g, p_.operator_words());
    const std::size_t words = words_for(live.size());
    pack(s, live);
    const Word* m = packed_.data();
    const Word* h = m + words;

    for (Ref r = high(g[1]); r != no_ref; r = low(arena_.at(r)[1])) {
        const Word* other = arena_.at(r) + state_header;
        if (dominates(live, paid(r), other, other + words, s.paid, m, h)) return no_ref;
    }
    Ref before = no_ref;
    for (Ref r = high(g[1]); r != no_ref;) {
        Word* other = arena_.at(r);
        const Ref next = low(other[1]);
        if (dominates(live, s.paid, m, h, paid(r), other + state_header, other + state_header + words)) {
            other[2] |= 1;  // killed: no longer in the list, ignored when it comes off the open list
            if (before == no_ref)
                g[1] = join(next, live.size());
            else
                arena_.at(before)[1] = join(high(arena_.at(before)[1]), next);
        } else {
            before = r;
        }
        r = next;
    }
    const Ref r = arena_.allocate(state_header + 2 * words);
    Word* w = arena_.at(r);
    w[0] = static_cast<Word>(s.paid);
    w[1] = join(parent, high(g[1]));
    w[2] = join(group, 0);
    std::copy(packed_.begin(), packed_.end(), w + state_header);
    g[1] = join(r, live.size());
    ++stored_;
    return r;
}

void Table::unpack(Ref state, State& into) const {
    const Word* w = arena_.at(state);
    const Word* g = arena_.at(high(w[2]));
    const auto live = live_ids(g, p_.operator_words());
    const std::size_t words = words_for(live.size());
    into.clear();
    std::copy_n(g + group_header, p_.operator_words(), into.done());
    into.hash = g[0], into.depth = static_cast<std::uint32_t>(g[2]), into.paid = static_cast<Bytes>(w[0]);
    for (Id i = 0; i < live.size(); ++i) {
        add(into.live(), live[i]);
        if (test(w + state_header, i)) add(into.resident(), live[i]), into.used += p_.size[live[i]];
        if (test(w + state_header + words, i)) add(into.copied(), live[i]);
    }
}

}  // namespace onchip::placement
