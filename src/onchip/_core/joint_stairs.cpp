#include "joint_stairs.h"

#include <algorithm>

namespace onchip::joint {

// Searches that are cut off may leave parts that lie over each other.
const Stairs::Part* Stairs::cheapest(Bytes room) const {
    const Part* best = nullptr;
    for (const Part& p : parts_)
        if (p.from <= room && room <= p.to && (!best || p.cost < best->cost)) best = &p;
    return best;
}

std::optional<Bytes> Stairs::at(Bytes room) const {
    if (room <= too_small_) return unlimited;
    const Part* part = cheapest(room);
    return part ? std::optional(part->cost) : std::nullopt;
}

std::optional<Stairs::Part> Stairs::fitting(Bytes room) const {
    std::optional<Part> best;
    for (const std::vector<Part>* parts : {&parts_, &before_})
        for (const Part& p : *parts)
            if (p.from <= room && (!best || p.cost < best->cost)) best = p;
    return best;
}

void Stairs::reopen() {
    before_.insert(before_.end(), parts_.begin(), parts_.end());
    parts_.clear();
    bounds_.clear();
    cut = false;
}

Bytes Stairs::least_room(Bytes room) const {
    const Part* part = cheapest(room);
    return part ? part->from : room;
}

bool Stairs::below(Bytes room, Bytes limit) const {
    return std::none_of(bounds_.begin(), bounds_.end(),
                        [&](const auto& b) { return room <= b.first && limit <= b.second; });
}

void Stairs::learn_floor(Bytes room, Bytes cost) {
    if (floor(room) >= cost) return;
    std::erase_if(floors_, [&](const auto& f) { return f.first <= room && f.second <= cost; });
    floors_.emplace_back(room, cost);
}

Bytes Stairs::floor(Bytes room) const {
    Bytes most = 0;
    for (const auto& [up_to, cost] : floors_)
        if (room <= up_to) most = std::max(most, cost);
    return most;
}

std::size_t Stairs::mark(Bytes room) const {
    const Part* part = cheapest(room);
    return part ? part->mark : 0;
}

void Stairs::learn(Bytes room, Bytes cost, Bytes needs, std::size_t mark) {
    if (cost >= unlimited) {
        too_small_ = std::max(too_small_, room);
        return;
    }
    // Costs fall with the room, so between two parts of the same cost it is that, too.
    Part merged{needs, room, cost, mark};
    std::erase_if(parts_, [&](const Part& p) {
        if (p.cost != cost) return false;
        if (p.from < merged.from) merged.from = p.from, merged.mark = p.mark;
        merged.to = std::max(merged.to, p.to);
        return true;
    });
    parts_.push_back(merged);
}

}  // namespace onchip::joint
