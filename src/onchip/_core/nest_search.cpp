#include "nest_search.h"

#include <algorithm>
#include <stdexcept>

#include "bits.h"
#include "nest_open.h"
#include "nest_passes.h"

namespace onchip::nests {

namespace {

class Search {
  public:
    Search(const Group& group, const Settings& settings, Orders& orders, WindowTable& windows, Bytes least, Best& best,
           Clock<Progress>& clock, std::uint64_t& shapes, std::uint64_t most_shapes)
        : group_(group), settings_(settings), orders_(orders), windows_(windows), least_(least), best_(best),
          clock_(clock), shapes_(shapes), most_shapes_(most_shapes) {}

    // `divide`: with passes. `collect` takes the shapes, instead of a look at each.
    void run(bool divide, OpenParts* collect = nullptr) {
        divide_ = divide;
        collect_ = collect;
        for (std::size_t loops = 0; loops <= settings_.spine && !over(); ++loops) {
            shape_ = {};
            shape_.depth.assign(group_.size(), 0);
            shape_.pass.assign(group_.size(), -1);
            spine(loops, ~Set{0} >> (most - group_.size()));
        }
    }

  private:
    bool over() { return clock_.ended() || shapes_ > most_shapes_ || (settings_.rules.bounds && best_.bytes <= least_); }

    bool chosen(Id c) const {
        return std::find(shape_.classes.begin(), shape_.classes.end(), c) != shape_.classes.end();
    }

    // Every ordered choice of classes that some operator has all of.
    void spine(std::size_t loops, Set inmost) {
        if (shape_.loops() == loops) {
            for (Id c = 0; c < group_.classes.size(); ++c)  // without a paired class: another group has that nest
                if (group_.classes[c].paired && !chosen(c)) return;
            depths(0, least_);
            return;
        }
        for (Id c = 0; c < group_.classes.size() && !over(); ++c) {
            const Set left = inmost & group_.classes[c].may;
            if (!left || chosen(c)) continue;
            shape_.classes.push_back(c);
            spine(loops, left);
            shape_.classes.pop_back();
        }
    }

    // Every depth of the operators from `op` on. `bound`: bytes that cross at least so far.
    void depths(Id op, Bytes bound) {
        if (over()) return;
        if (op == group_.size()) {
            if (std::find(shape_.depth.begin(), shape_.depth.end(), shape_.loops()) == shape_.depth.end()) return;
            visit();
            return;
        }
        Id deep = 0;
        while (deep < shape_.loops() && has(group_.classes[shape_.classes[deep]].may, op)) ++deep;
        for (Id depth = deep + 1; depth-- > 0;) {
            shape_.depth[op] = depth;
            shape_.after &= ~one(op);
            for (Id l = 0; l < shape_.loops(); ++l) inside_[l] = l < depth ? inside_[l] | one(op) : inside_[l] & ~one(op);
            if (!legal(op)) continue;
            Bytes more = bound;
            if (settings_.rules.bounds && !bounded(op, more)) continue;
            depths(op + 1, more);
        }
        shape_.depth[op] = 0;
        shape_.after &= ~one(op);
    }

    // What the operators up to this one allow; places it before or after the deeper loop of its body.
    bool legal(Id op) {
        const Id depth = shape_.depth[op];
        bool late = false, good = true;
        const Set before = one(op) - 1;
        for (Id l = 0; l < depth && good; ++l)  // makers of tensors that it reads, or of none
            good = !(group_.classes[shape_.classes[l]].bad[op] & inside_[l] & before);
        if (!good) return false;
        each_bit(group_.before[op], 0, [&](Id maker) {
            late |= shape_.depth[maker] > depth;
            good &= shape_.depth[maker] >= depth || !has(shape_.after, maker);
        });
        if (late) shape_.after |= one(op);
        return good && (!settings_.over || goes_on_over(op));
    }

