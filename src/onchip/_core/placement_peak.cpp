// Minimum peak over all orders: the same search with max in place of the sum, and nothing ever evicted.
#include "placement_pass.h"
#include "placement_safe.h"
#include "placement_table.h"

namespace onchip::placement {

namespace {

struct OpenPeak {
    Bytes peak;
    std::uint32_t shallow;
    Ref state;
};

bool peak_later(const OpenPeak& a, const OpenPeak& b) {
    if (a.peak != b.peak) return a.peak > b.peak;
    if (a.shallow != b.shallow) return a.shallow > b.shallow;
    return a.state < b.state;
}

// Runs what is left, and raises the outcome's value to its peak: always what needs least of what is ready, or,
// where very much is, in the order of ids.
std::vector<Step> finish(const Problem& p, State s, Outcome& outcome) {
    constexpr std::size_t many = 256;
    std::vector<Step> steps;
    std::vector<Id> ready, rest;
    while (s.depth < p.operators()) {
        Id v = 0;
        if (rest.empty()) {
            ready_operators(p, s, ready);
            if (ready.size() > many) rest = topological(p, s), std::ranges::reverse(rest);
        }
        if (!rest.empty())
            v = rest.back(), rest.pop_back();
        else
            v = *std::ranges::min_element(ready, {}, [&](Id u) { return need(p, s, u); });
        outcome.value = std::max(outcome.value, s.used + need(p, s, v));
        run(p, s, v);
        steps.push_back({v, {}});
    }
    return steps;
}

}  // namespace

Outcome minimum_peak(const Problem& p, const Rules& rules, const Options&, const Limits& limits) {
    Clock clock(limits);
    Progress progress;
    SafeMoves safe(p, rules, true, &clock), steady(p, rules, true);
    Table table(p, true);  // M and H follow from D here: dominance is keeping the lowest peak of each D
    std::vector<OpenPeak> open;
    std::vector<Id> ready, ran;
    const Bytes floor = p.budget;

    // `paid` holds the peak. A safe move must not raise it, so it is started at what no order avoids.
    State here(p), next(p);
    State first = start(p);
    first.paid = floor;
    Outcome outcome;
    safe.close(first, first.paid, nullptr);
    if (clock.ended()) {  // no time even for that: some order, and its peak
        outcome.bound = floor;
        outcome.end = *clock.check(progress, 0);
        outcome.steps = finish(p, start(p), outcome);
        return outcome;
    }
    Ref goal = no_ref;
    const auto bytes = [&] { return table.bytes() + open.capacity() * sizeof(OpenPeak); };
    open.push_back({floor, static_cast<std::uint32_t>(p.operators() - first.depth), table.insert(first, no_ref)});

    std::optional<End> end;
    outcome.bound = floor;
    while (!open.empty()) {
        const OpenPeak top = open.front();
        outcome.bound = progress.bound = std::max(outcome.bound, top.peak);
        if (top.shallow == 0) {
            goal = top.state;
            break;
        }
        if ((end = clock.check(progress, bytes()))) break;
        std::ranges::pop_heap(open, peak_later);
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
            if (clock.ended()) break;
            if (const Ref r = table.insert(next, top.state); r != no_ref) {
                open.push_back({next.paid, static_cast<std::uint32_t>(p.operators() - next.depth), r});
                std::ranges::push_heap(open, peak_later);
            }
        }
        if (clock.ended()) {  // not all of its children are there: it is still to be looked at
            open.push_back(top);
            std::ranges::push_heap(open, peak_later);
            end = clock.check(progress, bytes());
            break;
        }
    }
    outcome.end = end.value_or(End::complete);
    outcome.expanded = progress.states;
    outcome.stored = table.stored();
    outcome.memory = bytes();

    // Finish greedily from the best open state when a limit was hit: some order, and its true peak.
    if (goal == no_ref && !open.empty()) {
        goal = open.front().state;
        table.unpack(goal, here);
    } else {
        table.unpack(goal, here);
    }
    // The walk back does all moves again: in a large problem there is no time for that when there is none.
    const auto some_order = [&] {
        outcome.end = *clock.check(progress, 0, true);
        outcome.value = floor;
        outcome.steps = finish(p, start(p), outcome);
        return outcome;
    };
    if (is_large(p) && clock.ended()) return some_order();
    outcome.value = here.paid;
    std::vector<Step> tail = finish(p, here, outcome);
    // Walk back: the parent's child that is this state.
    std::vector<std::vector<Step>> pieces;
    State child(p);
    for (Ref r = goal; table.parent(r) != no_ref; r = table.parent(r)) {
        table.unpack(r, child);
        table.unpack(table.parent(r), here);
        if (is_large(p) && clock.check(progress, 0, true)) return some_order();
        ready_operators(p, here, ready);
        for (Id v : ready) {
            next = here;
            next.paid = std::max(next.paid, here.used + need(p, here, v));
            run(p, next, v);
            ran.clear();
            steady.close(next, next.paid, &ran);
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
    steady.close(first, floor, &ran);
    for (Id v : ran) outcome.steps.push_back({v, {}});
    for (std::size_t i = pieces.size(); i-- > 0;)
        outcome.steps.insert(outcome.steps.end(), pieces[i].begin(), pieces[i].end());
    outcome.steps.insert(outcome.steps.end(), tail.begin(), tail.end());
    return outcome;
}

}  // namespace onchip::placement
