// What the searches may ask of the guard.
#pragma once
#include <atomic>

namespace onchip::guard {

// The process and its children hold more than the memory limit allows (command line only).
extern std::atomic<bool> memory_is_full;

}  // namespace onchip::guard