    // False if a loop around this operator and another one, of those up to this one, reads what was written over.
    bool goes_on_over(Id op) const {
        const Id writer = written_over();
        if (writer > op) return true;
        const Access& written = group_.accesses[group_.of[writer].back()];
        for (const Id u : group_.uses[settings_.over->input]) {
            const Access& read = group_.accesses[u];
            if (read.op == writer || read.op > op || (read.op != op && writer != op)) continue;
            for (Id l = 0; l < std::min(shape_.depth[read.op], shape_.depth[writer]); ++l)
                if (!goes_on(group_, shape_.classes[l], read, written, group_.classes[shape_.classes[l]].windows))
                    return false;
        }
        return true;
    }
    // The operator that writes over an input.
    Id written_over() const { return static_cast<Id>(group_.buffers[settings_.over->output].maker); }
    bool lies_over(const Shape& shape) const {
        return !settings_.over || read_before(group_, shape, settings_.over->input, written_over(), true);
    }

    // Adds what the operator's own buffers cost at two turns a loop; false if that or their room is too much.
    bool bounded(Id op, Bytes& bound) const {
        Bytes inner = 0;
        Set seen = 0;  // buffers
        for (const Id u : group_.of[op]) {
            const Access& access = group_.accesses[u];
            if (has(settings_.whole, access.buffer)) continue;
            const std::vector<Id>& uses = group_.uses[access.buffer];
            if (group_.inner(access.buffer)) {
                if (access.writes || has(seen, access.buffer)) continue;
                const std::vector<Id>& under = group_.under[op];  // may count as the output, which is not added
                if (std::find(under.begin(), under.end(), access.buffer) != under.end()) continue;
                seen |= one(access.buffer);
                if (divide_ && in_line(group_.accesses[uses[0]].op, op)) continue;
                const Id body = std::min(shape_.depth[op], shape_.depth[group_.accesses[uses[0]].op]);
                const std::array<Id, 2> both{uses[0], u};
                inner = plus(inner, tile(group_, shape_, both, body, nullptr, 0).bytes);
            } else if (uses.size() == 1) {
                const Bytes bytes = group_.least(access.buffer);
                Bytes charged = bytes;
                for (Id l = 0; l < shape_.depth[op]; ++l) {  // as far out as it fits with the least tiles
                    if (access.cut[shape_.classes[l]] >= 0) continue;
                    if (tile(group_, shape_, uses, l, nullptr, 0).bytes <= settings_.room) break;
                    charged = times(charged, 2);
                }
                bound = plus(bound, (access.writes ? 2 : 1) * (charged - bytes));
            }
        }
        return bound < best_.bytes && inner <= settings_.room;
    }
    // True if two operators are in one body, on one side of its deeper loop: a pass may hold both.
    bool in_line(Id a, Id b) const {
        return shape_.depth[a] == shape_.depth[b] && has(shape_.after, a) == has(shape_.after, b);
    }

    // True if two neighbouring loops, with no operator between them, stand in the order that is left out unless a
    // buffer may live between them: one that the inner loop does not cut.
    bool swapped() const {
        for (Id d = 1; d < shape_.loops(); ++d) {
            // With windows along the outer loop alone, it may as well be the inner one; what is in its body may be a
            // ring then.
            if (shape_.slides(d) || (!shape_.slides(d - 1) && shape_.classes[d - 1] < shape_.classes[d])) continue;
            if (std::find(shape_.depth.begin(), shape_.depth.end(), d) != shape_.depth.end()) continue;
            bool between = !settings_.rules.inner || !settings_.rules.outer;
            for (Id b = 0; b < group_.buffers.size() && !between; ++b)
                between = !has(settings_.whole, b) && !group_.inner(b) && may_live(b, d);
            if (!between && !sums_one(d)) return true;
        }
        return false;
    }
    // True if one of two neighbouring loops is over a sum of something that is wider while it is summed, and the other is
    // not: more is summed at a time if the sum is the outer one.
    bool sums_one(Id depth) const {
        for (Id b = 0; b < group_.buffers.size(); ++b) {
            if (!group_.wider(b)) continue;
            const Id maker = static_cast<Id>(group_.buffers[b].maker);
            const auto sums = [&](Id loop) {
                const int axis = group_.classes[shape_.classes[loop]].axis[maker];
                return axis >= 0 && has(group_.summed[maker], static_cast<Id>(axis));
            };
            if (shape_.depth[maker] > depth && sums(depth - 1) != sums(depth)) return true;
        }
        return false;
    }
    bool may_live(Id buffer, Id depth) const {
        const std::vector<Id>& uses = group_.uses[buffer];
        if (uses.empty()) return false;
        const Id inner = shape_.classes[depth];
        const int side = group_.accesses[uses[0]].cut[inner];
        bool cut = side >= 0;
        for (const Id u : uses) {
            if (shape_.depth[group_.accesses[u].op] <= depth) return false;
            cut &= group_.accesses[u].cut[inner] == side;
        }
        return !cut;
    }

