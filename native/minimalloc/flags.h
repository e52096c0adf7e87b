// The command line, as MiniMalloc has it: `--name=value`, `--name value`, `-name=value`, `--noname` for booleans.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace minimalloc {

struct Flags {
    std::int64_t capacity = 0;
    std::string input, output;
    double timeout = -1;  // seconds; negative: none
    bool validate = false, minimize_capacity = false, print_solution = false, help = false;
};

// Reads the arguments behind the program's name. An error is a line for people, empty if there is none. Rules of
// MiniMalloc's own search are accepted and change nothing: this search has others, and its answers are the same.
Flags read_flags(const std::vector<std::string>& arguments, std::string& error);

// What the flags mean, line by line.
extern const char* const usage;

// Seconds of a duration such as `10s`, `1.5m`, `2h3s`, `0` or `inf` (negative, no limit); whether it is one.
bool read_duration(const std::string& text, double& seconds);

// Reads a whole number with spaces around it; whether it is one of 64 bits.
bool read_integer(std::string text, std::int64_t& number);

}  // namespace minimalloc
