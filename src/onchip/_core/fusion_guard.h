// What the bindings of the fuser share: limits that hear of Ctrl-C, and costs as plain lists.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "fusion_clock.h"
#include "fusion_cost.h"

namespace onchip::fusion {

namespace nb = nanobind;

inline const char* name_of(End end) {
    switch (end) {
        case End::complete: return "complete";
        case End::time: return "time";
        case End::memory: return "memory";
        case End::stopped: return "stopped";
    }
    return "";
}

// Limits, and what went wrong in the caller's `stop` meanwhile.
struct Guard {
    Limits limits;
    std::optional<nb::python_error> failed;

    Guard(std::optional<double> seconds, std::size_t memory, std::size_t groups, std::size_t states, nb::object stop) {
        limits.seconds = seconds.value_or(-1);
        limits.memory = memory, limits.groups = groups, limits.states = states;
        // Python runs its signal handlers while `stop` runs, so Ctrl-C arrives here as an exception.
        limits.stop = [this, asked = std::move(stop)](const Progress& now) {
            nb::gil_scoped_acquire gil;
            try {
                if (PyErr_CheckSignals() != 0) throw nb::python_error();
                return asked.is_none() ? false : nb::cast<bool>(asked(now.groups, now.states));
            } catch (nb::python_error& error) {
                if (!error.matches(PyExc_KeyboardInterrupt)) failed.emplace(std::move(error));
                return true;
            }
        };
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
};

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
