#include "nest_choices.h"

#include <algorithm>

#include "nest_sums.h"

namespace onchip::nests {

namespace {

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
        const Home deepest = deepest_home(group_, shape_, choice.buffer);
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
        const bool whole = in_whole_place(group_, shape_, kept_, output);
        const bool gone = whole || in_ring(reader) || gone_under(group_, shape_, kept_, choice.buffer);
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
        if (made && uses.size() == 1)  // in the place of an operand it costs nothing, and lets as few bytes cross
            if (const auto operand = replaced(group_, shape_, kept_, group_.accesses[uses[0]].op)) {
                Option option;
                option.home = deepest_home(group_, shape_, *operand);
                spill(option, bytes, uses, option.home.depth);
                return hold_sums(choice, std::move(option), uses);
            }
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
