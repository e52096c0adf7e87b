// In what order an operator's own slices go along its axes: what they leave of the buffers that are private to it.
#pragma once
#include <map>
#include <utility>
#include <vector>

#include "nest_group.h"

namespace onchip::nests {

// By private use of an operator: the axes that its slices cut before the first that does not cut it.
using Beginnings = std::vector<Set>;

class Orders {
  public:
    Orders(const Group& group, bool every_order) : group_(group), every_order_(every_order) {}

    // The beginnings worth trying for the private uses in `own` (bits by place in `Group::of`), in their order.
    const std::vector<Beginnings>& of(Id op, Set own);

  private:
    void extend(const std::vector<Set>& cuts, Set active, Set gone, Beginnings& cut, std::vector<Beginnings>& found);

    const Group& group_;
    const bool every_order_;
    std::map<std::pair<Id, Set>, std::vector<Beginnings>> known_;
};

}  // namespace onchip::nests
