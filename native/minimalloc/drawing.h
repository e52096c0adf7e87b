// A picture of a packing for LaTeX.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "table.h"

namespace minimalloc {

// A standalone TikZ document: time to the right, offsets upwards, one rectangle for every part of a live range.
std::string drawing(const std::vector<Buffer>& buffers, const std::vector<std::int64_t>& offsets, std::int64_t capacity);

}  // namespace minimalloc
