// Binds the joint search. Everything crosses as plain lists of integers; onchip.joint.search types it.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bindings.h"
#include "fusion_guard.h"
#include "joint_search.h"

namespace nb = nanobind;

namespace onchip {

using fusion::Bytes;
using fusion::Guard;
using fusion::Id;

void bind_joint(nb::module_& m) {
    using namespace joint;
    nb::class_<Search>(m, "Joint")
        .def(
            "__init__",
            [](Search* self, const fusion::Fuser& fuser, Bytes budget, std::vector<std::vector<Id>> over,
               const std::vector<bool>& rules) {
                if (over.size() != fuser.problem().operators.size())
                    throw std::invalid_argument("joint: what may be written over, for every operator");
                if (rules.size() != 4) throw std::invalid_argument("joint: rules");
                nb::gil_scoped_release release;
                new (self) Search(fuser, budget, std::move(over), {rules[0], rules[1], rules[2], rules[3]});
            },
            nb::keep_alive<1, 2>(), nb::kw_only(), nb::arg("fuser"), nb::arg("budget"), nb::arg("over"),
            nb::arg("rules"))
        .def(
            "prepare",
            [](Search& self, std::size_t most, std::optional<double> seconds, std::size_t memory, nb::object stop) {
                Guard guard(seconds, memory, 0, 0, std::move(stop));
                bool all = false;
                {
                    nb::gil_scoped_release release;
                    all = self.prepare(most, guard.limits);
                }
                if (guard.failed) throw std::move(*guard.failed);
                return all;
            },
            nb::kw_only(), nb::arg("most"), nb::arg("seconds").none(), nb::arg("memory"), nb::arg("stop").none())
        .def("least", &Search::least, nb::arg("op"))
        .def("floor", &Search::floor)
        .def("worth", &Search::worth, nb::arg("of"))
        .def(
            "price",
            [](Search& self, std::vector<Bytes> worth, std::size_t most, std::optional<double> seconds,
               std::size_t memory, nb::object stop) {
                Guard guard(seconds, memory, 0, 0, std::move(stop));
                Search::Priced found;
                {
                    nb::gil_scoped_release release;
                    found = self.price(std::move(worth), most, guard.limits);
                }
                if (guard.failed) throw std::move(*guard.failed);
                return std::make_tuple(found.worth, found.columns, found.complete);
            },
            nb::kw_only(), nb::arg("worth"), nb::arg("most"), nb::arg("seconds").none(), nb::arg("memory"),
            nb::arg("stop").none())
        .def(
            "search",
            [](Search& self, std::size_t width, std::optional<Bytes> below, std::uint64_t seed,
               std::optional<double> seconds, std::size_t memory, nb::object stop) {
                Guard guard(seconds, memory, 0, 0, std::move(stop));
                Found found;
                {
                    nb::gil_scoped_release release;
                    found = self.pass(width, below.value_or(unlimited), seed, guard.limits);
                }
                if (guard.failed) throw std::move(*guard.failed);
                nb::list steps;
                for (const Step& s : found.steps) {
                    const std::int64_t over = s.over == no_id ? -1 : static_cast<std::int64_t>(s.over);
                    steps.append(nb::make_tuple(s.members, s.whole, s.evicted, over, s.way.plain, s.way.own,
                                                fusion::row_of(s.way.cost)));
                }
                nb::dict result;
                result["steps"] = steps;
                result["cost"] = found.cost < unlimited ? found.cost : -1;
                result["found"] = found.cost < unlimited;
                result["bound"] = found.bound;
                result["complete"] = found.complete;
                result["end"] = fusion::name_of(found.end);
                result["states"] = found.states;
                result["downsets"] = found.downsets;
                result["evaluated"] = found.evaluated;
                result["memory"] = found.memory;
                return result;
            },
            nb::kw_only(), nb::arg("width"), nb::arg("below").none(), nb::arg("seed"), nb::arg("seconds").none(),
            nb::arg("memory"), nb::arg("stop").none());
}

}  // namespace onchip
