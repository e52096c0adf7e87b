#include "placement_safe.h"

namespace onchip::placement {

namespace {
constexpr std::size_t longest_chain = 8;  // operators in one safe move
constexpr int most_tries = 16;            // chains tried from one first operator
constexpr std::size_t most_subsets_of = 10;  // tensors whose subsets are looked at one by one
}  // namespace

void SafeMoves::close(State& s, Bytes limit, std::vector<Id>* ran) {
    if (!rules_.safe_moves) return;
    for (bool moved = true; moved;) {
        moved = false;
        ready_operators(p_, s, ready_);
        for (Id v : ready_) {
            if (clock_ && clock_->check({}, 0)) return;
            if (!try_chain(s, v, limit)) continue;
            for (Id u : chain_) run(p_, s, u);
            if (ran) ran->insert(ran->end(), chain_.begin(), chain_.end());
            moved = true;
            break;
        }
    }
}

bool SafeMoves::try_chain(const State& s, Id first, Bytes limit) {
    if (!rules_.safe_loads &&
        std::ranges::any_of(p_.inputs[first], [&](Id t) { return !test(s.resident(), t); }))
        return false;
    chain_.assign(1, first);
    tries_ = 0;
    return grow(s, s, limit);
}

// Runs the chain's last operator on a copy of `s`; safe as it stands, or with what can follow it?
bool SafeMoves::grow(const State& base, const State& s, Bytes limit) {
    const Id last = chain_.back();
    if (s.used + need(p_, s, last) > limit) return false;
    State after = s;
    run(p_, after, last);
    if (is_safe(base, after)) return true;
    if (!rules_.safe_chains || chain_.size() == longest_chain) return false;
    for (Id t : p_.outputs[last])
        for (Id v : p_.readers[t]) {
            if (!is_ready(p_, after, v)) continue;
            if (++tries_ > most_tries) return false;
            chain_.push_back(v);
            if (grow(base, after, limit)) return true;
            chain_.pop_back();
        }
    return false;
}

// The condition of R2*, cut by cut. `after` is `base` with the whole chain run.
bool SafeMoves::is_safe(const State& base, const State& after) {
    // A: what the chain makes resident and leaves so. What has arrived by a cut needs no room any more.
    arriving_.clear();
    for (Id v : chain_) {
        for (Id t : p_.inputs[v])
            if (test(base.live(), t) && !test(base.resident(), t) && test(after.resident(), t) &&
                std::ranges::find(arriving_, t) == arriving_.end())
                arriving_.push_back(t);
        for (Id t : p_.outputs[v])
            if (test(after.resident(), t)) arriving_.push_back(t);
    }
    Bytes arriving = 0, arriving_cost = 0;
    for (Id t : arriving_) {
        arriving += p_.size[t];
        arriving_cost += p_.cost[t] * (test(after.copied(), t) ? 1 : 2);
    }
    for (std::size_t cut = 0; cut < chain_.size() && !arriving_.empty(); ++cut) {
        if (cut > 0)
            for (Id t : p_.outputs[chain_[cut - 1]])
                if (test(after.resident(), t)) {
                    arriving -= p_.size[t];
                    arriving_cost -= p_.cost[t] * (test(after.copied(), t) ? 1 : 2);
                }
        // X: tensors at this cut that are gone after the chain, read by some operator not yet run.
        held_.clear();
        Bytes kept = 0;
        for (std::size_t i = cut; i < chain_.size(); ++i)
            for (Id t : p_.inputs[chain_[i]]) {
                if (test(after.live(), t)) continue;
                bool before = test(base.resident(), t);
                for (std::size_t j = 0; j < cut && !before; ++j)
                    before = std::ranges::find(p_.outputs[chain_[j]], t) != p_.outputs[chain_[j]].end();
                for (std::size_t j = cut; j < i && before; ++j)  // count it at its first reader only
                    before = std::ranges::find(p_.inputs[chain_[j]], t) == p_.inputs[chain_[j]].end();
                if (!before) continue;
                const bool copied = test(base.resident(), t) ? test(base.copied(), t) : p_.graph_output[t];
                held_.push_back({p_.size[t], p_.cost[t] * (copied ? 1 : 2)});
                kept += p_.size[t];
            }
        if (kept < arriving) return false;
        if (!peak_ && !loss_is_paid(held_, kept, arriving, arriving_cost)) return false;
    }
    return true;
}

// Does every set of held tensors whose loss leaves too little room for what arrives cost as much as
// evicting what arrives?
bool SafeMoves::loss_is_paid(const std::vector<Held>& held, Bytes kept, Bytes arriving,
                             Bytes arriving_cost) const {
    const bool singles_pay =
        std::ranges::all_of(held, [&](const Held& h) { return h.cost >= arriving_cost; });
    if (singles_pay || !rules_.safe_loads || held.size() > most_subsets_of) return singles_pay;
    for (std::uint32_t set = 1; set < (1u << held.size()); ++set) {
        Bytes size = 0, cost = 0;
        each_bit(set, 0, [&](Id i) { size += held[i].size, cost += held[i].cost; });
        if (kept - size < arriving && cost < arriving_cost) return false;
    }
    return true;
}

}  // namespace onchip::placement
