#include "rows_search.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "rows_exact.h"
#include "rows_moves.h"

namespace onchip::rows {

namespace {

constexpr Bytes fine = 4096, coarse = 128;  // parts of a peak that are no difference

std::vector<Id> in_order(const Graph& graph) {
    std::vector<Id> found;
    for (std::size_t i = 0; i < graph.size(); ++i)
        if (!graph[i].held) found.insert(found.end(), static_cast<std::size_t>(graph[i].steps), static_cast<Id>(i));
    return found;
}

Bytes peak_of(const Graph& graph, const std::vector<Id>& steps) {
    const Made end = graph.end();
    const Rules plain{false, false, false};
    Walk walk(graph, plain, graph.start(), end);
    walk.begin(walk.live());
    for (const Id i : steps) walk.step(i, std::numeric_limits<Bytes>::max(), 0);
    return walk.peak();
}

std::optional<Path> plunged(const Moves& moves, Bytes limit) {
    std::optional<Path> found = moves.plunge(limit, false);
    return found ? found : moves.plunge(limit, true);
}

// Paths of fewer bytes by plunges alone, by halves of what is between what failed and the best; the bound itself first,
// which often is reached.
void by_plunges(const Moves& moves, Path& best, Bytes bound, Clock<std::int64_t>& clock) {
    Bytes failed = bound - 1;
    while (failed + 1 < best.peak && !clock.late(best.peak, true)) {
        const Bytes limit = failed < bound ? bound : failed + (best.peak - failed) / 2;
        std::optional<Path> found = plunged(moves, limit);
        if (found && found->peak < best.peak) best = std::move(*found);
        else failed = limit;
        if (best.peak - failed <= best.peak / fine) break;
    }
}

// The same where the best is known to be near the least: longer and longer steps down, then halves.
void by_steps(const Moves& moves, Path& best, Bytes bound, Clock<std::int64_t>& clock) {
    Bytes failed = bound - 1, step = best.peak / (coarse / 2);
    while (best.peak - failed > std::max(Bytes{1}, best.peak / coarse) && !clock.late(best.peak, true)) {
        const Bytes limit = std::max(failed + (best.peak - failed) / 2, best.peak - std::max(Bytes{1}, step));
        std::optional<Path> found = plunged(moves, limit);
        if (found && found->peak < best.peak) best = std::move(*found), step *= 2;
        else failed = limit;
    }
}

// The same by moves of one row within a limit, which turn back where they get no further.
void by_rows(Moves& moves, Path& best, Bytes bound, std::int64_t most, Clock<std::int64_t>& clock) {
    Bytes failed = bound - 1;
    while (best.peak - failed > std::max(Bytes{1}, best.peak / coarse) && !clock.late(best.peak, true)) {
        const Bytes limit = failed + (best.peak - failed) / 2;
        std::optional<Path> found = moves.best_first(limit + 1, limit, most, true);
        if (found && found->peak < best.peak) best = std::move(*found);
        else failed = limit;
    }
}

// A better path between two states than the best that is known, by moves; the best where there is none.
Path by_moves(const Graph& graph, const Rules& rules, const Made& from, const Made& to, Path best, Bytes bound,
              std::int64_t most, Clock<std::int64_t>& clock, std::int64_t& states) {
    Moves moves(graph, rules, from, to, clock);
    by_plunges(moves, best, bound, clock);
    while (most > 0 && best.peak > bound && !clock.late(best.peak, true)) {
        std::optional<Path> found = moves.best_first(best.peak, bound, most, false);
        if (!found) break;
        best = std::move(*found);
    }
    if (most > 0) by_rows(moves, best, bound, 5 * most, clock);
    states += moves.states();
    return best;
}

// The path of plain pulls between two states, operands in either order.
Path pulled(const Graph& graph, const Rules& rules, const Made& from, const Made& to, Clock<std::int64_t>& clock) {
    const Moves moves(graph, rules, from, to, clock);
    Path best = moves.pulled(false);
    if (Path other = moves.pulled(true); other.peak < best.peak) best = std::move(other);
    return best;
}

// A path of fewer bytes than `below` from start to end, where one is found soon.
Found soon(const Graph& graph, const Rules& rules, std::int64_t most, Bytes below, Clock<std::int64_t>& clock) {
    const Made start = graph.start(), end = graph.end();
    Found found;
    found.schedule = in_order(graph);
    found.peak = peak_of(graph, found.schedule);
    const Bytes bound = plain_bound(graph).bytes;
    found.bound = std::min(bound, found.peak);
    if (bound >= below) return found;
    Moves moves(graph, rules, start, end, clock);
    std::optional<Path> path = plunged(moves, below - 1);
    if (!path && most > 0) path = moves.best_first(below, bound, most, false);
    if (path) by_steps(moves, *path, bound, clock);
    if (path && path->peak < found.peak) {
        found.peak = path->peak;
        found.schedule = std::move(path->steps);
    }
    found.states = moves.states();
    found.complete = found.peak == found.bound;
    return found;
}

}  // namespace

Found search(const Graph& graph, const Rules& rules, std::int64_t most_states, std::int64_t most_moves,
             Bytes below, const Limits<std::int64_t>& limits) {
    Clock<std::int64_t> clock(limits, every_time);
    if (below > 0) return soon(graph, rules, most_moves, below, clock);
    const Made start = graph.start(), end = graph.end();
    Found found;
    found.schedule = in_order(graph);
    found.peak = peak_of(graph, found.schedule);
    Bound bound = plain_bound(graph);
    // A best order passes through the state of least bytes.
    std::vector<Made> through{start, end};
    if (rules.valley && found.peak > bound.bytes) {
        Made valley = Cuts(graph).least({}, std::nullopt).made;
        if (valley != start && valley != end) through.insert(through.begin() + 1, std::move(valley));
    }
    std::vector<Path> parts;
    for (std::size_t k = 0; k + 1 < through.size(); ++k)
        parts.push_back(pulled(graph, rules, through[k], through[k + 1], clock));
    const auto improve = [&](std::int64_t most) {
        std::vector<Id> steps;
        for (std::size_t k = 0; k < parts.size(); ++k) {
            parts[k] = by_moves(graph, rules, through[k], through[k + 1], std::move(parts[k]), bound.bytes, most,
                                clock, found.states);
            steps.insert(steps.end(), parts[k].steps.begin(), parts[k].steps.end());
        }
        if (const Bytes peak = peak_of(graph, steps); peak < found.peak) {
            found.peak = peak;
            found.schedule = std::move(steps);
        }
    };
    // First without cuts: the better the order that is known, the fewer steps are worth one.
    if (found.peak > bound.bytes) improve(rules.cuts ? 0 : most_moves);
    if (rules.cuts) {
        bound = bound_of(graph, found.schedule, clock);
        if (found.peak > bound.bytes) improve(most_moves);
    }
    found.bound = std::min(bound.bytes, found.peak);
    found.binding = bound.binding, found.binding_step = bound.step;
    if (found.peak > found.bound && most_states > 0) {
        Exact all = exact(graph, rules, start, end, found.peak, found.bound, most_states, clock);
        found.states += all.states;
        found.bound = all.bound;
        if (all.path) {
            found.schedule = std::move(all.path->steps);
            found.peak = peak_of(graph, found.schedule);
        }
    }
    found.complete = found.peak == found.bound;
    return found;
}

}  // namespace onchip::rows
