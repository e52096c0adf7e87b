// The packing problem as the search sees it: sizes divided by their gcd, time compressed to sections.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace onchip::pack {

// Every rule of the complete search is a switch, so that tests can show that none changes an answer.
struct Rules {
    bool divide = true;          // sizes and capacity in units of the sizes' gcd
    bool cliques = true;         // time compressed to the maximal cliques of the live ranges
    bool section_bound = true;   // per section the earliest-release bound; else floor + total
    bool canonical_skip = true;  // a gap lifts a buffer to its next canonical level; else by one unit
    bool boundary = true;        // what ends and what starts between two gapless sections must balance
    bool symmetry = true;        // of identical buffers, try one
    bool decompose = true;       // independent stretches of time are solved one after the other
    bool table = true;           // remember refuted states
    bool backjump = true;        // return past decisions that a failure does not rest on
    bool restarts = true;        // node limits that grow, with six branching orders in turn
    bool last_conflict = true;   // break ties of fail-first towards the last failure
};

struct Buffer {
    std::vector<std::pair<std::int64_t, std::int64_t>> live;  // half-open, ascending, disjoint, not empty
    std::int64_t size;                                        // > 0
    std::int64_t alignment = 1;                               // its offset is a multiple of this
    std::int64_t offset = -1;                                 // where it must be; -1: anywhere
};

inline std::int64_t round_up(std::int64_t at, std::int64_t to) { return (at + to - 1) / to * to; }

// Rows of varying length in one array.
template <class T>
class Rows {
  public:
    void push(const std::vector<T>& row) {
        items_.insert(items_.end(), row.begin(), row.end());
        start_.push_back(items_.size());
    }
    std::span<T> operator[](int i) { return {items_.data() + begin(i), items_.data() + begin(i + 1)}; }
    std::span<const T> operator[](int i) const {
        return {items_.data() + begin(i), items_.data() + begin(i + 1)};
    }

  private:
    std::size_t begin(int i) const { return start_[i]; }
    std::vector<T> items_;
    std::vector<std::size_t> start_{0};
};

// Consecutive sections [begin, end).
struct Stretch {
    int begin, end;
    friend auto operator<=>(const Stretch&, const Stretch&) = default;
};

// Buffers are renumbered by first section. A section is a kept time slot: a set of buffers that are live
// together, none of which contains its neighbour's. Two buffers are neighbours when they share a section.
//
// `height` is the size rounded up as far as the alignments around the buffer leave what is above it unused
// anyway. Neighbours are kept apart by heights; only at the capacity does the size count, through `most`.
struct Instance {
    Instance(std::span<const Buffer> buffers, std::int64_t capacity, const Rules& rules);

    int buffers = 0, sections = 0;
    bool possible = true;                 // false: a buffer fits nowhere, or two fixed ones overlap
    bool plain = true;                    // no alignment and no fixed buffer: every offset is possible
    bool has_gaps = false, has_fixed = false;
    std::int64_t unit = 1;                // bytes in one unit of size and offset
    std::int64_t capacity = 0;            // in units, rounded down
    std::vector<std::int64_t> size;       // in units
    std::vector<std::int64_t> height;     // in units
    std::vector<std::int64_t> alignment;  // in units
    std::vector<std::int64_t> fixed;      // offset in units, or -1
    std::vector<std::int64_t> most;       // the highest possible offset, in units
    std::vector<std::int64_t> top;        // per section: what no member's offset + height can be above
    std::vector<std::int64_t> width;      // time that the buffer is live, in the caller's time
    std::vector<int> first, last;         // all its sections are in [first, last)
    std::vector<int> kind;                // equal for buffers that can be exchanged
    std::vector<int> original;            // the caller's index
    std::vector<int> first_of_section;    // buffers [first_of_section[s], first_of_section[s + 1]) start at s
    std::vector<std::int64_t> load;       // per section: total size live, saturating at capacity + 1
    Rows<Stretch> live;                   // per buffer: its sections
    Rows<int> neighbours;                 // per buffer
    Rows<int> members;                    // per section
    Rows<int> ends, starts;               // per cut c between sections c and c + 1: live only before / after it

    // Offsets in units, by this numbering, as bytes in the caller's order.
    std::vector<std::int64_t> in_bytes(const std::vector<std::int64_t>& offsets) const;

    bool gapped(int b) const { return live[b].size() > 1; }
    bool lives(int b, int section) const;
    // The lowest offset of at least `lo` that is aligned and clear of fixed neighbours.
    std::int64_t lift(int b, std::int64_t lo) const { return plain ? lo : lift_around(b, lo); }

  private:
    struct Zone {
        std::int64_t below, above;  // no offset strictly between
    };
    std::int64_t lift_around(int b, std::int64_t lo) const;
    std::int64_t sink_around(int b, std::int64_t lo) const;
    void choose_unit(std::span<const Buffer> given, bool divide);
    void find_neighbours();
    void find_heights();
    void find_kinds();
    void find_limits();
    Rows<Zone> zones_;  // per buffer: what its fixed neighbours forbid, ascending, disjoint
};

}  // namespace onchip::pack
