// A list whose items keep their memory when it is made anew: what is derived again and again asks for none.
#pragma once
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace onchip {

// Sets an item to what it is at first, but for the memory of its lists: its `Facts`, of which it is one, and the members
// that are lists.
template <class Facts, class T, class... Lists>
void renew(T& item, Lists T::*... lists) {
    static_cast<Facts&>(item) = Facts{};
    ((item.*lists).clear(), ...);
}

// `T::renew` sets an item to what it is at first.
template <class T>
class Reused {
  public:
    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T* begin() { return all_.data(); }
    T* end() { return all_.data() + size_; }
    const T* begin() const { return all_.data(); }
    const T* end() const { return all_.data() + size_; }
    T& operator[](std::size_t n) { return all_[n]; }
    const T& operator[](std::size_t n) const { return all_[n]; }
    // A new last item.
    T& add() {
        if (size_ == all_.size()) all_.emplace_back();
        else all_[size_].renew();
        return all_[size_++];
    }
    void clear() { size_ = 0; }
    template <class Gone>
    void erase_if(Gone gone) {
        std::size_t left = 0;
        for (std::size_t n = 0; n < size_; ++n)
            if (!gone(std::as_const(all_[n]))) std::swap(all_[left++], all_[n]);
        size_ = left;
    }

  private:
    std::vector<T> all_;
    std::size_t size_ = 0;
};

}  // namespace onchip
