#include "placement_beam.h"

#include <random>
#include <unordered_map>

namespace onchip::placement {

namespace {

constexpr std::size_t sets_looked_at = 256;  // eviction sets of one operator that are enumerated,
constexpr std::size_t operators_tried = 256;  // of those that are ready in one state
constexpr std::size_t sets_kept = 6;         // and of these the cheapest that are tried

struct Node {
    State state;
    Bytes key;  // what it would have paid with everything evicted: residents are not worth having at any price
    std::uint32_t trace;
    std::uint64_t tie;
};

// How a state was reached: one operator and its evictions, or safe moves (`step.op` is no_op then).
struct Trace {
    std::uint32_t parent;
    Step step;
    std::vector<Id> safe;
};

constexpr Id no_op = static_cast<Id>(-1);
constexpr std::uint32_t no_trace = static_cast<std::uint32_t>(-1);

bool better(const Node& a, const Node& b) {
    if (a.key != b.key) return a.key < b.key;
    return a.state.paid != b.state.paid ? a.state.paid < b.state.paid : a.tie < b.tie;
}

}  // namespace

void beam(const Problem& p, const std::vector<State>& starts, const Rules& rules, std::size_t width, Clock& clock,
          Progress& progress, std::uint64_t seed, Incumbent& best) {
    std::mt19937_64 random(seed);
    SafeMoves safe(p, rules, false, best.paid >= 0 ? &clock : nullptr);
    std::vector<std::vector<Node>> level(p.operators() + 1);
    std::vector<Trace> traces;
    std::vector<Id> ready;
    std::size_t held = 0;
    const std::size_t node_bytes = sizeof(Node) + (p.operator_words() + 3 * p.tensor_words()) * sizeof(Word);

    const auto prune = [&](std::vector<Node>& nodes) {
        std::ranges::stable_sort(nodes, better);
        std::unordered_map<std::uint64_t, std::vector<std::size_t>> of_set;  // kept nodes by executed set
        std::size_t kept = 0;
        for (std::size_t i = 0; i < nodes.size() && kept < width; ++i) {
            auto& rivals = of_set[nodes[i].state.hash];
            const auto needless = [&](std::size_t k) { return dominates(p, nodes[k].state, nodes[i].state); };
            if (std::ranges::any_of(rivals, needless)) continue;
            rivals.push_back(kept);
            if (kept != i) nodes[kept] = std::move(nodes[i]);
            ++kept;
        }
        held -= nodes.size() - kept;
        nodes.resize(kept);
    };
    const auto offer = [&](State&& s, Trace&& trace) {
        if (best.beats(s.paid)) return;
        auto& nodes = level[s.depth];
        traces.push_back(std::move(trace));
        const std::uint64_t tie = seed == 0 ? static_cast<std::uint64_t>(s.used) : random();
        const Bytes key = worth(p, s);
        nodes.push_back({std::move(s), key, static_cast<std::uint32_t>(traces.size() - 1), tie});
        ++held;
        if (nodes.size() > 8 * width + 64) prune(nodes);
    };
    // The traces of the starts come first, so that a path's first trace is the number of its start.
    for (const State& s : starts) {
        traces.push_back({no_trace, {no_op, {}}, {}});
        level[s.depth].push_back({s, worth(p, s), static_cast<std::uint32_t>(traces.size() - 1), 0});
        ++held;
    }
    for (std::size_t depth = 0; depth < p.operators(); ++depth) {
        prune(level[depth]);
        for (Node& node : level[depth]) {
            // Where there is no schedule yet (no pass found one) a beam is not cut short.
            if (best.paid >= 0 && clock.check(progress, held * node_bytes + traces.size() * sizeof(Trace))) return;
            std::vector<Id> ran;
            safe.close(node.state, p.budget, &ran);
            if (best.paid >= 0 && clock.ended()) return;
            if (!ran.empty()) {
                offer(std::move(node.state), {node.trace, {no_op, {}}, std::move(ran)});
                continue;
            }
            ready_operators(p, node.state, ready);
            if (ready.size() > operators_tried) ready.resize(operators_tried);
            for (Id v : ready) {
                if (best.paid >= 0 && clock.check(progress, held * node_bytes)) return;
                std::vector<std::pair<Bytes, std::vector<Id>>> sets;
                const auto keep = [&](const std::vector<Id>& set) {
                    Bytes price = 0;
                    for (Id t : set) price += evict_cost(p, node.state, t);
                    sets.emplace_back(price, set);
                    return sets.size() < sets_looked_at;
                };
                Evictions choose(p, node.state, v, true, no_limit, keep, [] { return false; });
                choose.enumerate();
                std::ranges::sort(sets);
                for (std::size_t i = 0; i < std::min(sets.size(), sets_kept); ++i) {
                    State next = node.state;
                    for (Id t : sets[i].second) evict(p, next, t);
                    run(p, next, v);
                    offer(std::move(next), {node.trace, {v, std::move(sets[i].second)}, {}});
                }
            }
        }
        held -= level[depth].size();
        std::vector<Node>().swap(level[depth]);
    }
    auto& last = level[p.operators()];
    if (last.empty()) return;
    prune(last);
    if (best.beats(last[0].state.paid)) return;
    best.paid = last[0].state.paid;
    std::vector<std::uint32_t> path;
    for (std::uint32_t t = last[0].trace; t != no_trace; t = traces[t].parent) path.push_back(t);
    best.steps.clear();
    best.start = path.back();
    best.last = last[0].state;
    for (std::size_t i = path.size(); i-- > 0;) {
        const Trace& t = traces[path[i]];
        if (t.step.op != no_op) best.steps.push_back(t.step);
        for (Id v : t.safe) best.steps.push_back({v, {}});
    }
}

}  // namespace onchip::placement
