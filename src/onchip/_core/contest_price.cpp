#include "contest_price.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <utility>

namespace onchip::contest {
namespace {

// How a tile is entered: first of all, along its row, along its column, or from another line.
constexpr int start = 0, along_row = 1, along_column = 2, jump = 3;

Size parts(Size side, Size size) { return (side + size - 1) / size; }
double real(Size n) { return static_cast<double>(n); }

// A slice as one grid of tiles and one k see it: sides of one tile or one step are whole.
struct Piece {
    Size tensor, height, width;
    Axis rows, columns;
    Size reach;
    bool late;
    // In a bound, of a tensor wanted in other shapes: how many of these it may find there on entering a tile, how many
    // within one, and at the end of tiles of a row (column).
    bool among_others = false;
    Size entering = 0, inner = 0;
    Size leaving_rows = 0, leaving_columns = 0;
    bool moves() const { return rows == Axis::depth || columns == Axis::depth; }
    // K of the steps in which it moves.
    Size reduction() const { return rows == Axis::depth ? height : width; }
    double size(double h, double w, double k) const {
        const double tall = rows == Axis::tile ? h : rows == Axis::depth ? k : real(height);
        const double wide = columns == Axis::tile ? w : columns == Axis::depth ? k : real(width);
        return tall * wide;
    }
    bool same_after(int move) const {
        const bool row = rows != Axis::tile || move == along_row, column = columns != Axis::tile || move == along_column;
        return move != start && !moves() && row && column;
    }
};

using Pieces = std::vector<Piece>;

// The steps of one tile with this k.
struct Steps {
    Size k, count;
    Steps(Size depth, Size most) : k(depth), count(most ? parts(most, depth) : 1) {}
    double length(Size reduction, Size at) const { return real(std::clamp<Size>(reduction - at * k, 0, k)); }
    bool has(const Piece& piece, Size at) const {
        return at * k < piece.reach || (piece.late && at == count - 1);
    }
};

// The latency of a tile by how it is entered and by whether it is the edge: [move][edge row][edge column].
using Kinds = std::array<std::array<std::array<double, 2>, 2>, 4>;

struct Grid {
    Size across = 1, down = 1;
    std::array<double, 2> heights{}, widths{};  // of a full tile, of the one at the edge
    Grid(const Subgraph& g, Size w, Size h) : across(parts(g.width, w)), down(parts(g.height, h)) {
        heights = {static_cast<double>(std::min(h, g.height)), static_cast<double>(g.height - (down - 1) * h)};
        widths = {static_cast<double>(std::min(w, g.width)), static_cast<double>(g.width - (across - 1) * w)};
    }
    double tiles() const { return static_cast<double>(across) * static_cast<double>(down); }
    // How many rows (columns) are full, or are at the edge.
    std::array<double, 2> rows() const { return {static_cast<double>(down - 1), 1.0}; }
    std::array<double, 2> columns() const { return {static_cast<double>(across - 1), 1.0}; }
};

class Pricer {
  public:
    Pricer(const Subgraph& g, bool bound, double limit) : g_(g), bound_(bound), best_(limit) {
        most_ = g.depths.empty() ? 0 : g.depths.back().reduction;
        for (std::size_t grid = 0; grid < 4; ++grid)
            for (std::size_t done = 0; done <= g.depths.size(); ++done)
                pieces_[grid].push_back(pieces((grid & 1) != 0, (grid & 2) != 0, done));
        kinds_of_steps_.resize(static_cast<std::size_t>(g.most_depth + 1));
        for (Size k = 1; k <= g.most_depth; ++k)
            kinds_of_steps_[static_cast<std::size_t>(k)] = kinds_of_steps(Steps(k, most_));
        tile_cost_ = g.once + g.late;
        for (const Depth& depth : g.depths) {
            tile_cost_ += real(depth.reduction) * depth.per_element;
            if (!may_stay(depth, g.most_depth)) tile_cost_ += strips(depth, real(depth.reduction));
        }
        count_traffic();
    }

    Tile run(std::optional<double> seconds) {
        const auto began = std::chrono::steady_clock::now();
        for (Size h = std::min(g_.native[1], g_.height); h >= 1; --h) {
            const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - began;
            if (seconds && spent.count() > *seconds) return bound_ ? Tile{.latency = 0} : found_;
            for (Size w = std::min(g_.native[0], g_.width); w >= 1; --w)
                if (!look(w, h)) break;
        }
        if (bound_ && found_.latency < 0) found_.latency = best_;
        return found_;
    }

