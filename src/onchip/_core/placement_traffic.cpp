// Minimum traffic with unlimited freedom of addresses: best-first search over (D, M, H).
#include <random>
#include <stdexcept>
#include <utility>

#include "placement_beam.h"
#include "placement_pass.h"
#include "placement_table.h"

namespace onchip::placement {

namespace {

constexpr double moment = 0.05;  // seconds: with less, a beam may find nothing in time

struct Open {
    Bytes bound;          // g: nothing below this state is cheaper
    std::uint32_t shallow;  // operators still to run: among equals the deepest first
    std::uint32_t tie;      // then the youngest, or any
    Ref state;
};

// std::*_heap keep the largest on top; ours is the cheapest, then deepest, then youngest.
bool later(const Open& a, const Open& b) {
    if (a.bound != b.bound) return a.bound > b.bound;
    if (a.shallow != b.shallow) return a.shallow > b.shallow;
    return a.tie < b.tie;
}

class TrafficSearch {
  public:
    TrafficSearch(const Problem& p, std::vector<State> starts, const Rules& rules, const Options& options,
                  const Limits& limits)
        : p_(p), starts_(std::move(starts)), rules_(rules), options_(options), limits_(limits), clock_(limits),
          safe_(p, rules, false, &clock_), steady_(p, rules, false), table_(p, rules.dominance), random_(options.seed),
          here_(p) {}

    Outcome solve();
    Outcome look_ahead_only(std::size_t width);

  private:
    template <class Visit, class Stop>
    void successors(const State& s, Visit visit, Stop stop);
    void expand(Ref ref);
    // An end reached, and how it was.
    struct Goal {
        State last;
        std::size_t start;
        std::vector<Step> steps;
    };

    void start_somewhere();
    void look_ahead(std::size_t width);
    void found(Ref parent, const State& last);
    bool wanted(const State& last) const;
    void add_goal(Goal goal);
    std::optional<Goal> path(Ref from, const State& last);
    Outcome answer(std::optional<End> end);
    void push(const State& s, Ref r);
    std::size_t bytes() const { return table_.bytes() + open_.capacity() * sizeof(Open); }

