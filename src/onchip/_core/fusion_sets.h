// Convex sets of operators, each stored once, as the few words of its bitset between its first and last member.
#pragma once
#include <span>

#include "fusion_problem.h"
#include "slots.h"

namespace onchip::fusion {

std::uint64_t random_word(Id op);  // a set hashes to the xor of its members'

class Sets {
  public:
    struct Entry {
        std::size_t at;               // in the pool
        std::uint32_t first, words;   // the words [first, first + words) of the whole bitset
        std::uint64_t hash;
    };

    std::size_t size() const { return entries_.size(); }
    std::size_t bytes() const {
        return pool_.size() * sizeof(Word) + entries_.size() * sizeof(Entry) + table_.bytes();
    }
    // The number of the set, which is new exactly when it was size() before. `bits` is a whole bitset whose
    // members lie in the words [first, first + words).
    Id insert(const Word* bits, std::uint32_t first, std::uint32_t words, std::uint64_t hash);
    const Entry& entry(Id set) const { return entries_[set]; }
    const Word* bits(Id set) const { return pool_.data() + entries_[set].at; }
    void members(Id set, std::vector<Id>& result) const {
        result.clear();
        const Entry& e = entries_[set];
        for (std::uint32_t w = 0; w < e.words; ++w)
            each_bit(pool_[e.at + w], (e.first + w) * 64, [&](Id v) { result.push_back(v); });
    }

  private:
    std::vector<Word> pool_;
    std::vector<Entry> entries_;
    Slots<no_id> table_{64};
};

// A convex set that grows: every operator between its members joins it.
class Hull {
  public:
    explicit Hull(const Problem& problem) : problem_(problem), bits_(problem.words(), 0) {}

    void clear();
    void assign(std::span<const Id> convex);
    // The smallest convex set with these members and `op`.
    void join(Id op);
    // Back to the first `size` members; what join() put since goes.
    void shrink(std::size_t size);
    // The smallest such set that with an operator and one of its readers has all its readers.
    void join_with_readers(Id op);

    bool has(Id op) const { return test(bits_.data(), op); }
    std::size_t size() const { return members_.size(); }
    const std::vector<Id>& members() const { return members_; }  // in no order
    const Word* bits() const { return bits_.data(); }
    Id low() const { return low_; }
    Id high() const { return high_; }
    std::uint32_t first() const { return low_ >> 6; }
    std::uint32_t words() const { return (high_ >> 6) - (low_ >> 6) + 1; }
    std::uint64_t hash() const { return hash_; }

  private:
    void put(Id op);
    bool touches(const Word* row, std::uint32_t first, std::uint32_t last) const {
        for (std::uint32_t w = first; w <= last; ++w)
            if (row[w] & bits_[w]) return true;
        return false;
    }

    const Problem& problem_;
    std::vector<Word> bits_;
    std::vector<Id> members_;
    Id low_ = 0, high_ = 0;
    std::uint64_t hash_ = 0;
    std::vector<std::pair<Id, Id>> spans_;  // lowest and highest member before each
};

}  // namespace onchip::fusion
