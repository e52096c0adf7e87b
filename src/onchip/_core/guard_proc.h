// /proc read without allocating: threads, children, memory, and how long a thread has waited for a core.
#pragma once
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace onchip::guard {

inline constexpr int deepest_family = 16;  // generations of child processes

// The file's beginning as text, in `room`; its length, 0 when it cannot be read.
inline long read_text(const char* path, char* room, long size) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    long n = 0;
    for (long got; n + 1 < size && (got = read(file, room + n, static_cast<std::size_t>(size - n - 1))) > 0;) n += got;
    close(file);
    room[n > 0 ? n : 0] = 0;
    return n > 0 ? n : 0;
}

// Calls visit(thread id) for the threads of a process.
template <class Visit>
void each_thread(int process, Visit visit) {
    char path[64], room[4096];
    std::snprintf(path, sizeof path, "/proc/%d/task", process);
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return;
    for (long n; (n = syscall(SYS_getdents64, folder, room, sizeof room)) > 0;)
        for (long at = 0; at < n;) {
            const char* entry = room + at;
            const auto length = *reinterpret_cast<const unsigned short*>(entry + 16);
            const char* name = entry + 19;
            at += length;
            if (name[0] >= '0' && name[0] <= '9') visit(std::atoi(name));
        }
    close(folder);
}

// Calls visit(process id) for the children that a process has now.
template <class Visit>
void each_child(int process, Visit visit) {
    each_thread(process, [&](int thread) {
        char path[96], room[4096];
        std::snprintf(path, sizeof path, "/proc/%d/task/%d/children", process, thread);
        if (read_text(path, room, sizeof room) == 0) return;
        for (char* at = room; *at;) {
            char* end = at;
            const long child = std::strtol(at, &end, 10);
            if (end == at) break;
            visit(static_cast<int>(child));
            at = end;
        }
    });
}

// Calls visit(process id) for the children of a process, theirs and so on; not for itself.
template <class Visit>
void each_descendant(int process, Visit visit, int depth) {
    if (depth > deepest_family) return;
    each_child(process, [&](int child) {
        each_descendant(child, visit, depth + 1);
        visit(child);
    });
}

// Resident bytes that are a process's own or shared with a file it has mapped.
inline std::int64_t resident(int process) {
    char path[64], room[256];
    std::snprintf(path, sizeof path, "/proc/%d/statm", process);
    if (read_text(path, room, sizeof room) == 0) return 0;
    char* at = room;
    std::strtol(at, &at, 10);
    return std::strtoll(at, nullptr, 10) * sysconf(_SC_PAGESIZE);
}

// Seconds that a thread was ready and had no core.
inline double thread_waited(int process, int thread) {
    char path[96], room[256];
    std::snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", process, thread);
    if (read_text(path, room, sizeof room) == 0) return 0;
    char* at = room;
    std::strtoull(at, &at, 10);
    return static_cast<double>(std::strtoull(at, nullptr, 10)) * 1e-9;
}

// Seconds that a process waited: of its threads the one that waited most, for they mostly wait at the same time;
// then the child that waited most, with its own, for who starts a child waits for it. Thread `but` does not count.
inline double waited(int process, int but = 0, int depth = 0) {
    double most = 0, child_most = 0;
    each_thread(process, [&](int thread) {
        const double seconds = thread_waited(process, thread);
        if (thread != but && seconds > most) most = seconds;
    });
    if (depth < deepest_family)
        each_child(process, [&](int child) {
            const double seconds = waited(child, but, depth + 1);
            if (seconds > child_most) child_most = seconds;
        });
    return most + child_most;
}

}  // namespace onchip::guard
