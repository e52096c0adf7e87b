// What a search that looked at some shapes in order left open: shapes, tiles and rings, those first that may let the
// fewest bytes cross. So what crosses at least is known at any time, and is sharpened where it is lowest.
#pragma once
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "nest_framing.h"

namespace onchip::nests {

class OpenParts {
  public:
    OpenParts(const Group& group, const Settings& settings, Orders& orders, Best& best, std::uint64_t& looks,
              const std::function<bool()>& over);

    // One more shape.
    void add(const Shape& shape);
    // Looks at what may let least cross until it is over, or nothing is left below the best so far.
    void look();
    // No nest of the shapes lets less cross, but for the best.
    Bytes bound() const { return open_.empty() ? unlimited : open_.top().bound; }

  private:
    struct Open {
        Bytes bound;
        std::size_t tie;  // of equal bounds the last one first: it is further on
        std::size_t shape;
        Part part;
        bool operator<(const Open& other) const {
            return bound != other.bound ? bound > other.bound : tie < other.tie;
        }
    };
    void add(Bytes bound, std::size_t shape, Part part);
    void look(const Open& at);
    void search(const Shape& shape, const Part& part);

    const Group& group_;
    const Settings& settings_;
    Orders& orders_;
    Best& best_;
    std::uint64_t& looks_;
    const std::function<bool()>& over_;
    std::vector<Shape> shapes_;
    std::priority_queue<Open> open_;
    std::size_t ties_ = 0;
};

}  // namespace onchip::nests
