#include "nest_shape.h"

#include <algorithm>
#include <bit>

namespace onchip::nests {

namespace {

// The side of a buffer that a loop over the class cuts in the same way in all of the uses; negative: none.
int side_cut(const Group& group, std::span<const Id> uses, Id loop_class) {
    const int side = group.accesses[uses[0]].cut[loop_class];
    for (const Id u : uses)
        if (group.accesses[u].cut[loop_class] != side) return -1;
    return side;
}

// The loops of a pass, from the outermost on, that all cut the buffer.
Id level_of(const Group& group, std::span<const Id> uses, const Pass& pass) {
    Id level = 0;
    while (level < pass.classes.size() && side_cut(group, uses, pass.classes[level]) >= 0) ++level;
    return level;
}

// The pass in which all of the uses are; negative: none.
int common_pass(const Group& group, const Shape& shape, std::span<const Id> uses) {
    const int pass = shape.pass[group.accesses[uses[0]].op];
    for (const Id u : uses)
        if (shape.pass[group.accesses[u].op] != pass) return -1;
    return pass;
}

Home home_of(const Group& group, const Shape& shape, std::span<const Id> uses) {
    Id body = static_cast<Id>(shape.loops());
    for (const Id u : uses) body = std::min(body, shape.depth[group.accesses[u].op]);
    const int in = common_pass(group, shape, uses);
    const Id level = in < 0 ? 0 : level_of(group, uses, shape.passes[static_cast<Id>(in)]);
    if (level == 0) return {Home::Kind::body, body, 0, 0};
    return {Home::Kind::pass, body, static_cast<Id>(in), level};
}

// The rows that a loop of the frame leaves of the buffer of some uses.
const Rows& rows(const Group& group, const Turned& turned, std::span<const Id> uses, bool ring) {
    const Shared& shared = turned.shared[group.accesses[uses[0]].buffer];
    if (ring) return shared.ring;
    return uses.size() == 1 ? turned.own[uses[0]] : shared.anew;
}

// The first loop around its maker, counted from the outermost on, with which a buffer holds sums that are not complete.
struct FirstSum {
    std::optional<std::size_t> loop;
    std::size_t loops = 0;  // around the maker: of the spine, then of its pass
};

FirstSum first_sum(const Group& group, const Shape& shape, Id buffer) {
    const Id maker = static_cast<Id>(group.buffers[buffer].maker);
    const auto sums = [&](Id loop_class) {
        const int axis = group.classes[loop_class].axis[maker];
        return axis >= 0 && has(group.summed[maker], static_cast<Id>(axis));
    };
    FirstSum found{std::nullopt, shape.depth[maker]};
    for (std::size_t l = 0; l < shape.depth[maker] && !found.loop; ++l)
        if (sums(shape.classes[l])) found.loop = l;
    if (const int in = shape.pass[maker]; in >= 0) {
        const std::vector<Id>& classes = shape.passes[static_cast<Id>(in)].classes;
        for (std::size_t i = 0; i < classes.size() && !found.loop; ++i)
            if (sums(classes[i])) found.loop = found.loops + i;
        found.loops += classes.size();
    }
    return found;
}

// How the sums of a buffer that `above` loops around its maker stand above lie: as wide as its elements or wider, with
// accumulators beside it as long as one loop runs, or as its maker's slices go.
struct Sums {
    bool wide = false;
    std::optional<std::size_t> beside;
    Summing summing = Summing::none;  // none, beside, or behind, where the other choice is first
};

Sums sums_of(const Group& group, const Shape& shape, Id buffer, std::size_t above) {
    Sums found;
    if (!group.wider(buffer)) return found;
    const auto [first, loops] = first_sum(group, shape, buffer);
    if (!first) found.summing = loops > above || !group.widens(buffer) ? Summing::beside : Summing::behind;
    else if (*first > above) found.beside = *first;
    else found.wide = group.widens(buffer);
    return found;
}

// The loops around the maker of a buffer, of the spine or its pass, above a home.
std::size_t above(const Home& home) { return home.depth + (home.kind == Home::Kind::pass ? home.level : 0); }

class Builder {
  public:
    Builder(const Group& group, const Shape& shape, const Kept& kept, const Frame* frame)
        : group_(group), shape_(shape), kept_(kept), frame_(frame) {}

