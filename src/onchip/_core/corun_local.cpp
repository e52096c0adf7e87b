#include "corun_local.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>

namespace onchip::corun {

double Aim::value(const std::vector<double>& ends) const {
    const std::size_t jobs = last.size(), frames = last.front().size();
    if (kind == throughput) {
        const auto done = [&](std::size_t frame) {
            double at = 0;
            for (const auto& job : last) at = std::max(at, ends[job[frame]]);
            return at;
        };
        const std::size_t half = frames / 2;
        if (half == 0) return done(frames - 1);
        return (done(frames - 1) - done(half - 1)) / static_cast<double>(frames - half);
    }
    double worst = 0, sum = 0;
    for (std::size_t j = 0; j < jobs; ++j) {
        double latest = 0;
        for (std::size_t f = 0; f < frames; ++f) {
            double taken = 0;
            if (f > 0 && pipelined) {
                taken = never;
                for (std::uint32_t first : firsts[j]) taken = std::min(taken, ends[last[first][f - 1]]);
            } else if (f > 0) {
                for (const auto& job : last) taken = std::max(taken, ends[job[f - 1]]);
            }
            latest = std::max(latest, ends[last[j][f]] - taken);
        }
        worst = std::max(worst, latest);
        sum += 1 / latest;
    }
    return kind == latency ? worst : 1 / sum;
}

namespace {

// The order in which the units run a candidate's tasks.
Order order_of(const Tasks& tasks, const Stream& stream, const Candidate& candidate) {
    Order order(tasks.units);
    const std::size_t frames = stream.task.front().size();
    const std::size_t most = *std::max_element(stream.lag.begin(), stream.lag.end());
    for (std::size_t period = 0; period < frames + most; ++period) {
        for (std::uint32_t token : candidate.sequence) {
            const std::size_t lag = stream.lag[token];
            if (period >= lag && period - lag < frames)
                order[candidate.unit[token]].push_back(stream.task[token][period - lag]);
        }
    }
    return order;
}

constexpr std::size_t most_unasked = 10'000;  // about a millisecond

class Local {
  public:
    Local(const Tasks& tasks, Slowdowns& slow, const Stream& stream, const Aim& aim, std::uint64_t tries,
          std::uint64_t seed, const Limits<LocalProgress>& limits)
        : tasks_(tasks), stream_(stream), aim_(aim), most_tries_(tries), clock_(limits, every_time), player_(tasks, slow),
          random_(seed),
          frames_(stream.task.front().size()) {
        std::vector<std::uint32_t> chains(stream.chain);
        std::sort(chains.begin(), chains.end());
        chains.erase(std::unique(chains.begin(), chains.end()), chains.end());
        for (std::uint32_t c : chains) {
            members_.emplace_back();
            for (std::uint32_t t = 0; t < stream.chain.size(); ++t)
                if (stream.chain[t] == c) members_.back().push_back(t);
        }
    }

    LocalOutcome run(const std::vector<Candidate>& starts);

  private:
    double cost(const Candidate& c) {
        ++tries_, played_ += tasks_.count();
        unit_.resize(tasks_.count());
        for (std::size_t token = 0; token < stream_.task.size(); ++token)
            for (Task t : stream_.task[token]) unit_[t] = c.unit[token];
        if (!player_.play(unit_, order_of(tasks_, stream_, c), ends_)) return never;
        return aim_.value(ends_);
    }
    std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }
    double chance() { return std::uniform_real_distribution<double>(0, 1)(random_); }
    bool allowed(std::uint32_t token, std::size_t unit) const { return tasks_.runs_on(stream_.task[token][0], unit); }

    bool remap(Candidate& c);
    bool shift(Candidate& c);
    bool reorder(Candidate& c);
    void restart_order(Candidate& c);
    void scatter(Candidate& c);
    bool over();

