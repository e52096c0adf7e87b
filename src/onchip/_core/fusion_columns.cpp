// Binds pricing.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bindings.h"
#include "border.h"
#include "fusion_fuser.h"
#include "fusion_pricing.h"
#include "stop.h"

namespace onchip::fusion {

void bind_pricer(nb::module_& m) {
    answer<Priced>(m, "Priced", Field("least", &Priced::least), Field("complete", &Priced::complete),
                   Field("columns", &Priced::columns), Field("nodes", &Priced::nodes));
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
                return found < unlimited ? std::optional(found) : std::nullopt;
            },
            nb::arg("members"))
        .def(
            "price",
            [](Pricer& self, Id first, const std::vector<Bytes>& worth, Bytes tolerance, std::uint64_t nodes,
               const Wanted& wanted) {
                if (first >= worth.size() || worth.size() != self.operators() || tolerance < 0)
                    throw std::invalid_argument("pricing: operator, worths or tolerance");
                Asked asked;
                const Limits limits{asked.limits<Progress>(wanted), 0, 0};
                return asked.run_through([&] {
                    Clock clock(limits);
                    return self.price(first, worth, tolerance, nodes, clock);
                });
            },
            nb::kw_only(), nb::arg("first"), nb::arg("worth"), nb::arg("tolerance"), nb::arg("nodes"),
            nb::arg("limits"));
}

}  // namespace onchip::fusion
