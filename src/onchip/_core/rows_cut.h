// The states of least bytes, by minimum cuts, and the bound on every schedule's peak that follows.
#pragma once
#include <optional>
#include <vector>

#include "clock.h"
#include "rows_graph.h"

namespace onchip::rows {

class Cuts {
  public:
    explicit Cuts(const Graph& graph);

    struct Cut {
        Bytes live;
        Made made;
    };
    // The legal state of least live bytes of all that have made `from` and have not made the step; of all without.
    Cut least(const std::vector<Need>& from, std::optional<std::pair<Id, int>> before);

  private:
    struct Edge {
        std::uint32_t to;
        Bytes room;
    };
    std::uint32_t node(std::size_t i, int step) const { return base_[i] + static_cast<std::uint32_t>(step); }
    void edge(std::uint32_t a, std::uint32_t b, Bytes room);
    bool levels();
    Bytes push();
    void flow();

    const Graph& graph_;
    std::vector<std::uint32_t> base_;
    std::uint32_t nodes_ = 2;  // 0 is the source: made; 1 the sink: not made
    std::vector<Edge> edges_;  // each beside its reverse
    std::vector<Bytes> room_;  // of the edges behind the flow of the whole graph, before any cut's
    std::vector<std::vector<std::uint32_t>> out_;
    std::vector<int> level_;
    std::vector<std::size_t> next_;
};

// A lower bound on the peak of every schedule, and the step that binds; `schedule`, any legal one, tells which steps
// are worth a cut.
struct Bound {
    Bytes bytes = 0;
    int binding = -1;  // operator
    int step = -1;
    bool complete = true;
};
Bound bound_of(const Graph& graph, const std::vector<Id>& schedule, Clock<std::int64_t>& clock);

// A lower bound without cuts: the most bytes that a step reads for its last time and makes.
Bound plain_bound(const Graph& graph);

}  // namespace onchip::rows