  private:
    // Whether strips for these MatMuls are the same in the next tile, and the law may have them stay: a bound
    // counts none of them.
    bool may_stay(const Depth& depth, Size k) const { return bound_ && g_.kept && depth.reduction <= k; }

    double strips(const Depth& depth, double length) const {
        double time = length * depth.strips;
        for (const double cost : depth.padded) time += cost * real(parts(static_cast<Size>(length), g_.native[2]));
        return time;
    }

    std::size_t done(Size k) const {
        std::size_t n = 0;
        while (n < g_.depths.size() && g_.depths[n].reduction <= k) ++n;
        return n;
    }

    // Equal slices count once. The MatMuls of the first `done` K have all of it in one step.
    Pieces pieces(bool one_column, bool one_row, std::size_t done) const {
        Pieces found;
        const Size one_step = done ? g_.depths[done - 1].reduction : 0;
        for (const Want& want : g_.wants) {
            const auto seen = [&](Axis axis, Size side, bool one_tile) {
                const bool all = axis == Axis::depth ? side <= one_step : axis == Axis::tile && one_tile;
                return all ? Axis::whole : axis;
            };
            const Piece piece{want.tensor, want.height, want.width, seen(want.rows, want.height, one_row),
                              seen(want.columns, want.width, one_column), want.reach, want.late};
            const auto same = std::find_if(found.begin(), found.end(), [&](const Piece& other) {
                return other.tensor == piece.tensor && other.rows == piece.rows && other.columns == piece.columns;
            });
            if (same == found.end()) {
                found.push_back(piece);
            } else {
                same->reach = std::max(same->reach, piece.reach);
                same->late |= piece.late;
            }
        }
        return bound_ ? one_each(found) : found;
    }

    // One slice of every tensor, so that no schedule loads less. A whole tensor covers its parts. Without one, a slice
    // that moves with k is counted, which is there already only where another shape was the same in the step before.
    // Within a tile that is one step for each other shape that its steps want. On entering a tile the first k was the
    // side of a line's first tile, if these are equal: once for each line. A tile that the last step alone wants counts,
    // too, but where its side is one of the last two k.
    Pieces one_each(const Pieces& all) const {
        Pieces found;
        for (const Piece& piece : all) {
            Pieces same;
            std::copy_if(all.begin(), all.end(), std::back_inserter(same),
                         [&](const Piece& other) { return other.tensor == piece.tensor; });
            if (same.size() == 1) found.push_back(piece);
            if (same.size() == 1 || same.front().rows != piece.rows || same.front().columns != piece.columns) continue;
            const auto covers = [](const Piece& p) { return p.rows == Axis::whole && p.columns == Axis::whole; };
            const auto whole = std::find_if(same.begin(), same.end(), covers);
            if (whole != same.end()) {
                found.push_back(*whole);
                continue;
            }
            const auto counts = [](const Piece& p) { return p.moves() ? p.reach : 0; };
            Piece chosen = *std::max_element(same.begin(), same.end(), [&](const Piece& a, const Piece& b) {
                return counts(a) < counts(b);
            });
            if (!chosen.moves()) continue;
            chosen.among_others = true;
            for (const Piece& other : same) {
                if (other.rows == chosen.rows && other.columns == chosen.columns) continue;
                if (other.reach > 0) ++chosen.inner;
                const bool by_columns = chosen.columns == Axis::depth;
                if ((by_columns ? other.columns : other.rows) == Axis::tile) ++chosen.entering;
            }
            found.push_back(chosen);
            for (Piece other : same) {
                if (other.reach > 0 || other.rows != Axis::tile || other.columns != Axis::tile) continue;
                other.among_others = true;
                for (const Piece& mover : same) {
                    if (mover.columns == Axis::depth) ++other.leaving_rows;
                    if (mover.rows == Axis::depth) ++other.leaving_columns;
                }
                found.push_back(other);
            }
        }
        return found;
    }

    const Pieces& of(const Grid& grid, Size k) const {
        return pieces_[(grid.across == 1 ? 1U : 0U) | (grid.down == 1 ? 2U : 0U)][done(k)];
    }

    double stores(double h, double w) const { return real(g_.stored) * h * w; }

    bool fits(const Grid& grid, Size k) const {
        const double h = grid.heights[grid.down > 1 ? 0 : 1], w = grid.widths[grid.across > 1 ? 0 : 1];
        const Pieces& all = of(grid, k);
        const Steps steps(k, most_);
        const double rest = real(g_.room) - real(g_.held) * h * w;
        return each(steps, [&](Size at, Size) {
            double room = 0;
            for (const Piece& piece : all)
                if (steps.has(piece, at)) room += piece.size(h, w, steps.length(piece.reduction(), at));
            return room <= rest;
        });
    }

