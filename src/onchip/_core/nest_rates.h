// What the homes of buffers let cross at least if they are to fit: by bytes of room for bytes that cross.
#pragma once
#include <span>
#include <utility>
#include <vector>

#include "nest_group.h"

namespace onchip::nests {

class Rates {
  public:
    // Begins with no buffer, for so many leaves.
    void clear(std::size_t leaves);
    // A buffer with one home of these: what each lets cross, and what it holds at each leaf, home by home.
    void add(std::span<const Bytes> crossing, std::span<const Bytes> held);
    // The least that crosses, whatever fits.
    Bytes crossing() const { return crossing_; }
    // A bound from below for what crosses where every leaf holds no more than the room; `unlimited`: nothing fits. Ends
    // as soon as it is `limit` or more.
    Bytes least(Bytes room, Bytes limit);

  private:
    struct Leaf {
        Bytes held = 0, back = 0;                      // at the homes that let least cross; what others give back
        std::vector<std::pair<double, Bytes>> rates{};  // by buffer: room for a byte that crosses, and how much at most
    };
    std::vector<Leaf> leaves_;
    std::size_t count_ = 0;
    Bytes crossing_ = 0;
};

}  // namespace onchip::nests
