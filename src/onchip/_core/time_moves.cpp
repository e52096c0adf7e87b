#include "time_moves.h"

#include <algorithm>

namespace onchip::timed {

namespace {

constexpr int most_copies = 4;

template <class T>
void erase_at(std::vector<T>& from, std::size_t n) {
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(n));
}

void operators_of(const Item& item, std::vector<Id>& into) {
    if (item.leaf()) into.push_back(static_cast<Id>(item.operation));
    for (const Item& inner : item.body) operators_of(inner, into);
}

bool keeps(const Item& item, Id buffer) {
    return std::any_of(item.keep.begin(), item.keep.end(), [&](const Kept& k) { return k.buffer == buffer; });
}

}  // namespace

Moves::Moves(const Problem& problem, std::uint64_t seed) : random(seed), problem_(problem), used_(problem.group.size()) {
    for (const ArraySide& side : problem.rates.sides) grain_.push_back(side.size);
    for (const Channel& channel : problem.rates.channels) grain_.push_back(channel.burst);
    for (const Access& access : problem.group.accesses) used_[access.op] |= one(access.buffer);
}

bool Moves::uses(Id op, Id buffer) const { return has(used_[op], buffer); }

bool Moves::uses(const Item& item, Id buffer) const {
    if (item.leaf()) return uses(static_cast<Id>(item.operation), buffer);
    return std::any_of(item.body.begin(), item.body.end(), [&](const Item& inner) { return uses(inner, buffer); });
}

void Moves::list(Item& item) {
    if (item.leaf()) return;
    bodies_.push_back(&item);
    if (item.loop_class >= 0) loops_.push_back(&item);
    for (Item& inner : item.body) list(inner);
}

bool Moves::change(Item& root) {
    bool done = once(root);
    if (!done) return false;
    for (int more = 0; more < 3 && random.chance(400); ++more) once(root);
    std::vector<std::int64_t> left;
    for (const nests::Class& along : problem_.group.classes) left.push_back(along.size);
    tidy(root, left);
    return true;
}

// Takes out loops of one turn: the body around keeps what they kept.
void Moves::tidy(Item& body, std::vector<std::int64_t>& left) {
    for (std::size_t n = 0; n < body.body.size();) {
        Item& inner = body.body[n];
        if (inner.leaf()) {
            ++n;
            continue;
        }
        const auto c = static_cast<std::size_t>(inner.loop_class);
        if (inner.tile >= left[c] && !problem_.group.classes[c].windows) {
            Item loop = std::move(inner);
            erase_at(body.body, n);
            for (const Kept& kept : loop.keep)
                if (!keeps(body, kept.buffer)) body.keep.push_back(kept);
            body.body.insert(body.body.begin() + static_cast<std::ptrdiff_t>(n), std::make_move_iterator(loop.body.begin()),
                             std::make_move_iterator(loop.body.end()));
            continue;
        }
        const std::int64_t was = left[c];
        left[c] = std::min(was, inner.tile);
        tidy(inner, left);
        left[c] = was;
        ++n;
    }
}

bool Moves::once(Item& root) {
    bodies_.clear();
    loops_.clear();
    list(root);
    const std::size_t draw = random.below(100);
    if (draw < 32) return tile(root);
    if (draw < 40) return exchange(root);
    if (draw < 55) return copies(root);
    if (draw < 66) return home(root);
    if (draw < 70) return keep(root);
    if (draw < 78) return insert(root);
    if (draw < 83) return remove(root);
    if (draw < 87) return swap(root);
    if (draw < 89) return split(root);
    if (draw < 91) return merge(root);
    if (draw < 94) return shift(root);
    if (draw < 96) return order(root);
    if (draw < 97) return place(root);
    if (draw < 99) return ring(root);
    return channel(root);
}

std::int64_t Moves::other_tile(const Item& loop) {
    const std::int64_t size = problem_.group.classes[static_cast<std::size_t>(loop.loop_class)].size, t = loop.tile;
    const std::int64_t turns = (size + t - 1) / t;
    const std::int64_t grain = grain_.empty() ? 2 : grain_[random.below(grain_.size())];
    std::int64_t found = t;
    switch (random.below(16)) {
        case 0: found = 2 * t; break;
        case 1: found = t / 2; break;
        case 2: found = t * 3 / 2; break;
        case 3: found = t * 2 / 3; break;
        case 4: found = t + 1; break;
        case 5: found = t - 1; break;
        case 6: found = t * 5 / 4; break;
        case 7: found = t * 4 / 5; break;
        case 8: found = (size + turns) / (turns + 1); break;
        case 9: found = turns > 1 ? (size + turns - 2) / (turns - 1) : t; break;
        case 10: found = (size + turns - 1) / turns; break;
        case 11: found = t / grain * grain; break;
        case 12: found = (t + grain - 1) / grain * grain; break;
        case 13: found = t / grain * grain + grain; break;
        case 14: found = t / grain * grain - grain; break;
        default: found = (size + (std::int64_t{1} << random.below(8)) - 1) / (std::int64_t{1} << random.below(8)); break;
    }
    return found >= 1 && found <= size ? found : t;
}

