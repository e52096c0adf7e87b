// The time of one group in a nest that runs alone, by the law of docs/nest-times.md. The checker's walk
// (onchip.check.nest_times) is the judge; this one shares no code with it and is as quick as a search needs.
#pragma once
#include <optional>
#include <vector>

#include "time_layout.h"

namespace onchip::timed {

struct Times {
    Time time = 0, work = 0;
    Bytes bytes = 0;
    std::int64_t steps = 0, transfers = 0;
    std::vector<Time> busy;  // by channel
};

class Walk {
  public:
    explicit Walk(const Problem& problem) : problem_(problem) {}

    // The times of a nest that was derived, until others are asked for; none if it takes `below` or longer, or more than
    // `most_steps` walked. With `every_turn` no period is skipped.
    const Times* times(Layout& layout, Time below, std::int64_t most_steps, bool every_turn = false);
    std::int64_t walked() const { return walked_; }

  private:
    struct State {
        std::vector<Time> slots;  // when each of `free` was given back, in the order of use, from `oldest` on
        std::size_t oldest = 0, free = 0;
        Time& slot(std::size_t n) { return slots[(oldest + n) % slots.size()]; }
        Time slot(std::size_t n) const { return slots[(oldest + n) % slots.size()]; }
        std::int64_t fills = 0, stores = 0;
        Bytes moved = 0;
        Time stored = 0;
        bool fresh = false;
        int last = -1;                                  // the leaf whose step uses it last in this turn
        std::vector<std::pair<int, std::int64_t>> when; // along windows: turns of loops below its home
    };
    struct Store {
        int moving = 0;
        Time duration = 0;
        Bytes bytes = 0;
        int late = 0;  // so many steps may still begin before it
        bool operator==(const Store&) const = default;
    };
    struct Pending {
        Store what;
        Time ready = 0;  // the end of the step that used it last
        std::int64_t step = 0;
    };
    struct Snapshot {
        std::vector<Time> entries;
        std::vector<std::int64_t> uses, counts;
        std::vector<Store> shared, owned;
        bool no_shared = true;
    };

    void body(int number);
    void loop(int number);
    void visit(int number);
    void begin(int moving, Time& ready);
    void ended(int moving);
    bool find_last(int number, Set users, State& state);
    bool last_now(const State& state, int leaf, int home) const;
    Time step(const Leaf& leaf, Time& work) const;
    void pieces(const Moving& moving, const Home& home, Bytes width, Bytes burst, std::int64_t& count, Bytes& crossing) const;
    Time transfer(const Moving& moving, const Home& home, Bytes width, int channel) const;
    std::int64_t length(const Home& home, int number, std::size_t side) const;
    std::int64_t elements(const Home& home, int number) const;
    bool ends(int body) const;
    bool begun(int body) const;
    bool slides(int number) const;
    void store_shared();
    void store_owned(bool all = false);
    void give_back(int moving);
    Time serve_store(const Pending& one);
    Time serve(int channel, Time ready, Time duration, int moving, Bytes bytes, bool stored);
    void take(int number, Snapshot& into) const;
    std::optional<Time> moved(const Snapshot& before, const Snapshot& now) const;
    void skip(int number, const Snapshot& before, const Snapshot& now, std::int64_t turns, Time by);

    const Problem& problem_;
    Layout* layout_ = nullptr;
    std::vector<State> states_;
    std::vector<Time> channels_;
    std::vector<std::int64_t> served_;
    std::vector<Store> shared_;
    std::vector<Pending> owned_;
    std::vector<Snapshot> snapshots_;  // two for each body
    std::vector<int> first_;
    Time end_ = 0, shared_end_ = -1;
    Time below_ = never;
    std::int64_t walked_ = 0, most_ = 0;
    bool every_turn_ = false, over_ = false;
    Times totals_;
};

}  // namespace onchip::timed
