// A search state and the moves between states: what may run, what it needs, what dies.
#pragma once
#include <algorithm>
#include <limits>
#include <vector>

#include "placement_problem.h"

namespace onchip::placement {

// (D, M, H) of the proofs: executed operators, resident tensors, live tensors with a DRAM copy.
// A live tensor that is not resident always has a copy; dead tensors are in no set.
class State {
  public:
    State() = default;
    explicit State(const Problem& p)
        : operator_words_(p.operator_words()),
          tensor_words_(p.tensor_words()),
          bits_(operator_words_ + 3 * tensor_words_, 0) {}

    Word* done() { return bits_.data(); }
    Word* live() { return bits_.data() + operator_words_; }
    Word* resident() { return live() + tensor_words_; }
    Word* copied() { return resident() + tensor_words_; }
    const Word* done() const { return bits_.data(); }
    const Word* live() const { return bits_.data() + operator_words_; }
    const Word* resident() const { return live() + tensor_words_; }
    const Word* copied() const { return resident() + tensor_words_; }

    // The same (D, M, H) at the same g.
    bool operator==(const State& other) const { return paid == other.paid && bits_ == other.bits_; }

    std::size_t operator_words() const { return operator_words_; }
    std::size_t tensor_words() const { return tensor_words_; }
    void clear() { std::ranges::fill(bits_, 0); used = paid = 0, depth = 0, hash = 0; }

    Bytes used = 0;           // size of the resident tensors
    Bytes paid = 0;           // g: traffic so far, reloads of what is out included
    std::uint32_t depth = 0;  // |D|
    std::uint64_t hash = 0;   // of D

  private:
    std::size_t operator_words_ = 0, tensor_words_ = 0;
    std::vector<Word> bits_;
};

State start(const Problem& p);
State start(const Problem& p, const Boundary& from);
Boundary boundary(const Problem& p, const State& s);

// What s would have paid with everything evicted: no state of the same D that has paid as much is of any use (R1).
Bytes worth(const Problem& p, const State& s);

// R1 for states of the same D: does a make b needless?
bool dominates(const Problem& p, const State& a, const State& b);

// Operators whose producers have run. With a fixed order there is at most one.
void ready_operators(const Problem& p, const State& s, std::vector<Id>& ready);

bool is_ready(const Problem& p, const State& s, Id v);

// Scratchpad bytes that running v adds to what is resident: loads, outputs, workspace; an output written over
// an input that dies with v adds nothing. Of the state only D and M matter, and for more D it is no more.
Bytes need(const Problem& p, const State& s, Id v);

inline constexpr Bytes no_limit = std::numeric_limits<Bytes>::max();

// What evicting t now costs: its reload, and its write unless DRAM has it.
inline Bytes evict_cost(const Problem& p, const State& s, Id t) {
    return p.cost[t] * (test(s.copied(), t) ? 1 : 2);
}

void evict(const Problem& p, State& s, Id t);

// Runs v, which must be ready and fit: loads what is missing, then lets the dead go.
void run(const Problem& p, State& s, Id v);

// Calls visit(E) for every inclusion-minimal set E of resident tensors outside in(v) whose eviction makes v
// fit (R3); for every such set, minimal or not, when `minimal` is false. Sets that cost `dear` or more are left
// out (R6). visit returns false to end it; so does stop, asked now and then, by returning true: there can be
// very many sets that are looked at and none that is visited.
template <class Visit, class Stop>
class Evictions {
  public:
    Evictions(const Problem& p, const State& s, Id v, bool minimal, Bytes dear, Visit visit, Stop stop)
        : p_(p), s_(s), minimal_(minimal), visit_(visit), stop_(stop),
          deficit_(s.used + need(p, s, v) - p.budget), left_(dear) {
        each(s.resident(), s.tensor_words(), [&](Id t) {
            if (std::ranges::find(p.inputs[v], t) == p.inputs[v].end()) candidates_.push_back(t);
        });
        // Largest first: a set is minimal iff the last tensor, its smallest, was still needed.
        std::ranges::stable_sort(candidates_, [&](Id a, Id b) { return p.size[a] > p.size[b]; });
        rest_.assign(candidates_.size() + 1, 0);
        for (std::size_t i = candidates_.size(); i-- > 0;) rest_[i] = rest_[i + 1] + p.size[candidates_[i]];
    }

    // False when it was ended before all sets had been looked at.
    bool enumerate() { return extend(0, deficit_); }

  private:
    bool extend(std::size_t i, Bytes missing) {
        if (++looked_at_ % 4096 == 0 && stop_()) return false;
        if (missing <= 0 && (minimal_ || i == candidates_.size())) return visit_(chosen_);
        if (missing > rest_[i] || i == candidates_.size()) return true;
        if (const Bytes price = evict_cost(p_, s_, candidates_[i]); price < left_) {
            chosen_.push_back(candidates_[i]);
            left_ -= price;
            const bool more = extend(i + 1, missing - p_.size[candidates_[i]]);
            left_ += price;
            chosen_.pop_back();
            if (!more) return false;
        }
        return extend(i + 1, missing);
    }

    const Problem& p_;
    const State& s_;
    bool minimal_;
    Visit visit_;
    Stop stop_;
    std::uint64_t looked_at_ = 0;
    Bytes deficit_;
    Bytes left_;  // what the set at hand may still cost
    std::vector<Id> candidates_, chosen_;
    std::vector<Bytes> rest_;  // rest_[i]: total size of candidates_[i..]
};

}  // namespace onchip::placement
