// The moves of the joint search: a group runs, with every choice of what is whole, in place, evicted.
#include "joint_search.h"

#include <algorithm>

namespace onchip::joint {

void Search::expand(Id node, const Move& move) {
    node_ = node, move_ = move;
    const std::span<const Operand> all = prices_.operands(move.group);
    operands_.assign(all.begin(), all.end());
    others_.clear(), out_.clear(), beside_.clear();
    others_room_ = 0, dying_ = 0;
    const std::size_t words = downsets_.tensor_words();
    each(resident(nodes_[node]), words, [&](std::uint32_t t) {
        if (std::any_of(operands_.begin(), operands_.end(), [&](const Operand& o) { return o.tensor == t; })) return;
        others_.push_back(t);
        others_room_ += problem_.round_up(problem_.tensors[t].bytes);
    });
    // The smallest last: sets that need a large one gone are few.
    const Bytes room = prices_.budget() - others_room_;
    own_ = prices_.own(move.group);
    tries_ = 0;
    if (operands_.size() <= most_operands)
        operand(0, 0, no_id, 0, room);
    else
        open_ = std::min(open_, nodes_[node_].cost + move_.bound);  // patterns of so many are not looked at
    if (prices_.single(move.group)) plain(room);
    if (prices_.joins(move.group)) join();
}

// A concat whose operands lie in their places in DRAM: those without a copy are written, and may stay on chip.
void Search::join() {
    Bytes paid = 0;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
        const Operand& o = operands_[i];
        if (!o.external || test(copied(nodes_[node_]), o.tensor)) continue;
        paid += o.bytes;
        beside_.push_back(i);
    }
    whole_ = 0, over_ = no_id, pair_ = no_id, plain_ = false, joined_ = true;
    gone_.clear();
    reach(paid, 0);
    joined_ = false;
    beside_.clear();
}

// Whether enough ways of one move have been tried; then the others are left, at what they cost at least.
bool Search::stuck() {
    const bool late = clock_->check({prices_.groups(), nodes_.size()}, bytes()).has_value();
    if ((most_tries_ == 0 || tries_ < most_tries_) && (!late || tries_ < few_tries)) {
        ++tries_;
        return false;
    }
    open_ = std::min(open_, nodes_[node_].cost + move_.bound);
    return true;
}

// Decides operand by operand whether it is whole, and whether an output lies over an input. `room` is what is left of the
// budget, before evictions.
void Search::operand(std::size_t i, Mask whole, Id pair, Bytes paid, Bytes room) {
    const Bytes so_far = nodes_[node_].cost + paid + downsets_.ahead(move_.to);
    if (so_far + own_ >= below_ || stuck()) return;
    if (i == operands_.size()) {
        const Bytes limit = below_ >= unlimited ? unlimited : below_ - so_far;
        const Mask under = pair == no_id ? 0 : Mask{1} << prices_.pairs(move_.group)[pair].input;
        if (dying_ & ~under) return;  // nothing lies over it: it may as well be streamed
        const Id over = pair == no_id ? no_id : operands_[prices_.pairs(move_.group)[pair].input].tensor;
        const auto own = [&](Bytes left) {
            return left < 0 ? unlimited : prices_.tiled(move_.group, whole, pair, left, limit);
        };
        evictions(whole, paid, room, over, pair, false, own);
        return;
    }
    const Operand o = operands_[i];
    const Mask bit = Mask{1} << i;
    const bool later = test(downsets_.live(move_.to), o.tensor);
    const Bytes left = room - o.room;
    const bool possible = left + others_room_ >= 0;
    // A buffer is no larger than its tensor, so what nobody reads later need not be whole; but not everything passes
    // through a workspace.
    const bool passing = prices_.passing(move_.group);
    if (!o.external) {
        const bool unread = problem_.tensors[o.tensor].readers.empty() && !o.free;
        if ((later || unread || passing || o.wholly) && possible) operand(i + 1, whole | bit, pair, paid, left);
        if (o.paired && pair == no_id)
            for (Id p = 0; p < prices_.pairs(move_.group).size(); ++p) {
                const auto [input, output] = prices_.pairs(move_.group)[p];
                const bool dies = !test(downsets_.live(move_.to), operands_[input].tensor);
                if (output == i && (whole >> input & 1) && dies) operand(i + 1, whole | bit, p, paid, room);
            }
        operand(i + 1, whole, pair, paid + (o.free ? 0 : o.bytes), room);
        return;
    }
    const bool touched = [&] {
        if (!o.free) return true;
        const std::vector<Id>& readers = problem_.tensors[o.tensor].readers;
        return std::any_of(readers.begin(), readers.end(),
                           [&](Id r) { return test(downsets_.done(nodes_[node_].at), r); });
    }();
    const Bytes crosses = touched ? o.bytes : 0;
    if (test(resident(nodes_[node_]), o.tensor)) {
        if (possible) operand(i + 1, whole | bit, pair, paid, left);
        // Else its copy is read piece by piece, and it leaves first; or it stays besides, where blocks cannot take it
        // whole and a later group can. (Bands that take it whole need no more of anything.)
        const Bytes write = test(copied(nodes_[node_]), o.tensor) ? 0 : o.bytes;
        if (later && possible && prices_.single(move_.group)) {
            beside_.push_back(i);
            operand(i + 1, whole, pair, paid + write + crosses, left);
            beside_.pop_back();
        }
        out_.push_back(o.tensor);
        operand(i + 1, whole, pair, paid + write + crosses, room);
        out_.pop_back();
        return;
    }
    operand(i + 1, whole, pair, paid + crosses, room);
    if (!possible) return;
    if (later || passing || o.wholly) {
        operand(i + 1, whole | bit, pair, paid + crosses, left);
    } else if (o.paired) {
        dying_ |= bit;
        operand(i + 1, whole | bit, pair, paid + crosses, left);
        dying_ &= ~bit;
    }
}

