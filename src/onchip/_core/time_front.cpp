#include "time_front.h"

#include <algorithm>

namespace onchip::timed {

namespace {

constexpr std::int64_t most_turns = 1'000'000;

void list(Item& item, std::vector<Item*>& into) {
    if (item.leaf()) return;
    into.push_back(&item);
    for (Item& inner : item.body) list(inner, into);
}

// A nest without loop number `gone`, of those that `list` finds: the items inside stand in its place.
bool without(Item& item, int& gone) {
    for (std::size_t n = 0; n < item.body.size(); ++n) {
        if (item.body[n].leaf()) continue;
        if (--gone == 0) {
            Item loop = std::move(item.body[n]);
            const auto at = item.body.erase(item.body.begin() + static_cast<std::ptrdiff_t>(n));
            item.body.insert(at, std::make_move_iterator(loop.body.begin()), std::make_move_iterator(loop.body.end()));
            return true;
        }
        if (without(item.body[n], gone)) return true;
    }
    return false;
}

}  // namespace

Fronts::Fronts(const Problem& problem, const FrontAsks& asks, const Limits<Progress>& limits)
    : problem_(problem), asks_(asks), clock_(limits), layout_(problem), other_(problem), walk_(problem) {
    const FrontRules& rules = asks.rules;
    bounded_ = problem.rates.channels.size() == 1 && rules.second && (rules.more || asks.copies == 2);
}

Front Fronts::run() {
    orders(0);
    return std::move(answer_);
}

bool Fronts::over() {
    const std::int64_t effort = answer_.nests + answer_.prices;
    if (effort >= asks_.most || clock_.late(effort)) answer_.complete = false;
    return !answer_.complete;
}

void Fronts::orders(Set done) {
    const Group& group = problem_.group;
    if (order_.size() == group.size()) {
        Item root;
        Sizes left;
        for (const nests::Class& along : group.classes) left.push_back(along.size);
        items(root, 0, order_.size(), asks_.loops, left, [&](int) { tree(root); });
        return;
    }
    for (Id op = 0; op < group.size(); ++op) {
        if (has(done, op) || (group.before[op] & ~done)) continue;
        order_.push_back(op);
        orders(done | one(op));
        order_.pop_back();
    }
}

// All ways to put operators `at` to `end` behind what the body has, in at most so many loops.
void Fronts::items(Item& body, std::size_t at, std::size_t end, int loops, const Sizes& left, const std::function<void(int)>& next) {
    if (over()) return;
    if (at == end) return next(loops);
    Item leaf;
    leaf.operation = static_cast<int>(order_[at]);
    body.body.push_back(std::move(leaf));
    items(body, at + 1, end, loops, left, next);
    body.body.pop_back();
    if (loops == 0) return;
    for (std::size_t to = at + 1; to <= end; ++to)
        for (std::size_t c = 0; c < left.size(); ++c) {
            const Set may = problem_.group.classes[c].may;
            const auto first = order_.begin() + static_cast<std::ptrdiff_t>(at), last = order_.begin() + static_cast<std::ptrdiff_t>(to);
            if (!std::all_of(first, last, [&](Id op) { return has(may, op); })) continue;
            for (std::int64_t tile = 1; tile < left[c]; ++tile) {
                Item loop;
                loop.loop_class = static_cast<int>(c);
                loop.tile = tile;
                Sizes inside = left;
                inside[c] = tile;
                items(loop, at, to, loops - 1, inside, [&](int rest) {
                    body.body.push_back(loop);
                    items(body, to, end, rest, left, next);
                    body.body.pop_back();
                });
            }
        }
}

void Fronts::tree(Item& root) {
    Item nest_ = root;
    root_ = &nest_;
    bodies_.clear();
    list(nest_, bodies_);
    homes(0);
}

int Fronts::uses(Id buffer, const Item& item) const {
    int found = 0;
    if (item.leaf())
        for (const Id u : problem_.group.of[static_cast<Id>(item.operation)]) found += problem_.group.accesses[u].buffer == buffer;
    for (const Item& inner : item.body) found += uses(buffer, inner);
    return found;
}

// The sets of bodies, from one of them inwards, that may keep a buffer. A use for itself is as one of a body unless
// another one there takes the same buffer, so that they would share it.
std::vector<Fronts::Bodies> Fronts::options(Id buffer, int body) const {
    std::vector<Bodies> found{Bodies{body}}, inside{Bodies{}};
    int parts = 0;
    bool loops = false;
    for (const Item& item : bodies_[nth(body)]->body) {
        const int count = uses(buffer, item);
        if (!count) continue;
        parts += item.leaf() ? count : 1;
        if (item.leaf()) continue;
        loops = true;
        const auto number = std::find(bodies_.begin(), bodies_.end(), &item) - bodies_.begin();
        std::vector<Bodies> both;
        for (const Bodies& more : options(buffer, static_cast<int>(number)))
            for (const Bodies& before : inside) {
                both.push_back(before);
                both.back().insert(both.back().end(), more.begin(), more.end());
            }
        inside = std::move(both);
    }
    const bool made = problem_.group.buffers[buffer].maker >= 0;  // then one body keeps it for all
    if (made ? parts == 1 && loops : parts > 1 || loops) found.insert(found.end(), inside.begin(), inside.end());
    return found;
}

void Fronts::homes(Id buffer) {
    if (over()) return;
    if (buffer == problem_.group.buffers.size()) return rings(0);
    if (!problem_.moves(buffer)) return homes(buffer + 1);
    for (const Bodies& chosen : options(buffer, 0)) {
        for (const int body : chosen) bodies_[nth(body)]->keep.push_back({buffer});
        homes(buffer + 1);
        for (const int body : chosen) bodies_[nth(body)]->keep.pop_back();
    }
}

// Every set of buffers of which a loop may keep rows.
void Fronts::rings(std::size_t loop) {
    if (loop == bodies_.size()) return nest();
    Item& body = *bodies_[loop];
    if (body.loop_class < 0 || !problem_.group.classes[nth(body.loop_class)].windows) return rings(loop + 1);
    std::vector<Id> may;
    for (Id b = 0; b < problem_.group.buffers.size(); ++b) {
        const bool kept = std::any_of(body.keep.begin(), body.keep.end(), [&](const Kept& k) { return k.buffer == b; });
        if (kept || (!problem_.moves(b) && !problem_.stored[b].on_chip && uses(b, body))) may.push_back(b);
    }
    for (Set chosen = 0; chosen < one(may.size()); ++chosen) {
        body.ring.clear();
        for (std::size_t n = 0; n < may.size(); ++n)
            if (has(chosen, n)) body.ring.push_back(may[n]);
        rings(loop + 1);
    }
    body.ring.clear();
}

void Fronts::set(std::size_t from, int copies) {
    for (std::size_t n = from; n < entries_.size(); ++n) entries_[n]->copies = may_[n] ? copies : 1;
}

bool Fronts::dominated(Time time, Bytes scratch) const {
    return std::any_of(answer_.found.begin(), answer_.found.end(), [&](const Found& known) {
        return known.times.bytes <= bytes_ && known.times.time <= time && known.scratch <= scratch;
    });
}

void Fronts::note(Found found) {
    if (dominated(found.times.time, found.scratch)) return;
    std::erase_if(answer_.found, [&](const Found& known) {
        return found.times.bytes <= known.times.bytes && found.times.time <= known.times.time && found.scratch <= known.scratch;
    });
    answer_.found.push_back(std::move(found));
}

void Fronts::nest() {
    if (over()) return;
    ++answer_.nests;
    if (!layout_.derive(*root_) || layout_.need > asks_.room) return;
    bytes_ = layout_.bytes;
    const Bytes need = layout_.need;
    if (asks_.rules.floors && dominated(layout_.floor(), need)) return;
    if (asks_.rules.idle && is_idle()) return;
    entries_.clear();
    for (Item* body : bodies_)
        for (Kept& kept : body->keep) entries_.push_back(&kept);
    may_.assign(entries_.size(), false);
    for (std::size_t n = 0; n < entries_.size() && asks_.copies > 1; ++n) {
        entries_[n]->copies = 2;  // partial sums may have no copies; of every other one it does not matter
        may_[n] = layout_.derive(*root_);
        entries_[n]->copies = 1;
    }
    channels(0);
    set(0, 1);  // other homes of the buffers behind are tried with these
}

// True if some loop only repeats a leaf along an output, and without it that lies on the same sides of the array.
bool Fronts::is_idle() {
    for (int b = 1; nth(b) < layout_.bodies.size(); ++b) {
        const Body& body = layout_.at(b);
        const bool home = std::any_of(layout_.homes.begin(), layout_.homes.end(),
                                      [&](const Home& h) { return h.body >= b && h.body < body.end_body; });
        if (home || body.windows >= 0) continue;
        // Between the shorter steps of several operators, or of a sum, a transfer may begin that waits for a longer one.
        if (body.end_leaf - body.first_leaf != 1) continue;
        const Leaf& leaf = layout_.leaves[nth(body.first_leaf)];
        const nests::Operator& op = problem_.group.operators[leaf.op];
        bool sums = false;
        for (Id a = op.outputs; a < op.axes.size(); ++a) sums |= problem_.axis_class[leaf.op][a] == body.loop_class;
        if (sums) continue;
        // a step along windows with strides reads what steps of fewer indices leave out
        if (problem_.rates.scratchpad && problem_.group.classes[nth(body.loop_class)].windows) continue;
        Item less = *root_;
        int gone = b;
        if (!without(less, gone) || !other_.derive(less)) continue;
        bool same = true;
        for (std::size_t n = 0; n < layout_.leaves.size(); ++n) same &= layout_.leaves[n].array == other_.leaves[n].array;
        if (same) return true;
    }
    return false;
}

void Fronts::channels(std::size_t entry) {
    if (entry == entries_.size() || !asks_.channels || problem_.rates.channels.size() == 1) {
        set(0, 1);
        if (!layout_.derive(*root_)) return;
        return decide(0, -1, layout_.need);
    }
    Kept& kept = *entries_[entry];
    const auto& all = problem_.rates.channels;
    const bool made = problem_.group.buffers[kept.buffer].maker >= 0;
    for (std::size_t load = 0; load < all.size(); ++load) {
        if (!all[load].loads) continue;
        kept.load = static_cast<int>(load);
        for (std::size_t store = 0; store < all.size(); ++store) {
            if (!all[store].stores || (!made && store != nth(problem_.first_store))) continue;
            kept.store = static_cast<int>(store);
            channels(entry + 1);
        }
    }
    kept.load = kept.store = -1;
}

std::optional<Time> Fronts::time() {
    if (!layout_.derive(*root_)) return std::nullopt;
    ++answer_.prices;
    const auto times = walk_.times(layout_, never, most_turns);
    if (walk_.walked() > most_turns) answer_.complete = false;
    if (!times) return std::nullopt;
    return times->time;
}

// Copies of the entries from one on. `least` is the time with the most copies of all these, if it is known and bounds
// the others; `need` the bytes alive at the worst moment with one of each.
void Fronts::decide(std::size_t entry, Time least, Bytes need) {
    if (over()) return;
    if (entry == entries_.size()) {
        if (!layout_.derive(*root_)) return;
        ++answer_.prices;
        const auto times = walk_.times(layout_, never, most_turns);
        if (walk_.walked() > most_turns) answer_.complete = false;
        if (!times) return;
        const Bytes scratch = layout_.extent();
        if (scratch <= asks_.room) note({*root_, *times, scratch, walk_.walked(), times->time});
        return;
    }
    if (bounded_) {
        if (least < 0) {
            set(entry, asks_.copies);
            const auto found = time();
            if (!found) return;  // the law gives it no times, whatever its copies
            least = *found;
        }
        if (dominated(least, need)) return;
    }
    const int most = may_[entry] ? asks_.copies : 1;
    for (int copies = most; copies >= 1; --copies) {
        entries_[entry]->copies = copies;
        set(entry + 1, 1);
        if (!layout_.derive(*root_)) continue;
        const Bytes needs = layout_.need;
        if (needs > asks_.room) continue;
        decide(entry + 1, copies == most ? least : -1, needs);
    }
    entries_[entry]->copies = 1;
}

}  // namespace onchip::timed
