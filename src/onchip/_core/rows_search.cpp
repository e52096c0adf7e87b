#include "rows_search.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "rows_exact.h"
#include "rows_moves.h"

namespace onchip::rows {

namespace {

std::vector<Id> in_order(const Graph& graph) {
    std::vector<Id> found;
    for (std::size_t i = 0; i < graph.size(); ++i)
        if (!graph[i].held) found.insert(found.end(), static_cast<std::size_t>(graph[i].steps), static_cast<Id>(i));
    return found;
}

Bytes peak_of(const Graph& graph, const Rules& rules, const std::vector<Id>& steps) {
    const Made end = graph.end();
    const Rules plain{false, rules.valley};
    Walk walk(graph, plain, graph.start(), end);
    walk.begin(walk.live());
    for (const Id i : steps) walk.step(i, std::numeric_limits<Bytes>::max(), 0);
    return walk.peak();
}

// The best path between two states that moves find.
Path by_moves(const Graph& graph, const Rules& rules, const Made& from, const Made& to, Bytes bound,
              std::int64_t most, Clock<std::int64_t>& clock, std::int64_t& states) {
    Moves moves(graph, rules, from, to, clock);
    Path best = moves.pulled(false);
    if (Path other = moves.pulled(true); other.peak < best.peak) best = std::move(other);
    Bytes failed = bound - 1;
    while (failed + 1 < best.peak && !clock.late(best.peak, true)) {
        // The bound itself first, which often is reached; then halves.
        const Bytes limit = failed < bound ? bound : failed + (best.peak - failed) / 2;
        std::optional<Path> found = moves.plunge(limit, false);
        if (!found) found = moves.plunge(limit, true);
        if (found && found->peak < best.peak) best = std::move(*found);
        else failed = limit;
        if (best.peak - failed <= best.peak / 4096) break;
    }
    while (best.peak > bound && !clock.late(best.peak, true)) {
        std::optional<Path> found = moves.best_first(best.peak, bound, most, false);
        if (!found) found = moves.best_first(best.peak, bound, 10 * most, true);
        if (!found) break;
        best = std::move(*found);
    }
    states += moves.states();
    return best;
}

}  // namespace

Found search(const Graph& graph, const Rules& rules, std::int64_t most_states, std::int64_t most_moves,
             const Limits<std::int64_t>& limits) {
    Clock<std::int64_t> clock(limits, every_time);
    const Made start = graph.start(), end = graph.end();
    Found found;
    found.schedule = in_order(graph);
    found.peak = peak_of(graph, rules, found.schedule);
    Moves moves(graph, rules, start, end, clock);
    if (Path pulled = moves.pulled(false); pulled.peak < found.peak) {
        found.peak = pulled.peak;
        found.schedule = std::move(pulled.steps);
    }
    Bound bound = bound_of(graph, found.schedule, clock);
    if (found.peak > bound.bytes) {
        // A best order passes through the state of least bytes.
        std::vector<Made> through{start, end};
        if (rules.valley) {
            Cuts cuts(graph);
            Made valley = cuts.least({}, std::nullopt).made;
            if (valley != start && valley != end) through.insert(through.begin() + 1, std::move(valley));
        }
        Path whole;
        for (std::size_t k = 0; k + 1 < through.size(); ++k) {
            const Path part = by_moves(graph, rules, through[k], through[k + 1], bound.bytes, most_moves, clock, found.states);
            whole.peak = std::max(whole.peak, part.peak);
            whole.steps.insert(whole.steps.end(), part.steps.begin(), part.steps.end());
        }
        if (whole.peak < found.peak) {
            found.schedule = std::move(whole.steps);
            found.peak = peak_of(graph, rules, found.schedule);
        }
    }
    found.bound = std::min(bound.bytes, found.peak);
    found.binding = bound.binding, found.binding_step = bound.step;
    if (found.peak > found.bound && most_states > 0) {
        Exact all = exact(graph, rules, start, end, found.peak, found.bound, most_states, clock);
        found.states += all.states;
        found.bound = all.bound;
        if (all.path) {
            found.schedule = std::move(all.path->steps);
            found.peak = peak_of(graph, rules, found.schedule);
        }
    }
    found.complete = found.peak == found.bound;
    return found;
}

}  // namespace onchip::rows
