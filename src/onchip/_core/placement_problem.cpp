#include "placement_problem.h"

#include <algorithm>
#include <random>
#include <stdexcept>

namespace onchip::placement {

void Problem::complete() {
    const std::size_t n = operators(), m = tensors();
    if (outputs.size() != n || workspace.size() != n || cost.size() != m ||
        (!order.empty() && order.size() != n))
        throw std::invalid_argument("placement problem: lengths differ");
    const auto marked = [m](const std::vector<Id>& ids) {
        std::vector<bool> marks(m);
        for (Id t : ids) marks.at(t) = true;
        return marks;
    };
    graph_input = marked(graph_inputs), graph_output = marked(graph_outputs), lives_on = marked(read_later);

    constexpr Id none = static_cast<Id>(-1);
    std::vector<Id> producer(m, none);
    readers.assign(m, {});
    before.assign(n, {});
    sources.clear();
    for (Id v = 0; v < n; ++v) {
        for (Id t : outputs[v]) producer.at(t) = v;
        for (Id t : inputs[v]) readers.at(t).push_back(v);
        if (inputs[v].empty()) sources.push_back(v);
    }
    for (Id v = 0; v < n; ++v) {
        for (Id t : inputs[v])
            if (producer[t] != none) before[v].push_back(producer[t]);
        std::ranges::sort(before[v]);
        before[v].erase(std::ranges::unique(before[v]).begin(), before[v].end());
    }
    overwrites.resize(n);
    // One output with bytes, and the first; others may be empty (they only fix an order).
    const auto one_output = [&](Id v) {
        return !outputs[v].empty() &&
               std::all_of(outputs[v].begin() + 1, outputs[v].end(), [&](Id t) { return size[t] == 0; });
    };
    for (Id v = 0; v < n; ++v)
        for (Id x : overwrites[v])
            if (!one_output(v) || std::ranges::find(inputs[v], x) == inputs[v].end() ||
                size[x] != size[outputs[v][0]])
                throw std::invalid_argument("placement problem: an output cannot be written over that input");
    std::mt19937_64 random(0x0c41b);  // any fixed seed: hashes only spread the table
    hash.resize(n);
    for (auto& h : hash) h = random();
}

}  // namespace onchip::placement
