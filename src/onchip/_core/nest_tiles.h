// The tiles of a spine's loops for fixed homes: fewest bytes that fit.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "nest_choices.h"

namespace onchip::nests {

// What a leaf holds: a sum of terms, and the least of several further sums (orders of its slices).
struct Load {
    Terms all;
    const std::vector<Terms>* either = nullptr;
};

// By loop of the spine: a place among the points of its class.
using At = std::array<std::size_t, deepest>;

// Bytes and loads as functions of the turns and tiles of at most three loops.
class Tiles {
  public:
    // `monotone`: bytes rise with turns, loads with tiles, so a box of points is judged by two of them.
    Tiles(const Group& group, const Shape& shape, Bytes room, Bytes alignment, bool monotone);

    static void merge(Terms& terms, Term term);
    // Adds up terms; equal ones become one where that is exact.
    void add(Terms& terms, Term term) const;

    // The points at which the terms of `cross` are fewest bytes and every load fits; none below `limit`.
    struct Found {
        Bytes bytes;
        At at;
    };
    std::optional<Found> best(std::span<const Term> cross, const std::vector<Load>& loads, Bytes limit);

    Bytes bytes(std::span<const Term> cross, const At& at) const;
    Bytes held(const Term& term, const At& at) const;
    Bytes held(const Load& load, const At& at, std::size_t* which = nullptr) const;
    bool fits(const std::vector<Load>& loads, const At& at) const;
    At first() const { return {}; }  // the largest tiles
    At last() const;                 // the least

  private:
    using Powers = std::array<Bytes, 1u << deepest>;

    Powers powers(const At& at, std::int64_t Point::*of) const;
    Bytes sum(std::span<const Term> terms, const Powers& tiles) const;
    void search(At low, At high);
    void every(At at, std::size_t loop);

    std::size_t loops_;
    std::array<const std::vector<Point>*, deepest> points_{};
    Bytes room_, alignment_;
    bool monotone_;
    // of the search that is on
    std::span<const Term> cross_;
    const std::vector<Load>* loads_ = nullptr;
    Bytes limit_ = 0;
    std::optional<Found> found_;
};

}  // namespace onchip::nests
