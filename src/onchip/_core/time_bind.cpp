// Binds the time of nests and the search for fast ones. Operators and buffers of a group go by their places in it.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "border.h"
#include "stop.h"
#include "time_front.h"

namespace onchip::timed {

namespace {

// A nest with its figures, for who holds them against the checker's.
struct Priced {
    Times times;
    Bytes need = 0, scratch = 0;
    std::vector<Array> arrays;  // by operator
};

std::optional<Priced> price(const Problem& problem, const Item& nest, bool every_turn) {
    Layout layout(problem);
    if (!layout.derive(nest)) return std::nullopt;
    Walk walk(problem);
    const auto times = walk.times(layout, never, 1'000'000, every_turn);
    if (!times) return std::nullopt;
    Priced found{*times, layout.need, layout.extent(), std::vector<Array>(problem.group.size())};
    for (const Leaf& leaf : layout.leaves)
        if (leaf.array) found.arrays[leaf.op] = *leaf.array;
    return found;
}

}  // namespace

void bind(nb::module_& m) {
    given<Channel>(m, "TimedChannel", Field("bytes_per_second", &Channel::bytes_per_second), Field("transfer", &Channel::transfer),
                   Field("piece", &Channel::piece), Field("burst", &Channel::burst), Field("loads", &Channel::loads),
                   Field("stores", &Channel::stores));
    given<ArraySide>(m, "TimedSide", Field("sums", &ArraySide::sums), Field("size", &ArraySide::size));
    given<Rates>(m, "TimedRates", Field("clock", &Rates::clock), Field("step_cycles", &Rates::step_cycles),
                 Field("block_cycles", &Rates::block_cycles), Field("own_operands", &Rates::own_operands),
                 Field("channels", &Rates::channels), Field("sides", &Rates::sides), Field("vector", &Rates::vector),
                 Field("scratchpad", &Rates::scratchpad));
    given<Work>(m, "TimedWork", Field("products", &Work::products), Field("vector", &Work::vector));
    given<Stored>(m, "TimedStored", Field("whole", &Stored::whole), Field("constant", &Stored::constant),
                  Field("on_chip", &Stored::on_chip), Field("tile", &Stored::tile), Field("in_fills", &Stored::in_fills));
    given<Kept>(m, "TimedKept", Field("buffer", &Kept::buffer), Field("copies", &Kept::copies), Field("load", &Kept::load),
                Field("store", &Kept::store), Field("late", &Kept::late))
        .def_ro("buffer", &Kept::buffer)
        .def_ro("copies", &Kept::copies)
        .def_ro("load", &Kept::load)
        .def_ro("store", &Kept::store)
        .def_ro("late", &Kept::late);
    given<Item>(m, "TimedItem", Field("loop_class", &Item::loop_class), Field("tile", &Item::tile),
                Field("operation", &Item::operation), Field("under", &Item::under), Field("keep", &Item::keep),
                Field("ring", &Item::ring), Field("body", &Item::body))
        .def_ro("loop_class", &Item::loop_class)
        .def_ro("tile", &Item::tile)
        .def_ro("operation", &Item::operation)
        .def_ro("under", &Item::under)
        .def_ro("keep", &Item::keep)
        .def_ro("ring", &Item::ring)
        .def_ro("body", &Item::body);
    answer<Times>(m, "TimedTimes", Field("time", &Times::time), Field("work", &Times::work), Field("bytes", &Times::bytes),
                  Field("steps", &Times::steps), Field("transfers", &Times::transfers), Field("busy", &Times::busy));
    answer<Priced>(m, "TimedPriced", Field("times", &Priced::times), Field("need", &Priced::need),
                   Field("scratch", &Priced::scratch), Field("arrays", &Priced::arrays));
    answer<Found>(m, "TimedFound", Field("nest", &Found::nest), Field("times", &Found::times), Field("scratch", &Found::scratch),
                  Field("cost", &Found::cost));
    answer<Answer>(m, "TimedAnswer", Field("best", &Answer::best), Field("front", &Answer::front),
                   Field("effort", &Answer::effort), Field("prices", &Answer::prices));
    given<FrontRules>(m, "TimedRules", Field("floors", &FrontRules::floors), Field("idle", &FrontRules::idle),
                      Field("second", &FrontRules::second), Field("more", &FrontRules::more));
    answer<Front>(m, "TimedFront", Field("found", &Front::found), Field("nests", &Front::nests),
                  Field("prices", &Front::prices), Field("complete", &Front::complete));
    nb::class_<Problem>(m, "TimedProblem")
        .def(nb::init<std::vector<nests::Operator>, std::vector<nests::Buffer>, std::vector<Stored>, std::vector<Work>, Rates, Bytes, bool>(),
             nb::kw_only(), nb::arg("operators"), nb::arg("buffers"), nb::arg("stored"), nb::arg("work"), nb::arg("rates"),
             nb::arg("alignment"), nb::arg("paired") = true)
        .def_prop_ro("classes",
                     [](const Problem& self) {
                         std::vector<std::vector<int>> found;
                         for (const nests::Class& c : self.group.classes) found.push_back(c.axis);
                         return found;
                     })
        .def(
            "price", [](const Problem& self, const Item& nest, bool every_turn) { return price(self, nest, every_turn); },
            nb::kw_only(), nb::arg("nest"), nb::arg("every_turn") = false)
        .def(
            "refusal",
            [](const Problem& self, const Item& nest) {
                Layout layout(self);
                return std::string(layout.derive(nest) ? "" : layout.reason);
            },
            nb::kw_only(), nb::arg("nest"))
        .def(
            "search",
            [](const Problem& self, std::vector<Item> starts, Bytes room, std::int64_t effort, std::uint64_t seed, int slack,
               std::int64_t price, std::int64_t of_bytes, const Wanted& wanted) {
                Asked asked;
                const Limits<Progress> limits = asked.limits<Progress>(wanted);
                const Asks asks{std::move(starts), room, effort, seed, slack, price, of_bytes};
                return asked.run([&] { return Search(self, asks, limits).run(); });
            },
            nb::kw_only(), nb::arg("starts"), nb::arg("room"), nb::arg("effort"), nb::arg("seed"), nb::arg("slack") = Asks{}.slack,
            nb::arg("price") = 0, nb::arg("of_bytes") = 1, nb::arg("limits"))
        .def(
            "fronts",
            [](const Problem& self, int loops, int copies, bool channels, Bytes room, std::int64_t most, const FrontRules& rules,
               const Wanted& wanted) {
                Asked asked;
                const Limits<Progress> limits = asked.limits<Progress>(wanted);
                const FrontAsks asks{loops, copies, channels, room, most, rules};
                return asked.run([&] { return Fronts(self, asks, limits).run(); });
            },
            nb::kw_only(), nb::arg("loops"), nb::arg("copies"), nb::arg("channels"), nb::arg("room"), nb::arg("most"), nb::arg("rules"),
            nb::arg("limits"));
}

}  // namespace onchip::timed
