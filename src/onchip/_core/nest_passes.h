// Passes: one or two loops of least tile around neighbouring operators of a body, for tensors whose held tile is large.
#pragma once
#include <functional>

#include "nest_framing.h"

namespace onchip::nests {

// Calls visit(shape) for every division of the shape's bodies into passes, at least one of them, as far as passes may
// beat the best so far; visit returns true to end it.
void divisions(const Group& group, const Settings& settings, Orders& orders, const Shape& shape, Best& best,
               const std::function<bool(const Shape&)>& visit);

}  // namespace onchip::nests
