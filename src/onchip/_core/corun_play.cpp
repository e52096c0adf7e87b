#include "corun_play.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace onchip::corun {

bool Tasks::runs_on(Task t, std::size_t unit) const { return !std::isinf(work[row[t] * units + unit]); }

void Tasks::check() const {
    const std::size_t places = work.size();
    if (units == 0 || units > 255 || places % units != 0 || gb.size() != places || move.size() != places * units)
        throw std::invalid_argument("corun: lengths of groups");
    for (double w : work)
        if (!(w > 0)) throw std::invalid_argument("corun: work");
    for (double v : gb)
        if (!(v >= 0) || std::isinf(v)) throw std::invalid_argument("corun: bandwidth");
    for (double m : move)
        if (!(m >= 0) || std::isinf(m)) throw std::invalid_argument("corun: move");
    if (before.size() != count() || gates.size() != count()) throw std::invalid_argument("corun: lengths of tasks");
    for (Task t = 0; t < count(); ++t) {
        if (row[t] >= places / units) throw std::invalid_argument("corun: row");
        if (before[t] != no_task && before[t] >= count()) throw std::invalid_argument("corun: before");
        for (Task g : gates[t])
            if (g >= count()) throw std::invalid_argument("corun: gate");
    }
}

Slowdowns::Slowdowns(const Tasks& tasks, Model model)
    : tasks_(tasks), model_(std::move(model)), places_(tasks.work.size()), more_(places_) {
    if (places_ <= 2000) two_.assign(places_ * places_, 0.0);
}

double Slowdowns::at(std::size_t place, double external) {
    if (external <= 0) return 1;
    const auto [it, fresh] = more_[place].try_emplace(external, 1.0);
    if (fresh) {
        const double s = model_(place % tasks_.units, tasks_.gb[place], external);
        if (!(s >= 1) || std::isinf(s)) throw std::invalid_argument("corun: a slowdown below 1");
        it->second = s;
    }
    return it->second;
}

double Slowdowns::beside(std::size_t place, std::size_t other) {
    if (two_.empty()) return at(place, tasks_.gb[other]);
    double& known = two_[place * places_ + other];
    if (known <= 0) known = at(place, tasks_.gb[other]);
    return known;
}

Player::Player(const Tasks& tasks, Slowdowns& slow)
    : tasks_(tasks), slow_(slow), after_(tasks.count()), needs_(tasks.count()) {
    for (Task t = 0; t < tasks.count(); ++t) {
        if (tasks.before[t] != no_task) after_[tasks.before[t]].push_back(t), ++needs_[t];
        for (Task g : tasks.gates[t]) after_[g].push_back(t), ++needs_[t];
    }
}

bool Player::play(const std::vector<std::uint8_t>& unit, const Order& order, std::vector<double>& ends) {
    return run(unit, &order, nullptr, ends, nullptr);
}

void Player::dispatch(const std::vector<std::uint8_t>& unit, const std::vector<std::uint32_t>& rank, Order& order,
                      std::vector<double>& ends, std::vector<Task>& starts) {
    starts.clear();
    run(unit, nullptr, &rank, ends, &starts);
    order.assign(tasks_.units, {});
    for (Task t : starts) order[unit[t]].push_back(t);
}

bool Player::run(const std::vector<std::uint8_t>& unit, const Order* order, const std::vector<std::uint32_t>* rank,
                 std::vector<double>& ends, std::vector<Task>* starts) {
    const std::size_t units = tasks_.units;
    double now = 0;
    std::size_t done = 0;
    ends.assign(tasks_.count(), never);
    left_ = needs_;
    head_.assign(units, 0);
    running_.clear(), waiting_.clear();
    for (Task t = 0; t < tasks_.count(); ++t)
        if (left_[t] == 0) waiting_.push_back({t, 0});
    while (done < tasks_.count()) {
        for (std::size_t u = 0; u < units; ++u) {
            bool busy = false;
            for (const Running& r : running_) busy |= r.place % units == u;
            if (busy) continue;
            std::size_t pick = waiting_.size();
            if (order) {
                if (head_[u] == (*order)[u].size()) continue;
                const Task next = (*order)[u][head_[u]];
                for (std::size_t i = 0; i < waiting_.size(); ++i)
                    if (waiting_[i].task == next && waiting_[i].ready <= now) pick = i;
            } else {
                for (std::size_t i = 0; i < waiting_.size(); ++i) {
                    const Waiting& w = waiting_[i];
                    if (unit[w.task] != u || w.ready > now) continue;
                    if (pick == waiting_.size() || w.ready < waiting_[pick].ready ||
                        (w.ready <= waiting_[pick].ready && (*rank)[w.task] < (*rank)[waiting_[pick].task]))
                        pick = i;
                }
            }
            if (pick == waiting_.size()) continue;
            const Task t = waiting_[pick].task;
            waiting_[pick] = waiting_.back(), waiting_.pop_back();
            ++head_[u];
            const std::size_t place = tasks_.row[t] * units + u;
            running_.push_back({t, place, tasks_.work[place], 1});
            if (starts) starts->push_back(t);
        }
        if (running_.size() == 2) {
            running_[0].slow = slow_.beside(running_[0].place, running_[1].place);
            running_[1].slow = slow_.beside(running_[1].place, running_[0].place);
        } else {
            for (Running& r : running_) {
                double external = 0;
                for (const Running& o : running_)
                    if (&o != &r) external += tasks_.gb[o.place];
                r.slow = slow_.at(r.place, external);
            }
        }
        double until = never;
        for (const Running& r : running_) until = std::min(until, now + r.left * r.slow);
        for (const Waiting& w : waiting_)
            if (w.ready > now) until = std::min(until, w.ready);
        if (std::isinf(until)) return false;
        for (std::size_t i = running_.size(); i-- > 0;) {
            Running& r = running_[i];
            if (now + r.left * r.slow > until) {
                r.left -= (until - now) / r.slow;
                continue;
            }
            const Task t = r.task;
            running_[i] = running_.back(), running_.pop_back();  // has been looked at already
            ends[t] = until;
            ++done;
            for (Task a : after_[t]) {
                if (--left_[a] != 0) continue;
                double ready = until;
                const Task b = tasks_.before[a];
                if (b != no_task)
                    ready = std::max(ready, ends[b] + tasks_.move[(tasks_.row[b] * units + unit[b]) * units + unit[a]]);
                waiting_.push_back({a, ready});
            }
        }
        now = until;
    }
    return true;
}

}  // namespace onchip::corun
