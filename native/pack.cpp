// The C interface of the packer: arguments checked, exceptions kept inside.
#include "onchip/pack.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <new>
#include <optional>
#include <span>
#include <vector>

#include "clock.h"
#include "pack_windows.h"

namespace onchip::guard {
std::atomic<bool> memory_is_full{false};  // only onchip's command line watches its memory
}

namespace {

using onchip::Limits;
using onchip::pack::Decision;
using onchip::pack::Effort;
using onchip::pack::Lowest;
using onchip::pack::Outcome;
using onchip::pack::Piecewise;

constexpr std::int64_t most_bytes = std::int64_t{1} << 48, most_time = std::int64_t{1} << 60;
// Of all buffers together, and so of any capacity that matters: no sum of offsets and sizes overflows.
constexpr std::int64_t most_in_all = std::int64_t{1} << 60;

std::optional<Piecewise> checked(const onchip_buffer& b) {
    const auto is_time = [](std::int64_t time) { return -most_time <= time && time <= most_time; };
    if (!is_time(b.begin) || !is_time(b.end) || b.begin >= b.end) return std::nullopt;
    if (b.size < 1 || b.size > most_bytes || b.alignment < 1 || b.alignment > most_bytes) return std::nullopt;
    if (b.offset < -1 || b.offset > most_bytes || (b.gap_count && !b.gaps)) return std::nullopt;
    if (b.offset > 0 && b.offset % b.alignment) return std::nullopt;
    Piecewise made{b.begin, b.end, b.size, b.alignment, b.offset, {}};
    std::int64_t time = b.begin;
    for (std::size_t i = 0; i < b.gap_count; ++i) {
        const onchip_gap& gap = b.gaps[i];
        if (gap.begin < time || gap.end <= gap.begin || gap.end > b.end) return std::nullopt;
        if (gap.low < 0 || gap.high < gap.low || gap.high > b.size) return std::nullopt;
        time = gap.end;
        made.gaps.push_back({gap.begin, gap.end, gap.low, gap.high});
    }
    return made;
}

std::optional<std::vector<Piecewise>> checked(const onchip_buffer* buffers, std::size_t count) {
    if (count && !buffers) return std::nullopt;
    std::vector<Piecewise> made;
    made.reserve(count);
    std::int64_t total = 0;
    for (const onchip_buffer& b : std::span(buffers, count)) {
        auto one = checked(b);
        if (!one) return std::nullopt;
        total += (b.size + b.alignment - 1) / b.alignment * b.alignment;
        if (total > most_in_all) return std::nullopt;
        made.push_back(std::move(*one));
    }
    return made;
}

// Limits as the searches have them.
struct Asked {
    Limits<std::int64_t> limits;
    Effort effort;
    std::uint64_t seed = 0;

    explicit Asked(const onchip_limits* given) {
        if (!given) return;
        limits.seconds = given->seconds;
        seed = given->seed;
        if (given->nodes >= 0) effort.nodes = given->nodes;
        if (given->stop) limits.stop = [given](const std::int64_t& nodes) { return given->stop(given->context, nodes) != 0; };
    }
};

// What a search returns; nothing that it throws passes into C.
onchip_status kept(const std::function<onchip_status()>& search) {
    try {
        return search();
    } catch (const std::bad_alloc&) {
        return ONCHIP_NO_MEMORY;
    } catch (...) {
        return ONCHIP_UNKNOWN;
    }
}

}  // namespace

int onchip_abi(void) { return ONCHIP_ABI; }

const char* onchip_status_text(onchip_status status) {
    switch (status) {
        case ONCHIP_PACKED: return "packed";
        case ONCHIP_INFEASIBLE: return "infeasible: no offsets within the capacity";
        case ONCHIP_UNKNOWN: return "unknown: a limit was reached";
        case ONCHIP_INVALID: return "invalid argument";
        case ONCHIP_NO_MEMORY: return "out of memory";
    }
    return "no such status";
}

onchip_status onchip_pack(const onchip_buffer* buffers, size_t count, int64_t capacity, const onchip_limits* limits,
                          int64_t* offsets) {
    if (capacity < 0 || (count && !offsets)) return ONCHIP_INVALID;
    capacity = std::min(capacity, most_in_all + most_bytes);
    return kept([&] {
        const auto given = checked(buffers, count);
        if (!given) return ONCHIP_INVALID;
        const Asked asked(limits);
        const Decision found = decide(*given, capacity, asked.seed, asked.effort, asked.limits);
        if (found.status == Outcome::infeasible) return ONCHIP_INFEASIBLE;
        if (found.status == Outcome::unknown || !is_packing(*given, found.offsets, capacity)) return ONCHIP_UNKNOWN;
        std::copy(found.offsets.begin(), found.offsets.end(), offsets);
        return ONCHIP_PACKED;
    });
}

onchip_status onchip_pack_lowest(const onchip_buffer* buffers, size_t count, const onchip_limits* limits,
                                 int64_t* offsets, int64_t* extent, int64_t* lower_bound) {
    if (count && !offsets) return ONCHIP_INVALID;
    return kept([&] {
        const auto given = checked(buffers, count);
        if (!given) return ONCHIP_INVALID;
        const Asked asked(limits);
        const Lowest found = minimise(*given, asked.seed, asked.limits);
        if (!is_packing(*given, found.offsets, found.extent)) return ONCHIP_INFEASIBLE;
        std::copy(found.offsets.begin(), found.offsets.end(), offsets);
        if (extent) *extent = found.extent;
        if (lower_bound) *lower_bound = found.bound;
        return ONCHIP_PACKED;
    });
}

int onchip_is_packing(const onchip_buffer* buffers, size_t count, const int64_t* offsets, int64_t capacity) {
    if (count && !offsets) return 0;
    return kept([&] {
        const auto given = checked(buffers, count);
        return given && is_packing(*given, std::span(offsets, count), capacity) ? ONCHIP_PACKED : ONCHIP_INVALID;
    }) == ONCHIP_PACKED;
}
