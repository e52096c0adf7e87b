// Python's view of the packing search: plain lists in and out, the GIL released while it runs.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.h"
#include "pack_greedy.h"
#include "pack_search.h"
#include "stop.h"

namespace onchip::pack {
namespace {

using Ints = std::vector<std::int64_t>;
using Gaps = std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>>;

// Gaps are (first, last) times at which a buffer is not live, ascending and disjoint.
std::vector<Buffer> buffers_of(const Ints& lower, const Ints& upper, const Ints& size,
                                     const Ints& alignment, const Ints& offset, const Gaps& gaps) {
    for (std::size_t n : {upper.size(), size.size(), alignment.size(), offset.size(), gaps.size()}) {
        if (n != lower.size()) throw nb::value_error("unequal lengths");
    }
    constexpr std::int64_t most = std::int64_t{1} << 50;  // sums of two never overflow
    std::vector<Buffer> result;
    for (std::size_t i = 0; i < size.size(); ++i) {
        Buffer b{{}, size[i], alignment[i], offset[i]};
        std::int64_t from = lower[i];
        for (const auto& [begin, end] : gaps[i]) {
            if (begin < from || end <= begin || end > upper[i]) throw nb::value_error("not a gap");
            if (begin > from) b.live.emplace_back(from, begin);
            from = end;
        }
        if (upper[i] > from) b.live.emplace_back(from, upper[i]);
        if (b.live.empty() || b.size < 1 || b.size > most || b.alignment < 1 || b.alignment > most ||
            b.offset < -1 || b.offset > most || (b.offset >= 0 && b.offset % b.alignment != 0)) {
            throw nb::value_error("not a buffer");
        }
        result.push_back(std::move(b));
    }
    return result;
}

Ints in_bytes(const Instance& instance, const Ints& offsets) {
    Ints result(offsets.size());
    for (int b = 0; b < instance.buffers; ++b) result[instance.original[b]] = offsets[b] * instance.unit;
    return result;
}

std::tuple<Ints, std::int64_t> greedy(const Ints& lower, const Ints& upper, const Ints& size,
                                      const Ints& alignment, const Ints& offset, const Gaps& gaps, std::int64_t enough, const Rules& rules) {
    const auto buffers = buffers_of(lower, upper, size, alignment, offset, gaps);
    nb::gil_scoped_release release;
    const Instance instance(buffers, enough, rules);
    const Greedy found = pack_greedily(instance, instance.capacity);
    return {in_bytes(instance, found.offsets), buffers.empty() ? 0 : found.extent * instance.unit};
}

// Reads the time whenever a search asks, which is seldom; the caller hears at once that it has begun.
constexpr Pace seldom{.calls = 1, .at_once = true};

std::tuple<Ints, std::int64_t> blame(const Ints& lower, const Ints& upper, const Ints& size,
                                     const Ints& alignment, const Ints& offset, const Gaps& gaps, std::int64_t capacity, const Rules& rules, std::uint64_t seed,
                                     int tries, std::optional<double> seconds, nb::object stop) {
    const auto buffers = buffers_of(lower, upper, size, alignment, offset, gaps);
    Asked asked;
    const auto limits = asked.limits<std::int64_t>(seconds, 0, std::move(stop));
    return asked.run_through([&]() -> std::tuple<Ints, std::int64_t> {
        const Instance instance(buffers, capacity, rules);
        Clock<std::int64_t> clock(limits, seldom);
        const Greedy found = pack_by_blame(instance, tries, seed, clock);
        return {in_bytes(instance, found.offsets), buffers.empty() ? 0 : found.extent * instance.unit};
    });
}

std::tuple<std::string, Ints, std::int64_t> search(const Ints& lower, const Ints& upper, const Ints& size,
                                                   const Ints& alignment, const Ints& offset, const Gaps& gaps, std::int64_t capacity, const Rules& rules,
                                                   std::uint64_t seed, std::optional<double> seconds,
                                                   std::optional<std::int64_t> node_limit,
                                                   nb::object stop) {
    const auto buffers = buffers_of(lower, upper, size, alignment, offset, gaps);
    Asked asked;
    const auto limits = asked.limits<std::int64_t>(seconds, 0, std::move(stop));
    return asked.run_through([&]() -> std::tuple<std::string, Ints, std::int64_t> {
        constexpr const char* names[] = {"packed", "infeasible", "unknown"};
        const Instance instance(buffers, capacity, rules);
        Clock<std::int64_t> clock(limits, seldom);
        Search search(instance, rules, seed, clock);
        const Outcome outcome = search.run(node_limit.value_or(std::numeric_limits<std::int64_t>::max()));
        return {names[static_cast<int>(outcome)],
                outcome == Outcome::packed ? in_bytes(instance, search.offsets()) : Ints{}, search.nodes()};
    });
}

}  // namespace

void bind(nb::module_& m) {
    nb::class_<Rules>(m, "PackRules")
        .def(nb::init<>())
        .def_rw("divide", &Rules::divide)
        .def_rw("cliques", &Rules::cliques)
        .def_rw("section_bound", &Rules::section_bound)
        .def_rw("canonical_skip", &Rules::canonical_skip)
        .def_rw("boundary", &Rules::boundary)
        .def_rw("symmetry", &Rules::symmetry)
        .def_rw("decompose", &Rules::decompose)
        .def_rw("table", &Rules::table)
        .def_rw("backjump", &Rules::backjump)
        .def_rw("restarts", &Rules::restarts)
        .def_rw("last_conflict", &Rules::last_conflict);
    m.def("pack_greedy", &greedy, nb::arg("lower"), nb::arg("upper"), nb::arg("size"), nb::arg("alignment"), nb::arg("offset"), nb::arg("gaps"), nb::arg("enough"),
          nb::arg("rules"));
    m.def("pack_by_blame", &blame, nb::arg("lower"), nb::arg("upper"), nb::arg("size"), nb::arg("alignment"), nb::arg("offset"), nb::arg("gaps"), nb::arg("capacity"),
          nb::arg("rules"), nb::arg("seed"), nb::arg("tries"), nb::arg("seconds").none(),
          nb::arg("stop").none());
    m.def("pack_search", &search, nb::arg("lower"), nb::arg("upper"), nb::arg("size"), nb::arg("alignment"), nb::arg("offset"), nb::arg("gaps"), nb::arg("capacity"),
          nb::arg("rules"), nb::arg("seed"), nb::arg("seconds").none(), nb::arg("node_limit").none(),
          nb::arg("stop").none());
}

}  // namespace onchip::pack
