// Groups that may run as nests of loops, and what the search of nests says of them: asked once for every
// pattern of whole operands and every room, and for groups of the same text together.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "fusion_problem.h"

namespace onchip::joint {

// The bytes that cross beside whole operands, weights included, and the scratch of the best nest.
struct NestCost {
    fusion::Bytes crossing = 0, needs = 0;
};

// The best nest of one group with the buffers of a mask whole, in a room, if it moves less than a limit.
using BestNest = std::function<std::optional<NestCost>(std::uint64_t whole, fusion::Bytes room, fusion::Bytes limit)>;

struct NestGroup {
    std::vector<fusion::Id> members;  // ascend
    std::uint32_t text = 0;           // groups of the same text cost the same
    std::vector<std::pair<fusion::Id, std::uint64_t>> buffers;  // the group's buffers by tensor
    fusion::Bytes floor = 0;  // what crosses at least where nothing is whole, weights included
};

}  // namespace onchip::joint
