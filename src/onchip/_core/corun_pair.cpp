// Binds the co-run searches. Everything crosses as plain lists of numbers; onchip.corun types it.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <tuple>

#include "bindings.h"
#include "corun_labels.h"
#include "stop.h"

namespace onchip::corun {

namespace {

using Numbers = std::vector<double>;

Pair pair_of(std::size_t units, std::pair<Numbers, Numbers> work, std::pair<Numbers, Numbers> move,
             std::pair<Numbers, Numbers> slow) {
    Pair pair;
    pair.units = units;
    pair.net[0].work = std::move(work.first), pair.net[1].work = std::move(work.second);
    pair.net[0].move = std::move(move.first), pair.net[1].move = std::move(move.second);
    pair.slow[0] = std::move(slow.first), pair.slow[1] = std::move(slow.second);
    if (units > 0)
        for (Chain& c : pair.net) c.groups = c.work.size() / units;
    pair.check();
    return pair;
}

// A pair with its bounds, which every search of it shares.
struct BoundedPair {
    explicit BoundedPair(Pair p) : pair(std::move(p)), bounds(pair) {}
    BoundedPair(const BoundedPair&) = delete;
    BoundedPair& operator=(const BoundedPair&) = delete;

    const Pair pair;
    const Bounds bounds;
};

std::unique_ptr<BoundedPair> bounded(std::size_t units, std::pair<Numbers, Numbers> work,
                                     std::pair<Numbers, Numbers> move, std::pair<Numbers, Numbers> slow) {
    Pair pair = pair_of(units, std::move(work), std::move(move), std::move(slow));
    nb::gil_scoped_release release;
    return std::make_unique<BoundedPair>(std::move(pair));
}

nb::dict search_pair(const BoundedPair& bounded_pair, std::pair<double, double> frames, double upper, bool yields,
                     std::pair<bool, bool> rules, std::optional<double> seconds, std::size_t memory, std::size_t width,
                     nb::object stop) {
    Goal goal;
    goal.frames[0] = frames.first, goal.frames[1] = frames.second;
    Asked asked;
    const auto limits = asked.limits<std::uint64_t>(seconds, memory, std::move(stop));
    const Outcome outcome = asked.run([&] {
        return best_pair(bounded_pair.pair, bounded_pair.bounds, goal, upper, yields, Rules{rules.first, rules.second},
                         width, limits);
    });
    std::vector<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> starts;
    for (const Start& s : outcome.starts) starts.emplace_back(s.net, s.group, s.unit);
    nb::dict result;
    result["value"] = outcome.value;
    result["bound"] = outcome.bound;
    result["starts"] = nb::cast(starts);
    result["end"] = name_of(outcome.end);
    result["labels"] = outcome.labels;
    result["made"] = outcome.made;
    return result;
}

}  // namespace

void bind_pair(nb::module_& m) {
    nb::class_<BoundedPair>(m, "BoundedPair")
        .def(nb::new_(&bounded), nb::kw_only(), nb::arg("units"), nb::arg("work"), nb::arg("move"), nb::arg("slow"))
        .def("search", &search_pair, nb::kw_only(), nb::arg("frames"), nb::arg("upper"), nb::arg("yields"),
             nb::arg("rules"), nb::arg("seconds").none(), nb::arg("memory"), nb::arg("width"), nb::arg("stop").none());
}

}  // namespace onchip::corun
