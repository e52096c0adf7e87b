// Sets of operators that have run, what can run next, and what no way on from there costs less than.
#pragma once
#include "joint_prices.h"

namespace onchip::joint {

// A group that can run next, and the set that is reached by it.
struct Move {
    Id group, to;
    Bytes bound;  // of what is still to come: the group and all after it
};

class Downsets {
  public:
    explicit Downsets(Prices& prices);

    std::size_t size() const { return sets_.size(); }
    std::size_t bytes() const { return pool_.size() * sizeof(Word) + sets_.size() * 96 + table_.bytes(); }
    Id empty() const { return 0; }
    std::size_t count(Id set) const { return sets_[set].count; }
    // Tensors that are made (or given) and still to be read.
    const Word* live(Id set) const { return &pool_[sets_[set].at + operator_words_]; }
    const Word* done(Id set) const { return &pool_[sets_[set].at]; }
    std::size_t tensor_words() const { return tensor_words_; }
    Bytes ahead(Id set) const { return sets_[set].ahead; }

    // Every downset, if there are no more than `most` of them; their `ahead` by the least way to the end, or as much as
    // leaves no way through the set below `below`.
    bool price(std::size_t most, Bytes below, fusion::Clock& clock);
    // From now on `ahead` is what the operators that have not run are worth, each.
    void worth(std::vector<Bytes> of);
    // The groups that can run in a set. Bounds are not filled in.
    void moves(Id set, std::vector<Move>& result);
    std::uint64_t looked() const { return looked_; }

  private:
    struct Set {
        std::size_t at;
        std::uint64_t hash;
        std::uint32_t count;
        Bytes ahead;
    };
    struct Start {
        Id group;
        std::uint32_t needs, needed, begun;  // ranges of ids_: what has to have run, then operators that must not have
    };
    std::pair<Id, bool> reach(Id from, std::span<const Id> members);
    void refresh(Id set);
    bool ready(Id op, const Word* done) const;
    std::vector<Bytes> least_before(std::span<const Id> order);

    Prices& prices_;
    const fusion::Problem& problem_;
    std::size_t operator_words_, tensor_words_;
    std::vector<Set> sets_;
    std::vector<Word> pool_;
    Slots<no_id> table_{64};
    std::vector<Id> ids_;
    std::vector<std::vector<Start>> starts_;  // by the first operator of a group
    std::vector<Bytes> worth_;
    std::uint64_t looked_ = 0;
};

}  // namespace onchip::joint