    Choice of(Id buffer) {
        Choice choice{buffer, {}};
        const std::vector<Id>& uses = group_.uses[buffer];
        Id body = static_cast<Id>(shape_.loops());
        for (const Id u : uses) body = std::min(body, shape_.depth[group_.accesses[u].op]);
        if (has(kept_.whole, buffer)) {
            if (exact()) whole(choice);
        } else if (group_.inner(buffer)) {
            inner(choice, uses, body);
        } else {
            outer(choice, uses, body);
        }
        return choice;
    }

  private:
    void hold(Option& option, std::span<const Id> uses, Id body, bool wide = false) const {
        const bool ring = option.home.ring;
        const Term term = widened(uses, tile(group_, shape_, uses, body, nullptr, 0, frame_, ring), wide);
        Id first = ~Id{0}, last = 0;
        for (const Id u : uses) {
            const Id at = shape_.item(group_.accesses[u].op, body);
            first = std::min(first, at);
            last = std::max(last, at);
        }
        for (Id o = 0; o < group_.size(); ++o)
            if (shape_.depth[o] >= body && (ring || (shape_.item(o, body) >= first && shape_.item(o, body) <= last)))
                option.held.push_back({term, o});
    }
    void hold_in_pass(Option& option, std::span<const Id> uses, Id in, Id level, bool wide = false) const {
        const Pass& pass = shape_.passes[in];
        const Id depth = shape_.depth[group_.accesses[uses[0]].op];
        const Term term = widened(uses, tile(group_, shape_, uses, depth, &pass, level, frame_), wide);
        Id first = 0, last = static_cast<Id>(group_.size());
        if (level == pass.classes.size()) {
            std::swap(first, last);
            for (const Id u : uses) {
                first = std::min(first, group_.accesses[u].op);
                last = std::max(last, group_.accesses[u].op);
            }
        }
        for (Id o = 0; o < group_.size(); ++o)
            if (has(pass.members, o) && o >= first && o <= last) option.held.push_back({term, o});
    }
    // True if a loop over the class brings all of the buffer in every turn.
    bool charged(std::span<const Id> uses, Id loop_class) const {
        return side_cut(group_, uses, loop_class) < 0 && !group_.late_in(group_.accesses[uses[0]], loop_class);
    }
    Term crossing(Bytes bytes, std::span<const Id> uses, Id body, bool ring = false) const {
        Term term{bytes, 0};
        for (Id l = 0; l < body; ++l) {
            const int side = side_cut(group_, uses, shape_.classes[l]);
            const Turned* turned = frame_ ? frame_->turned[l] : nullptr;
            if (group_.late_in(group_.accesses[uses[0]], shape_.classes[l])) continue;
            if (side < 0) {
                if (turned) term.bytes = times(term.bytes, turned->turns);
                else term.loops |= 1u << l;
            } else if (turned) {
                const std::vector<std::int64_t>& sides = group_.buffers[group_.accesses[uses[0]].buffer].sides;
                const std::int64_t moved = rows(group_, *turned, uses, ring && l + 1 == body).moved;
                term.bytes = times(term.bytes / sides[static_cast<Id>(side)], moved);
            }
        }
        return term;
    }
    // What an output of all these bytes lets cross: the partial sums of all turns but the last go out and come back.
    void spill(Option& option, Bytes bytes, std::span<const Id> uses, Id body) const {
        const Bytes sums = group_.as_sums(group_.accesses[uses[0]].buffer, bytes);
        option.cross.push_back({bytes - 2 * sums, 0});
        const Term term = crossing(2 * sums, uses, body);
        option.cross.push_back(term);
    }
    Term widened(std::span<const Id> uses, Term term, bool wide) const {
        if (wide) term.bytes = group_.as_sums(group_.accesses[uses[0]].buffer, term.bytes);
        return term;
    }
    // What lies beside a buffer as long as this loop around its maker runs: what its sums carry, and accumulators, unless
    // it is as wide itself.
    void accumulate(Option& option, Id buffer, std::size_t loop, bool wide = false) const {
        const Id use = group_.uses[buffer][0], maker = group_.accesses[use].op;
        const Id depth = shape_.depth[maker], spine = std::min(depth, static_cast<Id>(loop));
        const Pass* pass = loop > depth ? &shape_.passes[static_cast<Id>(shape_.pass[maker])] : nullptr;
        const Id level = loop > depth ? static_cast<Id>(loop) - depth : 0;
        const Term tiled = tile(group_, shape_, {&use, 1}, spine, pass, level, frame_);
        Few<Term, few_terms> terms;
        if (group_.widens(buffer) && !wide) terms.push_back({group_.as_sums(buffer, tiled.bytes), tiled.loops});
        if (group_.carries(buffer)) terms.push_back({group_.as_carried(buffer, tiled.bytes), tiled.loops});
        for (Id o = 0; o < group_.size(); ++o)
            if (loop < depth ? shape_.depth[o] > loop : shape_.pass[o] == shape_.pass[maker])
                for (const Term& term : terms) option.held.push_back({term, o, true});
    }
    bool exact() const { return !frame_ || frame_->exact; }

