#include "rows_exact.h"

#include <algorithm>
#include <queue>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace onchip::rows {

Exact exact(const Graph& graph, const Rules& rules, const Made& from, const Made& to, Bytes best, Bytes bound,
            std::int64_t most, Clock<std::int64_t>& clock) {
    struct Node {
        Made made;
        std::int64_t parent;
        std::vector<Id> steps;
    };
    std::vector<Node> nodes;
    using Rank = std::tuple<Bytes, std::int64_t, std::int64_t>;  // peak, steps left, node
    std::priority_queue<Rank, std::vector<Rank>, std::greater<>> queue;
    std::unordered_map<std::string, Bytes> seen;
    Exact found{bound, std::nullopt, false, 0};
    std::size_t stored = 0;

    const auto add = [&](const Walk& walk, std::int64_t parent) {
        const Made& made = walk.made();
        const std::string key(reinterpret_cast<const char*>(made.data()), made.size() * sizeof(made[0]));
        const auto [at, fresh] = seen.try_emplace(key, walk.peak());
        if (!fresh && at->second <= walk.peak()) return;
        at->second = walk.peak();
        queue.emplace(walk.peak(), walk.left(), static_cast<std::int64_t>(nodes.size()));
        stored += 2 * key.size() + walk.taken().size() * sizeof(Id) + 200;
        nodes.push_back({made, parent, walk.taken()});
    };
    Walk first(graph, rules, from, to);
    first.begin(std::max(bound, first.live()));
    first.take_free(0);
    add(first, -1);
    while (!queue.empty()) {
        const auto [peak, left, id] = queue.top();
        found.bound = std::min(best, std::max(found.bound, peak));
        if (peak >= best) break;
        if (found.states >= most || clock.check(best, stored)) return found;
        queue.pop();
        ++found.states;
        Walk walk(graph, rules, nodes[static_cast<std::size_t>(id)].made, to);
        if (walk.done()) {
            std::vector<const std::vector<Id>*> parts;
            for (std::int64_t n = id; n >= 0; n = nodes[static_cast<std::size_t>(n)].parent)
                parts.push_back(&nodes[static_cast<std::size_t>(n)].steps);
            found.path.emplace(Path{peak, {}});
            for (auto part = parts.rbegin(); part != parts.rend(); ++part)
                found.path->steps.insert(found.path->steps.end(), (*part)->begin(), (*part)->end());
            found.complete = true;
            return found;
        }
        for (std::size_t i = 0; i < graph.size(); ++i) {
            if (!walk.open(i) || !graph.ready(walk.made(), i)) continue;
            Walk next(walk);
            next.begin(peak);
            if (!next.step(i, best - 1, 0)) continue;
            next.take_free(0);
            add(next, id);
        }
    }
    found.bound = best;
    found.complete = true;
    return found;
}

}  // namespace onchip::rows
