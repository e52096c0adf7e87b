#include "joint_prices.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace onchip::joint {

using fusion::Form;
using fusion::Tensor;

Prices::Prices(const fusion::Fuser& fuser, Bytes budget, std::vector<std::vector<Id>> over,
               std::vector<NestGroup> nests, NestCosts& costs, const std::vector<Id>& joins)
    : problem_(fuser.problem()),
      sets_(fuser.sets()),
      nests_(std::move(nests)),
      costs_(costs),
      budget_(budget),
      over_(std::move(over)),
      evaluator_(problem_),
      blocks_(problem_) {
    for (const fusion::Candidate& c : fuser.candidates()) listed_.push_back(c.set);
    add_nests();
    infos_.resize(groups());
    over_.resize(problem_.operators.size());
    joins_.resize(problem_.operators.size());
    for (const Id op : joins) joins_[op] = true;
}

// Groups that the fuser lists too may run either way; the others stand behind its candidates.
void Prices::add_nests() {
    std::unordered_map<Id, Id> known;  // by set: its place in `listed_`
    for (Id g = 0; g < listed_.size(); ++g) known.emplace(listed_[g], g);
    fusion::Hull hull(problem_);
    std::vector<std::pair<Id, Id>> found;  // group, nest
    for (Id n = 0; n < nests_.size(); ++n) {
        if (nests_[n].members.size() == 1) continue;
        hull.assign(nests_[n].members);
        const Id set = sets_.insert(hull.bits(), hull.first(), hull.words(), hull.hash());
        const auto [at, fresh] = known.emplace(set, static_cast<Id>(listed_.size()));
        if (fresh) listed_.push_back(set);
        found.emplace_back(at->second, n);
    }
    candidates_ = static_cast<Id>(listed_.size());
    nest_of_.assign(groups(), no_id);
    untiled_.assign(groups(), false);
    for (const auto& [group, n] : found) nest_of_[group] = n;
    for (Id n = 0; n < nests_.size(); ++n)
        if (nests_[n].members.size() == 1) nest_of_[alone(nests_[n].members.front())] = n;
}

const std::vector<Id>& Prices::members(Id group) {
    if (members_of_ != group) {
        members_of_ = group;
        if (single(group))
            members_.assign(1, group - candidates_);
        else
            sets_.members(listed_[group], members_);
    }
    return members_;
}

void Prices::load(Id group) {
    if (loaded_ == group) return;
    loaded_ = group;
    evaluator_.load(members(group));
}

Prices::Info& Prices::info(Id group) {
    Info& i = infos_[group];
    if (i.weights >= 0) return i;
    load(group);
    i.at = static_cast<std::uint32_t>(operands_.size());
    i.weights = 0;
    for (const fusion::Group::Op& op : evaluator_.group().ops) i.weights += problem_.operators[op.id].weight;
    for (const fusion::Group::Map& m : evaluator_.group().maps) {
        if (!m.external && !m.escaping) continue;
        const Tensor& t = problem_.tensors[m.id];
        const bool free = m.external ? t.producer == no_id : t.output;
        operands_.push_back({m.id, t.bytes, problem_.round_up(t.bytes), m.external, free});
    }
    i.count = static_cast<std::uint32_t>(operands_.size()) - i.at;
    if (single(group)) i.skipped = problem_.operators[group - candidates_].skipped;
    if (const NestGroup* nest = nested(group)) {  // parts of operands may be all that crosses
        Bytes all = i.weights;
        for (std::uint32_t o = i.at; o < i.at + i.count; ++o) all += operands_[o].bytes;
        i.skipped = std::max(i.skipped, all - nest->floor);
        for (std::uint32_t o = i.at; o < i.at + i.count; ++o) {
            Operand& operand = operands_[o];
            // What is made here may lie in the place of an output that is whole.
            operand.wholly = !operand.external && !single(group);
            for (const auto& [tensor, buffers] : nest->buffers)
                if (tensor == operand.tensor) operand.wholly |= std::popcount(buffers) > 1;
            const std::vector<Id>& windowed = nest->windowed;
            operand.wholly |= std::find(windowed.begin(), windowed.end(), operand.tensor) != windowed.end();
        }
        find_pairs(*nest, i);
    }
    return i;
}

