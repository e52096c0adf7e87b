#include "nest_tiles.h"

#include <algorithm>

namespace onchip::nests {

Tiles::Tiles(const Group& group, const Shape& shape, Bytes room, Bytes alignment, bool monotone)
    : loops_(shape.loops()), room_(room), alignment_(alignment), monotone_(monotone) {
    static const std::vector<Point> once{{1, 1}};  // where windows slide, the terms say it all
    for (std::size_t l = 0; l < loops_; ++l) points_[l] = shape.slides(l) ? &once : &shape.points(group, l);
}

void Tiles::merge(Terms& terms, Term term) {
    for (Term& known : terms)
        if (known.loops == term.loops) {
            known.bytes = plus(known.bytes, term.bytes);
            return;
        }
    terms.push_back(term);
}

void Tiles::add(Terms& terms, Term term) const {
    if (alignment_ == 1) merge(terms, term);
    else terms.push_back(term);
}

At Tiles::last() const {
    At at{};
    for (std::size_t l = 0; l < loops_; ++l) at[l] = points_[l]->size() - 1;
    return at;
}

Tiles::Powers Tiles::powers(const At& at, std::int64_t Point::*of) const {
    Powers products;
    products[0] = 1;
    for (std::size_t l = 0; l < loops_; ++l)
        for (std::size_t set = 0; set < std::size_t{1} << l; ++set)
            products[set | std::size_t{1} << l] = times(products[set], (*points_[l])[at[l]].*of);
    return products;
}

Bytes Tiles::sum(std::span<const Term> terms, const Powers& tiles) const {
    Bytes all = 0;
    for (const Term& term : terms) {
        const Bytes exact = times(term.bytes, tiles[term.loops]);
        all = plus(all, alignment_ == 1 ? exact : (exact + alignment_ - 1) / alignment_ * alignment_);
    }
    return all;
}

Bytes Tiles::bytes(std::span<const Term> cross, const At& at) const {
    const Powers turns = powers(at, &Point::turns);
    Bytes all = 0;
    for (const Term& term : cross) all = plus(all, term.bytes < 0 ? term.bytes : times(term.bytes, turns[term.loops]));
    return all;
}

Bytes Tiles::held(const Term& term, const At& at) const {
    Bytes exact = term.bytes;
    for (std::size_t l = 0; l < loops_; ++l)
        if (has(term.loops, l)) exact = times(exact, (*points_[l])[at[l]].tile);
    return alignment_ == 1 ? exact : (exact + alignment_ - 1) / alignment_ * alignment_;
}

Bytes Tiles::held(const Load& load, const At& at, std::size_t* which) const {
    const Powers tiles = powers(at, &Point::tile);
    Bytes least = load.either && !load.either->empty() ? unlimited : 0;
    for (std::size_t i = 0; load.either && i < load.either->size(); ++i) {
        const Bytes one_of = sum((*load.either)[i], tiles);
        if (one_of < least) {
            least = one_of;
            if (which) *which = i;
        }
    }
    return plus(least, sum(load.all, tiles));
}

bool Tiles::fits(const std::vector<Load>& loads, const At& at) const {
    const Powers tiles = powers(at, &Point::tile);
    for (const Load& load : loads) {
        const Bytes all = sum(load.all, tiles);
        if (all > room_) return false;
        if (!load.either || load.either->empty()) continue;
        const bool any = std::any_of(load.either->begin(), load.either->end(), [&](std::span<const Term> terms) {
            return plus(all, sum(terms, tiles)) <= room_;
        });
        if (!any) return false;
    }
    return true;
}

std::optional<Tiles::Found> Tiles::best(std::span<const Term> cross, const std::vector<Load>& loads, Bytes limit) {
    cross_ = cross;
    loads_ = &loads;
    limit_ = limit;
    found_.reset();
    if (!monotone_) {
        every({}, 0);
        return found_;
    }
    At low{}, high = last();
    for (std::size_t l = 0; l < loops_; ++l) {  // a loop that no term charges takes its least tile
        const bool charged = std::any_of(cross.begin(), cross.end(),
                                         [&](const Term& term) { return term.bytes && has(term.loops, l); });
        if (!charged) low[l] = high[l];
    }
    if (bytes(cross, low) < limit && fits(loads, high)) search(low, high);
    return found_;
}

// Of a box whose first point lets fewer bytes than the limit cross and whose last point fits.
void Tiles::search(At low, At high) {
    for (bool again = true; again;) {
        again = false;
        for (std::size_t l = 0; l < loops_; ++l) {
            if (low[l] == high[l]) continue;
            At at = high;
            std::size_t from = low[l], to = high[l];  // the first that fits beside the least other tiles
            while (from < to) {
                at[l] = (from + to) / 2;
                if (fits(*loads_, at)) to = at[l];
                else from = at[l] + 1;
            }
            if (from != low[l]) again = true;
            low[l] = from;
            at = low;
            if (bytes(cross_, at) >= limit_) return;
            to = high[l];  // the last below the limit beside the fewest other turns
            while (from < to) {
                at[l] = (from + to + 1) / 2;
                if (bytes(cross_, at) < limit_) from = at[l];
                else to = at[l] - 1;
            }
            if (from != high[l]) again = true;
            high[l] = from;
            if (!fits(*loads_, high)) return;
        }
    }
    if (fits(*loads_, low)) {
        limit_ = bytes(cross_, low);
        found_ = Found{limit_, low};
        return;
    }
    std::size_t widest = 0;
    for (std::size_t l = 1; l < loops_; ++l)
        if (high[l] - low[l] > high[widest] - low[widest]) widest = l;
    const std::size_t middle = low[widest] + (high[widest] - low[widest]) / 2;
    At first_high = high, second_low = low;
    first_high[widest] = middle;
    second_low[widest] = middle + 1;
    if (fits(*loads_, first_high)) search(low, first_high);
    if (bytes(cross_, second_low) < limit_) search(second_low, high);
}

void Tiles::every(At at, std::size_t loop) {
    if (loop >= std::min(loops_, deepest)) {
        const Bytes all = bytes(cross_, at);
        if (all >= limit_ || !fits(*loads_, at)) return;
        limit_ = all;
        found_ = Found{all, at};
        return;
    }
    for (at[loop] = 0; at[loop] < points_[loop]->size(); ++at[loop]) every(at, loop + 1);
}

}  // namespace onchip::nests
