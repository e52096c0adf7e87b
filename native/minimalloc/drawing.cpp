#include "drawing.h"

#include <algorithm>
#include <cstdio>

namespace minimalloc {
namespace {

constexpr double across = 16, up = 9;  // centimetres

std::string at(double x, double y) {
    char text[64];
    std::snprintf(text, sizeof text, "(%.4f,%.4f)", x, y);
    return text;
}

// Names are data: what TeX would read as a command is written as it looks.
std::string plain(const std::string& name) {
    std::string text;
    for (const char c : name) {
        if (c == '\\') text += "\\textbackslash{}";
        else if (c == '^' || c == '~') text += std::string("\\") + c + "{}";
        else if (std::string("#$%&_{}").find(c) != std::string::npos) text += std::string("\\") + c;
        else if (static_cast<unsigned char>(c) >= 32) text += c;
    }
    return text;
}

}  // namespace

std::string drawing(const std::vector<Buffer>& buffers, const std::vector<std::int64_t>& offsets, std::int64_t capacity) {
    std::int64_t first = 0, last = 1;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        first = i ? std::min(first, buffers[i].lower) : buffers[i].lower;
        last = i ? std::max(last, buffers[i].upper) : buffers[i].upper;
    }
    const double wide = across / static_cast<double>(last - first);
    const double high = up / static_cast<double>(std::max<std::int64_t>(capacity, 1));
    const auto x = [&](std::int64_t time) { return wide * static_cast<double>(time - first); };
    const auto y = [&](std::int64_t offset) { return high * static_cast<double>(offset); };
    std::string text = "\\documentclass[tikz]{standalone}\n\\begin{document}\n\\begin{tikzpicture}\n";
    const auto part = [&](const Buffer& b, std::int64_t from, std::int64_t to, std::int64_t low, std::int64_t top) {
        if (from >= to || low >= top) return;
        text += "\\filldraw[fill=black!12] " + at(x(from), y(low)) + " rectangle " + at(x(to), y(top)) + ";\n";
        text += "\\node at " + at((x(from) + x(to)) / 2, (y(low) + y(top)) / 2) + " {" + plain(b.id) + "};\n";
    };
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        const Buffer& b = buffers[i];
        std::int64_t time = b.lower;
        for (const Gap& gap : b.gaps) {
            part(b, time, gap.begin, offsets[i], offsets[i] + b.size);
            if (gap.window) part(b, gap.begin, gap.end, offsets[i] + gap.window->first, offsets[i] + gap.window->second);
            time = gap.end;
        }
        part(b, time, b.upper, offsets[i], offsets[i] + b.size);
    }
    text += "\\draw[thick] (0,0) rectangle " + at(across, up) + ";\n\\end{tikzpicture}\n\\end{document}\n";
    return text;
}

}  // namespace minimalloc
