// Numbers of things that lie elsewhere, found again by the hash of the thing: open addressing, at most half full.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace onchip {

template <std::uint32_t none>
class Slots {
  public:
    explicit Slots(std::size_t size) : slots_(size, none) {}

    // The number that `same(number)` is true of, or `none`.
    template <class Same>
    std::uint32_t find(std::uint64_t hash, Same same) const {
        for (std::size_t i = hash & mask();; i = (i + 1) & mask())
            if (slots_[i] == none || same(slots_[i])) return slots_[i];
    }
    // Puts in what find() did not find. `hash_of` gives the hash of any number that is in already.
    template <class HashOf>
    void put(std::uint32_t number, std::uint64_t hash, HashOf hash_of) {
        if (++used_ * 2 > slots_.size()) {
            std::vector<std::uint32_t> old(slots_.size() * 2, none);
            old.swap(slots_);
            for (const std::uint32_t n : old)
                if (n != none) place(n, hash_of(n));
        }
        place(number, hash);
    }
    std::size_t bytes() const { return slots_.size() * sizeof(std::uint32_t); }

  private:
    std::size_t mask() const { return slots_.size() - 1; }
    void place(std::uint32_t number, std::uint64_t hash) {
        std::size_t i = hash & mask();
        while (slots_[i] != none) i = (i + 1) & mask();
        slots_[i] = number;
    }

    std::vector<std::uint32_t> slots_;  // a power of two of them
    std::size_t used_ = 0;
};

}  // namespace onchip
