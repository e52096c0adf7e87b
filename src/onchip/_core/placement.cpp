// Binds the placement searches.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "border.h"
#include "placement_problem.h"
#include "stop.h"

namespace onchip::placement {

namespace {

template <Outcome (*search)(const Problem&, const Rules&, const Options&, const Limits&)>
Outcome solve(Problem problem, const Rules& rules, const Options& options, const Wanted& wanted) {
    problem.complete();
    Asked asked;
    const Limits limits = asked.limits<Progress>(wanted);
    return asked.run([&] { return search(problem, rules, options, limits); });
}

}  // namespace

void bind(nb::module_& m) {
    given<Boundary>(m, "PlacementBoundary", Field("paid", &Boundary::paid), Field("resident", &Boundary::resident),
                    Field("copied", &Boundary::copied))
        .def_ro("paid", &Boundary::paid)
        .def_ro("resident", &Boundary::resident)
        .def_ro("copied", &Boundary::copied);
    given<Problem>(m, "PlacementProblem", Field("size", &Problem::size), Field("cost", &Problem::cost),
                   Field("workspace", &Problem::workspace), Field("inputs", &Problem::inputs),
                   Field("outputs", &Problem::outputs), Field("graph_inputs", &Problem::graph_inputs),
                   Field("graph_outputs", &Problem::graph_outputs), Field("overwrites", &Problem::overwrites),
                   Field("order", &Problem::order), Field("read_later", &Problem::read_later),
                   Field("starts", &Problem::starts), Field("budget", &Problem::budget));
    given<Rules>(m, "PlacementRules", Field("dominance", &Rules::dominance), Field("safe_moves", &Rules::safe_moves),
                 Field("safe_loads", &Rules::safe_loads), Field("safe_chains", &Rules::safe_chains),
                 Field("minimal_evictions", &Rules::minimal_evictions), Field("incumbent", &Rules::incumbent));
    given<Options>(m, "PlacementOptions", Field("seed", &Options::seed), Field("beam_width", &Options::beam_width));
    answer<Step>(m, "PlacementStep", Field("operator", &Step::op), Field("evict", &Step::evict));
    answer<Arrival>(m, "PlacementArrival", Field("at", &Arrival::at), Field("start", &Arrival::start),
                    Field("steps", &Arrival::steps));
    answer<Outcome>(m, "PlacementFound", Field("arrivals", &Outcome::arrivals), Field("steps", &Outcome::steps),
                    Field("value", &Outcome::value), Field("bound", &Outcome::bound), Field("end", &Outcome::end),
                    Field("expanded", &Outcome::expanded), Field("stored", &Outcome::stored),
                    Field("memory", &Outcome::memory));
    m.def("minimum_traffic", &solve<minimum_traffic>, nb::kw_only(), nb::arg("problem"), nb::arg("rules"),
          nb::arg("options"), nb::arg("limits"));
    m.def("minimum_peak", &solve<minimum_peak>, nb::kw_only(), nb::arg("problem"), nb::arg("rules"),
          nb::arg("options"), nb::arg("limits"));
}

}  // namespace onchip::placement
