#include "rows_pack.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "bits.h"

namespace onchip::rows {

namespace {

constexpr Bytes nowhere = -1;
constexpr Bytes as_one = 4096;  // extents that differ by less than this part are one
constexpr std::size_t words_a_meeting = 16;
constexpr int most_turns = 16;  // as many times `tries` an order may go on, as long as it comes farther

// Which units of an extent are taken: a bit each.
class Units {
  public:
    Units(Bytes extent, Bytes unit) : unit_(unit), words_(words_for(at_end(extent))) {}

    std::size_t words() const { return words_.size(); }
    void clear() { std::fill(words_.begin(), words_.end(), Word{0}); }

    // Takes the bytes from `first` up to `end`, and what else their units hold.
    void take(Bytes first, Bytes end) {
        const auto low = static_cast<std::size_t>(first / unit_), high = at_end(end);
        const std::size_t from = low / 64, to = (high - 1) / 64;
        const Word head = ~Word{0} << (low % 64), tail = ~Word{0} >> (63 - (high - 1) % 64);
        if (from == to) {
            words_[from] |= head & tail;
            return;
        }
        words_[from] |= head;
        for (std::size_t w = from + 1; w < to; ++w) words_[w] = ~Word{0};
        words_[to] |= tail;
    }

    // The lowest address of so many free bytes; behind the extent all are free.
    Bytes lowest(Bytes bytes) const {
        const std::size_t all = words_.size() * 64, want = at_end(bytes);
        for (std::size_t first = next(0, false);;) {
            const std::size_t end = next(first, true);
            if (end == all || end - first >= want) return static_cast<Bytes>(first) * unit_;
            first = next(end, false);
        }
    }

  private:
    std::size_t at_end(Bytes bytes) const { return static_cast<std::size_t>((bytes + unit_ - 1) / unit_); }

    // The first unit from `bit` on that is taken, or that is not.
    std::size_t next(std::size_t bit, bool taken) const {
        for (std::size_t w = bit / 64; w < words_.size(); ++w) {
            Word word = taken ? words_[w] : ~words_[w];
            if (w == bit / 64) word &= ~Word{0} << (bit % 64);
            if (word != 0) return w * 64 + static_cast<std::size_t>(std::countr_zero(word));
        }
        return words_.size() * 64;
    }

    Bytes unit_;
    std::vector<Word> words_;
};

class Shelf {
  public:
    explicit Shelf(const Shelves& given) : given_(given), meets_(given.rows.size()) {
        std::vector<int> order(given.rows.size());
        std::iota(order.begin(), order.end(), 0);
        const auto made = [&](int a, int b) { return given.rows[at(a)].made < given.rows[at(b)].made; };
        std::stable_sort(order.begin(), order.end(), made);
        std::vector<int> open;
        for (const int row : order) {
            std::erase_if(open, [&](int other) { return given.rows[at(other)].read < given.rows[at(row)].made; });
            for (const int other : open) {
                meets_[at(row)].push_back({other, -given.rows[at(row)].bytes, given.rows[at(other)].bytes});
                meets_[at(other)].push_back({row, -given.rows[at(other)].bytes, given.rows[at(row)].bytes});
            }
            open.push_back(row);
        }
        for (const Pair& pair : given.pairs) {
            const Bytes near = std::min(given.rows[at(pair.under)].bytes, pair.distance);
            for (Met& met : meets_[at(pair.under)])
                if (met.other == pair.over) met.low = -near;
            for (Met& met : meets_[at(pair.over)])
                if (met.other == pair.under) met.high = near;
        }
        by_making_ = order;
        by_size_ = order;
        const auto larger = [&](int a, int b) { return given.rows[at(a)].bytes > given.rows[at(b)].bytes; };
        std::stable_sort(by_size_.begin(), by_size_.end(), larger);
        by_life_ = order;
        const auto life = [&](int row) { return given.rows[at(row)].read - given.rows[at(row)].made; };
        std::stable_sort(by_life_.begin(), by_life_.end(), [&](int a, int b) { return life(a) > life(b); });
    }

    std::optional<std::vector<Bytes>> within(Bytes extent, int tries, Clock<std::int64_t>& clock) const {
        for (const std::vector<int>& first : {by_making_, by_size_, by_life_}) {
            std::vector<int> order = first;
            std::vector<Bytes> begun(given_.rows.size(), nowhere);
            if (!pieces(extent, begun)) return std::nullopt;
            std::vector<Bytes> addresses = begun;
            std::size_t from = 0, farthest = 0;
            int left = tries;
            for (int i = 0; left > 0 && i < most_turns * tries; ++i, --left) {
                const auto failed = place(order, from, extent, addresses);
                if (!failed) return addresses;
                if (*failed > farthest) farthest = *failed, left = tries;
                if (clock.late(extent, true)) return std::nullopt;
                from = *failed / 2;
                const auto here = order.begin() + static_cast<std::ptrdiff_t>(*failed);
                const auto there = order.begin() + static_cast<std::ptrdiff_t>(from);
                std::rotate(there, here, here + 1);
                // Those before it in the order keep their places.
                for (std::size_t k = from; k <= *failed; ++k) addresses[at(order[k])] = begun[at(order[k])];
            }
        }
        return std::nullopt;
    }