    void hold_at(Option& option, std::span<const Id> uses, bool wide) const {
        const Home& home = option.home;
        if (home.kind == Home::Kind::pass) hold_in_pass(option, uses, home.pass, home.level, wide);
        else hold(option, uses, home.depth, wide);
    }
    // What an option holds, once for every way in which its sums may lie.
    void hold_sums(Choice& choice, Option option, std::span<const Id> uses) const {
        const Id buffer = choice.buffer;
        Sums sums = exact() ? sums_of(group_, shape_, buffer, above(option.home)) : Sums{};
        const std::optional<std::size_t> first = group_.wider(buffer) ? first_sum(group_, shape_, buffer).loop : std::nullopt;
        if (first && *first < above(option.home) && group_.carries(buffer)) return;  // it would cross with its state
        if (option.home.ring && !same_rows(option.home, buffer)) {  // what it keeps is finished
            if (sums.wide) sums = {false, first, Summing::none};
            if (sums.summing == Summing::behind) sums.summing = Summing::beside;
        }
        if (sums.summing == Summing::behind) {
            Option& wide = choice.options.emplace_back(option);
            hold_at(wide, uses, true);
            wide.summing = Summing::first;
            wide.apart = true;
        }
        hold_at(option, uses, sums.wide);
        if (exact() && first && *first >= above(option.home)) accumulate(option, buffer, *first, sums.wide);
        option.summing = sums.summing;
        choice.options.push_back(std::move(option));
    }
    // True if a ring has as many rows as its maker makes in a turn.
    bool same_rows(const Home& home, Id buffer) const {
        const Turned& turned = *frame_->turned[home.depth - 1];
        return turned.shared[buffer].ring.held == turned.own[group_.uses[buffer][0]].held;
    }
    // Of several options with sums, the least that any holds.
    void bound(Choice& choice) const {
        if (choice.options.size() < 2 || !group_.wider(choice.buffer)) return;
        Option least = choice.options.back();
        least.held.clear();
        least.summing = Summing::none;
        if (least.home.kind != Home::Kind::own) {
            hold_at(least, group_.uses[choice.buffer], false);
        } else if (least.own.empty()) {
            const Home home = private_home(group_, shape_, group_.uses[choice.buffer][0]);
            least.home = home;
            hold_at(least, group_.uses[choice.buffer], false);
        }
        choice.least = std::move(least);
    }
    Home in_body(Id depth) const { return {Home::Kind::body, depth, 0, 0}; }

