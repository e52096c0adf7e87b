// What the bindings of the fuser share: limits, and costs as plain lists.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "fusion_clock.h"
#include "fusion_cost.h"
#include "stop.h"

namespace onchip::fusion {

inline Limits limits_of(Asked& asked, std::optional<double> seconds, std::size_t memory, std::size_t groups,
                        std::size_t states, nb::object stop) {
    return {asked.limits<Progress>(seconds, memory, std::move(stop)), groups, states};
}

// dram (-1: none), crossing, halo, weight, scratch, rows, subgroups, images, streamed, resident, whole; rows, columns,
// outputs, channels, held operand and box (-1: none) of the blocks of an operator that runs in some
using CostRow = std::tuple<Bytes, Bytes, Bytes, Bytes, Bytes, std::int64_t, std::int64_t, std::int64_t,
                           std::vector<Id>, std::vector<Id>, bool, std::vector<std::int64_t>>;

inline CostRow row_of(const Cost& c) {
    std::vector<std::int64_t> blocks;
    if (c.blocks)
        blocks = {c.blocks->rows, c.blocks->columns, c.blocks->outputs, c.blocks->channels, c.blocks->keep, c.blocks->box};
    return {c.dram < unlimited ? c.dram : -1, c.crossing, c.halo, c.weight, c.scratch, c.rows, c.subgroups,
            c.images, c.streamed, c.resident, c.whole, std::move(blocks)};
}

}  // namespace onchip::fusion
