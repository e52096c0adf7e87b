// Binds pricing. Everything crosses as plain lists of integers; onchip.fusion.pricing types it.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bindings.h"
#include "fusion_fuser.h"
#include "fusion_guard.h"
#include "fusion_pricing.h"

namespace onchip::fusion {

void bind_pricer(nb::module_& m) {
    nb::class_<Pricer>(m, "Pricer")
        .def(
            "__init__",
            [](Pricer* self, const Fuser& fuser, Bytes budget, const std::vector<Bytes>& alone,
               std::int64_t halo_percent, bool guess) {
                if (alone.size() != fuser.problem().operators.size())
                    throw std::invalid_argument("pricing: one cost for every operator");
                new (self) Pricer(fuser.problem(), budget, alone, halo_percent, guess);
            },
            nb::keep_alive<1, 2>(), nb::arg("fuser"), nb::arg("budget"), nb::arg("alone"),
            nb::arg("halo_percent"), nb::arg("guess") = false)
        .def("sound", &Pricer::sound)
        .def(
            "cost",
            [](Pricer& self, const std::vector<Id>& members) {
                const Bytes found = self.cost(members);
                return found < unlimited ? found : -1;
            },
            nb::arg("members"))
        .def(
            "price",
            [](Pricer& self, Id first, const std::vector<Bytes>& worth, Bytes tolerance, std::uint64_t nodes,
               std::optional<double> seconds) {
                if (first >= worth.size() || worth.size() != self.operators() || tolerance < 0)
                    throw std::invalid_argument("pricing: operator, worths or tolerance");
                Asked asked;
                const Limits limits = limits_of(asked, seconds, 0, 0, 0, nb::none());
                Priced found = asked.run_through([&] {
                    Clock clock(limits);
                    return self.price(first, worth, tolerance, nodes, clock);
                });
                std::vector<std::pair<std::vector<Id>, Bytes>> columns;
                for (Priced::Column& c : found.columns) columns.emplace_back(std::move(c.members), c.cost);
                return std::make_tuple(found.least, found.complete, std::move(columns), found.nodes);
            },
            nb::kw_only(), nb::arg("first"), nb::arg("worth"), nb::arg("tolerance"), nb::arg("nodes"), nb::arg("seconds").none());
}

}  // namespace onchip::fusion