    void inner(Choice& choice, std::span<const Id> uses, Id body) const {
        const bool leaves = group_.buffers[choice.buffer].leaves;
        const int ring = frame_ ? frame_->ring[choice.buffer] : -1;
        const auto option = [&](Home home) {
            Option made;
            made.home = home;
            if (leaves) {
                const Term stored = crossing(group_.bytes(choice.buffer), uses, home.depth, home.ring);
                made.cross.push_back({stored.bytes, 0});
            }
            return made;
        };
        const Home deepest = home_of(group_, shape_, uses);
        const bool pass = deepest.kind == Home::Kind::pass;
        if (ring >= 0) {
            hold_sums(choice, option({Home::Kind::body, static_cast<Id>(ring) + 1, 0, 0, true}), uses);
            return bound(choice);
        }
        // Further out sums that are not complete may lie beside the buffer; of what does not leave the home follows.
        const bool wider = group_.wider(choice.buffer);
        const bool every = wider ? leaves : !kept_.inner_deepest;
        for (Id h = every ? 0 : body; h <= body; ++h)
            if (!pass || every) hold_sums(choice, option(in_body(h)), uses);
        if (pass) hold_sums(choice, option(deepest), uses);
        bound(choice);
        const Id reader = group_.accesses[uses.back()].op;
        if (replaced(group_, shape_, kept_, reader) != choice.buffer) return;
        // Its place is that of the output: where both are alive, one of them counts.
        const Id output = group_.operators[reader].writes.buffer;
        const bool whole = in_whole_place(group_, shape_, kept_, output), gone = whole || in_ring(reader);
        const auto lie_under = [&](Option& made) {
            made.held.erase_if([&](const Held& at) { return (gone || beside(made.home, at.leaf, reader)) && !at.sums; });
        };
        Option& last = choice.options.back();
        if (whole && wider && exact()) {  // its place is further out, and its sums lie beside it
            const Sums sums = sums_of(group_, shape_, choice.buffer, 0);
            last.held.clear();
            if (const auto first = first_sum(group_, shape_, choice.buffer).loop) accumulate(last, choice.buffer, *first);
            last.summing = sums.summing;
        } else {
            lie_under(last);
        }
        if (choice.least) lie_under(*choice.least);
    }
    // True if what one operator holds at a home is there as long as the other one runs.
    bool beside(const Home& home, Id op, Id other) const {
        if (home.kind == Home::Kind::body) return shape_.item(op, home.depth) == shape_.item(other, home.depth);
        return op == other || home.level < shape_.passes[home.pass].classes.size();
    }
    // True if what an operator writes is in a ring, or in the place of one.
    bool in_ring(Id op) const {
        const Id output = group_.operators[op].writes.buffer;
        if (!frame_ || !group_.inner(output)) return false;
        if (frame_->ring[output] >= 0) return true;
        const Id reader = group_.accesses[group_.uses[output].back()].op;
        return replaced(group_, shape_, kept_, reader) == output && in_ring(reader);
    }

