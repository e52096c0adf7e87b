#include "rows_walk.h"

#include <algorithm>
#include <utility>

namespace onchip::rows {

Walk::Walk(const Graph& graph, const Rules& rules, Made made, const Made& to)
    : graph_(&graph), rules_(&rules), to_(&to), made_(std::move(made)), live_(graph.live(made_)) {
    for (std::size_t i = 0; i < graph.size(); ++i) left_ += to[i] - made_[i];
}

void Walk::apply(std::size_t i, const Graph::Cost& cost) {
    peak_ = std::max(peak_, live_ + cost.need);
    live_ += cost.change;
    ++made_[i];
    --left_;
    taken_.push_back(static_cast<Id>(i));
}

void Walk::take_free(Bytes free) {
    if (!rules_->free_steps) return;
    std::vector<Id> all(graph_->size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Id>(i);
    free_among(all, free);
}

// Until none is left: as bytes go, steps fit that needed too much before.
void Walk::free_among(const std::vector<Id>& some, Bytes free) {
    std::vector<Id> queue(some);
    for (std::size_t head = 0; head < queue.size(); ++head) {
        const std::size_t i = queue[head];
        while (open(i) && graph_->ready(made_, i)) {
            const Graph::Cost cost = graph_->cost(made_, i);
            if (cost.change > 0) break;
            if (live_ + cost.need > std::max(free, peak_)) {
                if (std::find(dear_.begin(), dear_.end(), i) == dear_.end()) dear_.push_back(static_cast<Id>(i));
                break;
            }
            apply(i, cost);
            for (const Id j : graph_->touched(i))
                if (j != i) queue.push_back(j);
            if (cost.change < 0) {
                queue.insert(queue.end(), dear_.begin(), dear_.end());
                dear_.clear();
            }
        }
    }
}

bool Walk::step(std::size_t i, Bytes limit, Bytes free) {
    const Graph::Cost cost = graph_->cost(made_, i);
    if (live_ + cost.need > limit) return false;
    const bool more = live_ + cost.need > peak_;
    apply(i, cost);
    if (!rules_->free_steps) return true;
    free_among(graph_->touched(i), free);
    if ((cost.change < 0 || more) && !dear_.empty()) {
        const std::vector<Id> again = std::move(dear_);
        dear_.clear();
        free_among(again, free);
    }
    return true;
}

bool Walk::pull(std::size_t i, bool backwards, Bytes limit, Bytes free) {
    const int row = made_[i];
    const auto& needs = graph_->needs(i, row);
    if (needs.size() > 1) chose_ = true;
    for (std::size_t k = 0; k < needs.size(); ++k) {
        const Need& need = needs[backwards ? needs.size() - 1 - k : k];
        while (made_[i] == row && made_[need.maker] < need.rows)
            if (!pull(need.maker, backwards, limit, free)) return false;
    }
    return made_[i] > row || step(i, limit, free);
}

bool Walk::drive(std::size_t i, bool backwards, Bytes limit, Bytes free, bool one) {
    const Bytes before = live_;
    chose_ = false;
    do {
        if (!pull(i, backwards, limit, free)) return false;
    } while (!one && open(i) && live_ > before);
    return true;
}

}  // namespace onchip::rows
