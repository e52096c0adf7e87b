// MemoryCost of a group: the least DRAM bytes over heights of a band, legal S and resident weights.
#pragma once
#include <functional>

#include "fusion_blocks.h"
#include "fusion_residency.h"
#include "fusion_streams.h"

namespace onchip::fusion {

// How a group runs at its cost. `rows` is t; `subgroups` counts bands of the whole batch.
struct Cost {
    Bytes dram = unlimited, crossing = 0, halo = 0, weight = 0, scratch = 0, maps = 0;  // maps: their part of scratch
    std::int64_t rows = 0, subgroups = 0, images = 1;
    std::vector<Id> streamed, resident;
    bool whole = false;      // an operator that runs alone and whole
    std::optional<Blocked> blocks;  // or in blocks
};

class Evaluator {
  public:
    explicit Evaluator(const Problem& problem) : problem_(problem), group_(problem) {}

    void load(std::span<const Id> members);
    // The same, when no more than floor() and may_grow() will be asked.
    void load_outline(std::span<const Id> members);
    // After load(): the operands (external and escaping maps, as they stand) whose bit is set lie whole outside the
    // scratch, and cross nothing. At most 64 operands; every load() begins with none.
    void keep_whole(std::uint64_t which);
    const Group& group() const { return group_; }
    // Bytes that the buffer of every map takes at least in whatever way the group runs; those of a whole one, too.
    void least_buffers(std::vector<Bytes>& result);
    Bytes least_weights() const { return weights_.least_room(); }
    // After so many branches best() settles for what it has (0: never), and was_cut() says so.
    void at_most(std::size_t branches) { most_branches_ = branches; }
    // Asked every thousand branches; once it says so, best() settles for what it has, too.
    void until(std::function<bool()> over) { over_ = std::move(over); }
    bool was_cut() const { return cut_; }
    // Bytes that something else takes while the group runs, of the budget and of the part for maps.
    void reserve(Bytes bytes) { reserved_ = bytes; }
    // Charge the halo of a map up to this part of the map only: costs that bound the true ones. Negative: all of it.
    void charge_halo(std::int64_t percent) { halo_percent_ = percent; }

    bool banded() const { return banded_; }
    // No cost of this group is below.
    Bytes floor() const { return group_.crossing + weights_.all(); }
    // The same when it has to fit `budget`, after may_grow(budget): refilled weights as seldom as can be.
    Bytes floor_within(Bytes budget) const;
    // Whether some height of a band fits.
    bool fits(Bytes budget);
    // False when neither this group nor any larger one fits. By a bound: that a group does not fit itself says
    // nothing of larger ones, for in odd geometries another operator takes rows off a buffer.
    bool may_grow(Bytes budget);
    // No cost below `limit` is below this; `unlimited` when there is none.
    Bytes lower(Bytes budget, Bytes limit);
    // The cost if it is below `limit`, else `unlimited`.
    Bytes best(Bytes budget, Bytes limit);
    // How the group runs at the cost that best() has just returned.
    Cost describe();
    // Bytes of scratch that the group needs at least, in bands of the given part of its rows (0: the thinnest).
    Bytes least_scratch(std::int64_t bands);

  private:
    struct Point {
        std::int64_t t = 1, bands = 1, images = 1, fetches = 1;
    };
    void choose_candidates();
    void bound(const Point& at);
    Bytes size(std::uint32_t x, std::int64_t more, const Point& at, bool few) const;
    std::int64_t more(std::uint32_t x, const std::vector<std::int64_t>& by_map, const Point& at) const;
    // Bytes for weights beside maps that take `taken`, negative when those do not fit themselves.
    Bytes room(Bytes budget, Bytes taken) const {
        if (taken + reserved_ > problem_.maps_budget) return -1;
        return std::min(budget - reserved_ - taken, problem_.weights_budget);
    }
    Bytes weight_cost(const Point& at, Bytes resident) const {
        return weights_.all() + (at.fetches - 1) * (weights_.all() - resident);
    }
    bool list_points(Bytes budget, Bytes limit, bool first);
    bool search(const Point& at);
    bool search_heights(Point at, bool halo);
    void prepare_rows();
    bool exact(const Point& at) const;
    bool exact_around(const Point& at) const;
    bool near(std::int64_t higher) const;
    void rows_for(const Point& at);
    void rows_from(std::int64_t t);
    void rows_of_all_heights();
    static std::int64_t rounds(std::int64_t images, std::int64_t together) { return (images + together - 1) / together; }
    void branch(std::size_t from, Bytes bound, Bytes halo);
    void leaf();
    Bytes buffers(const Choice& in_s, const std::vector<std::int64_t>& by_map, const Point& at) const;
    void halo_bounds();
    Bytes halo_of(const Choice& in_s, const Point& at);
    Bytes charged(std::uint32_t x) const;

    const Problem& problem_;
    const bool ordered_ = problem_.options.isoa != Isoa::paper && problem_.options.isoa != Isoa::sums;  // passes are
    Group group_;
    Weights weights_;
    Passes passes_;
    Walk walk_;
    bool banded_ = false;
    std::size_t branches_ = 0, most_branches_ = 0, asked_ = 0;
    std::function<bool()> over_;
    bool cut_ = false;
    Bytes reserved_ = 0;
    Bytes whole_ = 0;  // scratch of an operator that runs whole

    Choice candidate_, in_s_;
    std::vector<std::uint32_t> parent_, order_;
    std::vector<std::int64_t> held_back_, held_more_, back_, more_;

    // Of the search at one height.
    Point at_;
    Bytes budget_ = 0, best_ = unlimited, held_sum_ = 0, least_ = 0;
    bool any_ = false;      // only whether something fits is asked
    // Rows of every buffer, where the closed form does not say them: those that are walked, or a bound.
    const std::vector<std::int64_t>* rows_ = nullptr;
    bool walked_ = false;   // at this height rows of an S are walked
    bool thin_bounds_ = true;  // in the thinnest band the closed form has no more rows than in any other
    std::vector<std::int64_t> fewest_, walked_rows_, most_back_;
    std::vector<Bytes> out_, in_, extra_;
    std::vector<Bytes> halo_bound_;
    std::vector<std::int64_t> halo_rows_;
    bool halo_known_ = false;
    std::int64_t halo_percent_ = -1;
    Choice best_s_;
    std::vector<std::pair<Point, Bytes>> points_;
    Point best_at_;
    Bytes best_halo_ = 0, best_buffers_ = 0;
};

}  // namespace onchip::fusion
