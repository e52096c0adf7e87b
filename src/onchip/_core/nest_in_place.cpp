#include "nest_in_place.h"

#include <algorithm>
#include <tuple>

#include "nest_sums.h"

namespace onchip::nests {

namespace {

// True if a buffer lies in the place of the output that lies over an input.
bool lies_over(const Group& group, const Shape& shape, const Kept& kept, Id buffer) {
    if (buffer == kept.over->output) return true;
    if (group.uses[buffer].size() != 2 || !group.inner(buffer)) return false;
    const Id reader = group.accesses[group.uses[buffer].back()].op;
    return replaced(group, shape, kept, reader) == buffer &&
           lies_over(group, shape, kept, group.operators[reader].writes.buffer);
}

// True if a home lies in a loop of the body, or pass, of another one.
bool further_in(const Home& home, const Home& place) {
    if (place.kind == Home::Kind::pass)
        return home.kind == Home::Kind::pass && home.pass == place.pass && home.level > place.level;
    return home.kind == Home::Kind::pass ? home.depth >= place.depth : home.depth > place.depth;
}

// True if an output that leaves may live in this body, whatever slides around.
bool may_keep(const Group& group, const Shape& shape, Id output, Id body) {
    if (!group.buffers[output].leaves) return false;
    for (Id l = 0; l < body; ++l)
        if (shape.slides(l) && !shape.windows[l]->may_share(output)) return false;
    return true;
}

}  // namespace

bool in_whole_place(const Group& group, const Shape& shape, const Kept& kept, Id buffer) {
    if (has(kept.whole, buffer)) return true;
    if (group.uses[buffer].size() != 2 || !group.inner(buffer)) return false;
    const Id reader = group.accesses[group.uses[buffer].back()].op;
    return replaced(group, shape, kept, reader) == buffer &&
           in_whole_place(group, shape, kept, group.operators[reader].writes.buffer);
}

bool goes_on(const Group& group, Id loop_class, const Access& read, const Access& written, bool sliding) {
    if (sliding) return read.cut[loop_class] >= 0 && read.cut[loop_class] == written.cut[loop_class];
    const std::vector<int>& axis = group.classes[loop_class].axis;
    for (std::size_t s = 0; s < read.axes.size(); ++s)
        if (read.axes[s] >= 0 && read.axes[s] == axis[read.op] && written.axes[s] == axis[written.op]) return true;
    return false;
}

bool read_before(const Group& group, const Shape& shape, Id input, Id writer, bool sliding) {
    const Access& written = group.accesses[group.of[writer].back()];
    return std::all_of(group.uses[input].begin(), group.uses[input].end(), [&](Id u) {
        const Access& read = group.accesses[u];
        const Id reader = read.op;
        if (reader == writer) return group.by_element(read, written);
        const Id body = std::min(shape.depth[reader], shape.depth[writer]);
        for (Id l = 0; l < body; ++l)
            if ((shape.slides(l) && !sliding) || !goes_on(group, shape.classes[l], read, written, shape.slides(l)))
                return false;
        const Id first = shape.item(reader, body), then = shape.item(writer, body);
        if (first != then) return first < then;
        const std::vector<Id>& pass = shape.passes[static_cast<Id>(shape.pass[writer])].classes;
        return reader < writer &&
               std::all_of(pass.begin(), pass.end(), [&](Id c) { return goes_on(group, c, read, written, false); });
    });
}

std::optional<Id> replaced(const Group& group, const Shape& shape, const Kept& kept, Id op) {
    if (!kept.in_place) return std::nullopt;
    const Id output = group.operators[op].writes.buffer;
    std::optional<Id> further;  // of several further in the one that takes most, for longest
    std::tuple<std::size_t, int> least;
    for (const Id operand : group.under[op]) {
        if (has(kept.whole, operand)) continue;
        // In the place of one that lies over an input, it is written over that, too.
        if (kept.over && lies_over(group, shape, kept, output) &&
            !read_before(group, shape, kept.over->input, static_cast<Id>(group.buffers[operand].maker), false))
            continue;
        // Where it holds wider sums, it lies apart.
        const auto narrow = [&](std::size_t loops) { return !sums_of(group, shape, operand, loops).wide; };
        if (in_whole_place(group, shape, kept, output)) {
            if (narrow(0)) return operand;
            continue;
        }
        const Home home = deepest_home(group, shape, operand);
        if (!group.inner(output)) {
            if (may_keep(group, shape, output, home.depth) && !group.widens(operand)) return operand;
            continue;
        }
        const Home place = deepest_home(group, shape, output);
        if (home == place) {
            if (narrow(above(home))) return operand;
        } else if (further_in(home, place) && !shape.slides() && !group.widens(operand)) {
            const std::tuple rank(above(home), group.buffers[operand].maker);
            if (!further || rank < least) further = operand, least = rank;
        }
    }
    return further;
}

bool gone_under(const Group& group, const Shape& shape, const Kept& kept, Id operand) {
    if (!group.inner(operand) || group.uses[operand].size() != 2) return false;
    const Id reader = group.accesses[group.uses[operand].back()].op;
    const Id output = group.operators[reader].writes.buffer;
    if (!group.inner(output) || replaced(group, shape, kept, reader) != operand) return false;
    return deepest_home(group, shape, operand) != deepest_home(group, shape, output) ||
           gone_under(group, shape, kept, output);
}

}  // namespace onchip::nests
