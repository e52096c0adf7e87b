#include "joint_stairs.h"

#include <algorithm>

namespace onchip::joint {

std::optional<Bytes> Stairs::at(Bytes room) const {
    if (room <= too_small_) return unlimited;
    for (const Part& p : parts_)
        if (p.from <= room && room <= p.to) return p.cost;
    return std::nullopt;
}

std::optional<Stairs::Part> Stairs::fitting(Bytes room) const {
    std::optional<Part> best;
    for (const Part& p : parts_)
        if (p.from <= room && (!best || p.cost < best->cost)) best = p;
    return best;
}

Bytes Stairs::least_room(Bytes room) const {
    for (const Part& p : parts_)
        if (p.from <= room && room <= p.to) return p.from;
    return room;
}

bool Stairs::below(Bytes room, Bytes limit) const {
    return std::none_of(bounds_.begin(), bounds_.end(),
                        [&](const auto& b) { return room <= b.first && limit <= b.second; });
}

std::size_t Stairs::mark(Bytes room) const {
    for (const Part& p : parts_)
        if (p.from <= room && room <= p.to) return p.mark;
    return 0;
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
