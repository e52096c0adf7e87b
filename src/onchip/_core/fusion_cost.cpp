#include "fusion_cost.h"

#include <algorithm>

namespace onchip::fusion {

void Evaluator::load_outline(std::span<const Id> members) {
    banded_ = group_.load(members);
    weights_.clear();
    const Options& options = problem_.options;
    for (const Group::Op& op : group_.ops) {
        const Operator& o = problem_.operators[op.id];
        weights_.add(o.weight, problem_.round_up(o.weight),
                     options.weight_tile && banded_ ? problem_.round_up(o.tile) : 0);
    }
    if (banded_) choose_candidates();
}

void Evaluator::choose_candidates() {
    may_stream(group_, candidate_);
    excluded_pairs(group_, candidate_, parent_);
    order_.clear();
    for (std::uint32_t x = 0; x < group_.size(); ++x)
        if (candidate_[x]) order_.push_back(x);
}

void Evaluator::keep_whole(std::uint64_t which) {
    std::uint32_t operand = 0;
    group_.crossing = 0;
    for (Group::Map& m : group_.maps) {
        if (!m.external && !m.escaping) continue;
        m.whole = (which >> operand++ & 1) != 0;
        if (!m.whole) group_.crossing += problem_.tensors[m.id].bytes;
    }
    if (banded_) choose_candidates();
}

void Evaluator::load(std::span<const Id> members) {
    load_outline(members);
    weights_.close(problem_.options.residency);
    if (!banded_) {
        whole_ = unlimited;
        if (members.size() == 1 && problem_.operators[members[0]].form == Form::opaque) {
            whole_ = problem_.round_up(problem_.operators[members[0]].workspace);
            for (const Group::Map& m : group_.maps) whole_ += problem_.round_up(problem_.tensors[m.id].bytes);
            Bytes passing = 0;
            for (const std::vector<Id>& streams : problem_.operators[members[0]].streams) {
                Bytes sum = 0;
                for (const Id t : streams) sum += problem_.round_up(problem_.tensors[t].bytes);
                passing = std::max(passing, sum);
            }
            whole_ -= passing;
        }
        return;
    }
    group_.plan_bands();
    rows_ = nullptr, walked_ = false;
    prepare_rows();
    passes_.load(group_);
}

// Improves best_ by what the group costs in bands of one height; true when it did.
bool Evaluator::search(const Point& at) {
    at_ = at;
    halo_known_ = false;
    const Bytes before = best_;
    in_s_.assign(group_.size(), 0);
    branch(0, least_, 0);
    return best_ < before;
}

void Evaluator::branch(std::size_t from, Bytes least, Bytes halo) {
    if (any_ && best_ < unlimited) return;
    if (cut_) return;
    if ((most_branches_ && ++branches_ > most_branches_) || (over_ && (++asked_ & 1023) == 0 && over_())) {
        cut_ = true;
        return;
    }
    const Bytes resident = weights_.at_most(room(budget_, least));
    if (resident < 0) return;
    if (!any_ && group_.crossing + halo + weight_cost(at_, resident) >= best_) return;
    if (from == order_.size()) {
        leaf();
        return;
    }
    const std::uint32_t x = order_[from], p = parent_[x];
    const bool above = p != no_id && in_s_[p];
    const Bytes joined = in_[x] + (p != no_id && !above ? extra_[x] : 0);
    const Bytes rest = least - (above ? out_[x] : std::min(out_[x], joined));
    const auto in = [&] {
        if (!may_join(group_, in_s_, x)) return;
        Bytes more_halo = halo;
        if (!any_ && group_.maps[x].external && at_.bands > 1) {
            if (!halo_known_) halo_bounds();
            more_halo += halo_bound_[x];
        }
        in_s_[x] = 1;
        // What is part of a legal S is legal, so a branch ends at the first that is not.
        if (!ordered_ || passes_.legal_with(group_, in_s_, x))
            branch(from + 1, rest + joined, more_halo);
        in_s_[x] = 0;
    };
    const bool first = !above && joined <= out_[x];
    if (first) in();
    branch(from + 1, rest + out_[x], halo);
    if (!above && !first) in();
}

void Evaluator::leaf() {
    if (ordered_ && !passes_.none_waits(group_, in_s_)) return;
    const bool lines = problem_.options.halo == Halo::lines && at_.bands > 1;
    const std::vector<std::int64_t>* rows = &held_more_;
    if (walked_ && !order_.empty()) walk_.buffers(group_, in_s_, at_.t, fewest_), rows_ = &fewest_;
    else if (lines && !order_.empty()) overlaps(group_, in_s_, back_, more_), rows = &more_;
    const Bytes taken = buffers(in_s_, *rows, at_);
    if (walked_) rows_ = &walked_rows_;
    if (any_) {
        if (weights_.least_room() <= room(budget_, taken)) best_ = 0;
        return;
    }
    const Bytes resident = weights_.most(room(budget_, taken));
    if (resident < 0) return;
    Bytes cost = group_.crossing + weight_cost(at_, resident);
    if (cost >= best_) return;
    const Bytes halo = halo_of(in_s_, at_);
    cost += halo;
    if (cost >= best_) return;
    best_ = cost, best_s_ = in_s_, best_at_ = at_, best_halo_ = halo, best_buffers_ = taken;
}

bool Evaluator::fits(Bytes budget) {
    if (!banded_) return room(budget, whole_) >= 0;
    budget_ = budget, best_ = unlimited, any_ = true;
    const std::int64_t longest = group_.longest(), thin = std::min(problem_.least_rows, longest);
    // Higher bands need no fewer rows, but for few of them, and for the one that makes all: nothing overlaps there.
    for (std::int64_t t = thin; best_ >= unlimited; ++t) {
        if (t > thin && t < longest) {
            rows_from(t);
            bound({t, 2, 1, 1});
            const bool over = problem_.options.halo != Halo::lines || !near(t - thin) ||
                              weights_.least_room() > room(budget_, least_);
            rows_ = nullptr;
            if (over) t = longest;
        }
        const Point at{t, group_.bands(t), 1, 1};
        rows_for(at);
        bound(at);
        search(at);
        if (t >= longest) break;
    }
    rows_ = nullptr;
    any_ = false;
    return best_ < unlimited;
}

bool Evaluator::may_grow(Bytes budget) {
    if (!banded_) return false;
    rows_at_least(group_, back_, fewest_);
    rows_ = &fewest_;
    bound({});
    rows_ = nullptr;
    return weights_.least_room() <= room(budget, least_);
}

Bytes Evaluator::floor_within(Bytes budget) const {
    const bool held = problem_.options.batch_weights == BatchWeights::held;
    const bool shared = problem_.options.batch_weights == BatchWeights::shared;
    // Several bands: with all images at once where that is allowed. One band: as many images as whole maps fit.
    std::int64_t fetches = shared || held ? 2 : 2 * problem_.images;
    for (std::int64_t images = 1; images <= (shared ? 1 : problem_.images); ++images) {
        Bytes taken = 0;
        for (std::uint32_t x = 0; x < group_.size(); ++x) {
            const Group::Map& m = group_.maps[x];
            const std::int64_t channels = candidate_[x] ? m.few : m.channels;
            taken += problem_.round_up(images * m.row_bytes * problem_.tensors[m.id].needed * channels);
        }
        if (room(budget, taken) >= 0) fetches = std::min(fetches, shared ? 1 : rounds(problem_.images, images));
    }
    // No more stays than beside the least buffers; the largest tile is not counted against it.
    const bool none = problem_.options.residency == Residency::none;
    const Bytes resident = none ? 0 : std::min(weights_.all(), std::max<Bytes>(0, room(budget, least_)));
    return floor() + (fetches - 1) * (weights_.all() - resident);
}

// All heights of a band that could cost less than `limit`, by what they cost at least; with `first` only up to
// the first that could cost no more than the floor. False when there may be others.
bool Evaluator::list_points(Bytes budget, Bytes limit, bool first) {
    points_.clear();
    bool whole = true;
    const std::int64_t longest = group_.longest(), thin = std::min(problem_.least_rows, longest);
    const bool held = problem_.options.batch_weights == BatchWeights::held;
    const bool shared = problem_.options.batch_weights == BatchWeights::shared;
    for (std::int64_t images = 1; images <= (shared ? 1 : problem_.images); ++images) {
        const std::int64_t again = shared ? 1 : rounds(problem_.images, images);
        if (!shared && images > 1 && rounds(problem_.images, images - 1) == again) continue;  // no fewer than those
        // Bands of several images at once only when asked for; whole images are no bands.
        const std::int64_t lowest = images > 1 && !held ? longest : thin;
        // However high the bands, no more weights than this are resident; the single band may need fewer rows.
        Bytes most = -1;
        const auto resident = [&](const Point& at) {
            bound(at);
            return weights_.at_most(room(budget, least_));
        };
        const Point single{longest, 1, images, again};
        rows_for(single);
        const Bytes alone = resident(single);
        if (alone >= 0) points_.push_back({single, group_.crossing + weight_cost(single, alone)});
        if (lowest == longest) continue;
        rows_of_all_heights();
        most = std::max(alone, resident({lowest, group_.bands(lowest), images, 1}));
        if (most < 0) continue;
        for (std::int64_t high = longest - 1; high >= lowest;) {
            const std::int64_t bands = group_.bands(high);
            std::int64_t low = high, below = lowest;  // to the lowest height with as many bands
            while (below < low) {
                const std::int64_t middle = below + (low - below) / 2;
                if (group_.bands(middle) <= bands)
                    low = middle;
                else
                    below = middle + 1;
            }
            const Point at{low, bands, images, again * bands};
            if (group_.crossing + weight_cost(at, most) >= limit) break;
            if (exact_around(at)) rows_ = nullptr;
            else rows_from(low);  // of all heights with as many bands
            const Bytes kept = resident(at);
            if (kept >= 0) {
                const Bytes cost = group_.crossing + weight_cost(at, kept);
                points_.push_back({at, cost});
                if (first && cost == floor()) {
                    whole = false;
                    break;
                }
            }
            high = low - 1;
        }
    }
    rows_ = nullptr;
    std::erase_if(points_, [&](const auto& p) { return p.second >= limit; });
    std::stable_sort(points_.begin(), points_.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    return whole;
}

Bytes Evaluator::lower(Bytes budget, Bytes limit) {
    any_ = false;
    if (!banded_) return room(budget, whole_) >= 0 && floor() < limit ? floor() : unlimited;
    list_points(budget, limit, true);
    return points_.empty() ? unlimited : points_.front().second;
}

Bytes Evaluator::best(Bytes budget, Bytes limit) {
    any_ = cut_ = false;
    branches_ = 0;
    budget_ = budget, best_ = limit, best_s_.clear();
    if (!banded_) {
        best_at_ = {};
        const bool found = room(budget, whole_) >= 0 && floor() < limit;
        best_halo_ = 0, best_buffers_ = whole_;
        return best_ = found ? floor() : unlimited;
    }
    bool external = problem_.options.halo == Halo::recompute;
    for (const std::uint32_t x : order_) external = external || group_.maps[x].external;
    external = external && problem_.options.halo != Halo::paper;
    bool found = false;
    for (const bool first : {true, false}) {
        const bool whole = list_points(budget, best_, first);
        for (const auto& [point, least] : points_) {
            if (least >= best_) break;
            found = search_heights(point, external && point.bands > 1) || found;
        }
        if (whole || best_ == floor()) break;
    }
    rows_ = nullptr;
    return found ? best_ : unlimited;
}

// The lowest bands of some number, and higher ones: less `halo` where some map is done before the last band, and
// fewer rows where borders of maps cut every band.
bool Evaluator::search_heights(Point at, bool halo) {
    const std::int64_t bands = at.bands, lowest = at.t;
    rows_for(at);
    bound(at);
    bool found = search(at);
    const bool lines = problem_.options.halo == Halo::lines;
    if (bands == 1 || (!lines && !halo)) return found;
    while (group_.bands(++at.t) == bands) {
        const bool close = lines && near(at.t - lowest);
        if (!close && !halo) break;
        const bool shorter = halo && std::any_of(group_.maps.begin(), group_.maps.end(), [&](const Group::Map& m) {
            return m.ahead < all_rows && m.scale * at.t * (bands - 1) + m.ahead >= m.rows;
        });
        if (!close && !shorter) continue;
        const auto worth = [&] {
            bound(at);
            const Bytes left = weights_.at_most(room(budget_, least_));
            return left >= 0 && group_.crossing + weight_cost(at, left) < best_;
        };
        rows_ = nullptr;
        if (lines) {
            rows_from(at.t);
            if (!worth()) break;
            rows_for(at);
        }
        if (!worth()) {
            if (!lines) break;
            continue;
        }
        found = search(at) || found;
    }
    return found;
}

Cost Evaluator::describe() {
    Cost result;
    result.dram = best_, result.crossing = group_.crossing, result.halo = best_halo_;
    result.weight = best_ - group_.crossing - best_halo_;
    if (!banded_) {
        result.whole = true;
        result.rows = 0, result.subgroups = 1, result.scratch = whole_;
        return result;
    }
    const bool shared = problem_.options.batch_weights == BatchWeights::shared;
    result.rows = best_at_.t, result.images = best_at_.images;
    result.subgroups = shared ? best_at_.bands : best_at_.fetches;
    for (std::uint32_t x = 0; x < group_.size(); ++x)
        if (best_s_[x]) result.streamed.push_back(group_.maps[x].id);
    const auto [in, taken] = weights_.chosen(room(budget_, best_buffers_));
    for (std::size_t i = 0; i < group_.ops.size(); ++i)
        if (in[i]) result.resident.push_back(group_.ops[i].id);
    result.scratch = best_buffers_ + taken, result.maps = best_buffers_;
    return result;
}

Bytes Evaluator::least_scratch(std::int64_t bands) {
    if (!banded_) return whole_;
    const std::int64_t longest = group_.longest(), thin = std::min(problem_.least_rows, longest);
    std::int64_t t = thin;
    if (bands > 0)
        while (t < longest && group_.bands(t) > bands) ++t;
    const Point at{t, group_.bands(t), 1, 1};
    rows_for(at);
    bound(at);
    // Binary search over the budget: the search itself decides.
    Bytes low = least_ + weights_.least_room(), high = low;
    any_ = true;
    const auto enough = [&](Bytes budget) {
        budget_ = budget, best_ = unlimited;
        search(at);
        return best_ < unlimited;
    };
    if (!enough(unlimited)) return any_ = false, rows_ = nullptr, unlimited;
    while (!enough(high)) low = high + 1, high = high * 2 + 1;
    while (low < high) {
        const Bytes middle = low + (high - low) / 2;
        if (enough(middle))
            high = middle;
        else
            low = middle + 1;
    }
    any_ = false, rows_ = nullptr;
    return high;
}

}  // namespace onchip::fusion
