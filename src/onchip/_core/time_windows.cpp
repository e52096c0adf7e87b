// The turns of loops: tiles of plain ones, and along windows how far every operator goes and what buffers hold of it.
#include <algorithm>
#include <map>
#include <numeric>

#include "time_layout.h"

namespace onchip::timed {

namespace {

constexpr std::int64_t most_walked = 1 << 20;

// Adds the tiles into which a loop cuts some.
void cut(const Tiles& outer, std::int64_t tile, std::vector<Tiles>& found) {
    const auto add = [&](std::int64_t length, std::int64_t count) {
        if (!length || !count) return;
        for (Tiles& known : found)
            if (known.length == length) {
                known.count += count;
                return;
            }
        found.push_back({length, count});
    };
    add(tile, outer.length / tile * outer.count);
    add(outer.length % tile, outer.count);
}

// Windows of `span` of a side by steps; without any it goes index by index.
struct Window {
    std::int64_t stride = 1, before = 0, span = 1, per = 1;
};

std::int64_t down(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

// What a loop cuts for all alike: an output, by its maker, or a buffer from outside, by ~ its home.
struct Link {
    int of = 0, side = 0;
    std::int64_t size = 0;
    std::vector<Id> readers;
    std::vector<Window> windows;

    std::int64_t end(std::size_t n, std::int64_t high) const {
        if (!high) return 0;
        const Window& w = windows[n];
        return std::min(size, std::max<std::int64_t>(0, down((high - 1) * w.stride - w.before, w.per) + w.span));
    }
    std::int64_t first(std::size_t n, std::int64_t low) const {
        return std::max<std::int64_t>(0, down(low * windows[n].stride - windows[n].before, windows[n].per));
    }
    // One past the last index that readers need in each turn or before, and the first in it.
    std::vector<std::int64_t> ends(const std::vector<std::vector<Range>>& made, std::size_t turns) const {
        std::vector<std::int64_t> found(turns, 0);
        for (std::size_t n = 0; n < readers.size(); ++n)
            for (std::size_t j = 0; j < turns; ++j) found[j] = std::max(found[j], end(n, made[readers[n]][j].high));
        return found;
    }
    std::vector<std::int64_t> firsts(const std::vector<std::vector<Range>>& made, std::vector<std::int64_t> found) const {
        for (std::size_t n = 0; n < readers.size(); ++n)
            for (std::size_t j = 0; j < found.size(); ++j) {
                const Range& r = made[readers[n]][j];
                if (r.low < r.high && end(n, r.high)) found[j] = std::min(found[j], first(n, r.low));
            }
        return found;
    }
};

// A fraction of whole numbers in lowest terms.
struct Share {
    std::int64_t up = 1, down = 1;
    Share by(std::int64_t times, std::int64_t per) const {
        const std::int64_t both = std::gcd(times, per);
        times /= both;
        per /= both;
        const std::int64_t a = std::gcd(up, per), b = std::gcd(times, down);
        return {up / a * (times / b), down / b * (per / a)};
    }
    bool operator==(const Share&) const = default;
};

std::vector<std::int64_t> before(const std::vector<std::int64_t>& high) {
    std::vector<std::int64_t> found(high.size(), 0);
    for (std::size_t j = 1; j < high.size(); ++j) found[j] = high[j - 1];
    return found;
}

std::vector<Range> ranges(const std::vector<std::int64_t>& low, const std::vector<std::int64_t>& high) {
    std::vector<Range> found(low.size());
    for (std::size_t j = 0; j < low.size(); ++j) found[j] = {low[j], high[j]};
    return found;
}

}  // namespace

bool Layout::slide() {
    for (std::size_t b = 1; b < bodies.size(); ++b) {
        bool slides = false;
        if (!slide_along(static_cast<int>(b), bodies[b].around, slides)) return false;
        Body& body = bodies[b];
        if (slides) continue;
        const Id first = leaves[nth(body.first_leaf)].op;
        const nests::Class& along = problem.group.classes[nth(body.loop_class)];
        body.size = problem.group.operators[first].axes[nth(along.axis[first])];
        if (body.before >= 0) {
            if (at(body.before).windows >= 0) return refuse("a loop inside goes along windows");
            for (const Tiles& from : at(body.before).tiles) cut(from, body.tile, body.tiles);
        } else {
            cut({body.size, 1}, body.tile, body.tiles);
            for (int leaf = body.first_leaf; leaf < body.end_leaf; ++leaf) {
                const Id op = leaves[nth(leaf)].op;
                if (problem.group.operators[op].axes[nth(along.axis[op])] != body.size)
                    return refuse("a loop goes along axes of several sizes");
            }
        }
        body.entries = 0;
        for (const Tiles& t : body.tiles) body.entries = nests::plus(body.entries, t.count);
    }
    return true;
}

bool Layout::slide_along(int number, bool outer, bool& slides) {
    const Group& group = problem.group;
    Body& body = at(number);
    const std::size_t c = nth(body.loop_class);
    const nests::Class& along = group.classes[c];
    slides = false;
    if (!along.windows) return body.item->ring.empty() || refuse("a ring, and no windows slide");
    Set inside = 0;
    for (int leaf = body.first_leaf; leaf < body.end_leaf; ++leaf) inside |= one(leaves[nth(leaf)].op);
    const auto window_of = [&](const Access& access) -> Window {
        for (const nests::Slide& s : access.slides)
            if (static_cast<int>(s.side) == access.cut[c] && static_cast<int>(s.axis) == along.axis[access.op]) {
                slides = true;
                return {s.stride, s.before, s.span, s.per};
            }
        return {};
    };
    std::map<int, Link> links;  // by what they are of
    for (int leaf = body.first_leaf; leaf < body.end_leaf; ++leaf) {
        const Id op = leaves[nth(leaf)].op;
        const Access& made = group.accesses[group.of[op].back()];
        if (made.cut[c] == -2) return refuse("a loop cuts two sides");
        Link link{static_cast<int>(op), made.cut[c], group.operators[op].axes[nth(along.axis[op])], {}, {}};
        for (const Id u : group.uses[made.buffer]) {
            const Access& read = group.accesses[u];
            if (read.writes || !has(inside, read.op)) continue;
            link.readers.push_back(read.op);
            link.windows.push_back(made.cut[c] < 0 ? Window{} : window_of(read));
        }
        if (link.side >= 0 && !link.readers.empty()) links.emplace(link.of, std::move(link));
    }
    std::vector<std::size_t> own;  // homes inside
    for (std::size_t h = 0; h < homes.size(); ++h) {
        if (homes[h].body < number || homes[h].body >= body.end_body) continue;
        own.push_back(h);
        if (group.buffers[homes[h].buffer].maker >= 0) continue;
        const int side = group.accesses[homes[h].uses[0]].cut[c];
        bool all = side >= 0;
        for (const Id u : homes[h].uses) {
            if (group.accesses[u].cut[c] == -2) return refuse("a loop cuts two sides");
            all &= group.accesses[u].cut[c] == side;
        }
        if (!all) continue;
        Link link{~static_cast<int>(h), side, group.buffers[homes[h].buffer].sides[nth(side)], {}, {}};
        for (const Id u : homes[h].uses) {
            link.readers.push_back(group.accesses[u].op);
            link.windows.push_back(window_of(group.accesses[u]));
        }
        links.emplace(link.of, std::move(link));
    }
    for (const Id name : body.item->ring) {
        if (!slides) return refuse("a ring, and no windows slide");
        int found = -1;
        for (const std::size_t h : own)
            if (homes[h].buffer == name && homes[h].body == number && homes[h].leaf < 0) found = static_cast<int>(h);
        if (found < 0 || homes[nth(found)].ring >= 0) return refuse("a ring has no home in the body");
        const int maker = group.buffers[name].maker;
        if (!links.count(~found) && (maker < 0 || !links.count(maker))) return refuse("a ring that the loop does not cut");
        homes[nth(found)].ring = number;
    }
    if (!slides) return true;
    if (outer) return refuse("a loop inside goes along windows");
    const auto sum = [&](Id op) { return along.axis[op] >= static_cast<int>(group.operators[op].outputs); };
    const auto driver = [&](Id op) {
        const Id buffer = group.accesses[group.of[op].back()].buffer;
        if (!links.count(static_cast<int>(op)) || group.buffers[buffer].leaves) return true;
        return std::any_of(group.uses[buffer].begin(), group.uses[buffer].end(),
                           [&](Id u) { return !has(inside, group.accesses[u].op); });
    };
    for (int leaf = body.first_leaf; leaf < body.end_leaf; ++leaf) {
        const Id op = leaves[nth(leaf)].op;
        const auto& writes = group.operators[op].writes.axes;
        if (!sum(op) && std::find(writes.begin(), writes.end(), along.axis[op]) == writes.end())
            return refuse("a loop cuts nothing of an operator");
    }
    // How far the members of each part that is linked go for one index of the loop.
    std::map<int, Share> part;
    std::vector<std::int64_t> steps(group.size(), 0);
    std::int64_t turns = -1;
    for (int leaf = body.first_leaf; leaf < body.end_leaf; ++leaf) {
        const int first = static_cast<int>(leaves[nth(leaf)].op);
        if (part.count(first)) continue;
        std::vector<int> mine{first};
        part[first] = {};
        std::int64_t whole = 1;
        for (std::size_t n = 0; n < mine.size(); ++n) {
            const int here = mine[n];
            const auto reach = [&](int other, std::int64_t times, std::int64_t per) {
                const Share found = part[here].by(times, per);
                if (const auto known = part.find(other); known != part.end()) return known->second == found;
                part[other] = found;
                mine.push_back(other);
                whole = std::lcm(whole, found.down);
                return whole < (std::int64_t{1} << 30) && found.up < (std::int64_t{1} << 30);
            };
            for (const auto& [of, link] : links)
                for (std::size_t r = 0; r < link.readers.size(); ++r) {
                    const Window& w = link.windows[r];
                    if (static_cast<int>(link.readers[r]) == here && !reach(of, w.stride, w.per))
                        return refuse("strides do not agree");
                    if (of == here && !reach(static_cast<int>(link.readers[r]), w.per, w.stride))
                        return refuse("strides do not agree");
                }
        }
        std::int64_t count = 0;
        for (const int member : mine) {
            if (member < 0 || !driver(static_cast<Id>(member))) continue;
            const Id op = static_cast<Id>(member);
            steps[op] = nests::times(part[member].up * (whole / part[member].down), body.tile);
            const std::int64_t size = group.operators[op].axes[nth(along.axis[op])];
            count = std::max(count, (size + steps[op] - 1) / steps[op]);
        }
        if (turns >= 0 && count != turns) return refuse("parts take other numbers of turns");
        turns = count;
    }
    if (turns < 1 || turns * (body.end_leaf - body.first_leaf + static_cast<int>(links.size() + own.size())) > most_walked)
        return refuse("too many turns along windows");
    for (Id op = 0; op < group.size(); ++op)
        if (steps[op] && sum(op) &&
            (group.operators[op].axes[nth(along.axis[op])] + steps[op] - 1) / steps[op] != turns)
            return refuse("an operator sums nothing in some turn");
    Windows found;
    found.turns = turns;
    found.made.resize(group.size());
    found.side.assign(homes.size(), -1);
    found.there.resize(homes.size());
    found.moved.resize(homes.size());
    const std::size_t many_ = static_cast<std::size_t>(turns);
    for (int leaf = body.end_leaf; leaf-- > body.first_leaf;) {
        const Id op = leaves[nth(leaf)].op;
        const std::int64_t size = group.operators[op].axes[nth(along.axis[op])];
        std::vector<std::int64_t> high(many_);
        for (std::size_t j = 0; j < many_; ++j)
            high[j] = std::min(size, nests::times(static_cast<std::int64_t>(j) + 1, steps[op]));
        std::vector<std::int64_t> low = before(high);
        if (const auto link = links.find(static_cast<int>(op)); link != links.end()) {
            const auto needed = link->second.ends(found.made, many_);
            for (std::size_t j = 0; j < many_; ++j) high[j] = std::max(high[j], needed[j]);
            low = before(high);
            const Id write = group.of[op].back();
            for (const std::size_t h : own) {
                const bool here = std::count(homes[h].uses.begin(), homes[h].uses.end(), write) ||
                                  std::count(homes[h].guests.begin(), homes[h].guests.end(), write);
                if (!here || homes[h].ring == number) continue;
                const auto first = link->second.firsts(found.made, high);
                for (std::size_t j = 0; j < many_; ++j) low[j] = steps[op] ? std::min(low[j], first[j]) : first[j];
            }
        }
        found.made[op] = ranges(low, high);
    }
    for (const std::size_t h : own) {
        Home& home = homes[h];
        const int maker = group.buffers[home.buffer].maker;
        const auto link = links.find(maker < 0 ? ~static_cast<int>(h) : maker);
        if (link != links.end()) {
            found.side[h] = link->second.side;
            std::vector<std::int64_t> high(many_);
            if (maker < 0) high = link->second.ends(found.made, many_);
            else
                for (std::size_t j = 0; j < many_; ++j) high[j] = found.made[nth(maker)][j].high;
            const auto first = link->second.firsts(found.made, high);
            found.there[h] = found.moved[h] = ranges(first, high);
            if (maker >= 0) {
                found.there[h] = found.moved[h] = found.made[nth(maker)];
                if (group.buffers[home.buffer].leaves) {
                    const auto past = before(high);
                    for (std::size_t j = 0; j < many_; ++j)
                        found.moved[h][j] = {std::max(found.made[nth(maker)][j].low, past[j]), high[j]};
                }
            } else if (home.ring == number) {
                found.moved[h] = ranges(before(high), high);
            }
            if (home.ring == number) {
                auto last = first;
                for (std::size_t j = many_ - 1; j-- > 0;) last[j] = std::min(last[j], last[j + 1]);
                const auto past = before(high);
                for (std::size_t j = 0; j < many_; ++j) last[j] = std::min(last[j], past[j]);
                found.there[h] = ranges(last, high);
            }
        } else if (maker >= 0) {
            const int side = group.accesses[group.of[nth(maker)].back()].cut[c];
            if (side >= 0) {
                found.side[h] = side;
                found.there[h] = found.moved[h] = found.made[nth(maker)];
            }
        }
    }
    body.windows = static_cast<int>(windows.size());
    body.size = turns;
    body.entries = turns;
    windows.push_back(std::move(found));
    return true;
}

}  // namespace onchip::timed
