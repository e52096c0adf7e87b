// Binds the fuser. Operators go by their places in an order in which they can run.
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bindings.h"
#include "border.h"
#include "fusion_fuser.h"
#include "stop.h"

ONCHIP_NAMES(onchip::fusion::Form, "opaque", "reduce", "channelwise", "elementwise", "concat", "rowwise")
ONCHIP_NAMES(onchip::fusion::BatchWeights, "per-image", "held", "shared")
ONCHIP_NAMES(onchip::fusion::Isoa, "channelwise", "paper", "off", "sums")
ONCHIP_NAMES(onchip::fusion::Halo, "lines", "paper", "recompute")
ONCHIP_NAMES(onchip::fusion::Residency, "partial", "all", "none")

namespace onchip::fusion {

namespace {

struct Listed {
    bool complete = false;
    End end = End::complete;
};

std::optional<Bytes> known(Bytes cost) { return cost < unlimited ? std::optional(cost) : std::nullopt; }

void check_members(const Fuser& fuser, const std::vector<Id>& members) {
    if (members.empty()) throw std::invalid_argument("fusion: an empty group");
    for (std::size_t i = 0; i < members.size(); ++i)
        if (members[i] >= fuser.problem().operators.size() || (i && members[i] <= members[i - 1]))
            throw std::invalid_argument("fusion: members do not ascend");
}

void bind_problem(nb::module_& m) {
    given<Tensor>(m, "FusionTensor", Field("channels", &Tensor::channels), Field("rows", &Tensor::rows),
                  Field("columns", &Tensor::columns), Field("element", &Tensor::element), Field("bytes", &Tensor::bytes),
                  Field("output", &Tensor::output));
    given<Window>(m, "FusionWindow", Field("tensor", &Window::tensor), Field("whole", &Window::whole),
                  Field("broadcast", &Window::broadcast), Field("stride", &Window::stride),
                  Field("padding", &Window::padding), Field("span", &Window::span));
    given<Grid>(m, "FusionGrid", Field("kernel", &Grid::kernel), Field("stride", &Grid::stride),
                Field("padding", &Grid::padding), Field("span", &Grid::span),
                Field("input_channels", &Grid::input_channels), Field("output_channels", &Grid::output_channels),
                Field("groups", &Grid::groups));
    given<Boxed>(m, "FusionBoxes", Field("scratch", &Boxed::scratch), Field("again", &Boxed::again),
                 Field("weight", &Boxed::weight), Field("tiles", &Boxed::tiles));
    given<Operator>(m, "FusionOperator", Field("form", &Operator::form), Field("inputs", &Operator::inputs),
                    Field("outputs", &Operator::outputs), Field("weight", &Operator::weight),
                    Field("tile", &Operator::tile), Field("workspace", &Operator::workspace),
                    Field("grid", &Operator::grid), Field("boxes", &Operator::boxes),
                    Field("streams", &Operator::streams));
    given<Options>(m, "FusionOptions", Field("batch_weights", &Options::batch_weights), Field("isoa", &Options::isoa),
                   Field("halo", &Options::halo), Field("residency", &Options::residency),
                   Field("weight_tile", &Options::weight_tile), Field("blocks", &Options::blocks));
    given<Problem>(m, "FusionProblem", Field("tensors", &Problem::tensors), Field("operators", &Problem::operators),
                   Field("images", &Problem::images), Field("channel_tile", &Problem::channel_tile),
                   Field("least_rows", &Problem::least_rows), Field("alignment", &Problem::alignment),
                   Field("maps_budget", &Problem::maps_budget), Field("weights_budget", &Problem::weights_budget),
                   Field("options", &Problem::options));
    given<Space>(m, "FusionSpace", Field("largest", &Space::largest), Field("whole_fan_out", &Space::whole_fan_out),
                 Field("chains", &Space::chains), Field("shared_inputs", &Space::shared_inputs),
                 Field("order", &Space::order));
    given<Rules>(m, "FusionRules", Field("lazy", &Rules::lazy), Field("worth", &Rules::worth),
                 Field("monotone", &Rules::monotone), Field("incumbent", &Rules::incumbent));
}

void bind_answers(nb::module_& m) {
    answer<Blocked>(m, "FusionBlocks", Field("rows", &Blocked::rows), Field("columns", &Blocked::columns),
                    Field("outputs", &Blocked::outputs), Field("channels", &Blocked::channels),
                    Field("keep", &Blocked::keep), Field("box", &Blocked::box));
    answer<Cost>(m, "FusionCost", Field("crossing", &Cost::crossing), Field("halo", &Cost::halo),
                 Field("weight", &Cost::weight), Field("scratch", &Cost::scratch), Field("rows", &Cost::rows),
                 Field("subgroups", &Cost::subgroups), Field("images", &Cost::images),
                 Field("streamed", &Cost::streamed), Field("resident", &Cost::resident), Field("whole", &Cost::whole),
                 Field("blocks", &Cost::blocks))
        .def_prop_ro("dram", [](const Cost& self) { return known(self.dram); });
    answer<Listed>(m, "FusionListed", Field("complete", &Listed::complete), Field("end", &Listed::end));
    answer<Partition>(m, "FusionPartition", Field("groups", &Partition::groups), Field("costs", &Partition::costs),
                      Field("bound", &Partition::bound), Field("end", &Partition::end),
                      Field("complete", &Partition::complete), Field("candidates", &Partition::candidates),
                      Field("kept", &Partition::kept), Field("evaluated", &Partition::evaluated),
                      Field("states", &Partition::states), Field("transitions", &Partition::transitions),
                      Field("memory", &Partition::memory))
        .def_prop_ro("fits", [](const Partition& self) { return self.misfit == no_id; });
}

}  // namespace

void bind(nb::module_& m) {
    bind_problem(m);
    bind_answers(m);
    nb::class_<Fuser>(m, "Fuser")
        .def(
            "__init__",
            [](Fuser* self, Problem problem, Space space) {
                problem.complete();
                for (const Id v : space.order)
                    if (v >= problem.operators.size()) throw std::invalid_argument("fusion: order");
                new (self) Fuser(std::move(problem), std::move(space));
            },
            nb::kw_only(), nb::arg("problem"), nb::arg("space"))
        .def("count_convex",
             [](const Fuser& self) {
                 nb::gil_scoped_release release;
                 const Count c = count_convex(self.problem());
                 return c.saturated ? std::nullopt : std::optional(c.sets);
             })
        .def("misfits", &Fuser::misfits, nb::arg("budget"))
        .def(
            "alone", [](Fuser& self, Id op, std::optional<Bytes> cost) { self.alone(op, cost.value_or(unlimited)); },
            nb::arg("op"), nb::arg("cost").none())
        .def(
            "enumerate",
            [](Fuser& self, std::optional<Bytes> budget, const Rules& rules, std::size_t groups, const Wanted& wanted) {
                Asked asked;
                const Limits limits{asked.limits<Progress>(wanted), groups, 0};
                return asked.run([&]() -> Listed {
                    Clock clock(limits);
                    const bool all = self.enumerate(budget.value_or(unlimited), rules, clock);
                    return {all, clock.ended().value_or(all ? End::complete : End::memory)};
                });
            },
            nb::kw_only(), nb::arg("budget").none(), nb::arg("rules"), nb::arg("groups"), nb::arg("limits"))
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
            [](Fuser& self, const std::vector<Id>& members, Bytes budget) {
                check_members(self, members);
                return self.cost(members, budget, unlimited);
            },
            nb::arg("members"), nb::arg("budget"))
        .def(
            "dram_bytes",
            [](Fuser& self, const std::vector<std::vector<Id>>& groups, Bytes budget) {
                for (const auto& members : groups) check_members(self, members);
                nb::gil_scoped_release release;
                std::vector<std::optional<Bytes>> result;
                for (const auto& members : groups) result.push_back(known(self.cost(members, budget, unlimited).dram));
                return result;
            },
            nb::arg("groups"), nb::arg("budget"))
        .def(
            "least_scratch",
            [](Fuser& self, const std::vector<Id>& members, std::int64_t bands) {
                check_members(self, members);
                return known(self.least_scratch(members, bands));
            },
            nb::arg("members"), nb::arg("bands"))
        .def(
            "best",
            [](Fuser& self, Bytes budget, std::size_t largest, const Rules& rules, std::size_t groups,
               std::size_t states, const Wanted& wanted) {
                Asked asked;
                const Limits limits{asked.limits<Progress>(wanted), groups, states};
                return asked.run([&] { return self.best(budget, largest, rules, limits); });
            },
            nb::kw_only(), nb::arg("budget"), nb::arg("largest"), nb::arg("rules"), nb::arg("groups"),
            nb::arg("states"), nb::arg("limits"));
}

}  // namespace onchip::fusion
