// Fusion and placement as one search: groups one after the other, and which tensors between them stay on chip.
// docs/joint.md defines states and moves and proves the rules.
#pragma once
#include "joint_downsets.h"

namespace onchip::joint {

// Rules that do not change the result. All are exact: off means more work.
struct Rules {
    bool dominance = true;  // J1: drop a state that another one of the same operators can imitate at no more cost
    bool minimal = true;    // J2: evict only what the next group needs gone, and then no tensor too many
    bool ahead = true;      // J3: a lower bound of the rest that looks at all groups
    bool incumbent = true;  // J4: drop what cannot be cheaper than the best known
};

inline constexpr std::size_t tries_for_each = 100;  // ways of a move that a pass tries for each state it follows
inline constexpr std::size_t few_tries = 40;        // when time is up

struct Step {
    std::vector<Id> members;
    std::vector<Id> whole, evicted;  // tensors: operands on chip; what leaves before
    Id over = no_id, made = no_id;   // the operand whose place an output takes, and that output
    bool joined = false;             // a concat of operands that lie side by side in DRAM: nothing runs
    Way way;
};

struct Found {
    std::vector<Step> steps;
    Bytes cost = unlimited, bound = 0;  // beside what crosses in any case
    std::vector<std::uint32_t> hoped;   // texts of nests of which the steps cost what a search that was cut may find
    bool complete = false;
    End end = End::complete;
    std::uint64_t states = 0, downsets = 0, evaluated = 0, passes = 0;
    std::size_t memory = 0;
};

class Search {
  public:
    Search(const fusion::Fuser& fuser, Bytes budget, std::vector<std::vector<Id>> over, std::vector<NestGroup> nests,
           NestCosts& costs, const std::vector<Id>& joins, const Rules& rules);

    // Groups that cost less than their operators are worth, at most `most` of them, and what every operator is worth
    // at most so that none does: the sum bounds every plan from below.
    struct Priced {
        std::vector<Bytes> worth;
        std::vector<std::pair<std::vector<Id>, Bytes>> columns;
        bool complete = false;  // every group was looked at
    };
    Priced price(std::vector<Bytes> worth, std::size_t most, const fusion::Limits& limits);
    // `hopeful`: passes count what searches of nests that were cut off may find at best; `cost` is still what was found.
    void forget_nests(bool hopeful) { prices_.forget_nests(hopeful); }
    void untile(const std::vector<Id>& members) { prices_.untile(members); }
    Bytes least(Id op) { return prices_.least(prices_.alone(op)); }
    // The operators that cannot run at all.
    std::vector<Id> misfits();  // operators that run in no way, whatever the others do
    // What all operators cost at least beside what crosses in any case, however they are grouped.
    Bytes floor();

    // Prices downsets if there are no more than `most`, for passes that look for less than `below` or lower. False:
    // `ahead` is by the worth of operators.
    bool prepare(std::size_t most, Bytes below, const fusion::Limits& limits);
    void worth(std::vector<Bytes> of) { downsets_.worth(std::move(of)); }

    // The cheapest way that costs less than `below`, through at most `width` states of every number of operators
    // (0: any number). `seed` breaks ties.
    Found pass(std::size_t width, Bytes below, std::uint64_t seed, const fusion::Limits& limits);

  private:
    bool fits_with_others(Id op);
    struct Node {
        Id at, from, group;
        Mask whole;
        std::size_t sets;  // residents and copies, in pool_
        std::uint32_t evicted, evictions;
        Id over, pair;
        bool plain, joined;
        Bytes cost, room;
        std::uint64_t tie;
    };
    void expand(Id node, const Move& move);
    void operand(std::size_t i, Mask whole, Id pair, Bytes paid, Bytes room);
    bool stuck();
    void plain(Bytes room);
    void join();
    void left_open(bool as_it_is, Bytes so_far);
    template <class Own>
    void evictions(Mask whole, Bytes paid, Bytes room, Id over, Id pair, bool is_plain, Own own);
    template <class Own>
    void evict(std::size_t from, Bytes freed, Bytes smallest, Bytes paid, const Own& own);
    void reach(Bytes cost, Bytes room);
    bool beaten(const Node& node);
    Bytes imitate(const Node& a, const Node& b, Bytes most) const;
    const Word* resident(const Node& n) const { return &pool_[n.sets]; }
    const Word* copied(const Node& n) const { return &pool_[n.sets + downsets_.tensor_words()]; }
    std::size_t bytes() const;
    std::vector<Step> steps(Id node);
    Bytes over_hopes(Found& found, Id node);

    Prices prices_;
    const fusion::Problem& problem_;
    Downsets downsets_;
    Rules rules_;
    Bytes maps_room_;  // what tensors may take of the budget

    // Of a pass.
    std::vector<Node> nodes_;
    std::vector<Word> pool_;
    std::vector<Id> evicted_;
    std::vector<std::vector<Id>> bucket_;  // by downset
    std::vector<std::vector<Id>> layer_;   // downsets by how many operators ran
    Bytes below_ = unlimited;
    Bytes open_ = unlimited;  // what was not followed costs no less
    std::size_t tries_ = 0, most_tries_ = 0;
    Id best_ = no_id;
    std::uint64_t seed_ = 0, ties_ = 0;
    fusion::Clock* clock_ = nullptr;

    // Of an expansion.
    Id node_ = no_id;
    Move move_{};
    std::vector<Operand> operands_;
    std::vector<Id> others_, gone_, out_;  // residents that the group does not touch; those evicted; operands evicted
    std::vector<std::size_t> beside_;    // operands that stay while their copies are read
    Bytes others_room_ = 0, own_ = 0;
    Mask whole_ = 0;
    Id over_ = no_id, pair_ = no_id;
    Mask dying_ = 0;  // operands that are loaded to be written over
    bool plain_ = false, joined_ = false;
    std::vector<Word> made_;
};

}  // namespace onchip::joint
