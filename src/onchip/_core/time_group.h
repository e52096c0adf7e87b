// A group of operators, the chip on which it runs in a nest, and nests as the search for time changes them.
// docs/nest-times.md is the law; `time_layout` derives what it makes of a nest, `time_clock` walks it.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "nest_group.h"

namespace onchip::timed {

using nests::Access;
using nests::Bytes;
using nests::Group;
using nests::Id;
using nests::Set;
using nests::has;
using nests::one;

using Time = std::int64_t;  // picoseconds
inline constexpr Time never = nests::unlimited;

inline std::size_t nth(int i) { return static_cast<std::size_t>(i); }

struct Channel {
    std::int64_t bytes_per_second = 1;
    Time transfer = 0, piece = 0;
    Bytes burst = 1;
    bool loads = true, stores = true;
};

struct ArraySide {
    bool sums = false;
    std::int64_t size = 1;
};

struct Rates {
    std::int64_t clock = 1, step_cycles = 0, block_cycles = 0;
    std::vector<Channel> channels;
    std::vector<ArraySide> sides;
    bool own_operands = false;
    std::optional<std::int64_t> vector, scratchpad;
};

// The work of an operator: products for every index of its axes, vector operations for every element of its output.
struct Work {
    std::int64_t products = 0, vector = 0;
};

// What the law of time asks of a buffer beside what nests::Buffer says.
struct Stored {
    std::vector<std::int64_t> whole;  // the sides of the tensor of which it is a part
    bool constant = false;
    bool on_chip = false;  // it lies there whole: no home, nothing moves
    std::vector<std::int64_t> tile;  // by side, of a tensor that lies in DRAM in tiles; else empty
    bool in_fills = false;  // every fill is one piece, however it is cut
};

// A buffer that a body keeps; channels below 0 are the chip's first. Its stores let the fetches of `late` more steps pass.
struct Kept {
    Id buffer = 0;
    int copies = 1, load = -1, store = -1, late = 0;
    bool operator==(const Kept&) const = default;
};

// A loop over a class of axes, or a leaf. The root is a loop of no class.
struct Item {
    int loop_class = -1;
    std::int64_t tile = 0;
    int operation = -1;  // of a leaf
    int under = -1;      // the operand in whose place a leaf writes
    std::vector<Kept> keep;
    std::vector<Id> ring;  // along windows: buffers that keep rows for the next turn
    std::vector<Item> body;
    bool leaf() const { return operation >= 0; }
    bool operator==(const Item&) const = default;
};

// ceil(n * up / down), for any n that fits.
struct Ratio {
    Ratio() = default;
    Ratio(std::int64_t times, std::int64_t per);
    Time of(std::int64_t n) const;
    std::int64_t up = 1, down = 1;
    std::int64_t narrow = 0;  // no more of them need more than 64 bits
};

// The axes of an operator on each side of the array.
using Array = std::vector<std::vector<Id>>;

// A group on a chip; the classes of its axes are those of nests::Group.
struct Problem {
    Problem(std::vector<nests::Operator> operators, std::vector<nests::Buffer> buffers, std::vector<Stored> stored,
            std::vector<Work> work, Rates rates, Bytes alignment, bool paired = true);

    Bytes up(Bytes bytes) const { return (bytes + alignment - 1) / alignment * alignment; }
    // True if the buffer comes from outside or leaves, so that a body may keep it.
    bool moves(Id buffer) const {
        return !stored[buffer].on_chip && (group.buffers[buffer].maker < 0 || group.buffers[buffer].leaves);
    }

    Group group;
    std::vector<Stored> stored;
    std::vector<Work> work;
    Rates rates;
    Bytes alignment;
    Ratio cycle, vector, scratchpad;
    std::vector<Ratio> crossing;                     // by channel
    Ratio together;                                  // the same of all channels at once
    int first_load = 0, first_store = 0;             // channels
    std::vector<std::vector<int>> side_class;        // by access and side: the class along it, index by index; or negative
    std::vector<std::vector<Array>> arrays;          // by operator: ways to lie on the array, none better than another
    std::vector<std::vector<int>> axis_class;        // by operator and axis
};

}  // namespace onchip::timed
