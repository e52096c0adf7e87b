// Python's view of the packing search: plain lists in and out, the GIL released while it runs.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.h"
#include "pack_greedy.h"
#include "pack_search.h"

namespace nb = nanobind;

namespace onchip {
namespace {

using Ints = std::vector<std::int64_t>;
using Gaps = std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>>;
using Clock = std::chrono::steady_clock;

// Gaps are (first, last) times at which a buffer is not live, ascending and disjoint.
std::vector<pack::Buffer> buffers_of(const Ints& lower, const Ints& upper, const Ints& size,
                                     const Ints& alignment, const Ints& offset, const Gaps& gaps) {
    for (std::size_t n : {upper.size(), size.size(), alignment.size(), offset.size(), gaps.size()}) {
        if (n != lower.size()) throw nb::value_error("unequal lengths");
    }
    constexpr std::int64_t most = std::int64_t{1} << 50;  // sums of two never overflow
    std::vector<pack::Buffer> result;
    for (std::size_t i = 0; i < size.size(); ++i) {
        pack::Buffer b{{}, size[i], alignment[i], offset[i]};
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

Ints in_bytes(const pack::Instance& instance, const Ints& offsets) {
    Ints result(offsets.size());
    for (int b = 0; b < instance.buffers; ++b) result[instance.original[b]] = offsets[b] * instance.unit;
    return result;
}

std::tuple<Ints, std::int64_t> greedy(const Ints& lower, const Ints& upper, const Ints& size,
                                      const Ints& alignment, const Ints& offset, const Gaps& gaps, std::int64_t enough, const pack::Rules& rules) {
    const auto buffers = buffers_of(lower, upper, size, alignment, offset, gaps);
    nb::gil_scoped_release release;
    const pack::Instance instance(buffers, enough, rules);
    const pack::Greedy found = pack::pack_greedily(instance, instance.capacity);
    return {in_bytes(instance, found.offsets), buffers.empty() ? 0 : found.extent * instance.unit};
}

// Ends at a deadline, and lets Python see Ctrl-C and the progress callback ten times a second.
class Watch {
  public:
    Watch(std::optional<double> seconds, nb::object progress)
        : seconds_(seconds), progress_(std::move(progress)), start_(Clock::now()), next_(start_) {}

    bool operator()(std::int64_t done) {  // called without the GIL
        const auto now = Clock::now();
        if (seconds_ && std::chrono::duration<double>(now - start_).count() >= *seconds_) return true;
        if (now < next_) return false;
        next_ = now + std::chrono::milliseconds(100);
        nb::gil_scoped_acquire acquire;
        if (PyErr_CheckSignals() != 0) {
            raised_ = true;
        } else if (!progress_.is_none()) {
            PyObject* answer = PyObject_CallFunction(progress_.ptr(), "L", static_cast<long long>(done));
            raised_ = answer == nullptr;
            Py_XDECREF(answer);
        }
        return raised_;
    }

    void rethrow() const {
        if (raised_) throw nb::python_error();
    }

  private:
    std::optional<double> seconds_;
    nb::object progress_;
    Clock::time_point start_, next_;
    bool raised_ = false;
};

std::tuple<Ints, std::int64_t> blame(const Ints& lower, const Ints& upper, const Ints& size,
                                     const Ints& alignment, const Ints& offset, const Gaps& gaps, std::int64_t capacity, const pack::Rules& rules, std::uint64_t seed,
                                     int tries, std::optional<double> seconds, nb::object progress) {
    const auto buffers = buffers_of(lower, upper, size, alignment, offset, gaps);
    Watch watch(seconds, std::move(progress));
    std::tuple<Ints, std::int64_t> result;
    {
        nb::gil_scoped_release release;
        const pack::Instance instance(buffers, capacity, rules);
        const pack::Greedy found = pack::pack_by_blame(instance, tries, seed, std::ref(watch));
        result = {in_bytes(instance, found.offsets), buffers.empty() ? 0 : found.extent * instance.unit};
    }
    watch.rethrow();
    return result;
}

std::tuple<std::string, Ints, std::int64_t> search(const Ints& lower, const Ints& upper, const Ints& size,
                                                   const Ints& alignment, const Ints& offset, const Gaps& gaps, std::int64_t capacity, const pack::Rules& rules,
                                                   std::uint64_t seed, std::optional<double> seconds,
                                                   std::optional<std::int64_t> node_limit,
                                                   nb::object progress) {
    const auto buffers = buffers_of(lower, upper, size, alignment, offset, gaps);
    Watch watch(seconds, std::move(progress));
    pack::Outcome outcome;
    Ints offsets;
    std::int64_t nodes = 0;
    {
        nb::gil_scoped_release release;
        const pack::Instance instance(buffers, capacity, rules);
        pack::Search search(instance, rules, seed, std::ref(watch));
        outcome = search.run(node_limit.value_or(std::numeric_limits<std::int64_t>::max()));
        if (outcome == pack::Outcome::packed) offsets = in_bytes(instance, search.offsets());
        nodes = search.nodes();
    }
    watch.rethrow();
    constexpr const char* names[] = {"packed", "infeasible", "unknown"};
    return {names[static_cast<int>(outcome)], offsets, nodes};
}

}  // namespace

void bind_pack(nb::module_& m) {
    nb::class_<pack::Rules>(m, "PackRules")
        .def(nb::init<>())
        .def_rw("divide", &pack::Rules::divide)
        .def_rw("cliques", &pack::Rules::cliques)
        .def_rw("section_bound", &pack::Rules::section_bound)
        .def_rw("canonical_skip", &pack::Rules::canonical_skip)
        .def_rw("boundary", &pack::Rules::boundary)
        .def_rw("symmetry", &pack::Rules::symmetry)
        .def_rw("decompose", &pack::Rules::decompose)
        .def_rw("table", &pack::Rules::table)
        .def_rw("backjump", &pack::Rules::backjump)
        .def_rw("restarts", &pack::Rules::restarts)
        .def_rw("last_conflict", &pack::Rules::last_conflict);
    m.def("pack_greedy", &greedy, nb::arg("lower"), nb::arg("upper"), nb::arg("size"), nb::arg("alignment"), nb::arg("offset"), nb::arg("gaps"), nb::arg("enough"),
          nb::arg("rules"));
    m.def("pack_by_blame", &blame, nb::arg("lower"), nb::arg("upper"), nb::arg("size"), nb::arg("alignment"), nb::arg("offset"), nb::arg("gaps"), nb::arg("capacity"),
          nb::arg("rules"), nb::arg("seed"), nb::arg("tries"), nb::arg("seconds").none(),
          nb::arg("progress").none());
    m.def("pack_search", &search, nb::arg("lower"), nb::arg("upper"), nb::arg("size"), nb::arg("alignment"), nb::arg("offset"), nb::arg("gaps"), nb::arg("capacity"),
          nb::arg("rules"), nb::arg("seed"), nb::arg("seconds").none(), nb::arg("node_limit").none(),
          nb::arg("progress").none());
}

}  // namespace onchip