    void outer(Choice& choice, std::span<const Id> uses, Id body) const {
        const Bytes bytes = group_.bytes(choice.buffer);
        const bool made = group_.buffers[choice.buffer].maker >= 0;
        const auto live = [&](Home home) {
            Option option;
            option.home = home;
            if (made) spill(option, bytes, uses, home.depth);
            else option.cross.push_back(crossing(bytes, uses, home.depth, home.ring));
            hold_sums(choice, std::move(option), uses);
        };
        const bool shared = uses.size() > 1;
        const int in = common_pass(group_, shape_, uses);
        const Id level = in < 0 || !shared ? 0 : level_of(group_, uses, shape_.passes[static_cast<Id>(in)]);
        const Id most = deepest_share(choice.buffer, body);
        for (Id h = 0; h <= most; ++h) {
            if (h > 0 && ring_worth(choice.buffer, h - 1)) live({Home::Kind::body, h, 0, 0, true});
            // Worth it if one deeper lets more cross, or as the deepest body of several uses.
            const bool dearer = h < body && (h == most || charged(uses, shape_.classes[h]));
            if (!kept_.outer_worth || dearer || (h == body && shared && level == 0)) live(in_body(h));
        }
        if (level > 0 && most == body) live({Home::Kind::pass, body, static_cast<Id>(in), level});
        if ((shared && !apart(uses)) || !may_own(uses)) return;
        const bool wider = group_.wider(choice.buffer) && exact();
        constexpr std::size_t never = ~std::size_t{0};
        const std::size_t first = wider ? first_sum(group_, shape_, choice.buffer).loop.value_or(never) : never;
        if (first != never && group_.carries(choice.buffer)) {
            const Home home = private_home(group_, shape_, uses[0]);
            if (home.kind == Home::Kind::own || first < above(home)) return bound(choice);
        }
        Option& option = choice.options.emplace_back();
        option.home.kind = Home::Kind::own;
        for (const Id u : uses) {
            const std::array<Id, 1> alone{u};
            const Id op = group_.accesses[u].op, depth = shape_.depth[op];
            if (made) spill(option, bytes, alone, depth);
            else option.cross.push_back(crossing(bytes, alone, depth));
            const Home home = private_home(group_, shape_, u);
            const bool sums = first != never;
            if (home.kind == Home::Kind::own) option.own.push_back(u);
            else if (home.kind == Home::Kind::pass) hold_in_pass(option, alone, home.pass, home.level, sums);
            else hold(option, alone, depth, sums);
            if (sums && home.kind != Home::Kind::own && first >= above(home))
                accumulate(option, choice.buffer, first, true);
            if (wider && home.kind == Home::Kind::own) option.summing = sums ? Summing::wide : Summing::own;
        }
        bound(choice);
    }
    // The accumulators beside an output that lies whole.
    void whole(Choice& choice) const {
        Option& option = choice.options.emplace_back();
        const std::optional<std::size_t> first = first_sum(group_, shape_, choice.buffer).loop;
        if (first) accumulate(option, choice.buffer, *first);
        else option.summing = Summing::beside;
    }

    // The deepest body, at or above `body`, in which a buffer may live for all of its uses.
    Id deepest_share(Id buffer, Id body) const {
        for (Id l = 0; frame_ && l < body; ++l)
            if (frame_->turned[l] && !shape_.windows[l]->may_share(buffer)) return l;
        return body;
    }
    bool may_own(std::span<const Id> uses) const {
        if (!frame_) return true;
        return std::all_of(uses.begin(), uses.end(), [&](Id u) {
            for (Id l = 0; l < shape_.depth[group_.accesses[u].op]; ++l)
                if (frame_->turned[l] && !shape_.windows[l]->may_own(u)) return false;
            return true;
        });
    }
    // A ring in the body of a loop is worth trying if less of it crosses than without.
    bool ring_worth(Id buffer, Id loop) const {
        if (!frame_ || !frame_->turned[loop] || group_.buffers[buffer].maker >= 0) return false;
        return side_cut(group_, group_.uses[buffer], shape_.classes[loop]) >= 0 &&
               (!kept_.outer_worth || frame_->turned[loop]->shared[buffer].keeps);
    }
    // False if the private buffers of two uses would have one home: it would be shared there.
    bool apart(std::span<const Id> uses) const {
        Set passes = 0;
        for (const Id u : uses) {
            const Home home = private_home(group_, shape_, u);
            if (home.kind == Home::Kind::own) continue;
            const Set pass = one(static_cast<Id>(shape_.pass[group_.accesses[u].op]));
            if (home.kind == Home::Kind::body || (passes & pass)) return false;
            for (const Id v : uses)
                if (v != u && shape_.pass[group_.accesses[v].op] == shape_.pass[group_.accesses[u].op]) return false;
            passes |= pass;
        }
        return true;
    }

