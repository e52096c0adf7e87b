#include "nest_shape.h"

#include <algorithm>
#include <bit>

namespace onchip::nests {

int side_cut(const Group& group, std::span<const Id> uses, Id loop_class) {
    const int side = group.accesses[uses[0]].cut[loop_class];
    for (const Id u : uses)
        if (group.accesses[u].cut[loop_class] != side) return -1;
    return side;
}

Id level_of(const Group& group, std::span<const Id> uses, const Pass& pass) {
    Id level = 0;
    while (level < pass.classes.size() && side_cut(group, uses, pass.classes[level]) >= 0) ++level;
    return level;
}

int common_pass(const Group& group, const Shape& shape, std::span<const Id> uses) {
    const int pass = shape.pass[group.accesses[uses[0]].op];
    for (const Id u : uses)
        if (shape.pass[group.accesses[u].op] != pass) return -1;
    return pass;
}

const Rows& rows(const Group& group, const Turned& turned, std::span<const Id> uses, bool ring) {
    const Shared& shared = turned.shared[group.accesses[uses[0]].buffer];
    if (ring) return shared.ring;
    return uses.size() == 1 ? turned.own[uses[0]] : shared.anew;
}

Home deepest_home(const Group& group, const Shape& shape, Id buffer) {
    const std::span<const Id> uses = group.uses[buffer];
    Id body = static_cast<Id>(shape.loops());
    for (const Id u : uses) body = std::min(body, shape.depth[group.accesses[u].op]);
    const int in = common_pass(group, shape, uses);
    const Id level = in < 0 ? 0 : level_of(group, uses, shape.passes[static_cast<Id>(in)]);
    if (level == 0) return {Home::Kind::body, body, 0, 0};
    return {Home::Kind::pass, body, static_cast<Id>(in), level};
}

Id Shape::item(Id op, Id body) const {
    const Id count = static_cast<Id>(depth.size());
    if (depth[op] > body) return count;
    const int in = pass[op];
    const Id at = in < 0 ? op : static_cast<Id>(std::countr_zero(passes[static_cast<Id>(in)].members));
    return has(after, op) ? count + 1 + at : at;
}

Set inside(const Shape& shape, Id depth) {
    Set found = 0;
    for (Id o = 0; o < shape.depth.size(); ++o)
        if (shape.depth[o] >= depth) found |= one(o);
    return found;
}

Home private_home(const Group& group, const Shape& shape, Id use) {
    const Id op = group.accesses[use].op;
    const int in = shape.pass[op];
    if (in < 0) return {Home::Kind::own, 0, 0, 0};
    const Pass& pass = shape.passes[static_cast<Id>(in)];
    const Id level = level_of(group, {&use, 1}, pass);
    if (level == pass.classes.size()) return {Home::Kind::own, 0, 0, 0};
    if (level > 0) return {Home::Kind::pass, shape.depth[op], static_cast<Id>(in), level};
    return {Home::Kind::body, shape.depth[op], 0, 0};
}

Term tile(const Group& group, const Shape& shape, std::span<const Id> uses, Id depth, const Pass* pass, Id level,
          const Frame* frame, bool ring) {
    const Buffer& buffer = group.buffers[group.accesses[uses[0]].buffer];
    Term term{buffer.element, 0};
    Set cut = 0;  // sides
    for (Id l = 0; pass && l < level; ++l) cut |= one(static_cast<Id>(side_cut(group, uses, pass->classes[l])));
    for (Id l = 0; l < depth; ++l) {
        const int side = side_cut(group, uses, shape.classes[l]);
        if (side < 0 || has(cut, static_cast<Id>(side))) continue;
        cut |= one(static_cast<Id>(side));
        if (frame && frame->turned[l])
            term.bytes = times(term.bytes, rows(group, *frame->turned[l], uses, ring && l + 1 == depth).held);
        else term.loops |= 1u << l;
    }
    for (std::size_t s = 0; s < buffer.sides.size(); ++s)
        if (!has(cut, s)) term.bytes = times(term.bytes, buffer.sides[s]);
    return term;
}

Term tile(const Group& group, const Shape& shape, Id use, Set slices, const Frame* frame) {
    const Access& access = group.accesses[use];
    const Buffer& buffer = group.buffers[access.buffer];
    Term term{buffer.element, 0};
    for (std::size_t s = 0; s < buffer.sides.size(); ++s) {
        const int axis = access.axes[s];
        if (axis >= 0 && has(slices, static_cast<Id>(axis))) continue;
        Bytes side = buffer.sides[s];
        for (Id l = 0; l < shape.depth[access.op]; ++l)
            if (access.cut[shape.classes[l]] == static_cast<int>(s)) {
                const Turned* turned = frame ? frame->turned[l] : nullptr;
                if (!turned) term.loops |= 1u << l;
                side = turned ? turned->own[use].held : 1;
            }
        term.bytes = times(term.bytes, side);
    }
    return term;
}

}  // namespace onchip::nests
