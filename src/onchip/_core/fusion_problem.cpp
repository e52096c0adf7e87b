#include "fusion_problem.h"

#include <algorithm>
#include <stdexcept>

namespace onchip::fusion {

namespace {

void sort_unique(std::vector<Id>& ids) {
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

}  // namespace

void Problem::complete() {
    const auto count = static_cast<Id>(operators.size());
    require(images >= 1 && channel_tile >= 1 && least_rows >= 1 && alignment >= 1, "fusion: sizes below 1");
    require(maps_budget >= 0 && weights_budget >= 0, "fusion: negative budget");
    for (Tensor& t : tensors) {
        require(t.bytes >= 0 && t.rows >= 0 && t.channels >= 0 && t.columns >= 0 && t.element >= 0, "fusion: negative size");
        t.row_bytes = t.columns * t.element;
        t.producer = no_id;
        t.readers.clear();
    }
    for (Id v = 0; v < count; ++v) {
        const Operator& op = operators[v];
        require(op.weight >= 0 && op.tile >= 0 && op.workspace >= 0, "fusion: negative weights");
        for (const Window& w : op.inputs) {
            require(w.tensor < tensors.size(), "fusion: unknown tensor");
            require(w.stride >= 1 && w.span >= 1, "fusion: window");  // a negative padding cuts rows off
            tensors[w.tensor].readers.push_back(v);
        }
        for (Id t : op.outputs) {
            require(t < tensors.size() && tensors[t].producer == no_id, "fusion: a tensor has one producer");
            tensors[t].producer = v;
        }
        if (op.form == Form::opaque) continue;
        const auto is_map = [&](Id t) { return tensors[t].rows > 0 && tensors[t].channels > 0; };
        require(!op.inputs.empty() && !op.outputs.empty(), "fusion: an operator without operands");
        for (const Window& w : op.inputs) require(is_map(w.tensor), "fusion: an operand without a map");
        for (Id t : op.outputs) require(is_map(t), "fusion: an output without a map");
        if (!op.grid) continue;
        const Grid& g = *op.grid;
        require(g.groups >= 1 && g.input_channels >= 1 && g.output_channels >= 1, "fusion: channels of a grid");
        require(std::min({g.stride[0], g.stride[1], g.span[0], g.span[1]}) >= 1 && std::min(g.kernel[0], g.kernel[1]) >= 0,
                "fusion: a grid");
        require(tensors[op.outputs.front()].channels % g.groups == 0, "fusion: groups");
    }
    before.assign(count, {});
    after.assign(count, {});
    beside.assign(count, {});
    for (Id v = 0; v < count; ++v)
        for (const Window& w : operators[v].inputs) {
            const Id p = tensors[w.tensor].producer;
            if (p != no_id) {
                require(p < v, "fusion: operators are not in a topological order");
                before[v].push_back(p);
                after[p].push_back(v);
            }
            for (Id other : tensors[w.tensor].readers)
                if (other != v) beside[v].push_back(other);
        }
    for (Tensor& t : tensors) t.needed = t.rows, t.least_ahead = t.least_more = 0, t.surely = 1;
    padded = false;
    for (Id v = count; v-- > 0;)
        for (const Window& w : operators[v].inputs) {
            Tensor& x = tensors[w.tensor];
            // The last reader in the order comes first here, so it starts the minimum over all of them.
            std::int64_t rows = x.readers.back() == v ? x.rows : x.needed;
            for (const Id y : operators[v].outputs)
                if (operators[v].form != Form::opaque && !w.whole)
                    rows = std::min(rows, std::clamp<std::int64_t>(
                                              (tensors[y].needed - 1) * w.stride - w.padding + w.span, 0, x.rows));
            x.needed = rows;
            if (operators[v].form == Form::opaque || w.whole) continue;
            for (const Id y : operators[v].outputs) {
                const Tensor& made = tensors[y];
                const std::int64_t first = w.stride * (made.surely - 1) - w.padding + w.span;
                x.surely = std::min(x.surely, made.surely < 1 ? 0 : std::max<std::int64_t>(0, first));
                padded = padded || x.surely < 1;
                x.least_ahead = std::min(x.least_ahead, least_need(w, made.least_ahead, made.surely >= 1));
                x.least_more = std::min(x.least_more, w.stride * (made.least_more - 1) + w.span);
            }
        }
    for (Operator& op : operators) op.skipped = skipped(op);
    const std::size_t n = words();
    above.assign(count * n, 0);
    below.assign(count * n, 0);
    for (Id v = 0; v < count; ++v) {
        sort_unique(before[v]), sort_unique(after[v]), sort_unique(beside[v]);
        Word* const row = above.data() + v * n;
        for (Id p : before[v]) {
            for (std::size_t w = 0; w < n; ++w) row[w] |= ancestors(p)[w];
            add(row, p);
        }
    }
    for (Id v = count; v-- > 0;) {
        Word* const row = below.data() + v * n;
        for (Id s : after[v]) {
            for (std::size_t w = 0; w < n; ++w) row[w] |= descendants(s)[w];
            add(row, s);
        }
    }
}

// Pixels that no window reads, and what boxes need less than everything.
Bytes Problem::skipped(const Operator& op) const {
    Bytes most = 0;
    for (const Boxed& b : op.boxes) most = std::max(most, op.weight - b.again - b.weight);
    if (!op.grid) return most;
    const Tensor &x = tensors[op.inputs.front().tensor], &y = tensors[op.outputs.front()];
    const std::int64_t sides[2][2] = {{x.rows, y.rows}, {x.columns, y.columns}};
    Bytes read = images * x.channels * x.element;
    for (std::size_t a = 0; a < 2; ++a) {
        const auto& [size, outputs] = sides[a];
        const std::int64_t stride = op.grid->stride[a], span = op.grid->span[a], pad = op.grid->padding[a];
        std::int64_t seen = 0, end = 0;
        for (std::int64_t o = 0; o < outputs; ++o) {
            const std::int64_t first = std::clamp<std::int64_t>(o * stride - pad, end, size);
            const std::int64_t last = std::clamp<std::int64_t>(o * stride - pad + span, first, size);
            seen += last - first, end = last;
        }
        read *= seen;
    }
    return std::max<Bytes>(most, x.bytes - read);
}

}  // namespace onchip::fusion
