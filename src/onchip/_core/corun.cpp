// Binds the searches that play schedules of any number of networks and units.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "bindings.h"
#include "border.h"
#include "corun_branch.h"
#include "corun_local.h"
#include "stop.h"

ONCHIP_NAMES(onchip::corun::Aim::Kind, "latency", "throughput", "rates")

namespace onchip::corun {

namespace {

using Numbers = std::vector<double>;
using Ids = std::vector<std::uint32_t>;
using Slowdown = nb::typed<nb::callable, double(int, double, double)>;

// Ctrl-C raises wherever Python happens to run, so also here. It is a wish to end and no answer: the question is
// asked again, lest a search goes by a wrong slowdown. One that does not get through a second time has failed.
Slowdowns::Model model_of(Asked& asked, const Slowdown& slowdown) {
    return [&asked, &slowdown](std::size_t unit, double requested, double external) {
        nb::gil_scoped_acquire gil;
        for (int attempt = 0; attempt < 2 && !asked.failed(); ++attempt) {
            try {
                return nb::cast<double>(slowdown(unit, requested, external));
            } catch (nb::python_error& error) {
                asked.keep(error, attempt == 0);
            }
        }
        return 1.0;
    };
}

// Dispatches any number of mappings of the same tasks: who is ready first runs first.
class Dispatcher {
  public:
    Dispatcher(const Tasks& tasks, Slowdown slowdown)
        : slowdown_(std::move(slowdown)), tasks_(tasks), slow_(tasks_, model_of(asked_, slowdown_)),
          player_(tasks_, slow_) {}
    Dispatcher(const Dispatcher&) = delete;
    Dispatcher& operator=(const Dispatcher&) = delete;

    // Tasks in the order in which they begin, and when each ends.
    std::pair<Ids, Numbers> first_ready(const std::vector<std::uint8_t>& unit, const Ids& rank) {
        if (unit.size() != tasks_.count() || rank.size() != tasks_.count())
            throw std::invalid_argument("corun: lengths of a mapping");
        for (Task t = 0; t < tasks_.count(); ++t)
            if (unit[t] >= tasks_.units || !tasks_.runs_on(t, unit[t])) throw std::invalid_argument("corun: a mapping");
        Order order;
        Numbers ends;
        std::vector<Task> starts;
        player_.dispatch(unit, rank, order, ends, starts);
        asked_.rethrow_all();
        return {starts, ends};
    }

  private:
    const Slowdown slowdown_;
    const Tasks tasks_;
    Asked asked_;
    Slowdowns slow_;
    Player player_;
};

LocalOutcome local_search(const Tasks& tasks, const Slowdown& slowdown, const Stream& stream, const Aim& aim,
                          const std::vector<Candidate>& starts, std::uint64_t tries, std::uint64_t seed,
                          const Wanted& wanted) {
    Asked asked;
    const auto limits = asked.limits<LocalProgress>(wanted);
    Slowdowns slow(tasks, model_of(asked, slowdown));
    return asked.run([&] { return improve(tasks, slow, stream, aim, starts, tries, seed, limits); });
}

BranchOutcome chain_schedule(const Tasks& tasks, const Slowdown& slowdown, const std::vector<std::size_t>& first,
                             const BranchOptions& options, const Wanted& wanted) {
    const Chains chains{tasks, first};
    chains.check();
    Asked asked;
    const auto limits = asked.limits<std::uint64_t>(wanted);
    Slowdowns slow(chains.tasks, model_of(asked, slowdown));
    return asked.run([&] { return branch(chains, slow, options, limits); });
}

}  // namespace

void bind(nb::module_& m) {
    nb::class_<Tasks>(m, "CorunTasks")
        .def(
            "__init__",
            [](Tasks* self, std::size_t units, Numbers work, Numbers gb, Numbers move, Ids row,
               const std::vector<std::optional<Task>>& before, std::vector<Ids> gates) {
                Tasks tasks{units, std::move(work), std::move(gb), std::move(move), std::move(row), {}, std::move(gates)};
                for (const std::optional<Task> task : before) tasks.before.push_back(task.value_or(no_task));
                tasks.check();
                new (self) Tasks(std::move(tasks));
            },
            nb::kw_only(), nb::arg("units"), nb::arg("work"), nb::arg("gb"), nb::arg("move"), nb::arg("row"),
            nb::arg("before"), nb::arg("gates"));
    given<Stream>(m, "CorunStream", Field("task", &Stream::task), Field("chain", &Stream::chain),
                  Field("lag", &Stream::lag));
    given<Aim>(m, "CorunAim", Field("kind", &Aim::kind), Field("last", &Aim::last), Field("firsts", &Aim::firsts),
               Field("pipelined", &Aim::pipelined));
    given<Candidate>(m, "CorunCandidate", Field("unit", &Candidate::unit), Field("sequence", &Candidate::sequence))
        .def_ro("unit", &Candidate::unit)
        .def_ro("sequence", &Candidate::sequence);
    given<BranchOptions>(m, "ChainOptions", Field("yields", &BranchOptions::yields),
                         Field("switches", &BranchOptions::switches), Field("rates", &BranchOptions::rates),
                         Field("upper", &BranchOptions::upper), Field("nodes", &BranchOptions::nodes));
    answer<LocalOutcome>(m, "LocalSchedule", Field("best", &LocalOutcome::best), Field("order", &LocalOutcome::order),
                         Field("value", &LocalOutcome::value), Field("tries", &LocalOutcome::tries),
                         Field("end", &LocalOutcome::end));
    answer<BranchOutcome>(m, "ChainSchedule", Field("value", &BranchOutcome::value),
                          Field("bound", &BranchOutcome::bound), Field("starts", &BranchOutcome::starts),
                          Field("end", &BranchOutcome::end), Field("nodes", &BranchOutcome::nodes));
    nb::class_<Dispatcher>(m, "Dispatcher")
        .def(nb::init<const Tasks&, Slowdown>(), nb::kw_only(), nb::arg("tasks"), nb::arg("slowdown"))
        .def("first_ready", &Dispatcher::first_ready, nb::kw_only(), nb::arg("unit"), nb::arg("rank"));
    m.def("local_search", &local_search, nb::kw_only(), nb::arg("tasks"), nb::arg("slowdown"), nb::arg("stream"),
          nb::arg("aim"), nb::arg("starts"), nb::arg("tries"), nb::arg("seed"), nb::arg("limits"));
    m.def("chain_schedule", &chain_schedule, nb::kw_only(), nb::arg("tasks"), nb::arg("slowdown"), nb::arg("first"),
          nb::arg("options"), nb::arg("limits"));
}

}  // namespace onchip::corun
