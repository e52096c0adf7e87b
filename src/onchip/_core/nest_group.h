// A group of operators that runs in one nest of loops: their axes, the buffers, and the classes of axes that a
// loop may go along. Built once, asked for many rooms.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace onchip::nests {

using Id = std::uint32_t;
using Bytes = std::int64_t;
using Set = std::uint64_t;  // operators of the group, or axes of one operator

inline constexpr Bytes unlimited = std::numeric_limits<Bytes>::max() / 4;
inline constexpr std::size_t most = 64;    // operators, axes of one, uses of one
inline constexpr std::size_t deepest = 3;  // loops of a spine

inline constexpr Set one(std::size_t i) { return Set{1} << i; }
inline constexpr bool has(Set set, std::size_t i) { return (set >> i & 1) != 0; }

// What is too much counts as unlimited.
inline Bytes plus(Bytes a, Bytes b) { return a >= unlimited - b ? unlimited : a + b; }
inline Bytes times(Bytes a, Bytes b) {
    if (a <= 0 || b <= 0) return a * b;
    Bytes found = 0;
    return __builtin_mul_overflow(a, b, &found) || found > unlimited ? unlimited : found;
}

// Index o along an axis of an operator needs the `span` indices of a side from floor((o * stride - before) / per) on, as
// far as they exist.
struct Slide {
    Id side = 0, axis = 0;
    std::int64_t stride = 1, before = 0, span = 1, per = 1;
};

struct Use {
    Id buffer = 0;
    std::vector<int> axes;  // by side of the buffer; negative: every position of it, or a window
    std::vector<Slide> slides;
    bool late = false;  // a constant that is read only where the operator's sums are complete
};

struct Operator {
    std::vector<std::int64_t> axes;
    Id outputs = 0;  // the first axes are those of the output, the others are summed over
    std::vector<Id> together;
    std::vector<Use> reads;  // operands and constants
    Use writes;
    // Values beside a sum that rescale it on the way: for every index along the output's axes but those `across`.
    std::int64_t carries = 0;
    std::vector<Id> across;
};

struct Buffer {
    std::vector<std::int64_t> sides;
    std::int64_t element = 1;
    int maker = -1;  // a place among the operators; negative: from outside
    bool leaves = false;
    std::int64_t accumulated = 0;  // bytes of a sum that is not complete, no less than an element
};

// A tile of a loop of `turns` turns, the least for so many.
struct Point {
    std::int64_t turns, tile;
};

// Axes that one loop goes along together.
struct Class {
    std::int64_t size = 1;
    std::vector<int> axis;  // by operator; negative: none
    Set may = 0;            // operators that may run inside
    std::vector<Set> bad;   // by reader: makers that may not be inside with it
    std::vector<Point> points;  // of two turns and more, turns rising
    bool paired = false;        // of axes that no tensor links
    bool windows = false;       // along some use of them windows slide
    Set alike = 0;              // buffers of several uses that all cut one side
};

// The axes of a class: operator, axis.
using Members = std::vector<std::pair<Id, Id>>;

// A use with what the search asks of it.
struct Access {
    Id op = 0, buffer = 0;
    bool writes = false;
    std::vector<int> axes;
    std::vector<Slide> slides;
    bool late = false;
    std::vector<int> cut;  // by class: the side that its loop cuts, index by index or by windows; or negative
    Set slices = 0;        // axes of the operator that may cut it inside the operator
};

class Group {
  public:
    // `every_tile`: points are all tiles, not only the least of their turns.
    Group(std::vector<Operator> operators, std::vector<Buffer> buffers, bool every_tile);

    // The same group with classes joined that no tensor links: of equal sizes, of operators that share some buffer. One
    // loop may go along both, and hold for both what they share. At most `limit` of them.
    std::vector<Group> pairings(std::size_t limit) const;

    std::size_t size() const { return operators.size(); }
    // The bytes of a buffer.
    Bytes bytes(Id buffer) const;
    // A bound from below for the bytes of it that cross if all that its uses need crosses once.
    Bytes least(Id buffer) const { return least_[buffer]; }
    // True if windows slide along the side that a loop over the class cuts.
    bool slides_along(const Access& access, Id loop_class) const;
    // True if an operator needs an element, or a row that stays together, of an operand for that of its output alone.
    bool by_element(const Access& read, const Access& made) const;
    // True if the use is of a constant that comes for the last turn of a loop over the class alone.
    bool late_in(const Access& access, Id loop_class) const;
    // True if the buffer is made here and read here.
    bool inner(Id buffer) const { return buffers[buffer].maker >= 0 && uses[buffer].size() > 1; }
    // True if partial sums of the buffer take more than its elements: they are wider, or carry values beside them.
    bool wider(Id buffer) const {
        const int maker = buffers[buffer].maker;
        return maker >= 0 && summed[static_cast<Id>(maker)] && (widens(buffer) || carries(buffer));
    }
    bool widens(Id buffer) const { return buffers[buffer].accumulated > buffers[buffer].element; }
    bool carries(Id buffer) const {
        const int maker = buffers[buffer].maker;
        return maker >= 0 && operators[static_cast<Id>(maker)].carries > 0;
    }
    // The bytes of so many bytes of elements as sums that are not complete, and those of what they carry.
    Bytes as_sums(Id buffer, Bytes bytes) const {
        const Buffer& held = buffers[buffer];
        return bytes >= unlimited ? bytes : times(bytes / held.element, std::max(held.element, held.accumulated));
    }
    Bytes as_carried(Id buffer, Bytes bytes) const {
        const Operator& op = operators[static_cast<Id>(buffers[buffer].maker)];
        std::int64_t together = 1;
        for (const Id axis : op.across) together *= op.axes[axis];
        return times(as_sums(buffer, bytes) / together, op.carries);
    }

    std::vector<Operator> operators;
    std::vector<Buffer> buffers;
    std::vector<Access> accesses;
    std::vector<std::vector<Id>> uses;  // by buffer: its accesses, in the order of the operators
    std::vector<std::vector<Id>> of;    // by operator: its accesses, the output last
    std::vector<Set> users;             // by buffer: operators
    std::vector<Set> before;            // by operator: all that it depends on
    std::vector<std::vector<Id>> under; // by operator: operands that its output may lie over, element by element
    std::vector<Set> sliced;            // by operator: axes that its own slices may go along
    std::vector<Set> summed;            // by operator: those of them that it sums over
    std::vector<Class> classes;         // those that a loop may go along

  private:
    void check() const;
    void find_classes();
    void find_least();
    bool may_lie_under(const Access& read, const Access& made) const;
    void set_classes(const std::vector<Members>& all, const std::vector<bool>& paired);
    bool pairable(const Members& a, const Members& b) const;

    bool every_tile_;
    std::vector<Bytes> least_;  // by buffer
    std::vector<Members> joined_;  // by class
};

}  // namespace onchip::nests
