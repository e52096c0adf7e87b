// Binds the fuser. Everything crosses as plain lists of integers; onchip.fusion.search types it.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bindings.h"
#include "fusion_fuser.h"
#include "fusion_guard.h"

namespace onchip::fusion {

namespace {

// channels, rows, columns, element, bytes, whether it is an output of the network
using TensorRow = std::tuple<std::int64_t, std::int64_t, std::int64_t, Bytes, Bytes, bool>;
// tensor, whole, broadcast, stride, padding, span
using WindowRow = std::tuple<Id, bool, bool, std::int64_t, std::int64_t, std::int64_t>;
// kernel, stride, padding, span (rows and columns each), input channels, output channels, groups; or nothing
using GridRow = std::vector<std::int64_t>;
// scratch, what crosses again, weight, tiles
using BoxRow = std::tuple<Bytes, Bytes, Bytes, std::int64_t>;
// form, windows, outputs, weight, tile, workspace, grid, boxes, streams
using OperatorRow = std::tuple<int, std::vector<WindowRow>, std::vector<Id>, Bytes, Bytes, Bytes, GridRow, std::vector<BoxRow>,
                               std::vector<std::vector<Id>>>;

Problem problem_of(const std::vector<TensorRow>& tensors, const std::vector<OperatorRow>& operators,
                   std::int64_t images, std::int64_t channel_tile, std::int64_t least_rows, Bytes alignment,
                   std::pair<Bytes, Bytes> parts, const std::vector<int>& options) {
    Problem p;
    for (const auto& [channels, rows, columns, element, bytes, output] : tensors) {
        Tensor t;
        t.channels = channels, t.rows = rows, t.columns = columns, t.element = element;
        t.row_bytes = columns * element, t.bytes = bytes, t.output = output;
        p.tensors.push_back(std::move(t));
    }
    for (const auto& [form, windows, outputs, weight, tile, workspace, grid, boxes, streams] : operators) {
        Operator op;
        if (form < 0 || form > 5) throw std::invalid_argument("fusion: form");
        op.form = static_cast<Form>(form);
        for (const auto& [tensor, whole, broadcast, stride, padding, span] : windows)
            op.inputs.push_back({tensor, whole, broadcast, stride, padding, span});
        op.outputs = outputs, op.weight = weight, op.tile = tile, op.workspace = workspace;
        if (!grid.empty()) {
            if (grid.size() != 11) throw std::invalid_argument("fusion: grid");
            op.grid = {{grid[0], grid[1]}, {grid[2], grid[3]}, {grid[4], grid[5]}, {grid[6], grid[7]},
                       grid[8],            grid[9],            grid[10]};
        }
        for (const auto& [scratch, again, fetched, tiles] : boxes) op.boxes.push_back({scratch, again, fetched, tiles});
        op.streams = streams;
        p.operators.push_back(std::move(op));
    }
    if (options.size() != 6) throw std::invalid_argument("fusion: options");
    for (std::size_t i = 0; i < 4; ++i)
        if (options[i] < 0 || options[i] > (i == 1 ? 3 : 2)) throw std::invalid_argument("fusion: options");
    p.options = {static_cast<BatchWeights>(options[0]), static_cast<Isoa>(options[1]),
                 static_cast<fusion::Halo>(options[2]), static_cast<Residency>(options[3]), options[4] != 0,
                 options[5] != 0};
    p.images = images, p.channel_tile = channel_tile, p.least_rows = least_rows, p.alignment = alignment;
    std::tie(p.maps_budget, p.weights_budget) = parts;
    p.complete();
    return p;
}

Rules rules_of(const std::vector<bool>& given) {
    Rules r;
    bool* const fields[] = {&r.lazy, &r.worth, &r.monotone, &r.incumbent};
    if (given.size() != std::size(fields)) throw std::invalid_argument("fusion: rules");
    for (std::size_t i = 0; i < given.size(); ++i) *fields[i] = given[i];
    return r;
}

void check_members(const Fuser& fuser, const std::vector<Id>& members) {
    if (members.empty()) throw std::invalid_argument("fusion: an empty group");
    for (std::size_t i = 0; i < members.size(); ++i)
        if (members[i] >= fuser.problem().operators.size() || (i && members[i] <= members[i - 1]))
            throw std::invalid_argument("fusion: members do not ascend");
}

}  // namespace

void bind(nb::module_& m) {
    nb::class_<Fuser>(m, "Fuser")
        .def(
            "__init__",
            [](Fuser* self, const std::vector<TensorRow>& tensors, const std::vector<OperatorRow>& operators,
               std::int64_t images, std::int64_t channel_tile, std::int64_t least_rows, Bytes alignment,
               std::pair<Bytes, Bytes> parts, const std::vector<int>& options, std::size_t largest, bool whole_fan_out, bool chains,
               bool shared_inputs, const std::vector<Id>& order) {
                Problem p = problem_of(tensors, operators, images, channel_tile, least_rows, alignment, parts, options);
                for (const Id v : order)
                    if (v >= p.operators.size()) throw std::invalid_argument("fusion: order");
                new (self) Fuser(std::move(p), {largest, whole_fan_out, chains, shared_inputs, order});
            },
            nb::kw_only(), nb::arg("tensors"), nb::arg("operators"), nb::arg("images"), nb::arg("channel_tile"),
            nb::arg("least_rows"), nb::arg("alignment"), nb::arg("parts"), nb::arg("options"),
            nb::arg("largest"), nb::arg("whole_fan_out"), nb::arg("chains"), nb::arg("shared_inputs"), nb::arg("order"))
        .def("count_convex",
             [](const Fuser& self) {
                 nb::gil_scoped_release release;
                 const Count c = count_convex(self.problem());
                 return std::make_pair(c.sets, c.saturated);
             })
        .def("misfits", &Fuser::misfits, nb::arg("budget"))
        .def("alone", &Fuser::alone, nb::arg("op"), nb::arg("cost"))
        .def(
            "enumerate",
            [](Fuser& self, std::optional<Bytes> budget, const std::vector<bool>& rules,
               std::optional<double> seconds, std::size_t memory, std::size_t groups, nb::object stop) {
                Asked asked;
                const Limits limits = limits_of(asked, seconds, memory, groups, 0, std::move(stop));
                return asked.run([&] {
                    Clock clock(limits);
                    const bool all = self.enumerate(budget.value_or(unlimited), rules_of(rules), clock);
                    return std::pair(all, name_of(clock.ended().value_or(all ? End::complete : End::memory)));
                });
            },
            nb::kw_only(), nb::arg("budget").none(), nb::arg("rules"), nb::arg("seconds").none(), nb::arg("memory"),
            nb::arg("groups"), nb::arg("stop").none())
        .def_prop_ro("listed", [](const Fuser& self) { return self.candidates().size(); })
        .def("candidates",
             [](const Fuser& self) {
                 std::vector<std::pair<std::vector<Id>, Bytes>> result;
                 for (const Candidate& c : self.candidates()) {
                     std::vector<Id> members;
                     self.sets().members(c.set, members);
                     result.emplace_back(std::move(members), c.floor);
                 }
                 return result;
             })
        .def(
            "cost",
            [](Fuser& self, const std::vector<Id>& members, Bytes budget, std::optional<Bytes> limit) {
                check_members(self, members);
                return row_of(self.cost(members, budget, limit.value_or(unlimited)));
            },
            nb::arg("members"), nb::arg("budget"), nb::arg("limit").none())
        .def(
            "dram_bytes",
            [](Fuser& self, const std::vector<std::vector<Id>>& groups, Bytes budget) {
                for (const auto& members : groups) check_members(self, members);
                nb::gil_scoped_release release;
                std::vector<Bytes> result;
                for (const auto& members : groups) {
                    const Bytes dram = self.cost(members, budget, unlimited).dram;
                    result.push_back(dram < unlimited ? dram : -1);
                }
                return result;
            },
            nb::arg("groups"), nb::arg("budget"))
        .def(
            "least_scratch",
            [](Fuser& self, const std::vector<Id>& members, std::int64_t bands) {
                check_members(self, members);
                const Bytes least = self.least_scratch(members, bands);
                return least < unlimited ? least : -1;
            },
            nb::arg("members"), nb::arg("bands"))
        .def(
            "best",
            [](Fuser& self, Bytes budget, std::size_t largest, const std::vector<bool>& rules,
               std::optional<double> seconds, std::size_t memory, std::size_t groups, std::size_t states,
               nb::object stop) {
                Asked asked;
                const Limits limits = limits_of(asked, seconds, memory, groups, states, std::move(stop));
                const Partition found = asked.run([&] { return self.best(budget, largest, rules_of(rules), limits); });
                std::vector<std::pair<std::vector<Id>, CostRow>> rows;
                for (std::size_t i = 0; i < found.groups.size(); ++i)
                    rows.emplace_back(found.groups[i], row_of(found.costs[i]));
                nb::dict result;
                result["groups"] = nb::cast(rows);
                result["bound"] = found.bound;
                result["complete"] = found.complete;
                result["end"] = name_of(found.end);
                result["misfit"] = found.misfit == no_id ? -1 : static_cast<std::int64_t>(found.misfit);
                result["candidates"] = found.candidates;
                result["kept"] = found.kept;
                result["evaluated"] = found.evaluated;
                result["states"] = found.states;
                result["transitions"] = found.transitions;
                result["memory"] = found.memory;
                return result;
            },
            nb::kw_only(), nb::arg("budget"), nb::arg("largest"), nb::arg("rules"), nb::arg("seconds").none(),
            nb::arg("memory"), nb::arg("groups"), nb::arg("states"), nb::arg("stop").none());
}

}  // namespace onchip::fusion
