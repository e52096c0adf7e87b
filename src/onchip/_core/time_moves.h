// Small changes of a nest. None is proved legal here: `Layout` says so of each.
#pragma once
#include <cstdint>

#include "hash.h"
#include "time_group.h"

namespace onchip::timed {

// Numbers that a seed decides, the same on every machine.
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(mix(mix(seed))) {}
    std::uint64_t next() { return mix(state_++); }
    std::size_t below(std::size_t n) { return static_cast<std::size_t>(next() % n); }
    bool chance(int in_thousand) { return below(1000) < static_cast<std::size_t>(in_thousand); }

  private:
    std::uint64_t state_;
};

class Moves {
  public:
    Moves(const Problem& problem, std::uint64_t seed);

    // Changes a nest; false if what was drawn cannot be done to it.
    bool change(Item& root);

    Random random;

  private:
    bool once(Item& root);
    bool tile(Item& root);
    bool exchange(Item& root);
    bool copies(Item& root);
    bool home(Item& root);
    bool keep(Item& root);
    bool insert(Item& root);
    bool remove(Item& root);
    bool swap(Item& root);
    bool split(Item& root);
    bool merge(Item& root);
    bool shift(Item& root);
    bool order(Item& root);
    bool place(Item& root);
    bool ring(Item& root);
    bool channel(Item& root);
    std::int64_t other_tile(const Item& loop);
    void list(Item& item);
    void tidy(Item& body, std::vector<std::int64_t>& left);
    bool uses(Id op, Id buffer) const;
    bool uses(const Item& item, Id buffer) const;

    const Problem& problem_;
    std::vector<Item*> bodies_, loops_;  // of the nest that is changed
    std::vector<std::int64_t> grain_;
    std::vector<Set> used_;  // by operator: buffers
};

}  // namespace onchip::timed
