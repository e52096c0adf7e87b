// Tables of buffers, as MiniMalloc reads and writes them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onchip/pack.h"

namespace minimalloc {

struct Gap {
    std::int64_t begin, end;
    std::optional<std::pair<std::int64_t, std::int64_t>> window;  // the bytes that stay
};

struct Buffer {
    std::string id;
    std::int64_t lower = 0, upper = 0, size = 0, alignment = 1;
    std::vector<Gap> gaps;
    std::optional<std::int64_t> hint, offset;
};

// Reads rows up to the first empty line; columns in any order, unknown ones are dropped. An error is the line that
// MiniMalloc has for it, or one of ours for what it does not look at.
std::vector<Buffer> read_table(const std::string& text, std::string& error);

// The table with offsets as its last column; `alignment`, `hint` and `gaps` only if some row has one.
std::string write_table(const std::vector<Buffer>& buffers, const std::vector<std::int64_t>& offsets);

}  // namespace minimalloc
