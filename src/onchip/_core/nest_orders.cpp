#include "nest_orders.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "bits.h"

namespace onchip::nests {

namespace {

// The axes that cut all of these uses, and those that cut any.
std::pair<Set, Set> common_and_any(const std::vector<Set>& cuts, Set active) {
    Set common = ~Set{0}, any = 0;
    each_bit(active, 0, [&](Id u) {
        common &= cuts[u];
        any |= cuts[u];
    });
    return {common, any};
}

void take(Order& order, Set axes) {
    each_bit(axes, 0, [&](Id axis) { order.axes.push_back(axis); });
}

bool within(const Order& less, const Order& more) {
    for (std::size_t u = 0; u < less.cut.size(); ++u)
        if (less.cut[u] & ~more.cut[u]) return false;
    return !more.summed || (less.summed && !(less.before & ~more.before));
}

}  // namespace

void Orders::extend(const Walk& walk, Set active, Set gone, Order order, std::vector<Order>& found) const {
    const auto [common, any] = common_and_any(walk.cuts, active);
    if (!every_order_ && active) {  // an axis that cuts all of them comes first: it costs none
        take(order, common & walk.axes & ~gone);
        gone |= common & walk.axes;
    }
    each_bit(active, 0, [&](Id u) { order.cut[u] = gone & walk.cuts[u]; });
    if (!active || !(any & walk.axes & ~gone)) {
        found.push_back(std::move(order));
        return;
    }
    std::vector<Set> tried;
    each_bit(any & walk.axes & ~gone, 0, [&](Id axis) {
        Set left = 0;
        each_bit(active, 0, [&](Id u) { left |= has(walk.cuts[u], axis) ? one(u) : 0; });
        if (!every_order_ && std::find(tried.begin(), tried.end(), left) != tried.end()) return;
        tried.push_back(left);
        Order next = order;
        take(next, one(axis));
        extend(walk, left, gone | one(axis), std::move(next), found);
    });
}

// As far as the first slice along a sum: the output, too, is to be cut until then.
void Orders::extend_to_sum(const Walk& walk, Set active, Set gone, Order order, std::vector<Order>& found) const {
    const auto [common, any] = common_and_any(walk.cuts, active);
    const Set free = walk.axes & ~walk.sums & ~gone & common;
    if (!every_order_ && free) {
        take(order, free);
        gone |= free;
    }
    each_bit(active, 0, [&](Id u) { order.cut[u] = gone & walk.cuts[u]; });
    each_bit(walk.axes & ~gone, 0, [&](Id axis) {
        Set left = 0;
        each_bit(active, 0, [&](Id u) { left |= has(walk.cuts[u], axis) ? one(u) : 0; });
        Order next = order;
        take(next, one(axis));
        if (!has(walk.sums, axis)) {
            extend_to_sum(walk, left, gone | one(axis), std::move(next), found);
        } else if (has(any, axis) || every_order_) {
            next.summed = true;
            next.before = gone;
            extend(walk, left, gone | one(axis), std::move(next), found);
        }
    });
}

const std::vector<Order>& Orders::of(Id op, Set own, Summing summing) {
    if (summing == Summing::wide) summing = Summing::none;
    const auto [at, fresh] = known_.try_emplace({op, own, summing});
    if (!fresh) return at->second;
    Walk walk{{}, group_.sliced[op], 0};
    each_bit(own, 0, [&](Id u) { walk.cuts.push_back(group_.accesses[group_.of[op][u]].slices); });
    std::vector<Order> found;
    Order order{Beginnings(walk.cuts.size()), 0, false};
    const Set active = walk.cuts.empty() ? 0 : ~Set{0} >> (most - walk.cuts.size());
    if (summing == Summing::none) {
        extend(walk, active, 0, order, found);
    } else {
        const Set all = walk.axes, sums = group_.summed[op];
        walk.axes = all & ~sums;
        if (summing != Summing::first) extend(walk, active, 0, order, found);
        walk.axes = all;
        walk.sums = sums;
        std::vector<Order> with;
        if (summing == Summing::first) {
            each_bit(sums, 0, [&](Id axis) {
                Set left = 0;
                each_bit(active, 0, [&](Id u) { left |= has(walk.cuts[u], axis) ? one(u) : 0; });
                if (!left) return;
                Order next = order;
                next.summed = true;
                take(next, one(axis));
                extend(walk, left, one(axis), std::move(next), with);
            });
        } else {
            extend_to_sum(walk, active, 0, order, with);
        }
        for (Order& next : with)
            if (summing != Summing::behind || next.before) found.push_back(std::move(next));
    }
    const auto least = [](const Order& a, const Order& b) {
        return std::tie(a.cut, a.before, a.summed, a.axes) < std::tie(b.cut, b.before, b.summed, b.axes);
    };
    const auto same = [](const Order& a, const Order& b) {
        return a.cut == b.cut && a.before == b.before && a.summed == b.summed;
    };
    std::sort(found.begin(), found.end(), least);
    found.erase(std::unique(found.begin(), found.end(), same), found.end());
    const auto beaten = [&](const Order& less) {
        return std::any_of(found.begin(), found.end(),
                           [&](const Order& more) { return &more != &less && within(less, more); });
    };
    for (const Order& next : found)
        if (every_order_ || !beaten(next)) at->second.push_back(next);
    return at->second;
}

}  // namespace onchip::nests
