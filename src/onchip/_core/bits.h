// Bitsets as spans of 64-bit words: the sets of a search state lie side by side in one allocation.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>

namespace onchip {

using Word = std::uint64_t;

inline constexpr std::size_t words_for(std::size_t bits) { return (bits + 63) / 64; }

inline bool test(const Word* set, std::uint32_t i) { return (set[i >> 6] >> (i & 63)) & 1; }
inline void add(Word* set, std::uint32_t i) { set[i >> 6] |= Word{1} << (i & 63); }
inline void drop(Word* set, std::uint32_t i) { set[i >> 6] &= ~(Word{1} << (i & 63)); }

// Calls visit(i) for every i in the word whose bit 0 stands for `base`.
template <class Visit>
void each_bit(Word word, std::uint32_t base, Visit visit) {
    for (; word != 0; word &= word - 1) visit(base + static_cast<std::uint32_t>(std::countr_zero(word)));
}

// Calls visit(i) for every i in the set, ascending.
template <class Visit>
void each(const Word* set, std::size_t words, Visit visit) {
    for (std::size_t w = 0; w < words; ++w) each_bit(set[w], static_cast<std::uint32_t>(w * 64), visit);
}

}  // namespace onchip
