#include "nest_passes.h"

#include <algorithm>

#include "bits.h"

namespace onchip::nests {

namespace {

// Operators of one body on one side of its deeper loop, in their order.
using Line = std::vector<Id>;

std::vector<Line> lines(const Group& group, const Shape& shape) {
    std::vector<Line> found;
    for (Id depth = 0; depth <= shape.loops(); ++depth)
        for (const bool after : {false, true}) {
            Line line;
            for (Id o = 0; o < group.size(); ++o)
                if (shape.depth[o] == depth && has(shape.after, o) == after) line.push_back(o);
            if (line.size() > 1) found.push_back(std::move(line));
        }
    return found;
}

class Dividing {
  public:
    Dividing(const Group& group, const Settings& settings, const Shape& shape, const std::function<bool(const Shape&)>& visit)
        : group_(group), settings_(settings), shape_(shape), visit_(visit), lines_(lines(group, shape)) {}

    void run() {
        if (!lines_.empty()) at(0, 0);
    }

  private:
    // Passes of a line that begin at its place `from` or behind, then those of the lines behind it.
    void at(std::size_t line, std::size_t from) {
        if (done_) return;
        if (line == lines_.size()) {
            if (!shape_.passes.empty()) done_ = visit_(shape_);
            return;
        }
        const Line& ops = lines_[line];
        if (from + 1 >= ops.size()) {
            at(line + 1, 0);
            return;
        }
        at(line, from + 1);
        Pass pass;
        for (std::size_t to = from; to < ops.size() && !done_; ++to) {
            pass.members |= one(ops[to]);
            if (to == from) continue;
            for (Id c = 0; c < group_.classes.size(); ++c) {
                if (!may(pass.members, c)) continue;
                pass.classes = {c};
                if (!useful(pass)) continue;
                with(pass, [&] { at(line, to + 1); });
                for (Id d = 0; d < group_.classes.size(); ++d) {
                    if (c == d || !may(pass.members, d)) continue;
                    pass.classes = {c, d};
                    if (useful(pass)) with(pass, [&] { at(line, to + 1); });
                }
            }
        }
    }
    template <class Then>
    void with(const Pass& pass, Then then) {
        each_bit(pass.members, 0, [&](Id o) { shape_.pass[o] = static_cast<int>(shape_.passes.size()); });
        shape_.passes.push_back(pass);
        then();
        shape_.passes.pop_back();
        each_bit(pass.members, 0, [&](Id o) { shape_.pass[o] = -1; });
    }
    bool may(Set members, Id loop_class) const {
        if (members & ~group_.classes[loop_class].may) return false;
        bool good = true;
        each_bit(members, 0, [&](Id o) { good &= !(group_.classes[loop_class].bad[o] & members); });
        return good && (!group_.classes[loop_class].windows || exact(members, loop_class));
    }
    // True if no windows slide along the class here.
    bool exact(Set members, Id loop_class) const {
        for (std::size_t l = 0; l < shape_.loops(); ++l)
            if (shape_.classes[l] == loop_class && shape_.slides(l)) return false;
        std::int64_t size = 0;
        bool good = true;
        each_bit(members, 0, [&](Id o) {
            const std::int64_t own = group_.operators[o].axes[static_cast<Id>(group_.classes[loop_class].axis[o])];
            good &= size == 0 || size == own;
            size = own;
            for (const Id u : group_.of[o])
                good &= has(settings_.whole, group_.accesses[u].buffer) ||
                        !group_.slides_along(group_.accesses[u], loop_class);
        });
        return good;
    }
    // True if every loop of the pass cuts a buffer that its members share, and that all loops outside it cut, too.
    bool useful(const Pass& pass) const {
        for (Id b = 0; b < group_.buffers.size(); ++b) {
            const std::vector<Id>& uses = group_.uses[b];
            if (uses.size() < 2 || has(settings_.whole, b)) continue;
            if (std::any_of(uses.begin(), uses.end(), [&](Id u) { return !has(pass.members, group_.accesses[u].op); }))
                continue;
            const bool all = std::all_of(pass.classes.begin(), pass.classes.end(), [&](Id c) {
                const int side = group_.accesses[uses[0]].cut[c];
                return side >= 0 && std::all_of(uses.begin(), uses.end(), [&](Id u) { return group_.accesses[u].cut[c] == side; });
            });
            if (all) return true;
        }
        return false;
    }

    const Group& group_;
    const Settings& settings_;
    Shape shape_;
    const std::function<bool(const Shape&)>& visit_;
    const std::vector<Line> lines_;
    bool done_ = false;
};

// The buffers that a pass may make small: all of their uses are in one line.
Set shared(const Group& group, const Shape& shape) {
    Set found = 0;
    for (Id b = 0; b < group.buffers.size(); ++b) {
        const std::vector<Id>& uses = group.uses[b];
        const Id first = uses.empty() ? 0 : group.accesses[uses[0]].op;
        if (uses.size() > 1 && std::all_of(uses.begin(), uses.end(), [&](Id u) {
                const Id op = group.accesses[u].op;
                return shape.depth[op] == shape.depth[first] && has(shape.after, op) == has(shape.after, first);
            }))
            found |= one(b);
    }
    return found;
}

}  // namespace

void divisions(const Group& group, const Settings& settings, Orders& orders, const Shape& shape, Best& best,
               const std::function<bool(const Shape&)>& visit) {
    if (settings.rules.bounds) {
        // With nothing held of what a pass may make small, nothing is dearer than in any division.
        const Set nothing = shared(group, shape);
        if (shape.slides()) {
            const std::function<bool()> over = [] { return false; };
            std::uint64_t looks = 0;
            if (!Framing(group, settings, orders, shape, best, looks, over).may_beat(nothing)) return;
        } else {
            Homes free(group, settings, orders, shape, nullptr);
            free.weigh_nothing(nothing);
            if (!free.possible() || !free.may_beat(best)) return;
        }
    }
    Dividing(group, settings, shape, visit).run();
}

}  // namespace onchip::nests
