// What the group fuser is asked: maps in bands of rows, operators with windows onto them, and a budget.
// docs/fusion-model.md uses the same words.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "bits.h"

namespace onchip::fusion {

using Bytes = std::int64_t;
using Id = std::uint32_t;

inline constexpr Id no_id = ~Id{0};
inline constexpr Bytes unlimited = std::numeric_limits<Bytes>::max() / 4;

// How an output channel depends on input channels. Elementwise and concat are channelwise with duties of their own.
enum class Form : std::uint8_t { opaque, reduce, channelwise, elementwise, concat, rowwise };

enum class BatchWeights : std::uint8_t { per_image, held, shared };
// sums: whatever no sum forbids, whether or not passes could follow each other.
enum class Isoa : std::uint8_t { channelwise, paper, off, sums };
enum class Halo : std::uint8_t { lines, paper, recompute };
enum class Residency : std::uint8_t { partial, all, none };

struct Options {
    BatchWeights batch_weights = BatchWeights::per_image;
    Isoa isoa = Isoa::channelwise;
    Halo halo = Halo::lines;
    Residency residency = Residency::partial;
    bool weight_tile = true;
    bool blocks = true;  // an operator alone may run in blocks even where bands fit
};

// Output row r needs rows [r * stride - padding, r * stride - padding + span) of `tensor`, clamped; all of them
// when `whole`. `broadcast`: the operand has fewer elements than the output.
struct Window {
    Id tensor = 0;
    bool whole = false, broadcast = false;
    std::int64_t stride = 1, padding = 0, span = 1;
};

// f of an operand at least, by what it is for what is made through `w`; `sure`: the first band makes some of that.
inline std::int64_t least_need(const Window& w, std::int64_t ahead, bool sure) {
    const std::int64_t need = w.stride * (ahead - 1) - w.padding + w.span;
    return sure ? need : std::min(need, w.stride * ahead);
}

// Both axes and the channels of an operator with one windowed operand: rows first, then columns. Without a kernel
// weights, if there are any, belong to output channels.
struct Grid {
    std::array<std::int64_t, 2> kernel{}, stride{}, padding{}, span{};
    std::int64_t input_channels = 0, output_channels = 0, groups = 1;  // inputs that one output sums over
};

// A map of one image; `row_bytes` are those of one row of one channel, `bytes` the tensor's over the whole batch.
struct Tensor {
    std::int64_t channels = 0, rows = 0, columns = 0, element = 0;
    Bytes bytes = 0;
    bool output = false;  // of the network

    Bytes row_bytes = 0;  // derived
    Id producer = no_id;
    std::vector<Id> readers;
    std::int64_t needed = 0;  // rows that every reader in the network needs at least
    // What f (rows made ahead of the band), and the paper's rows beyond it, are at least in whatever group.
    std::int64_t least_ahead = 0, least_more = 0;
    std::int64_t surely = 1;  // rows after the first band of whatever group, at least (0: perhaps none)
};

// A way to run an operator alone in boxes of its output: what crosses again beside its operands (less than nothing
// where some of them is not read), and its weights.
struct Boxed {
    Bytes scratch, again, weight;
    std::int64_t tiles;
};

// Rows that bands of an operand share where no border of a map cuts them, and up to how many there are so many of
// them at least whatever the height of a band; `rows` are those of the operand, `made` of the output, at least.
struct Shared {
    std::int64_t apart = 0, quarter = 0;
    static Shared of(const Window& w, std::int64_t rows, std::int64_t made) {
        const std::int64_t top = std::min(made, (rows + w.padding - w.span) / w.stride + 1);
        const std::int64_t first = w.padding <= 0 ? 0 : (w.padding + w.stride - 1) / w.stride;
        if (w.span <= w.stride || top < 1 || first > top / 2 || w.stride * top < 2 * w.padding) return {};
        return {w.span - w.stride, w.stride * top / 4};
    }
    // Rows of a buffer beyond the band's `own`, of a map that is made `ahead` of it at least.
    std::int64_t beyond(std::int64_t own, std::int64_t ahead) const {
        return std::max(ahead, std::min(apart, quarter + ahead - own));
    }
};

struct Operator {
    Form form = Form::opaque;
    std::vector<Window> inputs;  // distinct tensors
    std::vector<Id> outputs;
    Bytes weight = 0, tile = 0, workspace = 0;
    std::optional<Grid> grid;
    std::vector<Boxed> boxes;  // of an opaque one: scratch ascends, what they move falls
    std::vector<std::vector<Id>> streams;  // operands that pass through its workspace together; ids ascend
    Bytes skipped = 0;  // derived: what blocks or boxes need not fetch of operands and weights, at most
};

// Operators stand in a topological order. `complete` derives what follows from that.
struct Problem {
    std::vector<Tensor> tensors;
    std::vector<Operator> operators;
    std::int64_t images = 1, channel_tile = 16, least_rows = 1;  // N, T_c, T_h
    Bytes alignment = 1;
    Bytes maps_budget = unlimited, weights_budget = unlimited;  // parts of a split buffer, beside the budget of all
    Options options;

    bool padded = false;  // some output's first row may need nothing of an operand but padding
    std::vector<std::vector<Id>> before, after;  // per operator: distinct producers of its inputs, their inverse
    std::vector<std::vector<Id>> beside;         // per operator: those that read one of its inputs too
    std::vector<Word> above, below;              // per operator a row of `words`: all ancestors, all descendants

    std::size_t words() const { return words_for(operators.size()); }
    const Word* ancestors(Id op) const { return above.data() + op * words(); }
    const Word* descendants(Id op) const { return below.data() + op * words(); }
    Bytes round_up(Bytes size) const { return (size + alignment - 1) / alignment * alignment; }

    Bytes skipped(const Operator& op) const;
    void complete();  // throws std::invalid_argument for what is no problem
};

}  // namespace onchip::fusion
