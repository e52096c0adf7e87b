#include "time_clock.h"

#include <algorithm>

namespace onchip::timed {

const Times* Walk::times(Layout& layout, Time below, std::int64_t most_steps, bool every_turn) {
    layout_ = &layout;
    below_ = below;
    most_ = most_steps;
    every_turn_ = every_turn;
    walked_ = 0;
    over_ = false;
    end_ = 0;
    shared_end_ = -1;
    shared_.clear();
    owned_.clear();
    channels_.assign(problem_.rates.channels.size(), 0);
    served_.assign(channels_.size(), 0);
    totals_.time = totals_.work = totals_.bytes = totals_.steps = totals_.transfers = 0;
    totals_.busy.assign(channels_.size(), 0);
    if (states_.size() < layout.moving.size()) states_.resize(layout.moving.size());
    if (snapshots_.size() < 2 * layout.bodies.size()) snapshots_.resize(2 * layout.bodies.size());
    for (std::size_t m = 0; m < layout.moving.size(); ++m) {
        State& state = states_[m];
        state.slots.assign(nth(layout.homes[nth(layout.moving[m].home)].ways.copies), 0);
        state.oldest = 0;
        state.free = state.slots.size();
        state.fills = state.stores = state.moved = state.stored = 0;
        state.fresh = false;
    }
    body(0);
    store_shared();
    store_owned(true);
    Time all = end_;
    for (const Time channel : channels_) all = std::max(all, channel);
    if (over_ || all >= below_) return nullptr;
    totals_.time = all;
    // in a turn of which nothing uses a buffer that crosses, the law says nothing
    for (std::size_t m = 0; m < layout.moving.size(); ++m)
        if (states_[m].moved != layout.homes[nth(layout.moving[m].home)].crosses) return nullptr;
    return &totals_;
}

bool Walk::ends(int number) const {
    const Body& body = layout_->at(number);
    return body.windows >= 0 ? body.index == body.count - 1 : body.high == body.size;
}

bool Walk::begun(int number) const {
    const Body& body = layout_->at(number);
    return body.windows >= 0 ? body.index > 0 : body.low > 0;
}

void Walk::body(int number) {
    const Body& here = layout_->at(number);
    for (int m = here.first_moving; m < here.end_moving; ++m) {
        State& state = states_[nth(m)];
        state.fresh = true;
        if (layout_->windows.empty()) state.last = layout_->moving[nth(m)].last_leaf;
        else {
            state.last = -1;
            state.when.clear();
            find_last(number, layout_->moving[nth(m)].users, state);
        }
    }
    for (const int item : here.items) {
        if (over_) return;
        item < 0 ? visit(~item) : loop(item);
    }
}

// The last step of this turn that some leaves make: along windows an operator may make nothing in a turn.
bool Walk::find_last(int number, Set users, State& state) {
    const std::vector<int>& items = layout_->at(number).items;
    for (std::size_t n = items.size(); n-- > 0;) {
        if (items[n] < 0) {
            const int leaf = ~items[n];
            if (!has(users, nth(leaf))) continue;
            const Leaf& one_ = layout_->leaves[nth(leaf)];
            const bool some = std::all_of(one_.path.begin(), one_.path.end(), [&](int b) {
                return layout_->at(b).windows < 0 || layout_->made(layout_->at(b), one_.op).length() > 0;
            });
            if (!some) continue;
            state.last = leaf;
            return true;
        }
        Body& inner = layout_->at(items[n]);
        bool any = false;
        for (int leaf = inner.first_leaf; leaf < inner.end_leaf; ++leaf) any |= has(users, nth(leaf));
        if (!any) continue;
        const std::int64_t turns = inner.windows < 0 ? 1 : layout_->windows[nth(inner.windows)].turns;
        for (std::int64_t index = turns; index-- > 0;) {
            if (inner.windows >= 0) inner.index = index;
            if (find_last(items[n], users, state)) {
                state.when.emplace_back(items[n], inner.windows < 0 ? -1 : index);
                return true;
            }
        }
    }
    return false;
}

bool Walk::last_now(const State& state, int leaf, int home) const {
    if (state.last != leaf) return false;
    if (layout_->windows.empty()) {
        for (int b = layout_->leaves[nth(leaf)].body; b != home; b = layout_->at(b).parent)
            if (layout_->at(b).index != layout_->at(b).count - 1) return false;
        return true;
    }
    return std::all_of(state.when.begin(), state.when.end(), [&](const auto& turn) {
        const Body& b = layout_->at(turn.first);
        return b.index == (turn.second < 0 ? b.count - 1 : turn.second);
    });
}

bool Walk::slides(int number) const {
    if (!problem_.rates.scratchpad) return false;
    const Body& here = layout_->at(number);
    for (int leaf = here.first_leaf; leaf < here.end_leaf; ++leaf) {
        const Id op = layout_->leaves[nth(leaf)].op;
        const int axis = problem_.group.classes[nth(here.loop_class)].axis[op];
        for (const Id u : problem_.group.of[op])
            for (const nests::Slide& slide : problem_.group.accesses[u].slides)
                if (static_cast<int>(slide.axis) == axis) return true;
    }
    return false;
}

void Walk::loop(int number) {
    Body& here = layout_->at(number);
    std::int64_t low = 0, high = here.size;
    if (here.windows < 0 && here.before >= 0) {
        low = layout_->at(here.before).low;
        high = layout_->at(here.before).high;
    }
    here.count = here.windows >= 0 ? layout_->windows[nth(here.windows)].turns : (high - low + here.tile - 1) / here.tile;
    bool steady = here.windows < 0 && here.count > 3 && !every_turn_ && !slides(number);
    Snapshot *before = &snapshots_[2 * nth(number)], *now = before + 1;
    bool known = false;
    for (std::int64_t index = 0; index < here.count; ++index) {
        here.index = index;
        if (here.windows < 0) {
            here.low = low + index * here.tile;
            here.high = std::min(here.low + here.tile, high);
        }
        body(number);
        if (over_) return;
        if (steady && index < here.count - 2) {
            take(number, *now);
            const std::optional<Time> by = known && index ? moved(*before, *now) : std::nullopt;
            if (by) {
                skip(number, *before, *now, here.count - 2 - index, *by);
                index = here.count - 2;
                steady = false;
            }
            std::swap(before, now);
            known = true;
        }
    }
}

void Walk::visit(int number) {
    const Leaf& leaf = layout_->leaves[nth(number)];
    for (const int b : leaf.axes)
        if (b >= 0 && layout_->made(layout_->at(b), leaf.op).length() <= 0) return;
    if (++walked_ > most_ || end_ + layout_->work - totals_.work >= below_) {
        over_ = true;
        return;
    }
    first_.clear();
    for (const int m : leaf.uses)
        if (states_[nth(m)].fresh) first_.push_back(m);
    store_shared();
    for (const int m : first_)
        if (layout_->moving[nth(m)].owned && !states_[nth(m)].free) give_back(m);
    Time ready = std::max({end_, shared_end_, Time{0}});
    for (const bool owned : {true, false})
        for (const int m : first_)
            if (layout_->moving[nth(m)].owned == owned) {
                states_[nth(m)].fresh = false;
                begin(m, ready);
            }
    store_owned();
    Time work = 0;
    end_ = nests::plus(ready, step(leaf, work));
    shared_end_ = -1;
    ++totals_.steps;
    totals_.work += work;
    for (const int m : leaf.uses)
        if (last_now(states_[nth(m)], number, layout_->homes[nth(layout_->moving[nth(m)].home)].body)) ended(m);
}

std::int64_t Walk::length(const Home& home, int number, std::size_t side) const {
    const int cut = home.cut[side];
    if (cut < 0) return problem_.group.buffers[home.buffer].sides[side];
    const Body& body = layout_->at(cut);
    if (body.windows < 0) return body.high - body.low;
    return layout_->windows[nth(body.windows)].moved[nth(number)][static_cast<std::size_t>(body.index)].length();
}

std::int64_t Walk::elements(const Home& home, int number) const {
    std::int64_t found = 1;
    for (std::size_t s = 0; s < home.cut.size(); ++s) found *= std::max<std::int64_t>(length(home, number, s), 0);
    return found;
}

void Walk::begin(int m, Time& ready) {
    const Moving& moving = layout_->moving[nth(m)];
    const Home& home = layout_->homes[nth(moving.home)];
    State& state = states_[nth(m)];
    ++state.fills;
    Time back = 0;
    if (moving.owned) {
        back = state.slots[state.oldest];
        state.oldest = (state.oldest + 1) % state.slots.size();
        --state.free;
    }
    const bool comes = moving.stored ? std::any_of(moving.sums.begin(), moving.sums.end(), [&](int b) { return begun(b); })
                                     : std::all_of(moving.waits.begin(), moving.waits.end(), [&](int b) { return ends(b); });
    const std::int64_t count = comes ? elements(home, moving.home) : 0;
    if (!count) {
        ready = std::max(ready, back);
        return;
    }
    Time wait = moving.owned ? back : std::max({end_, shared_end_, Time{0}});
    if (moving.stored) wait = std::max(wait, state.stored);
    const Bytes width = moving.stored ? home.width : problem_.group.buffers[home.buffer].element;
    ready = std::max(ready, serve(moving.load, wait, transfer(moving, home, width, moving.load), m, count * width, false));
}

void Walk::ended(int m) {
    const Moving& moving = layout_->moving[nth(m)];
    const Home& home = layout_->homes[nth(moving.home)];
    State& state = states_[nth(m)];
    const std::int64_t count = moving.stored ? elements(home, moving.home) : 0;
    if (!count) {
        if (moving.owned) state.slot(state.free++) = end_;
        return;
    }
    const bool complete = std::all_of(moving.sums.begin(), moving.sums.end(), [&](int b) { return ends(b); });
    const Bytes width = complete ? problem_.group.buffers[home.buffer].element : home.width;
    const Store made{m, transfer(moving, home, width, moving.store), count * width, moving.owned ? home.ways.late : 0};
    if (moving.owned) owned_.push_back({made, end_, walked_});
    else shared_.push_back(made);
}

// The contiguous pieces of a box of a buffer in tiles, and their bytes rounded up to bursts. A piece ends in a tile
// where the box has not all of it; else it goes on over the tiles that follow.
void Walk::pieces(const Moving& moving, const Home& home, Bytes width, Bytes burst, std::int64_t& count, Bytes& crossing) const {
    const auto &tile = problem_.stored[home.buffer].tile, &sides = problem_.group.buffers[home.buffer].sides;
    const std::size_t n = tile.size();
    std::int64_t inside = 1;
    std::size_t apart = n, last = n;  // sides of which every tile is a piece of its own; the last one with a part of a tile
    for (std::size_t s = 0; s < n; ++s)
        if (length(home, moving.home, s) < tile[s] && sides[s] % tile[s] == 0) last = s;
    if (last == n)
        while (apart) {
            --apart;
            const std::int64_t own = length(home, moving.home, apart);
            inside *= own;
            if (own < sides[apart]) break;
        }
    const auto go = [&](const auto& self, std::size_t s, std::int64_t many, std::int64_t piece) -> void {
        if (s == apart) {
            count += many;
            crossing = nests::plus(crossing, nests::times(many, (piece * width + burst - 1) / burst * burst));
            return;
        }
        const std::int64_t own = length(home, moving.home, s), full = own / tile[s], rest = own % tile[s];
        for (const auto& [height, times] : {std::pair(tile[s], full), std::pair(rest, std::int64_t{rest > 0})})
            if (times) last < n && s < last ? self(self, s + 1, many * times * height, piece) : self(self, s + 1, many * times, piece * height);
    };
    go(go, 0, 1, inside);
}

// The time of a transfer of some pieces that pass in `crossing`; what is too long counts as `never`.
static Time lasting(const Channel& channel, std::int64_t pieces, Time crossing) {
    return nests::plus(nests::plus(channel.transfer, nests::times(pieces, channel.piece)), crossing);
}

Time Walk::transfer(const Moving& moving, const Home& home, Bytes width, int number) const {
    const Channel& channel = problem_.rates.channels[nth(number)];
    std::int64_t pieces = 1, piece = 1;
    if (!moving.in_fills && !problem_.stored[home.buffer].tile.empty()) {
        std::int64_t count = 0;
        Bytes bytes = 0;
        this->pieces(moving, home, width, channel.burst, count, bytes);
        return lasting(channel, count, problem_.crossing[nth(number)].of(bytes));
    }
    if (moving.in_fills) {
        piece = elements(home, moving.home);
    } else {
        std::size_t rest = home.cut.size();
        const auto& whole = problem_.stored[home.buffer].whole;
        while (rest) {
            --rest;
            const std::int64_t own = length(home, moving.home, rest);
            piece *= own;
            if (own < whole[rest]) break;
        }
        for (std::size_t s = 0; s < rest; ++s) pieces *= length(home, moving.home, s);
    }
    const Bytes crossing = nests::times(pieces, (piece * width + channel.burst - 1) / channel.burst * channel.burst);
    return lasting(channel, pieces, problem_.crossing[nth(number)].of(crossing));
}

Time Walk::step(const Leaf& leaf, Time& work) const {
    const nests::Operator& op = problem_.group.operators[leaf.op];
    const Work& per = problem_.work[leaf.op];
    const auto range = [&](std::size_t axis) {
        return leaf.axes[axis] < 0 ? Range{0, op.axes[axis]} : layout_->made(layout_->at(leaf.axes[axis]), leaf.op);
    };
    std::int64_t cycles = problem_.rates.step_cycles, made = 1;
    for (std::size_t a = 0; a < op.outputs; ++a) made *= range(a).length();
    if (per.products) {
        std::int64_t blocks = 1, all = per.products;
        Set on = 0;
        if (leaf.array)
            for (std::size_t s = 0; s < leaf.array->size(); ++s) {
                std::int64_t lies = 1;
                for (const Id axis : (*leaf.array)[s]) {
                    lies *= range(axis).length();
                    on |= one(axis);
                }
                (problem_.rates.sides[s].sums ? all : blocks) *= (lies + problem_.rates.sides[s].size - 1) / problem_.rates.sides[s].size;
            }
        for (std::size_t a = 0; a < op.axes.size(); ++a)
            if (!has(on, a)) (a < op.outputs ? blocks : all) *= range(a).length();
        cycles += blocks * (problem_.rates.block_cycles + all);
    }
    work = problem_.cycle.of(cycles);
    Time longest = work;
    if (problem_.rates.vector) longest = std::max(longest, problem_.vector.of(per.vector * made));
    if (!problem_.rates.scratchpad) return longest;
    Bytes read = 0;
    for (const Id u : problem_.group.of[leaf.op]) {
        const Access& access = problem_.group.accesses[u];
        const nests::Buffer& buffer = problem_.group.buffers[access.buffer];
        if (access.writes) {
            const Bytes width = op.axes.size() > op.outputs ? std::max(buffer.element, buffer.accumulated) : buffer.element;
            const bool on = std::any_of(leaf.sums.begin(), leaf.sums.end(), [&](int b) { return begun(b); });
            read += made * width * (on ? 2 : 1);
            continue;
        }
        std::int64_t needed = 1;
        for (std::size_t s = 0; s < access.axes.size(); ++s) {
            const std::int64_t size = buffer.sides[s];
            const nests::Slide* slide = nullptr;
            for (const nests::Slide& some : access.slides)
                if (some.side == s) slide = &some;
            if (access.axes[s] >= 0) needed *= range(static_cast<std::size_t>(access.axes[s])).length();
            else if (!slide) needed *= size;
            else {
                const Range go = range(slide->axis);
                const auto down = [&](std::int64_t x) { return x >= 0 ? x / slide->per : -((slide->per - 1 - x) / slide->per); };
                const std::int64_t low = std::max<std::int64_t>(0, down(go.low * slide->stride - slide->before));
                const std::int64_t last = down((go.high - 1) * slide->stride - slide->before) + slide->span;
                needed *= std::max<std::int64_t>(0, std::min(size, last) - std::min(low, size));
            }
        }
        read += needed * buffer.element;
    }
    return std::max(longest, problem_.scratchpad.of(read));
}

void Walk::store_shared() {
    for (const Store& one_ : shared_)
        shared_end_ = std::max(shared_end_, serve(layout_->moving[nth(one_.moving)].store, end_, one_.duration, one_.moving, one_.bytes, true));
    shared_.clear();
}

Time Walk::serve_store(const Pending& one_) {
    const Store& what = one_.what;
    State& state = states_[nth(what.moving)];
    return state.slot(state.free++) = serve(layout_->moving[nth(what.moving)].store, one_.ready, what.duration, what.moving, what.bytes, true);
}

// The stores whose time has come; each of the others lets one more step begin before it.
void Walk::store_owned(bool all) {
    std::size_t left = 0;
    for (Pending& one_ : owned_) {
        if (all || !one_.what.late) {
            serve_store(one_);
            continue;
        }
        --one_.what.late;
        owned_[left++] = one_;
    }
    owned_.resize(left);
}

// The late store that holds the slot in which a buffer's next fill is to lie.
void Walk::give_back(int m) {
    const auto held = std::find_if(owned_.begin(), owned_.end(), [&](const Pending& one_) { return one_.what.moving == m; });
    if (held == owned_.end()) return;
    serve_store(*held);
    owned_.erase(held);
}

Time Walk::serve(int channel, Time ready, Time duration, int m, Bytes bytes, bool stored) {
    const Time end = channels_[nth(channel)] = nests::plus(std::max(channels_[nth(channel)], ready), duration);
    ++served_[nth(channel)];
    State& state = states_[nth(m)];
    state.moved += bytes;
    totals_.busy[nth(channel)] = nests::plus(totals_.busy[nth(channel)], duration);
    ++totals_.transfers;
    totals_.bytes += bytes;
    if (stored) {
        ++state.stores;
        state.stored = end;
    }
    return end;
}

// All that an inner turn of a loop may read or write, how often each was used, and what adds up.
void Walk::take(int number, Snapshot& into) const {
    const Body& here = layout_->at(number);
    into.entries.clear();
    into.uses.clear();
    into.counts.clear();
    const auto add = [&](Time entry, std::int64_t used) {
        into.entries.push_back(entry);
        into.uses.push_back(used);
    };
    add(end_, walked_);
    for (std::size_t c = 0; c < channels_.size(); ++c) add(channels_[c], served_[c]);
    into.no_shared = shared_end_ < 0;
    if (shared_end_ >= 0) add(shared_end_, walked_);
    into.counts = {totals_.steps, totals_.work, totals_.bytes, totals_.transfers};
    for (std::size_t c = 0; c < channels_.size(); ++c) {
        into.counts.push_back(totals_.busy[c]);
        into.counts.push_back(served_[c]);
    }
    for (int m = here.first_moving; m < here.end_inside; ++m) {
        const State& state = states_[nth(m)];
        if (layout_->moving[nth(m)].owned)
            for (std::size_t n = 0; n < state.free; ++n) add(state.slot(n), state.fills);
        add(state.stored, state.stores);
        into.counts.insert(into.counts.end(), {state.fills, state.stores, state.moved});
    }
    into.shared = shared_;
    into.owned.clear();
    for (const Pending& one_ : owned_) {
        into.owned.push_back(one_.what);
        add(one_.ready, one_.step);
    }
}

std::optional<Time> Walk::moved(const Snapshot& before, const Snapshot& now) const {
    if (before.entries.size() != now.entries.size() || before.no_shared != now.no_shared || before.shared != now.shared || before.owned != now.owned) return std::nullopt;
    const Time by = now.entries[0] - before.entries[0];
    for (std::size_t n = 0; n < now.entries.size(); ++n)
        if (now.entries[n] - before.entries[n] != (before.uses[n] != now.uses[n] ? by : 0)) return std::nullopt;
    return by;
}

void Walk::skip(int number, const Snapshot& before, const Snapshot& now, std::int64_t turns, Time by) {
    const Body& here = layout_->at(number);
    const Time far = nests::times(turns, by);
    std::size_t at = 0;
    const auto ahead = [&] {
        const Time found = before.entries[at] != now.entries[at] ? far : 0;
        ++at;
        return found;
    };
    end_ += ahead();
    for (Time& channel : channels_) channel += ahead();
    if (shared_end_ >= 0) shared_end_ += ahead();
    std::size_t next = 0;
    const auto more = [&](std::int64_t& count) {
        count += turns * (now.counts[next] - before.counts[next]);
        ++next;
    };
    more(totals_.steps);
    more(totals_.work);
    more(totals_.bytes);
    more(totals_.transfers);
    for (std::size_t c = 0; c < channels_.size(); ++c) {
        more(totals_.busy[c]);
        more(served_[c]);
    }
    for (int m = here.first_moving; m < here.end_inside; ++m) {
        State& state = states_[nth(m)];
        if (layout_->moving[nth(m)].owned) {
            for (std::size_t n = 0; n < state.free; ++n) state.slot(n) += ahead();
        }
        state.stored += ahead();
        more(state.fills);
        more(state.stores);
        more(state.moved);
    }
    for (Pending& one_ : owned_) one_.ready += ahead();
}

}  // namespace onchip::timed