bool Moves::tile(Item&) {
    if (loops_.empty()) return false;
    Item& loop = *loops_[random.below(loops_.size())];
    const std::int64_t other = other_tile(loop);
    if (other == loop.tile) return false;
    loop.tile = other;
    return true;
}

// One tile grows as another shrinks.
bool Moves::exchange(Item&) {
    if (loops_.size() < 2) return false;
    Item &a = *loops_[random.below(loops_.size())], &b = *loops_[random.below(loops_.size())];
    if (&a == &b) return false;
    static constexpr std::int64_t up[] = {2, 3, 4, 5, 9, 17}, down[] = {1, 2, 3, 4, 8, 16};
    const std::size_t by = random.below(6);
    const std::int64_t grown = a.tile * up[by] / down[by], shrunk = b.tile * down[by] / up[by];
    if (shrunk < 1) return false;
    a.tile = std::min(grown, problem_.group.classes[static_cast<std::size_t>(a.loop_class)].size);
    b.tile = shrunk;
    return true;
}

bool Moves::copies(Item&) {
    std::vector<Kept*> all;
    for (Item* body : bodies_)
        for (Kept& kept : body->keep) all.push_back(&kept);
    if (all.empty()) return false;
    Kept& kept = *all[random.below(all.size())];
    if (kept.copies > 1 && problem_.group.buffers[kept.buffer].maker >= 0 && random.chance(300)) {
        static constexpr int many[] = {0, 1, 2, 3, 4, 6, 8, 12};
        const int late = many[random.below(8)];
        if (late == kept.late) return false;
        kept.late = late;
        return true;
    }
    const int number = random.chance(700) ? (kept.copies == 1 ? 2 : 1) : 1 + static_cast<int>(random.below(most_copies));
    if (number == kept.copies) return false;
    kept.copies = number;
    if (number == 1) kept.late = 0;
    return true;
}

// A name kept by the body around, or by bodies inside.
bool Moves::home(Item&) {
    std::vector<std::pair<Item*, std::size_t>> all;
    for (Item* body : bodies_)
        for (std::size_t n = 0; n < body->keep.size(); ++n) all.emplace_back(body, n);
    if (all.empty()) return false;
    const auto [body, n] = all[random.below(all.size())];
    const Kept kept = body->keep[n];
    if (random.chance(500)) {  // outwards
        Item* outer = nullptr;
        for (Item* other : bodies_)
            for (const Item& inner : other->body)
                if (&inner == body) outer = other;
        if (!outer) return false;
        erase_at(body->keep, n);
        for (Item& inner : outer->body)
            std::erase_if(inner.keep, [&](const Kept& k) { return k.buffer == kept.buffer; });
        outer->keep.push_back(kept);
        return true;
    }
    bool found = false;
    for (Item& inner : body->body)
        if (!inner.leaf() && uses(inner, kept.buffer)) {
            if (!keeps(inner, kept.buffer)) inner.keep.push_back(kept);
            found = true;
        }
    if (!found) return false;
    std::erase_if(body->keep, [&](const Kept& k) { return k.buffer == kept.buffer; });
    return true;
}

// A name that no body keeps, or one that none keeps any more.
bool Moves::keep(Item&) {
    Item& body = *bodies_[random.below(bodies_.size())];
    if (!body.keep.empty() && random.chance(200)) {
        erase_at(body.keep, random.below(body.keep.size()));
        return true;
    }
    std::vector<Id> may;
    for (Id b = 0; b < problem_.group.buffers.size(); ++b)
        if (problem_.moves(b) && !keeps(body, b) && uses(body, b)) may.push_back(b);
    if (may.empty()) return false;
    const Id chosen = may[random.below(may.size())];
    const auto clear = [&](const auto& self, Item& item) -> void {
        std::erase_if(item.keep, [&](const Kept& k) { return k.buffer == chosen; });
        for (Item& inner : item.body) self(self, inner);
    };
    clear(clear, body);
    body.keep.push_back({chosen, 1 + static_cast<int>(random.below(2))});
    return true;
}

