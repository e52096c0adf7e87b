#include "fusion_blocks.h"

#include <algorithm>
#include <tuple>

namespace onchip::fusion {

namespace {

std::int64_t parts(std::int64_t whole, std::int64_t part) { return (whole + part - 1) / part; }

// For every number of parts the smallest size of a part, largest first; and `least`.
std::vector<std::int64_t> sizes(std::int64_t whole, std::int64_t least) {
    std::vector<std::int64_t> result;
    for (std::int64_t size = whole; size >= 1; --size) {
        const std::int64_t count = parts(whole, size);
        if (parts(whole, count) == size || size == least) result.push_back(size);
    }
    return result;
}

// Bytes of the weights of some output channels, each with some of the input channels it sums over.
Bytes part_of_weights(const Operator& op, std::int64_t outputs, std::int64_t inputs) {
    if (op.weight == 0) return 0;
    const Grid& g = *op.grid;
    outputs = std::min(outputs, g.output_channels), inputs = std::min(inputs, g.input_channels);
    const std::int64_t taps = g.kernel[0] * g.kernel[1], matrix = taps * g.input_channels * g.output_channels;
    const Bytes width = matrix == 0 ? 0 : std::max<Bytes>(1, op.weight / matrix), rest = std::max<Bytes>(0, op.weight - width * matrix);
    return std::min(op.weight, width * taps * inputs * outputs + parts(rest * outputs, g.output_channels));
}

}  // namespace

// Of tiles that are as many those that none smaller beats in the inputs of one, or of all. `least` stays.
void BlockSearch::keep_best(Sides& sides, std::int64_t least) {
    Sides kept;  // sizes ascend while they are looked at
    std::size_t first = 0;
    for (std::size_t i = sides.size(); i-- > 0;) {
        const Side& s = sides[i];
        if (!kept.empty() && kept.back().count != s.count) first = kept.size();
        const bool beaten = std::any_of(kept.begin() + static_cast<std::ptrdiff_t>(first), kept.end(),
                                        [&](const Side& k) { return k.most <= s.most && k.total <= s.total; });
        if (!beaten || s.size == least) kept.push_back(s);
    }
    sides.assign(kept.rbegin(), kept.rend());
}

const BlockSearch::Sides& BlockSearch::sides(const Axis& axis) {
    const auto [at, fresh] = sides_.try_emplace(axis);
    if (!fresh) return at->second;
    const auto row = [&](std::int64_t r) { return std::clamp<std::int64_t>(r, 0, axis.size); };
    // Windows that lie side by side need the same wherever they are cut: then the smallest of every number will do.
    const bool even = axis.span <= axis.stride && axis.padding == 0;
    std::vector<std::int64_t> all;
    if (even)
        all = sizes(axis.outputs, axis.least);
    else
        for (std::int64_t size = axis.outputs; size >= 1; --size) all.push_back(size);
    for (const std::int64_t size : all) {
        Side side{size, parts(axis.outputs, size), 0, 0};
        for (std::int64_t first = 0; first < axis.outputs; first += size) {
            const std::int64_t last = std::min(first + size, axis.outputs) - 1;
            const std::int64_t inputs = std::max<std::int64_t>(
                0, row(last * axis.stride - axis.padding + axis.span) - row(first * axis.stride - axis.padding));
            side.most = std::max(side.most, inputs), side.total += inputs;
        }
        at->second.push_back(side);
    }
    keep_best(at->second, axis.least);
    return at->second;
}

// Blocks of output channels: the most input channels of one, and those of all.
BlockSearch::Sides BlockSearch::channels(const Grid& grid, std::int64_t read, std::int64_t made,
                                         std::int64_t least) {
    const std::int64_t within = made / grid.groups;  // output channels of a group
    std::vector<std::int64_t> all;
    if (grid.groups == 1 || within == 1)
        all = sizes(made, least);
    else
        for (std::int64_t size = made; size >= 1; --size) all.push_back(size);
    Sides result;
    for (const std::int64_t size : all) {
        Side side{size, parts(made, size), 0, 0};
        if (grid.input_channels == 1 && within == 1) {  // its own channels only
            side.most = size, side.total = read;
        } else if (grid.groups == 1) {
            side.most = grid.input_channels, side.total = side.count * grid.input_channels;
        } else {
            for (std::int64_t first = 0; first < made; first += size) {
                const std::int64_t last = std::min(first + size, made) - 1;
                const std::int64_t inputs = (last / within - first / within + 1) * grid.input_channels;
                side.most = std::max(side.most, inputs), side.total += inputs;
            }
        }
        result.push_back(side);
    }
    if (grid.groups > 1 && within > 1) keep_best(result, least);
    return result;
}

std::optional<Blocked> BlockSearch::search(const Operator& op, Bytes budget, bool whole_tiles,
                                           std::optional<Blocked> best) {
    const Grid& grid = *op.grid;
    const Tensor &read = problem_.tensors[op.inputs.front().tensor], &made = problem_.tensors[op.outputs.front()];
    const Sides& rows = sides({read.rows, made.rows, grid.stride[0], grid.padding[0], grid.span[0], problem_.least_rows});
    const Sides& columns = sides({read.columns, made.columns, grid.stride[1], grid.padding[1], grid.span[1], 1});
    Sides deep = channels(grid, read.channels, made.channels, problem_.channel_tile);
    if (whole_tiles)
        std::erase_if(deep, [&](const Side& s) { return s.size < std::min(problem_.channel_tile, made.channels); });
    // Less deep blocks take less, unless they reach into one more group, and so read more channels at a time.
    const bool sorted =
        std::is_sorted(deep.begin(), deep.end(), [](const Side& a, const Side& b) { return a.total < b.total; }) &&
        std::is_sorted(deep.begin(), deep.end(), [](const Side& a, const Side& b) { return a.most > b.most; });
    std::int64_t fewest = deep.front().total;
    for (const Side& s : deep) fewest = std::min(fewest, s.total);
    std::tuple<Bytes, std::int64_t, std::int64_t, Bytes> least;
    if (best) least = {best->input + best->weight, best->tiles, -best->channels, best->scratch};
    // The most input channels at a time with which a block fits, and its scratch.
    const auto fits = [&](const Side& high, const Side& wide, const Side& block, bool keep) {
        const Bytes output = problem_.round_up(block.size * high.size * wide.size * made.element);
        for (std::int64_t slice = std::min(problem_.channel_tile, block.most); slice > 0;
             slice = whole_tiles ? 0 : slice / 2) {
            const Bytes maps = output + problem_.round_up(slice * high.most * wide.most * read.element);
            const Bytes weights =
                problem_.round_up(part_of_weights(op, block.size, keep ? grid.input_channels : slice));
            if (maps <= problem_.maps_budget && weights <= problem_.weights_budget && maps + weights <= budget)
                return std::pair{slice, maps + weights};
        }
        return std::pair{std::int64_t{0}, Bytes{0}};
    };
    const bool shared = problem_.options.batch_weights == BatchWeights::shared;
    for (const bool keep : {true, false}) {
        if (keep && op.weight == 0) continue;
        for (const Side& high : rows) {
            if (whole_tiles && high.size < std::min(problem_.least_rows, made.rows)) break;  // sizes fall
            for (const Side& wide : columns) {
                const std::int64_t tiles = problem_.images * high.count * wide.count;
                const Bytes weight = keep ? op.weight : op.weight * (shared ? high.count * wide.count : tiles);
                const Bytes area = problem_.images * high.total * wide.total * read.element;
                const auto offer = [&](const Side& block) {
                    const Bytes moved = area * block.total + weight;
                    if (best && std::tuple{moved, tiles} > std::tuple{std::get<0>(least), std::get<1>(least)})
                        return false;
                    const auto [slice, scratch] = fits(high, wide, block, keep);
                    if (slice == 0) return false;
                    const std::tuple order{moved, tiles, -slice, scratch};
                    if (best && order >= least) return true;
                    least = order;
                    best = Blocked{high.size, wide.size, block.size, slice, tiles, keep, scratch, area * block.total,
                                   weight};
                    return true;
                };
                if (best && area * fewest + weight > std::get<0>(least)) continue;
                if (sorted && whole_tiles) {
                    // What a block takes falls with its size, what it moves grows: the first that fits is the best.
                    const auto first = std::partition_point(deep.begin(), deep.end(), [&](const Side& block) {
                        return fits(high, wide, block, keep).first == 0;
                    });
                    if (first != deep.end()) offer(*first);
                } else {
                    for (const Side& block : deep) {
                        if (sorted && best && area * block.total + weight > std::get<0>(least)) break;
                        if (offer(block) && sorted) break;
                    }
                }
            }
        }
    }
    return best;
}

const std::optional<Blocked>& BlockSearch::best(Id id, Bytes budget) {
    static const std::optional<Blocked> nothing;
    const Operator& op = problem_.operators[id];
    if (!op.boxes.empty()) {
        const auto above = std::upper_bound(op.boxes.begin(), op.boxes.end(), budget,
                                            [](Bytes room, const Boxed& b) { return room < b.scratch; });
        if (above == op.boxes.begin()) return nothing;
        const Boxed& b = above[-1];
        boxed_.emplace();
        boxed_->tiles = b.tiles, boxed_->scratch = b.scratch, boxed_->weight = b.weight;
        boxed_->input = b.again + problem_.tensors[op.inputs.front().tensor].bytes;
        boxed_->box = above - op.boxes.begin() - 1;
        return boxed_;
    }
    if (!op.grid) return nothing;
    const Grid& g = *op.grid;
    const Tensor &read = problem_.tensors[op.inputs.front().tensor], &made = problem_.tensors[op.outputs.front()];
    std::vector<std::int64_t> key{budget,    read.channels, read.rows, read.columns, read.element,     made.channels,
                                  made.rows, made.columns,  made.element, op.weight, g.input_channels, g.groups};
    for (std::size_t i = 0; i < 2; ++i)
        key.insert(key.end(), {g.kernel[i], g.stride[i], g.padding[i], g.span[i]});
    const auto [at, fresh] = known_.try_emplace(std::move(key));
    if (fresh) {
        // Of whole tiles of the array first: they are few, and what they reach cuts the search of all others.
        at->second = search(op, budget, false, search(op, budget, true, std::nullopt));
    }
    return at->second;
}

}  // namespace onchip::fusion
