// A drop-in for MiniMalloc's command line: its flags, its tables, its exit codes, onchip's packer.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "drawing.h"
#include "flags.h"
#include "onchip/pack.h"
#include "table.h"

namespace {

using minimalloc::Buffer;
using minimalloc::Flags;

using Ints = std::vector<std::int64_t>;

// The buffers as the packer has them. Those without bytes lie at 0, or where they must, and are no part of it.
struct Problem {
    std::vector<std::vector<onchip_gap>> gaps;
    std::vector<onchip_buffer> buffers;
    std::vector<std::size_t> at;
    bool possible = true;  // whatever the capacity

    explicit Problem(const std::vector<Buffer>& given) {
        for (std::size_t i = 0; i < given.size(); ++i) {
            const Buffer& b = given[i];
            if (b.offset && (*b.offset < 0 || *b.offset % b.alignment)) possible = false;
            if (b.size == 0) continue;
            auto& own = gaps.emplace_back();
            for (const auto& gap : b.gaps) {
                const auto window = gap.window.value_or(std::pair<std::int64_t, std::int64_t>{0, 0});
                own.push_back({gap.begin, gap.end, window.first, window.second});
            }
            buffers.push_back({b.lower, b.upper, b.size, b.alignment, b.offset.value_or(-1), nullptr, own.size()});
            at.push_back(i);
        }
        for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i].gaps = gaps[i].data();
    }
};

std::int64_t height_of(const Problem& problem, const Ints& found) {
    std::int64_t height = 0;
    for (std::size_t i = 0; i < found.size(); ++i) height = std::max(height, found[i] + problem.buffers[i].size);
    return height;
}

onchip_status solve(const Problem& problem, const Flags& flags, Ints& found) {
    if (!problem.possible || flags.capacity < 0) return ONCHIP_INFEASIBLE;
    const onchip_limits limits{flags.timeout, -1, 0, nullptr, nullptr};
    const auto* buffers = problem.buffers.data();
    const std::size_t count = problem.buffers.size();
    if (!flags.minimize_capacity) return onchip_pack(buffers, count, flags.capacity, &limits, found.data());
    std::int64_t extent = 0, bound = 0;
    const onchip_status status = onchip_pack_lowest(buffers, count, &limits, found.data(), &extent, &bound);
    if (status != ONCHIP_PACKED || extent <= flags.capacity) return status;
    return bound > flags.capacity ? ONCHIP_INFEASIBLE : onchip_pack(buffers, count, flags.capacity, &limits, found.data());
}

int fail(const std::string& line) {
    std::cerr << line << "\n";
    return 1;
}

}  // namespace

int main(int argc, char** argv) {
    std::string error;
    const Flags flags = minimalloc::read_flags(std::vector<std::string>(argv + 1, argv + argc), error);
    if (!error.empty()) return fail("ERROR: " + error);
    if (flags.help) {
        std::cout << minimalloc::usage;
        return 0;
    }
    std::ifstream file(flags.input, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (!file.is_open() || file.bad()) return fail("Opening file " + flags.input + " failed.");
    const std::vector<Buffer> buffers = minimalloc::read_table(text, error);
    if (!error.empty()) return fail(error);

    const Problem problem(buffers);
    Ints found(problem.buffers.size());
    const auto began = std::chrono::steady_clock::now();
    const onchip_status status = solve(problem, flags, found);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
    std::fprintf(stderr, "Elapsed time %.3fs\n", seconds.count());
    if (status == ONCHIP_UNKNOWN) return fail("DEADLINE_EXCEEDED: the search reached its limit.");
    if (status == ONCHIP_INVALID) return fail("INVALID_ARGUMENT: a size, time or offset that is too large.");
    if (status != ONCHIP_PACKED) return fail("NOT_FOUND: Error encountered during search.");
    const std::int64_t height = height_of(problem, found);
    if (flags.validate) {
        if (!onchip_is_packing(problem.buffers.data(), found.size(), found.data(), flags.capacity)) return fail("Validation FAIL");
        std::cerr << "Validation PASS, height " << height << "\n";
    }
    Ints offsets(buffers.size());
    for (std::size_t i = 0; i < buffers.size(); ++i) offsets[i] = buffers[i].offset.value_or(0);
    for (std::size_t i = 0; i < found.size(); ++i) offsets[problem.at[i]] = found[i];
    if (flags.print_solution) std::cout << minimalloc::drawing(buffers, offsets, flags.capacity);
    std::ofstream(flags.output, std::ios::binary) << minimalloc::write_table(buffers, offsets);
    return 0;
}
