// Addresses for rows: rectangles of steps and bytes, some in one piece, first fit, again and again.
#pragma once
#include <optional>
#include <vector>

#include "clock.h"
#include "rows_graph.h"

namespace onchip::rows {

// A row is there from the step that makes it to the last that reads it, both included.
struct Rectangle {
    int made = 0;
    int read = 0;
    Bytes bytes = 0;
};

// The row `under` may start `distance` bytes below the row `over`, which the step that makes it reads last.
struct Pair {
    int under = 0;
    int over = 0;
    Bytes distance = 0;
};

struct Packing {
    std::vector<Bytes> addresses;
    Bytes extent = 0;
};

struct Shelves {
    std::vector<Rectangle> rows;
    std::vector<Pair> pairs;
    std::vector<int> bottom;  // in one piece from address 0 on
    std::vector<int> top;     // in one piece up to the extent
    Bytes alignment = 1;
};

// Addresses within an extent that is close to the least that first fit finds; no extent below `least` is tried.
Packing packed(const Shelves& shelves, Bytes least, int tries, Clock<std::int64_t>& clock);

}  // namespace onchip::rows
