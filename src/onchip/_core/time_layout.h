// What the law of nests makes of one nest of a group: whether it is legal, where every buffer lives, how many bytes
// cross, the scratch; in the form in which `time_clock` walks it. The checker derives the same from the plan.
#pragma once
#include <vector>

#include "reused.h"
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

struct BodyFacts {
    int parent = -1, loop_class = -1;
    int before = -1;  // the loop around along the same class
    std::int64_t tile = 0, size = 1;
    int first_leaf = 0, end_leaf = 0, end_body = 0;  // those inside
    int first_moving = 0, end_moving = 0, end_inside = 0;  // of its own, and of all bodies inside
    int windows = -1;
    bool around = false;  // another loop inside goes along the same class
    const Item* item = nullptr;
    std::int64_t entries = 1;  // turns of the whole chain
    // where the walk is
    std::int64_t index = 0, count = 1, low = 0, high = 0;
};

struct Body : BodyFacts {
    std::vector<int> items;    // bodies, and leaves as ~number
    std::vector<Tiles> tiles;  // of the whole chain, if no windows slide
    void renew() { onchip::renew<BodyFacts>(*this, &Body::items, &Body::tiles); }
};

struct LeafFacts {
    Id op = 0;
    int body = 0, place = 0;  // the body, and the place among its items
    int under = -1;
    const Array* array = nullptr;
    Time cycles = 0;  // of its products in all steps
    std::int64_t steps = 0;
};

struct Leaf : LeafFacts {
    std::vector<int> path;  // bodies from the root to its own
    std::vector<int> axes;  // by axis: the innermost loop along it
    std::vector<int> sums;  // the innermost loops over its sums
    std::vector<int> uses;  // what moves, in order
    void renew() { onchip::renew<LeafFacts>(*this, &Leaf::path, &Leaf::axes, &Leaf::sums, &Leaf::uses); }
};

struct HomeFacts {
    Id buffer = 0;
    int body = 0, leaf = -1;  // the leaf of a private use
    Kept ways;
    int ring = -1;  // the body in which it keeps rows
    std::int64_t width = 0;
    Bytes bytes = 0, crosses = 0;
    int first = 0, last = 0;  // leaves at which it lives
};

struct Home : HomeFacts {
    std::vector<Id> uses, guests;  // accesses
    std::vector<int> cut;          // by side: the innermost loop that cuts it, or negative
    std::vector<std::int64_t> held;
    std::vector<int> ends;  // above it, the innermost loop of each class
    void renew() { onchip::renew<HomeFacts>(*this, &Home::uses, &Home::guests, &Home::cut, &Home::held, &Home::ends); }
};

struct MovingFacts {
    int home = 0;
    bool stored = false, owned = false, in_fills = false;
    int load = 0, store = 0;
    Set users = 0;  // leaves
    int last_leaf = -1;
};

// A buffer that comes from DRAM or goes there.
struct Moving : MovingFacts {
    std::vector<int> sums, waits;
    void renew() { onchip::renew<MovingFacts>(*this, &Moving::sums, &Moving::waits); }
};

struct Beside {  // partial sums, or what they carry, beside a home
    Bytes bytes = 0;
    int first = 0, last = 0;
};

class Layout {
  public:
    explicit Layout(const Problem& of) : problem(of) {}

    // Derives a nest, which has to live on. False if the checker would refuse it, or if it needs more than `most` bytes:
    // then no more is derived.
    bool derive(const Item& root, Bytes most = never) {
        if (!placed(root, most)) return false;
        timed();
        return true;
    }
    // The same in two parts. The first one finds how many bytes it needs and how many cross, the second one its cycles.
    bool placed(const Item& root, Bytes most = never);
    void timed();
    // Why not.
    const char* reason = "";

    // Bytes of scratch at the worst moment, and with every buffer at an offset: no less.
    Bytes need = 0;
    Bytes extent();
    Bytes bytes = 0;  // that cross
    // No copies and no channels make it faster; nor what crosses, which is known before it is timed.
    Time floor() const { return std::max(work, crossing()); }
    Time crossing() const;

    const Problem& problem;
    Reused<Body> bodies;
    Reused<Leaf> leaves;
    Reused<Home> homes;
    Reused<Moving> moving;
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
    void array_of(Leaf& leaf);
    void order_moving();
    bool below(Id use, int body) const;
    int deepest(const std::vector<Id>& uses) const;
    void add_home(Id buffer, int body, int leaf, const std::vector<Id>& uses, Kept ways);
    void left(Id use, int body, std::vector<std::int64_t>& sides) const;
    void ends_of(int body, std::vector<int>& ends) const;
    bool many(const Leaf& leaf, int body) const;

    std::vector<int> leaf_of_;  // by operator
    std::vector<std::vector<int>> kept_in_;  // by buffer: homes made by bodies
    // Memory for what is needed for a moment.
    struct Held {
        Bytes size = 0;
        int first = 0, last = 0;
        Bytes at = 0;
    };
    struct Turns {  // of one axis
        const Tiles* tiles = nullptr;
        std::size_t count = 0;
    };
    std::vector<Id> rest_, shared_, others_;
    std::vector<std::int64_t> sides_;
    std::vector<int> count_;  // by buffer: homes
    std::vector<std::size_t> order_;
    std::vector<std::pair<int, std::size_t>> ranks_;
    std::vector<Held> all_;
    std::vector<std::pair<Bytes, Bytes>> taken_;
    std::vector<Turns> turns_;
    std::vector<Tiles> whole_, both_, next_;
    std::vector<std::vector<Tiles>> slid_;
};

}  // namespace onchip::timed
