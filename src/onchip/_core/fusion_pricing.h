// Pricing for column generation: among all groups whose first operator is a given one, the one that costs least
// beyond what its operators are worth. docs/fusion-pricing.md proves the bound.
#pragma once
#include "fusion_clock.h"
#include "fusion_floor.h"

namespace onchip::fusion {

struct Priced {
    using Column = std::pair<std::vector<Id>, Bytes>;  // members, cost
    Bytes least = 0;        // no group from here is cheaper than its worth by more; never positive
    bool complete = true;   // `least` is reached
    std::vector<Column> columns;  // groups cheaper than their worth, ever cheaper
    std::uint64_t nodes = 0;
};

class Pricer {
  public:
    // `alone`: what every operator costs by itself. `halo_percent`: the halo of a map is charged up to this part of
    // the map only (negative: all of it), in every cost that is spoken of here. With `guess` costs are the true ones
    // all the same: good groups are found sooner, and `least` bounds nothing.
    Pricer(const Problem& problem, Bytes budget, std::vector<Bytes> alone, std::int64_t halo_percent, bool guess);

    Bytes cost(std::span<const Id> members, Bytes limit = unlimited);

    // Whether there is a bound beyond operators alone: strides fit together on all paths.
    bool sound() const { return floor_.sound(); }
    std::size_t operators() const { return alone_.size(); }

    // `worth`: of every operator. No group whose first operator is later may be cheaper than its worth. Groups
    // that are cheaper by no more than the tolerance need not be found, and nodes beyond the limit (0: none) are
    // left; `least` is a bound then.
    Priced price(Id first, std::span<const Bytes> worth, Bytes tolerance, std::uint64_t nodes, Clock& clock);

  private:
    using Words = std::vector<Word>;
    struct State {
        std::vector<Id> in;                    // decided members, ascending
        Words member, due, out, above, below;  // due: to become members; above, below: of both
        std::vector<Floor::Level> levels;      // of the members
        Bytes crossing = 0, worth = 0;
    };

    void candidates(Id first);
    bool possible(const State& s, Id op) const;
    bool commit(State& s, Id op);
    bool include(State& s, Id op);
    Bytes bound(const State& s, Id& next) const;
    bool offer(const State& s);
    void search(State s);

    const Problem& problem_;
    Bytes budget_;
    std::vector<Bytes> alone_;
    Floor floor_;
    Evaluator evaluator_;

    std::vector<Id> near_;  // candidates, ascending
    Words may_;
    std::size_t low_ = 0, high_ = 0;  // words of bitsets that candidates lie in
    std::span<const Bytes> worth_;
    Priced found_;
    std::uint64_t most_nodes_ = 0;
    bool stopped_ = false;
    Bytes open_ = 0, tolerance_ = 0;
    std::vector<std::vector<Id>> listed_;  // candidates by first operator, once they are known; with it
    Clock* clock_ = nullptr;
    std::vector<Id> joined_;
    mutable std::vector<Id> shared_;
    mutable std::vector<std::uint64_t> seen_;
    mutable std::uint64_t look_ = 0;
};

}  // namespace onchip::fusion
