// The cheapest partition: a shortest path over the sets of operators that have run (downsets). A partition can run
// exactly when its groups are the steps of such a path.
#include <algorithm>
#include <map>
#include <numeric>

#include "fusion_fuser.h"

namespace onchip::fusion {

namespace {

// A set of operators that have run, how cheaply, and what can run next.
struct State {
    std::size_t at;  // its words in the pool
    std::uint64_t hash;
    Bytes cost, ahead;  // ahead: no way on from here costs less
    Id from, step;      // state before, and the group that led here: a candidate, or an operator behind them
    Id in;              // the last way found to come here
    std::vector<Id> ready;
};

class Search {
  public:
    Search(const Problem& problem, const Rules& rules, Clock& clock, const Limits& limits)
        : problem_(problem), rules_(rules), clock_(clock), limits_(limits), words_(problem.words()) {}

    // A way into a state.
    struct Way {
        Id from, step, next;
    };
    // Where a group begins and what has to have run before it.
    struct Step {
        Id candidate;
        std::uint32_t needs, needed, sources, begun;  // ranges of ids_
    };

    const Problem& problem_;
    const Rules& rules_;
    Clock& clock_;
    const Limits& limits_;
    std::size_t words_;
    std::vector<Word> pool_;
    std::vector<State> states_;
    Slots<no_id> table_{64};
    std::vector<Id> ids_;
    std::vector<Way> ways_;
    std::vector<std::vector<Step>> steps_;  // by the first operator of the group

    std::size_t bytes() const {
        return pool_.size() * sizeof(Word) + states_.size() * (sizeof(State) + 32) + table_.bytes() +
               ways_.size() * sizeof(Way);
    }

    void offer(Id candidate, std::span<const Id> members, const std::vector<Id>& mark, Id stamp) {
        Step s{candidate, static_cast<std::uint32_t>(ids_.size()), 0, 0, 0};
        for (const Id v : members)
            for (const Id p : problem_.before[v])
                if (mark[p] != stamp) ids_.push_back(p);
        std::sort(ids_.begin() + s.needs, ids_.end());
        ids_.erase(std::unique(ids_.begin() + s.needs, ids_.end()), ids_.end());
        s.needed = static_cast<std::uint32_t>(ids_.size()) - s.needs;
        s.sources = static_cast<std::uint32_t>(ids_.size());
        for (const Id v : members)
            if (std::none_of(problem_.before[v].begin(), problem_.before[v].end(),
                             [&](Id p) { return mark[p] == stamp; }))
                ids_.push_back(v);
        s.begun = static_cast<std::uint32_t>(ids_.size()) - s.sources;
        steps_[members.front()].push_back(s);
    }

    bool can_run(const Step& s, const Word* done) const {
        for (std::uint32_t i = s.needs; i < s.needs + s.needed; ++i)
            if (!test(done, ids_[i])) return false;
        for (std::uint32_t i = s.sources; i < s.sources + s.begun; ++i)
            if (test(done, ids_[i])) return false;
        return true;
    }

    // The state after `from` and the group; its number, and whether it is new.
    std::pair<Id, bool> reach(Id from, std::span<const Id> members) {
        std::uint64_t hash = states_[from].hash;
        for (const Id v : members) hash ^= random_word(v);
        const std::size_t at = pool_.size();
        pool_.resize(at + words_);
        std::copy_n(pool_.begin() + static_cast<std::ptrdiff_t>(states_[from].at), words_,
                    pool_.begin() + static_cast<std::ptrdiff_t>(at));
        for (const Id v : members) add(&pool_[at], v);
        const Id known = table_.find(hash, [&](Id i) {
            const State& s = states_[i];
            return s.hash == hash && std::equal(pool_.begin() + static_cast<std::ptrdiff_t>(at), pool_.end(),
                                                pool_.begin() + static_cast<std::ptrdiff_t>(s.at));
        });
        if (known != no_id) {
            pool_.resize(at);
            return {known, false};
        }
        const auto id = static_cast<Id>(states_.size());
        table_.put(id, hash, [&](Id i) { return states_[i].hash; });
        State next{at, hash, unlimited, 0, from, no_id, no_id, {}};
        for (const Id r : states_[from].ready)
            if (!test(&pool_[at], r)) next.ready.push_back(r);
        for (const Id v : members)
            for (const Id s : problem_.after[v]) {
                if (test(&pool_[at], s) ||
                    std::find(next.ready.begin(), next.ready.end(), s) != next.ready.end())
                    continue;
                const auto& before = problem_.before[s];
                if (std::all_of(before.begin(), before.end(), [&](Id p) { return test(&pool_[at], p); }))
                    next.ready.push_back(s);
            }
        states_.push_back(std::move(next));
        return {id, true};
    }

