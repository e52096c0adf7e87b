// One shape of a nest: the loops of its spine, the depth of every operator, the passes beside it.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "nest_orders.h"
#include "nest_windows.h"

namespace onchip::nests {

// One or two loops of least tile around neighbouring operators of one body.
struct Pass {
    std::vector<Id> classes;  // outermost first
    Set members = 0;
};

struct Shape {
    std::vector<Id> classes;  // of the spine's loops, outermost first
    std::vector<Id> depth;    // by operator: the loops of the spine around it
    Set after = 0;            // operators that run after the deeper loop of their body
    std::vector<Pass> passes;
    std::vector<int> pass;  // by operator; negative: none
    // By loop of a class along which windows slide: what slides with these operators inside.
    std::array<Window*, deepest> windows{};

    // True if windows slide along the loop.
    bool slides(std::size_t loop) const { return windows[loop] && windows[loop]->slides(); }
    bool slides() const { return slides(0) || slides(1) || slides(2); }
    const std::vector<Point>& points(const Group& group, std::size_t loop) const {
        return windows[loop] ? windows[loop]->points() : group.classes[classes[loop]].points;
    }
    std::size_t loops() const { return classes.size(); }
    // The place of an operator among the items of a body at or above it. A pass is one item.
    Id item(Id op, Id body) const;
};

// The operators above which there are `depth` loops or more.
Set inside(const Shape& shape, Id depth);

// So many bytes, times the turns (what crosses) or tiles (what is held) of the loops in `loops`.
struct Term {
    Bytes bytes = 0;
    unsigned loops = 0;
};

// The loops along which windows slide at one tile each, or at the best of several; and which tensors are rings there.
struct Frame {
    std::array<const Turned*, deepest> turned{};  // by loop; null: no windows
    std::array<std::int64_t, deepest> tile{};
    std::vector<int> ring;  // by buffer made and read here: the loop in whose body it is a ring; negative: none
    bool exact = false;     // else what follows is a bound
};

// Where a buffer is filled and given back.
struct Home {
    enum class Kind : std::uint8_t { none, body, pass, own } kind = Kind::none;
    Id depth = 0;            // of the body
    Id pass = 0, level = 0;  // inside the first `level` loops of a pass
    bool ring = false;       // keeps rows for the next turn of the loop of its body
    bool operator==(const Home&) const = default;
};

// The deepest body that holds all of a buffer's uses, or the place in their pass.
Home deepest_home(const Group& group, const Shape& shape, Id buffer);

// The side of a buffer that a loop over the class cuts in the same way in all of the uses; negative: none.
int side_cut(const Group& group, std::span<const Id> uses, Id loop_class);

// The loops of a pass, from the outermost on, that all cut the buffer.
Id level_of(const Group& group, std::span<const Id> uses, const Pass& pass);

// The pass in which all of the uses are; negative: none.
int common_pass(const Group& group, const Shape& shape, std::span<const Id> uses);

// The rows that a loop of the frame leaves of the buffer of some uses.
const Rows& rows(const Group& group, const Turned& turned, std::span<const Id> uses, bool ring);

// Loops of the spine, as bits, and the bytes of a tile without them: of the buffer of some uses that lies inside the
// `depth` outermost loops and inside `level` loops of a pass (none: no level). With a frame, its loops are in the
// bytes; `ring`: it is one in the loop of its body.
Term tile(const Group& group, const Shape& shape, std::span<const Id> uses, Id depth, const Pass* pass, Id level,
          const Frame* frame = nullptr, bool ring = false);

// The same of one use, where its operator's slices, or its pass, cut `slices`.
Term tile(const Group& group, const Shape& shape, Id use, Set slices, const Frame* frame);

// The home of a use that is private: inside its operator's slices if every loop of its pass cuts it.
Home private_home(const Group& group, const Shape& shape, Id use);

}  // namespace onchip::nests
