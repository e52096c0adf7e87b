// The exact front of bytes, time and scratch over all nests of one group with few loops: every order of the operators,
// every tree of loops, every tile, home, ring and number of copies. For small groups, and to hold others against.
#pragma once
#include <functional>
#include <vector>

#include "time_search.h"

namespace onchip::timed {

// What leaves nests out. Each can be switched off: the front stays the same.
struct FrontRules {
    bool floors = true;  // what takes no less than a known nest in every figure, whatever its copies
    bool idle = true;    // M3: a loop below which nothing has a home only adds steps
    bool second = true;  // M2: on one channel a second copy makes no nest slower
    bool more = true;    // M1: from two copies on one more makes no nest slower
};

struct FrontAsks {
    int loops = 2;    // the most of a tree
    int copies = 2;   // the most of a buffer
    bool channels = false;  // every channel for every buffer; else the first ones
    Bytes room = nests::unlimited;
    std::int64_t most = 0;  // nests and prices that are looked at
    FrontRules rules;
};

struct Front {
    std::vector<Found> found;  // none is no worse than another one in every figure
    std::int64_t nests = 0, prices = 0;
    bool complete = true;
};

class Fronts {
  public:
    Fronts(const Problem& problem, const FrontAsks& asks, const Limits<Progress>& limits);
    Front run();

  private:
    using Sizes = std::vector<std::int64_t>;  // by class: what the loops around leave
    using Bodies = std::vector<int>;

    void orders(Set done);
    void items(Item& body, std::size_t at, std::size_t end, int loops, const Sizes& left, const std::function<void(int)>& next);
    void tree(Item& root);
    std::vector<Bodies> options(Id buffer, int body) const;
    int uses(Id buffer, const Item& item) const;
    void homes(Id buffer);
    void rings(std::size_t loop);
    void nest();
    bool is_idle();
    void channels(std::size_t entry);
    void decide(std::size_t entry, Time least, Bytes need);
    std::optional<Time> time();
    void set(std::size_t from, int copies);
    bool dominated(Time time, Bytes scratch) const;
    void note(Found found);
    bool over();

    const Problem& problem_;
    const FrontAsks& asks_;
    Clock<Progress> clock_;
    Layout layout_, other_;
    Walk walk_;
    Front answer_;
    std::vector<Id> order_;
    Item* root_ = nullptr;
    std::vector<Item*> bodies_;
    std::vector<Kept*> entries_;
    std::vector<bool> may_;  // by entry: copies
    bool bounded_ = false;   // by the time with all copies
    Bytes bytes_ = 0;
};

}  // namespace onchip::timed
