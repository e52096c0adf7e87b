// One shape of a nest: the loops of its spine, the depth of every operator, the passes beside it. From it follow the
// homes that every buffer may have, what each lets cross by the turns of the loops, and what it holds by their tiles.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "few.h"
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

struct Held {
    Term term;
    Id leaf = 0;
    bool sums = false;  // accumulators beside a buffer
};

// As many as most buffers, or leaves, have.
inline constexpr std::size_t few_terms = 4, few_leaves = 8;

// Terms of one sum. As many as there are sets of loops, where equal ones become one.
using Terms = Few<Term, std::size_t{1} << deepest>;

// A home of a buffer: `own` are the uses (accesses) whose buffer lies among the operator's slices.
struct Option {
    Home home;
    Few<Term, few_terms> cross;
    Few<Held, few_leaves> held;
    Few<Id, few_terms> own;
    Summing summing = Summing::none;  // of the maker's slices
    bool apart = false;               // not in the place of the output that might lie over it
};

struct Choice {
    Id buffer = 0;
    std::vector<Option> options;  // from the outermost to the deepest
    // What no option holds less than, where sums are wider than elements; else the deepest holds least.
    std::optional<Option> least{};
};

// An input that lies on chip whole and dies, and the whole output of as many elements that takes its place.
struct Over {
    Id input = 0, output = 0;
    bool operator==(const Over&) const = default;
};

struct Kept {
    Set whole = 0;  // buffers that lie on chip whole
    bool inner_deepest = true, outer_worth = true, in_place = true;
    std::optional<Over> over{};
};

// True if an operator may write over a whole input: what it overwrites is read before, in every turn. An operator that
// reads it does so element by element, or its turn comes first in every loop around both, which goes on along one side.
// Of a loop along which windows slide that is not known yet: `sliding` says whether it is taken so.
bool read_before(const Group& group, const Shape& shape, Id input, Id writer, bool sliding);

// False if a loop over the class around a reader of a whole input and an operator that overwrites it loses an element.
// `sliding`: both along one side will do.
bool goes_on(const Group& group, Id loop_class, const Access& read, const Access& written, bool sliding);

// True if a buffer is whole, or lies in the place of one that is.
bool in_whole_place(const Group& group, const Shape& shape, const Kept& kept, Id buffer);

// The operand in whose place an operator writes: its home is that of the output, or the output lies whole.
std::optional<Id> replaced(const Group& group, const Shape& shape, const Kept& kept, Id op);

// The deepest body that holds all of a buffer's uses, or the place in their pass.
Home deepest_home(const Group& group, const Shape& shape, Id buffer);

// The homes of every buffer that has any. Where windows slide, `frame` says the rows of every turn.
std::vector<Choice> choices(const Group& group, const Shape& shape, const Kept& kept, const Frame* frame);

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
