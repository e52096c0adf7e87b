#include "time_layout.h"

#include <algorithm>

namespace onchip::timed {

bool Layout::placed(const Item& root, Bytes most) {
    const std::size_t count = problem.group.size();
    bodies.clear();
    leaves.clear();
    homes.clear();
    moving.clear();
    beside.clear();
    windows.clear();
    leaf_of_.assign(count, -1);
    bodies.add();
    if (!walk(root, 0)) return false;
    if (leaves.size() != count) return refuse("not every operator has a leaf");
    for (Leaf& leaf : leaves) {
        leaf.axes.assign(problem.group.operators[leaf.op].axes.size(), -1);
        for (std::size_t n = 1; n < leaf.path.size(); ++n) {
            const int axis = problem.group.classes[nth(at(leaf.path[n]).loop_class)].axis[leaf.op];
            leaf.axes[nth(axis)] = leaf.path[n];
        }
        const Id outputs = problem.group.operators[leaf.op].outputs;
        for (std::size_t a = outputs; a < leaf.axes.size(); ++a)
            if (leaf.axes[a] >= 0) leaf.sums.push_back(leaf.axes[a]);
    }
    if (!finished() || !find_homes() || !in_place() || !slide()) return false;
    sizes();
    if (!in_tiles() || !spilled() || !widths()) return false;
    lay();
    if (need > most) return refuse("it needs more bytes than there are");
    return find_moving();
}

bool Layout::walk(const Item& item, int number) {
    const Group& group = problem.group;
    at(number).item = &item;
    at(number).first_leaf = static_cast<int>(leaves.size());
    if (item.body.empty()) return refuse("a body is empty");
    for (const Item& inner : item.body) {
        if (inner.leaf()) {
            const Id op = static_cast<Id>(inner.operation);
            if (op >= group.size() || leaf_of_[op] >= 0) return refuse("an operator has two leaves");
            leaf_of_[op] = static_cast<int>(leaves.size());
            at(number).items.push_back(~static_cast<int>(leaves.size()));
            Leaf& leaf = leaves.add();
            leaf.op = op;
            leaf.body = number;
            leaf.place = static_cast<int>(at(number).items.size()) - 1;
            leaf.under = inner.under;
            for (int b = number; b >= 0; b = at(b).parent) leaf.path.push_back(b);
            std::reverse(leaf.path.begin(), leaf.path.end());
            for (std::size_t n = 1; n < leaf.path.size(); ++n) {
                const int c = at(leaf.path[n]).loop_class;
                if (!has(group.classes[nth(c)].may, op)) return refuse("a loop does not go along an operator");
            }
            continue;
        }
        if (inner.loop_class < 0 || nth(inner.loop_class) >= group.classes.size() || inner.tile < 1)
            return refuse("a loop has no class, or no tile");
        const int made = static_cast<int>(bodies.size());
        at(number).items.push_back(made);
        Body& body = bodies.add();
        body.parent = number;
        body.loop_class = inner.loop_class;
        body.tile = inner.tile;
        for (int b = number; b > 0 && body.before < 0; b = at(b).parent)
            if (at(b).loop_class == inner.loop_class) body.before = b;
        if (body.before >= 0) at(body.before).around = true;
        if (!walk(inner, made)) return false;
    }
    at(number).end_leaf = static_cast<int>(leaves.size());
    at(number).end_body = static_cast<int>(bodies.size());
    return true;
}

// A reader of what the group makes comes after it, and sees finished elements only.
bool Layout::finished() {
    const Group& group = problem.group;
    for (const Leaf& reader : leaves)
        for (const Id u : group.of[reader.op]) {
            const Access& access = group.accesses[u];
            const int maker = group.buffers[access.buffer].maker;
            if (access.writes || maker < 0) continue;
            const Leaf& made = leaves[nth(leaf_of_[nth(maker)])];
            if (leaf_of_[reader.op] <= leaf_of_[nth(maker)]) return refuse("a reader runs before what it reads is made");
            for (std::size_t n = 1; n < std::min(reader.path.size(), made.path.size()); ++n) {
                if (reader.path[n] != made.path[n]) break;
                if (has(group.classes[nth(at(reader.path[n]).loop_class)].bad[reader.op], static_cast<Id>(maker)))
                    return refuse("a reader sees what is not finished");
            }
        }
    return true;
}

bool Layout::below(Id use, int body) const {
    const int leaf = leaf_of_[problem.group.accesses[use].op];
    return at(body).first_leaf <= leaf && leaf < at(body).end_leaf;
}

int Layout::deepest(const std::vector<Id>& uses) const {
    const std::vector<int>& first = leaves[nth(leaf_of_[problem.group.accesses[uses[0]].op])].path;
    for (std::size_t n = first.size(); n-- > 1;)
        if (std::all_of(uses.begin(), uses.end(), [&](Id u) { return below(u, first[n]); })) return first[n];
    return 0;
}

// The innermost loop of each class around what a body holds, outer ones first.
void Layout::ends_of(int body, std::vector<int>& ends) const {
    Set seen = 0;
    for (int b = body; b > 0; b = at(b).parent) {
        const Set mine = one(nth(at(b).loop_class));
        if (!(seen & mine)) ends.push_back(b);
        seen |= mine;
    }
    std::reverse(ends.begin(), ends.end());
}

void Layout::add_home(Id buffer, int body, int leaf, const std::vector<Id>& uses, Kept ways) {
    Home& home = homes.add();
    home.buffer = buffer;
    home.body = body;
    home.leaf = leaf;
    home.uses = uses;
    home.ways = ways;
    home.width = problem.group.buffers[buffer].element;
}

bool Layout::kept(const Item& item, int body) {
    for (const Kept& one : item.keep) {
        if (one.buffer >= problem.group.buffers.size() || !problem.moves(one.buffer))
            return refuse("a body keeps what does not move");
        for (const int before : kept_in_[one.buffer])
            if (before <= body && body < at(before).end_body) return refuse("a buffer is kept already");
        kept_in_[one.buffer].push_back(body);
    }
    return true;
}

// Homes by buffer; of one buffer those of bodies first, outer ones first, then private ones.
bool Layout::find_homes() {
    const Group& group = problem.group;
    kept_in_.resize(group.buffers.size());
    for (auto& known : kept_in_) known.clear();
    for (std::size_t b = 0; b < bodies.size(); ++b)
        if (!kept(*bodies[b].item, static_cast<int>(b))) return false;
    const auto ways_of = [&](int body, Id buffer) {
        for (const Kept& one : at(body).item->keep)
            if (one.buffer == buffer) return one;
        return Kept{buffer};
    };
    for (Id b = 0; b < group.buffers.size(); ++b) {
        if (problem.stored[b].on_chip) continue;
        const bool outside = group.buffers[b].maker < 0, leaves_group = group.buffers[b].leaves;
        rest_ = group.uses[b];
        std::sort(rest_.begin(), rest_.end());
        for (const int body : kept_in_[b]) {
            shared_.clear();
            others_.clear();
            for (const Id u : rest_) (below(u, body) ? shared_ : others_).push_back(u);
            if (shared_.empty() || (!outside && !others_.empty())) return refuse("a body keeps what is used elsewhere");
            add_home(b, body, -1, shared_, ways_of(body, b));
            rest_.swap(others_);
        }
        if (outside || (rest_.size() == 1 && leaves_group)) {
            for (const Id u : rest_) {
                const int leaf = leaf_of_[group.accesses[u].op];
                shared_.assign(1, u);
                add_home(b, leaves[nth(leaf)].body, leaf, shared_, Kept{b});
            }
        } else if (!rest_.empty()) {
            add_home(b, deepest(rest_), -1, rest_, Kept{b});
        }
    }
    for (Home& home : homes) ends_of(home.body, home.ends);
    return true;
}

// Outputs take the places of the operands that their leaves name; the last first, for chains.
bool Layout::in_place() {
    const Group& group = problem.group;
    if (std::none_of(leaves.begin(), leaves.end(), [](const Leaf& leaf) { return leaf.under >= 0; })) return true;
    std::vector<int> shared(group.buffers.size(), -1);
    for (std::size_t h = 0; h < homes.size(); ++h)
        if (group.buffers[homes[h].buffer].maker >= 0) shared[homes[h].buffer] = static_cast<int>(h);
    Set gone = 0;
    for (std::size_t n = leaves.size(); n-- > 0;) {
        const Leaf& leaf = leaves[n];
        if (leaf.under < 0) continue;
        const auto& may = group.under[leaf.op];
        const Id operand = static_cast<Id>(leaf.under), output = group.accesses[group.of[leaf.op].back()].buffer;
        if (std::find(may.begin(), may.end(), operand) == may.end()) return refuse("an operand is not to be replaced");
        const int home = shared[operand], place = shared[output];
        if (place >= 0) {
            Home& to = homes[nth(place)];
            if (to.leaf >= 0 || home < 0) return refuse("an output has its home further out");
            const int from = homes[nth(home)].body;
            if (!(to.body <= from && from < at(to.body).end_body)) return refuse("an output has its home further out");
            for (const Id u : group.uses[operand]) to.guests.push_back(u);
            shared[operand] = place;
        } else {
            shared[operand] = -1;
        }
        gone |= one(operand);
    }
    homes.erase_if([&](const Home& home) { return has(gone, home.buffer); });
    return true;
}

// Fills of what lies in DRAM in tiles are whole tiles along every side, or lie in one; of tiles of one index always.
bool Layout::in_tiles() {
    const Group& group = problem.group;
    for (std::size_t h = 0; h < homes.size(); ++h) {
        const Home& home = homes[h];
        const auto& tile = problem.stored[home.buffer].tile;
        if (tile.empty() || !problem.moves(home.buffer)) continue;
        std::vector<int> around;
        for (int b = home.body; b > 0; b = at(b).parent) around.push_back(b);
        std::reverse(around.begin(), around.end());
        for (std::size_t s = 0; s < tile.size(); ++s) {
            const std::int64_t side = group.buffers[home.buffer].sides[s];
            std::int64_t left = side;
            if (tile[s] == 1 || tile[s] == side) continue;
            for (const int b : around) {
                const Body& body = at(b);
                if (body.windows >= 0) {
                    if (windows[nth(body.windows)].side[h] == static_cast<int>(s)) return refuse("windows slide over tiles");
                    continue;
                }
                const bool cuts = std::all_of(home.uses.begin(), home.uses.end(),
                                              [&](Id u) { return problem.side_class[u][s] == body.loop_class; });
                if (!cuts || body.tile >= left) continue;
                left = body.tile;
                if (left % tile[s] == 0) continue;
                if (tile[s] % left || side % tile[s]) return refuse("a fill is no whole tiles, and no part of one");
                break;
            }
        }
    }
    return true;
}

bool Layout::find_moving() {
    const Group& group = problem.group;
    bytes = 0;
    transfers = 0;
    count_.assign(group.buffers.size(), 0);
    for (const Home& home : homes) ++count_[home.buffer];
    order_moving();
    for (const auto& [ranked, h] : ranks_) {
        const Home& home = homes[h];
        const nests::Buffer& buffer = group.buffers[home.buffer];
        const bool stored = buffer.maker >= 0;
        Moving& one_ = moving.add();
        one_.home = static_cast<int>(h);
        one_.stored = stored;
        one_.owned = home.ways.copies > 1;
        one_.load = home.ways.load < 0 ? problem.first_load : home.ways.load;
        one_.store = home.ways.store < 0 ? problem.first_store : home.ways.store;
        const auto& channels = problem.rates.channels;
        if (nth(one_.load) >= channels.size() || !channels[nth(one_.load)].loads || nth(one_.store) >= channels.size() ||
            !channels[nth(one_.store)].stores)
            return refuse("a channel does not go that way");
        one_.in_fills = problem.stored[home.buffer].in_fills || (problem.stored[home.buffer].constant && count_[home.buffer] == 1);
        const Access& first = group.accesses[home.uses[0]];
        const Id owner = stored ? static_cast<Id>(buffer.maker) : first.op;
        std::int64_t fills = 1;
        for (const int b : home.ends) {
            const int axis = group.classes[nth(at(b).loop_class)].axis[owner];
            if ((stored || first.late) && axis >= static_cast<int>(group.operators[owner].outputs))
                (stored ? one_.sums : one_.waits).push_back(b);
            else if (!stored || axis >= 0) fills = nests::times(fills, at(b).entries);
        }
        if (home.ways.late) {
            bool slides = false;
            for (int b = home.body; b > 0; b = at(b).parent) slides |= at(b).windows >= 0 && windows[nth(at(b).windows)].side[h] >= 0;
            if (!stored || !one_.owned || !one_.sums.empty() || slides) return refuse("its stores may not be late");
        }
        if (one_.waits.empty() && one_.sums.empty()) transfers += fills;
        for (const auto* some : {&home.uses, &home.guests})
            for (const Id u : *some) {
                const int leaf = leaf_of_[group.accesses[u].op];
                one_.users |= one(nth(leaf));
                one_.last_leaf = std::max(one_.last_leaf, leaf);
            }
        bytes = nests::plus(bytes, home.crosses);
    }
    if (bytes >= never / 4) return refuse("an absurd number of bytes moves");
    std::size_t next = 0;
    for (std::size_t b = 0; b < bodies.size(); ++b) {
        bodies[b].first_moving = static_cast<int>(next);
        while (next < moving.size() && homes[nth(moving[next].home)].body == static_cast<int>(b)) ++next;
        bodies[b].end_moving = static_cast<int>(next);
    }
    for (Body& body : bodies) {
        body.end_inside = body.end_moving;
        if (body.end_body > 0) body.end_inside = at(body.end_body - 1).end_moving;
    }
    for (std::size_t m = 0; m < moving.size(); ++m)
        for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf)
            if (has(moving[m].users, leaf)) leaves[leaf].uses.push_back(static_cast<int>(m));
    return true;
}

// The homes of what moves, as the law numbers them: bodies as they are walked, in each what it keeps in that order,
// then the rest.
void Layout::order_moving() {
    constexpr int most = 1 << 12;  // names that a body keeps
    ranks_.clear();
    for (std::size_t h = 0; h < homes.size(); ++h) {
        const nests::Buffer& buffer = problem.group.buffers[homes[h].buffer];
        if (buffer.maker >= 0 && !buffer.leaves) continue;
        const auto& keep = at(homes[h].body).item->keep;
        int rank = 0;
        while (nth(rank) < keep.size() && keep[nth(rank)].buffer != homes[h].buffer) ++rank;
        ranks_.emplace_back(homes[h].body * most + std::min(rank, most - 1), h);
    }
    std::sort(ranks_.begin(), ranks_.end());
}

}  // namespace onchip::timed
