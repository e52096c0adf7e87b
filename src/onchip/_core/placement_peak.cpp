// Minimum peak over all orders: the same search with max in place of the sum, and nothing ever evicted.
#include "placement_clock.h"
#include "placement_safe.h"
#include "placement_table.h"

namespace onchip::placement {

namespace {

struct Open {
    Bytes peak;
    std::uint32_t shallow;
    Ref state;
};

bool later(const Open& a, const Open& b) {
    if (a.peak != b.peak) return a.peak > b.peak;
    if (a.shallow != b.shallow) return a.shallow > b.shallow;
    return a.state < b.state;
}

}  // namespace

Outcome minimum_peak(const Problem& p, const Rules& rules, const Limits& limits) {
    Clock clock(limits);
    Progress progress;
    SafeMoves safe(p, rules, true);
    Table table(p, true);  // M and H follow from D here: dominance is keeping the lowest peak of each D
    std::vector<Open> open;
    std::vector<Id> ready, ran;
    const Bytes floor = p.budget;

    // `paid` holds the peak. A safe move must not raise it, so it is started at what no order avoids.
    State here(p), next(p);
    State first = start(p);
    first.paid = floor;
    safe.close(first, first.paid, nullptr);
    Ref goal = no_ref;
    Outcome outcome;
    const auto bytes = [&] { return table.bytes() + open.capacity() * sizeof(Open); };
    open.push_back({floor, static_cast<std::uint32_t>(p.operators() - first.depth), table.insert(first, no_ref)});

    std::optional<End> end;
    outcome.bound = floor;
    while (!open.empty()) {
        const Open top = open.front();
        outcome.bound = progress.bound = std::max(outcome.bound, top.peak);
        if (top.shallow == 0) {
            goal = top.state;
            break;
        }
        if ((end = clock.check(progress, bytes()))) break;
        std::ranges::pop_heap(open, later);
        open.pop_back();
        if (table.killed(top.state)) continue;
        table.unpack(top.state, here);
        ++progress.states;
        ready_operators(p, here, ready);
        for (Id v : ready) {
            next = here;
            next.paid = std::max(next.paid, here.used + need(p, here, v));
            run(p, next, v);
            safe.close(next, next.paid, nullptr);
            if (const Ref r = table.insert(next, top.state); r != no_ref) {
                open.push_back({next.paid, static_cast<std::uint32_t>(p.operators() - next.depth), r});
                std::ranges::push_heap(open, later);
            }
        }
    }
    outcome.end = end.value_or(End::complete);
    outcome.expanded = progress.states;
    outcome.stored = table.stored();
    outcome.memory = bytes();

    // Finish greedily from the best open state when a limit was hit: some order, and its true peak.
    std::vector<Step> tail;
    if (goal == no_ref && !open.empty()) {
        goal = open.front().state;
        table.unpack(goal, here);
    } else {
        table.unpack(goal, here);
    }
    outcome.value = here.paid;
    for (State s = here; s.depth < p.operators();) {
        ready_operators(p, s, ready);
        const Id v = *std::ranges::min_element(ready, {}, [&](Id u) { return need(p, s, u); });
        outcome.value = std::max(outcome.value, s.used + need(p, s, v));
        run(p, s, v);
        tail.push_back({v, {}});
    }
    // Walk back: the parent's child that is this state.
    std::vector<std::vector<Step>> pieces;
    State child(p);
    for (Ref r = goal; table.parent(r) != no_ref; r = table.parent(r)) {
        table.unpack(r, child);
        table.unpack(table.parent(r), here);
        ready_operators(p, here, ready);
        for (Id v : ready) {
            next = here;
            next.paid = std::max(next.paid, here.used + need(p, here, v));
            run(p, next, v);
            ran.clear();
            safe.close(next, next.paid, &ran);
            if (!(next == child)) continue;
            pieces.emplace_back();
            pieces.back().push_back({v, {}});
            for (Id u : ran) pieces.back().push_back({u, {}});
            break;
        }
    }
    ran.clear();
    first = start(p);
    first.paid = floor;
    safe.close(first, floor, &ran);
    for (Id v : ran) outcome.steps.push_back({v, {}});
    for (std::size_t i = pieces.size(); i-- > 0;)
        outcome.steps.insert(outcome.steps.end(), pieces[i].begin(), pieces[i].end());
    outcome.steps.insert(outcome.steps.end(), tail.begin(), tail.end());
    return outcome;
}

}  // namespace onchip::placement
