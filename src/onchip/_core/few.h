// A list that is short as a rule: up to `N` of it lie in place, and only longer ones ask for memory.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace onchip {

template <class T, std::size_t N>
class Few {
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    Few() {}  // what lies in place is not set
    Few(const Few& other) : size_(other.size_), many_(other.many_) { copy(other); }
    Few(Few&& other) noexcept : size_(other.size_), many_(std::move(other.many_)) { copy(other); }
    Few& operator=(const Few& other) {
        if (this == &other) return *this;
        size_ = other.size_;
        many_ = other.many_;
        copy(other);
        return *this;
    }
    Few& operator=(Few&& other) noexcept {
        size_ = other.size_;
        many_ = std::move(other.many_);
        copy(other);
        return *this;
    }
    ~Few() = default;
    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T* begin() { return size_ <= N ? few() : many_.data(); }
    T* end() { return begin() + size_; }
    const T* begin() const { return size_ <= N ? few() : many_.data(); }
    const T* end() const { return begin() + size_; }
    void push_back(const T& item) {
        if (size_ < N) {
            std::construct_at(few() + size_++, item);
            return;
        }
        const T added = item;
        if (size_ == N) many_.assign(few(), few() + N);
        many_.push_back(added);
        ++size_;
    }
    void clear() {
        size_ = 0;
        many_.clear();
    }
    template <class Gone>
    void erase_if(Gone gone) {
        Few left;
        for (const T& item : *this)
            if (!gone(item)) left.push_back(item);
        *this = left;
    }

  private:
    T* few() { return std::launder(reinterpret_cast<T*>(in_place_.data())); }
    const T* few() const { return std::launder(reinterpret_cast<const T*>(in_place_.data())); }
    void copy(const Few& other) { std::uninitialized_copy_n(other.few(), size_ <= N ? size_ : 0, few()); }

    alignas(T) std::array<std::byte, N * sizeof(T)> in_place_;  // `size_` items
    std::size_t size_ = 0;
    std::vector<T> many_;
};

}  // namespace onchip
