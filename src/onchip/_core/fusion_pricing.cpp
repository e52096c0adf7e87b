#include "fusion_pricing.h"

#include <algorithm>

namespace onchip::fusion {

namespace {

// The paper's S is given, not chosen by what it costs: a part of a group may have a dearer one than the group.
std::int64_t chargeable(const Problem& problem, std::int64_t percent) {
    return problem.options.isoa == Isoa::paper ? 0 : percent;
}

}  // namespace

Pricer::Pricer(const Problem& problem, Bytes budget, std::vector<Bytes> alone, std::int64_t halo_percent,
               bool guess)
    : problem_(problem),
      budget_(budget),
      alone_(std::move(alone)),
      floor_(problem, chargeable(problem, halo_percent)),
      evaluator_(problem),
      listed_(problem.operators.size()),
      seen_(problem.tensors.size(), 0) {
    evaluator_.charge_halo(guess ? -1 : chargeable(problem, halo_percent));
    for (Id v = 0; v < alone_.size(); ++v) {
        evaluator_.load({&v, 1});
        alone_[v] = std::min(alone_[v], evaluator_.best(budget_, unlimited));
    }
}

Bytes Pricer::cost(std::span<const Id> members, Bytes limit) {
    if (members.size() == 1) return alone_[members.front()];
    evaluator_.load(members);
    return evaluator_.best(budget_, limit);
}

// Operators after `first` that a chain of neighbours leads to, each of which may be in one group with it.
void Pricer::candidates(Id first) {
    const std::size_t words = problem_.words();
    may_.assign(words, 0);
    std::vector<Id>& interest = listed_[first];
    if (!interest.empty()) {
        near_.assign(interest.begin() + 1, interest.end());
        for (const Id u : near_) add(may_.data(), u);
        floor_.among(interest);
        return;
    }
    near_.clear();
    Words known(words, 0);
    add(known.data(), first);
    std::vector<Id> waiting{first}, reached;
    const auto meet = [&](Id u) {
        if (u <= first || test(known.data(), u) || problem_.operators[u].form == Form::opaque) return;
        add(known.data(), u);
        joined_.clear();
        for (std::size_t w = 0; w < words; ++w)
            each_bit(problem_.descendants(first)[w] & problem_.ancestors(u)[w], static_cast<std::uint32_t>(w * 64),
                     [&](Id v) { joined_.push_back(v); });
        joined_.insert(joined_.begin(), first);
        joined_.push_back(u);
        if (floor_.fits(joined_, budget_)) reached.push_back(u), waiting.push_back(u);
    };
    // Before anything is known of the operators of interest, all later ones are.
    for (Id v = first; v < problem_.operators.size(); ++v) near_.push_back(v);
    floor_.among(near_);
    near_.clear();
    while (!waiting.empty()) {
        const Id v = waiting.back();
        waiting.pop_back();
        for (const Id u : problem_.before[v]) meet(u);
        for (const Id u : problem_.after[v]) meet(u);
        for (const Id u : problem_.beside[v]) meet(u);
    }
    std::sort(reached.begin(), reached.end());
    near_ = std::move(reached);
    for (const Id u : near_) add(may_.data(), u);
    interest.assign(1, first);
    interest.insert(interest.end(), near_.begin(), near_.end());
    floor_.among(interest);
}

// Whether `op` can still become a member: undecided, and nothing decided out lies between it and the members.
bool Pricer::possible(const State& s, Id op) const {
    if (!test(may_.data(), op) || test(s.out.data(), op)) return false;
    const Word* const above = problem_.ancestors(op);
    const Word* const below = problem_.descendants(op);
    for (std::size_t w = low_; w < high_; ++w)
        if (((s.below[w] & above[w]) | (s.above[w] & below[w])) & s.out[w]) return false;
    return true;
}

// Decides that `op`, and with it all between it and the members, will be in; false when nothing then fits.
bool Pricer::commit(State& s, Id op) {
    const Word* const above = problem_.ancestors(op);
    const Word* const below = problem_.descendants(op);
    for (std::size_t w = low_; w < high_; ++w)
        s.due[w] |= ((s.below[w] & above[w]) | (s.above[w] & below[w])) & ~s.member[w];
    add(s.due.data(), op);
    for (std::size_t at = low_; at < high_; ++at)
        each_bit(s.due[at], static_cast<Id>(at * 64), [&](Id v) {
            for (std::size_t w = low_; w < high_; ++w)
                s.above[w] |= problem_.ancestors(v)[w], s.below[w] |= problem_.descendants(v)[w];
        });
    joined_.clear();
    for (std::size_t w = low_; w < high_; ++w)
        each_bit(s.member[w] | s.due[w], static_cast<std::uint32_t>(w * 64), [&](Id v) { joined_.push_back(v); });
    return floor_.fits(joined_, budget_);
}

bool Pricer::include(State& s, Id op) {
    drop(s.due.data(), op);
    add(s.member.data(), op);
    s.in.insert(std::lower_bound(s.in.begin(), s.in.end(), op), op);
    s.worth += worth_[op];
    floor_.levels(s.in, budget_, s.levels);
    s.crossing = floor_.crossing();
    return !s.levels.empty();
}

// No group that completes `s` is cheaper than its worth by more: what the members cost at least, less what the
// rest could save by being with them. `next` is the undecided reader that could save most.
Bytes Pricer::bound(const State& s, Id& next) const {
    Bytes saved = 0, most = -1;
    shared_.clear();
    next = no_id;
    ++look_;
    const auto look = [&](Id x, Bytes once, bool inside) {
        const Tensor& tensor = problem_.tensors[x];
        bool any = false, all = !tensor.output;
        Id reader = no_id;
        for (const Id u : tensor.readers) {
            if (test(s.member.data(), u)) continue;
            if (test(s.due.data(), u)) {
                any = true;
            } else if (possible(s, u)) {
                any = true;
                if (reader == no_id) reader = u;
            } else {
                all = false;
            }
        }
        if (!any) return;
        const Bytes here = inside && all ? 2 * once : once;
        saved += here;
        shared_.push_back(x);
        if (reader != no_id && here > most) most = here, next = reader;
    };
    for (const Id v : s.in) {
        for (const Id y : problem_.operators[v].outputs) look(y, problem_.tensors[y].bytes, true);
        for (const Window& w : problem_.operators[v].inputs) {
            if (seen_[w.tensor] == look_) continue;
            seen_[w.tensor] = look_;
            const Id p = problem_.tensors[w.tensor].producer;
            if (p == no_id || !test(s.member.data(), p)) look(w.tensor, problem_.tensors[w.tensor].bytes, false);
        }
    }
    Bytes least = unlimited;
    for (const Floor::Level& l : s.levels) {
        Bytes cost = l.cost;
        for (const Id x : shared_) cost -= floor_.halo_at_most(x, l.bands);
        least = std::min(least, cost);
    }
    return least + s.crossing - saved - s.worth;
}

// False when time ran out over it.
bool Pricer::offer(const State& s) {
    Bytes floor = unlimited;
    for (const Floor::Level& l : s.levels) floor = std::min(floor, l.cost);
    if (floor + s.crossing - s.worth >= found_.least) return true;
    const Bytes found = cost(s.in, s.worth + found_.least);
    if (evaluator_.was_cut()) return false;
    if (found >= unlimited || found - s.worth >= found_.least) return true;
    found_.least = found - s.worth;
    found_.columns.push_back({s.in, found});
    return true;
}

// Every completion of `s`. Members are decided in an order in which the operators can run, so that what is not
// yet decided is convex and comes after them.
void Pricer::search(State s) {
    for (;;) {
        ++found_.nodes;
        Id next = no_id;
        const Bytes least = bound(s, next);
        if (least >= std::min(found_.least, -tolerance_)) {
            open_ = std::min(open_, std::max(least, -tolerance_));
            return;
        }
        stopped_ = stopped_ || (most_nodes_ && found_.nodes > most_nodes_) || clock_->check({}, 0).has_value();
        if (stopped_) {
            open_ = std::min(open_, least);
            return;
        }
        Id due = no_id;
        for (std::size_t w = low_; w < high_ && due == no_id; ++w)
            if (s.due[w]) due = static_cast<Id>(w * 64) + static_cast<Id>(std::countr_zero(s.due[w]));
        if (due == no_id) {
            if (!offer(s)) {
                stopped_ = true;
                open_ = std::min(open_, least);
                return;
            }
            if (next == no_id) return;
            State with = s;
            if (commit(with, next)) search(std::move(with));
            add(s.out.data(), next);
            continue;
        }
        // Ancestors of what is due come first.
        Id earlier = no_id;
        for (std::size_t w = low_; w < high_ && earlier == no_id; ++w) {
            const Word open = s.above[w] & may_[w] & ~s.out[w] & ~s.member[w] & ~s.due[w];
            if (open) earlier = static_cast<Id>(w * 64) + static_cast<Id>(std::countr_zero(open));
        }
        if (earlier == no_id || earlier > due) {
            if (!include(s, due)) return;
            continue;
        }
        if (possible(s, earlier)) {
            State with = s;
            if (commit(with, earlier) && include(with, earlier)) search(std::move(with));
        }
        add(s.out.data(), earlier);
    }
}

Priced Pricer::price(Id first, std::span<const Bytes> worth, Bytes tolerance, std::uint64_t nodes, Clock& clock) {
    found_ = {};
    worth_ = worth, tolerance_ = tolerance, most_nodes_ = nodes, clock_ = &clock;
    evaluator_.until([&clock] { return clock.check({}, 0).has_value(); });
    stopped_ = false;
    open_ = 0;
    const std::size_t words = problem_.words();
    State s;
    s.member.assign(words, 0);
    s.due = s.out = s.member;
    s.above.assign(problem_.ancestors(first), problem_.ancestors(first) + words);
    s.below.assign(problem_.descendants(first), problem_.descendants(first) + words);
    if (alone_[first] - worth_[first] < 0) {
        found_.least = alone_[first] - worth_[first];
        found_.columns.push_back({{first}, alone_[first]});
    }
    if (problem_.operators[first].form != Form::opaque && floor_.sound()) {
        candidates(first);
        for (Id v = first + 1; v < problem_.operators.size(); ++v)
            if (!test(may_.data(), v)) add(s.out.data(), v);
        low_ = first / 64, high_ = (near_.empty() ? first : near_.back()) / 64 + 1;
        if (!near_.empty() && include(s, first)) search(std::move(s));
    }
    found_.least = std::min(found_.least, open_);
    found_.complete = !stopped_;
    evaluator_.until({});
    return std::move(found_);
}

}  // namespace onchip::fusion
