// What a search asks Python while it runs without the interpreter's lock, and what Python raised meanwhile.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "clock.h"

namespace onchip {

namespace nb = nanobind;

// Limits as Python makes them. `stop` hears of a search's progress.
struct Wanted {
    std::optional<double> seconds;  // none: no limit
    std::size_t memory;
    std::optional<nb::typed<nb::callable, bool(...)>> stop;
};

class Asked {
  public:
    Asked() = default;
    Asked(const Asked&) = delete;
    Asked& operator=(const Asked&) = delete;

    // Limits by which the caller may stop. Python runs its signal handlers while it is asked, so Ctrl-C arrives
    // there: it is a wish to end, too. So is an error, which `run` raises.
    template <class Progress>
    Limits<Progress> limits(const Wanted& wanted) {
        return {wanted.seconds.value_or(-1), wanted.memory, [this, &stop = wanted.stop](const Progress& progress) {
                    if (failed_ || interrupted_) return true;
                    nb::gil_scoped_acquire gil;
                    try {
                        if (PyErr_CheckSignals() != 0) throw nb::python_error();
                        if (!stop) return false;
                        return std::apply([&](auto... figures) { return nb::cast<bool>((*stop)(figures...)); },
                                          figures_of(progress));
                    } catch (nb::python_error& error) {
                        keep(error);
                        return true;
                    }
                }};
    }
    // Keeps what Python has just raised. Ctrl-C is a wish to end where somebody can go on without an answer.
    void keep(nb::python_error& error, bool can_go_on = true) {
        (can_go_on && error.matches(PyExc_KeyboardInterrupt) ? interrupted_ : failed_).emplace(std::move(error));
    }
    bool failed() const { return failed_.has_value(); }

    // What `search` finds without the interpreter's lock; raises what Python raised but for Ctrl-C, after which a
    // search has the best so far.
    template <class Search>
    auto run(Search search) {
        auto found = [&] {
            nb::gil_scoped_release release;
            return search();
        }();
        rethrow(failed_);
        return found;
    }
    // The same of what nothing is worth that Ctrl-C ended.
    template <class Search>
    auto run_through(Search search) {
        auto found = run(std::move(search));
        rethrow(interrupted_);
        return found;
    }
    // Of what ran with the lock.
    void rethrow_all() {
        rethrow(failed_);
        rethrow(interrupted_);
    }

  private:
    template <class Progress>
    static auto figures_of(const Progress& progress) {
        if constexpr (std::is_arithmetic_v<Progress>) return std::tuple(progress);
        else return progress.figures();
    }
    static void rethrow(std::optional<nb::python_error>& raised) {
        if (!raised) return;
        nb::python_error error = std::move(*raised);
        raised.reset();
        throw error;
    }

    std::optional<nb::python_error> failed_, interrupted_;
};

}  // namespace onchip
