#include "time_search.h"

#include <algorithm>

namespace onchip::timed {

namespace {

constexpr int most_in_vain = 2'000;       // changes that change nothing, one after the other: there are none
constexpr std::int64_t derived = 40;      // the effort of a nest beside the steps that are walked
constexpr std::int64_t most_steps = 2500;  // or twice those of the nest that is changed
constexpr std::int64_t most_at_first = 200'000;
constexpr std::size_t most_front = 24, most_starts = 8, most_chains = 16;
constexpr int rounds = 5;  // 16, 8, 4, 2 chains, and one
constexpr std::int64_t dearest = 5'000;  // see `price`
constexpr int million = 1'000'000;

// Nests from scratch: every operator in loops of its own along all of its axes, which keep all that moves.
Item alone(const Problem& problem, std::int64_t tile) {
    Item root;
    for (Id op = 0; op < problem.group.size(); ++op) {
        Item item;
        item.operation = static_cast<int>(op);
        std::vector<Kept> keep;
        for (const Id u : problem.group.of[op]) {
            const Id b = problem.group.accesses[u].buffer;
            const bool inner = problem.group.buffers[b].maker >= 0 && problem.group.uses[b].size() > 1;
            const bool again = std::any_of(keep.begin(), keep.end(), [&](const Kept& k) { return k.buffer == b; });
            if (problem.moves(b) && !inner && !again) keep.push_back({b, problem.group.buffers[b].maker < 0 ? 2 : 1});
        }
        for (std::size_t c = problem.group.classes.size(); c-- > 0;) {
            const nests::Class& along = problem.group.classes[c];
            if (!has(along.may, op) || along.size <= tile) continue;
            Item loop;
            loop.loop_class = static_cast<int>(c);
            loop.tile = tile;
            loop.body.push_back(std::move(item));
            if (!keep.empty()) loop.keep = std::move(keep);
            keep.clear();
            item = std::move(loop);
        }
        if (!keep.empty()) root.keep.insert(root.keep.end(), keep.begin(), keep.end());
        root.body.push_back(std::move(item));
    }
    std::vector<Kept> once;
    for (const Kept& kept : root.keep)
        if (std::none_of(once.begin(), once.end(), [&](const Kept& k) { return k.buffer == kept.buffer; })) once.push_back(kept);
    root.keep = std::move(once);
    return root;
}

}  // namespace

Search::Search(const Problem& problem, const Asks& asks, const Limits<Progress>& limits)
    : problem_(problem), asks_(asks), clock_(limits), layout_(problem), walk_(problem), moves_(problem, asks.seed) {
    // Half of all searches never take more than there is: for some groups that finds more.
    if (asks.seed / 2 % 2 == 0) dearest_ = dearest;
    if (asks.price > 0) worth_ = Ratio(asks.price, asks.of_bytes);
}

bool Search::over() { return clock_.late(answer_.effort).has_value(); }

// Whether a nest costs less than `below`; then `into` is what was found, and the nest what that was. `dear`: a nest may
// take more bytes than there are, up to half as many again, and costs so many times the part by which it does, in
// thousandths, more; 0: it may not.
bool Search::price(Item& nest, Time below, std::int64_t steps, std::int64_t dear, Found& into) {
    answer_.effort += derived;
    const Bytes most = dear ? asks_.room + asks_.room / 2 : asks_.room;
    const bool legal = layout_.placed(nest, most);
    for (const Windows& slid : layout_.windows)  // each turn is found for every operator and home
        answer_.effort += slid.turns * static_cast<std::int64_t>(problem_.group.size() + layout_.homes.size()) / 8;
    if (!legal) return false;
    const std::int64_t least = million + dear * beyond(layout_.need);  // what it costs, in millionths
    const Time crossing = cost_of(layout_.bytes), left = least > million ? Ratio(million, least).of(below) - crossing : below - crossing;
    if (layout_.crossing() >= left) return false;
    layout_.timed();
    if (layout_.work >= left) return false;
    ++answer_.prices;
    const Times* times = walk_.times(layout_, left, steps);
    answer_.effort += walk_.walked();
    if (!times) return false;
    const Bytes scratch = layout_.extent();
    if (scratch > most) return false;
    const Time cost = times->time + crossing, felt = scratch > asks_.room ? Ratio(million + dear * beyond(scratch), million).of(cost) : cost;
    if (felt >= below) return false;
    std::swap(into.nest, nest);
    into.times = *times;
    into.scratch = scratch;
    into.walked = walk_.walked();
    into.cost = cost;
    into.fits = scratch <= asks_.room;
    into.felt = felt;
    return true;
}

// The part of the room, in thousandths, that so many bytes take beyond it.
std::int64_t Search::beyond(Bytes bytes) const {
    return bytes > asks_.room ? (bytes - asks_.room) * 1000 / std::max<Bytes>(asks_.room, 1) + 1 : 0;
}

void Search::note(const Found& found) {
    if (!found.fits) return;
    if (!answer_.best || found.cost < answer_.best->cost) answer_.best = found;
    auto& front = answer_.front;
    for (const Found& known : front)
        if (known.cost <= found.cost && known.scratch <= found.scratch) return;
    std::erase_if(front, [&](const Found& known) { return found.cost <= known.cost && found.scratch <= known.scratch; });
    front.insert(std::upper_bound(front.begin(), front.end(), found,
                                  [](const Found& a, const Found& b) { return a.cost < b.cost; }), found);
    if (front.size() > most_front) front.pop_back();
}

// Changes a nest until it fits, if that is soon.
bool Search::fits(Item& nest) {
    answer_.effort += derived;
    if (!layout_.placed(nest)) return false;
    Bytes need = layout_.need;
    for (int n = 0; n < 4000 && need > asks_.room; ++n) {
        tried_ = nest;
        if (!moves_.change(tried_)) continue;
        answer_.effort += derived;
        if (!layout_.placed(tried_, need)) continue;
        std::swap(nest, tried_);
        need = layout_.need;
    }
    return need <= asks_.room;
}

// Adds a start to the pool as it is, if it is not far beyond the room, and so changed that it fits.
void Search::begin(const Item& start, std::vector<Found>& pool) {
    const auto add = [&](const Item& nest) {
        tried_ = nest;
        Found found;
        if (!price(tried_, never, most_at_first, dearest_, found)) return false;
        note(found);
        pool.push_back(std::move(found));
        return pool.back().fits;
    };
    if (add(start)) return;
    Item nest = start;
    if (fits(nest)) add(nest);
}

Found Search::chain(Found from, std::int64_t effort, int slack, std::int64_t dear) {
    const std::int64_t until = answer_.effort + effort, began = answer_.effort;
    Found now = from, best = std::move(from);
    int in_vain = 0;
    while (answer_.effort < until && in_vain < most_in_vain && !over()) {
        tried_ = now.nest;
        if (!moves_.change(tried_)) {
            ++in_vain;
            continue;
        }
        in_vain = 0;
        const std::int64_t left = million - (answer_.effort - began) * million / effort;  // of a million
        const std::int64_t a = static_cast<std::int64_t>(moves_.random.below(million)), b = static_cast<std::int64_t>(moves_.random.below(million));
        const std::int64_t by = left * left / million * slack / million * a / million * b / million;  // of a million
        const Time below = now.felt + now.felt / million * by + 1;
        if (!price(tried_, below, std::max(most_steps, 2 * now.walked), dear, now)) continue;
        note(now);
        if (now.felt < best.felt) best = now;
    }
    return best;
}

Answer Search::run() {
    std::vector<Found> pool;
    const auto by_cost = [](const Found& a, const Found& b) { return a.felt < b.felt; };
    const auto add = [&](const Item& start) { begin(start, pool); };
    for (const Item& start : asks_.starts) add(start);
    for (const std::int64_t tile : {1, 32, 256}) add(alone(problem_, tile));
    if (pool.empty()) return answer_;
    std::stable_sort(pool.begin(), pool.end(), by_cost);
    if (pool.size() > most_starts) pool.resize(most_starts);
    for (std::size_t n = 0; pool.size() < most_chains; ++n) pool.push_back(pool[n]);
    // Many short chains, then half as many from the best of them, and so on to one.
    int slack = asks_.slack;
    const std::int64_t round = std::max<std::int64_t>(1, asks_.effort / rounds);
    for (int n = 0; n < rounds; ++n, slack = slack * 2 / 5) {
        const std::int64_t each = std::max<std::int64_t>(1, round / static_cast<std::int64_t>(pool.size()));
        const std::int64_t dear = n + 1 < rounds ? dearest_ / rounds * (n + 1) : 0;
        if (!dear && answer_.best)
            for (Found& one_ : pool)
                if (!one_.fits) one_ = *answer_.best;
        for (Found& one_ : pool) one_ = chain(std::move(one_), each, slack, dear);
        std::stable_sort(pool.begin(), pool.end(), by_cost);
        pool.resize((pool.size() + 1) / 2);
    }
    return answer_;
}

}  // namespace onchip::timed