    Id start() {
        pool_.assign(words_, 0);
        State first{0, 0, 0, 0, no_id, no_id, no_id, {}};
        for (Id v = 0; v < problem_.operators.size(); ++v)
            if (problem_.before[v].empty()) first.ready.push_back(v);
        states_.push_back(std::move(first));
        table_.put(0, 0, [](Id) { return 0; });
        return 0;
    }
};

}  // namespace

// An operator alone: in bands, in blocks, or as the caller says.
Cost Fuser::single(Id op, Bytes budget) {
    const Id one[] = {op};
    evaluator_.load(one);
    Cost cost;
    const Bytes bands = evaluator_.best(budget, unlimited);
    if (bands < unlimited) cost = evaluator_.describe();
    // Where everything crosses once and no row is skipped, blocks cannot do better.
    const Operator& o = problem_->operators[op];
    const bool least = bands <= evaluator_.floor() && o.skipped == 0;
    // Boxes may do better even then: they skip what no element of theirs needs, weights too.
    if (bands >= unlimited || (problem_->options.blocks && !(least && o.boxes.empty()))) {
        const std::optional<Blocked>& found = blocks_.best(op, budget);
        if (found) {
            const Bytes crossing = evaluator_.group().crossing;
            const Bytes again = found->input - problem_->tensors[o.inputs.front().tensor].bytes;
            if (crossing + again + found->weight < cost.dram) {
                cost = {};
                cost.dram = crossing + again + found->weight, cost.crossing = crossing;
                cost.halo = again, cost.weight = found->weight, cost.scratch = found->scratch;
                cost.subgroups = found->tiles, cost.blocks = found;
            }
        }
    }
    if (fallback_[op] < cost.dram) cost = {}, cost.dram = fallback_[op];
    return cost;
}

std::vector<Id> Fuser::misfits(Bytes budget) {
    std::vector<Id> result;
    for (Id v = 0; v < problem_->operators.size(); ++v)
        if (single(v, budget).dram >= unlimited) result.push_back(v);
    return result;
}

Cost Fuser::cost(std::span<const Id> members, Bytes budget, Bytes limit) {
    if (members.size() == 1) return single(members[0], budget);
    evaluator_.load(members);
    if (evaluator_.best(budget, limit) >= unlimited) return {};
    return evaluator_.describe();
}

Bytes Fuser::least_scratch(std::span<const Id> members, std::int64_t bands) {
    evaluator_.load(members);
    return evaluator_.least_scratch(bands);
}

Partition Fuser::best(Bytes budget, std::size_t largest, const Rules& rules, const Limits& limits) {
    Partition result;
    Clock clock(limits);
    const auto n = static_cast<Id>(problem_->operators.size());
    std::vector<Bytes> alone(n);
    Bytes sum = 0;
    std::vector<Cost> singles(n);
    for (Id v = 0; v < n; ++v) {
        singles[v] = single(v, budget);
        alone[v] = singles[v].dram;
        if (alone[v] >= unlimited) {
            result.misfit = v;
            return result;
        }
        sum += alone[v];
    }
    // Half of the time for the candidates, so that some is left to put them together.
    Limits some = limits;
    if (some.seconds >= 0) some.seconds /= 2;
    Clock growing(some);
    const bool all = enumerate(budget, rules, growing);
    result.candidates = candidates_.size();

    // What the cost of an operator is at least, however it is grouped: shares of a group's floor that add up to no
    // more than the floor, by what its operators cost one by one.
    std::vector<Id> members, mark(n, no_id);
    std::vector<Bytes> cost(candidates_.size()), least(alone);
    std::vector<char> exact(candidates_.size(), 0);
    Search search(*problem_, rules, clock, limits);
    search.steps_.resize(n);
    // Out of room there is time for some more states, out of time for one way through.
    const auto hurry = [&] { return clock.ended().value_or(End::memory) != End::memory; };
    const auto share = [&](Bytes part, Bytes whole, Bytes of) {
        return of == 0 ? Bytes{0}
                       : static_cast<Bytes>(static_cast<double>(part) * (static_cast<double>(whole) /
                                            static_cast<double>(of)) * (1 - 1e-9));
    };
    // The cost of the candidate that is loaded, below `limit`. A large one alone may take longer than there is
    // time: then the best way found to run it is kept, for it would not be found again.
    std::map<Id, Cost> unproved;
    bool cut = false;
    evaluator_.until([&] { return clock.check({result.candidates, search.states_.size()}, memory()) && hurry(); });
    const auto evaluate = [&](Id c, Bytes limit) {
        ++result.evaluated;
        const Bytes found = evaluator_.best(budget, limit);
        if (evaluator_.was_cut()) {
            cut = true;
            if (found < unlimited) unproved[c] = evaluator_.describe();
        }
        return found;
    };
    for (Id c = 0; c < candidates_.size(); ++c) {
        const Candidate& candidate = candidates_[c];
        if (largest && candidate.operators > largest) continue;
        sets_.members(candidate.set, members);
        Bytes by_one = 0;
        for (const Id v : members) by_one += alone[v], mark[v] = c;
        if (rules.worth && candidate.floor >= by_one) continue;
        cost[c] = candidate.floor;
        candidates_[c].alone = by_one;
        if (!rules.lazy) {
            evaluator_.load(members);
            cost[c] = evaluate(c, rules.worth ? by_one : unlimited);
            exact[c] = 1;
            if (cost[c] >= unlimited) continue;
            if ((c & 63) == 0 && clock.check({result.candidates, 0}, memory())) break;
        }
        ++result.kept;
        for (const Id v : members) least[v] = std::min(least[v], share(alone[v], cost[c], by_one));
        search.offer(c, members, mark, c);
    }
    const Bytes ahead = std::accumulate(least.begin(), least.end(), Bytes{0});

    // Forward, sets with fewer operators first: when a set's turn comes, all ways into it are known.
    search.start();
    search.states_[0].ahead = ahead;
    std::vector<std::vector<Id>> layers(n + 1);
    layers[0].push_back(0);
    const Bytes known = sum;  // a partition that is there anyway
    const auto first_single = static_cast<Id>(candidates_.size());
    bool beam = clock.ended().has_value();
    constexpr std::size_t wide = 16;  // states of a layer that are followed when memory is over
    std::vector<char> bounded(candidates_.size(), 0), dead(candidates_.size(), 0);

    const auto late = [&] {
        return clock.check({result.candidates, search.states_.size()}, memory() + search.bytes()).has_value();
    };
    const auto by_way = [&](Id w) {  // the state's cost by this way, or less
        const Search::Way& way = search.ways_[w];
        const Bytes price = way.step >= first_single ? alone[way.step - first_single] : cost[way.step];
        return search.states_[way.from].cost + price;
    };

    // What the state costs: the cheapest way in, groups evaluated only while they can still be it. Out of time
    // the first that is known, of those that promise most.
    std::vector<std::pair<Bytes, Id>> heap;
    const auto settle = [&](Id id) {
        heap.clear();
        for (Id w = search.states_[id].in; w != no_id; w = search.ways_[w].next) heap.emplace_back(by_way(w), w);
        std::make_heap(heap.begin(), heap.end(), std::greater<>());
        while (!heap.empty()) {
            std::pop_heap(heap.begin(), heap.end(), std::greater<>());
            const auto [total, w] = heap.back();
            heap.pop_back();
            const Search::Way way = search.ways_[w];
            const Bytes before = search.states_[way.from].cost;
            State& s = search.states_[id];
            if (total >= s.cost) break;
            if (way.step >= first_single || (exact[way.step] && !dead[way.step])) {
                s.cost = total, s.from = way.from, s.step = way.step;
                break;  // nothing that is left in the heap is below
            }
            const Id c = way.step;
            if (dead[c]) continue;
            const Bytes worth = rules.worth ? candidates_[c].alone : unlimited;
            sets_.members(candidates_[c].set, members);
            evaluator_.load(members);
            if (rules.lazy && !bounded[c]) {
                bounded[c] = 1;
                cost[c] = std::max(cost[c], evaluator_.lower(budget, worth));
            } else {
                const Bytes limit = std::min(worth, s.cost - before);
                const Bytes found = evaluate(c, limit);
                if (found < unlimited)
                    cost[c] = found, exact[c] = 1;
                else
                    cost[c] = limit >= worth || evaluator_.was_cut() ? unlimited : std::max(cost[c], limit);
            }
            if (cost[c] >= unlimited) {
                dead[c] = 1;
                continue;
            }
            if (before + cost[c] >= s.cost) continue;
            if (exact[c] && late() && hurry()) {
                s.cost = before + cost[c], s.from = way.from, s.step = c;
                break;
            }
            heap.emplace_back(before + cost[c], w);
            std::push_heap(heap.begin(), heap.end(), std::greater<>());
        }
    };
    for (Id layer = 0; layer < n; ++layer) {
        std::vector<Id>& states = layers[layer];
        std::size_t settled = 0;
        for (; settled < states.size() && !beam; ++settled) {
            settle(states[settled]);
            beam = late();
        }
        const auto promise = [&](Id id) { return search.states_[id].cost + search.states_[id].ahead; };
        if (settled < states.size()) {
            // What is cut off need not be priced: in a wide layer alone that may take as long as all before.
            const auto rest = states.begin() + static_cast<std::ptrdiff_t>(settled);
            std::vector<std::pair<Bytes, Id>> hopes;
            for (auto i = rest; i != states.end(); ++i) {
                Bytes least_way = unlimited;
                for (Id w = search.states_[*i].in; w != no_id; w = search.ways_[w].next)
                    least_way = std::min(least_way, by_way(w));
                if (least_way < unlimited) hopes.emplace_back(least_way + search.states_[*i].ahead, *i);
            }
            std::sort(hopes.begin(), hopes.end());
            states.erase(rest, states.end());
            std::size_t open = std::count_if(states.begin(), states.end(),
                                             [&](Id id) { return search.states_[id].cost < unlimited; });
            for (const auto& [hope, id] : hopes) {
                if (open >= (hurry() ? 1U : 4 * wide)) break;
                settle(id);
                late();
                open += search.states_[id].cost < unlimited;
                states.push_back(id);
            }
        }
        std::erase_if(states, [&](Id id) { return search.states_[id].cost >= unlimited; });
        const std::size_t width = hurry() ? 1 : wide;
        if (beam && states.size() > width) {
            std::sort(states.begin(), states.end(), [&](Id a, Id b) { return promise(a) < promise(b); });
            states.resize(width);
        }
        for (const Id id : states) {
            if (!beam && (late() || (limits.states && search.states_.size() > limits.states)))
                beam = true;  // from here on only the most promising states, so that some partition comes out
            ++result.states;
            const Bytes here = search.states_[id].cost, to_go = search.states_[id].ahead;
            if (rules.incumbent && here + to_go > known) continue;
            const std::vector<Id> ready = search.states_[id].ready;
            const auto go = [&](std::span<const Id> group, Bytes price, Id step) {
                Bytes passed = 0;
                for (const Id v : group) passed += least[v];
                if (rules.incumbent && here + price + to_go - passed > known) return;
                ++result.transitions;
                const auto [next, fresh] = search.reach(id, group);
                State& s = search.states_[next];
                if (fresh) {
                    s.ahead = to_go - passed;
                    layers[layer + group.size()].push_back(next);
                }
                search.ways_.push_back({id, step, s.in});
                s.in = static_cast<Id>(search.ways_.size() - 1);
            };
            for (const Id r : ready) {
                const Id one[] = {r};
                go(one, alone[r], first_single + r);
                std::vector<Search::Step>& steps = search.steps_[r];
                for (std::size_t i = 0; i < steps.size();) {
                    const Id c = steps[i].candidate;
                    if (dead[c]) {
                        steps[i] = steps.back();
                        steps.pop_back();
                        continue;
                    }
                    if (search.can_run(steps[i++], &search.pool_[search.states_[id].at])) {
                        sets_.members(candidates_[c].set, members);
                        go(members, cost[c], c);
                    }
                }
            }
        }
    }
    for (const Id id : layers[n]) settle(id);
    result.memory = memory() + search.bytes();
    result.end = clock.ended().value_or(growing.ended().value_or(beam || cut || !all ? End::memory : End::complete));
    std::vector<Id> steps;
    Id at = layers[n].empty() ? no_id : layers[n].front();
    for (; at != no_id && search.states_[at].step != no_id; at = search.states_[at].from) {
        const Id step = search.states_[at].step;
        if (step >= first_single)
            members.assign(1, step - first_single);
        else
            sets_.members(candidates_[step].set, members);
        result.groups.push_back(members);
        steps.push_back(step);
    }
    std::reverse(result.groups.begin(), result.groups.end());
    std::reverse(steps.begin(), steps.end());
    result.cost = 0;
    evaluator_.until({});
    const auto cost_of = [&](Id c) {
        if (const auto kept = unproved.find(c); kept != unproved.end()) return kept->second;
        sets_.members(candidates_[c].set, members);
        evaluator_.load(members);
        evaluator_.best(budget, cost[c] + 1);
        return evaluator_.describe();
    };
    for (std::size_t i = 0; i < steps.size(); ++i) {
        Cost described = steps[i] >= first_single ? singles[steps[i] - first_single] : cost_of(steps[i]);
        result.cost += described.dram;
        result.costs.push_back(std::move(described));
    }
    result.complete = all && !beam && !cut;
    // Whatever the groups, weights and outputs cross once (inputs need not: windows with gaps skip rows).
    Bytes least_once = 0;
    for (const Operator& op : problem_->operators) least_once += op.weight;
    for (const Tensor& t : problem_->tensors)
        if (t.output && t.producer != no_id) least_once += t.bytes;
    result.bound = result.complete ? result.cost : std::max(least_once, all ? ahead : 0);
    return result;
}

}  // namespace onchip::fusion
