// In what order an operator's own slices go along its axes: what they leave of the buffers that are private to it, and
// of the sums that are not complete meanwhile.
#pragma once
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "nest_group.h"

namespace onchip::nests {

// By private use of an operator: the axes that its slices cut before the first that does not cut it.
using Beginnings = std::vector<Set>;

// What an operator's slices cost where partial sums are wider than elements. With some around it that make partial
// sums, none: nothing, or wide: its private output is so wide. Else its slices may: own: its private output is so wide
// then; beside: there are accumulators beside the output; behind: so, and a slice along a side of the output stands
// before; first: the output is as wide as its sums, as the first slice goes over one.
enum class Summing : std::uint8_t { none, wide, own, beside, behind, first };

struct Order {
    Beginnings cut;
    Set before = 0;         // axes cut before the first that is summed over
    bool summed = false;    // one of them is summed over
    std::vector<Id> axes{};  // outermost first
};

class Orders {
  public:
    Orders(const Group& group, bool every_order) : group_(group), every_order_(every_order) {}

    // The orders worth trying for the private uses in `own` (bits by place in `Group::of`).
    const std::vector<Order>& of(Id op, Set own, Summing summing = Summing::none);

  private:
    struct Walk {
        std::vector<Set> cuts;  // by use
        Set axes, sums;         // that slices may go along; those summed over of which one must be among them
    };

    void extend(const Walk& walk, Set active, Set gone, Order order, std::vector<Order>& found) const;
    void extend_to_sum(const Walk& walk, Set active, Set gone, Order order, std::vector<Order>& found) const;

    const Group& group_;
    const bool every_order_;
    std::map<std::tuple<Id, Set, Summing>, std::vector<Order>> known_;
};

}  // namespace onchip::nests
