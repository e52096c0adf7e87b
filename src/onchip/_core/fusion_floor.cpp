#include "fusion_floor.h"

#include <algorithm>
#include <cmath>

namespace onchip::fusion {

namespace {

constexpr std::size_t most_halos = 3;  // operands whose halo is weighed against holding them; others have none
constexpr double slack = 1e-9;

std::int64_t up(std::int64_t a, std::int64_t b) { return a <= 0 ? 0 : (a + b - 1) / b; }

// The most of some sizes (descending, `sum` in all) that fit together in `room`.
Bytes fill(const std::pair<Bytes, Bytes>* size, std::size_t count, Bytes room, Bytes sum) {
    if (sum <= room) return sum;
    if (count == 0 || size[count - 1].first > room) return 0;
    if (size[0].first > room) return fill(size + 1, count - 1, room, sum - size[0].first);
    const Bytes with = size[0].first + fill(size + 1, count - 1, room - size[0].first, sum - size[0].first);
    if (with == room) return with;
    std::size_t next = 1;
    Bytes rest = sum - size[0].first;
    for (; next < count && size[next].first == size[0].first; ++next) rest -= size[next].first;
    return std::max(with, fill(size + next, count - next, room, rest));
}

}  // namespace

Floor::Floor(const Problem& problem, std::int64_t halo_percent)
    : problem_(problem),
      halo_percent_(halo_percent),
      part_(problem.tensors.size(), 0),
      rows_(problem.tensors.size()),
      least_ahead_(problem.tensors.size(), 0),
      around_(problem.tensors.size()),
      may_(problem.operators.size(), 0),
      local_(problem.tensors.size(), no_id) {
    const bool paper = problem.options.halo == onchip::fusion::Halo::paper;
    for (std::size_t x = 0; x < rows_.size(); ++x) rows_[x] = problem.tensors[x].rows;
    for (Id v = static_cast<Id>(problem.operators.size()); v-- > 0;) {
        const Operator& op = problem.operators[v];
        if (op.form == Form::opaque) continue;
        for (const Window& w : op.inputs)
            for (const Id y : op.outputs) {
                if (whole(w, y)) continue;
                rows_[w.tensor] = std::min(rows_[w.tensor], w.stride * rows_[y]);
                const bool sure = paper || problem.tensors[y].surely >= 1;
                least_ahead_[w.tensor] = std::min(
                    least_ahead_[w.tensor], sure ? needs(w, least_ahead_[y]) : least_need(w, least_ahead_[y], false));
            }
    }
    scale();
}

// Whether an output's every row needs all rows of the operand.
bool Floor::whole(const Window& w, Id made) const {
    return w.whole || (problem_.tensors[made].rows == 1 && problem_.tensors[w.tensor].rows > 1);
}

// f of an operand that an output with this f asks for.
std::int64_t Floor::needs(const Window& w, std::int64_t ahead) const {
    return w.stride * (ahead - 1) - (problem_.options.halo == onchip::fusion::Halo::paper ? 0 : w.padding) + w.span;
}

// Scales relative to one another, along all windows of the network that move.
void Floor::scale() {
    std::vector<Id> waiting;
    const auto relate = [&](Id x, double scale) {
        if (problem_.tensors[x].rows <= 1) return;
        if (part_[x] == 0) {
            part_[x] = scale;
            waiting.push_back(x);
        } else if (std::abs(part_[x] - scale) > slack * scale) {
            sound_ = false;
        }
    };
    for (Id start = 0; start < part_.size(); ++start) {
        if (part_[start] != 0) continue;
        relate(start, 1);
        if (part_[start] == 0) part_[start] = 1;  // a map of one row: its scale does not matter
        while (!waiting.empty()) {
            const Id x = waiting.back();
            waiting.pop_back();
            const auto along = [&](const Operator& op) {
                if (op.form == Form::opaque) return;
                for (const Window& w : op.inputs)
                    for (const Id y : op.outputs) {
                        if (whole(w, y) || problem_.tensors[y].rows <= 1) continue;
                        if (y == x) relate(w.tensor, part_[x] * static_cast<double>(w.stride));
                        if (w.tensor == x) relate(y, part_[x] / static_cast<double>(w.stride));
                    }
            };
            if (problem_.tensors[x].producer != no_id) along(problem_.operators[problem_.tensors[x].producer]);
            for (const Id v : problem_.tensors[x].readers) along(problem_.operators[v]);
        }
    }
}

void Floor::among(std::span<const Id> operators) {
    std::fill(may_.begin(), may_.end(), 0);
    for (const Id v : operators) may_[v] = 1;
    tangled_ = false;
    ratio_ = 0;
    most_bands_ = 1;
    for (std::size_t i = operators.size(); i-- > 0;) {
        const Operator& op = problem_.operators[operators[i]];
        for (const Id y : op.outputs) {
            around(y);
            ratio_ = std::max(ratio_, static_cast<double>(problem_.tensors[y].rows) / part_[y]);
            most_bands_ = std::max(most_bands_, problem_.tensors[y].rows);
        }
        for (const Window& w : op.inputs) {
            for (const Id y : op.outputs) tangled_ = tangled_ || whole(w, y);
            if (problem_.tensors[w.tensor].producer == no_id || !may_[problem_.tensors[w.tensor].producer])
                around(w.tensor);
        }
    }
}

// How far ahead of its band a tensor may be made, and how many rows of it bands may share.
void Floor::around(Id x) {
    const Tensor& tensor = problem_.tensors[x];
    const bool paper = problem_.options.halo == onchip::fusion::Halo::paper;
    std::int64_t ahead = 0, back = least_ahead_[x], overlap = 0, readers = 0;
    for (const Id v : tensor.readers) {
        if (!may_[v]) continue;
        const Operator& op = problem_.operators[v];
        for (const Window& w : op.inputs) {
            if (w.tensor != x) continue;
            for (const Id y : op.outputs) {
                if (whole(w, y) || around_[y].ahead >= all_rows) {
                    ahead = overlap = all_rows;
                    continue;
                }
                const bool summed = op.form == Form::reduce && problem_.options.halo == onchip::fusion::Halo::lines;
                ahead = std::max(ahead, needs(w, around_[y].ahead));
                back = std::min(back, w.stride * (summed ? least_ahead_[y] : around_[y].back) - w.padding);
                overlap = std::max(overlap, w.span - w.stride + (summed ? 0 : w.stride * around_[y].overlap));
                ++readers;
            }
        }
    }
    if (ahead > tensor.rows) ahead = all_rows;
    if (readers > 1) overlap = std::max(overlap, ahead >= all_rows ? all_rows : ahead - back);
    around_[x] = {ahead, back, std::min(overlap, tensor.rows), 0};
    const bool never = problem_.options.isoa == Isoa::off || tensor.channels <= problem_.channel_tile;
    if (paper || (never && problem_.options.halo == onchip::fusion::Halo::lines)) return;
    around_[x].again = problem_.images * tensor.channels * tensor.row_bytes * around_[x].overlap;
}

std::uint32_t Floor::local(Id tensor) {
    if (local_[tensor] == no_id) {
        local_[tensor] = static_cast<std::uint32_t>(maps_.size());
        maps_.push_back({});
        maps_.back().id = tensor;
        maps_.back().ahead = -all_rows;
    }
    return local_[tensor];
}

bool Floor::load(std::span<const Id> members) {
    for (const Map& m : maps_) local_[m.id] = no_id;
    maps_.clear(), excluded_.clear(), weight_.clear(), halos_.clear();
    all_weights_ = crossing_ = 0;
    const bool given = problem_.options.isoa == Isoa::paper;  // S of an independent set, whatever else reads it
    const bool off = problem_.options.isoa == Isoa::off, paper = problem_.options.halo == onchip::fusion::Halo::paper;
    for (const Id v : members) {
        const Operator& op = problem_.operators[v];
        if (op.form == Form::opaque) return false;
        for (const Window& w : op.inputs) {
            Map& m = maps_[local(w.tensor)];
            ++m.readers;
            m.held = m.held || (!given && (op.form == Form::rowwise || w.broadcast));
        }
        for (const Id y : op.outputs) maps_[local(y)].made = true;
        if (op.weight > 0) weight_.emplace_back(op.weight, problem_.options.weight_tile ? op.tile : 0);
        all_weights_ += op.weight;
    }
    std::sort(weight_.begin(), weight_.end(), std::greater<>());
    double least = 0;
    rows_at_most_ = 1;
    for (Map& m : maps_) {
        const Tensor& x = problem_.tensors[m.id];
        const bool outside = x.readers.size() > m.readers;
        if (!m.made || x.output || outside || x.readers.empty()) crossing_ += x.bytes;
        if (m.made && (x.output || x.readers.empty())) m.ahead = 0;
        else if (m.made && outside) m.ahead = least_ahead_[m.id];
        m.held = m.held || off || x.channels <= problem_.channel_tile;
        if (x.rows > 1) least = least == 0 ? part_[m.id] : std::min(least, part_[m.id]);
        rows_at_most_ = std::max(rows_at_most_, rows_[m.id]);
    }
    for (Map& m : maps_)
        if (!tangled_ && problem_.tensors[m.id].rows > 1)
            m.scale = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::floor(part_[m.id] / least + slack)));
    for (Map& m : maps_) {
        const Tensor& x = problem_.tensors[m.id];
        const std::int64_t few = m.held ? x.channels : problem_.channel_tile;
        m.few = x.row_bytes * few, m.others = x.row_bytes * (x.channels - few);
        m.all = x.needed, m.rows = static_cast<std::uint32_t>(rows_[m.id]);
    }
    for (std::size_t i = members.size(); i-- > 0;) {
        const Operator& op = problem_.operators[members[i]];
        for (const Window& w : op.inputs) {
            Map& m = maps_[local_[w.tensor]];
            for (const Id y : op.outputs) {
                const Map& made = maps_[local_[y]];
                if (whole(w, y) || made.ahead >= all_rows) {
                    m.ahead = all_rows;
                    continue;
                }
                const bool sure = paper || problem_.tensors[y].surely >= 1;
                m.ahead = std::max(m.ahead, sure ? needs(w, made.ahead) : least_need(w, made.ahead, false));
                if (!paper && !problem_.padded) {
                    const Shared one = Shared::of(w, problem_.tensors[w.tensor].rows, problem_.tensors[y].needed);
                    if (one.apart > m.shared.apart) m.shared = one;
                }
                if (op.form == Form::reduce || given)
                    if (!m.held && !made.held) excluded_.emplace_back(local_[w.tensor], local_[y]);
            }
        }
    }
    extra_.resize(maps_.size());
    return true;
}