    // False if what is made and read here alone does not fit even with the least tiles. Where there are passes, what
    // one may make small counts for nothing.
    bool inner_fits() const {
        std::array<Bytes, most> held{};
        for (Id b = 0; b < group_.buffers.size(); ++b) {
            if (has(settings_.whole, b) || !group_.inner(b)) continue;
            const std::vector<Id>& uses = group_.uses[b];
            const Id last_op = group_.accesses[uses.back()].op;
            if (divide_ && std::all_of(uses.begin(), uses.end(), [&](Id u) { return in_line(group_.accesses[u].op, last_op); }))
                continue;
            Id body = static_cast<Id>(shape_.loops());
            for (const Id u : uses) body = std::min(body, shape_.depth[group_.accesses[u].op]);
            Id first = ~Id{0}, last = 0;
            for (const Id u : uses) {
                const Id item = shape_.item(group_.accesses[u].op, body);
                first = std::min(first, item);
                last = std::max(last, item);
            }
            const std::vector<Id>& under = group_.under[last_op];
            if (std::find(under.begin(), under.end(), b) != under.end()) continue;  // it may lie in another's place
            const Bytes bytes = tile(group_, shape_, uses, body, nullptr, 0).bytes;
            for (Id o = 0; o < group_.size(); ++o)
                if (shape_.depth[o] >= body && shape_.item(o, body) >= first && shape_.item(o, body) <= last &&
                    (held[o] = plus(held[o], bytes)) > settings_.room)
                    return false;
        }
        return true;
    }

    void visit() {
        if (!place_windows(group_, settings_, windows_, shape_) || !lies_over(shape_)) return;
        if (settings_.rules.bounds && !inner_fits()) return;
        if (settings_.rules.exchange && !divide_ && swapped()) return;
        if (divide_) {
            ++shapes_;  // whether a division may be worth it is a look, too
            if (clock_.late(shapes_)) return;
            divisions(group_, settings_, orders_, shape_, best_, [&](const Shape& divided) {
                if (lies_over(divided)) look(divided);
                return over();
            });
            return;
        }
        look(shape_);
    }
    void look(const Shape& shape) {
        if (collect_) return collect_->add(shape);
        ++shapes_;
        if (clock_.late(shapes_)) return;
        const std::function<bool()> ended = [this] {
            clock_.late(shapes_);
            return over();
        };
        if (shape.slides()) {
            Framing(group_, settings_, orders_, shape, best_, shapes_, ended).search();
            return;
        }
        Homes homes(group_, settings_, orders_, shape, nullptr);
        if (!settings_.rules.bounds || homes.possible()) homes.search(best_, {shapes_, ended});
    }

