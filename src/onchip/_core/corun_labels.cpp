#include "corun_labels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>

namespace onchip::corun {

double Goal::value(double end_a, double end_b) const {
    if (frames[0] <= 0 && frames[1] <= 0) return std::max(end_a, end_b);
    return 1 / (frames[0] / end_a + frames[1] / end_b);
}

double Goal::bound(double end_a, double end_b, double both) const {
    if (frames[0] <= 0 && frames[1] <= 0) return std::max({end_a, end_b, both});
    return std::min(value(end_a, std::max(end_b, both)), value(std::max(end_a, both), end_b));
}

namespace {

struct Label {
    double time = 0;
    double left[2] = {0, 0};  // of the activity: work alone, or of the move; of no meaning while waiting
    double bound = 0;         // of what it may lead to
    std::uint32_t at[2] = {0, 0};
    std::int32_t parent = -1;
    std::uint8_t fresh = 0;  // the network whose activity began at `time`
};

// What the way back needs of a label.
struct Trail {
    std::uint32_t at[2];
    std::int32_t parent;
};

class Search {
  public:
    Search(const Pair& pair, const Bounds& bounds, const Goal& goal, double upper, bool yields, const Rules& rules,
           std::size_t width, const Limits<std::uint64_t>& limits);

    Outcome run();

  private:
    static constexpr std::size_t ring = 8;  // no event takes both networks further than 4 levels

    // A label's place among those of its level, in the order that dominance looks at them.
    struct Entry {
        double first, second, time;  // left of the fresh network, of the other one
        std::uint32_t index;
        bool operator<(const Entry& o) const {
            if (first < o.first || o.first < first) return first < o.first;
            if (second < o.second || o.second < second) return second < o.second;
            return time < o.time;
        }
    };

    const Chain& net(std::size_t n) const { return pair_.net[n]; }
    std::size_t level_of(const Label& label) const { return progress_[0][label.at[0]] + progress_[1][label.at[1]]; }
    std::size_t state_of(const Label& label) const;
    double bound_of(const Label& label) const;
    void sweep(const std::vector<Label>& level);
    void narrow(const std::vector<Label>& level);
    void begin();
    void expand(const Label& now, std::int32_t index);
    void complete(const Label& now, std::size_t x, std::int32_t parent);
    void ready(Label next, std::size_t x, std::size_t place);
    void put(Label next);
    void finish(const Label& now, std::size_t done, std::int32_t parent);
    std::optional<End> over();
    std::vector<Start> trace() const;

