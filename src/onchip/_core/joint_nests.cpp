#include "joint_nests.h"

namespace onchip::joint {

bool NestCosts::quick(std::uint32_t text) {
    std::optional<bool>& known = quick_[text];
    if (!known) known = texts_[text].quick();
    return *known;
}

std::optional<NestCost> NestCosts::best(std::uint32_t text, std::uint64_t whole, Bytes room, Bytes limit) {
    Stairs& stairs = known_[Key{text, whole}];
    if (const std::optional<Bytes> known = stairs.at(room)) {
        if (*known >= limit) return std::nullopt;
        return NestCost{*known, stairs.least_room(room)};
    }
    if (!stairs.below(room, limit)) return std::nullopt;
    if (!quick(text)) return std::nullopt;
    const std::optional<NestCost> found = texts_[text].best(whole, room, limit);
    if (found)
        stairs.learn(room, found->crossing, found->needs);
    else if (limit >= unlimited)
        stairs.learn(room, unlimited, 0);
    else
        stairs.learn_bound(room, limit);
    return found;
}

}  // namespace onchip::joint
