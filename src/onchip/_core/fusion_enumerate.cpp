// Candidates for groups: convex sets, each grown from a smaller one by an operator that is joined to it by an edge
// or a shared operand. Every connected convex set is reached so, by way of sets that it contains.
#include <algorithm>
#include <numeric>

#include "fusion_fuser.h"

namespace onchip::fusion {

Fuser::Fuser(Problem problem, Space space)
    : problem_(std::make_unique<Problem>(std::move(problem))), space_(std::move(space)), evaluator_(*problem_), blocks_(*problem_) {
    fallback_.assign(problem_->operators.size(), unlimited);
}

bool Fuser::allowed(Id op) const {
    if (problem_->operators[op].form == Form::opaque) return false;
    if (!space_.chains) return true;
    std::size_t readers = 0;
    for (const Id t : problem_->operators[op].outputs) readers += problem_->tensors[t].readers.size();
    return problem_->operators[op].inputs.size() <= 1 && readers <= 1;
}

void Fuser::offer(const Hull& hull, Bytes budget, const Rules& rules) {
    const Id known = static_cast<Id>(sets_.size());
    if (sets_.insert(hull.bits(), hull.first(), hull.words(), hull.hash()) != known) return;
    sets_.members(known, scratch_);
    evaluator_.load_outline(scratch_);
    const bool grows = evaluator_.may_grow(budget);
    grows_.push_back(!rules.monotone || grows ? 1 : 0);
    if (grows_.back())
        candidates_.push_back({known, static_cast<std::uint32_t>(scratch_.size()),
                               grows ? evaluator_.floor_within(budget) : evaluator_.floor(), 0});
}

// Starts anew unless the candidates of a larger budget or of any are there.
bool Fuser::enumerate(Bytes budget, const Rules& rules, Clock& clock) {
    if (all_ && enumerated_for_ >= budget) return true;
    sets_ = Sets();
    candidates_.clear();
    grows_.clear();
    enumerated_for_ = budget;
    all_ = false;
    if (!space_.order.empty()) return all_ = intervals(budget, rules, clock);
    const auto n = static_cast<Id>(problem_->operators.size());
    Hull grown(*problem_);
    // An operator alone is no candidate: it is always there, whether a band of it fits or not.
    std::vector<Id> seen(n, no_id), members;
    Id stamp = 0;
    const bool beside = space_.shared_inputs && !space_.chains;
    const auto grow = [&](std::span<const Id> from) {
        ++stamp;
        for (const Id v : from) seen[v] = stamp;
        grown.assign(from);
        const auto reach = [&](const std::vector<Id>& near) {
            for (const Id u : near) {
                if (seen[u] == stamp || !allowed(u)) continue;
                seen[u] = stamp;
                grown.shrink(from.size());
                if (space_.whole_fan_out)
                    grown.join_with_readers(u);
                else
                    grown.join(u);
                if (space_.largest && grown.size() > space_.largest) continue;
                if (grown.size() > from.size() + 1 &&
                    !std::all_of(grown.members().begin(), grown.members().end(), [&](Id w) { return allowed(w); }))
                    continue;
                offer(grown, budget, rules);
            }
        };
        for (const Id v : from) {
            reach(problem_->before[v]);
            reach(problem_->after[v]);
            if (beside) reach(problem_->beside[v]);
        }
    };
    for (Id v = 0; v < n; ++v) {
        if (!allowed(v)) continue;
        const Id one[] = {v};
        grow(one);
    }
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
        if (clock.check({candidates_.size(), 0}, memory())) return false;
        sets_.members(candidates_[i].set, members);
        grow(members);
    }
    return all_ = true;
}

// Intervals of one order: whatever lies side by side there, as long as it fits.
bool Fuser::intervals(Bytes budget, const Rules& rules, Clock& clock) {
    const std::vector<Id>& order = space_.order;
    Hull hull(*problem_);
    std::vector<Id> members;
    for (std::size_t from = 0; from < order.size(); ++from) {
        members.assign(1, order[from]);
        if (!allowed(order[from])) continue;
        for (std::size_t to = from + 1; to < order.size(); ++to) {
            if (clock.check({candidates_.size(), 0}, memory())) return false;
            if (!allowed(order[to]) || (space_.largest && to - from >= space_.largest)) break;
            members.push_back(order[to]);
            hull.assign(members);
            offer(hull, budget, rules);
            if (rules.monotone && !grows_.back()) break;
        }
    }
    return true;
}

}  // namespace onchip::fusion