    const Pair& pair_;
    const Bounds& bounds_;
    const Goal goal_;
    const bool yields_;
    const Rules rules_;
    const std::size_t width_;
    Clock<std::uint64_t> clock_;
    const std::size_t fewer_;                 // the network with fewer groups
    std::vector<std::uint32_t> progress_[2];  // by activity: groups and phases before it
    std::vector<std::uint32_t> unit_[2];      // by activity
    double best_;
    bool found_ = false;
    Label last_;              // the best end: one network done, the other alone
    std::deque<Trail> kept_;  // labels expanded
    std::array<std::vector<Label>, ring> pending_;
    std::size_t pending_labels_ = 0;
    std::vector<std::uint32_t> count_, from_;  // labels of a level by state
    std::vector<std::size_t> touched_;         // states of the level
    std::vector<Entry> entries_;
    std::vector<std::uint32_t> left_;  // labels of the level that are not dominated
    std::uint64_t made_ = 0;
};

Search::Search(const Pair& pair, const Bounds& bounds, const Goal& goal, double upper, bool yields, const Rules& rules,
               std::size_t width, const Limits<std::uint64_t>& limits)
    : pair_(pair), bounds_(bounds), goal_(goal), yields_(yields), rules_(rules), width_(width),
      clock_(limits, {.at_once = true}), fewer_(pair.net[0].groups < pair.net[1].groups ? 0u : 1u), best_(upper) {
    for (std::size_t n = 0; n < 2; ++n) {
        for (std::size_t place = 0; place < pair.places(n); ++place) {
            for (std::size_t phase = 0; phase < 3; ++phase) {
                progress_[n].push_back(static_cast<std::uint32_t>(place / pair.units * 3 + phase));
                unit_[n].push_back(static_cast<std::uint32_t>(place % pair.units));
            }
        }
    }
    count_.assign(activity(pair.places(fewer_), moving) * pair.units * 2, 0);
    from_.assign(count_.size(), 0);
}

// What sets labels of one level apart: the level and one network's progress give the other's.
std::size_t Search::state_of(const Label& label) const {
    const std::size_t other = 1 - fewer_;
    return (label.at[fewer_] * pair_.units + unit_[other][label.at[other]]) * 2 + label.fresh;
}

double Search::bound_of(const Label& label) const {
    const double a = label.time + bounds_.alone(0, label.at[0], label.left[0]);
    const double b = label.time + bounds_.alone(1, label.at[1], label.left[1]);
    return goal_.bound(a, b, label.time + bounds_.both(label.at[0], label.left[0], label.at[1], label.left[1]));
}

void Search::put(Label next) {
    ++made_;
    if (rules_.bounds || width_ > 0) {
        next.bound = bound_of(next);
        if (rules_.bounds && next.bound >= best_ * (1 - 1e-9)) return;
    }
    pending_[level_of(next) % ring].push_back(next);
    ++pending_labels_;
}

// Network x is ready to run `place`, the other one's activity in `next` stands: all that may follow.
void Search::ready(Label next, std::size_t x, std::size_t place) {
    const std::size_t y = 1 - x, unit = place % pair_.units;
    const std::size_t other = unit_[y][next.at[y]], phase = next.at[y] % 3;
    const auto run = [&](Label label) {
        label.at[x] = static_cast<std::uint32_t>(activity(place, running));
        label.left[x] = net(x).work[place];
        label.fresh = static_cast<std::uint8_t>(x);
        put(label);
    };
    const auto wait = [&](Label label) {
        label.at[x] = static_cast<std::uint32_t>(activity(place, waiting));
        label.left[x] = 0;
        if (label.fresh > 1) label.fresh = static_cast<std::uint8_t>(x);
        put(label);
    };
    if (phase == running && other == unit) return wait(next);
    run(next);
    if (yields_ && phase != waiting) wait(next);
}

// Network x has come to the end of what it was doing at now.time.
void Search::complete(const Label& now, std::size_t x, std::int32_t parent) {
    const std::size_t y = 1 - x, units = pair_.units, place = now.at[x] / 3;
    const std::size_t group = place / units, unit = place % units;
    Label next = now;
    next.parent = parent;
    next.fresh = 2;  // to be set
    if (now.at[x] % 3 == moving) return ready(next, x, place);
    const std::size_t other = now.at[y] / 3;
    const bool waits = now.at[y] % 3 == waiting, freed = waits && other % units == unit;
    Label served = next;  // the other network takes the unit that this one leaves
    if (freed) {
        served.at[y] = static_cast<std::uint32_t>(activity(other, running));
        served.left[y] = net(y).work[other];
        served.fresh = static_cast<std::uint8_t>(y);
    }
    if (group + 1 == net(x).groups) {
        if (!waits || freed) finish(freed ? served : next, x, parent);
        return;
    }
    for (std::size_t v = 0; v < units; ++v) {
        const std::size_t to = (group + 1) * units + v;
        const double move = net(x).move[place * units + v];
        if (std::isinf(net(x).work[to]) || std::isinf(move)) continue;
        if (move > 0) {
            const auto go = [&](Label label) {
                label.at[x] = static_cast<std::uint32_t>(activity(to, moving));
                label.left[x] = move;
                if (label.fresh > 1) label.fresh = static_cast<std::uint8_t>(x);
                put(label);
            };
            if (freed) go(served);
            if (!freed || yields_) go(next);
        } else {
            if (freed) ready(served, x, to);
            if (!freed || yields_ || v == unit) ready(next, x, to);
        }
    }
}

// Network `done` has ended; the other one meets nobody any more.
void Search::finish(const Label& now, std::size_t done, std::int32_t parent) {
    const std::size_t y = 1 - done;
    double end[2];
    end[done] = now.time;
    end[y] = now.time + bounds_.alone(y, now.at[y], now.left[y]);
    const double value = goal_.value(end[0], end[1]);
    if (value >= best_ * (1 - 1e-12)) return;
    best_ = value, found_ = true;
    last_ = now;
    last_.parent = parent;
    last_.at[done] = static_cast<std::uint32_t>(pair_.places(done) * 3);
}

void Search::expand(const Label& now, std::int32_t index) {
    double rate[2] = {1, 1}, until[2];
    if (now.at[0] % 3 == running && now.at[1] % 3 == running) {
        const std::size_t both = now.at[0] / 3 * pair_.places(1) + now.at[1] / 3;
        rate[0] = pair_.slow[0][both], rate[1] = pair_.slow[1][both];
    }
    for (std::size_t n = 0; n < 2; ++n) until[n] = now.at[n] % 3 == waiting ? never : now.left[n] * rate[n];
    const double step = std::min(until[0], until[1]);
    if (std::isinf(step)) return;  // each waits for the other
    const double tie = 1e-12 * (now.time + step);
    for (std::size_t x = 0; x < 2; ++x) {
        if (until[x] > step + tie) continue;
        Label then = now;
        then.time += step;
        then.left[x] = 0;
        const std::size_t y = 1 - x;
        if (now.at[y] % 3 != waiting)
            then.left[y] = until[y] <= step + tie ? 0 : std::max(0.0, now.left[y] - step / rate[y]);
        complete(then, x, index);
    }
}

// Keeps of the labels in one state those that no other one dominates; without the rule, the earliest of equals.
void Search::sweep(const std::vector<Label>& level) {
    touched_.clear(), left_.clear();
    for (const Label& l : level) {
        const std::size_t state = state_of(l);
        if (count_[state]++ == 0) touched_.push_back(state);
    }
    std::uint32_t sum = 0;
    for (std::size_t state : touched_) from_[state] = sum, sum += count_[state], count_[state] = 0;
    entries_.resize(level.size());
    for (std::uint32_t i = 0; i < level.size(); ++i) {
        const Label& l = level[i];
        const std::size_t state = state_of(l), f = l.fresh;
        entries_[from_[state] + count_[state]++] = {l.left[f], l.left[1 - f], l.time, i};
    }
    for (std::size_t state : touched_) {
        const auto first = entries_.begin() + from_[state], last = first + count_[state];
        count_[state] = 0;
        std::sort(first, last);
        const Entry* before = nullptr;  // the last one kept
        double earliest = never;
        for (auto at = first; at != last; ++at) {
            if (before && before->first < at->first) before = nullptr;
            if (!before) earliest = never;
            else if (rules_.dominance ? at->time >= earliest : at->second <= before->second) continue;
            earliest = std::min(earliest, at->time);
            before = &*at;
            left_.push_back(at->index);
        }
    }
}

// Keeps the labels with the least bounds.
void Search::narrow(const std::vector<Label>& level) {
    const auto less = [&](std::uint32_t l, std::uint32_t r) { return level[l].bound < level[r].bound; };
    std::nth_element(left_.begin(), left_.begin() + static_cast<std::ptrdiff_t>(width_), left_.end(), less);
    left_.resize(width_);
}

std::optional<End> Search::over() {
    return clock_.check(kept_.size(), kept_.size() * sizeof(Trail) + pending_labels_ * sizeof(Label));
}

std::vector<Start> Search::trace() const {
    std::vector<Trail> way{{{last_.at[0], last_.at[1]}, last_.parent}};
    while (way.back().parent >= 0) way.push_back(kept_[static_cast<std::size_t>(way.back().parent)]);
    std::reverse(way.begin(), way.end());
    const std::size_t units = pair_.units;
    std::vector<Start> starts;
    std::size_t runs[2] = {0, 0};  // groups begun
    for (const Trail& l : way) {
        // In a tie of both beginning, either order says the same: they are on different units.
        for (std::size_t n = 0; n < 2; ++n) {
            const std::size_t place = l.at[n] / 3;
            if (l.at[n] % 3 != running || place >= pair_.places(n) || place / units < runs[n]) continue;
            runs[n] = place / units + 1;
            starts.push_back({static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(place / units),
                              static_cast<std::uint32_t>(place % units)});
        }
    }
    // The rest runs alone, by the shortest way.
    const std::size_t done = last_.at[0] / 3 >= pair_.places(0) ? 0u : 1u, y = 1 - done;
    std::size_t place = last_.at[y] / 3;
    if (last_.at[y] % 3 != running)
        starts.push_back({static_cast<std::uint32_t>(y), static_cast<std::uint32_t>(place / units),
                          static_cast<std::uint32_t>(place % units)});
    while (place / units + 1 < net(y).groups) {
        double least = never;
        std::size_t to = 0;
        for (std::size_t v = 0; v < units; ++v) {
            const std::size_t next = (place / units + 1) * units + v;
            const double move = net(y).move[place * units + v];
            if (std::isinf(net(y).work[next]) || std::isinf(move)) continue;
            const double value = move + bounds_.alone(y, activity(next, waiting), 0);
            if (value < least) least = value, to = next;
        }
        place = to;
        starts.push_back({static_cast<std::uint32_t>(y), static_cast<std::uint32_t>(place / units),
                          static_cast<std::uint32_t>(place % units)});
    }
    return starts;
}

// Every choice of first units; where both are the same, of who goes first.
void Search::begin() {
    for (std::size_t a = 0; a < pair_.units; ++a) {
        for (std::size_t b = 0; b < pair_.units; ++b) {
            if (std::isinf(net(0).work[a]) || std::isinf(net(1).work[b])) continue;
            const std::size_t at[2] = {a, b};
            const auto start = [&](bool first, bool second) {
                const bool starts[2] = {first, second};
                Label label;
                for (std::size_t n = 0; n < 2; ++n) {
                    label.at[n] = static_cast<std::uint32_t>(activity(at[n], starts[n] ? running : waiting));
                    label.left[n] = starts[n] ? net(n).work[at[n]] : 0;
                }
                label.fresh = first ? 0 : 1;
                put(label);
            };
            if (a != b) start(true, true);
            if (a == b || yields_) start(true, false), start(false, true);
        }
    }
}

Outcome Search::run() {
    begin();
    const std::size_t levels = 3 * (net(0).groups + net(1).groups);
    bool narrowed = false;
    std::optional<End> ended;
    std::vector<Label> level;
    for (std::size_t n = 0; n <= levels && !ended; ++n) {
        level.swap(pending_[n % ring]);
        pending_[n % ring].clear();
        pending_labels_ -= level.size();
        sweep(level);
        if (width_ > 0 && left_.size() > width_) narrow(level), narrowed = true;
        for (std::uint32_t index : left_) {
            const Label& l = level[index];
            if (rules_.bounds && l.bound >= best_ * (1 - 1e-9)) continue;
            ended = kept_.size() > std::size_t{0x7ffffff0} ? End::memory : over();
            if (ended) break;
            kept_.push_back({{l.at[0], l.at[1]}, l.parent});
            expand(l, static_cast<std::int32_t>(kept_.size() - 1));
        }
    }
    Outcome result;
    result.end = ended ? *ended : narrowed ? End::width : End::complete;
    result.labels = kept_.size(), result.made = made_;
    if (found_) result.value = best_, result.starts = trace();
    result.bound = goal_.bound(bounds_.start(0), bounds_.start(1), bounds_.root());
    return result;
}

}  // namespace

Outcome best_pair(const Pair& pair, const Bounds& bounds, const Goal& goal, double upper, bool yields,
                  const Rules& rules, std::size_t width, const Limits<std::uint64_t>& limits) {
    return Search(pair, bounds, goal, upper, yields, rules, width, limits).run();
}

}  // namespace onchip::corun