    const Group& group_;
    const Shape& shape_;
    const Kept& kept_;
    const Frame* frame_;
};

}  // namespace

namespace {

// True if a buffer lies in the place of the output that lies over an input.
bool lies_over(const Group& group, const Shape& shape, const Kept& kept, Id buffer) {
    if (buffer == kept.over->output) return true;
    if (group.uses[buffer].size() != 2 || !group.inner(buffer)) return false;
    const Id reader = group.accesses[group.uses[buffer].back()].op;
    return replaced(group, shape, kept, reader) == buffer &&
           lies_over(group, shape, kept, group.operators[reader].writes.buffer);
}

}  // namespace

bool in_whole_place(const Group& group, const Shape& shape, const Kept& kept, Id buffer) {
    if (has(kept.whole, buffer)) return true;
    if (group.uses[buffer].size() != 2 || !group.inner(buffer)) return false;
    const Id reader = group.accesses[group.uses[buffer].back()].op;
    return replaced(group, shape, kept, reader) == buffer &&
           in_whole_place(group, shape, kept, group.operators[reader].writes.buffer);
}

bool goes_on(const Group& group, Id loop_class, const Access& read, const Access& written, bool sliding) {
    if (sliding) return read.cut[loop_class] >= 0 && read.cut[loop_class] == written.cut[loop_class];
    const std::vector<int>& axis = group.classes[loop_class].axis;
    for (std::size_t s = 0; s < read.axes.size(); ++s)
        if (read.axes[s] >= 0 && read.axes[s] == axis[read.op] && written.axes[s] == axis[written.op]) return true;
    return false;
}

bool read_before(const Group& group, const Shape& shape, Id input, Id writer, bool sliding) {
    const Access& written = group.accesses[group.of[writer].back()];
    return std::all_of(group.uses[input].begin(), group.uses[input].end(), [&](Id u) {
        const Access& read = group.accesses[u];
        const Id reader = read.op;
        if (reader == writer) return group.by_element(read, written);
        const Id body = std::min(shape.depth[reader], shape.depth[writer]);
        for (Id l = 0; l < body; ++l)
            if ((shape.slides(l) && !sliding) || !goes_on(group, shape.classes[l], read, written, shape.slides(l)))
                return false;
        const Id first = shape.item(reader, body), then = shape.item(writer, body);
        if (first != then) return first < then;
        const std::vector<Id>& pass = shape.passes[static_cast<Id>(shape.pass[writer])].classes;
        return reader < writer &&
               std::all_of(pass.begin(), pass.end(), [&](Id c) { return goes_on(group, c, read, written, false); });
    });
}

std::optional<Id> replaced(const Group& group, const Shape& shape, const Kept& kept, Id op) {
    if (!kept.in_place) return std::nullopt;
    const Id output = group.operators[op].writes.buffer;
    for (const Id operand : group.under[op]) {
        if (has(kept.whole, operand)) continue;
        // In the place of one that lies over an input, it is written over that, too.
        if (kept.over && lies_over(group, shape, kept, output) &&
            !read_before(group, shape, kept.over->input, static_cast<Id>(group.buffers[operand].maker), false))
            continue;
        // Where it holds wider sums, it lies apart.
        const auto narrow = [&](std::size_t loops) { return !sums_of(group, shape, operand, loops).wide; };
        if (in_whole_place(group, shape, kept, output)) {
            if (narrow(0)) return operand;
            continue;
        }
        const Home home = deepest_home(group, shape, operand);
        if (group.inner(output) && home == deepest_home(group, shape, output) && narrow(above(home)))
            return operand;
    }
    return std::nullopt;
}

Home deepest_home(const Group& group, const Shape& shape, Id buffer) {
    return home_of(group, shape, group.uses[buffer]);
}

Id Shape::item(Id op, Id body) const {
    const Id count = static_cast<Id>(depth.size());
    if (depth[op] > body) return count;
    const int in = pass[op];
    const Id at = in < 0 ? op : static_cast<Id>(std::countr_zero(passes[static_cast<Id>(in)].members));
    return has(after, op) ? count + 1 + at : at;
}

Set inside(const Shape& shape, Id depth) {
    Set found = 0;
    for (Id o = 0; o < shape.depth.size(); ++o)
        if (shape.depth[o] >= depth) found |= one(o);
    return found;
}

Home private_home(const Group& group, const Shape& shape, Id use) {
    const Id op = group.accesses[use].op;
    const int in = shape.pass[op];
    if (in < 0) return {Home::Kind::own, 0, 0, 0};
    const Pass& pass = shape.passes[static_cast<Id>(in)];
    const Id level = level_of(group, {&use, 1}, pass);
    if (level == pass.classes.size()) return {Home::Kind::own, 0, 0, 0};
    if (level > 0) return {Home::Kind::pass, shape.depth[op], static_cast<Id>(in), level};
    return {Home::Kind::body, shape.depth[op], 0, 0};
}

Term tile(const Group& group, const Shape& shape, std::span<const Id> uses, Id depth, const Pass* pass, Id level,
          const Frame* frame, bool ring) {
    const Buffer& buffer = group.buffers[group.accesses[uses[0]].buffer];
    Term term{buffer.element, 0};
    Set cut = 0;  // sides
    for (Id l = 0; pass && l < level; ++l) cut |= one(static_cast<Id>(side_cut(group, uses, pass->classes[l])));
    for (Id l = 0; l < depth; ++l) {
        const int side = side_cut(group, uses, shape.classes[l]);
        if (side < 0 || has(cut, static_cast<Id>(side))) continue;
        cut |= one(static_cast<Id>(side));
        if (frame && frame->turned[l])
            term.bytes = times(term.bytes, rows(group, *frame->turned[l], uses, ring && l + 1 == depth).held);
        else term.loops |= 1u << l;
    }
    for (std::size_t s = 0; s < buffer.sides.size(); ++s)
        if (!has(cut, s)) term.bytes = times(term.bytes, buffer.sides[s]);
    return term;
}

Term tile(const Group& group, const Shape& shape, Id use, Set slices, const Frame* frame) {
    const Access& access = group.accesses[use];
    const Buffer& buffer = group.buffers[access.buffer];
    Term term{buffer.element, 0};
    for (std::size_t s = 0; s < buffer.sides.size(); ++s) {
        const int axis = access.axes[s];
        if (axis >= 0 && has(slices, static_cast<Id>(axis))) continue;
        Bytes side = buffer.sides[s];
        for (Id l = 0; l < shape.depth[access.op]; ++l)
            if (access.cut[shape.classes[l]] == static_cast<int>(s)) {
                const Turned* turned = frame ? frame->turned[l] : nullptr;
                if (!turned) term.loops |= 1u << l;
                side = turned ? turned->own[use].held : 1;
            }
        term.bytes = times(term.bytes, side);
    }
    return term;
}

std::vector<Choice> choices(const Group& group, const Shape& shape, const Kept& kept, const Frame* frame) {
    Builder builder(group, shape, kept, frame);
    std::vector<Choice> found;
    for (Id b = 0; b < group.buffers.size(); ++b)
        if (!group.uses[b].empty() && (!has(kept.whole, b) || group.wider(b)))
            if (Choice choice = builder.of(b); !has(kept.whole, b) || !choice.options.empty())
                found.push_back(std::move(choice));
    return found;
}

}  // namespace onchip::nests
