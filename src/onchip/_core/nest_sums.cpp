#include "nest_sums.h"

namespace onchip::nests {

FirstSum first_sum(const Group& group, const Shape& shape, Id buffer) {
    const Id maker = static_cast<Id>(group.buffers[buffer].maker);
    const auto sums = [&](Id loop_class) {
        const int axis = group.classes[loop_class].axis[maker];
        return axis >= 0 && has(group.summed[maker], static_cast<Id>(axis));
    };
    FirstSum found{std::nullopt, shape.depth[maker]};
    for (std::size_t l = 0; l < shape.depth[maker] && !found.loop; ++l)
        if (sums(shape.classes[l])) found.loop = l;
    if (const int in = shape.pass[maker]; in >= 0) {
        const std::vector<Id>& classes = shape.passes[static_cast<Id>(in)].classes;
        for (std::size_t i = 0; i < classes.size() && !found.loop; ++i)
            if (sums(classes[i])) found.loop = found.loops + i;
        found.loops += classes.size();
    }
    return found;
}

Sums sums_of(const Group& group, const Shape& shape, Id buffer, std::size_t above) {
    Sums found;
    if (!group.wider(buffer)) return found;
    const auto [first, loops] = first_sum(group, shape, buffer);
    if (!first) found.summing = loops > above || !group.widens(buffer) ? Summing::beside : Summing::behind;
    else if (*first > above) found.beside = *first;
    else found.wide = group.widens(buffer);
    return found;
}

}  // namespace onchip::nests
