// Binds the searches that play schedules of any number of networks and units.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>

#include "bindings.h"
#include "corun_branch.h"
#include "corun_local.h"
#include "stop.h"

namespace onchip::corun {

namespace {

using Numbers = std::vector<double>;
using Ids = std::vector<std::uint32_t>;
// units, work, gb, move; row, before (-1: none), gates
using TaskRows = std::tuple<std::size_t, Numbers, Numbers, Numbers, Ids, std::vector<std::int64_t>, std::vector<Ids>>;

Tasks tasks_of(const TaskRows& rows) {
    Tasks tasks;
    std::vector<std::int64_t> before;
    std::tie(tasks.units, tasks.work, tasks.gb, tasks.move, tasks.row, before, tasks.gates) = rows;
    for (std::int64_t b : before) tasks.before.push_back(b < 0 ? no_task : static_cast<Task>(b));
    tasks.check();
    return tasks;
}

// Ctrl-C raises wherever Python happens to run, so also here. It is a wish to end and no answer: the question is
// asked again, lest a search goes by a wrong slowdown. One that does not get through a second time has failed.
Slowdowns::Model model_of(Asked& asked, const nb::callable& slowdown) {
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
    Dispatcher(const TaskRows& rows, nb::callable slowdown)
        : slowdown_(std::move(slowdown)), tasks_(tasks_of(rows)), slow_(tasks_, model_of(asked_, slowdown_)),
          player_(tasks_, slow_) {}
    Dispatcher(const Dispatcher&) = delete;
    Dispatcher& operator=(const Dispatcher&) = delete;

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
    const nb::callable slowdown_;
    const Tasks tasks_;
    Asked asked_;
    Slowdowns slow_;
    Player player_;
};

nb::dict local_search(const TaskRows& rows, const nb::callable& slowdown, const std::vector<Ids>& token_tasks,
                      const Ids& chain, const Ids& lag, const std::string& aim_kind, const std::vector<Ids>& last,
                      const std::vector<Ids>& firsts, bool pipelined,
                      const std::vector<std::pair<std::vector<std::uint8_t>, Ids>>& starts, std::uint64_t tries,
                      std::optional<double> seconds, std::uint64_t seed, nb::object stop) {
    const Tasks tasks = tasks_of(rows);
    const Stream stream{token_tasks, chain, lag};
    if (chain.size() != token_tasks.size() || lag.size() != token_tasks.size() || token_tasks.empty() ||
        last.empty() || last.front().empty() || firsts.size() != last.size())
        throw std::invalid_argument("corun: lengths of a stream");
    Aim aim;
    aim.kind = aim_kind == "latency" ? Aim::latency : aim_kind == "throughput" ? Aim::throughput : Aim::rates;
    aim.last = last, aim.firsts = firsts, aim.pipelined = pipelined;
    std::vector<Candidate> candidates;
    for (const auto& [unit, sequence] : starts) candidates.push_back({unit, sequence});
    Asked asked;
    const auto limits = asked.limits<LocalProgress>(seconds, 0, std::move(stop));
    Slowdowns slow(tasks, model_of(asked, slowdown));
    const auto [outcome, order] = asked.run([&] {
        const LocalOutcome found = improve(tasks, slow, stream, aim, candidates, tries, seed, limits);
        return std::pair(found, order_of(tasks, stream, found.best));
    });
    nb::dict result;
    result["unit"] = nb::cast(outcome.best.unit);
    result["sequence"] = nb::cast(outcome.best.sequence);
    result["order"] = nb::cast(order);
    result["value"] = outcome.value;
    result["tries"] = outcome.tries;
    result["end"] = name_of(outcome.end);
    return result;
}

nb::dict chain_schedule(const TaskRows& rows, const nb::callable& slowdown, const std::vector<std::size_t>& first,
                        bool yields, std::optional<int> switches, bool rates, double upper, std::uint64_t nodes,
                        std::optional<double> seconds, nb::object stop) {
    const Chains chains{tasks_of(rows), first};
    chains.check();
    Asked asked;
    BranchOptions options;
    options.yields = yields, options.switches = switches.value_or(-1), options.rates = rates;
    options.upper = upper, options.nodes = nodes;
    const auto limits = asked.limits<std::uint64_t>(seconds, 0, std::move(stop));
    Slowdowns slow(chains.tasks, model_of(asked, slowdown));
    const BranchOutcome outcome = asked.run([&] { return branch(chains, slow, options, limits); });
    std::vector<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> starts;
    for (const Start& s : outcome.starts) starts.emplace_back(s.net, s.group, s.unit);
    nb::dict result;
    result["value"] = outcome.value;
    result["bound"] = outcome.bound;
    result["starts"] = nb::cast(starts);
    result["end"] = name_of(outcome.end);
    result["nodes"] = outcome.nodes;
    return result;
}

}  // namespace

void bind(nb::module_& m) {
    nb::class_<Dispatcher>(m, "Dispatcher")
        .def(nb::init<const TaskRows&, nb::callable>(), nb::kw_only(), nb::arg("tasks"), nb::arg("slowdown"))
        .def("first_ready", &Dispatcher::first_ready, nb::kw_only(), nb::arg("unit"), nb::arg("rank"));
    m.def("local_search", &local_search, nb::kw_only(), nb::arg("tasks"), nb::arg("slowdown"), nb::arg("token_tasks"),
          nb::arg("chain"), nb::arg("lag"), nb::arg("aim"), nb::arg("last"), nb::arg("firsts"), nb::arg("pipelined"),
          nb::arg("starts"), nb::arg("tries"), nb::arg("seconds").none(), nb::arg("seed"), nb::arg("stop").none());
    m.def("chain_schedule", &chain_schedule, nb::kw_only(), nb::arg("tasks"), nb::arg("slowdown"), nb::arg("first"),
          nb::arg("yields"), nb::arg("switches").none(), nb::arg("rates"), nb::arg("upper"), nb::arg("nodes"),
          nb::arg("seconds").none(), nb::arg("stop").none());
}

}  // namespace onchip::corun
