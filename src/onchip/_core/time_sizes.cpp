// The sizes of a nest's buffers, the bytes that cross, partial sums, places in the scratch, cycles.
#include <algorithm>
#include <tuple>

#include "time_layout.h"

namespace onchip::timed {

// The sides of the part that an access needs inside the loops around what a body holds.
void Layout::left(Id use, int body, std::vector<std::int64_t>& sides) const {
    const Access& access = problem.group.accesses[use];
    sides = problem.group.buffers[access.buffer].sides;
    Set seen = 0;
    for (int b = body; b > 0; b = at(b).parent) {
        if (has(seen, nth(at(b).loop_class))) continue;
        seen |= one(nth(at(b).loop_class));
        for (std::size_t s = 0; s < sides.size(); ++s)
            if (problem.side_class[use][s] == at(b).loop_class) {
                std::int64_t most = 0;
                if (at(b).windows >= 0)
                    for (const Range& r : windows[nth(at(b).windows)].made[access.op]) most = std::max(most, r.length());
                else for (const Tiles& t : at(b).tiles) most = std::max(most, t.length);
                sides[s] = most;
            }
    }
}

void Layout::sizes() {
    const Group& group = problem.group;
    for (std::size_t h = 0; h < homes.size(); ++h) {
        Home& home = homes[h];
        const nests::Buffer& buffer = group.buffers[home.buffer];
        home.held = buffer.sides;
        home.cut.assign(buffer.sides.size(), -1);
        std::int64_t total = buffer.element, again = 1;
        const Access& first = group.accesses[home.uses[0]];
        const Id owner = buffer.maker >= 0 ? static_cast<Id>(buffer.maker) : first.op;
        for (const int b : home.ends) {
            const Body& body = at(b);
            std::int64_t count = body.entries;
            if (body.windows < 0) {
                std::int64_t most = 0;
                for (const Tiles& t : body.tiles) most = std::max(most, t.length);
                std::size_t sides = 0;
                for (std::size_t s = 0; s < buffer.sides.size(); ++s)
                    if (std::all_of(home.uses.begin(), home.uses.end(),
                                    [&](Id u) { return problem.side_class[u][s] == body.loop_class; })) {
                        home.held[s] = most;
                        home.cut[s] = b;
                        ++sides;
                    }
                count = 0;
                for (const Tiles& t : body.tiles) {
                    std::int64_t boxes = t.count;
                    for (std::size_t k = 0; k < sides; ++k) boxes *= t.length;
                    count += boxes;
                }
            } else {
                const Windows& slid = windows[nth(body.windows)];
                if (slid.side[h] >= 0) {
                    count = 0;
                    for (const Range& r : slid.moved[h]) count += r.length();
                    std::int64_t most = 0;
                    for (const Range& r : slid.there[h]) most = std::max(most, r.length());
                    home.held[nth(slid.side[h])] = most;
                    home.cut[nth(slid.side[h])] = b;
                }
            }
            const int axis = group.classes[nth(body.loop_class)].axis[owner];
            const bool sum = axis >= static_cast<int>(group.operators[owner].outputs);
            if (buffer.maker < 0) {
                if (first.late && sum) continue;
                total = nests::times(total, count);
            } else {
                (sum ? again : total) = nests::times(sum ? again : total, count);
            }
        }
        for (std::size_t s = 0; s < home.cut.size(); ++s)
            if (home.cut[s] < 0) total = nests::times(total, buffer.sides[s]);
        home.crosses = buffer.maker < 0 ? total : buffer.leaves ? again : 0;  // of what leaves: see widths
        if (buffer.maker >= 0 && buffer.leaves) {
            home.crosses = total;
            home.bytes = nests::times(total, again);  // all turns, for now
        }
    }
}

bool Layout::many(const Leaf& leaf, int b) const {
    const Body& body = at(b);
    if (body.windows >= 0) {
        int some = 0;
        for (const Range& r : windows[nth(body.windows)].made[leaf.op]) some += r.length() > 0;
        return some > 1;
    }
    return body.entries > (body.before < 0 ? 1 : at(body.before).entries);
}

// Copies of partial sums only where no two fills after each other are one box.
bool Layout::spilled() const {
    const Group& group = problem.group;
    for (const Home& home : homes) {
        const int maker = group.buffers[home.buffer].maker;
        if (home.ways.copies < 2 || maker < 0) continue;
        const Id op = static_cast<Id>(maker);
        bool sums = false;
        for (int b = home.body; b > 0; b = at(b).parent)
            sums |= group.classes[nth(at(b).loop_class)].axis[op] >= static_cast<int>(group.operators[op].outputs) &&
                    at(b).entries > 1;
        if (!sums) continue;
        const Body& last = at(home.body);
        const int axis = group.classes[nth(last.loop_class)].axis[op];
        const auto& along = group.operators[op].writes.axes;
        const bool apart = std::find(along.begin(), along.end(), axis) != along.end() && last.before < 0;
        if (!apart || last.windows >= 0 || last.entries < 2) return false;
    }
    return true;
}

// How wide partial sums are, and what lies beside homes.
bool Layout::widths() {
    const Group& group = problem.group;
    for (const Leaf& leaf : leaves) {
        const nests::Operator& op = group.operators[leaf.op];
        const Id write = group.of[leaf.op].back();
        const Id buffer = group.accesses[write].buffer;
        int number = -1;
        for (std::size_t h = 0; h < homes.size() && number < 0; ++h)
            if (std::count(homes[h].uses.begin(), homes[h].uses.end(), write) ||
                std::count(homes[h].guests.begin(), homes[h].guests.end(), write))
                number = static_cast<int>(h);
        std::size_t sum = 0;  // the first loop over a sum, by its place in the path
        for (std::size_t n = 1; n < leaf.path.size() && !sum; ++n)
            if (group.classes[nth(at(leaf.path[n]).loop_class)].axis[leaf.op] >= static_cast<int>(op.outputs) &&
                many(leaf, leaf.path[n]))
                sum = n;
        if (!sum) continue;
        std::size_t above = 0;
        if (number >= 0)
            for (int b = homes[nth(number)].body; b > 0; b = at(b).parent) ++above;
        bool apart = false;
        for (std::size_t n = above + 1; n < sum; ++n) {
            const int axis = group.classes[nth(at(leaf.path[n]).loop_class)].axis[leaf.op];
            apart |= std::find(op.writes.axes.begin(), op.writes.axes.end(), axis) != op.writes.axes.end();
        }
        std::vector<std::int64_t>& sides = sides_;
        left(write, leaf.path[sum - 1], sides);
        apart = apart || (number >= 0 && sides != homes[nth(number)].held);
        const int loop = leaf.path[sum];
        if (op.carries && sum - 1 < above) return refuse("sums carry a state that stays on chip");
        if (op.carries) {
            std::int64_t values = op.carries;
            for (std::size_t s = 0; s < sides.size(); ++s) {
                const int axis = op.writes.axes[s];
                if (axis >= 0 && std::count(op.across.begin(), op.across.end(), static_cast<Id>(axis))) continue;
                values *= sides[s];
            }
            beside.push_back({problem.up(values * group.buffers[buffer].accumulated), at(loop).first_leaf, at(loop).end_leaf - 1});
        }
        if (!group.widens(buffer)) continue;
        if (number >= 0 && (sum - 1 < above || !apart)) {
            if (homes[nth(number)].buffer != buffer) return refuse("what is replaced holds wider sums");
            homes[nth(number)].width = group.buffers[buffer].accumulated;
        } else {
            std::int64_t values = 1;
            for (const std::int64_t side : sides) values *= side;
            beside.push_back({problem.up(values * group.buffers[buffer].accumulated), at(loop).first_leaf, at(loop).end_leaf - 1});
        }
    }
    for (Home& home : homes) {
        const nests::Buffer& buffer = group.buffers[home.buffer];
        if (buffer.maker >= 0 && buffer.leaves)
            home.crosses += 2 * ((home.bytes - home.crosses) / buffer.element) * home.width;
    }
    return true;
}

// Places in the scratch.
void Layout::lay() {
    const Group& group = problem.group;
    const int count = static_cast<int>(leaves.size());
    for (std::size_t h = 0; h < homes.size(); ++h) {
        Home& home = homes[h];
        std::int64_t held = 1;
        for (const std::int64_t side : home.held) held = nests::times(held, side);
        home.bytes = problem.up(nests::times(held, home.width));
        if (home.ways.copies > 1) {
            if (home.body > 0) {
                Bytes more = home.bytes;
                if (home.ring >= 0) {
                    const Windows& slid = windows[nth(at(home.ring).windows)];
                    std::int64_t rows = 0;
                    for (const Range& r : slid.moved[h]) rows = std::max(rows, r.length());
                    const std::int64_t side = home.held[nth(slid.side[h])];
                    more = problem.up(held / std::max<std::int64_t>(side, 1) * rows * home.width);
                }
                home.bytes = nests::plus(home.bytes, nests::times(home.ways.copies - 1, more));
            }
            home.first = 0;
            home.last = count - 1;
            continue;
        }
        if (home.leaf >= 0) {
            home.first = home.last = home.leaf;
            continue;
        }
        if (home.ring >= 0) {
            home.first = at(home.body).first_leaf;
            home.last = at(home.body).end_leaf - 1;
            continue;
        }
        int least = count, most = -1;
        for (const auto* some : {&home.uses, &home.guests})
            for (const Id u : *some) {
                const int leaf = leaf_of_[group.accesses[u].op];
                least = std::min(least, leaf);
                most = std::max(most, leaf);
            }
        // of the items that hold them: all leaves from the first to the last
        const auto item_of = [&](int leaf) {
            const auto& path = leaves[nth(leaf)].path;
            const auto own = std::find(path.begin(), path.end(), home.body);
            return own + 1 == path.end() ? -1 : *(own + 1);
        };
        const int low = item_of(least), high = item_of(most);
        home.first = low < 0 ? least : at(low).first_leaf;
        home.last = high < 0 ? most : at(high).end_leaf - 1;
    }
    need = 0;
    for (int leaf = 0; leaf < count; ++leaf) {
        Bytes live = 0;
        for (const Home& home : homes)
            if (home.first <= leaf && leaf <= home.last) live = nests::plus(live, home.bytes);
        for (const Beside& some : beside)
            if (some.first <= leaf && leaf <= some.last) live = nests::plus(live, some.bytes);
        need = std::max(need, live);
    }
}

// The sides of the array on which an operator takes the fewest cycles, and these: of what was found of its axes.
void Layout::array_of(Leaf& leaf) {
    const nests::Operator& op = problem.group.operators[leaf.op];
    const Work& per = problem.work[leaf.op];
    Time best = never;
    for (const Array& array : problem.arrays[leaf.op]) {
        // Steps that go on with a sum begin its blocks again.
        Time all = per.products, blocks = problem.rates.block_cycles;
        Set on = 0;
        for (std::size_t s = 0; s < array.size(); ++s) {
            both_.assign(1, {1, 1});
            for (const Id axis : array[s]) {
                on |= one(axis);
                next_.clear();
                for (const Tiles& a : both_)
                    for (std::size_t n = 0; n < turns_[axis].count; ++n) {
                        const Tiles& b = turns_[axis].tiles[n];
                        next_.push_back({a.length * b.length, a.count * b.count});
                    }
                both_.swap(next_);
            }
            Time fills = 0;
            for (const Tiles& t : both_) fills += t.count * ((t.length + problem.rates.sides[s].size - 1) / problem.rates.sides[s].size);
            all = nests::times(all, fills);
            if (!problem.rates.sides[s].sums) blocks = nests::times(blocks, fills);
        }
        for (std::size_t a = 0; a < op.axes.size(); ++a) {
            Time sum = 0, turns = 0;
            for (std::size_t n = 0; n < turns_[a].count; ++n) {
                const Tiles& t = turns_[a].tiles[n];
                sum += t.length * t.count, turns += t.count;
            }
            if (!has(on, a)) all = nests::times(all, sum);
            if (a >= op.outputs) blocks = nests::times(blocks, turns);
            else if (!has(on, a)) blocks = nests::times(blocks, sum);
        }
        all = nests::plus(all, blocks);
        if (all < best) {
            best = all;
            leaf.array = &array;
        }
    }
    leaf.cycles = best;
}

// Cycles, steps.
void Layout::timed() {
    work = 0;
    for (Leaf& leaf : leaves) {
        leaf.steps = 1;
        Set seen = 0;
        for (std::size_t n = leaf.path.size(); n-- > 1;) {
            const Body& body = at(leaf.path[n]);
            if (!(seen >> body.loop_class & 1)) leaf.steps = nests::times(leaf.steps, body.entries);
            seen |= one(nth(body.loop_class));
        }
        if (!problem.work[leaf.op].products) continue;
        const auto& axes = problem.group.operators[leaf.op].axes;
        whole_.resize(axes.size());
        if (slid_.size() < axes.size()) slid_.resize(axes.size());
        turns_.resize(axes.size());
        for (std::size_t a = 0; a < axes.size(); ++a) {
            if (leaf.axes[a] < 0) {
                whole_[a] = {axes[a], 1};
                turns_[a] = {&whole_[a], 1};
            } else if (at(leaf.axes[a]).windows < 0) {
                turns_[a] = {at(leaf.axes[a]).tiles.data(), at(leaf.axes[a]).tiles.size()};
            } else {
                slid_[a].clear();
                for (const Range& r : windows[nth(at(leaf.axes[a]).windows)].made[leaf.op]) {
                    auto known = std::find_if(slid_[a].begin(), slid_[a].end(), [&](const Tiles& t) { return t.length == r.length(); });
                    if (known != slid_[a].end()) ++known->count;
                    else if (r.length()) slid_[a].push_back({r.length(), 1});
                }
                turns_[a] = {slid_[a].data(), slid_[a].size()};
            }
        }
        array_of(leaf);
    }
    for (const Leaf& leaf : leaves) {
        const bool exact = windows.empty();
        const std::int64_t cycles = nests::plus(leaf.cycles, exact ? nests::times(leaf.steps, problem.rates.step_cycles) : 0);
        // More cycles than can be counted are no time, however fast the clock: no step is to count them.
        work = nests::plus(work, cycles >= never ? never : problem.cycle.of(cycles) - 1);
    }
    work = std::max<Time>(work, 0);
}

// No channels take less time for what crosses.
Time Layout::crossing() const {
    Time moved = problem.together.of(bytes);
    if (problem.rates.channels.size() == 1 && windows.empty()) moved = nests::plus(moved, nests::times(transfers, problem.rates.channels[0].transfer));
    return moved;
}

// First fit, in the best of three orders: the largest first, those that begin first, those that end last.
Bytes Layout::extent() {
    all_.clear();
    for (const Home& home : homes) all_.push_back({home.bytes, home.first, home.last});
    for (const Beside& some : beside) all_.push_back({some.bytes, some.first, some.last});
    Bytes best = never;
    for (int order = 0; order < 3 && best > need; ++order) {
        const auto before = [&](const Held& a, const Held& b) {
            if (order == 0) return std::tuple(-a.size, a.first, a.last) < std::tuple(-b.size, b.first, b.last);
            if (order == 1) return std::tuple(a.first, -a.last, -a.size) < std::tuple(b.first, -b.last, -b.size);
            return std::tuple(-a.last, -a.size, a.first) < std::tuple(-b.last, -b.size, b.first);
        };
        order_.resize(all_.size());
        for (std::size_t n = 0; n < order_.size(); ++n) order_[n] = n;
        std::sort(order_.begin(), order_.end(), [&](std::size_t i, std::size_t j) {
            const Held &a = all_[i], &b = all_[j];
            return before(a, b) || (i < j && !before(b, a));
        });
        Bytes end = 0;
        for (std::size_t n = 0; n < order_.size(); ++n) {
            Held& one_ = all_[order_[n]];
            taken_.clear();
            for (std::size_t m = 0; m < n; ++m) {
                const Held& other = all_[order_[m]];
                if (other.first <= one_.last && one_.first <= other.last) taken_.emplace_back(other.at, other.at + other.size);
            }
            std::sort(taken_.begin(), taken_.end());
            Bytes at_offset = 0;
            for (const auto& [low, high] : taken_) {
                if (at_offset + one_.size <= low) break;
                at_offset = std::max(at_offset, high);
            }
            one_.at = at_offset;
            end = std::max(end, at_offset + one_.size);
        }
        best = std::min(best, end);
    }
    return all_.empty() ? 0 : best;
}

}  // namespace onchip::timed
