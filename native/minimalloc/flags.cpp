#include "flags.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string_view>
#include <utility>

namespace minimalloc {
namespace {

constexpr std::array rules{"canonical_only",  "section_inference",     "dynamic_ordering", "check_dominance",
                           "unallocated_floor", "static_preordering",    "dynamic_decomposition", "monotonic_floor",
                           "hatless_pruning"};

bool read_boolean(std::string text, bool& value) {
    std::transform(text.begin(), text.end(), text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    for (const char* yes : {"true", "t", "yes", "y", "1"}) {
        if (text == yes) return value = true;
    }
    for (const char* no : {"false", "f", "no", "n", "0"}) {
        if (text == no) return value = false, true;
    }
    return false;
}

}  // namespace

const char* const usage =
    "minimalloc --input=CSV --output=CSV --capacity=BYTES [flags]\n"
    "Gives every buffer of a table an offset, so that no two that live together share bytes.\n"
    "  --input CSV             buffers: id, lower, upper, size; alignment, gaps, hint, offset as MiniMalloc has them\n"
    "  --output CSV            the same table with offsets\n"
    "  --capacity BYTES        bytes of memory\n"
    "  --timeout DURATION      as 10s, 1.5m or inf (default inf)\n"
    "  --minimize_capacity     the lowest end that there is, within the capacity\n"
    "  --validate              check the answer and print its height\n"
    "  --print_solution        draw the answer\n"
    "MiniMalloc's flags for its own search are accepted and change nothing. Exit code 0: solved, 1: not.\n";

bool read_integer(std::string text, std::int64_t& number) {
    constexpr std::string_view spaces = " \t\n\v\f\r";
    const auto first = text.find_first_not_of(spaces);
    if (first == std::string::npos) return false;
    text = text.substr(first, text.find_last_not_of(spaces) + 1 - first);
    const char* begin = text.data();
    if (*begin == '+' && text.size() > 1 && text[1] != '-') ++begin;
    const auto [end, wrong] = std::from_chars(begin, text.data() + text.size(), number);
    return wrong == std::errc() && end == text.data() + text.size();
}

bool read_duration(const std::string& text, double& seconds) {
    static const std::map<std::string, double> units{{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};
    std::string rest = text;
    bool negative = false;
    if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) {
        negative = rest[0] == '-';
        rest.erase(0, 1);
    }
    if (rest == "inf") {
        seconds = negative ? 0 : -1;
        return true;
    }
    if (rest == "0") {
        seconds = 0;
        return true;
    }
    if (rest.empty()) return false;
    double total = 0;
    while (!rest.empty()) {
        const auto digits = rest.find_first_not_of("0123456789.");
        if (digits == 0 || digits == std::string::npos) return false;
        const std::string number = rest.substr(0, digits);
        if (std::count(number.begin(), number.end(), '.') > 1 || number == ".") return false;
        auto end = rest.find_first_of("0123456789.", digits);
        if (end == std::string::npos) end = rest.size();
        const auto unit = units.find(rest.substr(digits, end - digits));
        if (unit == units.end()) return false;
        total += std::strtod(number.c_str(), nullptr) * unit->second;
        rest.erase(0, end);
    }
    seconds = negative ? 0 : total;
    return std::isfinite(seconds);
}

Flags read_flags(const std::vector<std::string>& arguments, std::string& error) {
    Flags flags;
    std::string ignored;
    bool rule = true;
    std::map<std::string, bool*> booleans{{"validate", &flags.validate},
                                          {"minimize_capacity", &flags.minimize_capacity},
                                          {"print_solution", &flags.print_solution},
                                          {"help", &flags.help}};
    for (const char* name : rules) booleans[name] = &rule;
    std::map<std::string, std::string*> words{{"input", &flags.input}, {"output", &flags.output}, {"preordering_heuristics", &ignored}};
    for (std::size_t i = 0; i < arguments.size() && error.empty(); ++i) {
        std::string name = arguments[i];
        if (name == "--") break;
        if (name.size() < 2 || name[0] != '-') continue;  // words beside flags are passed over
        name.erase(0, name[1] == '-' ? 2 : 1);
        std::string value;
        bool given = false;
        if (const auto equals = name.find('='); equals != std::string::npos) {
            value = name.substr(equals + 1);
            name.erase(equals);
            given = true;
        }
        const auto wrong = [&](const char* kind) {
            error = "Illegal value '" + value + "' specified for flag '" + name + "'" + kind;
        };
        if (const auto found = booleans.find(name); found != booleans.end()) {
            if (!given) *found->second = true;
            else if (!read_boolean(value, *found->second)) wrong("");
            continue;
        }
        if (name.rfind("no", 0) == 0 && booleans.count(name.substr(2)) && !given) {
            *booleans[name.substr(2)] = false;
            continue;
        }
        const auto word = words.find(name);
        if (word == words.end() && name != "capacity" && name != "timeout") {
            error = "Unknown command line flag '" + name + "'";
            break;
        }
        if (!given) {
            if (++i == arguments.size()) {
                error = "Missing the value for the flag '" + name + "'";
                break;
            }
            value = arguments[i];
        }
        if (word != words.end()) *word->second = value;
        else if (name == "capacity" && !read_integer(value, flags.capacity)) wrong("");
        else if (name == "timeout" && !read_duration(value, flags.timeout)) wrong("; a duration is as 10s, 1.5m or inf");
    }
    return flags;
}

}  // namespace minimalloc