    const Tasks& tasks_;
    const Stream& stream_;
    const Aim& aim_;
    const std::uint64_t most_tries_;
    Clock<LocalProgress> clock_;
    Player player_;
    std::mt19937_64 random_;
    std::size_t frames_;
    std::vector<std::vector<std::uint32_t>> members_;  // tokens by chain
    std::vector<std::uint8_t> unit_;
    std::vector<double> ends_;
    std::uint64_t tries_ = 0;
    std::size_t played_ = most_unasked;  // tasks since the clock and the caller were asked
    double best_ = never;
};

// A stretch of one network goes to another unit.
bool Local::remap(Candidate& c) {
    const auto& chain = members_[below(members_.size())];
    const std::size_t from = below(chain.size());
    std::size_t length = 1;
    if (chance() < 0.2) length = chain.size();
    else while (length < chain.size() && chance() < 0.6) ++length;
    const std::size_t unit = below(tasks_.units);
    bool changed = false;
    for (std::size_t i = from; i < std::min(chain.size(), from + length); ++i) {
        if (c.unit[chain[i]] == unit || !allowed(chain[i], unit)) continue;
        c.unit[chain[i]] = static_cast<std::uint8_t>(unit), changed = true;
    }
    return changed;
}

// Where a network changes its unit moves by a group or a few.
bool Local::shift(Candidate& c) {
    const auto& chain = members_[below(members_.size())];
    std::vector<std::size_t> changes;
    for (std::size_t i = 1; i < chain.size(); ++i)
        if (c.unit[chain[i]] != c.unit[chain[i - 1]]) changes.push_back(i);
    if (changes.empty()) return false;
    const std::size_t at = changes[below(changes.size())], by = 1 + below(3);
    bool changed = false;
    const bool later = chance() < 0.5;
    const std::uint8_t unit = later ? c.unit[chain[at - 1]] : c.unit[chain[at]];
    for (std::size_t i = 0; i < by; ++i) {
        if (later ? at + i >= chain.size() : i + 1 > at) break;
        const std::uint32_t token = chain[later ? at + i : at - 1 - i];
        if (!allowed(token, unit)) break;
        changed |= c.unit[token] != unit;
        c.unit[token] = unit;
    }
    return changed;
}

// One group goes before or after some of other networks.
bool Local::reorder(Candidate& c) {
    const std::size_t from = below(c.sequence.size()), far = 1 + below(std::min<std::size_t>(12, c.sequence.size()));
    const std::uint32_t token = c.sequence[from];
    const bool later = chance() < 0.5;
    std::size_t at = from;
    bool passed = false;
    for (std::size_t i = 0; i < far; ++i) {
        if (later ? at + 1 >= c.sequence.size() : at == 0) break;
        const std::size_t next = later ? at + 1 : at - 1;
        if (stream_.chain[c.sequence[next]] == stream_.chain[token]) break;
        passed |= c.unit[c.sequence[next]] == c.unit[token];
        std::swap(c.sequence[at], c.sequence[next]);
        at = next;
    }
    return passed;
}

// The order of who is ready first, for the present mapping; of a single frame only.
void Local::restart_order(Candidate& c) {
    std::vector<std::uint32_t> rank(tasks_.count()), token_of(tasks_.count());
    for (std::uint32_t i = 0; i < c.sequence.size(); ++i) {
        const Task t = stream_.task[c.sequence[i]][0];
        rank[t] = i, token_of[t] = c.sequence[i];
        unit_[t] = c.unit[c.sequence[i]];
    }
    Order order;
    std::vector<Task> starts;
    ++tries_, played_ += tasks_.count();
    player_.dispatch(unit_, rank, order, ends_, starts);
    for (std::size_t i = 0; i < starts.size(); ++i) c.sequence[i] = token_of[starts[i]];
}

// Any mapping with few changes of unit, in any order.
void Local::scatter(Candidate& c) {
    std::vector<std::size_t> next(members_.size(), 0);
    for (const auto& chain : members_) {
        std::size_t unit = below(tasks_.units);
        const std::size_t change = below(2 * chain.size());
        for (std::size_t i = 0; i < chain.size(); ++i) {
            if (i == change) unit = below(tasks_.units);
            if (allowed(chain[i], unit)) c.unit[chain[i]] = static_cast<std::uint8_t>(unit);
        }
    }
    for (std::uint32_t& token : c.sequence) {
        std::size_t at = below(members_.size());
        while (next[at] == members_[at].size()) at = (at + 1) % members_.size();
        token = members_[at][next[at]++];
    }
    if (frames_ == 1) restart_order(c);
}

bool Local::over() {
    if (tries_ >= most_tries_) return true;
    if (played_ < most_unasked) return false;
    played_ = 0;
    return clock_.late({tries_, best_}).has_value();
}

LocalOutcome Local::run(const std::vector<Candidate>& starts) {
    LocalOutcome result;
    for (const Candidate& start : starts) {
        const double value = cost(start);
        if (result.best.unit.empty() || value < result.value) result.best = start, result.value = value;
    }
    best_ = result.value;
    Candidate now = result.best;
    double value = result.value;
    const std::uint64_t cycle = std::clamp<std::uint64_t>(most_tries_ / 12, 500, 20000);
    while (!over()) {
        // Cools within a cycle; cycles begin by turns at the best so far, at one of the starts, anywhere.
        const double heat = 1 - static_cast<double>(tries_ % cycle) / static_cast<double>(cycle);
        if (tries_ % cycle < 3) {
            const std::size_t turn = tries_ / cycle;
            now = turn % 3 == 1 ? starts[below(starts.size())] : result.best;
            if (turn % 3 == 2) scatter(now);
            value = cost(now);
        }
        Candidate next = now;
        const double dice = chance();
        bool changed = false;
        if (dice < 0.35) changed = remap(next);
        else if (dice < 0.65) changed = shift(next);
        else changed = reorder(next);
        if (!changed) {
            ++tries_, played_ += stream_.task.size();  // as many were copied
            continue;
        }
        if (frames_ == 1 && dice < 0.45) restart_order(next);
        const double then = cost(next);
        if (then < value || (then < value * (1 + 0.1 * heat * heat) && chance() < 0.3)) {
            now = std::move(next), value = then;
            if (value < result.value * (1 - 1e-12)) result.best = now, result.value = best_ = value;
        }
    }
    result.order = order_of(tasks_, stream_, result.best);
    result.tries = tries_, result.end = clock_.ended().value_or(End::complete);
    return result;
}

}  // namespace

LocalOutcome improve(const Tasks& tasks, Slowdowns& slow, const Stream& stream, const Aim& aim,
                     const std::vector<Candidate>& starts, std::uint64_t tries, std::uint64_t seed,
                     const Limits<LocalProgress>& limits) {
    if (starts.empty() || stream.task.empty()) throw std::invalid_argument("corun: no start");
    if (stream.chain.size() != stream.task.size() || stream.lag.size() != stream.task.size() || aim.last.empty() ||
        aim.last.front().empty() || aim.firsts.size() != aim.last.size())
        throw std::invalid_argument("corun: lengths of a stream");
    for (const Candidate& c : starts) {
        if (c.unit.size() != stream.task.size() || c.sequence.size() != stream.task.size())
            throw std::invalid_argument("corun: lengths of a start");
        for (std::uint32_t token : c.sequence)
            if (token >= stream.task.size()) throw std::invalid_argument("corun: token");
        for (std::uint8_t unit : c.unit)
            if (unit >= tasks.units) throw std::invalid_argument("corun: unit");
    }
    return Local(tasks, slow, stream, aim, tries, seed, limits).run(starts);
}

}  // namespace onchip::corun
