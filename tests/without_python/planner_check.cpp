// Reads allocations from standard input, a line of four numbers each, and writes their offsets.
#include <cstdint>
#include <iostream>
#include <vector>

#include "onchip/memory_planner.hpp"

struct Allocation {
    std::int64_t sizeInBytes = 0, alignment = 1, timeStart = 0, timeEnd = 0;
};

int main() {
    std::vector<Allocation> allocations;
    for (Allocation a; std::cin >> a.sizeInBytes >> a.alignment >> a.timeStart >> a.timeEnd;) allocations.push_back(a);
    for (const std::int64_t at : onchip::exactMemoryPlanner<std::vector<std::int64_t>>(64, allocations)) std::cout << at << "\n";
}
