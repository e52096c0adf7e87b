// Which tensors of a group may be in the scratch a few channels at a time (S), and what rows the buffers then have.
#pragma once
#include <algorithm>
#include <span>
#include <utility>

#include "fusion_group.h"

namespace onchip::fusion {

using Choice = std::vector<char>;  // by map of the group: 1 when in S

// One pass over channel slices makes or reads every tensor of S; passes and held tensors must not wait for each
// other in a circle. False when `in_s` cannot be executed so. The rules that pairs of tensors break are the
// caller's: neither side of a reduction twice, operands that must be held (see may_stream).
class Passes {
  public:
    void load(const Group& group);
    // Whether S stays legal when x, the last map that has joined it, does; the rest is known to be. Says nothing
    // about maps that are not in S and may yet join it.
    bool legal_with(const Group& group, const Choice& in_s, std::uint32_t x);
    // For an S that nothing joins any more: whether what is held is there when slices cannot wait for it.
    bool none_waits(const Group& group, const Choice& in_s);

  private:
    bool legal(const Group& group, const Choice& in_s);
    bool join(std::uint32_t a, std::uint32_t b, std::int64_t shift);
    bool legal_words(const Group& group);
    std::uint32_t root(std::uint32_t x);
    std::vector<Word> made_from_, taken_;  // of maps, where there are at most 64: operands; of passes
    std::vector<Word> pass_;
    std::vector<std::uint32_t> joined_, waiting_;
    std::vector<std::int64_t> shift_;  // channel c of a map goes with channel c + shift of the map it is joined to
    std::vector<std::uint32_t> ready_;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> before_;  // held maps, and passes that they precede
};

// Whether x may be in S at all: it has more channels than a slice, and no reader needs it whole.
void may_stream(const Group& group, Choice& candidate);

// For every map, its parent in a forest of pairs that are never both in S, or `no_id`; a pair is an operand and a
// result. Not all such pairs: the ones a bound can use.
void excluded_pairs(const Group& group, const Choice& candidate, std::vector<std::uint32_t>& parent);

// m: rows beyond the band's own that a buffer needs (all_rows: the whole map), for S = `in_s`.
void overlaps(const Group& group, const Choice& in_s, std::vector<std::int64_t>& back,
              std::vector<std::int64_t>& more);

inline std::int64_t rows_of(const Group::Map& map, std::int64_t more, std::int64_t t) {
    if (more >= all_rows || map.rows == 1) return map.rows;
    return std::clamp(map.scale * t + more, std::int64_t{0}, map.rows);
}

// Band by band, by definition. Bands that are like the one before are counted and not walked.
class Walk {
  public:
    // Rows of an image that cross again, by external map. With `all`, of every external input and as if every tensor
    // were made anew (halo: recompute); else of those in S.
    void halo(const Group& group, const Choice& in_s, bool all, std::int64_t t, std::vector<std::int64_t>& rows);
    // Rows that the buffer of every map has at most.
    void buffers(const Group& group, const Choice& in_s, std::int64_t t, std::vector<std::int64_t>& rows);
    // Rows of every map after the first band, from its first row on: no buffer has fewer, whatever is in S and in
    // higher bands.
    void first(const Group& group, std::int64_t t, std::vector<std::int64_t>& rows);

  private:
    void run(const Group& group, const Choice& in_s, bool all, std::int64_t t);
    void band(const Group& group, std::int64_t j, std::int64_t t);
    std::int64_t steady(const Group& group, const Choice& in_s, bool all, std::int64_t t) const;
    std::vector<std::int64_t> before_, high_, low_, last_low_, most_, again_;
};

// Whether x may join S beside the operands of its operator that are in it: one channel of a sum needs all channels
// of its operand, and the paper lets no neighbours stream at all.
bool may_join(const Group& group, const Choice& in_s, std::uint32_t x);

// Rows of every buffer below which neither this group nor any larger one gets by. Not what this group needs: how
// far ahead a tensor that escapes here is made may be less where an operator that joins decides it.
void rows_at_least(const Group& group, std::vector<std::int64_t>& ahead, std::vector<std::int64_t>& rows);

}  // namespace onchip::fusion
