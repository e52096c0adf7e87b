#include "nest_group.h"

#include <algorithm>
#include <optional>
#include <stdexcept>

namespace onchip::nests {

namespace {

// Axes of all operators in classes: no class has two axes of one operator.
class Joining {
  public:
    explicit Joining(const std::vector<Operator>& operators) {
        for (Id o = 0; o < operators.size(); ++o) {
            first_.push_back(static_cast<Id>(of_.size()));
            for (Id a = 0; a < operators[o].axes.size(); ++a) {
                members_.push_back({{o, a}});
                of_.push_back(static_cast<Id>(of_.size()));
            }
        }
    }
    void join(Id a_op, int a, Id b_op, int b) {
        const Id into = of_[first_[a_op] + static_cast<Id>(a)], from = of_[first_[b_op] + static_cast<Id>(b)];
        if (into == from) return;
        for (const auto& [o, axis] : members_[from])
            for (const auto& [other, other_axis] : members_[into])
                if (o == other) return;
        for (const auto& [o, axis] : members_[from]) {
            of_[first_[o] + axis] = into;
            members_[into].push_back({o, axis});
        }
        members_[from].clear();
    }
    const std::vector<Members>& classes() const { return members_; }

  private:
    std::vector<Id> first_, of_;
    std::vector<Members> members_;
};

const Slide* window_of(const std::vector<Slide>& slides, std::size_t side) {
    for (const Slide& one : slides)
        if (one.side == side) return &one;
    return nullptr;
}

// Marks the indices of a side that windows need, those of the needed indices along their axis.
void mark(const Slide& slide, const std::vector<bool>& needed, std::vector<bool>& side) {
    const auto size = static_cast<std::int64_t>(side.size());
    std::int64_t next = 0;  // all before it are marked already, as far as they are needed
    for (std::size_t o = 0; o < needed.size(); ++o) {
        if (!needed[o]) continue;
        const std::int64_t at = static_cast<std::int64_t>(o) * slide.stride - slide.before;
        const std::int64_t first = at >= 0 ? at / slide.per : -((slide.per - 1 - at) / slide.per);
        for (next = std::max(next, first); next < std::min(size, first + slide.span); ++next)
            side[static_cast<std::size_t>(next)] = true;
    }
}

std::vector<Point> points_of(std::int64_t size, bool every_tile) {
    std::vector<Point> points;
    for (std::int64_t tile = size - 1; tile > 0; --tile) {
        const std::int64_t turns = (size + tile - 1) / tile;
        const std::int64_t least = every_tile ? tile : (size + turns - 1) / turns;
        points.push_back({turns, least});
        tile = least;
    }
    return points;
}

}  // namespace

Group::Group(std::vector<Operator> given, std::vector<Buffer> used, bool every_tile)
    : operators(std::move(given)), buffers(std::move(used)), every_tile_(every_tile) {
    check();
    uses.resize(buffers.size());
    of.resize(size());
    before.resize(size());
    sliced.resize(size());
    summed.resize(size());
    for (Id o = 0; o < size(); ++o) {
        const Operator& op = operators[o];
        for (Id a = 0; a < op.axes.size(); ++a)
            if (op.axes[a] > 1) sliced[o] |= one(a);
        for (const Id a : op.together) sliced[o] &= ~one(a);
        summed[o] = op.outputs < most ? sliced[o] & ~(one(op.outputs) - 1) : 0;
        const auto add = [&](const Use& use, bool writes) {
            Access access{o, use.buffer, writes, use.axes, use.slides, use.late, {}, 0};
            for (const int axis : use.axes)
                if (axis >= 0) access.slices |= one(static_cast<Id>(axis)) & sliced[o];
            const Id id = static_cast<Id>(accesses.size());
            of[o].push_back(id);
            uses[use.buffer].push_back(id);
            accesses.push_back(std::move(access));
        };
        for (const Use& use : op.reads) {
            add(use, false);
            if (const int maker = buffers[use.buffer].maker; maker >= 0)
                before[o] |= before[static_cast<Id>(maker)] | one(static_cast<Id>(maker));
        }
        add(op.writes, true);
    }
    for (Id b = 0; b < buffers.size(); ++b)  // the one that writes comes first
        if (buffers[b].maker >= 0)
            std::stable_partition(uses[b].begin(), uses[b].end(), [&](Id u) { return accesses[u].writes; });
    under.resize(size());
    for (Id o = 0; o < size(); ++o)
        for (const Id u : of[o])
            if (may_lie_under(accesses[u], accesses[of[o].back()])) under[o].push_back(accesses[u].buffer);
    find_classes();
    const bool windows = std::any_of(accesses.begin(), accesses.end(), [](const Access& a) { return !a.slides.empty(); });
    if (windows) find_least();
    else for (Id b = 0; b < buffers.size(); ++b) least_.push_back(bytes(b));
}

// What an operator makes may take the place of an operand that is made and read here alone, once, and whose element,
// or row, it needs for that of its own.
bool Group::may_lie_under(const Access& read, const Access& made) const {
    const Buffer& x = buffers[read.buffer];
    return !read.writes && x.maker >= 0 && !x.leaves && uses[read.buffer].size() == 2 && by_element(read, made);
}

bool Group::by_element(const Access& read, const Access& made) const {
    const Buffer &x = buffers[read.buffer], &y = buffers[made.buffer];
    const Operator& op = operators[read.op];
    if (x.sides != y.sides || x.element != y.element) return false;
    for (std::size_t s = 0; s < read.axes.size(); ++s) {
        const bool row = read.axes[s] < 0 && std::count(op.together.begin(), op.together.end(),
                                                        static_cast<Id>(made.axes[s])) > 0 &&
                         window_of(read.slides, s) == nullptr;
        if (made.axes[s] < 0 || (read.axes[s] != made.axes[s] && !row)) return false;
    }
    return std::all_of(op.axes.begin() + op.outputs, op.axes.end(), [](std::int64_t sum) { return sum == 1; });
}

// Backwards from what leaves: operators need not make what no window needs.
void Group::find_least() {
    least_.resize(buffers.size());
    std::vector<std::vector<std::vector<bool>>> needed(size());  // by operator and axis: its indices
    const auto counted = [](const std::vector<bool>& side) {
        return static_cast<Bytes>(std::count(side.begin(), side.end(), true));
    };
    // The indices along a side that all readers need, or one use.
    const auto rows = [&](Id b, std::size_t s, std::optional<Id> only) {
        std::vector<bool> side(static_cast<std::size_t>(buffers[b].sides[s]));
        for (const Id u : uses[b]) {
            const Access& access = accesses[u];
            if (access.writes || u != only.value_or(u)) continue;
            const Slide* slide = window_of(access.slides, s);
            if (slide) {
                mark(*slide, needed[access.op][slide->axis], side);
            } else {
                const std::vector<bool>* along = access.axes[s] < 0 ? nullptr : &needed[access.op][static_cast<Id>(access.axes[s])];
                for (std::size_t i = 0; i < side.size(); ++i) side[i] = side[i] || !along || (*along)[i];
            }
        }
        return side;
    };
    for (Id o = static_cast<Id>(size()); o-- > 0;) {
        for (const std::int64_t axis : operators[o].axes) needed[o].push_back(std::vector<bool>(static_cast<std::size_t>(axis), true));
        const Access& made = accesses[of[o].back()];
        if (buffers[made.buffer].leaves || uses[made.buffer].size() == 1) continue;
        for (std::size_t s = 0; s < made.axes.size(); ++s)
            if (made.axes[s] >= 0) needed[o][static_cast<Id>(made.axes[s])] = rows(made.buffer, s, std::nullopt);
    }
    for (Id b = 0; b < buffers.size(); ++b) {
        if (buffers[b].maker >= 0) {
            least_[b] = bytes(b);
            continue;
        }
        for (const Id u : uses[b]) {  // each may have a buffer of its own: no fewer than of the one that needs most
            Bytes own = buffers[b].element;
            for (std::size_t s = 0; s < buffers[b].sides.size(); ++s) own = times(own, counted(rows(b, s, u)));
            least_[b] = std::max(least_[b], own);
        }
    }
}

bool Group::slides_along(const Access& access, Id loop_class) const {
    const int side = access.cut[loop_class];
    return side >= 0 && window_of(access.slides, static_cast<std::size_t>(side)) != nullptr;
}

bool Group::late_in(const Access& access, Id loop_class) const {
    const int axis = classes[loop_class].axis[access.op];
    return access.late && axis >= 0 && static_cast<Id>(axis) >= operators[access.op].outputs;
}

Bytes Group::bytes(Id buffer) const {
    Bytes all = buffers[buffer].element;
    for (const std::int64_t side : buffers[buffer].sides) all = times(all, side);
    return all;
}

void Group::check() const {
    if (operators.empty() || operators.size() > most) throw std::invalid_argument("nest: 1 to 64 operators");
    if (buffers.size() > most) throw std::invalid_argument("nest: at most 64 buffers");
    std::vector<int> made(buffers.size(), -1);
    const auto fits = [&](const Operator& op, const Use& use) {
        if (use.buffer >= buffers.size() || use.axes.size() != buffers[use.buffer].sides.size()) return false;
        for (std::size_t s = 0; s < use.axes.size(); ++s) {
            const int axis = use.axes[s];
            if (axis >= static_cast<int>(op.axes.size())) return false;
            if (axis >= 0 && op.axes[static_cast<Id>(axis)] != buffers[use.buffer].sides[s]) return false;
            if (axis >= 0 && std::count(use.axes.begin(), use.axes.end(), axis) > 1) return false;
        }
        for (const Slide& slide : use.slides) {
            if (slide.side >= use.axes.size() || slide.axis >= op.axes.size() || use.axes[slide.side] >= 0) return false;
            if (slide.stride < 1 || slide.per < 1 || slide.span < 1) return false;
        }
        return true;
    };
    for (std::size_t o = 0; o < operators.size(); ++o) {
        const Operator& op = operators[o];
        if (op.axes.size() > most || op.reads.size() >= most || op.outputs > op.axes.size())
            throw std::invalid_argument("nest: an operator has at most 64 axes and fewer than 64 operands");
        for (const std::int64_t axis : op.axes)
            if (axis < 1) throw std::invalid_argument("nest: an axis is one or more elements long");
        for (const Id axis : op.together)
            if (axis >= op.axes.size()) throw std::invalid_argument("nest: no such axis");
        for (const Id axis : op.across)
            if (op.carries < 1 || axis >= op.outputs || std::count(op.together.begin(), op.together.end(), axis) == 0)
                throw std::invalid_argument("nest: what shares a state stays together");
        for (const Use& use : op.reads) {
            if (!fits(op, use)) throw std::invalid_argument("nest: a use does not fit its buffer");
            if (buffers[use.buffer].maker != made[use.buffer])
                throw std::invalid_argument("nest: a buffer is read before it is made");
        }
        if (!fits(op, op.writes) || buffers[op.writes.buffer].maker != static_cast<int>(o))
            throw std::invalid_argument("nest: an operator does not make its output");
        made[op.writes.buffer] = static_cast<int>(o);
    }
    for (std::size_t b = 0; b < buffers.size(); ++b)
        if (buffers[b].maker != made[b] || buffers[b].element < 1)
            throw std::invalid_argument("nest: a buffer has another maker");
}

void Group::find_classes() {
    Joining joining(operators);
    bool windows = false;  // first what goes index by index in both
    const auto along = [&](const Access& a, std::size_t side) {
        const Slide* slide = windows ? window_of(a.slides, side) : nullptr;
        return slide ? static_cast<int>(slide->axis) : a.axes[side];
    };
    const auto join = [&](const Access& a, const Access& b) {
        for (std::size_t s = 0; s < a.axes.size(); ++s)
            if (along(a, s) >= 0 && along(b, s) >= 0) joining.join(a.op, along(a, s), b.op, along(b, s));
    };
    for (const bool sliding : {false, true}) {
        windows = sliding;
        for (std::size_t o = size(); o-- > 0;) {  // tensors made here, from the last to the first
            const std::vector<Id>& all = uses[operators[o].writes.buffer];
            for (std::size_t i = 1; i < all.size(); ++i) join(accesses[all[0]], accesses[all[i]]);
        }
        for (std::size_t b = 0; b < buffers.size(); ++b)
            if (buffers[b].maker < 0)
                for (std::size_t i = 1; i < uses[b].size(); ++i)
                    for (std::size_t j = 0; j < i; ++j) join(accesses[uses[b][j]], accesses[uses[b][i]]);
    }
    for (const Members& members : joining.classes()) {
        const bool loops = std::any_of(members.begin(), members.end(),
                                       [&](const auto& m) { return has(sliced[m.first], m.second); });
        if (loops) joined_.push_back(members);
    }
    set_classes(joined_, std::vector<bool>(joined_.size()));
}

void Group::set_classes(const std::vector<Members>& all, const std::vector<bool>& paired) {
    classes.clear();
    for (const Members& members : all) {
        Class found;
        found.paired = paired[classes.size()];
        found.axis.assign(size(), -1);
        found.bad.assign(size(), 0);
        for (const auto& [o, axis] : members) {
            found.size = std::max(found.size, operators[o].axes[axis]);
            found.axis[o] = static_cast<int>(axis);
            if (has(sliced[o], axis)) found.may |= one(o);
        }
        found.points = points_of(found.size, every_tile_);
        classes.push_back(std::move(found));
    }
    for (Access& access : accesses) {
        access.cut.clear();
        for (const Class& c : classes) {
            const auto at = std::find(access.axes.begin(), access.axes.end(), c.axis[access.op]);
            const bool cut = c.axis[access.op] >= 0 && at != access.axes.end();
            access.cut.push_back(cut ? static_cast<int>(at - access.axes.begin()) : -1);
            for (const Slide& slide : access.slides)  // along two sides it follows none
                if (static_cast<int>(slide.axis) == c.axis[access.op]) {
                    const bool second = access.cut.back() != -1;
                    access.cut.back() = second ? -2 : static_cast<int>(slide.side);
                }
        }
    }
    users.assign(buffers.size(), 0);
    for (const Access& access : accesses) users[access.buffer] |= one(access.op);
    for (std::size_t c = 0; c < classes.size(); ++c)
        for (Id b = 0; b < buffers.size(); ++b) {
            const int side = uses[b].size() > 1 ? accesses[uses[b][0]].cut[c] : -1;
            if (side >= 0 && std::all_of(uses[b].begin(), uses[b].end(), [&](Id u) { return accesses[u].cut[c] == side; }))
                classes[c].alike |= one(b);
        }
    // A reader sees finished elements only: a loop over both is no sum of the maker, and cuts alike.
    for (std::size_t c = 0; c < classes.size(); ++c)
        for (Id b = 0; b < buffers.size(); ++b) {
            for (const Id u : uses[b]) classes[c].windows |= slides_along(accesses[u], static_cast<Id>(c));
            if (!inner(b)) continue;
            const Access& made = accesses[uses[b][0]];
            const int axis = classes[c].axis[made.op];
            for (std::size_t i = 1; i < uses[b].size(); ++i) {
                const Access& read = accesses[uses[b][i]];
                const bool sum = axis >= static_cast<int>(operators[made.op].outputs);
                if (sum || made.cut[c] != read.cut[c]) classes[c].bad[read.op] |= one(made.op);
            }
        }
}

bool Group::pairable(const Members& a, const Members& b) const {
    if (operators[a[0].first].axes[a[0].second] != operators[b[0].first].axes[b[0].second]) return false;
    bool share = false;
    for (const auto& [o, axis] : a)
        for (const auto& [other, other_axis] : b) {
            if (o == other) return false;
            for (const Id u : of[o])
                for (const Id v : of[other]) share |= accesses[u].buffer == accesses[v].buffer;
        }
    return share;
}

std::vector<Group> Group::pairings(std::size_t limit) const {
    std::vector<Group> found;
    std::vector<Members> blocks;
    std::vector<bool> paired;
    const auto place = [&](const auto& self, std::size_t next) -> void {
        if (found.size() >= limit) return;
        if (next == joined_.size()) {
            const auto count = std::count(paired.begin(), paired.end(), true);
            if (count == 0 || count > static_cast<std::ptrdiff_t>(deepest)) return;
            found.push_back(*this);
            found.back().set_classes(blocks, paired);
            return;
        }
        for (std::size_t b = 0; b < blocks.size(); ++b) {
            if (!pairable(blocks[b], joined_[next])) continue;
            const Members alone = blocks[b];
            const bool was = paired[b];
            blocks[b].insert(blocks[b].end(), joined_[next].begin(), joined_[next].end());
            paired[b] = true;
            self(self, next + 1);
            blocks[b] = alone;
            paired[b] = was;
        }
        blocks.push_back(joined_[next]);
        paired.push_back(false);
        self(self, next + 1);
        blocks.pop_back();
        paired.pop_back();
    };
    place(place, 0);
    return found;
}

}  // namespace onchip::nests
