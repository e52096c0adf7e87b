// Which operators of a group keep their weights in the scratch: a knapsack, asked for many capacities.
#pragma once
#include <utility>
#include <vector>

#include "fusion_problem.h"

namespace onchip::fusion {

class Weights {
  public:
    void clear();
    // One more operator: all its weights, what they take in the scratch, and what its tile takes there.
    void add(Bytes weight, Bytes room, Bytes tile);
    void close(Residency mode);

    Bytes all() const { return all_; }  // of every operator, each once
    Bytes least_room() const { return least_room_; }  // bytes without which the group cannot run

    // The most bytes that can be resident in `room`, -1 when the tile of the rest does not fit.
    Bytes most(Bytes room);
    // An upper bound of most(room), -1 only when that is.
    Bytes at_most(Bytes room) const {
        if (room >= all_room_) return all_;
        if (room < least_room_) return -1;
        return mode_ == Residency::partial ? std::min(all_ - smallest_, room) : 0;
    }
    // Which operators (by the order of add) are resident in most(room), and what they and the tile take.
    std::pair<std::vector<bool>, Bytes> chosen(Bytes room);

  private:
    struct Item {
        Bytes weight, room, tile;
        std::size_t index;
    };
    struct Choice {
        Bytes weight = -1, room = 0;
        std::vector<bool> in;
    };
    Choice solve(Bytes room) const;
    void fill(std::size_t from, Bytes room, Bytes weight, std::vector<char>& in, Choice& best, Bytes forced_room,
              std::size_t& nodes) const;
    void fill_exactly(Bytes room, Bytes forced_weight, Bytes forced_room, Choice& best) const;

    std::vector<Item> items_;   // with weights, largest first
    std::size_t added_ = 0;
    Residency mode_ = Residency::partial;
    Bytes all_ = 0, all_room_ = 0, least_room_ = 0, smallest_ = 0;
    std::vector<std::pair<Bytes, Bytes>> known_;  // (room, answer)
    mutable std::vector<const Item*> free_;
    mutable std::vector<Bytes> rest_weight_, rest_room_;
};

}  // namespace onchip::fusion
