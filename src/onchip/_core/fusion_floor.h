// What every group costs at least that contains some operators, whatever else it contains: the bound of pricing.
// docs/fusion-pricing.md proves it.
#pragma once
#include <span>

#include "fusion_cost.h"

namespace onchip::fusion {

class Floor {
  public:
    // A group in at most `bands` bands of an image costs `cost` or more beside its operands: weights, and halos
    // of what the members read from outside.
    struct Level {
        std::int64_t bands;
        Bytes cost;
    };

    // `halo_percent`: a map's halo is charged up to this part of the map; negative: all of it.
    Floor(const Problem& problem, std::int64_t halo_percent);

    // Strides of all paths fit together; otherwise nothing is known.
    bool sound() const { return sound_; }
    // Groups are looked for among these operators only (ascending).
    void among(std::span<const Id> operators);
    // Whether a group with these members (ascending) may fit.
    bool fits(std::span<const Id> members, Bytes budget);
    // The levels of such a group, fewest bands first; none: it does not fit.
    void levels(std::span<const Id> members, Bytes budget, std::vector<Level>& result);
    // Operands of exactly these members, each once.
    Bytes crossing() const { return crossing_; }
    // At most this many bytes of x are charged again where it is read from outside in so many bands.
    Bytes halo_at_most(Id x, std::int64_t bands) const {
        const Bytes all = around_[x].again * (bands - 1);
        return halo_percent_ < 0 ? all : std::min(all, cap(x));
    }

  private:
    struct Around {  // of a tensor, among the operators of interest
        std::int64_t ahead = 0, back = 0, overlap = 0;  // f at most, g at least, f - g at most
        Bytes again = 0;
    };
    struct Map {
        Id id;
        bool made = false, held = false;
        std::uint32_t readers = 0;
        std::int64_t scale = 1, ahead = 0, all = 0;
        Shared shared;
        Bytes few = 0, others = 0;  // of a row: what streaming holds, and the rest
        std::uint32_t rows = 0;     // D
    };
    struct Again {
        std::uint32_t map;
        Bytes bytes;
    };

    Bytes cap(Id x) const { return problem_.tensors[x].bytes * halo_percent_ / 100; }
    bool whole(const Window& w, Id made) const;
    std::int64_t needs(const Window& w, std::int64_t ahead) const;
    void scale();
    void around(Id x);
    std::uint32_t local(Id tensor);
    struct Outer {  // a window onto an operand from outside
        std::uint32_t map;
        const Window* window;
        Id made;
    };

    bool load(std::span<const Id> members);
    std::int64_t shared_rows(const Window& w, Id made, std::int64_t bands) const;
    Bytes buffers(std::int64_t bands);
    Bytes holding(std::uint32_t held);
    Bytes weights(Bytes room, std::int64_t fetches) const;

    const Problem& problem_;
    std::int64_t halo_percent_;
    bool sound_ = true;
    std::vector<double> part_;                        // by tensor: its scale, relative to the others
    std::vector<std::int64_t> rows_, least_ahead_;    // by tensor: D, least f
    std::vector<Around> around_;
    std::vector<char> may_;
    bool tangled_ = false;
    std::int64_t most_bands_ = 1;
    double ratio_ = 0;  // rows over relative scale, at most

    std::vector<Map> maps_;
    std::vector<std::uint32_t> local_;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> excluded_;
    std::vector<std::pair<Bytes, Bytes>> weight_;  // weights and tiles, largest first
    std::vector<Again> halos_;
    std::vector<Outer> outer_;
    std::vector<Bytes> extra_, left_;
    Bytes all_weights_ = 0, crossing_ = 0;
    std::int64_t rows_at_most_ = 1;
};

}  // namespace onchip::fusion