// A loop around some items of a body.
bool Moves::insert(Item&) {
    if (problem_.group.classes.empty() || loops_.size() >= 4 * problem_.group.size() + 4) return false;
    Item& body = *bodies_[random.below(bodies_.size())];
    std::size_t first = random.below(body.body.size()), behind = first + 1 + random.below(body.body.size() - first);
    if (random.chance(400)) first = 0, behind = body.body.size();
    Item loop;
    loop.loop_class = static_cast<int>(random.below(problem_.group.classes.size()));
    const nests::Class& along = problem_.group.classes[static_cast<std::size_t>(loop.loop_class)];
    std::vector<Id> inside;
    for (std::size_t n = first; n < behind; ++n) operators_of(body.body[n], inside);
    for (const Id op : inside)
        if (!has(along.may, op)) return false;
    static constexpr std::int64_t parts[] = {2, 2, 3, 4, 6, 8, 12, 16, 32};
    const std::int64_t turns = parts[random.below(9)];
    loop.tile = (along.size + turns - 1) / turns;
    if (along.size < 2) return false;
    const auto from = body.body.begin() + static_cast<std::ptrdiff_t>(first), to = body.body.begin() + static_cast<std::ptrdiff_t>(behind);
    loop.body.assign(std::make_move_iterator(from), std::make_move_iterator(to));
    body.body.erase(from, to);
    std::erase_if(body.keep, [&](const Kept& kept) {
        const bool rest = std::any_of(body.body.begin(), body.body.end(), [&](const Item& i) { return uses(i, kept.buffer); });
        if (rest || !uses(loop, kept.buffer) || !random.chance(600)) return false;
        loop.keep.push_back(kept);
        return true;
    });
    body.body.insert(body.body.begin() + static_cast<std::ptrdiff_t>(first), std::move(loop));
    return true;
}

bool Moves::remove(Item&) {
    std::vector<std::pair<Item*, std::size_t>> all;
    for (Item* body : bodies_)
        for (std::size_t n = 0; n < body->body.size(); ++n)
            if (!body->body[n].leaf()) all.emplace_back(body, n);
    if (all.empty()) return false;
    const auto [body, n] = all[random.below(all.size())];
    Item loop = std::move(body->body[n]);
    erase_at(body->body, n);
    body->body.insert(body->body.begin() + static_cast<std::ptrdiff_t>(n), std::make_move_iterator(loop.body.begin()),
                      std::make_move_iterator(loop.body.end()));
    for (const Kept& kept : loop.keep)
        if (!keeps(*body, kept.buffer)) body->keep.push_back(kept);
    return true;
}

// A loop and the only one inside it the other way round.
bool Moves::swap(Item&) {
    std::vector<Item*> all;
    for (Item* loop : loops_)
        if (loop->body.size() == 1 && !loop->body[0].leaf()) all.push_back(loop);
    if (all.empty()) return false;
    Item& outer = *all[random.below(all.size())];
    Item& inner = outer.body[0];
    std::swap(outer.loop_class, inner.loop_class);
    std::swap(outer.tile, inner.tile);
    std::swap(outer.ring, inner.ring);
    if (random.chance(300)) std::swap(outer.keep, inner.keep);
    return true;
}

// A loop in two, each around some of its items.
bool Moves::split(Item&) {
    std::vector<std::pair<Item*, std::size_t>> all;
    for (Item* body : bodies_)
        for (std::size_t n = 0; n < body->body.size(); ++n)
            if (body->body[n].body.size() > 1) all.emplace_back(body, n);
    if (all.empty()) return false;
    const auto [body, n] = all[random.below(all.size())];
    Item second = body->body[n];
    Item& first = body->body[n];
    const std::size_t cut = 1 + random.below(first.body.size() - 1);
    second.body.erase(second.body.begin(), second.body.begin() + static_cast<std::ptrdiff_t>(cut));
    first.body.erase(first.body.begin() + static_cast<std::ptrdiff_t>(cut), first.body.end());
    for (Item* half : {&first, &second})
        std::erase_if(half->keep, [&](const Kept& kept) { return !uses(*half, kept.buffer); });
    body->body.insert(body->body.begin() + static_cast<std::ptrdiff_t>(n) + 1, std::move(second));
    return true;
}

// Two loops of a body along the same class in one, where the first or the second stood.
bool Moves::merge(Item&) {
    struct Pair {
        Item* body;
        std::size_t first, second;
    };
    std::vector<Pair> all;
    for (Item* body : bodies_)
        for (std::size_t n = 0; n + 1 < body->body.size(); ++n)
            for (std::size_t m = n + 1; m < body->body.size(); ++m)
                if (!body->body[n].leaf() && body->body[n].loop_class == body->body[m].loop_class) all.push_back({body, n, m});
    if (all.empty()) return false;
    const auto [body, n, m] = all[random.below(all.size())];
    Item both = std::move(body->body[n]), second = std::move(body->body[m]);
    if (random.chance(500)) both.tile = second.tile;
    for (Item& inner : second.body) both.body.push_back(std::move(inner));
    for (const Kept& kept : second.keep)
        if (!keeps(both, kept.buffer)) both.keep.push_back(kept);
    for (const Id b : second.ring)
        if (std::count(both.ring.begin(), both.ring.end(), b) == 0) both.ring.push_back(b);
    const bool late = random.chance(500);
    body->body[late ? m : n] = std::move(both);
    erase_at(body->body, late ? n : m);
    return true;
}

