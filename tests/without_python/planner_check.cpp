// Reads allocations from standard input, a line of four numbers each, and writes their offsets.
#include <cstdint>
#include <iostream>
#include <vector>

#include "onchip/memory_planner.hpp"

#ifdef WITH_LLVM
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#endif

struct Allocation {
    std::int64_t sizeInBytes = 0, alignment = 1, timeStart = 0, timeEnd = 0;
};

#ifdef WITH_LLVM
// MLIR's signature, with LLVM's containers.
llvm::SmallVector<std::int64_t> bestFitMemoryPlanner(std::int64_t arenaAlignment, llvm::ArrayRef<Allocation> allocs) {
    return onchip::exactMemoryPlanner<llvm::SmallVector<std::int64_t>>(arenaAlignment, allocs);
}
#else
std::vector<std::int64_t> bestFitMemoryPlanner(std::int64_t arenaAlignment, const std::vector<Allocation>& allocs) {
    return onchip::exactMemoryPlanner<std::vector<std::int64_t>>(arenaAlignment, allocs);
}
#endif

int main() {
    std::vector<Allocation> allocations;
    for (Allocation a; std::cin >> a.sizeInBytes >> a.alignment >> a.timeStart >> a.timeEnd;) allocations.push_back(a);
    for (const std::int64_t at : bestFitMemoryPlanner(64, allocations)) std::cout << at << "\n";
}
