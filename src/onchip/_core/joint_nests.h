// Groups that may run as nests of loops, and what the search of nests says of them: asked once for every
// pattern of whole operands and every room, and for groups of the same text together.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "joint_stairs.h"
#include "nest_search.h"

namespace onchip::joint {

// The bytes that cross beside whole operands, weights included, and the scratch of the best nest.
struct NestCost {
    Bytes crossing = 0, needs = 0;
};

// `cut`: the search ended before it had looked at everything, so there may be a better nest; `bound`: none lets less
// cross, nor, where nothing was found, than the limit or this.
struct NestAnswer {
    std::optional<NestCost> found;
    bool cut = false;
    Bytes bound = 0;
};

// `spent`: it was cut as it had looked at as much as it may.
struct NestSearched {
    std::optional<nests::Found> found;
    bool cut = false, spent = false;
    Bytes bound = 0;
};

// The buffers that lie on chip whole, and of which two one lies over the other, if any.
struct NestWhole {
    std::uint64_t buffers = 0;
    std::optional<nests::Over> over{};
    bool operator==(const NestWhole&) const = default;
};

// The search of one text.
struct NestText {
    // The best nest with the buffers of a mask whole, in a room, if it moves less than a limit. `stop` ends the search.
    // It looks at no more shapes, and tiles of loops along which windows slide, than `looks`.
    std::function<NestSearched(const NestWhole& whole, Bytes room, Bytes limit, std::uint64_t looks,
                               const std::function<bool()>& stop)> best;
    // Whether its search looks at no more shapes than `most_shapes` in the whole budget: what takes longer is left out.
    // None: it was stopped.
    std::function<std::optional<bool>(const std::function<bool()>& stop)> quick;
    std::uint64_t most_shapes = 0;
};

struct NestGroup {
    std::vector<Id> members;  // ascend
    std::uint32_t text = 0;   // groups of the same text cost the same
    std::vector<std::pair<Id, std::uint64_t>> buffers;  // the group's buffers by tensor
    Bytes floor = 0;          // what crosses at least where nothing is whole, weights included
    std::vector<Id> windowed; // tensors over which windows slide: whole, they leave the loops to others
    std::vector<std::pair<Id, Id>> over;  // inputs and the outputs that may lie over them, where both are whole
};

// What groups cost as nests, by text: what was asked once is known, to every search that shares this.
class NestCosts {
  public:
    // `looks`: the most of any search.
    NestCosts(std::vector<NestText> texts, std::uint64_t looks)
        : texts_(std::move(texts)), quick_(texts_.size()), looks_(texts_.size(), looks) {}

    std::size_t size() const { return texts_.size(); }
    // The least that crosses in `room`, if it is below `limit`.
    NestAnswer best(std::uint32_t text, const NestWhole& whole, Bytes room, Bytes limit);
    // The nest that costs what `best` says in this room; null if there is none.
    const nests::Found* nest(std::uint32_t text, const NestWhole& whole, Bytes room);
    // Searches that were cut off begin again with more looks from now on.
    void deepen(std::uint64_t looks);
    // The same for some texts, so many times deeper but by no more than `most` looks; whether any goes deeper.
    bool deepen_some(const std::vector<std::uint32_t>& texts, std::uint64_t times, std::uint64_t most);
    // Texts of which some search was cut off.
    std::vector<std::uint32_t> cut_texts() const;
    // From now on these texts have no nests.
    void leave_out(const std::vector<std::uint32_t>& texts);
    // Asked during searches from now on; true ends them. None: nobody is asked.
    void watch(std::function<bool()> stop) { stop_ = std::move(stop); }
    std::size_t bytes() const { return known_.size() * 160 + nests_.size() * 2'000; }

  private:
    // False for a text that is left out: it has no nests.
    bool quick(std::uint32_t text);
    NestSearched search(std::uint32_t text, const NestWhole& whole, Bytes room, Bytes limit);
    struct Key {
        std::uint32_t text;
        NestWhole whole;
        bool operator==(const Key&) const = default;
    };
    struct Hash {
        std::size_t operator()(const Key& k) const {
            const std::uint64_t over = k.whole.over ? k.whole.over->input * 64 + k.whole.over->output + 1 : 0;
            const std::uint64_t whole = (k.whole.buffers + 0x9e3779b97f4a7c15ULL) * 0xbf58476d1ce4e5b9ULL;
            const std::uint64_t x = whole ^ (over << 32) ^ k.text;
            return (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
        }
    };
    std::vector<NestText> texts_;
    std::vector<std::optional<bool>> quick_;
    std::unordered_map<Key, Stairs, Hash> known_;
    std::vector<std::uint64_t> looks_;  // by text
    std::vector<nests::Found> nests_;  // by mark
    std::function<bool()> stop_;
};

}  // namespace onchip::joint