void Prices::find_pairs(const NestGroup& nest, Info& info) {
    info.first_pair = static_cast<std::uint32_t>(pairs_.size());
    const auto place = [&](Id tensor) {
        std::uint32_t o = 0;
        while (o < info.count && operands_[info.at + o].tensor != tensor) ++o;
        return o;
    };
    for (const auto& [under, above] : nest.over) {
        const Pair pair{place(under), place(above)};
        if (std::max(pair.input, pair.output) >= std::min<std::size_t>(info.count, most_operands)) continue;
        operands_[info.at + pair.input].paired = operands_[info.at + pair.output].paired = true;
        pairs_.push_back(pair);
    }
    info.pairs = static_cast<std::uint32_t>(pairs_.size()) - info.first_pair;
}

std::span<const Operand> Prices::operands(Id group) {
    const Info& i = info(group);
    return {operands_.data() + i.at, i.count};
}

std::span<const Pair> Prices::pairs(Id group) {
    const Info& i = info(group);
    return {pairs_.data() + i.first_pair, i.pairs};
}

Bytes Prices::weights(Id group) { return info(group).weights; }

// Whether what is not whole passes through the operator's workspace.
bool Prices::streams(Id group, Mask whole) {
    const fusion::Operator& op = problem_.operators[group - candidates_];
    if (op.streams.empty()) return false;
    std::vector<Id> passing;
    const std::span<const Operand> all = operands(group);
    for (std::size_t o = 0; o < all.size() && o < most_operands; ++o)
        if (!(whole >> o & 1)) passing.push_back(all[o].tensor);
    std::sort(passing.begin(), passing.end());
    return std::find(op.streams.begin(), op.streams.end(), passing) != op.streams.end();
}

Way Prices::evaluate(Id group, Mask whole, Id over, Bytes room, Bytes limit, bool described) {
    Way way;
    cut_now_ = false, floor_now_ = limit;
    ++evaluated_;
    if (over == no_id && described) in_tiles(group, whole, room, limit, way);
    else if (over == no_id) way = priced_in_tiles(group, whole, room, limit);
    if (nested(group)) as_nest(group, whole, over, room, limit, way);
    floor_now_ = std::max(std::min(floor_now_, way.own), least_own(group));
    return way;
}

// What in_tiles() costs and needs: it stays where nests are asked for again.
Way Prices::priced_in_tiles(Id group, Mask whole, Bytes room, Bytes limit) {
    Way way;
    if (!nested(group)) {
        in_tiles(group, whole, room, limit, way);
        return way;
    }
    const auto [entry, fresh] = in_tiles_.try_emplace(Key{group, no_id, whole});
    Stairs& stairs = entry->second;
    if (fresh) bytes_ += 160;
    if (const auto known = stairs.at(room)) {
        way.own = *known, way.needs = stairs.least_room(room);
    } else if (stairs.below(room, limit)) {
        in_tiles(group, whole, room, limit, way);
        stairs.cut = stairs.cut || cut_now_;
        bytes_ += 16;
        if (way.own < limit || limit >= unlimited) stairs.learn(room, way.own, way.needs);
        else stairs.learn_bound(room, limit);
    }
    cut_now_ = stairs.cut;
    if (cut_now_) floor_now_ = 0;
    if (way.own >= limit) way = {};
    return way;
}

// In bands, through a workspace, or in blocks.
void Prices::in_tiles(Id group, Mask whole, Bytes room, Bytes limit, Way& way) {
    load(group);
    evaluator_.keep_whole(whole);
    evaluator_.reserve(budget_ - room);
    const bool parts = problem_.maps_budget < budget_ || problem_.weights_budget < budget_;
    if (evaluator_.banded() && !untiled_[group]) {
        const Bytes crossing = evaluator_.group().crossing;
        evaluator_.at_most(most_branches);
        const Bytes found = evaluator_.best(budget_, limit >= unlimited ? unlimited : limit + crossing);
        cut_now_ = evaluator_.was_cut();
        if (cut_now_) floor_now_ = 0;
        if (found < unlimited) {
            way.cost = evaluator_.describe();
            way.own = found - crossing;
            way.needs = way.cost.scratch;
            if (parts) way.needs = std::max(way.needs, budget_ - problem_.maps_budget + way.cost.maps);
        }
    }
    const Info& i = info(group);
    if (single(group)) {
        const fusion::Operator& op = problem_.operators[group - candidates_];
        const Bytes needs = workspace(group), taken = needs + (parts ? budget_ - room : 0);
        if (i.weights < way.own && needs <= room && taken <= problem_.maps_budget && streams(group, whole)) {
            way.own = i.weights;
            way.cost = {};
            way.cost.weight = op.weight, way.cost.scratch = op.workspace, way.cost.maps = op.workspace;
            way.cost.subgroups = 1, way.cost.whole = true;
            way.needs = parts ? room : needs;
        }
    }
    if (single(group) && whole == 0 && blocked(group) && !untiled_[group] &&
        (way.own >= unlimited || (problem_.options.blocks && way.own > i.weights - i.skipped))) {
        // A buffer in parts that others lie in: we ask that all of the blocks find room beside the maps.
        const Bytes within = parts && room < budget_
                                 ? std::min({room, problem_.maps_budget - (budget_ - room), problem_.weights_budget})
                                 : room;
        const std::optional<fusion::Blocked>& found = blocks_.best(group - candidates_, within);
        if (found) {
            const fusion::Operator& op = problem_.operators[group - candidates_];
            const Bytes again = found->input - problem_.tensors[op.inputs.front().tensor].bytes;
            if (found->weight + again < way.own) {
                way.own = found->weight + again;
                way.cost = {};
                way.cost.halo = again, way.cost.weight = found->weight, way.cost.scratch = found->scratch;
                way.cost.subgroups = found->tiles, way.cost.blocks = found;
                way.needs = parts ? room : found->scratch;
            }
        }
    }
}

