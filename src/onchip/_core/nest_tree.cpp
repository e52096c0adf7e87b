// The tree of a nest: from the homes and depths of the search to loops and leaves.
#include <algorithm>
#include <bit>

#include "bits.h"
#include "nest_search.h"

namespace onchip::nests {

namespace {

class Tree {
  public:
    Tree(const Group& group, const Best& best) : group_(group), best_(best), shape_(best.shape) {
        for (Id b = 0; b < group.buffers.size(); ++b) {
            const Home& home = best.homes[b];
            if (home.kind == Home::Kind::own) {
                for (const Id u : group.uses[b]) keep(b, private_home(group, shape_, u));
            } else if (group.buffers[b].maker < 0 || group.buffers[b].leaves) {
                keep(b, home);  // of what is made and read here alone the home follows
            }
            if (home.ring) rings_[home.depth].push_back(b);
        }
    }
    Item body(Id depth) {
        Item found;
        if (const auto at = bodies_.find(depth); at != bodies_.end()) found.keep = at->second;
        if (const auto at = rings_.find(depth); at != rings_.end()) found.ring = at->second;
        line(found, depth, false);
        if (depth < shape_.loops() && inside(shape_, depth + 1)) {
            Item loop = body(depth + 1);
            const Class& along = group_.classes[shape_.classes[depth]];
            loop.over = over(inside(shape_, depth + 1), along);
            loop.tile = best_.tile[depth];
            found.body.push_back(std::move(loop));
        }
        line(found, depth, true);
        return found;
    }

  private:
    void keep(Id buffer, const Home& home) {
        if (home.kind == Home::Kind::body) bodies_[home.depth].push_back(buffer);
        if (home.kind == Home::Kind::pass) passes_[{home.pass, home.level}].push_back(buffer);
    }
    static std::vector<std::pair<Id, Id>> over(Set members, const Class& along) {
        std::vector<std::pair<Id, Id>> found;
        each_bit(members, 0, [&](Id o) { found.push_back({o, static_cast<Id>(along.axis[o])}); });
        return found;
    }
    Item leaf(Id op) const {
        Item found;
        found.operation = op;
        found.under = best_.over[op];
        Set done = 0;  // axes that a pass cuts to the least
        if (shape_.pass[op] >= 0)
            for (const Id c : shape_.passes[static_cast<Id>(shape_.pass[op])].classes)
                done |= one(static_cast<Id>(group_.classes[c].axis[op]));
        for (Id l = 0; l < shape_.depth[op]; ++l) {
            const Class& along = group_.classes[shape_.classes[l]];
            if (best_.tile[l] == 1 && !shape_.slides(l)) done |= one(static_cast<Id>(along.axis[op]));
        }
        for (const Id axis : best_.slices[op])
            if (!has(done, axis) || (best_.marks[op] && !has(group_.summed[op], axis))) found.slices.push_back({axis, 1});
        return found;
    }
    Item pass(Id which, std::size_t level) const {
        const Pass& pass = shape_.passes[which];
        Item found;
        if (const auto at = passes_.find({which, static_cast<Id>(level)}); at != passes_.end()) found.keep = at->second;
        const Class& along = group_.classes[pass.classes[level - 1]];
        found.over = over(pass.members, along);
        found.tile = 1;
        if (level < pass.classes.size()) found.body.push_back(this->pass(which, level + 1));
        else each_bit(pass.members, 0, [&](Id o) { found.body.push_back(leaf(o)); });
        return found;
    }
    void line(Item& into, Id depth, bool after) {
        for (Id o = 0; o < group_.size(); ++o) {
            if (shape_.depth[o] != depth || has(shape_.after, o) != after) continue;
            const int in = shape_.pass[o];
            if (in < 0) into.body.push_back(leaf(o));
            else if (o == static_cast<Id>(std::countr_zero(shape_.passes[static_cast<Id>(in)].members)))
                into.body.push_back(pass(static_cast<Id>(in), 1));
        }
    }

    const Group& group_;
    const Best& best_;
    const Shape& shape_;
    std::map<Id, std::vector<Id>> bodies_, rings_;
    std::map<std::pair<Id, Id>, std::vector<Id>> passes_;
};

}  // namespace

Item tree(const Group& group, const Best& best) { return Tree(group, best).body(0); }

}  // namespace onchip::nests
