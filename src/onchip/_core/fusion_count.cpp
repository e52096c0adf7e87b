// How many convex sets there are, without looking at any: operators are labelled one after the other, and only the
// labels of those that later ones still read are remembered.
#include <algorithm>
#include <limits>
#include <string>
#include <unordered_map>

#include "fusion_fuser.h"

namespace onchip::fusion {

Count count_convex(const Problem& problem) {
    enum : char { before = 0, in = 1, after = 2 };  // after: outside, below a member
    constexpr std::uint64_t ceiling = std::numeric_limits<std::int64_t>::max();
    const auto n = static_cast<Id>(problem.operators.size());
    std::vector<Id> last(n);
    for (Id v = 0; v < n; ++v) last[v] = problem.after[v].empty() ? v : problem.after[v].back();
    std::vector<Id> frontier;
    std::unordered_map<std::string, std::uint64_t> ways{{"", 1}}, next;
    Count count;
    for (Id v = 0; v < n; ++v) {
        std::vector<std::size_t> parents, kept;
        for (std::size_t i = 0; i < frontier.size(); ++i) {
            if (std::binary_search(problem.before[v].begin(), problem.before[v].end(), frontier[i]))
                parents.push_back(i);
            if (last[frontier[i]] > v) kept.push_back(i);
        }
        next.clear();
        for (const auto& [labels, number] : ways) {
            bool below = false, late = false;
            for (const std::size_t i : parents) {
                below = below || labels[i] != before;
                late = late || labels[i] == after;
            }
            std::string left;
            for (const std::size_t i : kept) left += labels[i];
            const auto put = [&](char label) {
                std::string key = left;
                if (last[v] > v) key += label;
                std::uint64_t& total = next[key];
                if (total > ceiling - number) count.saturated = true, total = ceiling;
                else total += number;
            };
            put(below ? after : before);
            if (!late) put(in);
        }
        ways.swap(next);
        std::vector<Id> rest;
        for (const std::size_t i : kept) rest.push_back(frontier[i]);
        if (last[v] > v) rest.push_back(v);
        frontier.swap(rest);
    }
    for (const auto& [labels, number] : ways) {
        if (count.sets > ceiling - number) count.saturated = true;
        count.sets = std::min(ceiling, count.sets + number);
    }
    if (!count.saturated) --count.sets;  // the empty one
    return count;
}

}  // namespace onchip::fusion
