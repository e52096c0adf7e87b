// One shape of a nest: the loops of its spine, the depth of every operator, the passes beside it. From it follow the
// homes that every buffer may have, what each lets cross by the turns of the loops, and what it holds by their tiles.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "nest_group.h"

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

// Where a buffer is filled and given back.
struct Home {
    enum class Kind : std::uint8_t { none, body, pass, own } kind = Kind::none;
    Id depth = 0;            // of the body
    Id pass = 0, level = 0;  // inside the first `level` loops of a pass
    bool operator==(const Home&) const = default;
};

struct Held {
    Id leaf = 0;
    Term term;
};

// A home of a buffer: `own` are the uses (accesses) whose buffer lies among the operator's slices.
struct Option {
    Home home;
    std::vector<Term> cross;
    std::vector<Held> held;
    std::vector<Id> own;
};

struct Choice {
    Id buffer = 0;
    std::vector<Option> options;  // from the outermost to the deepest
};

struct Kept {
    Set whole = 0;  // buffers that lie on chip whole
    bool inner_deepest = true, outer_worth = true, in_place = true;
};

// True if a buffer is whole, or lies in the place of one that is.
bool in_whole_place(const Group& group, const Shape& shape, const Kept& kept, Id buffer);

// The operand in whose place an operator writes: its home is that of the output, or the output lies whole.
std::optional<Id> replaced(const Group& group, const Shape& shape, const Kept& kept, Id op);

// The homes of every buffer that has any.
std::vector<Choice> choices(const Group& group, const Shape& shape, const Kept& kept);

// Loops of the spine, as bits, and the bytes of a tile without them: of the buffer of some uses that lies inside the
// `depth` outermost loops and inside `level` loops of a pass (none: no level).
Term tile(const Group& group, const Shape& shape, std::span<const Id> uses, Id depth, const Pass* pass, Id level);

// The same of one use, where its operator's slices cut `slices`.
Term tile(const Group& group, const Shape& shape, Id use, Set slices);

// The home of a use that is private: inside its operator's slices if every loop of its pass cuts it.
Home private_home(const Group& group, const Shape& shape, Id use);

}  // namespace onchip::nests
