// Binds the limits that every search takes.
#include "bindings.h"
#include "stop.h"

namespace onchip {

void bind_limits(nb::module_& m) {
    const Limits<int> none;
    nb::class_<Wanted>(m, "Limits")
        .def(nb::init<std::optional<double>, std::size_t, decltype(Wanted::stop)>(), nb::kw_only(),
             nb::arg("seconds") = nb::none(), nb::arg("memory") = none.memory, nb::arg("stop") = nb::none());
}

}  // namespace onchip