// Run the group as a nest where that moves less than `way`.
void Prices::as_nest(Id group, Mask whole, Id over, Bytes room, Bytes limit, Way& way) {
    const NestGroup& nest = *nested(group);
    Bytes within = room, apart = 0;  // in a buffer with parts the scratch must find room beside the maps
    if (problem_.maps_budget < budget_ || problem_.weights_budget < budget_)
        within = std::min({room, problem_.maps_budget - (budget_ - room), problem_.weights_budget});
    if (within < 0) return;
    NestWhole kept;
    const std::span<const Operand> all = operands(group);
    const auto buffers_of = [&](Id tensor) {
        std::uint64_t found = 0;
        for (const auto& [held, buffers] : nest.buffers)
            if (held == tensor) found |= buffers;
        return found;
    };
    for (std::size_t o = 0; o < all.size(); ++o) {
        const bool in = o < most_operands && (whole >> o & 1) != 0;
        if (!in) apart += all[o].bytes;
        if (in) kept.buffers |= buffers_of(all[o].tensor);
    }
    if (over != no_id) {
        const auto buffer = [&](std::uint32_t o) { return static_cast<nests::Id>(std::countr_zero(buffers_of(all[o].tensor))); };
        const Pair pair = pairs(group)[over];
        kept.over = nests::Over{buffer(pair.input), buffer(pair.output)};
    }
    const Bytes below = std::min(limit, way.own);
    const Bytes most = below >= unlimited ? unlimited : below + apart;
    const auto [found, cut, bound] = costs_.best(nest.text, kept, within, most);
    cut_now_ = cut_now_ || cut;
    if (cut) floor_now_ = std::min(floor_now_, bound - apart);
    if (!found) return;
    const Bytes crossing = found->crossing;
    if (crossing - apart >= way.own) return;
    way = {};
    way.own = crossing - apart, way.nest = true;
    way.needs = within < room ? room : found->needs;
    way.cost.scratch = way.cost.maps = found->needs;
}

void Prices::untile(const std::vector<Id>& members) {
    const auto same = [&](Id group) { return !untiled_[group] && this->members(group) == members; };
    for (Id group = 0; group < groups(); ++group) {
        if (!same(group)) continue;
        untiled_[group] = true;
        infos_[group].priced = infos_[group].outlined = false;
        for (auto* known : {&stairs_, &in_tiles_})
            std::erase_if(*known, [&](const auto& entry) { return entry.first.group == group; });
    }
}

void Prices::forget_nests(bool hopeful) {
    hopeful_ = hopeful;
    std::erase_if(stairs_, [&](const auto& entry) { return nested(entry.first.group); });
    for (Id group = 0; group < groups(); ++group)
        if (nested(group)) infos_[group].priced = infos_[group].outlined = false;
}

