#include "rows_graph.h"

#include <algorithm>
#include <limits>
#include <set>
#include <stdexcept>

namespace onchip::rows {

namespace {

constexpr std::size_t most_ids = std::numeric_limits<Id>::max() - 1;

void must_be_in_order(const std::vector<Operator>& operators) {
    if (operators.size() > most_ids) throw std::invalid_argument("rows: too many operators");
    for (std::size_t i = 0; i < operators.size(); ++i) {
        const Operator& op = operators[i];
        if (op.steps < 1 || at(op.steps) > most_ids || op.bytes < 1 || op.bytes > (Bytes{1} << 40))
            throw std::invalid_argument("rows: steps or bytes out of range");
        if (op.held && !op.operands.empty()) throw std::invalid_argument("rows: a held input with operands");
        for (const Operand& operand : op.operands) {
            if (operand.maker > i) throw std::invalid_argument("rows: operators out of order");
            if (operand.windows.size() != at(op.steps)) throw std::invalid_argument("rows: a window for every step");
            for (int step = 0; step < op.steps; ++step) {
                const auto [first, end] = operand.windows[at(step)];
                const int there = operand.maker == i ? step : operators[operand.maker].steps;
                if (first < 0 || first > end || end > there) throw std::invalid_argument("rows: a window without rows");
            }
        }
    }
}

// Bytes that a row of `b` shares with dying rows: at least `nearest` below them, and no more than they have.
class Sharing {
  public:
    explicit Sharing(Bytes b) : b_(b) {}
    void add(Bytes bytes, Bytes distance) {
        nearest_ = std::min(nearest_, distance);
        sum_ += std::max(Bytes{0}, std::min(bytes, b_ - distance));
    }
    Bytes bytes() const {
        if (nearest_ == std::numeric_limits<Bytes>::max()) return 0;
        return std::max(Bytes{0}, std::min(b_ - std::max(Bytes{0}, nearest_), sum_));
    }

  private:
    Bytes b_, nearest_ = std::numeric_limits<Bytes>::max(), sum_ = 0;
};

}  // namespace

Graph::Graph(std::vector<Operator> operators, bool share) : operators_(std::move(operators)), share_(share) {
    must_be_in_order(operators_);
    const std::size_t n = operators_.size();
    needs_.resize(n), lasts_.resize(n), readers_.resize(n), touched_.resize(n);
    std::vector<std::set<Id>> read_by(n);
    for (std::size_t i = 0; i < n; ++i) {
        const Operator& op = operators_[i];
        needs_[i].resize(at(op.steps)), lasts_[i].resize(at(op.steps)), readers_[i].resize(at(op.steps));
        std::set<Id> makers;
        for (const Operand& operand : op.operands) {
            makers.insert(operand.maker);
            for (int step = 0; step < op.steps; ++step) {
                const auto [first, end] = operand.windows[at(step)];
                if (first < end && operand.maker != i) needs_[i][at(step)].push_back({operand.maker, end});
            }
        }
        for (const Id maker : makers) {
            read_by[maker].insert(static_cast<Id>(i));
            std::vector<int> last(at(operators_[maker].steps), -1);
            Bytes distance = std::numeric_limits<Bytes>::min();
            for (const Operand& operand : op.operands) {
                if (operand.maker != maker) continue;
                distance = std::max(distance, operand.distance);
                for (int step = 0; step < op.steps; ++step)
                    for (int row = operand.windows[at(step)].first; row < operand.windows[at(step)].second; ++row)
                        last[at(row)] = std::max(last[at(row)], step);
            }
            for (int row = 0; row < operators_[maker].steps; ++row) {
                if (last[at(row)] < 0) continue;
                lasts_[i][at(last[at(row)])].push_back({maker, row, distance, false});
                readers_[maker][at(row)].push_back({static_cast<Id>(i), last[at(row)]});
            }
        }
    }
    for (auto& steps : lasts_)
        for (auto& lasts : steps)
            for (Last& last : lasts) last.dies = !operators_[last.maker].kept && readers(last.maker, last.row).size() == 1;
    for (std::size_t i = 0; i < n; ++i) {
        std::set<Id> found = read_by[i];
        found.insert(static_cast<Id>(i));
        for (const Operand& operand : operators_[i].operands)
            found.insert(read_by[operand.maker].begin(), read_by[operand.maker].end());
        touched_[i].assign(found.begin(), found.end());
    }
}

Made Graph::start() const {
    Made made(size());
    for (std::size_t i = 0; i < size(); ++i)
        made[i] = static_cast<std::uint16_t>(operators_[i].held ? operators_[i].steps : 0);
    return made;
}

Made Graph::end() const {
    Made made(size());
    for (std::size_t i = 0; i < size(); ++i) made[i] = static_cast<std::uint16_t>(operators_[i].steps);
    return made;
}

bool Graph::alive(const Made& made, std::size_t i, int row) const {
    if (made[i] <= row) return false;
    if (operators_[i].kept) return true;
    const auto& all = readers(i, row);
    return std::any_of(all.begin(), all.end(), [&](const Reader& r) { return made[r.reader] <= r.step; });
}

Bytes Graph::live(const Made& made) const {
    Bytes found = 0;
    for (std::size_t i = 0; i < size(); ++i)
        for (int row = 0; row < made[i]; ++row) found += alive(made, i, row) ? operators_[i].bytes : 0;
    return found;
}

bool Graph::ready(const Made& made, std::size_t i) const {
    const auto& all = needs(i, made[i]);
    return std::all_of(all.begin(), all.end(), [&](const Need& n) { return made[n.maker] >= n.rows; });
}

Graph::Cost Graph::cost(const Made& made, std::size_t i) const {
    const int step = made[i];
    const Bytes b = operators_[i].bytes;
    Bytes change = operators_[i].kept || !readers(i, step).empty() ? b : 0;
    Sharing sharing(b);
    for (const Last& last : lasts(i, step)) {
        const Operator& maker = operators_[last.maker];
        if (!last.dies) {
            if (maker.kept) continue;
            const auto& all = readers(last.maker, last.row);
            const bool dies = std::all_of(all.begin(), all.end(), [&](const Reader& r) {
                return r.reader == i || made[r.reader] > r.step;
            });
            if (!dies) continue;
        }
        change -= maker.bytes;
        if (share_) sharing.add(maker.bytes, last.distance);
    }
    return {b - sharing.bytes(), change};
}

Bytes Graph::most_shared(std::size_t i, int step) const {
    Sharing sharing(operators_[i].bytes);
    for (const Last& last : lasts(i, step))
        if (share_ && !operators_[last.maker].kept) sharing.add(operators_[last.maker].bytes, last.distance);
    return sharing.bytes();
}

}  // namespace onchip::rows
