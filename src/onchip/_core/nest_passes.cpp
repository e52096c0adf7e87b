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

// A pass that a line may have: its operators from one place to another.
struct Stretch {
    std::size_t line, from, to;
    Pass pass;
    Set small;  // buffers that its members alone share, and its outer loop cuts
};

class Dividing {
  public:
    // `may_beat`: whether a division that makes no more than these buffers small may be worth a look.
    Dividing(const Group& group, const Settings& settings, const Shape& shape, const std::function<bool(const Shape&, Set)>& may_beat,
             const std::function<bool(const Shape&)>& visit)
        : group_(group), settings_(settings), shape_(shape), may_beat_(may_beat), visit_(visit), lines_(lines(group, shape)) {
        for (std::size_t line = 0; line < lines_.size(); ++line)
            for (std::size_t from = 0; from + 1 < lines_[line].size(); ++from) find(line, from);
    }

    void run() {
        const Set small = this->small(0, 0, 0);
        if (small && may_beat_(shape_, small)) more(0, 0, 0);
    }

  private:
    void find(std::size_t line, std::size_t from) {
        const Line& ops = lines_[line];
        Set members = one(ops[from]);
        for (std::size_t to = from + 1; to < ops.size(); ++to) {
            members |= one(ops[to]);
            Set shared = 0;  // by the members alone
            for (Id b = 0; b < group_.buffers.size(); ++b)
                if (group_.uses[b].size() > 1 && !has(settings_.whole, b) && !(group_.users[b] & ~members)) shared |= one(b);
            bool any = false;
            for (Id c = 0; c < group_.classes.size(); ++c) {
                if (!may(members, c)) continue;
                any = true;
                const Set cut = shared & group_.classes[c].alike;
                if (!cut) continue;
                add({line, from, to, {{c}, members}, cut});
                for (Id d = 0; d < group_.classes.size(); ++d)
                    if (c != d && (cut & group_.classes[d].alike) && may(members, d))
                        add({line, from, to, {{c, d}, members}, cut});
            }
            if (!any) return;  // nor with more of them
        }
    }
    void add(Stretch part) {
        if (!settings_.long_passes || !joins(part)) parts_.push_back(std::move(part));
    }
    // True if a neighbour of the line could join the pass.
    bool joins(const Stretch& part) const {
        const Line& ops = lines_[part.line];
        const auto could = [&](Id o) {
            return std::all_of(part.pass.classes.begin(), part.pass.classes.end(),
                               [&](Id c) { return may(part.pass.members | one(o), c); });
        };
        return (part.from > 0 && could(ops[part.from - 1])) || (part.to + 1 < ops.size() && could(ops[part.to + 1]));
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
            for (const Id u : group_.of[o]) {
                const Id b = group_.accesses[u].buffer;
                const int maker = group_.buffers[b].maker;
                const bool here = maker >= 0 && has(members, static_cast<Id>(maker));
                good &= (has(settings_.whole, b) && !here) || !group_.slides_along(group_.accesses[u], loop_class);
            }
        });
        return good;
    }
    bool begins(const Stretch& part, std::size_t line, std::size_t from) const {
        return part.line > line || (part.line == line && part.from >= from);
    }
    // The buffers that passes from a part on may make small, if they begin at a place of a line or behind.
    Set small(std::size_t part, std::size_t line, std::size_t from) const {
        Set found = 0;
        for (std::size_t i = part; i < parts_.size(); ++i)
            if (begins(parts_[i], line, from)) found |= parts_[i].small;
        return found;
    }
    // Every choice of passes from a part on that begin at a place of a line or behind.
    void more(std::size_t part, std::size_t line, std::size_t from) {
        for (std::size_t i = part; i < parts_.size() && !done_; ++i) {
            const Stretch& next = parts_[i];
            if (!begins(next, line, from)) continue;
            each_bit(next.pass.members, 0, [&](Id o) { shape_.pass[o] = static_cast<int>(shape_.passes.size()); });
            shape_.passes.push_back(next.pass);
            const Set rest = shape_.passes.size() < settings_.passes ? small(i + 1, next.line, next.to + 1) : 0;
            if (!rest || may_beat_(shape_, rest)) {
                done_ = visit_(shape_);
                if (rest) more(i + 1, next.line, next.to + 1);
            }
            shape_.passes.pop_back();
            each_bit(next.pass.members, 0, [&](Id o) { shape_.pass[o] = -1; });
        }
    }

    const Group& group_;
    const Settings& settings_;
    Shape shape_;
    const std::function<bool(const Shape&, Set)>& may_beat_;
    const std::function<bool(const Shape&)>& visit_;
    const std::vector<Line> lines_;
    std::vector<Stretch> parts_;
    bool done_ = false;
};

}  // namespace

void divisions(const Group& group, const Settings& settings, Orders& orders, const Shape& shape, Best& best,
               const std::function<bool(const Shape&)>& visit) {
    // With nothing held of what passes may make small, nothing is dearer than in any division that has such passes. Nor
    // is anything held of operands of which either may have an output in its place: a pass may change which one has it.
    // Nor of an output that leaves and may lie over an operand: that may be small.
    Set either = 0;
    for (Id o = 0; o < group.size(); ++o) {
        if (group.under[o].size() > 1)
            for (const Id b : group.under[o]) either |= one(b);
        const Id output = group.operators[o].writes.buffer;
        if (!group.under[o].empty() && group.uses[output].size() == 1) either |= one(output);
    }
    const std::function<bool(const Shape&, Set)> may_beat = [&](const Shape& divided, Set made_small) {
        const Set small = made_small | either;
        if (!settings.rules.bounds) return true;
        if (divided.slides()) {
            const std::function<bool()> over = [] { return false; };
            std::uint64_t looks = 0;
            return Framing(group, settings, orders, divided, best, looks, over).may_beat(small);
        }
        Homes free(group, settings, orders, divided, nullptr);
        free.weigh_nothing(small);
        return free.possible() && free.may_beat(best);
    };
    Dividing(group, settings, shape, may_beat, visit).run();
}

}  // namespace onchip::nests