Bytes Prices::tiled(Id group, Mask whole, Id over, Bytes room, Bytes limit) {
    if (room < 0) return unlimited;
    if (single(group)) limit = unlimited;
    const auto [entry, fresh] = stairs_.try_emplace(Key{group, over, whole});
    if (fresh) bytes_ += 160;
    cut_now_ = entry->second.cut, floor_now_ = std::max(entry->second.floor(room), least_own(group));
    if (const auto known = entry->second.at(room)) return *known;
    if (!entry->second.below(room, limit)) return unlimited;
    Way way = evaluate(group, whole, over, room, limit, false);
    entry->second.learn_floor(room, floor_now_);
    cut_now_ = entry->second.cut = entry->second.cut || cut_now_;
    if (hopeful_ && cut_now_) way.own = std::min(way.own, floor_now_), way.needs = room;
    if (way.own >= limit && limit < unlimited) {
        entry->second.learn_bound(room, limit);
        bytes_ += 16;
        return unlimited;
    }
    entry->second.learn(room, way.own, way.needs);
    return way.own;
}

Way Prices::describe(Id group, Mask whole, Id over, Bytes room) {
    return evaluate(group, whole, over, room, unlimited, true);
}

// No more bytes of operands need not cross as they are whole: exactly where they are few, else the room.
Bytes Prices::most_whole(Id group) {
    const std::span<const Operand> all = operands(group);
    std::vector<std::pair<Bytes, Bytes>> sizes;  // bytes, room
    const auto most = [&](Bytes room, const Pair* without) {
        sizes.clear();
        for (std::size_t o = 0; o < all.size(); ++o)
            if (!all[o].free && (!without || (o != without->input && o != without->output)))
                sizes.emplace_back(all[o].bytes, all[o].room);
        std::sort(sizes.rbegin(), sizes.rend());
        const auto best = [&](const auto& self, std::size_t from, Bytes left) -> Bytes {
            Bytes rest = 0, needs = 0;
            for (std::size_t i = from; i < sizes.size(); ++i) rest += sizes[i].first, needs += sizes[i].second;
            if (needs <= left || from == sizes.size()) return rest;
            const Bytes without_it = self(self, from + 1, left);
            if (sizes[from].second > left) return without_it;
            return std::max(without_it, sizes[from].first + self(self, from + 1, left - sizes[from].second));
        };
        if (sizes.size() > few_operands) return room;
        return best(best, 0, room);
    };
    Bytes found = most(budget_, nullptr);
    for (const Pair& pair : pairs(group))  // two in one place
        if (const Operand &x = all[pair.input], &y = all[pair.output]; !x.free && !y.free && x.room <= budget_)
            found = std::max(found, x.bytes + y.bytes + most(budget_ - x.room, &pair));
    return found;
}

Prices::Info& Prices::outlined(Id group) {
    Info& i = info(group);
    if (i.outlined) return i;
    i.outlined = true;
    if (single(group)) {
        i.own = i.weights - i.skipped;
        i.bound = least(group);
        return i;
    }
    load(group);
    if (nested(group)) {  // whatever the nest: weights, and operands that do not all fit whole
        if (i.count > most_operands) {
            i.own = i.bound = evaluator_.banded() ? i.weights - i.skipped : unlimited;
            return i;
        }
        i.own = i.weights - i.skipped;
        Bytes crossing = 0;
        for (const Operand& o : operands(group)) crossing += o.free ? 0 : o.bytes;
        i.bound = i.own + std::max<Bytes>(0, crossing - most_whole(group));
        return i;
    }
    ++evaluated_;
    evaluator_.keep_whole(0);
    evaluator_.reserve(0);
    // A whole operand takes no less than its buffer. The bound charges no halo, which a whole one has not.
    const Bytes found = evaluator_.lower(budget_, unlimited);
    if (found >= unlimited) {
        i.own = i.bound = unlimited;
        return i;
    }
    if (i.count > most_operands) {  // never run: all that is known of it is its floor
        i.own = i.bound = i.weights;
        return i;
    }
    i.own = found - evaluator_.group().crossing;
    // What is whole takes its bytes, all else its buffer at least; the best by bytes for room, in parts if need be.
    evaluator_.least_buffers(buffers_);
    Bytes room = budget_ - evaluator_.least_weights();
    for (const Bytes size : buffers_) room -= size;
    std::vector<std::pair<double, const Operand*>> worth;
    std::vector<Bytes> more;
    Bytes crossing = 0;
    std::size_t at = 0;
    const std::span<const Operand> all = operands(group);
    for (std::uint32_t x = 0; x < evaluator_.group().maps.size(); ++x) {
        const fusion::Group::Map& m = evaluator_.group().maps[x];
        if (!m.external && !m.escaping) continue;
        const Operand& o = all[at++];
        more.push_back(o.room - buffers_[x]);
        if (o.free) continue;
        crossing += o.bytes;
        worth.emplace_back(static_cast<double>(more.back()) / static_cast<double>(std::max<Bytes>(o.bytes, 1)), &o);
    }
    std::sort(worth.begin(), worth.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [ratio, o] : worth) {
        const Bytes takes = more[static_cast<std::size_t>(o - all.data())];
        if (takes <= room) {
            room -= std::max<Bytes>(takes, 0), crossing -= o->bytes;
            continue;
        }
        if (room > 0) crossing -= static_cast<Bytes>(static_cast<double>(room) / ratio) + 1;
        break;
    }
    i.bound = i.own + std::max<Bytes>(crossing, 0);
    return i;
}

