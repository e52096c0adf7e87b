// The contest's closed-form cost of one subgraph, over all of its tiles and steps of k (docs/contest.md).
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace onchip::contest {

using Size = std::int64_t;

// Along which side of the tile, or part of the reduction, a slice lies; `whole`: all of the tensor's side.
enum class Axis : std::uint8_t { tile, depth, whole };

// A slice of a tensor from outside. The first steps of a tile read it, until `reach` elements of k are done (1: the
// first step alone), or the last step does, if it is `late`.
struct Want {
    Size tensor = 0;
    Size height = 0, width = 0;  // of the tensor
    Axis rows = Axis::whole, columns = Axis::whole;
    Size reach = 0;
    bool late = false;
};

// The MatMuls of one K on the tile: their time per element of k, that of the strips made for them, and that of
// strips which cost as much for any part of a native length of k.
struct Depth {
    Size reduction = 0;
    double per_element = 0, strips = 0;
    std::vector<double> padded;
};

// A subgraph: its outputs' size, what a step reads, what a step costs.
struct Subgraph {
    Size height = 0, width = 0;
    double once = 0;        // time of a tile's first step
    double late = 0;        // time of a tile's last step
    std::vector<Depth> depths;  // ascending
    std::vector<Want> wants;
    std::vector<Size> least_width, least_height;  // K that k or the tile's width (height) must reach
    Size most_depth = 1;    // of k
    Size stored = 0;        // outputs that each tile stores
    Size held = 0;          // tiles that lie in fast memory
    Size room = 0;          // what is left of it beside whole tensors
    double bandwidth = 1;
    std::array<Size, 3> native{};
    bool kept = false;      // strips may stay for the next tile: a bound counts no time for them
};

struct Tile {
    double latency = -1;  // negative: nothing fits below the limit
    Size width = 0, height = 0, depth = 0;
    bool by_columns = false, from_right = false, from_bottom = false, turns = true;
};

// The least latency below `limit` among all tiles and steps, line by line; with `bound` a value that no tile,
// step and order of tiles is below, or the limit. After `seconds` the best so far; as a bound, 0.
Tile price(const Subgraph& subgraph, bool bound, double limit, std::optional<double> seconds);

}  // namespace onchip::contest
