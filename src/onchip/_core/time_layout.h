// What the law of nests makes of one nest of a group: whether it is legal, where every buffer lives, how many bytes
// cross, the scratch; in the form in which `time_clock` walks it. The checker derives the same from the plan.
#pragma once
#include <vector>

#include "time_group.h"

namespace onchip::timed {

// Indices from `low` on and before `high`.
struct Range {
    std::int64_t low = 0, high = 0;
    std::int64_t length() const { return high - low; }
};

// How often tiles of a length come.
struct Tiles {
    std::int64_t length = 0, count = 0;
};

// A loop along which windows slide: by turn, what each operator goes through, and what moves of a home that it cuts.
struct Windows {
    std::int64_t turns = 0;
    std::vector<std::vector<Range>> made;   // by operator; none outside the loop
    std::vector<int> side;                  // by home: the side that it cuts, or negative
    std::vector<std::vector<Range>> there;  // by home
    std::vector<std::vector<Range>> moved;  // by home
};

struct Body {
    int parent = -1, loop_class = -1;
    int before = -1;  // the loop around along the same class
    std::int64_t tile = 0, size = 1;
    int first_leaf = 0, end_leaf = 0, end_body = 0;  // those inside
    int first_moving = 0, end_moving = 0, end_inside = 0;  // of its own, and of all bodies inside
    int windows = -1;
    const Item* item = nullptr;
    std::vector<int> items;    // bodies, and leaves as ~number
    std::vector<Tiles> tiles;  // of the whole chain, if no windows slide
    std::int64_t entries = 1;  // turns of the whole chain
    // where the walk is
    std::int64_t index = 0, count = 1, low = 0, high = 0;
};

struct Leaf {
    Id op = 0;
    int body = 0, place = 0;  // the body, and the place among its items
    int under = -1;
    std::vector<int> path;   // bodies from the root to its own
    std::vector<int> axes;   // by axis: the innermost loop along it
    std::vector<int> sums;   // the innermost loops over its sums
    const Array* array = nullptr;
    Time cycles = 0;         // of its products in all steps
    std::int64_t steps = 0;
    std::vector<int> uses;   // what moves, in order
};

struct Home {
    Id buffer = 0;
    int body = 0, leaf = -1;  // the leaf of a private use
    std::vector<Id> uses, guests;  // accesses
    Kept ways;
    std::vector<int> cut;  // by side: the innermost loop that cuts it, or negative
    std::vector<std::int64_t> held;
    std::vector<int> ends;  // above it, the innermost loop of each class
    int ring = -1;          // the body in which it keeps rows
    std::int64_t width = 0;
    Bytes bytes = 0, crosses = 0;
    int first = 0, last = 0;  // leaves at which it lives
};

// A buffer that comes from DRAM or goes there.
struct Moving {
    int home = 0;
    bool stored = false, owned = false, in_fills = false;
    int load = 0, store = 0;
    std::vector<int> sums, waits;
    Set users = 0;  // leaves
    int last_leaf = -1;
};

struct Beside {  // partial sums, or what they carry, beside a home
    Bytes bytes = 0;
    int first = 0, last = 0;
};

class Layout {
  public:
    explicit Layout(const Problem& of) : problem(of) {}

    // Derives a nest, which has to live on. False if the checker would refuse it.
    bool derive(const Item& root);
    // Why not.
    const char* reason = "";

    // Bytes of scratch at the worst moment, and with every buffer at an offset: no less.
    Bytes need = 0;
    Bytes extent() const;
    Bytes bytes = 0;  // that cross
    // No copies and no channels make it faster.
    Time floor() const;

    const Problem& problem;
    std::vector<Body> bodies;
    std::vector<Leaf> leaves;
    std::vector<Home> homes;
    std::vector<Moving> moving;
    std::vector<Beside> beside;
    std::vector<Windows> windows;
    Time work = 0;  // of the products of all steps
    std::int64_t transfers = 0;

    // The indices of a loop's turn for an operator.
    Range made(const Body& body, Id op) const {
        if (body.windows >= 0)
            return windows[static_cast<std::size_t>(body.windows)].made[op][static_cast<std::size_t>(body.index)];
        return {body.low, body.high};
    }
    Body& at(int body) { return bodies[static_cast<std::size_t>(body)]; }
    const Body& at(int body) const { return bodies[static_cast<std::size_t>(body)]; }

  private:
    bool refuse(const char* why) { return reason = why, false; }
    bool walk(const Item& item, int body);
    bool finished();
    bool find_homes();
    bool kept(const Item& item, int body);
    bool in_place();
    bool slide();
    bool slide_along(int body, bool outer, bool& slides);
    void sizes();
    bool widths();
    bool spilled() const;
    bool find_moving();
    bool in_tiles();
    void lay();
    void order_moving();
    bool below(Id use, int body) const;
    int deepest(const std::vector<Id>& uses) const;
    int add_home(Id buffer, int body, int leaf, std::vector<Id> uses, Kept ways);
    std::vector<std::int64_t> left(Id use, const std::vector<int>& ends) const;
    std::vector<int> ends_of(int body) const;
    bool many(const Leaf& leaf, int body) const;

    std::vector<int> leaf_of_;  // by operator
    std::vector<std::vector<int>> kept_in_;  // by buffer: homes made by bodies
};

}  // namespace onchip::timed
