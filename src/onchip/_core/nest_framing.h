// Around the search for homes, where windows slide along loops of a shape: the tiles of these loops, and which of the
// tensors made and read inside are rings there.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "nest_homes.h"

namespace onchip::nests {

// What slides in loops, by class and the operators inside. For one group, and one set of whole buffers.
class WindowTable {
  public:
    Window& of(const Group& group, Id loop_class, Set inside, Set whole);

  private:
    std::map<std::pair<Id, Set>, std::unique_ptr<Window>> known_;
};

// Finds what slides along the loops of a shape; false if a loop is not legal.
bool place_windows(const Group& group, const Settings& settings, WindowTable& windows, Shape& shape);

// Some of the nests of a shape: tiles of the loops along which windows slide, and what is decided of its rings.
struct Part {
    std::array<std::pair<std::size_t, std::size_t>, deepest> points{};  // by loop: from, to
    std::size_t decided = 0;                                           // candidates for rings
    std::vector<int> ring;                                             // by buffer, as in a frame
};

class Framing {
  public:
    Framing(const Group& group, const Settings& settings, Orders& orders, const Shape& shape, Best& best,
            std::uint64_t& looks, const std::function<bool()>& over);

    // Looks for less than the best so far.
    void search();
    // False if a relaxation shows that the shape does not, with nothing held of some buffers.
    bool may_beat(Set nothing);

    // All nests of the shape.
    Part all() const { return {ranges_, 0, frame_.ring}; }
    // What those of a part let cross at least, by a relaxation; `limit` or more if that is no less.
    Bytes bound(const Part& part, Bytes limit);
    // The parts that it consists of; none where only homes, and tiles of other loops, are left to choose.
    std::vector<Part> parts(const Part& part);
    // True if nothing else is left to choose.
    bool decided(const Part& part) const;
    // Looks for less than the best so far in a part.
    void search(const Part& part);

  private:
    using Range = std::pair<std::size_t, std::size_t>;  // points of a loop: from, to
    // A tensor that may be a ring in the bodies of these loops.
    struct Candidate {
        Id buffer;
        std::vector<Id> loops;
    };

    void find_candidates();
    Set again(Id loop, std::size_t decided) const;
    Set open(std::size_t decided) const;
    void take(std::size_t decided);
    bool may_beat(std::size_t decided, Set nothing);
    void narrow();
    void decide(std::size_t next, bool fresh);
    Id widest() const;
    std::vector<int> worth_keeping(std::size_t next);
    void settle();
    void take(const Part& part);
    Bytes bound(std::size_t decided, Set nothing, Bytes limit);
    bool reads_ahead() const;

    const Group& group_;
    const Settings& settings_;
    Orders& orders_;
    const Shape& shape_;
    Best& best_;
    std::uint64_t& looks_;  // tiles, and choices of rings, looked at
    const std::function<bool()>& over_;
    std::vector<Id> loops_;  // along which windows slide
    std::array<Set, deepest> forced_{};  // by loop: buffers that are made again in it in any case
    std::vector<Candidate> candidates_;  // the last made first
    std::array<Range, deepest> ranges_{};
    std::array<Turned, deepest> exact_;
    Frame frame_;
};

}  // namespace onchip::nests
