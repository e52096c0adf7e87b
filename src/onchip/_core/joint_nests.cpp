#include "joint_nests.h"

namespace onchip::joint {

bool NestCosts::quick(std::uint32_t text) {
    std::optional<bool>& known = quick_[text];
    if (!known) known = texts_[text].quick();
    return *known;
}

NestAnswer NestCosts::best(std::uint32_t text, std::uint64_t whole, Bytes room, Bytes limit) {
    Stairs& stairs = known_[Key{text, whole}];
    if (const std::optional<Bytes> known = stairs.at(room)) {
        if (*known >= limit) return {std::nullopt, stairs.cut};
        return {NestCost{*known, stairs.least_room(room)}, stairs.cut};
    }
    if (!stairs.below(room, limit)) return {std::nullopt, stairs.cut};
    if (!quick(text)) return {};
    NestSearched answer = texts_[text].best(whole, room, limit, stop_);
    stairs.cut = stairs.cut || answer.cut;
    if (!answer.found) {
        if (limit >= unlimited && !answer.cut)
            stairs.learn(room, unlimited, 0);
        else
            stairs.learn_bound(room, limit);
        return {std::nullopt, stairs.cut};
    }
    const NestCost cost{answer.found->bytes, answer.found->need};
    stairs.learn(room, cost.crossing, cost.needs, nests_.size());
    nests_.push_back(*std::move(answer.found));
    return {cost, stairs.cut};
}

const nests::Found* NestCosts::nest(std::uint32_t text, std::uint64_t whole, Bytes room) const {
    const auto at = known_.find(Key{text, whole});
    if (at == known_.end()) return nullptr;
    const std::optional<Bytes> cost = at->second.at(room);
    return cost && *cost < unlimited ? &nests_[at->second.mark(room)] : nullptr;
}

}  // namespace onchip::joint
