// A loop along which windows slide: how far every operator goes in each turn, and from that the rows of every buffer
// that cross and that are there. A row is an index along the side that the loop cuts.
#pragma once
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "nest_group.h"

namespace onchip::nests {

// Longer axes are tried at the least tile of every number of turns only, and of at most so many turns.
inline constexpr std::int64_t every_tile_up_to = 256;

// Rows of a buffer: those that cross, or are made, in all turns together; the most that are there in any.
struct Rows {
    std::int64_t moved = 0, held = 0;
};

// A buffer for all of its uses: filled anew, or made again, in every turn; or as a ring, which keeps rows for the next.
struct Shared {
    Rows anew, ring;
    bool keeps = false;  // anew, some rows come twice
};

// All buffers of a loop at one tile, or the least at any of several.
struct Turned {
    std::int64_t turns = 0;
    std::vector<Rows> own;        // by access: of a buffer of its own
    std::vector<Shared> shared;  // by buffer
};

// A loop along a class of axes with these operators inside.
class Window {
  public:
    Window(const Group& group, Id loop_class, Set inside, Set whole);

    bool legal() const { return legal_; }    // strides agree, and what no tensor links has axes of one size
    bool slides() const { return slides_; }  // else it is a loop like any other, with the `points`
    const std::vector<Point>& points() const { return points_; }
    Set inside() const { return inside_; }
    // True if a buffer from outside may live in the loop for all of its uses, or for one of its own: else it would
    // change how far the operators go in a turn.
    bool may_share(Id buffer) const { return has(share_, buffer); }
    bool may_own(Id access) const { return own_[access]; }
    // Buffers made and read in the loop, with their home there.
    Set inner() const { return inner_; }

    // At one point. `again`: buffers made here whose rows are made again where a turn needs them again, and no others are.
    // Of those in `open` it is not known: they begin at the later of both.
    Turned at(std::size_t point, Set again, Set open) const;
    // True if no turn reads, of a whole input, what an operator wrote over in one before it: of both the loop cuts one
    // side. At one point, as above.
    bool reads_ahead(std::size_t point, Set again, const Access& read, Id writer) const;
    // The least at any point from `from` on before `to`; all but `again` are open.
    const Turned& least(std::size_t from, std::size_t to, Set again);

  private:
    struct Link {
        Id access;
        Id reader;
        Slide slide;
    };

    // How far every operator goes in every turn: [low, high), by operator and turn.
    struct Made {
        std::vector<std::int64_t> low, high;
    };
    Made made(std::size_t point, Set again, Set open, Turned* found) const;
    bool find_links(Set whole);
    bool find_scales();
    void find_shares();
    void find_points();
    std::int64_t turns(std::int64_t tile) const;
    Slide slide(const Access& access) const;

    const Group& group_;
    const Id class_;
    const Set inside_;
    Set share_ = 0, inner_ = 0, drives_ = 0;  // buffers, buffers, operators
    std::vector<bool> own_;
    std::vector<std::int64_t> scale_, size_;  // by operator
    std::vector<Id> part_;                    // by operator: the first one that it is linked with
    std::vector<std::vector<Link>> readers_;  // by maker
    std::vector<std::vector<Link>> fetched_;  // by buffer from outside: uses in the loop that it cuts
    Set together_ = 0;                        // buffers from outside that it cuts for all of their uses
    std::vector<Point> points_;
    bool legal_ = false, slides_ = false;
    std::map<Set, std::vector<Turned>> tables_;
    std::map<std::pair<std::pair<std::size_t, std::size_t>, Set>, Turned> least_;
};

}  // namespace onchip::nests
