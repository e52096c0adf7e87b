// The search tree: where to branch, what to try, what to remember, when to start again.
#include "pack_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "hash.h"

namespace onchip::pack {

bool RefutedStates::contains(const Key& key) const {
    for (std::size_t i = 0; i < probes; ++i) {
        if (slots_[(key.a + i) & (slots_.size() - 1)] == key) return true;
    }
    return false;
}

bool RefutedStates::put(const Key& key) {
    for (std::size_t i = 0; i < probes; ++i) {
        Key& slot = slots_[(key.a + i) & (slots_.size() - 1)];
        if (slot == key) return true;
        if (slot == Key{}) {
            slot = key;
            ++used_;
            return true;
        }
    }
    return false;
}

void RefutedStates::insert(const Key& key) {
    if (slots_.size() < most && used_ * 2 > slots_.size()) {
        std::vector<Key> old(slots_.size() * 4);
        old.swap(slots_);
        used_ = 0;
        for (const Key& k : old) {
            if (k != Key{}) put(k);
        }
    }
    if (!put(key)) slots_[(key.a + key.b % probes) & (slots_.size() - 1)] = key;
}

Search::Search(const Instance& instance, const Rules& rules, std::uint64_t seed, Clock<std::int64_t>& clock)
    : in_(instance), rules_(rules), clock_(clock), random_(seed) {
    const auto n = static_cast<std::size_t>(in_.buffers), m = static_cast<std::size_t>(in_.sections);
    lo_.assign(n, 0);
    why_.assign(n, {});
    where_.assign(n, Where::open);
    priority_.assign(n, 0);
    sections_.assign(m, {});
    dirty_.assign(m, 0);
    crossing_.assign(m, 0);
    cut_dirty_.assign(m, 0);
    for (int s = 0; s < in_.sections; ++s) {
        std::vector<Entry> row;
        for (int b : in_.members[s]) row.push_back({0, b});
        sorted_.push(row);
    }
    for (int b = 0; b < in_.buffers; ++b) {
        lo_[b] = in_.lift(b, std::max<std::int64_t>(in_.fixed[b], 0));
        if (in_.fixed[b] >= 0) {
            // Where it is never changes and every raise heeds it: it joins no stretches of time.
            where_[b] = Where::fixed;
            continue;
        }
        for (int cut = in_.first[b]; cut + 1 < in_.last[b]; ++cut) ++crossing_[cut];
    }
}

Outcome Search::run(std::int64_t node_limit) {
    if (!in_.possible) return Outcome::infeasible;
    for (int b = 0; b < in_.buffers; ++b) touch(b);
    Reasons conflict;
    if (!propagate(conflict)) return Outcome::infeasible;
    const Mark root = mark();
    constexpr int orders = 6;
    double budget = std::max(100.0, 2.0 * in_.buffers);  // a dive without failure takes a node per buffer
    for (int turn = 0;; ++turn) {
        rank(turn % orders, turn < orders ? 0.0 : 0.3);
        limit_ = rules_.restarts ? std::min(node_limit, nodes_ + static_cast<std::int64_t>(budget)) : node_limit;
        out_of_nodes_ = too_deep_ = false;
        if (solve(0, in_.sections, 0, conflict)) return Outcome::packed;
        if (!out_of_nodes_ && !too_deep_ && !stopped_) return Outcome::infeasible;
        undo(root);
        if (stopped_ || nodes_ >= node_limit || (too_deep_ && turn >= 2 * orders)) return Outcome::unknown;
        if (turn % orders == orders - 1) budget *= 1.5;
    }
}

// The six orders in which candidates are tried.
void Search::rank(int order, double noise) {
    double horizon = 1;
    for (std::int64_t w : in_.width) horizon = std::max(horizon, static_cast<double>(w));
    std::normal_distribution<double> gauss(0.0, 1.0);
    const double capacity = static_cast<double>(std::max<std::int64_t>(in_.capacity, 1));
    for (int b = 0; b < in_.buffers; ++b) {
        const double size = static_cast<double>(in_.size[b]), width = static_cast<double>(in_.width[b]);
        double load = 0;
        for (int s = in_.first[b]; s < in_.last[b]; ++s) load += static_cast<double>(in_.load[s]);
        load /= capacity * (in_.last[b] - in_.first[b]);
        double score = 0;
        switch (order) {
            case 0: score = std::log(size) + std::log(width); break;
            case 1: score = 4 * std::log(width) + std::log(size); break;
            case 2: score = 4 * std::log(size) + std::log(width); break;
            case 3: score = load + width / horizon; break;
            case 4: score = load + width / horizon * size / capacity; break;
            default: score = std::log(width) + 0.5 * std::log(size); break;
        }
        priority_[b] = score + (noise > 0 ? noise * gauss(random_) : 0.0);
    }
}

bool Search::stop() {
    ++nodes_;
    if (nodes_ - polled_ >= 64) {
        polled_ = nodes_;
        if (clock_.late(nodes_)) stopped_ = true;
    }
    if (nodes_ >= limit_) out_of_nodes_ = true;
    return stopped_ || out_of_nodes_;
}

Key Search::state(int begin, int end) const {
    Key key;
    for (int b = in_.first_of_section[begin]; b < in_.first_of_section[end]; ++b) {
        if (!unplaced(b)) continue;
        const std::uint64_t h = mix(static_cast<std::uint64_t>(lo_[b]) + mix(static_cast<std::uint64_t>(b)));
        key.a ^= h;
        // Mixed the other way round, so that what collides in one word does not collide in the other.
        key.b ^= mix(static_cast<std::uint64_t>(b) ^ mix(static_cast<std::uint64_t>(lo_[b]) ^ 0x5851f42d4c957f2d));
    }
    return key;
}

void Search::explain_state(int begin, int end, Reasons& conflict) const {
    conflict = Reasons{};
    for (int b = in_.first_of_section[begin]; b < in_.first_of_section[end]; ++b) {
        if (unplaced(b)) conflict.merge(why_[b]);
    }
}

// Stretches of sections that no unplaced buffer leaves, shortest first: a failure shows soonest there.
std::vector<Search::Part> Search::parts(int begin, int end) const {
    std::vector<Part> result;
    for (int s = begin; s < end;) {
        int e = s + 1;
        while (e < end && crossing_[e - 1] > 0) ++e;
        if (e - s > 1 || sections_[s].total > 0) result.push_back({s, e});
        s = e;
    }
    std::stable_sort(result.begin(), result.end(),
                     [](const Part& x, const Part& y) { return x.end - x.begin < y.end - y.begin; });
    return result;
}

// Fail first, then heaviest first, among the sections of every run of equal floor whose neighbours are strictly higher: its
// candidates lie inside the run, so nothing can still come to lie below them. One with a gap also lies elsewhere:
// there it has to be the lowest, too. The runs of the least floor of all always qualify.
Search::Choice Search::choose(int begin, int end) const {
    Choice best;
    for (int s = begin; s < end;) {
        int e = s + 1;
        while (e < end && sections_[e].floor == sections_[s].floor) ++e;
        const std::int64_t floor = sections_[s].floor;
        const bool left = s == begin || sections_[s - 1].floor > floor;
        const bool right = e == end || sections_[e].floor > floor;
        if (left && right && floor != never) choose_in_run(s, e, best);
        s = e;
    }
    return best;
}

void Search::choose_in_run(int begin, int end, Choice& best) const {
    auto distance = [&](int s) { return rules_.last_conflict ? std::abs(s - last_conflict_) : s; };
    for (int s = begin; s < end; ++s) {
        if (in_.has_gaps && !at_bottom(s)) continue;
        const Choice here{s, sections_[s].candidates + (waste(s) > 0), sections_[s].total};
        if (best.section < 0 || std::tuple(here.options, -here.total, distance(s)) <
                                    std::tuple(best.options, -best.total, distance(best.section))) {
            best = here;
        }
    }
}

std::vector<int> Search::candidates(int section) const {
    std::vector<int> result;
    for (int b : in_.members[section]) {
        if (unplaced(b) && lo_[b] == sections_[section].floor) result.push_back(b);
    }
    return result;
}

// Solve the unplaced buffers of sections [begin, end), which none of them leaves. True leaves them placed;
// false is a refutation of the state, resting on `conflict`, unless the search was stopped.
bool Search::solve(int begin, int end, int level, Reasons& conflict) {
    std::vector<Key> passed;  // states this call went through; all fall with the last
    auto refuted = [&] {
        if (rules_.table && !stopped_ && !out_of_nodes_ && !too_deep_) {
            for (const Key& key : passed) refuted_.insert(key);
        }
        return false;
    };
    for (;;) {
        if (rules_.decompose) {
            const auto split = parts(begin, end);
            if (split.size() > 1) {
                for (const Part& part : split) {
                    if (!solve(part.begin, part.end, level, conflict)) return refuted();
                }
                return true;
            }
            if (split.empty()) return true;
            begin = split[0].begin;
            end = split[0].end;
        }
        const Choice choice = choose(begin, end);
        if (choice.section < 0) return true;
        if (stop()) return false;
        if (rules_.table) {
            const Key key = state(begin, end);
            if (refuted_.contains(key)) {
                explain_state(begin, end, conflict);
                return refuted();
            }
            if (passed.size() < 2) passed.push_back(key);
        }
        if (choice.options > 1) return branch(begin, end, level, choice, conflict) || refuted();
        Reasons why;  // one candidate and no room for a gap
        explain_section(choice.section, why);
        place(candidates(choice.section).front(), why);
        if (!propagate(conflict)) return refuted();
    }
}

bool Search::branch(int begin, int end, int level, const Choice& choice, Reasons& conflict) {
    if (level >= deepest) {
        too_deep_ = true;
        return false;
    }
    std::vector<int> tries = candidates(choice.section);
    std::sort(tries.begin(), tries.end(), [&](int x, int y) {
        return std::tuple(-priority_[x], x) < std::tuple(-priority_[y], y);
    });
    const bool gap = choice.options > static_cast<int>(tries.size());
    if (gap) tries.push_back(-1);
    Reasons all;
    for (std::size_t i = 0; i < tries.size(); ++i) {
        const int c = tries[i];
        if (c >= 0 && rules_.symmetry) {
            const auto twin = std::find_if(tries.begin(), tries.begin() + static_cast<std::ptrdiff_t>(i),
                                           [&](int t) { return in_.kind[t] == in_.kind[c]; });
            if (twin != tries.begin() + static_cast<std::ptrdiff_t>(i)) {
                all.merge(why_[c]);
                all.merge(why_[*twin]);
                continue;
            }
        }
        const Mark here = mark();
        Reasons failed;
        bool possible;
        if (c >= 0) {
            Reasons why;
            why.add(level);
            place(c, why);
            possible = propagate(failed);
        } else {
            possible = forbid_floor(choice.section, level, failed) && propagate(failed);
        }
        if (possible && solve(begin, end, level + 1, failed)) return true;
        undo(here);
        if (stopped_ || out_of_nodes_ || too_deep_) return false;
        if (rules_.backjump && !failed.has(level)) {
            conflict = failed;
            return false;
        }
        failed.remove(level);
        all.merge(failed);
    }
    if (!gap) explain_section(choice.section, all);
    conflict = all;
    return false;
}

}  // namespace onchip::pack