    const Group& group_;
    const Settings& settings_;
    Orders& orders_;
    WindowTable& windows_;
    const Bytes least_;
    Best& best_;
    Clock<Progress>& clock_;
    std::uint64_t& shapes_;
    const std::uint64_t most_shapes_;
    Shape shape_;
    std::array<Set, deepest> inside_{};  // by loop: the operators in it, of those that have a depth
    bool divide_ = false;
    OpenParts* collect_ = nullptr;
};

std::vector<Group> with_pairings(Group group, bool pairs) {
    std::vector<Group> all;
    if (pairs) all = group.pairings(most);
    all.insert(all.begin(), std::move(group));
    return all;
}

}  // namespace

Problem::Problem(std::vector<Operator> operators, std::vector<Buffer> buffers, Bytes alignment, std::size_t spine,
                 std::size_t passes, bool long_passes, bool pairs, bool in_place, std::size_t windows, const Rules& rules)
    : groups_(with_pairings(Group(std::move(operators), std::move(buffers), !rules.tiles), pairs)),
      settings_{0, {}, 0, alignment, spine, passes, long_passes, in_place, windows, rules},
      orders_(groups_[0], !rules.slices) {
    if (alignment < 1 || spine > deepest) throw std::invalid_argument("nest: alignment from 1, at most 3 loops");
}

Bytes Problem::least(Set whole) const {
    const Group& of = group();
    Bytes all = 0;
    for (Id b = 0; b < of.buffers.size(); ++b) {
        const Buffer& buffer = of.buffers[b];
        if (!of.uses[b].empty() && !has(whole, b) && (buffer.maker < 0 || buffer.leaves))
            all = plus(all, of.least(b));
    }
    return all;
}

bool Problem::may_lie_over(Id input, Id output, Set whole) const {
    const Group& of = group();
    const Buffer &x = of.buffers.at(input), &y = of.buffers.at(output);
    return x.maker < 0 && y.maker >= 0 && has(whole, input) && has(whole, output) && x.sides == y.sides &&
           x.element == y.element;
}

Answer Problem::best(Set whole, std::optional<Over> over, Bytes room, Bytes below, const Limits<Progress>& limits,
                     Looks looks) {
    const Group& of = group();
    for (Id b = 0; b < of.buffers.size(); ++b)
        if (of.buffers[b].maker >= 0 && !of.inner(b) && !of.buffers[b].leaves && !has(whole, b))
            throw std::invalid_argument("nest: nobody reads a buffer that does not leave");
    if (over && !may_lie_over(over->input, over->output, whole))
        throw std::invalid_argument("nest: no whole output of as many elements as the input below it");
    settings_.whole = whole;
    settings_.over = over;
    settings_.room = room;
    Answer answer;
    Best best;
    best.bytes = std::min(below, unlimited);
    Clock<Progress> clock(limits, {.calls = 16});
    const Group* with = &of;
    const Bytes least = this->least(whole);
    std::vector<WindowTable> windows(groups_.size());
    const auto each_search = [&](std::uint64_t most_shapes, const auto& run) {
        for (const bool divide : {false, true})
            for (std::size_t g = 0; g < groups_.size(); ++g) {
                if (divide && !settings_.passes) continue;
                const Bytes before = best.bytes;
                Search search(groups_[g], settings_, orders_, windows[g], least, best, clock, answer.shapes, most_shapes);
                run(search, divide, g);
                if (best.bytes < before) with = &groups_[g];
            }
    };
    const std::uint64_t in_order = settings_.rules.bounds && settings_.rules.tiles ? std::min(looks.most, looks.in_order) : looks.most;
    each_search(in_order, [](Search& search, bool divide, std::size_t) { search.run(divide); });
    bool cut = answer.shapes > in_order;
    answer.bound = cut || clock.ended() ? 0 : best.bytes;
    if (cut && in_order < looks.most && !clock.ended()) {
        const std::function<bool()> ended = [&] {
            clock.late(answer.shapes);
            return clock.ended() || answer.shapes > looks.most || best.bytes <= least;
        };
        std::vector<OpenParts> open;
        for (const Group& each : groups_) open.emplace_back(each, settings_, orders_, best, answer.shapes, ended);
        const std::uint64_t half = in_order + (looks.most - in_order) / 2;
        each_search(half, [&](Search& search, bool divide, std::size_t g) { search.run(divide, &open[g]); });
        const bool listed = answer.shapes <= half && !clock.ended();
        Bytes bound = unlimited;
        for (std::size_t g = 0; g < groups_.size(); ++g) {
            const Bytes before = best.bytes;
            open[g].look();
            if (best.bytes < before) with = &groups_[g];
        }
        for (const OpenParts& each : open) bound = std::min(bound, each.bound());
        cut = best.bytes > least && (!listed || bound < best.bytes);
        answer.bound = cut ? (listed ? std::max(bound, least) : 0) : best.bytes;
    }
    if (best.found) answer.found = Found{best.bytes, best.need, tree(*with, best)};
    answer.end = clock.ended().value_or(cut ? End::nodes : End::complete);
    return answer;
}

}  // namespace onchip::nests
