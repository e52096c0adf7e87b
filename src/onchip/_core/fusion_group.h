// A group as its own small graph, and what of it does not depend on the height of a band: scales, and how many
// rows ahead of its band a tensor is made (f).
#pragma once
#include <algorithm>
#include <limits>
#include <span>

#include "fusion_problem.h"

namespace onchip::fusion {

inline constexpr std::int64_t all_rows = std::numeric_limits<std::int64_t>::max() / 4;

class Group {
  public:
    struct Edge {
        std::uint32_t tensor;  // of this group
        Window window;
    };
    struct Op {
        Id id;
        Form form;
        std::uint32_t in, inputs, out, outputs;  // ranges of edges and of made tensors
    };
    struct Map {
        Id id;
        bool external, escaping;
        std::int64_t channels, few, rows;  // few: min(T_c, C)
        Bytes row_bytes;
        std::int64_t scale, ahead;  // A, f (all_rows: the whole map at once)
        std::uint32_t reader, readers;  // range of `read`
        std::uint32_t maker = no_id;    // its operator in this group
        // v: what is made by the end of a band is scale * t * (j + 1) + `surely` at least, until a reader has all it
        // needs; w: the same of every reader. Both are f unless a band can begin before anything is needed.
        std::int64_t surely = 0, begins = 0;
        std::int64_t last = 0;  // rows that are ever needed
        bool whole = false;  // an operand that lies outside the scratch, all of it
    };
    struct Read {
        std::uint32_t op, edge;
    };

    explicit Group(const Problem& problem)
        : problem_(problem), local_(problem.tensors.size(), no_id), member_of_(problem.operators.size(), 0) {}

    // False when the group cannot run in bands: an opaque operator, or strides that do not fit together.
    // `members` ascend. Tensors stand before those made from them.
    bool load(std::span<const Id> members);
    // After load(): how far ahead every map is made, and how many bands there are.
    void plan_bands();

    const Problem& problem() const { return problem_; }
    std::size_t size() const { return maps.size(); }
    // Bands of an image when one has t rows (k), and the longest band worth having.
    std::int64_t bands(std::int64_t t) const {
        std::int64_t k = 1;
        for (const Counted& y : counted_) k = std::max(k, (y.rows + y.scale * t - 1) / (y.scale * t));
        return k;
    }
    std::int64_t longest() const { return longest_; }
    // Whether the closed form of rows is exact in every band that no border of a map cuts.
    bool plain() const { return plain_; }
    // Whether no row of a map begins its window beyond its operand.
    bool tidy() const { return tidy_; }
    // All of it is made in the first band.
    static bool at_once(const Map& m) { return m.rows == 1 || m.ahead >= all_rows; }
    // Rows of `x` that the first `rows` of what is made through `w` need.
    static std::int64_t need(const Window& w, std::int64_t rows, const Map& x) {
        if (rows <= 0) return 0;
        return w.whole ? x.rows : std::clamp<std::int64_t>((rows - 1) * w.stride - w.padding + w.span, 0, x.rows);
    }

    std::vector<Op> ops;
    std::vector<Edge> edges;  // operands, operator by operator
    std::vector<Map> maps;    // external ones first, then as made
    std::vector<Read> read;   // by map
    Bytes crossing = 0;       // external inputs and escaping outputs of the whole batch, each once

  private:
    struct Counted {
        std::int64_t rows, scale;
    };
    struct Ratio {
        std::int64_t up = 0, down = 1;
    };
    bool scales();
    void rows_ahead();
    void rows_in_all();

    const Problem& problem_;
    std::vector<std::uint32_t> local_;  // by tensor of the problem: its place in `maps`
    std::vector<std::uint64_t> member_of_;  // by operator of the problem: the last group it was in
    std::uint64_t loads_ = 0;
    std::vector<Counted> counted_;
    std::int64_t longest_ = 1;
    bool plain_ = true, tidy_ = true;
    std::vector<std::int64_t> first_;
    std::vector<Ratio> ratio_;
    std::vector<std::uint32_t> waiting_, part_;
};

}  // namespace onchip::fusion
