#include "rows_moves.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace onchip::rows {

namespace {

std::string key_of(const Made& made) {
    return {reinterpret_cast<const char*>(made.data()), made.size() * sizeof(made[0])};
}

void append(std::vector<Id>& path, const std::vector<Id>& more) { path.insert(path.end(), more.begin(), more.end()); }

}  // namespace

Moves::Moves(const Graph& graph, const Rules& rules, const Made& from, const Made& to, Clock<std::int64_t>& clock)
    : graph_(graph), rules_(rules), from_(from), to_(to), clock_(clock) {}

Path Moves::pulled(bool backwards) const {
    Walk walk(graph_, rules_, from_, to_);
    walk.begin(walk.live());
    for (std::size_t i = graph_.size(); i-- > 0;)
        while (walk.open(i)) walk.drive(i, backwards, std::numeric_limits<Bytes>::max(), 0);
    return {walk.peak(), walk.taken()};
}

Bytes Moves::peak_of(const std::vector<Id>& steps) const {
    const Rules plain{false, false, false};
    Walk walk(graph_, plain, from_, to_);
    walk.begin(walk.live());
    for (const Id i : steps) walk.step(i, std::numeric_limits<Bytes>::max(), 0);
    return walk.peak();
}

// Goes down as long as some move stays within the limit and leaves no more alive than there is. Where it ends before
// `to`, `least` is the walk behind the move that leaves least, if there is any and it is asked for. What is made anew
// waits: its rows are wanted late, or nobody would make them twice.
bool Moves::descend(Walk& walk, Bytes limit, bool late, std::vector<Id>& path, std::optional<Walk>* least) const {
    Walk next(walk);
    bool found = true;
    while (found && !walk.done()) {
        found = false;
        bool least_anew = true;
        if (least) least->reset();
        for (std::size_t k = 0; k < graph_.size() && !found; ++k) {
            const std::size_t i = late ? graph_.size() - 1 - k : k;
            if (!walk.open(i)) continue;
            const bool anew = graph_[i].anew;
            for (const bool backwards : {false, true}) {
                next = walk;
                next.begin(walk.peak());
                const bool driven = next.drive(i, backwards, limit, limit), chose = next.chose();
                if (driven && next.live() <= walk.live()) {
                    append(path, next.taken());
                    std::swap(walk, next);
                    found = true;
                    break;
                }
                if (driven && least &&
                    (!*least || std::pair(anew, next.live()) < std::pair(least_anew, (*least)->live()))) {
                    *least = next;
                    least_anew = anew;
                }
                if (!chose) break;
            }
        }
    }
    return walk.done();
}

std::optional<Path> Moves::plunge(Bytes limit, bool late) const {
    Walk walk(graph_, rules_, from_, to_);
    std::vector<Id> path;
    walk.begin(walk.live());
    if (walk.live() > limit) return std::nullopt;
    walk.take_free(limit);
    append(path, walk.taken());
    std::optional<Walk> least;
    while (!descend(walk, limit, late, path, &least)) {
        if (!least || clock_.late(limit, true)) return std::nullopt;
        append(path, least->taken());
        std::swap(walk, *least);
    }
    return Path{walk.peak(), std::move(path)};
}

std::optional<Path> Moves::best_first(Bytes best, Bytes bound, std::int64_t most, bool fine) {
    struct Node {
        Walk walk;
        std::int64_t parent;
        std::vector<Id> steps;
    };
    std::vector<Node> nodes;
    using Rank = std::tuple<Bytes, int, Bytes, Bytes, std::int64_t>;  // peak, anew, how far, live, node
    std::priority_queue<Rank, std::vector<Rank>, std::greater<>> queue;
    std::unordered_map<std::string, Bytes> seen;
    std::optional<Path> found;
    std::size_t stored = 0;
    Walk first(graph_, rules_, from_, to_);
    // Single rows: few bytes alive are worth as much as steps, of which one counts as its part of the best peak.
    const Bytes step = fine ? best / std::max(std::int64_t{1}, first.left()) : 0;

    const auto add = [&](Walk walk, std::int64_t parent, std::vector<Id> steps, int anew) {
        const auto [at, fresh] = seen.try_emplace(key_of(walk.made()), walk.peak());
        if (!fresh && at->second <= walk.peak()) return;
        at->second = walk.peak();
        const auto id = static_cast<std::int64_t>(nodes.size());
        stored += (steps.size() + 4 * walk.made().size()) * sizeof(Id) + 200;
        const Bytes far = fine ? walk.live() + step * walk.left() : walk.left();
        queue.emplace(walk.peak(), anew, far, walk.live(), id);
        walk.begin(walk.peak());
        nodes.push_back({std::move(walk), parent, std::move(steps)});
    };
    first.begin(std::max(bound, first.live()));
    first.take_free(bound);
    std::vector<Id> taken = first.taken();
    add(std::move(first), -1, std::move(taken), 0);
    for (std::int64_t opened = 0; !queue.empty() && opened < most; ++opened) {
        const auto [peak, anew, far, live, id] = queue.top();
        queue.pop();
        if (peak >= best || clock_.check(best, stored, true)) break;
        ++states_;
        Walk walk = nodes[static_cast<std::size_t>(id)].walk;
        if (seen[key_of(walk.made())] < peak) continue;
        std::vector<Id> down;
        if (descend(walk, peak, false, down, nullptr)) {
            std::vector<std::vector<Id>> parts{std::move(down)};
            for (std::int64_t n = id; n >= 0; n = nodes[static_cast<std::size_t>(n)].parent)
                parts.push_back(nodes[static_cast<std::size_t>(n)].steps);
            Path path;
            for (auto part = parts.rbegin(); part != parts.rend(); ++part) append(path.steps, *part);
            path.peak = peak_of(path.steps);
            found = std::move(path);
            break;  // of the least peak that this search finds
        }
        for (std::size_t i = 0; i < graph_.size(); ++i) {
            if (!walk.open(i)) continue;
            for (const bool backwards : {false, true}) {
                Walk next(walk);
                next.begin(walk.peak());
                const bool driven = next.drive(i, backwards, best - 1, peak, fine), chose = next.chose();
                if (driven) {
                    std::vector<Id> steps = down;
                    append(steps, next.taken());
                    add(std::move(next), id, std::move(steps), graph_[i].anew ? 1 : 0);
                }
                if (!chose) break;
            }
        }
    }
    return found;
}

}  // namespace onchip::rows
