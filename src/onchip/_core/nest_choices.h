// The homes that every buffer may have in a shape of a nest: what each lets cross, and what it holds.
#pragma once
#include "few.h"
#include "nest_in_place.h"

namespace onchip::nests {

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

// The homes of every buffer that has any. Where windows slide, `frame` says the rows of every turn.
std::vector<Choice> choices(const Group& group, const Shape& shape, const Kept& kept, const Frame* frame);

}  // namespace onchip::nests