// An item out of a loop, or into its neighbour; or two items the other way round.
bool Moves::shift(Item&) {
    Item& body = *bodies_[random.below(bodies_.size())];
    if (body.body.size() < 2 || random.chance(400)) {  // out
        std::vector<std::size_t> may;
        for (std::size_t n = 0; n < body.body.size(); ++n)
            if (body.body[n].body.size() > 1) may.push_back(n);
        if (may.empty()) return false;
        const std::size_t n = may[random.below(may.size())];
        Item& loop = body.body[n];
        const bool front = random.chance(500);
        Item item = std::move(front ? loop.body.front() : loop.body.back());
        erase_at(loop.body, front ? 0 : loop.body.size() - 1);
        std::vector<Kept> moved;
        std::erase_if(loop.keep, [&](const Kept& kept) {
            if (uses(loop, kept.buffer)) return false;
            moved.push_back(kept);
            return true;
        });
        for (const Kept& kept : moved)
            if (!keeps(body, kept.buffer)) (item.leaf() ? body : item).keep.push_back(kept);
        body.body.insert(body.body.begin() + static_cast<std::ptrdiff_t>(n + !front), std::move(item));
        return true;
    }
    const std::size_t n = random.below(body.body.size() - 1);
    Item &a = body.body[n], &b = body.body[n + 1];
    if (random.chance(300)) {
        std::swap(a, b);
        return true;
    }
    if (!b.leaf() && random.chance(500)) {
        b.body.insert(b.body.begin(), std::move(a));
        erase_at(body.body, n);
        return true;
    }
    if (a.leaf()) return false;
    a.body.push_back(std::move(b));
    erase_at(body.body, n + 1);
    return true;
}

bool Moves::order(Item&) {
    Item& body = *bodies_[random.below(bodies_.size())];
    if (body.keep.size() < 2) return false;
    const std::size_t n = random.below(body.keep.size()), m = random.below(body.keep.size());
    std::swap(body.keep[n], body.keep[m]);
    return n != m;
}

// An output in the place of an operand, or not.
bool Moves::place(Item&) {
    std::vector<Item*> may;
    for (Item* body : bodies_)
        for (Item& inner : body->body)
            if (inner.leaf() && !problem_.group.under[static_cast<Id>(inner.operation)].empty()) may.push_back(&inner);
    if (may.empty()) return false;
    Item& leaf = *may[random.below(may.size())];
    const auto& under = problem_.group.under[static_cast<Id>(leaf.operation)];
    const std::size_t n = random.below(under.size() + 1);
    const int chosen = n < under.size() ? static_cast<int>(under[n]) : -1;
    if (chosen == leaf.under) return false;
    leaf.under = chosen;
    return true;
}

// A buffer over which windows slide keeps rows, or not.
bool Moves::ring(Item&) {
    std::vector<Item*> may;
    for (Item* loop : loops_)
        if (problem_.group.classes[static_cast<std::size_t>(loop->loop_class)].windows) may.push_back(loop);
    if (may.empty()) return false;
    Item& loop = *may[random.below(may.size())];
    if (!loop.ring.empty() && random.chance(400)) {
        erase_at(loop.ring, random.below(loop.ring.size()));
        return true;
    }
    std::vector<Id> names;
    for (Id b = 0; b < problem_.group.buffers.size(); ++b)
        if (uses(loop, b) && std::count(loop.ring.begin(), loop.ring.end(), b) == 0) names.push_back(b);
    if (names.empty()) return false;
    loop.ring.push_back(names[random.below(names.size())]);
    return true;
}

bool Moves::channel(Item&) {
    const auto& channels = problem_.rates.channels;
    if (channels.size() < 2) return false;
    std::vector<Kept*> all;
    for (Item* body : bodies_)
        for (Kept& kept : body->keep) all.push_back(&kept);
    if (all.empty()) return false;
    Kept& kept = *all[random.below(all.size())];
    const std::size_t c = random.below(channels.size());
    const bool stores = problem_.group.buffers[kept.buffer].maker >= 0 && channels[c].stores && random.chance(600);
    if (!stores && !channels[c].loads) return false;
    (stores ? kept.store : kept.load) = static_cast<int>(c);
    return true;
}

}  // namespace onchip::timed
