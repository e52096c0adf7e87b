// Binds the packing searches.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "bindings.h"
#include "border.h"
#include "pack_greedy.h"
#include "pack_search.h"
#include "stop.h"

ONCHIP_NAMES(onchip::pack::Outcome, "packed", "infeasible", "unknown")

namespace onchip::pack {
namespace {

using Ints = std::vector<std::int64_t>;
using Buffers = std::vector<Buffer>;

// Offsets and extent in bytes; none where nothing was packed.
struct Packed {
    Ints offsets;
    std::int64_t extent = 0;
};

struct Found {
    Outcome status = Outcome::unknown;
    Ints offsets;
    std::int64_t nodes = 0;
};

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

Ints in_bytes(const Instance& instance, const Ints& offsets) {
    Ints result(offsets.size());
    for (int b = 0; b < instance.buffers; ++b) result[instance.original[b]] = offsets[b] * instance.unit;
    return result;
}

Packed packed(const Instance& instance, const Greedy& found) {
    return {in_bytes(instance, found.offsets), instance.buffers ? found.extent * instance.unit : 0};
}

Packed greedy(const Buffers& buffers, std::int64_t enough, const Rules& rules) {
    nb::gil_scoped_release release;
    const Instance instance(buffers, enough, rules);
    return packed(instance, pack_greedily(instance, instance.capacity));
}

// Reads the time whenever a search asks, which is seldom; the caller hears at once that it has begun.
constexpr Pace seldom{.calls = 1, .at_once = true};

Packed blame(const Buffers& buffers, std::int64_t capacity, const Rules& rules, std::uint64_t seed, int tries,
             const Wanted& wanted) {
    Asked asked;
    const auto limits = asked.limits<std::int64_t>(wanted);
    return asked.run_through([&] {
        const Instance instance(buffers, capacity, rules);
        Clock<std::int64_t> clock(limits, seldom);
        return packed(instance, pack_by_blame(instance, tries, seed, clock));
    });
}

Found search(const Buffers& buffers, std::int64_t capacity, const Rules& rules, std::uint64_t seed,
             std::optional<std::int64_t> nodes, const Wanted& wanted) {
    Asked asked;
    const auto limits = asked.limits<std::int64_t>(wanted);
    return asked.run_through([&]() -> Found {
        const Instance instance(buffers, capacity, rules);
        Clock<std::int64_t> clock(limits, seldom);
        Search tree(instance, rules, seed, clock);
        const Outcome status = tree.run(nodes.value_or(std::numeric_limits<std::int64_t>::max()));
        return {status, status == Outcome::packed ? in_bytes(instance, tree.offsets()) : Ints{}, tree.nodes()};
    });
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
    answer<Packed>(m, "Packed", Field("offsets", &Packed::offsets), Field("extent", &Packed::extent));
    answer<Found>(m, "PackFound", Field("status", &Found::status), Field("offsets", &Found::offsets),
                  Field("nodes", &Found::nodes));
    m.def("pack_greedy", &greedy, nb::kw_only(), nb::arg("buffers"), nb::arg("enough"), nb::arg("rules"));
    m.def("pack_by_blame", &blame, nb::kw_only(), nb::arg("buffers"), nb::arg("capacity"), nb::arg("rules"),
          nb::arg("seed"), nb::arg("tries"), nb::arg("limits"));
    m.def("pack_search", &search, nb::kw_only(), nb::arg("buffers"), nb::arg("capacity"), nb::arg("rules"),
          nb::arg("seed"), nb::arg("nodes").none(), nb::arg("limits"));
}

}  // namespace onchip::pack
