// A hash of one number.
#pragma once
#include <cstdint>

namespace onchip {

inline constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;

inline std::uint64_t mix(std::uint64_t x) {  // splitmix64
    x += golden;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

}  // namespace onchip