// Rows that bands of `made` re-read of the operand of `window`: full overlaps between them, at least.
std::int64_t Floor::shared_rows(const Window& w, Id made, std::int64_t bands) const {
    const Tensor& x = problem_.tensors[w.tensor];
    const std::int64_t overlap = w.span - w.stride, rows = problem_.tensors[made].needed;
    const std::int64_t ahead = around_[made].ahead;
    if (overlap <= 0 || bands < 2 || ahead >= rows) return 0;
    const double bound = ratio_ * part_[made] / static_cast<double>(bands - 1);
    const std::int64_t band = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(bound + slack)) - 1);
    std::int64_t full = up(rows - ahead, band) - 1;
    // Boundaries h with h * stride < padding, or (h - 1) * stride - padding + span > rows of x, overlap less.
    const std::int64_t first = up(w.padding, w.stride);
    const std::int64_t last = (x.rows + w.padding - w.span) / w.stride + 1;
    if (first > 1) full -= up(first - 1, band);
    if (last < rows - 1) full -= up(rows - 1 - last, band);
    return std::max<std::int64_t>(0, full) * overlap;
}

// Bytes of buffers with so many bands or fewer when every map streams that may, and what holding each adds.
Bytes Floor::buffers(std::int64_t bands) {
    Bytes sum = 0;
    const auto parts = static_cast<std::uint32_t>(bands);
    for (std::size_t i = 0; i < maps_.size(); ++i) {
        const Map& m = maps_[i];
        const std::uint32_t share = (m.rows + parts - 1) / parts;  // short divisions: this is the inner loop
        const std::int64_t own = std::max<std::int64_t>(m.scale, share);
        const std::int64_t more = m.ahead >= all_rows || bands == 1 ? m.ahead : m.shared.beyond(own, m.ahead);
        const std::int64_t rows = more >= all_rows ? m.all : std::clamp<std::int64_t>(own + more, 1, m.all);
        sum += m.few * rows;
        extra_[i] = m.others * rows;
    }
    return sum;
}