  private:
    // Of a row: where the other one has the address a, it must not start in (a + low, a + high).
    struct Met {
        int other;
        Bytes low;
        Bytes high;
    };

    bool pieces(Bytes extent, std::vector<Bytes>& addresses) const {
        Bytes a = 0;
        for (const int row : given_.bottom) addresses[at(row)] = a, a += given_.rows[at(row)].bytes;
        if (a > extent) return false;
        a = extent;
        for (const int row : given_.top) a -= given_.rows[at(row)].bytes;
        a = a / given_.alignment * given_.alignment;
        if (a < 0) return false;
        for (const int row : given_.top) addresses[at(row)] = a, a += given_.rows[at(row)].bytes;
        for (const auto* piece : {&given_.bottom, &given_.top})
            for (const int row : *piece)
                for (const Met& met : meets_[at(row)]) {
                    const Bytes other = addresses[at(met.other)];
                    const Bytes beyond = addresses[at(row)] - other;
                    if (other != nowhere && beyond > met.low && beyond < met.high) return false;
                }
        return true;
    }

    // The place in the order, from `from` on, of the first row that does not fit.
    std::optional<std::size_t> place(const std::vector<int>& order, std::size_t from, Bytes extent,
                                     std::vector<Bytes>& addresses) const {
        Units units(extent, given_.alignment);
        std::vector<std::pair<Bytes, Bytes>> taken;
        for (std::size_t k = from; k < order.size(); ++k) {
            const int row = order[k];
            if (addresses[at(row)] != nowhere) continue;
            // Bits are quicker than sorting unless they are many, but know of no rows that share bytes.
            const bool bits = given_.pairs.empty() && units.words() < words_a_meeting * meets_[at(row)].size();
            const Bytes a = bits ? among_bits(row, addresses, units) : among_intervals(row, addresses, taken);
            if (a + given_.rows[at(row)].bytes > extent) return k;
            addresses[at(row)] = a;
        }
        return std::nullopt;
    }

    // The lowest address beside the rows that a row meets.
    Bytes among_bits(int row, const std::vector<Bytes>& addresses, Units& units) const {
        units.clear();
        for (const Met& met : meets_[at(row)]) {
            const Bytes other = addresses[at(met.other)];
            if (other != nowhere) units.take(other, other + met.high);
        }
        return units.lowest(given_.rows[at(row)].bytes);
    }

    Bytes among_intervals(int row, const std::vector<Bytes>& addresses,
                          std::vector<std::pair<Bytes, Bytes>>& taken) const {
        taken.clear();
        for (const Met& met : meets_[at(row)]) {
            const Bytes other = addresses[at(met.other)];
            if (other != nowhere) taken.emplace_back(other + met.low, other + met.high);
        }
        std::sort(taken.begin(), taken.end());
        Bytes a = 0;
        for (const auto& [low, high] : taken) {
            if (low >= a) break;
            if (high > a) a = (high + given_.alignment - 1) / given_.alignment * given_.alignment;
        }
        return a;
    }

    const Shelves& given_;
    std::vector<std::vector<Met>> meets_;
    std::vector<int> by_making_, by_size_, by_life_;
};

void must_be_rows(const Shelves& shelves) {
    const auto known = [&](int row) { return row >= 0 && at(row) < shelves.rows.size(); };
    for (const Rectangle& row : shelves.rows)
        if (row.bytes < 1 || row.bytes > (Bytes{1} << 40) || row.read < row.made) throw std::invalid_argument("rows: not a row");
    for (const Pair& pair : shelves.pairs)
        if (!known(pair.under) || !known(pair.over) || pair.under == pair.over) throw std::invalid_argument("rows: not a pair");
    for (const auto* piece : {&shelves.bottom, &shelves.top})
        if (!std::all_of(piece->begin(), piece->end(), known)) throw std::invalid_argument("rows: no such row");
    if (shelves.alignment < 1) throw std::invalid_argument("rows: no alignment");
}

}  // namespace

Packing packed(const Shelves& shelves, Bytes least, int tries, Clock<std::int64_t>& clock) {
    must_be_rows(shelves);
    const Shelf shelf(shelves);
    const Bytes unit = shelves.alignment;
    const auto up = [&](Bytes bytes) { return (bytes + unit - 1) / unit * unit; };
    Bytes low = std::max(Bytes{1}, up(least)), high = low;
    std::optional<std::vector<Bytes>> found = shelf.within(high, tries, clock);
    while (!found) {
        low = high + unit;
        high = up(high + std::max(unit, high / 16));
        found = shelf.within(high, clock.ended() ? 1 : tries, clock);
    }
    while (low < high && high - low > high / as_one && !clock.late(high, true)) {
        const Bytes middle = (low + (high - low) / 2) / unit * unit;
        if (auto better = shelf.within(middle, tries, clock)) {
            found = std::move(better);
            high = middle;
        } else {
            low = middle + unit;
        }
    }
    Bytes extent = 0;
    for (std::size_t row = 0; row < shelves.rows.size(); ++row)
        extent = std::max(extent, (*found)[row] + shelves.rows[row].bytes);
    return {std::move(*found), extent};
}

}  // namespace onchip::rows
