#include "placement_state.h"

namespace onchip::placement {

State start(const Problem& p) {
    State s(p);
    for (Id t = 0; t < p.tensors(); ++t)
        if (p.graph_input[t] && (!p.readers[t].empty() || p.lives_on[t])) {
            add(s.live(), t);
            add(s.copied(), t);  // not resident: its first load is compulsory, so prepaid
        }
    return s;
}

State start(const Problem& p, const Boundary& from) {
    State s = start(p);
    for (Id t = 0; t < p.tensors(); ++t)
        if (test(s.live(), t)) drop(s.copied(), t);
    for (Id t : from.copied) add(s.copied(), t);
    for (Id t : from.resident) {
        add(s.resident(), t);
        s.used += p.size[t];
    }
    s.paid = from.paid;
    return s;
}

Boundary boundary(const Problem& p, const State& s) {
    Boundary b;
    for (Id t = 0; t < p.tensors(); ++t) {
        if (test(s.resident(), t)) b.resident.push_back(t);
        if (test(s.copied(), t)) b.copied.push_back(t);
    }
    b.paid = s.paid;
    return b;
}

Bytes worth(const Problem& p, const State& s) {
    Bytes total = s.paid;
    each(s.resident(), s.tensor_words(), [&](Id t) { total += evict_cost(p, s, t); });
    return total;
}

bool dominates(const Problem& p, const State& a, const State& b) {
    Bytes total = a.paid;
    for (std::size_t w = 0; w < a.tensor_words() && total <= b.paid; ++w) {
        const Word evicted = a.resident()[w] & ~b.resident()[w];
        const auto charge = [&](Id t) { total += p.cost[t]; };
        const Id base = static_cast<Id>(w * 64);
        each_bit(evicted, base, charge);
        each_bit(evicted & ~a.copied()[w], base, charge);
        each_bit(b.copied()[w] & ~(a.copied()[w] | evicted), base, charge);
    }
    return total <= b.paid;
}

bool is_ready(const Problem& p, const State& s, Id v) {
    if (!p.order.empty() && p.order[s.depth] != v) return false;
    return !test(s.done(), v) &&
           std::ranges::all_of(p.before[v], [&](Id u) { return test(s.done(), u); });
}

void ready_operators(const Problem& p, const State& s, std::vector<Id>& ready) {
    ready.clear();
    if (s.depth == p.operators()) return;
    if (!p.order.empty()) {
        ready.push_back(p.order[s.depth]);
        return;
    }
    const auto consider = [&](Id v) {
        if (is_ready(p, s, v)) ready.push_back(v);
    };
    // A ready operator reads live tensors only, and is met at the first of its inputs.
    each(s.live(), s.tensor_words(), [&](Id t) {
        for (Id v : p.readers[t])
            if (std::ranges::min(p.inputs[v]) == t) consider(v);
    });
    for (Id v : p.sources) consider(v);
}

Bytes need(const Problem& p, const State& s, Id v) {
    Bytes bytes = p.workspace[v];
    for (Id t : p.inputs[v])
        if (!test(s.resident(), t)) bytes += p.size[t];
    const bool in_place = std::ranges::any_of(p.overwrites[v], [&](Id x) {
        return !p.lives_on[x] && std::ranges::all_of(p.readers[x], [&](Id r) { return r == v || test(s.done(), r); });
    });
    if (!in_place)
        for (Id t : p.outputs[v]) bytes += p.size[t];
    return bytes;
}

void evict(const Problem& p, State& s, Id t) {
    s.paid += evict_cost(p, s, t);
    s.used -= p.size[t];
    drop(s.resident(), t);
    add(s.copied(), t);
}

void run(const Problem& p, State& s, Id v) {
    add(s.done(), v);
    ++s.depth;
    s.hash ^= p.hash[v];
    for (Id t : p.inputs[v]) {
        const bool dies =
            !p.lives_on[t] && std::ranges::all_of(p.readers[t], [&](Id r) { return test(s.done(), r); });
        if (test(s.resident(), t)) {
            if (!dies) continue;
            s.used -= p.size[t];
        } else if (!dies) {
            add(s.resident(), t);
            s.used += p.size[t];
            continue;
        }
        drop(s.live(), t);
        drop(s.resident(), t);
        drop(s.copied(), t);
    }
    for (Id t : p.outputs[v]) {
        if (p.readers[t].empty() && !p.lives_on[t]) continue;  // dead as soon as v ends; an output has been written by then
        add(s.live(), t);
        add(s.resident(), t);
        if (p.graph_output[t]) add(s.copied(), t);
        s.used += p.size[t];
    }
}

}  // namespace onchip::placement