    // Calls with every kind of step and how often it comes, until one call says no.
    template <class Call>
    bool each(const Steps& steps, Call call) const {
        for (const auto& [at, times] : kinds_of_steps_[static_cast<std::size_t>(steps.k)])
            if (!call(at, times)) return false;
        return true;
    }

    std::vector<std::pair<Size, Size>> kinds_of_steps(const Steps& steps) const {
        std::vector<Size> special{0, 1, steps.count - 1, steps.count};
        for (const Depth& depth : g_.depths) {
            const Size own = parts(depth.reduction, steps.k);
            special.insert(special.end(), {own - 1, own});
        }
        std::sort(special.begin(), special.end());
        std::vector<std::pair<Size, Size>> found;
        for (std::size_t i = 0; i + 1 < special.size(); ++i) {
            const Size at = special[i], next = special[i + 1];
            if (at == next || at >= steps.count) continue;
            found.emplace_back(at, 1);
            if (next > at + 1) found.emplace_back(at + 1, next - at - 1);
        }
        return found;
    }

    // Counts what every tile of a line, or every tile, must load anew; all else once.
    void count_traffic() {
        traffic_[0] = stores(real(g_.height), real(g_.width));
        std::vector<Size> seen;
        for (const Piece& piece : pieces_[0][done(g_.most_depth)]) {
            if (piece.among_others || std::find(seen.begin(), seen.end(), piece.tensor) != seen.end()) continue;
            seen.push_back(piece.tensor);
            const bool each_column = piece.moves() && piece.columns != Axis::tile;
            const bool each_row = piece.moves() && piece.rows != Axis::tile;
            traffic_[(each_column ? 1U : 0U) | (each_row ? 2U : 0U)] +=
                piece.size(real(g_.height), real(g_.width), real(piece.reduction()));
        }
    }

    double least_traffic(const Grid& grid) const {
        const double across = real(grid.across), down = real(grid.down);
        return (traffic_[0] + across * traffic_[1] + down * (traffic_[2] + across * traffic_[3])) / g_.bandwidth;
    }

    template <class Latency>
    Kinds kinds(const Grid& grid, Latency latency) const {
        Kinds result{};
        for (int move = start; move <= jump; ++move)
            for (std::size_t i = grid.down > 1 ? 0 : 1; i < 2; ++i)
                for (std::size_t j = grid.across > 1 ? 0 : 1; j < 2; ++j)
                    result[static_cast<std::size_t>(move)][i][j] = latency(move, grid.heights[i], grid.widths[j]);
        return result;
    }

    // All steps of a tile as one: no k up to this one is faster.
    Kinds merged(const Grid& grid, Size k) const {
        const Pieces& all = of(grid, k);
        return kinds(grid, [&](int move, double h, double w) {
            double loads = stores(h, w);
            for (const Piece& piece : all)
                if (!piece.among_others && !piece.same_after(move)) loads += piece.size(h, w, real(piece.reduction()));
            return std::max(tile_cost_, loads / g_.bandwidth);
        });
    }

    double stepped(const Pieces& all, const Steps& steps, int move, double h, double w) const {
        double latency = 0;
        std::vector<double> saved(all.size(), 0.0);
        each(steps, [&](Size at, Size times) {
            const auto [work, moved] = step(all, steps, move, at, h, w);
            latency += real(times) * std::max(work, moved / g_.bandwidth);
            for (std::size_t i = 0; i < all.size(); ++i)
                if (all[i].inner) saved[i] = std::max(saved[i], saving(all[i], steps, at, h, w, work, moved));
            return true;
        });
        for (std::size_t i = 0; i < all.size(); ++i) latency -= real(all[i].inner) * saved[i];
        return latency;
    }

    // The time of a step and what it loads and stores.
    std::pair<double, double> step(const Pieces& all, const Steps& steps, int move, Size at, double h, double w) const {
        double work = at == 0 ? g_.once : 0, moved = 0;
        for (const Depth& depth : g_.depths) {
            const double length = steps.length(depth.reduction, at);
            work += length * depth.per_element;
            if (!may_stay(depth, steps.k)) work += strips(depth, length);
        }
        for (const Piece& piece : all) {
            if (!steps.has(piece, at)) continue;
            const bool there = at > 0 ? !piece.moves() && steps.has(piece, at - 1)
                                      : piece.same_after(move) && steps.has(piece, steps.count - 1);
            if (!there) moved += piece.size(h, w, steps.length(piece.reduction(), at));
        }
        if (at == steps.count - 1) work += g_.late, moved += stores(h, w);
        return {work, moved};
    }

