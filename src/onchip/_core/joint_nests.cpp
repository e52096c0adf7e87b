#include "joint_nests.h"

#include <algorithm>

namespace onchip::joint {

bool NestCosts::quick(std::uint32_t text) {
    std::optional<bool>& known = quick_[text];
    if (!known) known = texts_[text].quick();
    return *known;
}

NestAnswer NestCosts::best(std::uint32_t text, const NestWhole& whole, Bytes room, Bytes limit) {
    Stairs& stairs = known_[Key{text, whole}];
    if (const std::optional<Bytes> known = stairs.at(room)) {
        if (*known >= limit) return {std::nullopt, stairs.cut};
        return {NestCost{*known, stairs.least_room(room)}, stairs.cut};
    }
    if (!stairs.below(room, limit)) return {std::nullopt, stairs.cut};
    if (looks_ > few_looks && !quick(text)) return {};
    NestSearched answer = texts_[text].best(whole, room, limit, looks_, stop_);
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

const nests::Found* NestCosts::nest(std::uint32_t text, const NestWhole& whole, Bytes room) {
    if (!best(text, whole, room, unlimited).found) return nullptr;
    return &nests_[known_[Key{text, whole}].mark(room)];
}

std::vector<std::uint32_t> NestCosts::cut_texts() const {
    std::vector<std::uint32_t> found;
    for (const auto& [key, stairs] : known_)
        if (stairs.cut) found.push_back(key.text);
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

void NestCosts::leave_out(const std::vector<std::uint32_t>& texts) {
    for (const std::uint32_t text : texts) quick_[text] = false;
    std::erase_if(known_, [&](const auto& entry) { return !quick_[entry.first.text].value_or(true); });
}

void NestCosts::deepen(std::uint64_t looks) {
    looks_ = looks;
    std::erase_if(known_, [](const auto& entry) { return entry.second.cut; });
}

}  // namespace onchip::joint
