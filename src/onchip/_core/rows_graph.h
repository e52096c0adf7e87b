// A graph whose every operator makes the rows of one map, a row a step, and the law of bytes of its schedules.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace onchip::rows {

using Bytes = std::int64_t;
using Id = std::uint16_t;

inline std::size_t at(int i) { return static_cast<std::size_t>(i); }

// Of an operator: it reads the rows [first, end) of another one's map, a pair for each of its steps. Its row may
// start `distance` bytes below a row that it reads for the last time; written left to right, that is safe.
struct Operand {
    Id maker = 0;
    std::vector<std::pair<int, int>> windows;
    Bytes distance = 0;
};

struct Operator {
    int steps = 0;
    Bytes bytes = 0;  // of a row
    bool kept = false;  // an output: alive to the end
    bool held = false;  // an input that is there from the start
    bool anew = false;  // makes what another operator makes, too
    std::vector<Operand> operands;
};

// A row that a step reads and no later step of the same operator.
struct Last {
    Id maker;
    int row;
    Bytes distance;
    bool dies;  // in any case: nobody else reads it, and it is not kept
};

// How many rows of an operand must have been made.
struct Need {
    Id maker;
    int rows;
};

struct Reader {
    Id reader;
    int step;  // its last one that reads the row
};

using Made = std::vector<std::uint16_t>;  // rows made of each operator: a state

class Graph {
  public:
    // Throws std::invalid_argument where operators are out of order or windows are no rows. `share`: rows may share
    // bytes with those that their step reads for the last time.
    Graph(std::vector<Operator> operators, bool share);

    std::size_t size() const { return operators_.size(); }
    const Operator& operator[](std::size_t i) const { return operators_[i]; }
    bool share() const { return share_; }
    Made start() const;
    Made end() const;

    const std::vector<Need>& needs(std::size_t i, int step) const { return needs_[i][static_cast<std::size_t>(step)]; }
    const std::vector<Last>& lasts(std::size_t i, int step) const { return lasts_[i][static_cast<std::size_t>(step)]; }
    const std::vector<Reader>& readers(std::size_t i, int row) const {
        return readers_[i][static_cast<std::size_t>(row)];
    }
    // The operators whose next step a step of this one may make possible or cheaper, itself among them.
    const std::vector<Id>& touched(std::size_t i) const { return touched_[i]; }

    // True if the row is made and still to be read, or kept.
    bool alive(const Made& made, std::size_t i, int row) const;
    Bytes live(const Made& made) const;
    // True if all rows are there that the operator's next step reads.
    bool ready(const Made& made, std::size_t i) const;
    // What the next step needs beside the live bytes, and what it adds to them in the end.
    struct Cost {
        Bytes need;
        Bytes change;
    };
    Cost cost(const Made& made, std::size_t i) const;
    // The most bytes that a step may share in any state.
    Bytes most_shared(std::size_t i, int step) const;

  private:
    std::vector<Operator> operators_;
    bool share_;
    std::vector<std::vector<std::vector<Need>>> needs_;
    std::vector<std::vector<std::vector<Last>>> lasts_;
    std::vector<std::vector<std::vector<Reader>>> readers_;
    std::vector<std::vector<Id>> touched_;
};

}  // namespace onchip::rows