    // What a step gains at most if one of its slices is there already, whatever else is.
    double saving(const Piece& piece, const Steps& steps, Size at, double h, double w, double work, double moved) const {
        if (!steps.has(piece, at)) return 0;
        const double less = moved - piece.size(h, w, steps.length(piece.reduction(), at));
        return std::max(work, moved / g_.bandwidth) - std::max(work, less / g_.bandwidth);
    }

    static bool divides(double side, Size k) { return k % static_cast<Size>(side) == 0; }

    // What all tiles gain at most by slices that other shapes left to them.
    double entered(const Grid& grid, const Pieces& all, const Steps& steps) const {
        const double h = grid.heights[grid.down > 1 ? 0 : 1], w = grid.widths[grid.across > 1 ? 0 : 1];
        double total = 0;
        for (const Piece& piece : all) {
            // Sides of tiles are steps of k in two tiles of a line, if they are equal; if not, in the last one at most. A
            // bound of this k is one of all that divide it, too.
            const auto times = [&](double side) -> Size { return divides(side, steps.k) ? 2 : 1; };
            const Size last = steps.count - 1;
            const Size often = piece.leaving_rows * grid.down * times(w) +
                               piece.leaving_columns * grid.across * times(h);
            if (often) {
                const auto [work, moved] = step(all, steps, start, last, h, w);
                total += real(often) * saving(piece, steps, last, h, w, work, moved);
            }
            const bool by_columns = piece.columns == Axis::depth;
            if (!piece.entering || !divides(by_columns ? w : h, steps.k)) continue;
            const auto [work, moved] = step(all, steps, start, 0, h, w);
            const Size lines = by_columns ? grid.down : grid.across;
            total += real(lines * piece.entering) * saving(piece, steps, 0, h, w, work, moved);
        }
        return total;
    }

    // No order of tiles is cheaper: each tile gains the better of its two moves, but for one tile of every row
    // (column), which is not entered along it, and for the first, which is not entered at all.
    static double least(const Grid& grid, const Kinds& kinds) {
        const auto rows = grid.rows(), columns = grid.columns();
        double total = 0, first = std::numeric_limits<double>::max();
        std::array<double, 2> row_loses{first, first}, column_loses{first, first};
        for (std::size_t i = grid.down > 1 ? 0 : 1; i < 2; ++i)
            for (std::size_t j = grid.across > 1 ? 0 : 1; j < 2; ++j) {
                const double by_row = kinds[start][i][j] - kinds[along_row][i][j];
                const double by_column = kinds[start][i][j] - kinds[along_column][i][j];
                total += rows[i] * columns[j] * (kinds[start][i][j] - std::max(by_row, by_column));
                first = std::min(first, std::min(by_row, by_column));
                row_loses[i] = std::min(row_loses[i], std::max(0.0, by_row - by_column));
                column_loses[j] = std::min(column_loses[j], std::max(0.0, by_column - by_row));
            }
        for (std::size_t i = grid.down > 1 ? 0 : 1; i < 2; ++i) total += rows[i] * row_loses[i];
        for (std::size_t j = grid.across > 1 ? 0 : 1; j < 2; ++j) total += columns[j] * column_loses[j];
        return total + std::max(0.0, first);
    }

    // Lines along rows from one corner, each back or, without `turns`, all the same way; along columns it is the same
    // with rows and columns exchanged.
    static double in_lines(const Grid& grid, const Kinds& kinds, const Tile& order) {
        const auto [by_columns, from_right, from_bottom] = std::array{order.by_columns, order.from_right, order.from_bottom};
        const Size lines = by_columns ? grid.across : grid.down, length = by_columns ? grid.down : grid.across;
        const bool late_line = by_columns ? from_right : from_bottom, late_tile = by_columns ? from_bottom : from_right;
        const auto time = [&](int move, bool edge_line, bool edge_tile) {
            const std::size_t i = by_columns ? edge_tile : edge_line, j = by_columns ? edge_line : edge_tile;
            return kinds[static_cast<std::size_t>(move)][i][j];
        };
        const int along = by_columns ? along_column : along_row;
        const int turn = !order.turns ? jump : by_columns ? along_row : along_column;
        // One line: its tiles entered along it, but for one that is entered by a turn, at the edge or not.
        const auto line = [&](bool edge, bool from_edge, int entered) {
            if (length == 1) return time(entered, edge, true);
            const double rest = static_cast<double>(length - 2) * time(along, edge, false);
            return rest + time(entered, edge, from_edge) + time(along, edge, !from_edge);
        };
        if (lines == 1) return line(true, late_tile, start);
        // Lines are entered at one end and the other by turns; the edge's line comes first or last.
        const auto side = [&](Size n) { return (n % 2 == 0 || !order.turns) == late_tile; };
        double total = line(late_line, side(0), start) + line(!late_line, side(lines - 1), turn);
        const Size between = lines - 2, odd = (between + 1) / 2;
        total += static_cast<double>(odd) * (between ? line(false, side(1), turn) : 0);
        return total + static_cast<double>(between - odd) * (between > 1 ? line(false, side(2), turn) : 0);
    }