Bytes Prices::least(Id group, Bytes limit) {
    Info& i = info(group);
    if (i.priced) return i.least;
    if (joins(group)) {  // its operands may have crossed before
        i.priced = true;
        return i.least = std::min<Bytes>(0, floor(group));
    }
    if (single(group)) limit = unlimited;
    else if (outlined(group).bound >= limit) return i.bound;
    choice_.clear();
    const std::span<const Operand> all = operands(group);
    Bytes whole = 0, over = 0;
    for (std::size_t o = 0; o < all.size(); ++o) {
        whole += all[o].room;
        // What crosses in any case may as well be streamed: its buffer is no larger, but for some nests.
        if ((!all[o].free || all[o].wholly || all[o].paired) && all.size() <= most_operands) choice_.emplace_back(all[o], Mask{1} << o);
    }
    std::sort(choice_.begin(), choice_.end(), [](const auto& a, const auto& b) { return a.first.bytes > b.first.bytes; });
    priced_ = group, patterns_ = parts_ = 0;
    best_ = limit;
    least_own_ = least_own(group);
    if (single(group)) {
        const Id op = group - candidates_;
        if (!over_[op].empty()) over = problem_.round_up(problem_.tensors[problem_.operators[op].outputs.front()].bytes);
        if (whole - over + workspace(group) <= std::min(budget_, problem_.maps_budget)) best_ = i.weights;
        for (const std::vector<Id>& passing : problem_.operators[op].streams) {
            Bytes crossing = 0, taken = whole + workspace(group);
            for (const Operand& o : all)
                if (std::binary_search(passing.begin(), passing.end(), o.tensor))
                    taken -= o.room, crossing += o.free ? 0 : o.bytes;
            if (taken <= std::min(budget_, problem_.maps_budget)) best_ = std::min(best_, i.weights + crossing);
        }
    }
    if (all.size() <= most_operands)
        cheapest(0, 0, budget_, 0, no_id);
    else
        best_ = std::min(best_, least_own_);
    i.priced = best_ < limit || limit >= unlimited;
    // Not below the limit: that is worth knowing, too.
    if (!single(group)) i.bound = std::max(i.bound, best_);
    return i.least = best_;
}

// Patterns in the order of their largest operands, those that are whole first.
void Prices::cheapest(std::size_t from, Bytes crossing, Bytes room, Mask whole, Id over) {
    if (crossing + least_own_ >= best_) return;
    if (from == choice_.size()) {
        ++patterns_;
        cut_now_ = false;
        const Bytes found = tiled(priced_, whole, over, room, best_ >= unlimited ? unlimited : best_ - crossing);
        if (found < unlimited) best_ = std::min(best_, found + crossing);
        if (cut_now_) {
            best_ = std::min(best_, crossing + std::max(floor_now_, least_own_));
            if (floor_now_ <= least_own_) patterns_ = most_patterns;  // no pattern costs more than that
        }
        return;
    }
    if (patterns_ > most_patterns || ++parts_ > most_parts) {  // too many to look at: what it costs at least will do
        best_ = crossing + least_own_;
        return;
    }
    const auto& [operand, bit] = choice_[from];
    if (operand.room <= room) cheapest(from + 1, crossing, room - operand.room, whole | bit, over);
    if (operand.paired && over == no_id) {
        const std::span<const Pair> both = pairs(priced_);
        for (Id p = 0; p < both.size(); ++p) {  // in one place with one that is whole already
            const Mask input = Mask{1} << both[p].input, output = Mask{1} << both[p].output;
            if ((bit == output && (whole & input)) || (bit == input && (whole & output)))
                cheapest(from + 1, crossing, room, whole | bit, p);
        }
    }
    cheapest(from + 1, crossing + (operand.free ? 0 : operand.bytes), room, whole, over);
}

}  // namespace onchip::joint
