// Binds the joint search. Operators go by their places in an order in which they can run.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bindings.h"
#include "border.h"
#include "joint_search.h"
#include "nest_search.h"
#include "stop.h"

namespace onchip::joint {

namespace {

// The search of a text, asked by the prices: the whole buffers, a room, and a limit that counts.
NestText asking(nests::Problem* problem, Bytes budget, std::uint64_t most_shapes, std::uint64_t in_order) {
    return {[problem, in_order](const NestWhole& whole, Bytes room, Bytes limit, std::uint64_t looks, const std::function<bool()>& stop) {
                Limits<nests::Progress> limits;
                if (stop) limits.stop = [&stop](const nests::Progress&) { return stop(); };
                nests::Answer answer = problem->best(whole.buffers, whole.over, room, std::min(limit, nests::unlimited), limits,
                                                     {looks, in_order});
                return NestSearched{std::move(answer.found), answer.end != End::complete, answer.end == End::nodes, answer.bound};
            },
            [problem, budget, most_shapes](const std::function<bool()>& stop) -> std::optional<bool> {
                Limits<nests::Progress> limits;
                if (stop) limits.stop = [&stop](const nests::Progress&) { return stop(); };
                const nests::Answer answer = problem->best(0, {}, budget, nests::unlimited, limits, {.most = most_shapes});
                if (answer.shapes > most_shapes) return false;
                return answer.end == End::complete ? std::optional(true) : std::nullopt;
            },
            most_shapes};
}

fusion::Limits limits_of(Asked& asked, const Wanted& wanted) { return {asked.limits<fusion::Progress>(wanted), 0, 0}; }

}  // namespace

void bind(nb::module_& m) {
    given<Rules>(m, "JointRules", Field("dominance", &Rules::dominance), Field("minimal", &Rules::minimal),
                 Field("ahead", &Rules::ahead), Field("incumbent", &Rules::incumbent));
    answer<Search::Priced>(m, "JointPriced", Field("worth", &Search::Priced::worth),
                           Field("columns", &Search::Priced::columns), Field("complete", &Search::Priced::complete));
    answer<Step>(m, "JointStep", Field("members", &Step::members), Field("whole", &Step::whole),
                 Field("evicted", &Step::evicted), Field("joined", &Step::joined))
        .def_prop_ro("over", [](const Step& self) { return self.over == no_id ? std::nullopt : std::optional(self.over); })
        .def_prop_ro("made", [](const Step& self) { return self.made == no_id ? std::nullopt : std::optional(self.made); })
        .def_prop_ro("plain", [](const Step& self) { return self.way.plain; })
        .def_prop_ro("nest", [](const Step& self) { return self.way.nest; })
        .def_prop_ro("cost", [](const Step& self) { return self.way.cost; });
    answer<Found>(m, "JointFound", Field("steps", &Found::steps), Field("bound", &Found::bound),
                  Field("complete", &Found::complete), Field("end", &Found::end), Field("states", &Found::states),
                  Field("downsets", &Found::downsets), Field("evaluated", &Found::evaluated),
                  Field("memory", &Found::memory), Field("hoped", &Found::hoped))
        .def_prop_ro("cost", [](const Found& self) { return self.cost < unlimited ? std::optional(self.cost) : std::nullopt; });
    given<NestGroup>(m, "JointNest", Field("members", &NestGroup::members), Field("text", &NestGroup::text),
                     Field("buffers", &NestGroup::buffers), Field("floor", &NestGroup::floor),
                     Field("windowed", &NestGroup::windowed), Field("over", &NestGroup::over));
    nb::class_<NestCosts>(m, "NestCosts")
        .def(
            "__init__",
            [](NestCosts* self, const std::vector<nests::Problem*>& texts, Bytes budget,
               const std::vector<std::uint64_t>& most_shapes, std::uint64_t looks, std::uint64_t in_order) {
                std::vector<NestText> asked;
                if (most_shapes.size() != texts.size()) throw std::invalid_argument("joint: most shapes of every text");
                for (std::size_t i = 0; i < texts.size(); ++i) asked.push_back(asking(texts[i], budget, most_shapes[i], in_order));
                new (self) NestCosts(std::move(asked), looks);
            },
            nb::keep_alive<1, 2>(), nb::kw_only(), nb::arg("texts"), nb::arg("budget"), nb::arg("most_shapes"),
            nb::arg("looks"), nb::arg("in_order"))
        .def("cut_texts", &NestCosts::cut_texts)
        .def("leave_out", &NestCosts::leave_out, nb::arg("texts"))
        .def("deepen", &NestCosts::deepen, nb::arg("looks"))
        .def("deepen_some", &NestCosts::deepen_some, nb::kw_only(), nb::arg("texts"), nb::arg("times"), nb::arg("most"))
        .def(
            "nest",
            [](NestCosts& self, std::uint32_t text, std::uint64_t whole, std::optional<std::pair<Id, Id>> over,
               Bytes room) -> std::optional<nests::Found> {
                if (text >= self.size()) throw std::invalid_argument("joint: a nest of no text");
                NestWhole kept{whole, {}};
                if (over) kept.over = nests::Over{over->first, over->second};
                const nests::Found* const found = self.nest(text, kept, room);
                return found ? std::optional(*found) : std::nullopt;
            },
            nb::kw_only(), nb::arg("text"), nb::arg("whole"), nb::arg("over").none(), nb::arg("room"));
    nb::class_<Search>(m, "Joint")
        .def(
            "__init__",
            [](Search* self, const fusion::Fuser& fuser, Bytes budget, std::vector<std::vector<Id>> over,
               std::vector<NestGroup> nests, NestCosts& costs, const std::vector<Id>& joins, const Rules& rules) {
                for (const Id op : joins)
                    if (op >= fuser.problem().operators.size()) throw std::invalid_argument("joint: no operator joins");
                if (over.size() != fuser.problem().operators.size())
                    throw std::invalid_argument("joint: what may be written over, for every operator");
                for (const NestGroup& group : nests)
                    if (group.text >= costs.size() || group.members.empty() ||
                        group.members.back() >= fuser.problem().operators.size())
                        throw std::invalid_argument("joint: a nest of no text, or of no operators");
                nb::gil_scoped_release release;
                new (self) Search(fuser, budget, std::move(over), std::move(nests), costs, joins, rules);
            },
            nb::keep_alive<1, 2>(), nb::keep_alive<1, 6>(), nb::kw_only(), nb::arg("fuser"), nb::arg("budget"),
            nb::arg("over"), nb::arg("nests"), nb::arg("costs"), nb::arg("joins"), nb::arg("rules"))
        .def(
            "prepare",
            [](Search& self, std::size_t most, std::optional<Bytes> below, const Wanted& wanted) {
                Asked asked;
                const fusion::Limits limits = limits_of(asked, wanted);
                return asked.run([&] { return self.prepare(most, below.value_or(unlimited), limits); });
            },
            nb::kw_only(), nb::arg("most"), nb::arg("below").none(), nb::arg("limits"))
        .def("forget_nests", &Search::forget_nests, nb::kw_only(), nb::arg("hopeful"))
        .def("untile", &Search::untile, nb::arg("members"))
        .def("least", &Search::least, nb::arg("op"))
        .def("misfits", &Search::misfits)
        .def("floor", &Search::floor)
        .def("worth", &Search::worth, nb::arg("of"))
        .def(
            "price",
            [](Search& self, std::vector<Bytes> worth, std::size_t most, const Wanted& wanted) {
                Asked asked;
                const fusion::Limits limits = limits_of(asked, wanted);
                return asked.run([&] { return self.price(std::move(worth), most, limits); });
            },
            nb::kw_only(), nb::arg("worth"), nb::arg("most"), nb::arg("limits"))
        .def(
            "search",
            [](Search& self, std::size_t width, std::optional<Bytes> below, std::uint64_t seed, const Wanted& wanted) {
                Asked asked;
                const fusion::Limits limits = limits_of(asked, wanted);
                return asked.run([&] { return self.pass(width, below.value_or(unlimited), seed, limits); });
            },
            nb::kw_only(), nb::arg("width"), nb::arg("below").none(), nb::arg("seed"), nb::arg("limits"));
}

}  // namespace onchip::joint