    Size least_depth(Size w, Size h) const {
        Size least = 1;
        for (const Size k : g_.least_width)
            if (std::min(w, g_.native[0]) < k) least = std::max(least, k);
        for (const Size k : g_.least_height)
            if (std::min(h, g_.native[1]) < k) least = std::max(least, k);
        return least;
    }

    // False if no k of at least `from` fits.
    bool may_fit(const Grid& grid, Size from) const {
        const double h = grid.heights[grid.down > 1 ? 0 : 1], w = grid.widths[grid.across > 1 ? 0 : 1];
        double room = real(g_.held) * h * w;
        for (const Piece& piece : of(grid, from))
            if (piece.reach > 0) room += piece.size(h, w, real(std::min(from, piece.reduction())));
        return room <= real(g_.room);
    }

    // False if a narrower tile of this height is no better either.
    bool look(Size w, Size h) {
        const Grid grid(g_, w, h);
        if (grid.tiles() * tile_cost_ >= best_ || least_traffic(grid) >= best_) return false;
        const Size from = least_depth(w, h);
        if (from > g_.most_depth || !may_fit(grid, from)) return true;
        Kinds at_best = merged(grid, g_.most_depth);
        double all = least(grid, at_best);
        if (all >= best_) return true;
        fits_.assign(static_cast<std::size_t>(g_.most_depth + 1), false);
        Size deepest = 0;
        bool every = true;  // all k from here to the deepest fit
        for (Size k = g_.most_depth; k >= from && all < best_; --k) {
            // Several steps as one are no slower, so a k is of no use if a multiple of it fits.
            if (every && 2 * k <= deepest) break;
            const bool fit = fits(grid, k);
            fits_[static_cast<std::size_t>(k)] = fit;
            every &= fit || !deepest;
            if (!fit) continue;
            if (!deepest) {
                deepest = k;
                at_best = merged(grid, k);
                if ((all = least(grid, at_best)) >= best_) break;
            }
            if (2 * k > g_.most_depth || !fits_[static_cast<std::size_t>(2 * k)]) offer(grid, w, h, k, at_best);
            if (k >= most_) break;  // one step
        }
        return true;
    }

    // Looks at the tiles that are most first; `kinds` are of all steps as one.
    void offer(const Grid& grid, Size w, Size h, Size k, Kinds kinds) {
        const Steps steps(k, most_);
        const Pieces& all = of(grid, k);
        const std::size_t row = grid.down > 1 ? 0 : 1, column = grid.across > 1 ? 0 : 1;
        const double gained = entered(grid, all, steps);
        for (int move = start; move <= jump; ++move)
            kinds[static_cast<std::size_t>(move)][row][column] =
                stepped(all, steps, move, grid.heights[row], grid.widths[column]);
        if (least(grid, kinds) - gained >= best_) return;
        const Kinds each = this->kinds(
            grid, [&](int move, double tall, double wide) { return stepped(all, steps, move, tall, wide); });
        const double bound = least(grid, each) - gained;
        if (bound >= best_) return;
        if (bound_) {
            found_ = {bound, w, h, k};
            best_ = bound;
            return;
        }
        for (int form = 0; form < 16; ++form) {
            Tile order{0, w, h, k, (form & 1) != 0, (form & 2) != 0, (form & 4) != 0, (form & 8) == 0};
            order.latency = in_lines(grid, each, order);
            if (order.latency < best_) {
                found_ = order;
                best_ = order.latency;
            }
        }
    }

    const Subgraph& g_;
    bool bound_;
    double best_;
    Size most_ = 0;  // the largest K
    double tile_cost_ = 0;
    std::array<double, 4> traffic_{};  // of the whole grid; per column of it; per row; per tile
    std::array<std::vector<Pieces>, 4> pieces_;  // by grid and by how many K are done in one step
    Tile found_;
    std::vector<bool> fits_;             // by k
    std::vector<std::vector<std::pair<Size, Size>>> kinds_of_steps_;  // by k
};

}  // namespace

Tile price(const Subgraph& subgraph, bool bound, double limit, std::optional<double> seconds) {
    return Pricer(subgraph, bound, limit).run(seconds);
}

}  // namespace onchip::contest
