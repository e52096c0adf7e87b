// Binds the packing searches.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <utility>
#include <vector>

#include "bindings.h"
#include "border.h"
#include "pack_decide.h"
#include "pack_greedy.h"
#include "pack_large.h"
#include "stop.h"

ONCHIP_NAMES(onchip::pack::Outcome, "packed", "infeasible", "unknown")
ONCHIP_NAMES(onchip::pack::Method, "bound", "greedy", "search", "repair")

namespace onchip::pack {
namespace {

using Buffers = std::vector<Buffer>;

Buffer buffer(std::vector<std::pair<std::int64_t, std::int64_t>> live, std::int64_t size, std::int64_t alignment,
              std::optional<std::int64_t> offset) {
    constexpr std::int64_t most = std::int64_t{1} << 50;  // sums of two never overflow
    if (live.empty()) throw nb::value_error("not a live range");
    for (std::size_t i = 0; i < live.size(); ++i)
        if (live[i].first >= live[i].second || (i && live[i].first < live[i - 1].second))
            throw nb::value_error("not a live range");
    const std::int64_t at = offset.value_or(-1);
    if (size < 1 || size > most || alignment < 1 || alignment > most || (offset && (at < 0 || at > most || at % alignment)))
        throw nb::value_error("not a buffer");
    return {std::move(live), size, alignment, at};
}

Addresses greedy(const Buffers& buffers, std::int64_t enough, const Rules& rules) {
    nb::gil_scoped_release release;
    const Instance instance(buffers, enough, rules);
    const Greedy found = pack_greedily(instance, instance.capacity);
    return {instance.in_bytes(found.offsets), instance.buffers ? found.extent * instance.unit : 0};
}

Addresses best_fit(const Buffers& buffers) {
    nb::gil_scoped_release release;
    return allocate(buffers);
}

Decision decision(const Buffers& buffers, std::int64_t capacity, const Rules& rules, std::uint64_t seed,
                  const Effort& effort, const Wanted& wanted) {
    Asked asked;
    const auto limits = asked.limits<std::int64_t>(wanted);
    return asked.run_through([&] { return decide(buffers, capacity, rules, seed, effort, limits); });
}

}  // namespace

void bind(nb::module_& m) {
    nb::class_<Buffer>(m, "PackBuffer")
        .def(
            "__init__",
            [](Buffer* self, std::vector<std::pair<std::int64_t, std::int64_t>> live, std::int64_t size,
               std::int64_t alignment, std::optional<std::int64_t> offset) {
                new (self) Buffer(buffer(std::move(live), size, alignment, offset));
            },
            nb::kw_only(), nb::arg("live"), nb::arg("size"), nb::arg("alignment"), nb::arg("offset").none());
    given<Rules>(m, "PackRules", Field("divide", &Rules::divide), Field("cliques", &Rules::cliques),
                 Field("section_bound", &Rules::section_bound), Field("canonical_skip", &Rules::canonical_skip),
                 Field("boundary", &Rules::boundary), Field("symmetry", &Rules::symmetry),
                 Field("decompose", &Rules::decompose), Field("table", &Rules::table),
                 Field("backjump", &Rules::backjump), Field("restarts", &Rules::restarts),
                 Field("last_conflict", &Rules::last_conflict));
    given<Effort>(m, "PackEffort", Field("greedy", &Effort::greedy), Field("search", &Effort::search),
                  Field("repair", &Effort::repair), Field("nodes", &Effort::nodes),
                  Field("last_nodes", &Effort::last_nodes), Field("share", &Effort::share));
    answer<Addresses>(m, "PackAddresses", Field("offsets", &Addresses::offsets), Field("extent", &Addresses::extent));
    answer<Decision>(m, "PackDecision", Field("status", &Decision::status), Field("offsets", &Decision::offsets),
                     Field("nodes", &Decision::nodes), Field("method", &Decision::method));
    m.def("pack_greedy", &greedy, nb::kw_only(), nb::arg("buffers"), nb::arg("enough"), nb::arg("rules"));
    m.def("pack_allocate", &best_fit, nb::kw_only(), nb::arg("buffers"));
    m.def(
        "pack_is_large", [](const Buffers& buffers, std::int64_t most) { return is_large(buffers, most); },
        nb::kw_only(), nb::arg("buffers"), nb::arg("most") = most_overlaps);
    m.def("pack_decide", &decision, nb::kw_only(), nb::arg("buffers"), nb::arg("capacity"), nb::arg("rules"),
          nb::arg("seed"), nb::arg("effort"), nb::arg("limits"));
}

}  // namespace onchip::pack
