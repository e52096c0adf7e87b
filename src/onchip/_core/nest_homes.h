// The homes and tiles of one shape of a nest: a branch and bound over the homes of its buffers.
#pragma once
#include <array>
#include <functional>
#include <list>
#include <optional>
#include <vector>

#include "nest_orders.h"
#include "nest_tiles.h"

namespace onchip::nests {

// Every switch is exact: on and off give the same bytes.
struct Rules {
    bool tiles = true;      // P2: only the least tile of every number of turns, judged in boxes
    bool inner = true;      // P3: a tensor made and read here lives as deep as it can
    bool outer = true;      // P4: a home only where one deeper lets more cross
    bool exchange = true;   // P5: one order of neighbouring loops with nothing between them
    bool slices = true;     // P6: only the longest beginnings of the orders of slices
    bool rings = true;      // a ring only where it keeps rows
    bool bounds = true;     // P7: what cannot fit, or beat the best, is not looked at
};

struct Settings {
    Set whole = 0;  // buffers that lie on chip whole
    std::optional<Over> over{};  // two of them: one lies over the other
    Bytes room = 0, alignment = 1;
    std::size_t spine = deepest;
    std::size_t passes = most;  // of one nest
    bool long_passes = false;    // only passes that no neighbour could join
    bool in_place = true;
    std::size_t windows = 2;  // most loops of a spine along which windows slide
    Rules rules;

    Kept kept() const { return {whole, rules.inner, rules.outer, in_place, over}; }
};

// The best nest so far. Its home by buffer, its tiles by loop, the order of slices by leaf.
struct Best {
    Bytes bytes = unlimited, need = 0;
    bool found = false;
    Shape shape;
    std::array<std::int64_t, deepest> tile{};  // by loop
    std::vector<Home> homes;
    std::vector<std::vector<Id>> slices;  // by operator: axes, outermost first
    std::vector<std::optional<Id>> over;  // by operator: the operand in whose place it writes
    std::vector<bool> marks;  // by operator: a slice of one turn counts, as accumulators lie inside it
};

// What a search over homes tells about its work, and asks whether to go on.
struct Watched {
    std::uint64_t& looks;  // one more for every `nodes_a_look` nodes
    const std::function<bool()>& over;
    std::uint64_t nodes = 0;
    bool ended = false;
};
inline constexpr std::uint64_t nodes_a_look = 64;

class Homes {
  public:
    // `frame`: where windows slide along loops of the shape.
    Homes(const Group& group, const Settings& settings, Orders& orders, const Shape& shape, const Frame* frame);

    // True if the shape can hold what has one home only, with its least tiles.
    bool possible();
    // Looks for less than the best so far, until it is over.
    void search(Best& best, Watched watched);
    // For a bound: these buffers hold nothing in bodies, and private uses of them neither.
    void weigh_nothing(Set buffers);
    // False if a relaxation shows that the shape does not.
    bool may_beat(const Best& best) { return bound(best.bytes) < best.bytes; }
    // What crosses at least, by a relaxation; `limit` or more if that is no less.
    Bytes bound(Bytes limit);

  private:
    // Options of a buffer from `from` on, before `to`.
    struct Range {
        std::size_t from, to;
        bool open() const { return to - from > 1; }
    };
    using Ranges = std::vector<Range>;

    void find_alike();
    bool in_order(Ranges& ranges) const;
    void tighten();
    Bytes dearness(const Ranges& ranges, Bytes limit) const;
    bool too_dear(const Ranges& ranges, Bytes limit) const { return dearness(ranges, limit) >= limit; }
    void node(Best& best, const Ranges& ranges, Watched& watched);
    void every(Best& best, Ranges& ranges, std::size_t buffer);
    std::optional<std::size_t> round(Best& best, const Ranges& ranges, const Tiles::Found& relaxed);
    void keep(Best& best, Ranges ranges, const At& at);
    Terms cross(const Ranges& ranges) const;
    void relax(Terms& terms, const Choice& choice, Range range) const;
    std::vector<Load> loads(const Ranges& ranges);
    const Option& option(std::size_t choice, const Ranges& ranges) const;
    // What lies among the slices of every operator, of the options that loads take.
    struct Inside {
        std::array<Set, most> own;
        std::array<Summing, most> summing;
    };
    Inside inside(const Ranges& ranges) const;
    const std::vector<Terms>* either(Id leaf, Set own, Summing summing);

    const Group& group_;
    const Settings& settings_;
    Orders& orders_;
    const Shape& shape_;
    const Frame* frame_;
    std::vector<Choice> choices_;
    Ranges all_;
    std::vector<std::pair<std::size_t, std::size_t>> alike_;  // choices that differ in name alone
    Tiles tiles_;
    // By leaf and its private uses: what its orders of slices hold.
    struct Either {
        Id leaf;
        Set own;
        Summing summing;
        std::vector<Terms> terms{};
    };
    std::list<Either> either_;
    bool homeless_ = false;  // something has no home in this shape
    bool lenient_ = false;  // sums are no wider than elements
};

}  // namespace onchip::nests