// What has to be held of them: the halos whose bits are in `held`, and one of every pair; as much as can be packed
// on the pairs without exceeding a map's extra bytes.
Bytes Floor::holding(std::uint32_t held) {
    Bytes sum = 0;
    left_ = extra_;
    for (std::size_t h = 0; h < halos_.size(); ++h)
        if (held >> h & 1) sum += left_[halos_[h].map], left_[halos_[h].map] = 0;
    for (const auto& [a, b] : excluded_) {
        const Bytes both = std::min(left_[a], left_[b]);
        sum += both, left_[a] -= both, left_[b] -= both;
    }
    return sum;
}

Bytes Floor::weights(Bytes room, std::int64_t fetches) const {
    if (fetches == 1) return all_weights_;
    std::size_t large = 0;
    Bytes tile = 0;
    for (; large < weight_.size() && weight_[large].first > room; ++large) tile = std::max(tile, weight_[large].second);
    if (tile > room) return unlimited;
    room -= tile;
    Bytes rest = 0;
    for (std::size_t i = large; i < weight_.size(); ++i) rest += weight_[i].first;
    const std::size_t count = weight_.size() - large;
    const Bytes resident = count > 24 ? std::min(rest, room) : fill(weight_.data() + large, count, room, rest);
    return all_weights_ + (fetches - 1) * (all_weights_ - resident);
}

