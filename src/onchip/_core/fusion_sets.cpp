#include "fusion_sets.h"

#include <algorithm>

#include "hash.h"

namespace onchip::fusion {

std::uint64_t random_word(Id op) {
    return mix(op * golden);
}

Id Sets::insert(const Word* bits, std::uint32_t first, std::uint32_t words, std::uint64_t hash) {
    const Id known = table_.find(hash, [&](Id i) {
        const Entry& e = entries_[i];
        return e.hash == hash && e.first == first && e.words == words &&
               std::equal(bits + first, bits + first + words, pool_.data() + e.at);
    });
    if (known != no_id) return known;
    const auto id = static_cast<Id>(entries_.size());
    table_.put(id, hash, [&](Id i) { return entries_[i].hash; });
    entries_.push_back({pool_.size(), first, words, hash});
    pool_.insert(pool_.end(), bits + first, bits + first + words);
    return id;
}

void Hull::put(Id op) {
    spans_.emplace_back(low_, high_);
    if (members_.empty())
        low_ = high_ = op;
    else
        low_ = std::min(low_, op), high_ = std::max(high_, op);
    add(bits_.data(), op);
    members_.push_back(op);
    hash_ ^= random_word(op);
}

void Hull::clear() {
    for (const Id v : members_) bits_[v >> 6] = 0;
    members_.clear();
    spans_.clear();
    hash_ = 0;
}

void Hull::shrink(std::size_t size) {
    for (; members_.size() > size; members_.pop_back(), spans_.pop_back()) {
        drop(bits_.data(), members_.back());
        hash_ ^= random_word(members_.back());
        low_ = spans_.back().first, high_ = spans_.back().second;
    }
}

void Hull::assign(std::span<const Id> convex) {
    clear();
    for (const Id v : convex) put(v);
}

void Hull::join(Id op) {
    if (has(op)) return;
    if (members_.empty()) {
        put(op);
        return;
    }
    // Between: below a member and above `op`, or the other way round. What is put meanwhile lies between too,
    // so asking for it as well finds nothing more.
    const std::uint32_t first = low_ >> 6, last = high_ >> 6;
    std::size_t next = members_.size();
    put(op);
    for (; next < members_.size(); ++next) {
        const Id w = members_[next];
        for (const Id p : problem_.before[w])
            if (!has(p) && touches(problem_.ancestors(p), first, last)) put(p);
        for (const Id s : problem_.after[w])
            if (!has(s) && touches(problem_.descendants(s), first, last)) put(s);
    }
}

void Hull::join_with_readers(Id op) {
    join(op);
    for (bool more = true; more;) {
        more = false;
        for (std::size_t i = 0; i < members_.size(); ++i) {
            const std::vector<Id>& readers = problem_.after[members_[i]];
            const auto inside = static_cast<std::size_t>(
                std::count_if(readers.begin(), readers.end(), [&](Id r) { return has(r); }));
            if (inside == 0 || inside == readers.size()) continue;
            for (const Id r : readers) join(r);
            more = true;
        }
    }
}

}  // namespace onchip::fusion
