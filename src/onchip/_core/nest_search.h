// The nest of one group that lets the fewest bytes cross in some room: every spine, every depth of the operators,
// passes where they may help, and for each the best homes and tiles.
#pragma once
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "clock.h"
#include "nest_framing.h"

namespace onchip::nests {

// A loop with its body, or an operator with its slices.
struct Item {
    std::optional<Id> operation;
    std::vector<std::pair<Id, Id>> slices;  // axis, tile: outermost first
    std::optional<Id> under;                // the operand in whose place it writes
    std::vector<std::pair<Id, Id>> over;    // operator, axis
    std::int64_t tile = 0;
    std::vector<Id> keep;  // buffers
    std::vector<Id> ring;  // those of its body that keep rows for the next turn
    std::vector<Item> body;
};

// `root` is a body that is entered once.
struct Found {
    Bytes bytes = 0, need = 0;
    Item root;
};

struct Answer {
    std::optional<Found> found;
    End end = End::complete;
    std::uint64_t shapes = 0;
    Bytes bound = 0;  // no nest lets less cross, but for the one found
};

using Progress = std::uint64_t;  // shapes looked at

// How many shapes a search looks at: tiles of loops along which windows slide count each. The first in the order in which
// they are made; if that does not end it, all others are listed, and those that may let least cross come first.
struct Looks {
    std::uint64_t most = ~std::uint64_t{0}, in_order = ~std::uint64_t{0};
};

// A group, ready to be asked for many rooms and sets of whole buffers.
class Problem {
  public:
    Problem(std::vector<Operator> operators, std::vector<Buffer> buffers, Bytes alignment, std::size_t spine,
            std::size_t passes, bool long_passes, bool pairs, bool in_place, std::size_t windows, const Rules& rules);

    // The best nest below `below` bytes; `whole` are buffers that lie on chip whole and cost nothing here, `over` are an
    // input and an output among them, of which one lies over the other. Ends when it has looked at as many shapes as it may.
    Answer best(Set whole, std::optional<Over> over, Bytes room, Bytes below, const Limits<Progress>& limits, Looks looks = {});
    // True if an input and an output of as many elements are both whole.
    bool may_lie_over(Id input, Id output, Set whole) const;
    // What crosses in any nest.
    Bytes least(Set whole) const;
    const Group& group() const { return groups_[0]; }

  private:
    std::vector<Group> groups_;  // the group, and its pairings
        Settings settings_;
    Orders orders_;
};

// The tree of a nest.
Item tree(const Group& group, const Best& best);

}  // namespace onchip::nests
