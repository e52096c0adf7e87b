// Bytes alive are a directed cut: a row costs its bytes where its maker's step is made and not all readers' are.
#include "rows_cut.h"

#include <algorithm>
#include <limits>

namespace onchip::rows {

namespace {

constexpr Bytes endless = std::numeric_limits<Bytes>::max() / 4;
constexpr std::uint32_t source = 0, sink = 1;

}  // namespace

Cuts::Cuts(const Graph& graph) : graph_(graph) {
    const std::size_t n = graph.size();
    for (std::size_t i = 0; i < n; ++i) {
        base_.push_back(nodes_);
        nodes_ += static_cast<std::uint32_t>(graph[i].steps);
    }
    out_.resize(nodes_);
    for (std::size_t i = 0; i < n; ++i) {
        for (int step = 0; step < graph[i].steps; ++step) {
            if (graph[i].held) edge(source, node(i, step), endless);
            if (step > 0) edge(node(i, step), node(i, step - 1), endless);
            for (const Need& need : graph.needs(i, step)) edge(node(i, step), node(need.maker, need.rows - 1), endless);
            const auto& readers = graph.readers(i, step);
            if (graph[i].kept) {
                edge(node(i, step), sink, graph[i].bytes);
            } else if (readers.size() == 1) {
                edge(node(i, step), node(readers[0].reader, readers[0].step), graph[i].bytes);
            } else if (!readers.empty()) {
                const std::uint32_t all = nodes_++;
                out_.emplace_back();
                edge(node(i, step), all, graph[i].bytes);
                for (const Reader& reader : readers) edge(all, node(reader.reader, reader.step), endless);
            }
        }
    }
    level_.resize(nodes_), next_.resize(nodes_);
    flow();  // of the whole graph: what a cut forces only adds to it
    room_.reserve(edges_.size());
    for (const Edge& e : edges_) room_.push_back(e.room);
}

void Cuts::edge(std::uint32_t a, std::uint32_t b, Bytes room) {
    out_[a].push_back(static_cast<std::uint32_t>(edges_.size()));
    edges_.push_back({b, room});
    out_[b].push_back(static_cast<std::uint32_t>(edges_.size()));
    edges_.push_back({a, 0});
}

bool Cuts::levels() {
    std::fill(level_.begin(), level_.end(), -1);
    std::vector<std::uint32_t> queue{source};
    level_[source] = 0;
    for (std::size_t head = 0; head < queue.size(); ++head)
        for (const std::uint32_t e : out_[queue[head]])
            if (edges_[e].room > 0 && level_[edges_[e].to] < 0) {
                level_[edges_[e].to] = level_[queue[head]] + 1;
                queue.push_back(edges_[e].to);
            }
    return level_[sink] >= 0;
}

// One path at a time, without recursion: paths are as long as a map has rows.
Bytes Cuts::push() {
    std::vector<std::uint32_t> path;
    std::uint32_t a = source;
    while (a != sink) {
        bool found = false;
        for (std::size_t& k = next_[a]; k < out_[a].size(); ++k) {
            const Edge& e = edges_[out_[a][k]];
            if (e.room > 0 && level_[e.to] == level_[a] + 1) {
                path.push_back(out_[a][k]);
                a = e.to;
                found = true;
                break;
            }
        }
        if (found) continue;
        if (path.empty()) return 0;
        const std::uint32_t back = path.back();
        path.pop_back();
        a = edges_[back ^ 1].to;
        ++next_[a];
    }
    Bytes most = endless;
    for (const std::uint32_t e : path) most = std::min(most, edges_[e].room);
    for (const std::uint32_t e : path) edges_[e].room -= most, edges_[e ^ 1].room += most;
    return most;
}

void Cuts::flow() {
    while (levels()) {
        std::fill(next_.begin(), next_.end(), 0);
        while (push() > 0) {
        }
    }
}

Cuts::Cut Cuts::least(const std::vector<Need>& from, std::optional<std::pair<Id, int>> before) {
    for (std::size_t e = 0; e < room_.size(); ++e) edges_[e].room = room_[e];
    const std::size_t kept = edges_.size();
    for (const Need& need : from)
        if (need.rows > 0) edge(source, node(need.maker, need.rows - 1), endless);
    if (before) edge(node(before->first, before->second), sink, endless);
    flow();
    Made made(graph_.size());
    for (std::size_t i = 0; i < graph_.size(); ++i)
        for (int step = 0; step < graph_[i].steps && level_[node(i, step)] >= 0; ++step)
            made[i] = static_cast<std::uint16_t>(step + 1);
    while (edges_.size() > kept) {
        const std::uint32_t a = edges_.back().to;
        out_[edges_[edges_.size() - 2].to].pop_back();
        out_[a].pop_back();
        edges_.resize(edges_.size() - 2);
    }
    return {graph_.live(made), made};
}

Bound plain_bound(const Graph& graph) {
    Bound found{std::max(graph.live(graph.start()), graph.live(graph.end())), -1, -1, false};
    for (std::size_t i = 0; i < graph.size(); ++i) {
        if (graph[i].held) continue;
        for (int step = 0; step < graph[i].steps; ++step) {
            Bytes bytes = graph[i].bytes - graph.most_shared(i, step);
            for (const Last& last : graph.lasts(i, step)) bytes += graph[last.maker].bytes;
            if (bytes > found.bytes) found = {bytes, static_cast<int>(i), step, false};
        }
    }
    return found;
}

Bound bound_of(const Graph& graph, const std::vector<Id>& schedule, Clock<std::int64_t>& clock) {
    Made made = graph.start();
    Bytes live = graph.live(made);
    Bound found{std::max(live, graph.live(graph.end())), -1, -1, true};
    struct Step {
        Bytes at_most;  // the bound of this step is no more
        Bytes least;    // what it needs beside the least state
        Id maker;
        int step;
    };
    std::vector<Step> steps;
    for (const Id i : schedule) {
        const int step = made[i];
        const Bytes least = graph[i].bytes - graph.most_shared(i, step);
        steps.push_back({live + least, least, i, step});
        live += graph.cost(made, i).change;
        ++made[i];
    }
    std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.at_most > b.at_most; });
    Cuts cuts(graph);
    for (const Step& s : steps) {
        if (s.at_most <= found.bytes) break;
        if (clock.late(found.bytes)) {
            found.complete = false;
            break;
        }
        std::vector<Need> from = graph.needs(s.maker, s.step);
        from.push_back({s.maker, s.step});
        const Bytes bytes = cuts.least(from, std::pair(s.maker, s.step)).live + s.least;
        if (bytes > found.bytes) found = {bytes, s.maker, s.step, true};
    }
    return found;
}

}  // namespace onchip::rows