// A single operator as it is, everything on chip.
void Search::plain(Bytes room) {
    Bytes paid = 0;
    for (const Operand& o : operands_) {
        room -= o.room;
        if (!o.external || test(resident(nodes_[node_]), o.tensor)) continue;
        const std::vector<Id>& readers = problem_.tensors[o.tensor].readers;
        const bool touched = !o.free || std::any_of(readers.begin(), readers.end(), [&](Id r) {
            return test(downsets_.done(nodes_[node_].at), r);
        });
        paid += touched ? o.bytes : 0;
    }
    room -= prices_.budget() - maps_room_;
    const Id op = prices_.members(move_.group).front();
    const Bytes workspace = prices_.workspace(move_.group), weights = prices_.weights(move_.group);
    const Mask all = operands_.size() >= 64 ? ~Mask{0} : (Mask{1} << operands_.size()) - 1;
    const auto own = [&](Bytes left) { return left >= workspace ? weights : unlimited; };
    evictions(all, paid, room, no_id, no_id, true, own);
    for (const Id x : prices_.over(op)) {
        if (test(downsets_.live(move_.to), x)) continue;  // somebody still reads it
        const Bytes shared = problem_.round_up(problem_.tensors[problem_.operators[op].outputs.front()].bytes);
        evictions(all, paid, room + shared, x, no_id, true, own);
        break;  // another one would free no more
    }
}

// A way that was not searched to the end may be cheaper than we think.
void Search::left_open(bool as_it_is, Bytes so_far) {
    if (!as_it_is && prices_.was_cut() && !prices_.hopeful()) open_ = std::min(open_, so_far + prices_.at_least());
}

template <class Own>
void Search::evictions(Mask whole, Bytes paid, Bytes room, Id over, Id pair, bool is_plain, Own own) {
    const Bytes so_far = nodes_[node_].cost + paid + downsets_.ahead(move_.to);
    const Bytes least = own(room + others_room_);
    left_open(is_plain, so_far);
    if (least >= unlimited || so_far + least >= below_) return;
    whole_ = whole, over_ = over, pair_ = pair, plain_ = is_plain;
    gone_.clear();
    const auto in = [&](Bytes freed) { return own(room + freed); };
    evict(0, 0, 0, paid, in);
}

