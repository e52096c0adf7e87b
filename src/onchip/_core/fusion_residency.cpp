#include "fusion_residency.h"

#include <algorithm>
#include <numeric>

namespace onchip::fusion {

void Weights::clear() {
    items_.clear();
    known_.clear();
    added_ = 0;
    all_ = all_room_ = least_room_ = 0;
}

void Weights::add(Bytes weight, Bytes room, Bytes tile) {
    const std::size_t index = added_++;
    if (weight == 0) return;
    items_.push_back({weight, room, tile, index});
    all_ += weight;
    all_room_ += room;
    least_room_ = std::max(least_room_, tile);
}

void Weights::close(Residency mode) {
    mode_ = mode;
    if (mode == Residency::none && !items_.empty()) all_room_ = std::numeric_limits<Bytes>::max();
    std::sort(items_.begin(), items_.end(), [](const Item& a, const Item& b) { return a.weight > b.weight; });
    smallest_ = items_.empty() ? 0 : items_.back().weight;
}

Bytes Weights::most(Bytes room) {
    if (room >= all_room_) return all_;
    if (room < least_room_) return -1;
    if (mode_ != Residency::partial) return 0;
    for (const auto& [r, answer] : known_)
        if (r == room) return answer;
    const Bytes answer = solve(room).weight;
    known_.emplace_back(room, answer);
    return answer;
}

std::pair<std::vector<bool>, Bytes> Weights::chosen(Bytes room) {
    if (room >= all_room_) {
        std::vector<bool> in(added_);
        for (const Item& i : items_) in[i.index] = true;
        return {in, items_.empty() ? 0 : all_room_};
    }
    if (mode_ != Residency::partial) return {std::vector<bool>(added_), least_room_};
    Choice best = solve(room);
    best.in.resize(added_);
    return {std::move(best.in), best.room};
}

// With the refilled operators' largest tile fixed, larger tiles are forced in and the rest is a plain knapsack.
Weights::Choice Weights::solve(Bytes room) const {
    std::vector<Bytes> tiles;
    for (const Item& i : items_) tiles.push_back(i.tile);
    std::sort(tiles.begin(), tiles.end(), std::greater<>());
    tiles.erase(std::unique(tiles.begin(), tiles.end()), tiles.end());
    Choice best;
    for (const Bytes tile : tiles) {
        Bytes weight = 0, taken = tile;
        free_.clear();
        for (const Item& i : items_) {
            if (i.tile > tile)
                weight += i.weight, taken += i.room;
            else
                free_.push_back(&i);
        }
        if (taken > room) break;  // a smaller tile forces more in
        const std::size_t n = free_.size();
        rest_weight_.assign(n + 1, 0), rest_room_.assign(n + 1, 0);
        for (std::size_t i = n; i-- > 0;) {
            rest_weight_[i] = rest_weight_[i + 1] + free_[i]->weight;
            rest_room_[i] = rest_room_[i + 1] + free_[i]->room;
        }
        std::vector<char> in(n, 0);
        std::size_t nodes = 0;
        const Bytes before = best.weight;
        fill(0, room - taken, weight, in, best, taken, nodes);
        if (nodes > 20000) fill_exactly(room, weight, taken, best);
        if (best.weight > before && !best.in.empty())
            for (const Item& i : items_)
                if (i.tile > tile) best.in[i.index] = true;
    }
    return best;
}

// Depth first, largest first; of equal operators the first ones are taken.
void Weights::fill(std::size_t from, Bytes room, Bytes weight, std::vector<char>& in, Choice& best,
                   Bytes forced_room, std::size_t& nodes) const {
    if (++nodes > 20000) return;
    if (weight > best.weight) {
        best.weight = weight;
        best.room = forced_room;
        best.in.assign(added_, false);
        for (std::size_t i = 0; i < from; ++i)
            if (in[i]) best.in[free_[i]->index] = true, best.room += free_[i]->room;
    }
    if (from == free_.size() || weight + std::min(rest_weight_[from], room) <= best.weight) return;
    const Item& item = *free_[from];
    if (item.room <= room) {
        in[from] = 1;
        fill(from + 1, room - item.room, weight + item.weight, in, best, forced_room, nodes);
        in[from] = 0;
    }
    std::size_t next = from + 1;
    while (next < free_.size() && free_[next]->weight == item.weight && free_[next]->room == item.room) ++next;
    fill(next, room, weight, in, best, forced_room, nodes);
}

// The same by a table over the room, for what depth first search does not finish.
void Weights::fill_exactly(Bytes room, Bytes forced_weight, Bytes forced_room, Choice& best) const {
    Bytes unit = 0;
    for (const Item* i : free_) unit = std::gcd(unit, i->room);
    const auto slots = static_cast<std::size_t>((room - forced_room) / unit);
    const std::size_t n = free_.size();
    std::vector<Bytes> value(slots + 1, 0);
    std::vector<std::vector<bool>> took(n, std::vector<bool>(slots + 1, false));
    for (std::size_t i = 0; i < n; ++i) {
        const auto size = static_cast<std::size_t>(free_[i]->room / unit);
        for (std::size_t at = slots + 1; at-- > size;)
            if (value[at - size] + free_[i]->weight > value[at])
                value[at] = value[at - size] + free_[i]->weight, took[i][at] = true;
    }
    if (forced_weight + value[slots] <= best.weight) return;
    best.weight = forced_weight + value[slots];
    best.room = forced_room;
    best.in.assign(added_, false);
    std::size_t at = slots;
    for (std::size_t i = n; i-- > 0;)
        if (took[i][at]) {
            best.in[free_[i]->index] = true;
            best.room += free_[i]->room;
            at -= static_cast<std::size_t>(free_[i]->room / unit);
        }
}

}  // namespace onchip::fusion
