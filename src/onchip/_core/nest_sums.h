// How sums lie that are not complete: in the buffer of their operator's output, or beside it in accumulators.
#pragma once
#include <optional>

#include "nest_shape.h"

namespace onchip::nests {

// The first loop around its maker, counted from the outermost on, with which a buffer holds sums that are not complete.
struct FirstSum {
    std::optional<std::size_t> loop;
    std::size_t loops = 0;  // around the maker: of the spine, then of its pass
};

FirstSum first_sum(const Group& group, const Shape& shape, Id buffer);

// How the sums of a buffer that `above` loops around its maker stand above lie: as wide as its elements or wider, with
// accumulators beside it as long as one loop runs, or as its maker's slices go.
struct Sums {
    bool wide = false;
    std::optional<std::size_t> beside;
    Summing summing = Summing::none;  // none, beside, or behind, where the other choice is first
};

Sums sums_of(const Group& group, const Shape& shape, Id buffer, std::size_t above);

// The loops around the maker of a buffer, of the spine or its pass, above a home.
inline std::size_t above(const Home& home) { return home.depth + (home.kind == Home::Kind::pass ? home.level : 0); }

}  // namespace onchip::nests
