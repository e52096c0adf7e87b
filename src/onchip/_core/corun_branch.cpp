#include "corun_branch.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

namespace onchip::corun {

namespace {

constexpr std::size_t most_chains = 8;

enum class Doing : std::uint8_t { nowhere, moving, waiting, running, ended };  // nowhere: has no unit yet

struct One {
    std::uint32_t group = 0;  // within its chain
    std::uint8_t unit = 0;
    Doing doing = Doing::nowhere;
    std::int16_t switches = 0;
    double left = 0;
    double end = 0;
};

struct State {
    double time = 0;
    std::array<One, most_chains> chain;
};

struct Child {
    State state;
    double bound;
};

class Branch {
  public:
    Branch(const Chains& chains, Slowdowns& slow, const BranchOptions& options,
           const Limits<std::uint64_t>& limits);
    BranchOutcome run();

  private:
    std::size_t place(std::size_t n, std::size_t group, std::size_t unit) const {
        return (chains_.first[n] + group) * units_ + unit;
    }
    std::size_t groups(std::size_t n) const { return chains_.first[n + 1] - chains_.first[n]; }
    double work(std::size_t n, const One& c) const { return chains_.tasks.work[place(n, c.group, c.unit)]; }
    double move(std::size_t n, std::size_t group, std::size_t u, std::size_t v) const {
        return chains_.tasks.move[place(n, group, u) * units_ + v];
    }
    double rate(std::size_t p, const std::vector<double>& weights) const {
        return std::min(1.0, weights[p % units_] * least_[p]);
    }
    template <typename Price> double least_first(std::size_t n, Price price) const;
    template <typename Price> std::vector<double> backwards(Price price, double per_move) const;
    double root_of(const std::vector<double>& weights) const;
    void choose_weights();
    double bound_of(const State& s) const;
    double value_of(const State& s) const;
    void begin(const State& s, std::size_t choice);
    void visit(const State& s);
    void complete(State s, std::size_t x);
    void arrive(State s, std::size_t x);
    void release(const State& s, std::size_t unit, std::size_t x);
    bool busy(const State& s, std::size_t unit) const;
    void start(State& s, std::size_t n) const;
    bool over();

