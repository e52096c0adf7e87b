#include "nest_framing.h"

#include <algorithm>

#include "bits.h"

namespace onchip::nests {

Window& WindowTable::of(const Group& group, Id loop_class, Set inside, Set whole) {
    std::unique_ptr<Window>& found = known_[{loop_class, inside}];
    if (!found) found = std::make_unique<Window>(group, loop_class, inside, whole);
    return *found;
}

bool place_windows(const Group& group, const Settings& settings, WindowTable& windows, Shape& shape) {
    shape.windows = {};
    std::size_t sliding = 0;
    for (Id l = 0; l < shape.loops(); ++l) {
        if (!group.classes[shape.classes[l]].windows) continue;
        Window& window = windows.of(group, shape.classes[l], inside(shape, l + 1), settings.whole);
        if (!window.legal() || window.points().empty()) return false;
        shape.windows[l] = &window;
        if (window.slides() && ++sliding > settings.windows) return false;
    }
    return true;
}

Framing::Framing(const Group& group, const Settings& settings, Orders& orders, const Shape& shape, Best& best,
                 std::uint64_t& looks, const std::function<bool()>& over)
    : group_(group), settings_(settings), orders_(orders), shape_(shape), best_(best), looks_(looks), over_(over) {
    for (Id l = 0; l < shape.loops(); ++l)
        if (shape.slides(l)) {
            loops_.push_back(l);
            ranges_[l] = {0, shape.windows[l]->points().size()};
        }
    frame_.ring.assign(group.buffers.size(), -1);
    find_candidates();
}

void Framing::find_candidates() {
    for (Id o = static_cast<Id>(group_.size()); o-- > 0;) {
        const Id b = group_.operators[o].writes.buffer;
        if (!group_.inner(b) || has(settings_.whole, b)) continue;
        const Home home = deepest_home(group_, shape_, b);
        const bool leaves = group_.buffers[b].leaves;
        const Id reader = group_.accesses[group_.uses[b].back()].op;
        // In the place of an output it holds what that needs, which may be a ring itself.
        const bool guest = replaced(group_, shape_, settings_.kept(), reader) == b;
        Candidate candidate{b, {}};
        for (const Id l : loops_) {
            if (l >= home.depth || !has(shape_.windows[l]->inner(), b)) continue;
            const bool may = leaves || (home.kind == Home::Kind::body && home.depth == l + 1);
            if (may && !guest) candidate.loops.push_back(l);
            if (!leaves && (!may || guest)) forced_[l] |= one(b);
        }
        if (!candidate.loops.empty()) candidates_.push_back(std::move(candidate));
    }
}

// The buffers whose rows are made again in a loop, the first `decided` candidates being what the frame says.
Set Framing::again(Id loop, std::size_t decided) const {
    Set found = forced_[loop];
    for (std::size_t i = 0; i < decided; ++i) {
        const Id b = candidates_[i].buffer;
        // A home further in, or in the body without being a ring.
        if (has(shape_.windows[loop]->inner(), b) && (frame_.ring[b] < 0 || frame_.ring[b] > static_cast<int>(loop)))
            found |= one(b);
    }
    return found;
}

Set Framing::open(std::size_t decided) const {
    Set found = 0;
    for (std::size_t i = decided; i < candidates_.size(); ++i) found |= one(candidates_[i].buffer);
    return found;
}

// Takes the rows of the tiles that are looked at, as far as candidates are decided.
void Framing::take(std::size_t decided) {
    for (const Id l : loops_) {
        const auto [from, to] = ranges_[l];
        if (to - from > 1 || decided == 0) {
            frame_.turned[l] = &shape_.windows[l]->least(from, to, again(l, 0));
        } else {
            exact_[l] = shape_.windows[l]->at(from, again(l, decided), open(decided));
            frame_.turned[l] = &exact_[l];
        }
    }
}

Bytes Framing::bound(std::size_t decided, Set nothing, Bytes limit) {
    take(decided);
    frame_.exact = false;
    ++looks_;
    if (!settings_.rules.bounds) return 0;
    Homes homes(group_, settings_, orders_, shape_, &frame_);
    homes.weigh_nothing(nothing);
    return homes.possible() ? homes.bound(limit) : unlimited;
}

bool Framing::may_beat(std::size_t decided, Set nothing) { return bound(decided, nothing, best_.bytes) < best_.bytes; }

bool Framing::may_beat(Set nothing) { return may_beat(0, nothing); }

void Framing::search() { narrow(); }

// The loop along which windows slide with most points to look at.
Id Framing::widest() const {
    Id widest = loops_[0];
    for (const Id l : loops_)
        if (ranges_[l].second - ranges_[l].first > ranges_[widest].second - ranges_[widest].first) widest = l;
    return widest;
}

// Judges many tiles at once, the larger ones first.
void Framing::narrow() {
    if (over_()) return;
    const Id widest = this->widest();
    const Range all = ranges_[widest];
    const bool many = all.second - all.first > 1;
    if (!many && candidates_.empty()) ++looks_;  // what follows is as quick as a bound
    else if ((!many || settings_.rules.tiles) && !may_beat(0, 0)) return;
    if (!many) {
        for (const Id l : loops_) frame_.tile[l] = shape_.windows[l]->points()[ranges_[l].first].tile;
        decide(0, false);
        return;
    }
    const std::size_t middle = settings_.rules.tiles ? (all.first + all.second) / 2 : all.first + 1;
    ranges_[widest] = {all.first, middle};
    narrow();
    ranges_[widest] = {middle, all.second};
    narrow();
    ranges_[widest] = all;
}

// Rings first: they let the fewest bytes cross. `fresh`: the last candidate is decided in another way than bounds took.
void Framing::decide(std::size_t next, bool fresh) {
    const bool last = next == candidates_.size();
    if (over_()) return;
    if (fresh && last) ++looks_;  // likewise
    else if (fresh && !may_beat(next, 0)) return;
    if (last) return settle();
    const Id buffer = candidates_[next].buffer;
    for (const int l : worth_keeping(next)) {
        frame_.ring[buffer] = l;
        decide(next + 1, true);
    }
}

// The choices for the next candidate: the loops in whose bodies it may be a ring, then none (-1).
std::vector<int> Framing::worth_keeping(std::size_t next) {
    std::vector<int> found;
    const auto& [buffer, loops] = candidates_[next];
    for (const Id l : loops) {
        // Worth it if in this loop, or further in, rows come twice without.
        bool keeps = !settings_.rules.rings;
        for (const Id inner : loops_) keeps |= inner >= l && shape_.windows[inner]->at(ranges_[inner].first, again(inner, next), open(next)).shared[buffer].keeps;
        if (keeps) found.push_back(static_cast<int>(l));
    }
    found.push_back(-1);
    return found;
}

// Looks for homes, where tiles and rings are decided.
void Framing::settle() {
    if (settings_.over && !reads_ahead()) return;
    take(candidates_.size());
    frame_.exact = true;
    Homes homes(group_, settings_, orders_, shape_, &frame_);
    if (!settings_.rules.bounds || homes.possible()) homes.search(best_, {looks_, over_});
}

void Framing::take(const Part& part) {
    ranges_ = part.points;
    frame_.ring = part.ring;
    for (const Id l : loops_) frame_.tile[l] = shape_.windows[l]->points()[ranges_[l].first].tile;
}

Bytes Framing::bound(const Part& part, Bytes limit) {
    take(part);
    return bound(part.decided, 0, limit);
}

std::vector<Part> Framing::parts(const Part& part) {
    take(part);
    const Id widest = this->widest();
    const auto [from, to] = part.points[widest];
    std::vector<Part> found;
    if (to - from > 1) {
        const std::size_t middle = (from + to) / 2;
        found.assign(2, part);
        found[0].points[widest] = {from, middle};
        found[1].points[widest] = {middle, to};
    } else if (part.decided < candidates_.size()) {
        for (const int l : worth_keeping(part.decided)) {
            found.push_back(part);
            found.back().ring[candidates_[part.decided].buffer] = l;
            ++found.back().decided;
        }
    }
    return found;
}

bool Framing::decided(const Part& part) const {
    const bool one_point = std::all_of(loops_.begin(), loops_.end(), [&](Id l) { return part.points[l].second - part.points[l].first == 1; });
    return one_point && part.decided == candidates_.size();
}

void Framing::search(const Part& part) {
    take(part);
    if (part.decided) decide(part.decided, false);
    else narrow();
}

// True if what lies over a whole input overwrites nothing that a later turn reads.
bool Framing::reads_ahead() const {
    const Id writer = static_cast<Id>(group_.buffers[settings_.over->output].maker);
    for (const Id u : group_.uses[settings_.over->input]) {
        const Access& read = group_.accesses[u];
        if (read.op == writer) continue;
        for (const Id l : loops_) {
            if (l >= std::min(shape_.depth[read.op], shape_.depth[writer])) continue;
            if (!shape_.windows[l]->reads_ahead(ranges_[l].first, again(l, candidates_.size()), read, writer)) return false;
        }
    }
    return true;
}

}  // namespace onchip::nests
