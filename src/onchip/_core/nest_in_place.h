// Outputs in the place of operands: which operand an output may lie over, and when it has read all of it.
#pragma once
#include <optional>

#include "nest_shape.h"

namespace onchip::nests {

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

// The operand in whose place an operator writes: its home is that of the output or further in, or the output lies
// whole. An output that leaves, and is not read here, lives where the operand does then.
std::optional<Id> replaced(const Group& group, const Shape& shape, const Kept& kept, Id op);

// True if an operand lies in the place of one that has its home further out: that is there as long as the operand.
bool gone_under(const Group& group, const Shape& shape, const Kept& kept, Id operand);

}  // namespace onchip::nests