template <class Own>
void Search::evict(std::size_t from, Bytes freed, Bytes smallest, Bytes paid, const Own& own) {
    if (stuck()) return;
    const Bytes cost = own(freed);
    left_open(plain_ || joined_, nodes_[node_].cost + paid + downsets_.ahead(move_.to));
    // With the smallest of them still there it would be dearer, so none is too many.
    if (cost < unlimited && (gone_.empty() || !rules_.minimal || own(freed - smallest) > cost)) reach(paid + cost, freed);
    if (rules_.minimal && cost < unlimited && own(others_room_) >= cost) return;  // nothing is won by more room
    for (std::size_t i = from; i < others_.size(); ++i) {
        const Id t = others_[i];
        const fusion::Tensor& x = problem_.tensors[t];
        const Bytes write = test(copied(nodes_[node_]), t) ? 0 : x.bytes, size = problem_.round_up(x.bytes);
        if (nodes_[node_].cost + paid + write + own(others_room_) + downsets_.ahead(move_.to) >= below_) continue;
        gone_.push_back(t);
        evict(i + 1, freed + size, gone_.size() == 1 ? size : std::min(smallest, size), paid + write, own);
        gone_.pop_back();
    }
}

// The state after the move as it has been decided.
void Search::reach(Bytes cost, Bytes freed) {
    const Node& before = nodes_[node_];
    const Bytes total = before.cost + cost;
    if (total + downsets_.ahead(move_.to) >= below_) return;
    const std::size_t words = downsets_.tensor_words();
    const Word* const live = downsets_.live(move_.to);
    made_.assign(2 * words, 0);
    Word* const in = made_.data();
    Word* const copy = in + words;
    for (std::size_t w = 0; w < words; ++w) in[w] = resident(before)[w], copy[w] = copied(before)[w];
    for (const Id t : gone_) drop(in, t), add(copy, t);
    for (const Id t : out_)
        if (!plain_) drop(in, t), add(copy, t);
    if (!plain_)
        for (const std::size_t i : beside_) add(copy, operands_[i].tensor);
    for (std::size_t i = 0; i < operands_.size(); ++i) {
        const Operand& o = operands_[i];
        const bool kept = plain_ || (whole_ >> i & 1) != 0;
        if (kept) add(in, o.tensor);
        if (!o.external && (!kept || o.free)) add(copy, o.tensor);
    }
    for (std::size_t w = 0; w < words; ++w) in[w] &= live[w], copy[w] &= live[w];
    const std::size_t at = pool_.size();
    pool_.insert(pool_.end(), made_.begin(), made_.end());
    const auto first = static_cast<std::uint32_t>(evicted_.size());
    evicted_.insert(evicted_.end(), gone_.begin(), gone_.end());
    if (!plain_) evicted_.insert(evicted_.end(), out_.begin(), out_.end());
    const auto evictions = static_cast<std::uint32_t>(evicted_.size()) - first;
    Bytes room = prices_.budget() - others_room_ + freed;
    for (std::size_t i = 0; i < operands_.size(); ++i)
        if (plain_ || (whole_ >> i & 1) != 0) room -= operands_[i].room;
    if (pair_ != no_id) room += operands_[prices_.pairs(move_.group)[pair_].output].room;
    if (!plain_)
        for (const std::size_t i : beside_) room -= operands_[i].room;
    const std::uint64_t tie = seed_ ? fusion::random_word(static_cast<Id>(seed_ * 0x9e3779b9U + ties_++)) : 0;
    const Node node{move_.to, node_, move_.group, whole_, at, first, evictions, over_, pair_, plain_, joined_, total, room, tie};
    if (rules_.dominance && beaten(node)) {
        pool_.resize(at);
        evicted_.resize(first);
        return;
    }
    std::vector<Id>& bucket = bucket_[move_.to];
    if (bucket.empty()) layer_[downsets_.count(move_.to)].push_back(move_.to);
    const auto id = static_cast<Id>(nodes_.size());
    nodes_.push_back(node);
    bucket.push_back(id);
    if (downsets_.count(move_.to) == problem_.operators.size() && (best_ == no_id || total < nodes_[best_].cost)) {
        best_ = id;
        if (rules_.incumbent) below_ = total;
    }
}

}  // namespace onchip::joint
