#include "nest_homes.h"

#include <algorithm>

#include "bits.h"
#include "nest_rates.h"

namespace onchip::nests {

Homes::Homes(const Group& group, const Settings& settings, Orders& orders, const Shape& shape, const Frame* frame)
    : group_(group), settings_(settings), orders_(orders), shape_(shape), frame_(frame),
      choices_(nests::choices(group, shape_, settings.kept(), frame)),
      tiles_(group, shape_, settings.room, settings.alignment, settings.rules.tiles) {
    for (const Choice& choice : choices_) {
        all_.push_back({0, choice.options.size()});
        homeless_ |= choice.options.empty();
    }
    find_alike();
}

// Buffers from outside of one use each, by one operator and along the same axes, as the vectors of a norm are.
void Homes::find_alike() {
    const auto same = [&](Id a, Id b) {
        const Buffer &x = group_.buffers[a], &y = group_.buffers[b];
        if (x.maker >= 0 || y.maker >= 0 || group_.uses[a].size() != 1 || group_.uses[b].size() != 1) return false;
        const Access &u = group_.accesses[group_.uses[a][0]], &v = group_.accesses[group_.uses[b][0]];
        return u.op == v.op && u.late == v.late && u.axes == v.axes && u.slides.empty() && v.slides.empty() && x.sides == y.sides &&
               x.element == y.element;
    };
    for (std::size_t c = 1; c < choices_.size(); ++c)
        for (std::size_t before = c; before-- > 0;)
            if (same(choices_[before].buffer, choices_[c].buffer)) {
                alike_.push_back({before, c});
                break;
            }
}

// Of two that are alike the first has its home no deeper: else they change places. False if nothing is left.
bool Homes::in_order(Ranges& ranges) const {
    for (const auto& [first, second] : alike_)
        ranges[second].from = std::max(ranges[second].from, ranges[first].from);
    for (std::size_t i = alike_.size(); i-- > 0;) {
        const auto& [first, second] = alike_[i];
        ranges[first].to = std::min(ranges[first].to, ranges[second].to);
    }
    return std::all_of(ranges.begin(), ranges.end(), [](Range r) { return r.from < r.to; });
}

const std::vector<Terms>* Homes::either(Id leaf, Set own, Summing summing) {
    if (!own && summing != Summing::first) return nullptr;
    for (const Either& known : either_)
        if (known.leaf == leaf && known.own == own && known.summing == summing) return &known.terms;
    std::vector<Terms>& found = either_.emplace_back(leaf, own, summing).terms;
    const Id output = group_.of[leaf].back(), buffer = group_.accesses[output].buffer;
    const auto as_sums = [&](Term term) { return Term{group_.as_sums(buffer, term.bytes), term.loops}; };
    Set pass = 0;  // axes that loops of least tile cut around the leaf
    if (shape_.pass[leaf] >= 0)
        for (const Id c : shape_.passes[static_cast<Id>(shape_.pass[leaf])].classes)
            pass |= one(static_cast<Id>(group_.classes[c].axis[leaf]));
    for (const Order& order : orders_.of(leaf, own, summing)) {
        Terms terms;
        std::size_t i = 0;
        each_bit(own, 0, [&](Id u) {
            const Id use = group_.of[leaf][u];
            const Term term = tile(group_, shape_, use, order.cut[i++], frame_);
            const bool wide = summing == Summing::wide || (summing == Summing::own && order.summed);
            tiles_.add(terms, use == output && wide ? as_sums(term) : term);
        });
        if (order.summed) {
            const Term term = tile(group_, shape_, output, order.before | pass, frame_);
            if (group_.widens(buffer) && (summing == Summing::beside || summing == Summing::behind))
                tiles_.add(terms, as_sums(term));
            if (group_.carries(buffer)) tiles_.add(terms, {group_.as_carried(buffer, term.bytes), term.loops});
        }
        found.push_back(std::move(terms));
    }
    if (found.empty()) found.emplace_back().push_back({unlimited, 0});  // no slice along a sum leaves less of anything
    return &found;
}

// Of several options the least of each: the deepest holds least, at every leaf, unless the choice says what does.
const Option& Homes::option(std::size_t choice, const Ranges& ranges) const {
    const Choice& of = choices_[choice];
    return ranges[choice].open() && of.least ? *of.least : of.options[ranges[choice].to - 1];
}

Homes::Inside Homes::inside(const Ranges& ranges) const {
    Inside found{{}, {}};
    for (std::size_t c = 0; c < choices_.size(); ++c) {
        const Option& option = this->option(c, ranges);
        Set seen = 0;
        for (const Id u : option.own) {
            const Id op = group_.accesses[u].op;
            // A shared home holds once what two private ones of one operator hold twice.
            if (ranges[c].open() && has(seen, op)) continue;
            seen |= one(op);
            const auto at = std::find(group_.of[op].begin(), group_.of[op].end(), u) - group_.of[op].begin();
            found.own[op] |= one(static_cast<std::size_t>(at));
        }
        if (option.summing != Summing::none && !lenient_)
            found.summing[static_cast<Id>(group_.buffers[choices_[c].buffer].maker)] = option.summing;
    }
    return found;
}

std::vector<Load> Homes::loads(const Ranges& ranges) {
    std::vector<Load> found(group_.size());
    for (std::size_t c = 0; c < choices_.size(); ++c)
        for (const Held& held : option(c, ranges).held) tiles_.add(found[held.leaf].all, held.term);
    const Inside inside = this->inside(ranges);
    for (Id o = 0; o < group_.size(); ++o) found[o].either = either(o, inside.own[o], inside.summing[o]);
    return found;
}

// Of several options no more than the least: all charge the buffer for the loops that each of them charges.
void Homes::relax(Terms& terms, const Choice& choice, Range range) const {
    if (!range.open()) {
        for (const Term& term : choice.options[range.from].cross) Tiles::merge(terms, term);
        return;
    }
    unsigned loops = ~0u;
    Bytes least = unlimited;  // of one use: without windows every option charges as much
    for (std::size_t i = range.from; i < range.to; ++i)
        for (const Term& term : choice.options[i].cross)
            if (term.bytes >= 0) {
                loops &= term.loops;
                least = std::min(least, term.bytes);
            }
    for (const Term& term : choice.options[range.from].cross)
        Tiles::merge(terms, term.bytes < 0 ? Term{term.bytes, 0} : Term{least, loops});
}

Terms Homes::cross(const Ranges& ranges) const {
    Terms found;
    for (std::size_t c = 0; c < choices_.size(); ++c) relax(found, choices_[c], ranges[c]);
    return found;
}

bool Homes::possible() { return !homeless_ && tiles_.fits(loads(all_), tiles_.last()); }

// Drops options that do not fit with the least tiles beside what has one home.
void Homes::tighten() {
    const At least = tiles_.last();
    std::vector<Load> fixed(group_.size());
    for (std::size_t c = 0; c < choices_.size(); ++c)
        if (!all_[c].open())
            for (const Held& held : choices_[c].options[all_[c].from].held) tiles_.add(fixed[held.leaf].all, held.term);
    for (std::size_t c = 0; c < choices_.size(); ++c) {
        std::vector<Option>& options = choices_[c].options;
        if (!all_[c].open()) continue;
        const auto misfit = [&](const Option& option) {
            return std::any_of(option.held.begin(), option.held.end(), [&](const Held& held) {
                Load load = fixed[held.leaf];
                load.all.push_back(held.term);
                return tiles_.held(load, least) > settings_.room;
            });
        };
        while (all_[c].open() && misfit(options[all_[c].from])) ++all_[c].from;
    }
}

void Homes::weigh_nothing(Set buffers) {
    lenient_ = true;
    for (Choice& choice : choices_) {
        if (!has(buffers, choice.buffer)) continue;
        choice.least.reset();
        for (Option& option : choice.options) {
            option.held.clear();
            option.own.clear();
        }
    }
}

// What homes that fit around some leaf let cross at least, whatever the tiles: of the largest tiles what crosses, of the
// least what is held. Ends as soon as it is `limit` or more.
Bytes Homes::dearness(const Ranges& ranges, Bytes limit) const {
    thread_local Rates rates;
    thread_local std::vector<Bytes> crossing, held;
    rates.clear(group_.size());
    const At largest = tiles_.first(), least = tiles_.last();
    for (std::size_t c = 0; c < choices_.size(); ++c) {
        const auto [from, to] = ranges[c];
        crossing.clear();
        held.assign((to - from) * group_.size(), 0);
        for (std::size_t i = from; i < to; ++i) {
            const Option& option = choices_[c].options[i];
            crossing.push_back(tiles_.bytes(option.cross, largest));
            for (const Held& at : option.held) {
                Bytes& sum = held[(i - from) * group_.size() + at.leaf];
                sum = plus(sum, tiles_.held(at.term, least));
            }
        }
        rates.add(crossing, held);
        if (rates.crossing() >= limit) return rates.crossing();
    }
    return rates.least(settings_.room, limit);
}

Bytes Homes::bound(Bytes limit) {
    tighten();
    const Bytes dear = dearness(all_, limit);
    if (dear >= limit) return dear;
    const auto found = tiles_.best(cross(all_), loads(all_), limit);
    return found ? std::max(dear, found->bytes) : limit;
}

void Homes::search(Best& best, Watched watched) {
    if (homeless_) return;
    if (!settings_.rules.bounds) {
        Ranges ranges = all_;
        every(best, ranges, 0);
        return;
    }
    tighten();
    if (tiles_.bytes(cross(all_), tiles_.first()) < best.bytes) node(best, all_, watched);
}

void Homes::every(Best& best, Ranges& ranges, std::size_t buffer) {
    if (buffer == choices_.size()) {
        if (const auto found = tiles_.best(cross(ranges), loads(ranges), best.bytes)) keep(best, ranges, found->at);
        return;
    }
    const Range range = ranges[buffer];
    for (std::size_t i = range.from; i < range.to; ++i) {
        ranges[buffer] = {i, i + 1};
        every(best, ranges, buffer + 1);
    }
    ranges[buffer] = range;
}

void Homes::node(Best& best, const Ranges& ranges, Watched& watched) {
    if (++watched.nodes % nodes_a_look == 0) {
        ++watched.looks;
        watched.ended = watched.ended || watched.over();
    }
    if (watched.ended || too_dear(ranges, best.bytes)) return;
    const auto relaxed = tiles_.best(cross(ranges), loads(ranges), best.bytes);
    if (!relaxed) return;
    if (std::none_of(ranges.begin(), ranges.end(), [](Range r) { return r.open(); })) {
        keep(best, ranges, relaxed->at);
        return;
    }
    const auto worst = round(best, ranges, *relaxed);
    if (!worst || relaxed->bytes >= best.bytes) return;
    Ranges part = ranges;
    part[*worst].to = part[*worst].from + 1;
    if (in_order(part)) node(best, part, watched);
    part = ranges;
    ++part[*worst].from;
    if (in_order(part)) node(best, part, watched);
}

// Homes for the tiles of a relaxation: of each buffer the fewest bytes that fit, the dearest buffer first. Returns the
// first one that has not got what the relaxation asks of it; none if all have.
std::optional<std::size_t> Homes::round(Best& best, const Ranges& ranges, const Tiles::Found& relaxed) {
    const auto cost = [&](std::size_t c, std::size_t option) {
        return tiles_.bytes(choices_[c].options[option].cross, relaxed.at);
    };
    std::vector<std::pair<Bytes, std::size_t>> open;
    Ranges chosen = ranges;
    for (std::size_t c = 0; c < choices_.size(); ++c) {
        if (!ranges[c].open()) continue;
        open.push_back({cost(c, ranges[c].from) - cost(c, ranges[c].to - 1), c});
        chosen[c].from = ranges[c].to - 1;
    }
    std::sort(open.begin(), open.end());
    const bool fits = tiles_.fits(loads(chosen), relaxed.at);
    std::optional<std::size_t> worst;
    for (const auto& [gain, c] : open) {
        Terms lower;
        relax(lower, choices_[c], ranges[c]);
        for (std::size_t i = ranges[c].from; fits && i + 1 < ranges[c].to && gain < 0; ++i) {
            if (cost(c, i) >= cost(c, chosen[c].from)) continue;
            const Range before = chosen[c];
            chosen[c] = {i, i + 1};
            if (tiles_.fits(loads(chosen), relaxed.at)) break;
            chosen[c] = before;
        }
        if (!worst && (!fits || cost(c, chosen[c].from) > tiles_.bytes(lower, relaxed.at))) worst = c;
    }
    if (fits && tiles_.bytes(cross(chosen), relaxed.at) < best.bytes) keep(best, chosen, relaxed.at);
    return worst;
}

// The deepest homes that let no more cross: the need is least so.
void Homes::keep(Best& best, Ranges ranges, const At& at) {
    for (std::size_t c = 0; c < choices_.size(); ++c) {
        const std::vector<Option>& options = choices_[c].options;
        const Bytes bytes = tiles_.bytes(options[ranges[c].from].cross, at);
        for (std::size_t i = options.size(); i-- > ranges[c].to;) {
            if (tiles_.bytes(options[i].cross, at) > bytes) continue;
            const Range before = ranges[c];
            ranges[c] = {i, i + 1};
            if (tiles_.fits(loads(ranges), at)) break;
            ranges[c] = before;
        }
    }
    best.found = true;
    best.bytes = tiles_.bytes(cross(ranges), at);
    best.shape = shape_;
    for (std::size_t l = 0; l < shape_.loops(); ++l)
        best.tile[l] = shape_.slides(l) ? frame_->tile[l] : shape_.points(group_, l)[at[l]].tile;
    best.need = 0;
    best.homes.assign(group_.buffers.size(), {});
    best.slices.assign(group_.size(), {});
    best.over.clear();
    best.marks.assign(group_.size(), false);
    for (Id o = 0; o < group_.size(); ++o) best.over.push_back(replaced(group_, shape_, settings_.kept(), o));
    for (std::size_t c = 0; c < choices_.size(); ++c) {
        const Option& option = choices_[c].options[ranges[c].from];
        best.homes[choices_[c].buffer] = option.home;
        if (option.apart)
            for (std::optional<Id>& under : best.over)
                if (under == choices_[c].buffer) under.reset();
    }
    const Inside inside = this->inside(ranges);
    const std::array<Set, most>& own = inside.own;
    const std::vector<Load> held = loads(ranges);
    for (Id o = 0; o < group_.size(); ++o) {
        std::size_t which = 0;
        best.need = std::max(best.need, tiles_.held(held[o], at, &which));
        if (!own[o]) continue;
        const Order& order = orders_.of(o, own[o], inside.summing[o])[which];
        best.marks[o] = inside.summing[o] == Summing::behind;
        if (inside.summing[o] != Summing::none && inside.summing[o] != Summing::wide) {
            best.slices[o] = order.axes;
            continue;
        }
        const Beginnings& beginnings = order.cut;
        std::vector<std::pair<std::ptrdiff_t, Id>> axes;  // an axis that cuts more of them stands further out
        for (Id a = 0; a < group_.operators[o].axes.size(); ++a) {
            const auto count = std::count_if(beginnings.begin(), beginnings.end(), [&](Set s) { return has(s, a); });
            if (count) axes.push_back({-count, a});
        }
        std::sort(axes.begin(), axes.end());
        for (const auto& [count, axis] : axes) best.slices[o].push_back(axis);
    }
}

}  // namespace onchip::nests
