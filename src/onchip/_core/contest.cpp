// The Python face of the contest's closed-form cost.
#include <nanobind/stl/array.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "border.h"
#include "contest_price.h"

ONCHIP_NAMES(onchip::contest::Axis, "tile", "depth", "whole")

namespace onchip::contest {

void bind(nb::module_& m) {
    given<Want>(m, "ContestWant", Field("tensor", &Want::tensor), Field("height", &Want::height),
                Field("width", &Want::width), Field("rows", &Want::rows), Field("columns", &Want::columns),
                Field("reach", &Want::reach), Field("late", &Want::late));
    given<Depth>(m, "ContestDepth", Field("reduction", &Depth::reduction), Field("per_element", &Depth::per_element),
                 Field("strips", &Depth::strips), Field("padded", &Depth::padded));
    given<Subgraph>(m, "ContestSubgraph", Field("height", &Subgraph::height), Field("width", &Subgraph::width),
                    Field("once", &Subgraph::once), Field("late", &Subgraph::late),
                    Field("depths", &Subgraph::depths),
                    Field("wants", &Subgraph::wants), Field("least_width", &Subgraph::least_width),
                    Field("least_height", &Subgraph::least_height), Field("most_depth", &Subgraph::most_depth),
                    Field("stored", &Subgraph::stored), Field("held", &Subgraph::held),
                    Field("room", &Subgraph::room), Field("bandwidth", &Subgraph::bandwidth),
                    Field("native", &Subgraph::native), Field("kept", &Subgraph::kept));
    answer<Tile>(m, "ContestTile", Field("latency", &Tile::latency), Field("width", &Tile::width),
                 Field("height", &Tile::height), Field("depth", &Tile::depth),
                 Field("by_columns", &Tile::by_columns), Field("from_right", &Tile::from_right),
                 Field("from_bottom", &Tile::from_bottom),
                 Field("turns", &Tile::turns));
    m.def(
        "contest_price",
        [](const Subgraph& subgraph, bool bound, double limit, std::optional<double> seconds) {
            nb::gil_scoped_release release;
            return price(subgraph, bound, limit, seconds);
        },
        nb::kw_only(), nb::arg("subgraph"), nb::arg("bound"), nb::arg("limit"), nb::arg("seconds").none());
}

}  // namespace onchip::contest
