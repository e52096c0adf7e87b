#include "nest_orders.h"

#include <algorithm>

#include "bits.h"

namespace onchip::nests {

void Orders::extend(const std::vector<Set>& cuts, Set active, Set gone, Beginnings& cut,
                    std::vector<Beginnings>& found) {
    Set common = ~Set{0}, any = 0;
    each_bit(active, 0, [&](Id u) {
        common &= cuts[u];
        any |= cuts[u];
    });
    if (!every_order_) gone |= common;  // an axis that cuts all of them comes first: it costs none
    each_bit(active, 0, [&](Id u) { cut[u] = gone; });
    if (!active || !(any & ~gone)) {
        found.push_back(cut);
        return;
    }
    std::vector<Set> tried;
    each_bit(any & ~gone, 0, [&](Id axis) {
        Set left = 0;
        each_bit(active, 0, [&](Id u) { left |= has(cuts[u], axis) ? one(u) : 0; });
        if (!every_order_ && std::find(tried.begin(), tried.end(), left) != tried.end()) return;
        tried.push_back(left);
        Beginnings next = cut;
        extend(cuts, left, gone | one(axis), next, found);
    });
}

const std::vector<Beginnings>& Orders::of(Id op, Set own) {
    const auto [at, fresh] = known_.try_emplace({op, own});
    if (!fresh) return at->second;
    std::vector<Set> cuts;
    each_bit(own, 0, [&](Id u) { cuts.push_back(group_.accesses[group_.of[op][u]].slices); });
    std::vector<Beginnings> found;
    Beginnings cut(cuts.size());
    extend(cuts, cuts.empty() ? 0 : ~Set{0} >> (most - cuts.size()), 0, cut, found);
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    const auto beaten = [&](const Beginnings& less) {
        return std::any_of(found.begin(), found.end(), [&](const Beginnings& more) {
            if (&more == &less) return false;
            for (std::size_t u = 0; u < less.size(); ++u)
                if (less[u] & ~more[u]) return false;
            return true;
        });
    };
    for (const Beginnings& beginnings : found)
        if (every_order_ || !beaten(beginnings)) at->second.push_back(beginnings);
    return at->second;
}

}  // namespace onchip::nests
