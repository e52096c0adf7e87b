// Where states live: packed, grouped by executed set, checked for dominance (R1) as they come.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "placement_state.h"
#include "slots.h"

namespace onchip::placement {

using Ref = std::uint32_t;  // a position in the arena, in words
inline constexpr Ref no_ref = 0;

// Words in chunks that never move. What is allocated stays.
class Arena {
  public:
    Ref allocate(std::size_t words);
    Word* at(Ref r) { return chunks_[r >> chunk_bits].get() + (r & (chunk_words - 1)); }
    const Word* at(Ref r) const { return chunks_[r >> chunk_bits].get() + (r & (chunk_words - 1)); }
    std::size_t bytes() const { return chunks_.size() * chunk_words * sizeof(Word); }

  private:
    static constexpr unsigned chunk_bits = 17;  // 1 MiB
    static constexpr std::size_t chunk_words = std::size_t{1} << chunk_bits;
    std::vector<std::unique_ptr<Word[]>> chunks_;
    std::size_t next_ = 1;  // 0 is no_ref
};

// All stored states. Of an executed set D the live tensors are known, so that M and H take one bit for
// each live tensor; states with the same D form a list.
class Table {
  public:
    Table(const Problem& p, bool dominance) : p_(p), dominance_(dominance) {}

    // The new state's reference, or no_ref when a stored state makes it needless (R1; with dominance off,
    // when the same state is stored no dearer). Stored states that it makes needless are marked killed.
    Ref insert(const State& s, Ref parent);

    void unpack(Ref state, State& into) const;
    bool killed(Ref state) const { return (arena_.at(state)[2] & 1) != 0; }
    Bytes paid(Ref state) const { return static_cast<Bytes>(arena_.at(state)[0]); }
    Ref parent(Ref state) const { return static_cast<Ref>(arena_.at(state)[1] >> 32); }

    std::uint64_t stored() const { return stored_; }
    std::size_t bytes() const { return arena_.bytes() + slots_.bytes(); }

  private:
    // A group: all states of one D. Words: hash; head of the list | live tensors; depth; D; live ids.
    // A state: g; parent | next in its list; group | killed (the low bit); M; H.
    Ref group_of(const State& s);
    Ref find_group(const State& s) const;
    void pack(const State& s, std::span<const Id> live);
    bool dominates(std::span<const Id> live, Bytes g1, const Word* m1, const Word* h1, Bytes g2, const Word* m2,
                   const Word* h2) const;

    const Problem& p_;
    bool dominance_;
    Arena arena_;
    Slots<no_ref> slots_{1024};
    std::uint64_t stored_ = 0;
    std::vector<Word> packed_;  // M, H of the state at hand
};

}  // namespace onchip::placement
