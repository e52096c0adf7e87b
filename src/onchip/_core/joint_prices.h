// What a group costs beside its operands, when some of those lie whole on chip: fusion's cost model, asked for every
// pattern of whole operands and every room that is left beside them. docs/joint.md uses the same words.
#pragma once
#include <unordered_map>

#include "fusion_fuser.h"
#include "joint_nests.h"

namespace onchip::joint {

using Mask = std::uint64_t;  // of a group's operands

inline constexpr std::size_t most_operands = 60;
inline constexpr std::size_t most_patterns = 256;  // looked at for c(G); beyond, a bound of it
inline constexpr std::size_t few_operands = 10;    // of which all sets are looked at
inline constexpr std::size_t most_parts = 20'000;  // parts of patterns, likewise
inline constexpr std::size_t most_branches = 20'000;  // of one evaluation; beyond, a way that may not be the best

// A tensor that a group reads from outside or that leaves it; external ones come first.
struct Operand {
    Id tensor;
    Bytes bytes, room;  // what crosses, and what it takes whole
    bool external;
    bool free;  // crosses in any case, once: a graph input that nobody has read yet, an output of the network
    bool wholly = false;  // whole it may take less room, or cross less: a nest reads parts of it, or writes over it
    bool paired = false;  // of an input and an output of which one may lie over the other
};

// An input and an output of a group that runs as a nest, by their places among its operands: if both are whole and the
// input dies, the output may lie over it.
struct Pair {
    std::uint32_t input, output;
};

// How a group runs: whole as it is (a single operator, all operands whole), in blocks, in bands, or as a nest.
struct Way {
    fusion::Cost cost;
    Bytes own = unlimited;  // bytes beside the operands: weights and halo
    Bytes needs = 0;        // the least room for it
    bool plain = false, over = false;  // over: the output takes the place of a dying operand
    bool nest = false;
};

class Prices {
  public:
    // `over`: for each operator the inputs that its output may be written over. `nests`: groups that may run as
    // nests, beside the fuser's, and what those of every text cost.
    // `joins`: the concats whose operands may lie side by side in DRAM, where they are the output.
    Prices(const fusion::Fuser& fuser, Bytes budget, std::vector<std::vector<Id>> over, std::vector<NestGroup> nests,
           NestCosts& costs, const std::vector<Id>& joins);

    const fusion::Problem& problem() const { return problem_; }
    Bytes budget() const { return budget_; }
    Id groups() const { return candidates_ + static_cast<Id>(problem_.operators.size()); }
    // Operators alone stand behind the candidates.
    Id alone(Id op) const { return candidates_ + op; }
    bool single(Id group) const { return group >= candidates_; }
    const std::vector<Id>& members(Id group);
    // At most `most_operands`, else the group is never run.
    std::span<const Operand> operands(Id group);
    std::span<const Pair> pairs(Id group);
    Bytes weights(Id group);
    // No way to run it moves less beside its operands: less than its weights where blocks skip pixels.
    Bytes floor(Id group) { return weights(group) - skipped(group); }
    // The same, sharper: `unlimited` where nothing fits. And a bound of least(), quicker than that.
    Bytes own(Id group) { return outlined(group).own; }
    Bytes bound(Id group) { return outlined(group).bound; }
    const std::vector<Id>& over(Id op) const { return over_[op]; }
    // Whether it is such a concat alone.
    bool joins(Id group) const { return single(group) && joins_[group - candidates_]; }

    // The least bytes beside the operands of a pattern in `room` bytes, in bands or blocks, if they are below `limit`;
    // else `unlimited`. `over`: one of the pairs lies so.
    Bytes tiled(Id group, Mask whole, Id over, Bytes room, Bytes limit = unlimited);
    // Room that an operator needs beside its operands to run whole; no tiling has to hold.
    Bytes workspace(Id group) const { return problem_.round_up(problem_.operators[group - candidates_].workspace); }
    // Whether it is an operator some of whose operands may pass through its workspace.
    bool passing(Id group) const { return single(group) && !problem_.operators[group - candidates_].streams.empty(); }
    // c(G) if it is below `limit`, else `limit` or more: no pattern costs less, operands that cross included but for
    // those that cross in any case.
    Bytes least(Id group, Bytes limit = unlimited);
    // How it runs at the cost of tiled().
    Way describe(Id group, Mask whole, Id over, Bytes room);