    const Chains& chains_;
    Slowdowns& slow_;
    const BranchOptions& options_;
    const std::size_t units_, count_;
    std::vector<double> least_;                // least slowdown by place; 1 where nothing is known
    std::vector<double> alone_;                // by place, from the end of the group on
    std::vector<std::vector<double>> weights_, after_;
    std::vector<double> whole_;                // least of each chain alone
    std::vector<std::vector<double>> load_;    // least weighted work of each chain, by weights
    std::vector<Child> children_;              // of the state at hand
    std::vector<Start> way_;
    BranchOutcome out_;
    double best_;
    double root_ = 0;
    bool over_ = false;
    Clock<std::uint64_t> clock_;
};

Branch::Branch(const Chains& chains, Slowdowns& slow, const BranchOptions& options,
               const Limits<std::uint64_t>& limits)
    : chains_(chains), slow_(slow), options_(options), units_(chains.tasks.units), count_(chains.count()),
      best_(options.upper), clock_(limits, every_time) {
    const std::size_t places = chains.tasks.work.size();
    least_.assign(places, 1.0);
    if (units_ == 2) {
        std::vector<std::size_t> owner(places / units_);
        for (std::size_t n = 0; n < count_; ++n)
            for (std::size_t g = chains.first[n]; g < chains.first[n + 1]; ++g) owner[g] = n;
        for (std::size_t p = 0; p < places; ++p) {
            double least = never;
            for (std::size_t q = 0; q < places; ++q) {
                if (owner[p / units_] == owner[q / units_] || p % units_ == q % units_) continue;
                if (std::isinf(chains.tasks.work[p]) || std::isinf(chains.tasks.work[q])) continue;
                least = std::min(least, slow.beside(p, q));
            }
            least_[p] = least;
        }
    }
    alone_ = backwards([&](std::size_t p) { return chains_.tasks.work[p]; }, 1.0);
    for (std::size_t n = 0; n < count_; ++n)
        whole_.push_back(least_first(n, [&](std::size_t p) { return chains_.tasks.work[p] + alone_[p]; }));
    choose_weights();
}

// The least price of a chain's first group on any unit that runs it.
template <typename Price> double Branch::least_first(std::size_t n, Price price) const {
    double least = never;
    for (std::size_t u = 0; u < units_; ++u)
        if (!std::isinf(chains_.tasks.work[place(n, 0, u)])) least = std::min(least, price(place(n, 0, u)));
    return least;
}

template <typename Price> std::vector<double> Branch::backwards(Price price, double per_move) const {
    std::vector<double> after(chains_.tasks.work.size(), 0.0);
    for (std::size_t n = 0; n < count_; ++n) {
        for (std::size_t g = groups(n) - 1; g-- > 0;) {
            for (std::size_t u = 0; u < units_; ++u) {
                double best = never;
                for (std::size_t v = 0; v < units_; ++v) {
                    const std::size_t next = place(n, g + 1, v);
                    if (std::isinf(chains_.tasks.work[next])) continue;
                    best = std::min(best, move(n, g, u, v) * per_move + price(next) + after[next]);
                }
                after[place(n, g, u)] = best;
            }
        }
    }
    return after;
}

double Branch::root_of(const std::vector<double>& weights) const {
    const auto price = [&](std::size_t p) { return chains_.tasks.work[p] * rate(p, weights); };
    const std::vector<double> after = backwards(price, 0.0);
    double total = 0;
    for (std::size_t n = 0; n < count_; ++n)
        total += least_first(n, [&](std::size_t p) { return price(p) + after[p]; });
    return total;
}

// The weights that bound the whole best, by steps that shrink, and some around them.
void Branch::choose_weights() {
    std::vector<double> at(units_, 1.0 / static_cast<double>(units_));
    double value = root_of(at);
    const auto shifted = [&](const std::vector<double>& from, std::size_t u, std::size_t v, double by) {
        std::vector<double> to = from;
        by = std::min(by, to[v]);
        to[u] += by, to[v] -= by;
        return to;
    };
    for (double step = 0.25; step > 0.01; step /= 2) {
        for (bool better = true; better;) {
            better = false;
            for (std::size_t u = 0; u < units_; ++u) {
                for (std::size_t v = 0; v < units_; ++v) {
                    if (u == v || at[v] <= 0) continue;
                    const std::vector<double> next = shifted(at, u, v, step);
                    const double now = root_of(next);
                    if (now > value * (1 + 1e-6)) value = now, at = next, better = true;
                }
            }
        }
    }
    weights_.push_back(at);
    for (double by : {0.06, 0.15, 0.3})
        for (std::size_t u = 0; u < std::min<std::size_t>(units_, 3); ++u)
            for (std::size_t v = 0; v < std::min<std::size_t>(units_, 3); ++v)
                if (u != v) weights_.push_back(shifted(at, u, v, by));
    for (const auto& weights : weights_) {
        root_ = std::max(root_, root_of(weights));
        const auto price = [&](std::size_t p) { return chains_.tasks.work[p] * rate(p, weights); };
        const std::vector<double>& after = after_.emplace_back(backwards(price, 0.0));
        std::vector<double>& load = load_.emplace_back();
        for (std::size_t n = 0; n < count_; ++n)
            load.push_back(least_first(n, [&](std::size_t p) { return price(p) + after[p]; }));
    }
}

double Branch::value_of(const State& s) const {
    double latest = 0, sum = 0;
    for (std::size_t n = 0; n < count_; ++n) latest = std::max(latest, s.chain[n].end), sum += 1 / s.chain[n].end;
    return options_.rates ? 1 / sum : latest;
}

double Branch::bound_of(const State& s) const {
    double latest = 0, sum = 0;
    for (std::size_t n = 0; n < count_; ++n) {
        const One& c = s.chain[n];
        double end = c.end;
        if (c.doing == Doing::nowhere) {
            end = whole_[n];
        } else if (c.doing != Doing::ended) {
            end = s.time + c.left + alone_[place(n, c.group, c.unit)];
            if (c.doing != Doing::running) end += work(n, c);
        }
        latest = std::max(latest, end), sum += 1 / end;
    }
    if (options_.rates) return 1 / sum;
    for (std::size_t k = 0; k < weights_.size() && latest < best_; ++k) {
        double total = s.time;
        for (std::size_t n = 0; n < count_; ++n) {
            const One& c = s.chain[n];
            if (c.doing == Doing::nowhere) total += load_[k][n];
            if (c.doing == Doing::nowhere || c.doing == Doing::ended) continue;
            const std::size_t p = place(n, c.group, c.unit);
            total += (c.doing == Doing::running ? c.left : chains_.tasks.work[p]) * rate(p, weights_[k]) + after_[k][p];
        }
        latest = std::max(latest, total);
    }
    return latest;
}

bool Branch::busy(const State& s, std::size_t unit) const {
    for (std::size_t n = 0; n < count_; ++n)
        if (s.chain[n].doing == Doing::running && s.chain[n].unit == unit) return true;
    return false;
}

void Branch::start(State& s, std::size_t n) const {
    One& c = s.chain[n];
    c.doing = Doing::running;
    c.left = work(n, c);
}

// Chain x reaches its unit, which may be free.
void Branch::arrive(State s, std::size_t x) {
    One& c = s.chain[x];
    c.doing = Doing::waiting, c.left = 0;
    const bool free = !busy(s, c.unit);
    if (!free || options_.yields) children_.push_back({s, 0});
    if (!free) return;
    start(s, x);
    children_.push_back({s, 0});
}

// Chain x has left `unit`; it is moving, waiting for that unit, ended, or (at `arrives`) reaches another one.
void Branch::release(const State& s, std::size_t unit, std::size_t x) {
    const bool arrives = s.chain[x].doing == Doing::waiting && s.chain[x].unit != unit;
    const auto next = [&](const State& then) {
        if (arrives) arrive(then, x);
        else children_.push_back({then, 0});
    };
    bool wanted = false;
    for (std::size_t n = 0; n < count_; ++n) {
        if (s.chain[n].doing != Doing::waiting || s.chain[n].unit != unit) continue;
        wanted = true;
        State then = s;
        start(then, n);
        next(then);
    }
    if (!wanted || options_.yields) next(s);
}

void Branch::complete(State s, std::size_t x) {
    One& c = s.chain[x];
    if (c.doing == Doing::moving) return arrive(s, x);
    const std::size_t unit = c.unit, group = c.group;
    c.left = 0;
    if (group + 1 == groups(x)) {
        c.doing = Doing::ended, c.end = s.time;
        return release(s, unit, x);
    }
    for (std::size_t v = 0; v < units_; ++v) {
        if (std::isinf(chains_.tasks.work[place(x, group + 1, v)])) continue;
        State then = s;
        One& o = then.chain[x];
        o.group = static_cast<std::uint32_t>(group + 1), o.unit = static_cast<std::uint8_t>(v);
        // A run's first group is where it likes to be.
        if (chains_.tasks.before[chains_.first[x] + group + 1] == no_task) o.switches = 0;
        else if (v != unit && options_.switches && ++o.switches > *options_.switches) continue;
        const double delay = move(x, group, unit, v);
        o.doing = delay > 0 ? Doing::moving : Doing::waiting;
        o.left = delay;
        release(then, unit, x);
    }
}

bool Branch::over() {
    if (over_) return true;
    if (out_.nodes >= options_.nodes) out_.end = End::nodes;
    if (out_.nodes % 1024 == 0) out_.end = clock_.late(out_.nodes).value_or(out_.end);
    return over_ = out_.end != End::complete;
}

void Branch::visit(const State& s) {
    ++out_.nodes;
    if (over()) return;
    double until[most_chains], factor[most_chains], step = never;
    std::size_t running[most_chains], runs = 0;
    bool all = true;
    for (std::size_t n = 0; n < count_; ++n) {
        if (s.chain[n].doing == Doing::running) running[runs++] = n;
        all &= s.chain[n].doing == Doing::ended;
    }
    if (all) {
        const double value = value_of(s);
        if (value < best_ * (1 - 1e-12)) best_ = out_.value = value, out_.starts = way_;
        return;
    }
    for (std::size_t n = 0; n < count_; ++n) {
        const One& c = s.chain[n];
        factor[n] = 1;
        if (c.doing == Doing::running && runs == 2) {
            const One& o = s.chain[running[0] == n ? running[1] : running[0]];
            const std::size_t m = running[0] == n ? running[1] : running[0];
            factor[n] = slow_.beside(place(n, c.group, c.unit), place(m, o.group, o.unit));
        } else if (c.doing == Doing::running && runs > 2) {
            double external = 0;
            for (std::size_t i = 0; i < runs; ++i) {
                const std::size_t m = running[i];
                if (m != n) external += chains_.tasks.gb[place(m, s.chain[m].group, s.chain[m].unit)];
            }
            factor[n] = slow_.at(place(n, c.group, c.unit), external);
        }
        until[n] = c.doing == Doing::running || c.doing == Doing::moving ? c.left * factor[n] : never;
        step = std::min(step, until[n]);
    }
    if (std::isinf(step)) return;  // they wait for each other
    const double tie = 1e-12 * (s.time + step);
    const std::size_t from = children_.size();
    for (std::size_t x = 0; x < count_; ++x) {
        if (until[x] > step + tie) continue;
        State then = s;
        then.time += step;
        for (std::size_t n = 0; n < count_; ++n) {
            if (std::isinf(until[n])) continue;
            One& c = then.chain[n];
            c.left = until[n] <= step + tie ? 0 : std::max(0.0, c.left - step / factor[n]);
        }
        complete(then, x);
    }
    std::vector<Child> mine(children_.begin() + static_cast<std::ptrdiff_t>(from), children_.end());
    children_.resize(from);
    for (Child& child : mine) child.bound = bound_of(child.state);
    std::sort(mine.begin(), mine.end(), [](const Child& l, const Child& r) { return l.bound < r.bound; });
    for (const Child& child : mine) {
        if (child.bound >= best_ * (1 - 1e-9)) break;
        const std::size_t depth = way_.size();
        for (std::size_t n = 0; n < count_; ++n) {
            const One &now = child.state.chain[n], &before = s.chain[n];
            if (now.doing == Doing::running && (before.doing != Doing::running || before.group != now.group))
                way_.push_back({static_cast<std::uint32_t>(n), now.group, now.unit});
        }
        visit(child.state);
        way_.resize(depth);
        if (over_) return;
    }
}

// The first units, chain by chain, then who begins on each of them: one choice a level, as there are very many.
void Branch::begin(const State& s, std::size_t choice) {
    if (choice == count_ + units_) {
        for (std::size_t n = 0; n < count_; ++n)
            if (s.chain[n].doing == Doing::running) way_.push_back({static_cast<std::uint32_t>(n), 0, s.chain[n].unit});
        visit(s);
        way_.clear();
        return;
    }
    ++out_.nodes;
    if (over()) return;
    std::vector<Child> mine;
    const auto add = [&](const State& then) { mine.push_back({then, bound_of(then)}); };
    if (choice < count_) {
        for (std::size_t u = 0; u < units_; ++u) {
            if (std::isinf(chains_.tasks.work[place(choice, 0, u)])) continue;
            State then = s;
            then.chain[choice].unit = static_cast<std::uint8_t>(u), then.chain[choice].doing = Doing::waiting;
            add(then);
        }
    } else {
        for (std::size_t n = 0; n < count_; ++n) {
            if (s.chain[n].unit != choice - count_) continue;
            State then = s;
            start(then, n);
            add(then);
        }
        if (mine.empty() || options_.yields) add(s);
    }
    std::sort(mine.begin(), mine.end(), [](const Child& l, const Child& r) { return l.bound < r.bound; });
    for (const Child& child : mine) {
        if (child.bound >= best_ * (1 - 1e-9)) break;
        begin(child.state, choice + 1);
        if (over_) return;
    }
}

BranchOutcome Branch::run() {
    double sum = 0;
    for (double least : whole_) sum += 1 / least;
    out_.bound = options_.rates ? 1 / sum : std::max(*std::max_element(whole_.begin(), whole_.end()), root_);
    begin(State{}, 0);
    return out_;
}

}  // namespace

void Chains::check() const {
    tasks.check();
    if (first.size() < 2 || count() > most_chains || first.front() != 0 || first.back() != tasks.count())
        throw std::invalid_argument("corun: chains");
    for (std::size_t n = 0; n < count(); ++n)
        if (first[n] >= first[n + 1]) throw std::invalid_argument("corun: an empty chain");
    if (tasks.work.size() != tasks.count() * tasks.units || tasks.count() > 3000)
        throw std::invalid_argument("corun: rows of chains");
}

BranchOutcome branch(const Chains& chains, Slowdowns& slow, const BranchOptions& options,
                     const Limits<std::uint64_t>& limits) {
    return Branch(chains, slow, options, limits).run();
}

}  // namespace onchip::corun
