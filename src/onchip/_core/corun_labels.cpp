#include "corun_labels.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

namespace onchip::corun {

double Goal::value(double end_a, double end_b) const {
    if (frames[0] <= 0 && frames[1] <= 0) return std::max(end_a, end_b);
    return 1 / (frames[0] / end_a + frames[1] / end_b);
}

double Goal::bound(double end_a, double end_b, double both) const {
    return std::min(value(end_a, std::max(end_b, both)), value(std::max(end_a, both), end_b));
}

namespace {

struct Label {
    double time = 0;
    double left[2] = {0, 0};  // of the activity: work alone, or of the move; of no meaning while waiting
    std::uint32_t at[2] = {0, 0};
    std::int32_t parent = -1;
    std::uint8_t fresh = 0;  // the network whose activity began at `time`
};

class Search {
  public:
    Search(const Pair& pair, const Goal& goal, double upper, bool yields, const Rules& rules, const Limits& limits)
        : pair_(pair), goal_(goal), bounds_(pair), yields_(yields), rules_(rules), limits_(limits), best_(upper) {}

    Outcome run();

  private:
    using Steady = std::chrono::steady_clock;
    static constexpr std::size_t ring = 8;  // no event takes both networks further than 4 levels

    const Chain& net(std::size_t n) const { return pair_.net[n]; }
    std::size_t level_of(const Label& label) const;
    double bound_of(const Label& label) const;
    bool dominated_sweep(std::vector<Label>& level);
    void narrow(std::vector<Label>& level);
    void expand(std::int32_t index);
    void complete(const Label& now, std::size_t x, std::int32_t parent);
    void ready(Label next, std::size_t x, std::size_t place);
    void put(Label next);
    void finish(const Label& now, std::size_t done, std::int32_t parent);
    std::optional<End> over();
    std::vector<Start> trace() const;

