#include "joint_search.h"

#include <algorithm>

namespace onchip::joint {

using fusion::Clock;
using fusion::Limits;

namespace {

// While it lives, the searches of nests ask a clock: seldom, so it looks each time.
class Watch {
  public:
    Watch(Prices& prices, Clock& clock) : prices_(prices) {
        prices.watch([&] { return clock.check({prices.groups(), 0}, 0, true).has_value(); });
    }
    ~Watch() { prices_.watch({}); }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

  private:
    Prices& prices_;
};

}  // namespace

Search::Search(const fusion::Fuser& fuser, Bytes budget, std::vector<std::vector<Id>> over,
               std::vector<NestGroup> nests, NestCosts& costs, const std::vector<Id>& joins, const Rules& rules)
    : prices_(fuser, budget, std::move(over), std::move(nests), costs, joins),
      problem_(prices_.problem()),
      downsets_(prices_),
      rules_(rules),
      maps_room_(std::min(budget, problem_.maps_budget)) {}

Bytes Search::floor() {
    Bytes sum = 0;
    for (Id v = 0; v < problem_.operators.size(); ++v) sum += prices_.floor(prices_.alone(v));
    return sum;
}

std::vector<Id> Search::misfits() {
    std::vector<Id> result;
    for (Id v = 0; v < problem_.operators.size(); ++v)
        if (least(v) >= unlimited && !fits_with_others(v)) result.push_back(v);
    return result;
}

// Whether an operator that does not fit alone runs in a nest with others, where it may lie over what they make.
bool Search::fits_with_others(Id op) {
    for (Id g = 0; g < prices_.groups(); ++g) {
        if (prices_.single(g) || !prices_.nested(g)) continue;
        const std::vector<Id>& members = prices_.members(g);
        if (std::find(members.begin(), members.end(), op) != members.end() && prices_.least(g) < unlimited) return true;
    }
    return false;
}

bool Search::prepare(std::size_t most, Bytes below, const Limits& limits) {
    if (!rules_.ahead) return true;
    Clock clock(limits);
    const Watch watch(prices_, clock);
    return downsets_.price(most, rules_.incumbent ? below : unlimited, clock);
}

Search::Priced Search::price(std::vector<Bytes> worth, std::size_t most, const Limits& limits) {
    Priced result;
    Clock clock(limits);
    const Watch watch(prices_, clock);
    const auto n = static_cast<Id>(problem_.operators.size());
    // By first operators from the last to the first: then lowering one worth breaks no group that was looked at.
    std::vector<std::vector<Id>> first(n);
    for (Id g = 0; g < prices_.groups(); ++g) first[prices_.members(g).front()].push_back(g);
    std::vector<std::pair<Bytes, Id>> cheap;
    result.complete = true;
    for (Id v = n; v-- > 0;) {
        Bytes lowest = 0;
        for (const Id g : first[v]) {
            Bytes sum = 0;
            for (const Id u : prices_.members(g)) sum += worth[u];
            Bytes cost = prices_.bound(g);
            if (cost - sum >= lowest && cost >= sum) continue;
            // Out of time a floor bounds as well, if worse.
            if (!clock.check({prices_.groups(), 0}, prices_.bytes()))
                cost = prices_.least(g, sum);
            else
                result.complete = false;
            if (cost >= unlimited || cost >= sum) continue;
            lowest = std::min(lowest, cost - sum);
            if (result.complete) cheap.emplace_back(cost - sum, g);
        }
        worth[v] += lowest;
    }
    std::sort(cheap.begin(), cheap.end());
    if (cheap.size() > most) cheap.resize(most);
    for (const auto& [by, g] : cheap) result.columns.emplace_back(prices_.members(g), prices_.least(g));
    result.worth = std::move(worth);
    return result;
}

std::size_t Search::bytes() const {
    return nodes_.size() * sizeof(Node) + pool_.size() * sizeof(Word) + evicted_.size() * sizeof(Id) +
           downsets_.bytes() + prices_.bytes();
}

Found Search::pass(std::size_t width, Bytes below, std::uint64_t seed, const Limits& limits) {
    Found found;
    Clock clock(limits);
    const Watch watch(prices_, clock);
    clock_ = &clock;
    nodes_.clear(), pool_.clear(), evicted_.clear();
    bucket_.assign(downsets_.size(), {});
    layer_.assign(problem_.operators.size() + 1, {});
    below_ = rules_.incumbent ? below : unlimited;
    best_ = no_id, seed_ = seed, ties_ = 0;
    const std::size_t words = downsets_.tensor_words();
    pool_.assign(2 * words, 0);
    for (Id t = 0; t < problem_.tensors.size(); ++t)
        if (problem_.tensors[t].producer == no_id) add(&pool_[words], t);
    nodes_.push_back({0, no_id, no_id, 0, 0, 0, 0, no_id, no_id, false, false, 0, 0, 0});
    bucket_[0].push_back(0);
    layer_[0].push_back(0);
    open_ = unlimited;
    most_tries_ = width ? tries_for_each * (1 + width) : 0;
    std::vector<Move> moves;
    std::vector<std::pair<Bytes, Id>> queue;
    for (std::size_t layer = 0; layer < problem_.operators.size(); ++layer) {
        queue.clear();
        for (const Id set : layer_[layer])
            for (const Id node : bucket_[set]) {
                const Bytes least = nodes_[node].cost + downsets_.ahead(set);
                if (least < below_) queue.emplace_back(least, node);
            }
        if (clock.ended() == End::time || clock.ended() == End::stopped) {
            if (below_ < unlimited) {  // there is something to fall back on
                for (const auto& [least, node] : queue) open_ = std::min(open_, least);
                break;
            }
        }
        const std::size_t at_most = clock.ended().has_value() ? (clock.ended() == End::memory ? 16 : 1) : width;
        if (at_most && queue.size() > at_most) {
            std::sort(queue.begin(), queue.end(), [&](const auto& a, const auto& b) {
                return std::tie(a.first, nodes_[a.second].tie, a.second) < std::tie(b.first, nodes_[b.second].tie, b.second);
            });
            open_ = std::min(open_, queue[at_most].first);
            queue.resize(at_most);
        }
        // All states of a set together, so that its moves are made once.
        std::sort(queue.begin(), queue.end(), [&](const auto& a, const auto& b) {
            return std::pair(nodes_[a.second].at, a.second) < std::pair(nodes_[b.second].at, b.second);
        });
        for (std::size_t i = 0; i < queue.size();) {
            const Id set = nodes_[queue[i].second].at;
            std::size_t end = i;
            Bytes cheapest = unlimited;
            for (; end < queue.size() && nodes_[queue[end].second].at == set; ++end)
                cheapest = std::min(cheapest, nodes_[queue[end].second].cost);
            downsets_.moves(set, moves);
            bucket_.resize(downsets_.size());
            std::size_t kept = 0;
            // Out of time operators alone are enough to come to an end.
            const bool late = clock.ended().has_value();
            for (Move m : moves) {
                if (late && !prices_.single(m.group)) {
                    open_ = std::min(open_, cheapest + downsets_.ahead(set));
                    continue;
                }
                const Bytes quick = prices_.bound(m.group);
                if (quick >= unlimited || cheapest + quick + downsets_.ahead(m.to) >= below_) continue;
                m.bound = quick + downsets_.ahead(m.to);
                const Bytes limit = below_ >= unlimited ? unlimited : below_ - cheapest - downsets_.ahead(m.to);
                const Bytes least = prices_.least(m.group, limit);
                if (least >= limit) continue;
                m.bound = std::max(m.bound, least + downsets_.ahead(m.to));
                if (cheapest + m.bound < below_) moves[kept++] = m;
                clock.check({prices_.groups(), nodes_.size()}, bytes());
            }
            moves.resize(kept);
            std::sort(moves.begin(), moves.end(), [](const Move& a, const Move& b) {
                return std::pair(a.bound, a.group) < std::pair(b.bound, b.group);
            });
            for (; i < end; ++i) {
                ++found.states;
                clock.check({prices_.groups(), found.states}, bytes());
                for (const Move& m : moves) {
                    if (nodes_[queue[i].second].cost + m.bound >= below_) break;
                    expand(queue[i].second, m);
                }
            }
        }
    }
    found.downsets = downsets_.size(), found.evaluated = prices_.evaluated(), found.memory = bytes();
    found.passes = 1;
    found.end = clock.ended().value_or(open_ < unlimited ? End::memory : End::complete);
    Bytes least = unlimited;  // where searches were cut, by what they may find
    if (best_ != no_id) {
        least = nodes_[best_].cost, found.steps = steps(best_);
        const Bytes more = over_hopes(found, best_);
        if (more < unlimited && least + more < below) found.cost = least + more;
    }
    // Pruned at the cost known, cut at `open`: nothing else is cheaper.
    found.bound = std::min({open_, least, below});
    found.complete = found.bound >= std::min(found.cost, below);
    clock_ = nullptr;
    return found;
}

// What a has to pay to become b, as far as that is at most `most`.
Bytes Search::imitate(const Node& a, const Node& b, Bytes most) const {
    Bytes sum = 0;
    const std::size_t words = downsets_.tensor_words();
    const Word *ma = resident(a), *mb = resident(b), *ha = copied(a), *hb = copied(b);
    const auto size = [&](std::uint32_t t) { sum += problem_.tensors[t].bytes; };
    for (std::size_t w = 0; w < words && sum <= most; ++w) {
        const auto base = static_cast<std::uint32_t>(w * 64);
        const Word gone = ma[w] & ~mb[w];
        each_bit(gone & ~ha[w], base, size);                // evicted
        each_bit(mb[w] & ~ma[w], base, size);               // loaded
        each_bit(hb[w] & ~ha[w] & ~gone, base, size);       // written
    }
    return sum;
}

bool Search::beaten(const Node& node) {
    std::vector<Id>& bucket = bucket_[node.at];
    for (const Id other : bucket)
        if (nodes_[other].cost <= node.cost && imitate(nodes_[other], node, node.cost - nodes_[other].cost) <= node.cost - nodes_[other].cost)
            return true;
    std::erase_if(bucket, [&](Id other) {
        const Bytes slack = nodes_[other].cost - node.cost;
        return slack >= 0 && imitate(node, nodes_[other], slack) <= slack;
    });
    return false;
}

// What the steps to a node cost more as they were found than the pass counts for them; notes where that is so.
Bytes Search::over_hopes(Found& found, Id node) {
    Bytes more = 0;
    auto step = found.steps.rbegin();
    for (Id at = node; nodes_[at].from != no_id; at = nodes_[at].from, ++step) {
        const Node& n = nodes_[at];
        if (n.plain || n.joined || !prices_.hopeful() || !prices_.nested(n.group)) continue;
        const Bytes hoped = prices_.tiled(n.group, n.whole, n.pair, n.room);
        if (!prices_.was_cut()) continue;
        const Bytes own = step->way.own;
        if (own <= hoped) continue;
        found.hoped.push_back(prices_.nested(n.group)->text);
        more = own >= unlimited ? unlimited : std::min(unlimited, more + own - hoped);
    }
    return more;
}

std::vector<Step> Search::steps(Id last) {
    std::vector<Step> result;
    for (Id at = last; nodes_[at].from != no_id; at = nodes_[at].from) {
        const Node& n = nodes_[at];
        Step s;
        s.members = prices_.members(n.group);
        const std::span<const Operand> all = prices_.operands(n.group);
        for (std::size_t i = 0; i < all.size(); ++i)
            if (n.plain || (n.whole >> i & 1) != 0) s.whole.push_back(all[i].tensor);
        s.evicted.assign(evicted_.begin() + n.evicted, evicted_.begin() + n.evicted + n.evictions);
        s.over = n.over;
        if (n.pair != no_id) s.made = all[prices_.pairs(n.group)[n.pair].output].tensor;
        s.joined = n.joined;
        if (n.joined) {
            s.way.own = 0;
        } else if (n.plain) {
            if (n.over != no_id) s.made = problem_.operators[s.members.front()].outputs.front();
            s.way.plain = true;
            s.way.own = prices_.weights(n.group);
        } else {
            s.way = prices_.describe(n.group, n.whole, n.pair, n.room);
        }
        result.push_back(std::move(s));
    }
    std::reverse(result.begin(), result.end());
    return result;
}

}  // namespace onchip::joint
