#include "rows_pack.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace onchip::rows {

namespace {

constexpr Bytes nowhere = -1;
constexpr Bytes fine = 4096;  // extents that differ by less than this part are one

std::size_t at(int i) { return static_cast<std::size_t>(i); }

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
            std::size_t from = 0;
            for (int i = 0; i < tries; ++i) {
                const auto failed = place(order, from, extent, addresses);
                if (!failed) return addresses;
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
        std::vector<std::pair<Bytes, Bytes>> taken;
        for (std::size_t k = from; k < order.size(); ++k) {
            const int row = order[k];
            if (addresses[at(row)] != nowhere) continue;
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
            if (a + given_.rows[at(row)].bytes > extent) return k;
            addresses[at(row)] = a;
        }
        return std::nullopt;
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
    while (low < high && high - low > high / fine && !clock.late(high, true)) {
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