bool Floor::fits(std::span<const Id> members, Bytes budget) {
    if (!load(members)) return false;
    halos_.clear();
    return buffers(std::max(most_bands_, rows_at_most_)) + holding(0) <= budget;
}

void Floor::levels(std::span<const Id> members, Bytes budget, std::vector<Level>& result) {
    result.clear();
    if (!load(members)) return;
    const std::int64_t last = std::max(most_bands_, rows_at_most_);
    const Bytes thinnest = buffers(last) + holding(0);
    if (thinnest > budget) return;
    const Bytes refilled = std::max<Bytes>(0, all_weights_ - (budget - thinnest));
    Bytes halo_caps = 0, least = unlimited;
    for (const Map& m : maps_) halo_caps += halo_percent_ < 0 ? unlimited / 1000 : cap(m.id);
    const BatchWeights mode = problem_.options.batch_weights;
    outer_.clear();
    if (problem_.options.halo == onchip::fusion::Halo::lines && !tangled_)
        for (const Id v : members)
            for (const Window& w : problem_.operators[v].inputs) {
                const Map& m = maps_[local_[w.tensor]];
                if (m.made || m.held || w.span <= w.stride) continue;
                for (const Id y : problem_.operators[v].outputs)
                    if (!whole(w, y)) outer_.push_back({local_[w.tensor], &w, y});
            }
    for (std::int64_t bands = 1; bands <= last;) {
        const std::int64_t rows = up(rows_at_most_, bands);
        const std::int64_t until = bands == 1 ? 1 : rows <= 1 ? last : std::min(last, (rows_at_most_ - 1) / (rows - 1));
        // With so many bands the weights alone cost more than fewer bands with all of the halo.
        const std::int64_t rounds = mode == BatchWeights::per_image && bands > 1 ? problem_.images * bands : bands;
        if (least < unlimited && all_weights_ + (rounds - 1) * refilled >= least + halo_caps) return;
        halos_.clear();
        for (std::size_t i = 0; bands > 1 && i < outer_.size(); ++i) {
            const auto& [map, window, made] = outer_[i];
            const Tensor& x = problem_.tensors[maps_[map].id];
            Bytes again = problem_.images * x.channels * x.row_bytes * shared_rows(*window, made, bands);
            if (halo_percent_ >= 0) again = std::min(again, cap(maps_[map].id));
            if (again <= 0) continue;
            const auto same = std::find_if(halos_.begin(), halos_.end(), [&](const Again& h) { return h.map == map; });
            if (same != halos_.end())
                same->bytes = std::max(same->bytes, again);
            else if (halos_.size() < most_halos)
                halos_.push_back({map, again});
        }
        Bytes best = unlimited;
        const Bytes streamed = buffers(until);
        for (std::uint32_t held = 0; held < 1u << halos_.size(); ++held) {
            Bytes again = 0;
            for (std::size_t h = 0; h < halos_.size(); ++h)
                if (!(held >> h & 1)) again += halos_[h].bytes;
            if (all_weights_ + again >= best) continue;
            const Bytes one = streamed + holding(held);
            const bool several = mode == BatchWeights::held || (mode == BatchWeights::per_image && bands == 1);
            for (std::int64_t images = 1; images <= (several ? problem_.images : 1); ++images) {
                if (one * images > budget) break;
                const std::int64_t times = (problem_.images + images - 1) / images;
                const std::int64_t fetches = mode == BatchWeights::shared ? bands : times * bands;
                best = std::min(best, again + weights(budget - one * images, fetches));
            }
        }
        if (best < unlimited) result.push_back({until, best});
        least = std::min(least, best);
        if (best == all_weights_) {
            if (until < last) result.push_back({last, best});  // more bands take less room still
            return;
        }
        bands = until + 1;
    }
}

}  // namespace onchip::fusion
