#include "joint_nests.h"

#include <algorithm>

namespace onchip::joint {

bool NestCosts::quick(std::uint32_t text) {
    std::optional<bool>& known = quick_[text];
    if (!known) known = texts_[text].quick(stop_);
    return known.value_or(false);
}

// A search whose text may be left out looks at so few shapes before we find that out.
constexpr std::uint64_t part_first = 8, least_first = 100;

// Most searches end before it takes to find out whether a text is left out: we ask that of the others alone.
NestSearched NestCosts::search(std::uint32_t text, const NestWhole& whole, Bytes room, Bytes limit) {
    const NestText& of = texts_[text];
    if (!quick_[text].value_or(true)) return {};
    if (limit < unlimited && stop_ && stop_()) return {std::nullopt, true};  // what it is to beat will do
    const std::uint64_t most = looks_[text];
    const std::uint64_t first = quick_[text] ? most : std::min(most, std::max(of.most_shapes / part_first, least_first));
    NestSearched answer = of.best(whole, room, limit, first, stop_);
    if (!answer.spent || first == most) return answer;
    if (!quick(text)) {
        if (quick_[text]) answer.cut = false;  // left out, but what was found by chance may well be used
        return answer;
    }
    return of.best(whole, room, limit, most, stop_);
}

NestAnswer NestCosts::best(std::uint32_t text, const NestWhole& whole, Bytes room, Bytes limit) {
    Stairs& stairs = known_[Key{text, whole}];
    if (const std::optional<Bytes> known = stairs.at(room)) {
        const Bytes bound = stairs.cut ? stairs.floor(room) : *known;
        if (*known >= limit) return {std::nullopt, stairs.cut, bound};
        return {NestCost{*known, stairs.least_room(room)}, stairs.cut, bound};
    }
    // What fits in less room fits here, and has to be beaten.
    const std::optional<Stairs::Part> known = stairs.fitting(room);
    const bool fits = known && known->cost < limit;
    const Bytes below = fits ? known->cost : limit;
    const bool open = stairs.below(room, below) && stairs.floor(room) < below;
    NestSearched answer;
    if (open) {
        answer = search(text, whole, room, below);
        stairs.cut = stairs.cut || answer.cut;
        stairs.learn_floor(room, answer.cut ? answer.bound : answer.found ? answer.found->bytes : below);
        if (answer.found) {
            const NestCost cost{answer.found->bytes, answer.found->need};
            stairs.learn(room, cost.crossing, cost.needs, nests_.size());
            nests_.push_back(*std::move(answer.found));
            return {cost, stairs.cut, stairs.floor(room)};
        }
    }
    if (fits) {
        stairs.learn(room, known->cost, known->from, known->mark);
        return {NestCost{known->cost, known->from}, stairs.cut, stairs.floor(room)};
    }
    if (!quick_[text].value_or(true)) return {};
    if (open && limit >= unlimited && !answer.cut) stairs.learn(room, unlimited, 0);
    else if (open) stairs.learn_bound(room, limit);
    return {std::nullopt, stairs.cut, stairs.floor(room)};
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
    looks_.assign(texts_.size(), looks);
    for (auto& [key, stairs] : known_)
        if (stairs.cut) stairs.reopen();
}

bool NestCosts::deepen_some(const std::vector<std::uint32_t>& texts, std::uint64_t times, std::uint64_t most) {
    std::vector<bool> deeper(texts_.size());
    bool any = false;
    for (const std::uint32_t text : texts) {
        if (looks_[text] >= most) continue;
        looks_[text] = std::min(looks_[text] * times, most);
        deeper[text] = any = true;
    }
    for (auto& [key, stairs] : known_)
        if (stairs.cut && deeper[key.text]) stairs.reopen();
    return any;
}

}  // namespace onchip::joint
