// A fast player of schedules of any number of networks and units, for searches that try thousands.
//
// It follows the rules of the simulator in onchip.multi_dnn.simulate, which judges what a search returns.
#pragma once
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "corun_pair.h"

namespace onchip::corun {

using Task = std::uint32_t;
inline constexpr Task no_task = ~Task{0};

// Every group of every run. `work`, `gb` at [row * units + unit], `move` at [(row * units + unit) * units + next].
struct Tasks {
    std::size_t units = 0;
    std::vector<double> work, gb, move;
    std::vector<std::uint32_t> row;       // of each task
    std::vector<Task> before;             // the group before it in its run: a change of unit costs a move
    std::vector<std::vector<Task>> gates; // others that must have ended

    std::size_t count() const { return row.size(); }
    bool runs_on(Task t, std::size_t unit) const;
    void check() const;
};

// The slowdown of a place (row * units + unit) by external GB/s, asked of the model once and remembered.
class Slowdowns {
  public:
    using Model = std::function<double(std::size_t unit, double requested, double external)>;
    Slowdowns(const Tasks& tasks, Model model);
    double beside(std::size_t place, std::size_t other);
    double at(std::size_t place, double external);

  private:
    const Tasks& tasks_;
    Model model_;
    std::size_t places_;
    std::vector<double> two_;  // place by place; 0: not asked yet
    std::vector<std::unordered_map<double, double>> more_;
};

using Order = std::vector<std::vector<Task>>;  // by unit

class Player {
  public:
    Player(const Tasks& tasks, Slowdowns& slow);
    // When every task ends under enforced orders; false where they wait for each other.
    bool play(const std::vector<std::uint8_t>& unit, const Order& order, std::vector<double>& ends);
    // Whoever is ready first runs first, in ties the lowest rank; fills `order` as well.
    void dispatch(const std::vector<std::uint8_t>& unit, const std::vector<std::uint32_t>& rank, Order& order,
                  std::vector<double>& ends, std::vector<Task>& starts);

  private:
    struct Running {
        Task task;
        std::size_t place;
        double left, slow;
    };
    struct Waiting {
        Task task;
        double ready;
    };
    bool run(const std::vector<std::uint8_t>& unit, const Order* order, const std::vector<std::uint32_t>* rank,
             std::vector<double>& ends, std::vector<Task>* starts);

    const Tasks& tasks_;
    Slowdowns& slow_;
    std::vector<std::vector<Task>> after_;
    std::vector<std::uint32_t> needs_, left_;
    std::vector<Running> running_;
    std::vector<Waiting> waiting_;
    std::vector<std::size_t> head_;
};

}  // namespace onchip::corun
