// Binds the exact search for two networks.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "bindings.h"
#include "border.h"
#include "corun_labels.h"
#include "stop.h"

namespace onchip::corun {

namespace {

using Numbers = std::vector<double>;
using Two = std::pair<Numbers, Numbers>;  // of the networks

// A pair with its bounds, which every search of it shares.
struct BoundedPair {
    explicit BoundedPair(Pair p) : pair(std::move(p)), bounds(pair) {}
    BoundedPair(const BoundedPair&) = delete;
    BoundedPair& operator=(const BoundedPair&) = delete;

    const Pair pair;
    const Bounds bounds;
};

std::unique_ptr<BoundedPair> bounded(std::size_t units, Two work, Two move, Two slow) {
    Pair pair;
    pair.units = units;
    pair.net[0].work = std::move(work.first), pair.net[1].work = std::move(work.second);
    pair.net[0].move = std::move(move.first), pair.net[1].move = std::move(move.second);
    pair.slow[0] = std::move(slow.first), pair.slow[1] = std::move(slow.second);
    if (units > 0)
        for (Chain& c : pair.net) c.groups = c.work.size() / units;
    pair.check();
    nb::gil_scoped_release release;
    return std::make_unique<BoundedPair>(std::move(pair));
}

Outcome search(const BoundedPair& self, std::pair<double, double> frames, double upper, bool yields, const Rules& rules,
               std::size_t width, const Wanted& wanted) {
    Goal goal;
    goal.frames[0] = frames.first, goal.frames[1] = frames.second;
    Asked asked;
    const auto limits = asked.limits<std::uint64_t>(wanted);
    return asked.run([&] { return best_pair(self.pair, self.bounds, goal, upper, yields, rules, width, limits); });
}

}  // namespace

void bind_pair(nb::module_& m) {
    given<Rules>(m, "PairRules", Field("dominance", &Rules::dominance), Field("bounds", &Rules::bounds));
    answer<Start>(m, "CorunStart", Field("net", &Start::net), Field("group", &Start::group),
                  Field("unit", &Start::unit));
    answer<Outcome>(m, "PairSchedule", Field("value", &Outcome::value), Field("bound", &Outcome::bound),
                    Field("starts", &Outcome::starts), Field("end", &Outcome::end), Field("labels", &Outcome::labels),
                    Field("made", &Outcome::made));
    nb::class_<BoundedPair>(m, "BoundedPair")
        .def(nb::new_(&bounded), nb::kw_only(), nb::arg("units"), nb::arg("work"), nb::arg("move"), nb::arg("slow"))
        .def("search", &search, nb::kw_only(), nb::arg("frames"), nb::arg("upper"), nb::arg("yields"),
             nb::arg("rules"), nb::arg("width"), nb::arg("limits"));
}

}  // namespace onchip::corun
