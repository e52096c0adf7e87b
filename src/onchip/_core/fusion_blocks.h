// A single operator in blocks of its output: rows, columns and output channels at a time, input channels in slices.
#pragma once
#include <map>
#include <optional>

#include "fusion_problem.h"

namespace onchip::fusion {

// A shape of blocks and what it moves, bytes of all images; `tiles` are images x tiles of rows x of columns.
struct Blocked {
    std::int64_t rows = 0, columns = 0, outputs = 0, channels = 0, tiles = 0;
    bool keep = false;  // the weights of a block stay until its last pixel
    Bytes scratch = 0, input = 0, weight = 0;
    std::int64_t box = -1;  // the place among the operator's boxes, of which `input` is what crosses of its operands
};

class BlockSearch {
  public:
    explicit BlockSearch(const Problem& problem) : problem_(problem) {}

    // The blocks of `op` with the fewest bytes in `budget`, or of an opaque one the boxes; none for what has neither or
    // fits in none.
    const std::optional<Blocked>& best(Id op, Bytes budget);

  private:
    // One axis cut into tiles of `size` outputs: how many, the most inputs of one, the inputs of all.
    struct Side {
        std::int64_t size, count, most, total;
    };
    using Sides = std::vector<Side>;
    struct Axis {
        std::int64_t size, outputs, stride, padding, span, least;  // of tiles to look at, the smallest that is whole
        auto operator<=>(const Axis&) const = default;
    };
    const Sides& sides(const Axis& axis);
    static void keep_best(Sides& sides, std::int64_t least);
    static Sides channels(const Grid& grid, std::int64_t read, std::int64_t made, std::int64_t least);
    std::optional<Blocked> search(const Operator& op, Bytes budget, bool whole_tiles, std::optional<Blocked> best);

    const Problem& problem_;
    std::map<Axis, Sides> sides_;
    // Operators that look alike are searched once: everything that the answer depends on.
    std::map<std::vector<std::int64_t>, std::optional<Blocked>> known_;
    std::optional<Blocked> boxed_;
};

}  // namespace onchip::fusion