    // The group as one that may run as a nest; null if it may not.
    const NestGroup* nested(Id group) const { return nest_of_[group] == no_id ? nullptr : &nests_[nest_of_[group]]; }
    void watch(std::function<bool()> stop) { costs_.watch(std::move(stop)); }
    // What groups cost that may run as nests is asked anew. `hopeful`: where a search was cut off, tiled() is what it may
    // find at best, and describe() what it has found.
    void forget_nests(bool hopeful);
    // The group of these operators runs in bands or blocks no more.
    void untile(const std::vector<Id>& members);
    bool hopeful() const { return hopeful_; }
    // Whether the way last asked for may not be the best, and what the best costs at least if so.
    bool was_cut() const { return cut_now_; }
    Bytes at_least() const { return floor_now_; }
    std::uint64_t evaluated() const { return evaluated_; }
    std::size_t bytes() const { return bytes_ + costs_.bytes(); }

  private:
    struct Info {
        std::uint32_t at = 0, count = 0;  // of operands_
        std::uint32_t first_pair = 0, pairs = 0;
        Bytes weights = -1, least = 0, skipped = 0, own = 0, bound = 0;
        bool priced = false, outlined = false;
    };
    Info& info(Id group);
    Info& outlined(Id group);
    Bytes least_own(Id group) { return single(group) ? floor(group) : own(group); }
    Bytes skipped(Id group) { return info(group).skipped; }
    bool blocked(Id group) const {
        const fusion::Operator& op = problem_.operators[group - candidates_];
        return op.grid || !op.boxes.empty();
    }
    bool streams(Id group, Mask whole);
    void load(Id group);
    // `described`: with how it runs, else what it costs and needs alone.
    Way evaluate(Id group, Mask whole, Id over, Bytes room, Bytes limit, bool described);
    Way priced_in_tiles(Id group, Mask whole, Bytes room, Bytes limit);
    void in_tiles(Id group, Mask whole, Bytes room, Bytes limit, Way& way);
    Bytes most_whole(Id group);
    void find_pairs(const NestGroup& nest, Info& info);
    void add_nests();
    void as_nest(Id group, Mask whole, Id over, Bytes room, Bytes limit, Way& way);
    void cheapest(std::size_t from, Bytes crossing, Bytes room, Mask whole, Id over);

    const fusion::Problem& problem_;
    // The groups as they were listed: the fuser may list others later.
    fusion::Sets sets_;
    std::vector<Id> listed_;
    std::vector<NestGroup> nests_;
    NestCosts& costs_;
    std::vector<Id> nest_of_;  // by group
    std::vector<bool> untiled_;  // by group
    Bytes budget_;
    Id candidates_ = 0;
    std::vector<std::vector<Id>> over_;
    std::vector<bool> joins_;  // by operator
    fusion::Evaluator evaluator_;
    fusion::BlockSearch blocks_;
    Id loaded_ = no_id;
    std::vector<Id> members_;
    Id members_of_ = no_id;
    std::vector<Info> infos_;
    std::vector<Operand> operands_;
    std::vector<Pair> pairs_;
    std::vector<std::pair<Operand, Mask>> choice_;  // of the search for c(G)
    Id priced_ = no_id;
    Bytes best_ = 0, least_own_ = 0;
    std::size_t patterns_ = 0, parts_ = 0;
    std::vector<Bytes> buffers_;
    struct Key {
        Id group, over;
        Mask whole;
        bool operator==(const Key&) const = default;
    };
    struct Hash {
        std::size_t operator()(const Key& k) const {
            std::uint64_t x = (k.whole + 0x9e3779b97f4a7c15ULL) * 0xbf58476d1ce4e5b9ULL ^ k.group;
            x += k.over * 0x9e3779b97f4a7c15ULL;
            x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
            return x ^ (x >> 31);
        }
    };
    std::unordered_map<Key, Stairs, Hash> stairs_, in_tiles_;  // of groups as they cost least; of nested ones in tiles
    std::uint64_t evaluated_ = 0;
    bool hopeful_ = false;
    bool cut_now_ = false;
    Bytes floor_now_ = 0;
    std::size_t bytes_ = 0;
};

}  // namespace onchip::joint
