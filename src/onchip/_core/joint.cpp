// Binds the joint search. Everything crosses as plain lists of integers; onchip.joint.search types it.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bindings.h"
#include "fusion_guard.h"
#include "joint_search.h"

namespace onchip::joint {

void bind(nb::module_& m) {
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
                Asked asked;
                const fusion::Limits limits = fusion::limits_of(asked, seconds, memory, 0, 0, std::move(stop));
                return asked.run([&] { return self.prepare(most, limits); });
            },
            nb::kw_only(), nb::arg("most"), nb::arg("seconds").none(), nb::arg("memory"), nb::arg("stop").none())
        .def("least", &Search::least, nb::arg("op"))
        .def("floor", &Search::floor)
        .def("worth", &Search::worth, nb::arg("of"))
        .def(
            "price",
            [](Search& self, std::vector<Bytes> worth, std::size_t most, std::optional<double> seconds,
               std::size_t memory, nb::object stop) {
                Asked asked;
                const fusion::Limits limits = fusion::limits_of(asked, seconds, memory, 0, 0, std::move(stop));
                const Search::Priced found = asked.run([&] { return self.price(std::move(worth), most, limits); });
                return std::make_tuple(found.worth, found.columns, found.complete);
            },
            nb::kw_only(), nb::arg("worth"), nb::arg("most"), nb::arg("seconds").none(), nb::arg("memory"),
            nb::arg("stop").none())
        .def(
            "search",
            [](Search& self, std::size_t width, std::optional<Bytes> below, std::uint64_t seed,
               std::optional<double> seconds, std::size_t memory, nb::object stop) {
                Asked asked;
                const fusion::Limits limits = fusion::limits_of(asked, seconds, memory, 0, 0, std::move(stop));
                const Found found =
                    asked.run([&] { return self.pass(width, below.value_or(unlimited), seed, limits); });
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
                result["end"] = name_of(found.end);
                result["states"] = found.states;
                result["downsets"] = found.downsets;
                result["evaluated"] = found.evaluated;
                result["memory"] = found.memory;
                return result;
            },
            nb::kw_only(), nb::arg("width"), nb::arg("below").none(), nb::arg("seed"), nb::arg("seconds").none(),
            nb::arg("memory"), nb::arg("stop").none());
}

}  // namespace onchip::joint