    const Problem& p_;
    const std::vector<State> starts_;
    const Rules& rules_;
    const Options& options_;
    const Limits& limits_;
    Clock clock_;
    SafeMoves safe_;
    SafeMoves steady_;  // for walks back: they repeat what was done in time
    Table table_;
    std::vector<Open> open_;
    std::mt19937_64 random_;
    Progress progress_;
    std::vector<Goal> goals_;     // none makes another needless
    Bytes enough_ = no_limit;     // a state that has paid as much leads to no end that is worth having (R6)
    Incumbent ahead_;             // of the beams
    std::vector<Id> ready_;
    State here_, next_;
};

// Calls visit(child, operator, evicted) for every way to run one more operator that the rules ask for; visit
// returns false to end it, stop true.
template <class Visit, class Stop>
void TrafficSearch::successors(const State& s, Visit visit, Stop stop) {
    ready_operators(p_, s, ready_);
    std::vector<Id> ready = ready_;
    if (options_.seed != 0) std::ranges::shuffle(ready, random_);
    for (Id v : ready) {
        const Bytes dear = rules_.incumbent && enough_ != no_limit ? enough_ - s.paid : no_limit;
        const auto child = [&](const std::vector<Id>& set) {
            next_ = s;
            for (Id t : set) evict(p_, next_, t);
            run(p_, next_, v);
            return visit(next_, v, set);
        };
        if (!Evictions(p_, s, v, rules_.minimal_evictions, dear, child, stop).enumerate()) return;
    }
}

void TrafficSearch::expand(Ref ref) {
    table_.unpack(ref, here_);
    // Safe moves are made when a state is looked at, not when it is stored: most are never looked at.
    const std::uint32_t depth = here_.depth;
    safe_.close(here_, p_.budget, nullptr);
    if (clock_.ended()) return;
    if (here_.depth > depth) {
        if (here_.depth == p_.operators()) return found(ref, here_);
        if ((ref = table_.insert(here_, ref)) == no_ref) return;
    }
    // One state can have very many children: limits hold within it too.
    const auto limit = [&] { return clock_.check(progress_, bytes(), true).has_value(); };
    std::uint64_t children = 0;
    const auto keep = [&](const State& child, Id, const std::vector<Id>&) {
        if (child.depth == p_.operators())
            found(ref, child);
        else if (const Ref r = table_.insert(child, ref); r != no_ref)
            push(child, r);
        return ++children % 256 != 0 || !limit();
    };
    successors(here_, keep, limit);
}

void TrafficSearch::push(const State& s, Ref r) {
    const std::uint32_t tie = options_.seed == 0 ? r : static_cast<std::uint32_t>(random_());
    open_.push_back({s.paid, static_cast<std::uint32_t>(p_.operators() - s.depth), tie, r});
    std::ranges::push_heap(open_, later);
}

bool TrafficSearch::wanted(const State& last) const {
    return std::ranges::none_of(goals_, [&](const Goal& g) { return dominates(p_, g.last, last); });
}

void TrafficSearch::add_goal(Goal goal) {
    if (!wanted(goal.last)) return;
    std::erase_if(goals_, [&](const Goal& g) { return dominates(p_, goal.last, g.last); });
    enough_ = std::min(enough_, worth(p_, goal.last));
    goals_.push_back(std::move(goal));
    const auto paid = [](const Goal& g) { return g.last.paid; };
    progress_.best = std::ranges::min(goals_, {}, paid).last.paid;
}

void TrafficSearch::found(Ref parent, const State& last) {
    if (!wanted(last)) return;
    if (auto goal = path(parent, State(last))) add_goal(std::move(*goal));
}

// The steps from a start to `last`, which follows the stored state `from`. Moves are not stored: every state
// on the way is closed or expanded again until it gives the next one. Nothing when time ends on the way.
std::optional<TrafficSearch::Goal> TrafficSearch::path(Ref from, const State& last) {
    const Bytes enough = std::exchange(enough_, no_limit);  // nothing may be pruned on this walk
    std::vector<std::vector<Step>> pieces;
    State here(p_), next = last;
    for (Ref r = from; r != no_ref; r = table_.parent(r)) {
        if (clock_.check(progress_, bytes(), true)) {
            enough_ = enough;
            return std::nullopt;
        }
        table_.unpack(r, here);
        auto& piece = pieces.emplace_back();
        State closed = here;
        std::vector<Id> ran;
        steady_.close(closed, p_.budget, &ran);
        if (closed == next) {
            for (Id v : ran) piece.push_back({v, {}});
        } else {
            const auto is_next = [&](const State& child, Id v, const std::vector<Id>& set) {
                if (!(child == next)) return true;
                piece.push_back({v, set});
                return false;
            };
            successors(here, is_next, [] { return false; });
        }
        next = here;
    }
    enough_ = enough;
    Goal goal{last, 0, {}};
    goal.start = static_cast<std::size_t>(std::ranges::find(starts_, next) - starts_.begin());
    for (std::size_t i = pieces.size(); i-- > 0;)
        goal.steps.insert(goal.steps.end(), pieces[i].begin(), pieces[i].end());
    return goal;
}

// Large problems get a schedule before anything is searched, and so do those without time for a search.
void TrafficSearch::start_somewhere() {
    const bool hurry = limits_.seconds >= 0 && limits_.seconds < moment;
    if (!hurry && !is_large(p_)) return;
    pass(p_, starts_, clock_, ahead_);
    if (ahead_.paid >= 0 && rules_.incumbent) add_goal({ahead_.last, ahead_.start, ahead_.steps});
}

void TrafficSearch::look_ahead(std::size_t width) {
    const Bytes before = ahead_.paid;
    beam(p_, starts_, rules_, width, clock_, progress_, options_.seed, ahead_);
    if (ahead_.paid == before) return;
    // Without R6 the search stands on its own feet; the beam's schedule then only serves when a limit is hit.
    if (rules_.incumbent) add_goal({ahead_.last, ahead_.start, ahead_.steps});
}

Outcome TrafficSearch::look_ahead_only(std::size_t width) {
    start_somewhere();
    for (std::size_t w = 1; w < width && ahead_.paid != 0; w *= 8) look_ahead(w);
    if (ahead_.paid != 0) look_ahead(width);
    const auto end = clock_.check(progress_, 0, true);
    return answer(end.value_or(End::width));
}

Outcome TrafficSearch::solve() {
    start_somewhere();
    if (enough_ > 0) look_ahead(1);
    if (enough_ > 0) look_ahead(8);

    if (enough_ != 0)
        for (const State& first : starts_)
            if (const Ref r = table_.insert(first, no_ref); r != no_ref) push(first, r);
    std::optional<End> end;
    std::size_t width = 8;
    std::uint64_t next_beam_at = 20'000;
    while (!open_.empty()) {
        const Open top = open_.front();
        progress_.bound = std::max(progress_.bound, top.bound);
        if (enough_ <= top.bound) break;
        std::ranges::pop_heap(open_, later);
        open_.pop_back();
        if (table_.killed(top.state)) continue;
        expand(top.state);
        // Before the next bound is read: children that a limit cut off may be cheaper than what is still open.
        if ((end = clock_.check(progress_, bytes()))) break;
        // Wider beams only when the proof takes long enough for them to cost little.
        if (++progress_.states == next_beam_at && rules_.incumbent) {
            look_ahead(width *= 8);
            next_beam_at *= 20;
        }
    }
    return answer(end);
}

Outcome TrafficSearch::answer(std::optional<End> end) {
    Outcome outcome;
    outcome.end = end.value_or(End::complete);
    if (ahead_.paid >= 0 && (goals_.empty() || end)) add_goal({ahead_.last, ahead_.start, ahead_.steps});
    if (goals_.empty()) throw std::invalid_argument("placement search: no order that is allowed fits the budget");
    for (Goal& g : goals_) outcome.arrivals.push_back({boundary(p_, g.last), g.start, std::move(g.steps)});
    const Arrival& best =
        std::ranges::min(outcome.arrivals, {}, [](const Arrival& a) { return a.at.paid; });
    outcome.steps = best.steps;
    outcome.value = best.at.paid;
    outcome.bound = outcome.end == End::complete ? outcome.value : std::min(progress_.bound, outcome.value);
    outcome.expanded = progress_.states;
    outcome.stored = table_.stored();
    outcome.memory = bytes();
    return outcome;
}

}  // namespace

Outcome minimum_traffic(const Problem& p, const Rules& rules, const Options& options, const Limits& limits) {
    std::vector<State> starts;
    for (const Boundary& b : p.starts) starts.push_back(start(p, b));
    if (starts.empty()) starts.push_back(start(p));
    TrafficSearch search(p, std::move(starts), rules, options, limits);
    return options.beam_width == 0 ? search.solve() : search.look_ahead_only(options.beam_width);
}

}  // namespace onchip::placement
