// What the placement searches are asked, and what they answer. docs/placement-proofs.md uses the same words.
#pragma once
#include <cstdint>
#include <tuple>
#include <vector>

#include "bits.h"
#include "clock.h"

namespace onchip::placement {

using Bytes = std::int64_t;
using Id = std::uint32_t;

// Between two stages of a larger problem: of the tensors that are live there, those resident and those with a
// copy in DRAM, and what has been paid so far. At the start of a stage the live tensors are its graph inputs.
struct Boundary {
    std::vector<Id> resident, copied;
    Bytes paid = 0;
};

// Operators and tensors with dense ids. A tensor has two sizes: what it occupies, and what moving it costs.
struct Problem {
    std::vector<Bytes> size;       // per tensor: bytes of scratchpad, rounded up to the alignment
    std::vector<Bytes> cost;       // per tensor: bytes of one transfer, exact
    std::vector<Bytes> workspace;  // per operator: scratchpad while it runs
    std::vector<std::vector<Id>> inputs, outputs;  // per operator: distinct tensors
    std::vector<Id> graph_inputs, graph_outputs;   // tensors
    std::vector<std::vector<Id>> overwrites;  // per operator: inputs its one output may be written over, if
                                              // they die with it; may be left empty
    std::vector<Id> order;         // all operators, when the order is fixed; empty when it is free
    std::vector<Id> read_later;    // tensors: read after this problem ends, so never dead (a stage of a larger one)
    std::vector<Boundary> starts;  // of a stage: where it may begin; empty: at the graph inputs
    Bytes budget = 0;              // for the peak search: bytes that no order gets by with less than

    // Derived by complete().
    std::vector<bool> graph_input, graph_output, lives_on;  // per tensor: whether it is one of those above
    std::vector<std::vector<Id>> readers;  // per tensor
    std::vector<std::vector<Id>> before;   // per operator: the distinct producers of its inputs
    std::vector<Id> sources;               // operators without inputs
    std::vector<std::uint64_t> hash;       // per operator: a random word; a set hashes to the xor

    std::size_t operators() const { return inputs.size(); }
    std::size_t tensors() const { return size.size(); }
    std::size_t operator_words() const { return words_for(operators()); }
    std::size_t tensor_words() const { return words_for(tensors()); }

    void complete();  // fills the derived members; throws std::invalid_argument for what is no problem
};

// Every pruning rule by its name in docs/placement-proofs.md. All are exact; off means more work, same value.
struct Rules {
    bool dominance = true;         // R1
    bool safe_moves = true;        // R2
    bool safe_loads = true;        // R2+, needs safe_moves
    bool safe_chains = true;       // R2*, needs safe_loads (R4* in the peak search)
    bool minimal_evictions = true; // R3
    bool incumbent = true;         // R6: drop what cannot beat the best plan known
};

struct Progress {
    std::uint64_t states = 0;  // expanded so far
    Bytes best = -1;           // the best value so far, -1 when there is none
    Bytes bound = 0;           // no plan is cheaper than this

    auto figures() const { return std::tuple(states, best, bound); }
};

using Limits = onchip::Limits<Progress>;
using Clock = onchip::Clock<Progress>;

struct Options {
    std::uint64_t seed = 0;      // 0: plain order among equals; else a random one
    std::size_t beam_width = 0;  // other than 0: no search to the end, only a beam
};

// One operator, and what is evicted just before it.
struct Step {
    Id op;
    std::vector<Id> evict;
};

// How a stage can end: from start number `start`, by these steps.
struct Arrival {
    Boundary at;
    std::size_t start = 0;
    std::vector<Step> steps;
};

struct Outcome {
    std::vector<Arrival> arrivals;  // of a stage: every end that is worth going on from (complete), or those found
    std::vector<Step> steps;  // a whole schedule, or empty when none was found before a limit
    Bytes value = -1;         // traffic, or peak, of these steps
    Bytes bound = 0;          // proved lower bound; equals value when end == complete
    End end = End::complete;
    std::uint64_t expanded = 0, stored = 0;  // states
    std::size_t memory = 0;   // most bytes the search held
};

Outcome minimum_traffic(const Problem& problem, const Rules& rules, const Options& options, const Limits& limits);
// Has no use for options.
Outcome minimum_peak(const Problem& problem, const Rules& rules, const Options& options, const Limits& limits);

}  // namespace onchip::placement
