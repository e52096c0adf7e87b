// Binds the search for orders of rows and their addresses.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "bindings.h"
#include "border.h"
#include "rows_pack.h"
#include "rows_search.h"
#include "stop.h"

namespace onchip::rows {
namespace {

Found found(const std::vector<Operator>& operators, bool share, const Rules& rules, std::int64_t most_states,
            std::int64_t most_moves, Bytes below, const Wanted& wanted) {
    Asked asked;
    const auto limits = asked.limits<std::int64_t>(wanted);
    return asked.run([&] { return search(Graph(operators, share), rules, most_states, most_moves, below, limits); });
}

Packing addresses(const std::vector<Rectangle>& rows, const std::vector<Pair>& pairs, const std::vector<int>& bottom,
                  const std::vector<int>& top, Bytes alignment, Bytes least, int tries, const Wanted& wanted) {
    Asked asked;
    const auto limits = asked.limits<std::int64_t>(wanted);
    return asked.run([&] {
        Clock<std::int64_t> clock(limits, every_time);
        return packed({rows, pairs, bottom, top, alignment}, least, tries, clock);
    });
}

// The least live bytes of a state that has made `made` rows of the operator, and all that they need, and no more of it.
Bytes least(const std::vector<Operator>& operators, bool share, Id maker, int made) {
    const Graph graph(operators, share);
    if (maker >= graph.size() || made < 0 || made >= graph[maker].steps) throw std::invalid_argument("rows: no such step");
    std::vector<Need> from = graph.needs(maker, made);
    from.push_back({maker, made});
    return Cuts(graph).least(from, std::pair(maker, made)).live;
}

}  // namespace

void bind(nb::module_& m) {
    given<Operand>(m, "RowOperand", Field("maker", &Operand::maker), Field("windows", &Operand::windows),
                   Field("distance", &Operand::distance));
    given<Operator>(m, "RowOperator", Field("steps", &Operator::steps), Field("bytes", &Operator::bytes),
                    Field("kept", &Operator::kept), Field("held", &Operator::held), Field("anew", &Operator::anew),
                    Field("operands", &Operator::operands));
    given<Rules>(m, "RowRules", Field("free_steps", &Rules::free_steps), Field("valley", &Rules::valley),
                 Field("cuts", &Rules::cuts));
    given<Rectangle>(m, "RowRectangle", Field("made", &Rectangle::made), Field("read", &Rectangle::read),
                     Field("bytes", &Rectangle::bytes));
    given<Pair>(m, "RowPair", Field("under", &Pair::under), Field("over", &Pair::over), Field("distance", &Pair::distance));
    answer<Found>(m, "RowsFound", Field("peak", &Found::peak), Field("bound", &Found::bound),
                  Field("complete", &Found::complete), Field("states", &Found::states),
                  Field("binding", &Found::binding), Field("binding_step", &Found::binding_step),
                  Field("schedule", &Found::schedule));
    answer<Packing>(m, "RowsPacked", Field("addresses", &Packing::addresses), Field("extent", &Packing::extent));
    m.def("rows_search", &found, nb::kw_only(), nb::arg("operators"), nb::arg("share"), nb::arg("rules"),
          nb::arg("most_states"), nb::arg("most_moves"), nb::arg("below"), nb::arg("limits"));
    m.def("rows_pack", &addresses, nb::kw_only(), nb::arg("rows"), nb::arg("pairs"), nb::arg("bottom"), nb::arg("top"),
          nb::arg("alignment"), nb::arg("least"), nb::arg("tries"), nb::arg("limits"));
    m.def("rows_least", &least, nb::kw_only(), nb::arg("operators"), nb::arg("share"), nb::arg("maker"), nb::arg("made"));
}

}  // namespace onchip::rows