    const Pair& pair_;
    const Goal goal_;
    const Bounds bounds_;
    const bool yields_;
    const Rules rules_;
    const Limits& limits_;
    double best_;
    bool found_ = false;
    Label last_;                  // the best end: one network done, the other alone
    std::vector<Label> kept_;     // for the way back
    std::array<std::vector<Label>, ring> pending_;
    std::uint64_t made_ = 0, calls_ = 0;
    std::size_t waiting_labels_ = 0;
    Steady::time_point began_ = Steady::now(), next_poll_ = began_;
};

std::size_t progress(std::uint32_t at, std::size_t units) {
    const std::size_t place = at / 3;
    return place / units * 3 + at % 3;
}

std::size_t Search::level_of(const Label& label) const {
    return progress(label.at[0], pair_.units) + progress(label.at[1], pair_.units);
}

double Search::bound_of(const Label& label) const {
    const double a = bounds_.alone(0, label.at[0], label.left[0]), b = bounds_.alone(1, label.at[1], label.left[1]);
    const double both = bounds_.pair(label.at[0], label.left[0], label.at[1], label.left[1], best_ - label.time);
    return goal_.bound(label.time + a, label.time + b, label.time + both);
}

void Search::put(Label next) {
    ++made_;
    if (rules_.bounds && bound_of(next) >= best_ * (1 - 1e-9)) return;
    pending_[level_of(next) % ring].push_back(next);
    ++waiting_labels_;
}

// Network x is ready to run `place`, the other one's activity in `next` stands: all that may follow.
void Search::ready(Label next, std::size_t x, std::size_t place) {
    const std::size_t y = 1 - x, unit = place % pair_.units;
    const std::size_t other = next.at[y] / 3 % pair_.units, phase = next.at[y] % 3;
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
    const std::size_t y = 1 - x, units = pair_.units, place = now.at[x] / 3, group = place / units, unit = place % units;
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

void Search::expand(std::int32_t index) {
    const Label now = kept_[static_cast<std::size_t>(index)];
    double rate[2] = {1, 1}, until[2];
    if (now.at[0] % 3 == running && now.at[1] % 3 == running) {
        const std::size_t both = now.at[0] / 3 * pair_.places(1) + now.at[1] / 3;
        rate[0] = pair_.slow[0][both], rate[1] = pair_.slow[1][both];
    }
    for (std::size_t n = 0; n < 2; ++n) until[n] = now.at[n] % 3 == waiting ? never : now.left[n] * rate[n];
    const double step = std::min(until[0], until[1]);
    if (std::isinf(step)) return;  // each waits for the other
    const double tie = 1e-12 * (1 + step);
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
bool Search::dominated_sweep(std::vector<Label>& level) {
    const auto state = [](const Label& l) {
        return std::uint64_t{l.at[0]} << 33 | std::uint64_t{l.at[1]} << 1 | std::uint64_t{l.fresh};
    };
    std::sort(level.begin(), level.end(), [&](const Label& l, const Label& r) {
        const std::uint64_t one = state(l), two = state(r);
        if (one != two) return one < two;
        const std::size_t fresh = l.fresh, other = 1 - fresh;
        if (l.left[fresh] < r.left[fresh] || l.left[fresh] > r.left[fresh]) return l.left[fresh] < r.left[fresh];
        if (l.left[other] < r.left[other] || l.left[other] > r.left[other]) return l.left[other] < r.left[other];
        return l.time < r.time;
    });
    std::size_t count = 0;
    double earliest = never;
    for (std::size_t i = 0; i < level.size(); ++i) {
        const Label& l = level[i];
        bool drop = false;
        if (count > 0) {
            const Label& before = level[count - 1];
            const std::size_t f = l.fresh;
            const bool same = before.at[0] == l.at[0] && before.at[1] == l.at[1] && before.fresh == f &&
                              before.left[f] == l.left[f];
            if (!same) earliest = never;
            else if (rules_.dominance) drop = l.time >= earliest;
            else drop = before.left[1 - f] == l.left[1 - f];
        }
        if (drop) continue;
        earliest = std::min(earliest, l.time);
        level[count++] = l;
    }
    const bool fewer = count < level.size();
    level.resize(count);
    return fewer;
}

void Search::narrow(std::vector<Label>& level) {
    std::vector<std::pair<double, std::size_t>> order(level.size());
    for (std::size_t i = 0; i < level.size(); ++i) order[i] = {bound_of(level[i]), i};
    const auto middle = order.begin() + static_cast<std::ptrdiff_t>(limits_.width);
    std::nth_element(order.begin(), middle, order.end());
    std::vector<Label> few;
    for (std::size_t i = 0; i < limits_.width; ++i) few.push_back(level[order[i].second]);
    level = std::move(few);
}

std::optional<End> Search::over() {
    if ((kept_.size() + waiting_labels_) * sizeof(Label) > limits_.memory) return End::memory;
    if (++calls_ % 64 != 0) return std::nullopt;
    const auto at = Steady::now();
    if (limits_.seconds >= 0 && at - began_ > std::chrono::duration<double>(limits_.seconds)) return End::time;
    if (limits_.stop && at >= next_poll_) {
        next_poll_ = at + std::chrono::milliseconds(100);
        if (limits_.stop(kept_.size())) return End::stopped;
    }
    return std::nullopt;
}

std::vector<Start> Search::trace() const {
    std::vector<Label> way{last_};
    for (std::int32_t at = last_.parent; at >= 0; at = kept_[static_cast<std::size_t>(at)].parent)
        way.push_back(kept_[static_cast<std::size_t>(at)]);
    std::reverse(way.begin(), way.end());
    const std::size_t units = pair_.units;
    std::vector<Start> starts;
    std::size_t runs[2] = {0, 0};  // groups begun
    for (const Label& l : way) {
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

Outcome Search::run() {
    Outcome result;
    for (std::size_t a = 0; a < pair_.units; ++a) {
        for (std::size_t b = 0; b < pair_.units; ++b) {
            if (std::isinf(net(0).work[a]) || std::isinf(net(1).work[b])) continue;
            Label first;
            const std::size_t at[2] = {a, b};
            for (std::size_t runs = 0; runs < 2; ++runs) {
                if (a != b && runs == 1) continue;
                for (std::size_t n = 0; n < 2; ++n) {
                    const bool starts = a != b || n == runs;
                    first.at[n] = static_cast<std::uint32_t>(activity(at[n], starts ? running : waiting));
                    first.left[n] = starts ? net(n).work[at[n]] : 0;
                }
                first.fresh = static_cast<std::uint8_t>(runs);
                put(first);
            }
            if (yields_ && a != b) {
                for (std::size_t runs = 0; runs < 2; ++runs) {
                    for (std::size_t n = 0; n < 2; ++n) {
                        first.at[n] = static_cast<std::uint32_t>(activity(at[n], n == runs ? running : waiting));
                        first.left[n] = n == runs ? net(n).work[at[n]] : 0;
                    }
                    first.fresh = static_cast<std::uint8_t>(runs);
                    put(first);
                }
            }
        }
    }
    const std::size_t levels = 3 * (net(0).groups + net(1).groups);
    bool narrowed = false;
    std::optional<End> ended;
    for (std::size_t level = 0; level <= levels && !ended; ++level) {
        std::vector<Label> labels = std::move(pending_[level % ring]);
        pending_[level % ring].clear();
        waiting_labels_ -= labels.size();
        dominated_sweep(labels);
        if (limits_.width && labels.size() > limits_.width) narrow(labels), narrowed = true;
        for (const Label& l : labels) {
            if (kept_.size() > std::size_t{0x7ffffff0}) ended = End::memory;
            if (!ended) ended = over();
            if (ended) break;
            kept_.push_back(l);
            expand(static_cast<std::int32_t>(kept_.size() - 1));
        }
    }
    result.end = ended ? *ended : narrowed ? End::width : End::complete;
    result.labels = kept_.size(), result.made = made_;
    if (found_) result.value = best_, result.starts = trace();
    const double alone[2] = {bounds_.start(0), bounds_.start(1)};
    result.bound = goal_.bound(alone[0], alone[1], bounds_.root());
    return result;
}

}  // namespace

Outcome best_pair(const Pair& pair, const Goal& goal, double upper, bool yields, const Rules& rules,
                  const Limits& limits) {
    return Search(pair, goal, upper, yields, rules, limits).run();
}

}  // namespace onchip::corun
