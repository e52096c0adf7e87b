// The complete search of docs/packing.md: offsets for fixed live ranges, or a proof that there are none.
#pragma once
#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "clock.h"
#include "pack_instance.h"

namespace onchip::pack {

enum class Outcome { packed, infeasible, unknown };

// Decision levels that a fact rests on. Levels from `shared` on have one bit together, so that deep in the
// tree backjumping falls back to plain backtracking.
struct Reasons {
    static constexpr int words = 4, shared = 64 * words - 1;
    std::array<std::uint64_t, words> word{};

    void add(int level) { word[bit(level) / 64] |= std::uint64_t{1} << bit(level) % 64; }
    bool has(int level) const { return word[bit(level) / 64] >> bit(level) % 64 & 1; }
    void remove(int level) {  // a level beyond `shared` must not clear what it shares
        if (level <= shared) word[bit(level) / 64] &= ~(std::uint64_t{1} << bit(level) % 64);
    }
    void merge(const Reasons& other) {
        for (int i = 0; i < words; ++i) word[i] |= other.word[i];
    }

  private:
    static unsigned bit(int level) { return static_cast<unsigned>(level < shared ? level : shared); }
};

struct Key {
    std::uint64_t a = 0, b = 0;
    friend bool operator==(const Key&, const Key&) = default;
};

// A set of refuted states that grows with the search up to a limit and then overwrites. 128-bit keys, so that
// a false hit, which would spoil a proof, is out of reach.
class RefutedStates {
  public:
    bool contains(const Key& key) const;
    void insert(const Key& key);

  private:
    static constexpr std::size_t probes = 8, most = std::size_t{1} << 22;
    bool put(const Key& key);
    std::vector<Key> slots_ = std::vector<Key>(1024);
    std::size_t used_ = 0;
};

class Search {
  public:
    // The clock hears of nodes.
    Search(const Instance& instance, const Rules& rules, std::uint64_t seed, Clock<std::int64_t>& clock);

    // Searches until it is decided, the clock says stop, or `node_limit` nodes are spent.
    Outcome run(std::int64_t node_limit);
    const std::vector<std::int64_t>& offsets() const { return lo_; }  // in units; after `packed`
    std::int64_t nodes() const { return nodes_; }

  private:
    enum class Where : char { open, placed, fixed };
    struct Section {
        std::int64_t total = 0;       // of the unplaced members and the fixed ones above the floor
        std::int64_t floor = never;   // least lo of the unplaced members
        int candidates = 0;           // unplaced members at the floor
    };
    struct Entry {
        std::int64_t lo;
        int buffer;
    };
    struct Raised {
        int buffer;
        std::int64_t lo;
        Reasons why;
    };
    struct Placed {
        int buffer;
        Reasons why;  // of its lower bound, before
    };
    struct Changed {
        int section;
        Section before;
    };
    struct Mark {
        std::size_t raised, placed, changed;
    };
    struct Part {
        int begin, end;
    };
    struct Choice {
        int section = -1;
        int options = 0;  // candidates at the floor, and a gap where there is room
        std::int64_t total = 0;
    };
    static constexpr std::int64_t never = INT64_MAX;
    static constexpr int deepest = 2000;  // decisions on one path, so that the C++ stack never runs out

    // The tree (pack_search.cpp).
    void rank(int order, double noise);
    bool solve(int begin, int end, int level, Reasons& conflict);
    bool branch(int begin, int end, int level, const Choice& choice, Reasons& conflict);
    std::vector<Part> parts(int begin, int end) const;
    Choice choose(int begin, int end) const;
    void choose_in_run(int begin, int end, Choice& best) const;
    std::vector<int> candidates(int section) const;
    bool stop();
    Key state(int begin, int end) const;
    void explain_state(int begin, int end, Reasons& conflict) const;

    // Deduction (pack_propagate.cpp).
    Mark mark() const { return {raised_.size(), placed_.size(), changed_.size()}; }
    void undo(const Mark& to);
    void place(int b, const Reasons& why);
    bool forbid_floor(int section, int level, Reasons& conflict);
    void raise(int b, std::int64_t at_least, const Reasons& why);
    void touch(int b);
    void forget_touched();
    bool propagate(Reasons& conflict);
    bool settle(int section, Reasons& conflict);
    bool balance(int cut, Reasons& conflict);
    void explain_section(int section, Reasons& conflict) const;
    bool at_bottom(int section) const;
    bool fixed_above(int section, std::int64_t floor) const;
    std::int64_t waste(int s) const { return in_.top[s] - sections_[s].floor - sections_[s].total; }
    bool unplaced(int b) const { return where_[b] == Where::open; }

    const Instance& in_;
    Rules rules_;
    Clock<std::int64_t>& clock_;
    std::mt19937_64 random_;
    std::int64_t nodes_ = 0, limit_ = 0, polled_ = 0;
    bool stopped_ = false, out_of_nodes_ = false, too_deep_ = false;
    int last_conflict_ = 0;

    std::vector<std::int64_t> lo_;       // lower bound of the offset; the offset once placed
    std::vector<Reasons> why_;           // what lo rests on; once placed, what the placement rests on
    std::vector<Where> where_;
    std::vector<Section> sections_;
    std::vector<int> crossing_;          // per cut: unplaced buffers across it
    std::vector<double> priority_;
    Rows<Entry> sorted_;                 // per section: members by lo, the placed ones last
    std::vector<Raised> raised_;         // the undo trail, one stack per kind of change
    std::vector<Placed> placed_;
    std::vector<Changed> changed_;
    int beyond_ = -1;                    // a buffer whose lo is above its highest possible offset
    std::vector<char> dirty_;
    std::vector<int> dirty_list_;
    std::vector<char> cut_dirty_;
    std::vector<int> cut_list_;
    std::vector<std::int64_t> lower_sums_, upper_sums_;  // scratch of `balance`
    RefutedStates refuted_;
};

}  // namespace onchip::pack
