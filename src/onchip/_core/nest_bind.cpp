// Binds the search for nests. Operators and buffers of a group go by their places in it.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "border.h"
#include "nest_search.h"
#include "stop.h"

namespace onchip::nests {

namespace {

Set set_of(const std::vector<Id>& members, std::size_t size) {
    Set found = 0;
    for (const Id id : members) {
        if (id >= size) throw std::invalid_argument("nest: no such buffer");
        found |= one(id);
    }
    return found;
}

}  // namespace

void bind(nb::module_& m) {
    given<Slide>(m, "NestSlide", Field("side", &Slide::side), Field("axis", &Slide::axis),
                 Field("stride", &Slide::stride), Field("before", &Slide::before), Field("span", &Slide::span),
                 Field("per", &Slide::per));
    given<Use>(m, "NestUse", Field("buffer", &Use::buffer), Field("axes", &Use::axes), Field("slides", &Use::slides),
               Field("late", &Use::late));
    given<Operator>(m, "NestOperator", Field("axes", &Operator::axes), Field("outputs", &Operator::outputs),
                    Field("together", &Operator::together), Field("reads", &Operator::reads),
                    Field("writes", &Operator::writes), Field("carries", &Operator::carries),
                    Field("across", &Operator::across));
    given<Buffer>(m, "NestBuffer", Field("sides", &Buffer::sides), Field("element", &Buffer::element),
                  Field("maker", &Buffer::maker), Field("leaves", &Buffer::leaves),
                  Field("accumulated", &Buffer::accumulated));
    given<Rules>(m, "NestRules", Field("tiles", &Rules::tiles), Field("inner", &Rules::inner),
                 Field("outer", &Rules::outer), Field("exchange", &Rules::exchange), Field("slices", &Rules::slices),
                 Field("rings", &Rules::rings), Field("bounds", &Rules::bounds));
    answer<Item>(m, "NestItem", Field("operation", &Item::operation), Field("slices", &Item::slices), Field("under", &Item::under),
                 Field("over", &Item::over), Field("tile", &Item::tile), Field("keep", &Item::keep), Field("ring", &Item::ring),
                 Field("body", &Item::body));
    answer<Found>(m, "NestFound", Field("bytes", &Found::bytes), Field("need", &Found::need),
                  Field("root", &Found::root));
    answer<Answer>(m, "NestAnswer", Field("found", &Answer::found), Field("end", &Answer::end),
                   Field("shapes", &Answer::shapes), Field("bound", &Answer::bound));
    nb::class_<Problem>(m, "NestProblem")
        .def(nb::init<std::vector<Operator>, std::vector<Buffer>, Bytes, std::size_t, std::size_t, bool, bool, bool,
                      std::size_t, const Rules&>(),
             nb::kw_only(), nb::arg("operators"), nb::arg("buffers"), nb::arg("alignment"), nb::arg("spine"),
             nb::arg("passes"), nb::arg("long_passes"), nb::arg("pairs"), nb::arg("in_place"), nb::arg("windows"),
             nb::arg("rules"))
        .def(
            "best",
            [](Problem& self, const std::vector<Id>& whole, std::optional<std::pair<Id, Id>> over, Bytes room,
               std::optional<Bytes> below, std::optional<std::uint64_t> most_shapes, std::optional<std::uint64_t> in_order,
               const Wanted& wanted) {
                const Set set = set_of(whole, self.group().buffers.size());
                Asked asked;
                const Limits<Progress> limits = asked.limits<Progress>(wanted);
                std::optional<Over> lies;
                if (over) lies = Over{over->first, over->second};
                return asked.run([&] {
                    return self.best(set, lies, room, below.value_or(unlimited), limits,
                                     {most_shapes.value_or(~std::uint64_t{0}), in_order.value_or(~std::uint64_t{0})});
                });
            },
            nb::kw_only(), nb::arg("whole"), nb::arg("over").none() = nb::none(), nb::arg("room"), nb::arg("below").none(),
            nb::arg("most_shapes").none() = nb::none(), nb::arg("in_order").none() = nb::none(), nb::arg("limits"))
        .def(
            "least",
            [](const Problem& self, const std::vector<Id>& whole) {
                return self.least(set_of(whole, self.group().buffers.size()));
            },
            nb::kw_only(), nb::arg("whole"));
}

}  // namespace onchip::nests
