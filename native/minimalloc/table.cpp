#include "table.h"

#include <algorithm>
#include <map>
#include <utility>

#include "flags.h"

namespace minimalloc {
namespace {

std::vector<std::string> parts_of(const std::string& text, char between) {
    std::vector<std::string> parts;
    std::size_t at = 0;
    for (auto end = text.find(between); end != std::string::npos; end = text.find(between, at)) {
        parts.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    parts.push_back(text.substr(at));
    return parts;
}

// `first` and `second` around one sign between them.
bool read_pair(const std::string& text, char between, std::int64_t& first, std::int64_t& second) {
    const auto parts = parts_of(text, between);
    return parts.size() == 2 && read_integer(parts[0], first) && read_integer(parts[1], second);
}

bool read_gap(const std::string& text, std::int64_t addend, Gap& gap) {
    const auto parts = parts_of(text, '@');
    if (!read_pair(parts[0], '-', gap.begin, gap.end)) return false;
    gap.end += addend;
    if (parts.size() < 2) return true;
    std::int64_t low = 0, high = 0;
    if (!read_pair(parts[1], ':', low, high)) return false;
    gap.window.emplace(low, high);
    return true;
}

const std::map<std::string, std::string> aliases{{"begin", "lower"}, {"start", "lower"}, {"end", "upper"},
                                                 {"buffer", "id"},   {"buffer_id", "id"}};

using Columns = std::map<std::string, std::size_t>;

Columns columns_of(const std::vector<std::string>& names, std::string& error) {
    Columns columns;
    for (std::size_t i = 0; i < names.size(); ++i) {
        const auto alias = aliases.find(names[i]);
        columns[alias == aliases.end() ? names[i] : alias->second] = i;
    }
    if (columns.size() != names.size()) error = "INVALID_ARGUMENT: Duplicate column names";
    else if (!columns.count("id") || !columns.count("lower") || !columns.count("upper") || !columns.count("size"))
        error = "NOT_FOUND: A required column is missing";
    return columns;
}

Buffer read_row(const std::vector<std::string>& fields, const Columns& columns, std::int64_t addend, std::string& error) {
    Buffer b;
    const auto field = [&](const char* name) -> const std::string* {
        const auto found = columns.find(name);
        return found == columns.end() ? nullptr : &fields[found->second];
    };
    b.id = *field("id");
    if (!read_integer(*field("lower"), b.lower) || !read_integer(*field("upper"), b.upper) || !read_integer(*field("size"), b.size)) {
        error = "INVALID_ARGUMENT: Improperly formed integer";
        return b;
    }
    b.upper += addend;
    if (const auto* text = field("alignment"); text && !read_integer(*text, b.alignment)) error = "INVALID_ARGUMENT: Improperly formed alignment: " + *text;
    if (const auto* text = field("hint")) {
        std::int64_t hint = -1;
        if (!read_integer(*text, hint)) error = "INVALID_ARGUMENT: Improperly formed hint";
        else if (hint >= 0) b.hint = hint;
    }
    if (const auto* text = field("gaps")) {
        for (const std::string& part : parts_of(*text, ' ')) {
            if (part.empty()) continue;
            Gap gap{};
            if (!read_gap(part, addend, gap)) error = "INVALID_ARGUMENT: Improperly formed gap: " + part;
            b.gaps.push_back(gap);
        }
    }
    if (const auto* text = field("offset")) {
        std::int64_t offset = -1;
        if (!read_integer(*text, offset)) error = "INVALID_ARGUMENT: Improperly formed offset";
        b.offset = offset;
    }
    // What MiniMalloc does not look at, and ends badly by.
    if (!error.empty()) return b;
    if (b.upper <= b.lower) error = "INVALID_ARGUMENT: An empty live range: " + b.id;
    else if (b.size < 0) error = "INVALID_ARGUMENT: A negative size: " + b.id;
    else if (b.alignment < 1) error = "INVALID_ARGUMENT: An alignment below 1: " + b.id;
    std::int64_t time = b.lower;
    for (const Gap& gap : b.gaps) {
        const bool inside = time <= gap.begin && gap.begin < gap.end && gap.end <= b.upper;
        const bool window = !gap.window || (0 <= gap.window->first && gap.window->first <= gap.window->second && gap.window->second <= b.size);
        if (error.empty() && (!inside || !window)) error = "INVALID_ARGUMENT: A gap out of order or outside its buffer: " + b.id;
        time = gap.end;
    }
    return b;
}

}  // namespace

std::vector<Buffer> read_table(const std::string& text, std::string& error) {
    std::vector<Buffer> buffers;
    Columns columns;
    std::int64_t addend = 0;
    for (const std::string& line : parts_of(text, '\n')) {
        if (line.empty()) break;
        const auto fields = parts_of(line, ',');
        if (columns.empty()) {
            columns = columns_of(fields, error);
            addend = std::count(fields.begin(), fields.end(), "end") ? 1 : 0;  // a column `end` has the last step
        } else if (fields.size() != columns.size()) {
            error = "INVALID_ARGUMENT: Too many fields";
        } else {
            buffers.push_back(read_row(fields, columns, addend, error));
        }
        if (!error.empty()) break;
    }
    return buffers;
}

std::string write_table(const std::vector<Buffer>& buffers, const std::vector<std::int64_t>& offsets) {
    const auto any = [&](auto has) { return std::any_of(buffers.begin(), buffers.end(), has); };
    const bool alignment = any([](const Buffer& b) { return b.alignment != 1; });
    const bool hint = any([](const Buffer& b) { return b.hint.has_value(); });
    const bool gaps = any([](const Buffer& b) { return !b.gaps.empty(); });
    std::string text = "id,lower,upper,size";
    if (alignment) text += ",alignment";
    if (hint) text += ",hint";
    if (gaps) text += ",gaps";
    text += ",offset\n";
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        const Buffer& b = buffers[i];
        text += b.id + "," + std::to_string(b.lower) + "," + std::to_string(b.upper) + "," + std::to_string(b.size);
        if (alignment) text += "," + std::to_string(b.alignment);
        if (hint) text += "," + std::to_string(b.hint.value_or(-1));
        if (gaps) {
            text += ",";
            for (std::size_t g = 0; g < b.gaps.size(); ++g) {
                const Gap& gap = b.gaps[g];
                text += (g ? " " : "") + std::to_string(gap.begin) + "-" + std::to_string(gap.end);
                if (gap.window) text += "@" + std::to_string(gap.window->first) + ":" + std::to_string(gap.window->second);
            }
        }
        text += "," + std::to_string(offsets[i]) + "\n";
    }
    return text;
}

}  // namespace minimalloc
