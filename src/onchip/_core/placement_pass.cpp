#include "placement_pass.h"

#include <algorithm>
#include <queue>

namespace onchip::placement {

std::vector<Id> topological(const Problem& p, const State& from) {
    if (!p.order.empty()) return {p.order.begin() + from.depth, p.order.end()};
    std::vector<std::size_t> waits(p.operators());
    std::vector<std::vector<Id>> after(p.operators());
    std::priority_queue<Id, std::vector<Id>, std::greater<>> ready;
    for (Id v = 0; v < p.operators(); ++v) {
        if (test(from.done(), v)) continue;
        for (Id u : p.before[v])
            if (!test(from.done(), u)) ++waits[v], after[u].push_back(v);
        if (waits[v] == 0) ready.push(v);
    }
    std::vector<Id> order;
    while (!ready.empty()) {
        const Id v = ready.top();
        ready.pop();
        order.push_back(v);
        for (Id u : after[v])
            if (--waits[u] == 0) ready.push(u);
    }
    return order;
}

namespace {

struct Candidate {
    double price;  // of a byte
    std::size_t next;
    Id tensor;
};

// The heap's top is what leaves first.
bool stays(const Candidate& a, const Candidate& b) {
    if (a.price != b.price) return a.price > b.price;
    return a.next != b.next ? a.next < b.next : a.tensor > b.tensor;
}

class Pass {
  public:
    Pass(const Problem& p, const State& from, Clock& clock) : p_(p), clock_(clock), order_(topological(p, from)), s_(from) {
        reads_.resize(p.tensors());
        cursor_.resize(p.tensors());
        for (std::size_t i = 0; i < order_.size(); ++i)
            for (Id t : p.inputs[order_[i]]) reads_[t].push_back(i);
    }

    bool walk() {
        for (std::size_t i = 0; i < order_.size(); ++i) {
            const Id v = order_[i];
            std::vector<Id> out;
            if (const Bytes missing = s_.used + need(p_, s_, v) - p_.budget; missing > 0) out = leave(i, v, missing);
            for (Id t : out) evict(p_, s_, t);
            if (s_.used + need(p_, s_, v) > p_.budget) return false;
            run(p_, s_, v);
            steps.push_back({v, std::move(out)});
        }
        return true;
    }

    std::vector<Step> steps;
    State& last() { return s_; }

  private:
    std::vector<Id> leave(std::size_t i, Id v, Bytes missing) {
        std::vector<bool>& read = marked_;
        read.resize(p_.tensors());
        for (Id t : p_.inputs[v]) read[t] = true;
        std::vector<Candidate> heap;
        const bool hurry = clock_.check({}, 0, true).has_value();
        each(s_.resident(), s_.tensor_words(), [&](Id t) {
            if (read[t] || p_.size[t] == 0) return;
            if (!hurry) {
                auto& at = cursor_[t];
                while (at < reads_[t].size() && reads_[t][at] < i) ++at;
            }
            const std::size_t next = cursor_[t] < reads_[t].size() ? reads_[t][cursor_[t]] : order_.size();
            heap.push_back({static_cast<double>(evict_cost(p_, s_, t)) / static_cast<double>(p_.size[t]), next, t});
        });
        for (Id t : p_.inputs[v]) read[t] = false;
        std::vector<Id> out;
        if (hurry) {
            for (const Candidate& c : heap) out.push_back(c.tensor);
            return out;
        }
        std::ranges::make_heap(heap, stays);
        while (missing > 0 && !heap.empty()) {
            std::ranges::pop_heap(heap, stays);
            out.push_back(heap.back().tensor);
            missing -= p_.size[heap.back().tensor];
            heap.pop_back();
        }
        // What the last one made needless stays, the dearest first.
        std::ranges::stable_sort(out, [&](Id a, Id b) { return evict_cost(p_, s_, a) > evict_cost(p_, s_, b); });
        std::erase_if(out, [&](Id t) {
            if (missing + p_.size[t] > 0) return false;
            missing += p_.size[t];
            return true;
        });
        return out;
    }

    const Problem& p_;
    Clock& clock_;
    const std::vector<Id> order_;
    State s_;
    std::vector<std::vector<std::size_t>> reads_;  // per tensor: positions in the order
    std::vector<std::size_t> cursor_;
    std::vector<bool> marked_;
};

}  // namespace

void pass(const Problem& p, const std::vector<State>& starts, Clock& clock, Incumbent& best) {
    const auto cheapest = std::ranges::min_element(starts, {}, &State::paid);
    Pass one(p, *cheapest, clock);
    if (!one.walk() || best.beats(one.last().paid)) return;
    best.steps = std::move(one.steps);
    best.paid = one.last().paid;
    best.start = static_cast<std::size_t>(cheapest - starts.begin());
    best.last = std::move(one.last());
}

}  // namespace onchip::placement
