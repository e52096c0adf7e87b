#include "nest_open.h"

#include <algorithm>

namespace onchip::nests {

namespace {

// Of more shapes, or with more parts open, those of a shape are looked at one after the other.
constexpr std::size_t most_open = 200'000;

}  // namespace

OpenParts::OpenParts(const Group& group, const Settings& settings, Orders& orders, Best& best, std::uint64_t& looks,
                     const std::function<bool()>& over)
    : group_(group), settings_(settings), orders_(orders), best_(best), looks_(looks), over_(over) {}

void OpenParts::add(Bytes bound, std::size_t shape, Part part) {
    if (bound < best_.bytes) open_.push({bound, ties_++, shape, std::move(part)});
}

void OpenParts::add(const Shape& shape) {
    Bytes bound = unlimited;
    Part part;
    if (shape.slides()) {
        Framing framing(group_, settings_, orders_, shape, best_, looks_, over_);
        part = framing.all();
        bound = framing.bound(part, best_.bytes);
    } else {
        ++looks_;
        Homes homes(group_, settings_, orders_, shape, nullptr);
        if (homes.possible()) bound = homes.bound(best_.bytes);
    }
    if (bound >= best_.bytes) return;
    if (shapes_.size() >= most_open) return search(shape, part);
    shapes_.push_back(shape);
    add(bound, shapes_.size() - 1, std::move(part));
}

void OpenParts::look() {
    while (!open_.empty() && !over_()) {
        if (open_.top().bound >= best_.bytes) {
            open_ = {};
            return;
        }
        const Open at = open_.top();
        open_.pop();
        look(at);
        if (over_()) open_.push(at);  // perhaps not to its end
    }
}

void OpenParts::search(const Shape& shape, const Part& part) {
    ++looks_;
    if (shape.slides()) Framing(group_, settings_, orders_, shape, best_, looks_, over_).search(part);
    else Homes(group_, settings_, orders_, shape, nullptr).search(best_, {looks_, over_});
}

// Looks at a part, or at what its parts let cross at least.
void OpenParts::look(const Open& at) {
    const Shape& shape = shapes_[at.shape];
    if (!shape.slides() || open_.size() > most_open) return search(shape, at.part);
    Framing framing(group_, settings_, orders_, shape, best_, looks_, over_);
    if (framing.decided(at.part)) return search(shape, at.part);
    std::vector<Part> parts = framing.parts(at.part);
    for (std::size_t i = parts.size(); i-- > 0;) {
        const Bytes bound = framing.decided(parts[i]) ? at.bound : framing.bound(parts[i], best_.bytes);
        add(std::max(at.bound, bound), at.shape, std::move(parts[i]));
    }
}

}  // namespace onchip::nests
