// Binds the placement searches. Everything crosses as plain lists of integers; onchip.placement.search types it.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bindings.h"
#include "placement_problem.h"
#include "stop.h"

namespace onchip::placement {

namespace {

using Ids = std::vector<Id>;
using Boundaries = std::vector<std::tuple<Bytes, Ids, Ids>>;  // paid, resident, copied
using Steps = std::vector<std::pair<Id, Ids>>;

Steps plain(std::vector<Step>& steps) {
    Steps result;
    for (Step& s : steps) result.emplace_back(s.op, std::move(s.evict));
    return result;
}

using Search = Outcome (*)(const Problem&, const Rules&, const Options&, const Limits&);

nb::dict solve(Search search, std::vector<Bytes> size, std::vector<Bytes> cost, std::vector<Bytes> workspace,
               std::vector<std::vector<Id>> inputs, std::vector<std::vector<Id>> outputs,
               const std::vector<Id>& graph_inputs, const std::vector<Id>& graph_outputs,
               std::vector<std::vector<Id>> overwrites, std::vector<Id> order, Bytes budget,
               const std::vector<bool>& rules, std::optional<double> seconds, std::size_t memory,
               std::uint64_t seed, nb::object stop, const std::vector<Id>& lives_on, const Boundaries& starts,
               std::size_t beam_width) {
    Problem p;
    p.graph_input.resize(size.size());
    p.graph_output.resize(size.size());
    for (Id t : graph_inputs) p.graph_input.at(t) = true;
    for (Id t : graph_outputs) p.graph_output.at(t) = true;
    p.size = std::move(size), p.cost = std::move(cost), p.workspace = std::move(workspace);
    p.inputs = std::move(inputs), p.outputs = std::move(outputs), p.order = std::move(order);
    p.lives_on.resize(p.size.size());
    for (Id t : lives_on) p.lives_on.at(t) = true;
    for (const auto& [paid, resident, copied] : starts) p.starts.push_back({resident, copied, paid});
    p.overwrites = std::move(overwrites);
    p.budget = budget;
    p.complete();

    Rules r;
    bool* const fields[] = {&r.dominance, &r.safe_moves, &r.safe_loads, &r.safe_chains, &r.minimal_evictions,
                            &r.incumbent};
    if (rules.size() != std::size(fields)) throw std::invalid_argument("placement search: rules");
    for (std::size_t i = 0; i < rules.size(); ++i) *fields[i] = rules[i];

    Asked asked;
    const Limits limits = asked.limits<Progress>(seconds, memory, std::move(stop));
    Outcome outcome = asked.run([&] { return search(p, r, {seed, beam_width}, limits); });

    std::vector<std::tuple<Bytes, Ids, Ids, std::size_t, Steps>> arrivals;
    for (Arrival& a : outcome.arrivals)
        arrivals.emplace_back(a.at.paid, std::move(a.at.resident), std::move(a.at.copied), a.start, plain(a.steps));
    nb::dict result;
    result["arrivals"] = nb::cast(arrivals);
    result["steps"] = nb::cast(plain(outcome.steps));
    result["value"] = outcome.value;
    result["bound"] = outcome.bound;
    result["end"] = name_of(outcome.end);
    result["expanded"] = outcome.expanded;
    result["stored"] = outcome.stored;
    result["memory"] = outcome.memory;
    return result;
}

}  // namespace

void bind(nb::module_& m) {
    const auto define = [&](const char* name, Search search) {
        m.def(
            name,
            [search](std::vector<Bytes> size, std::vector<Bytes> cost, std::vector<Bytes> workspace,
                     std::vector<std::vector<Id>> inputs, std::vector<std::vector<Id>> outputs,
                     const std::vector<Id>& graph_inputs, const std::vector<Id>& graph_outputs,
                     std::vector<std::vector<Id>> overwrites, std::vector<Id> order, Bytes budget,
                     const std::vector<bool>& rules, std::optional<double> seconds, std::size_t memory,
                     std::uint64_t seed, nb::object stop, const std::vector<Id>& lives_on,
                     const Boundaries& starts, std::size_t beam_width) {
                return solve(search, std::move(size), std::move(cost), std::move(workspace), std::move(inputs),
                             std::move(outputs), graph_inputs, graph_outputs, std::move(overwrites),
                             std::move(order), budget, rules, seconds, memory, seed, std::move(stop), lives_on,
                             starts, beam_width);
            },
            nb::kw_only(), nb::arg("size"), nb::arg("cost"), nb::arg("workspace"), nb::arg("inputs"),
            nb::arg("outputs"), nb::arg("graph_inputs"), nb::arg("graph_outputs"), nb::arg("overwrites"),
            nb::arg("order"), nb::arg("budget"), nb::arg("rules"), nb::arg("seconds").none(), nb::arg("memory"), nb::arg("seed"),
            nb::arg("stop").none(), nb::arg("lives_on"), nb::arg("starts"), nb::arg("beam_width"));
    };
    define("minimum_traffic", minimum_traffic);
    define("minimum_peak", minimum_peak);
}

}  // namespace onchip::placement
