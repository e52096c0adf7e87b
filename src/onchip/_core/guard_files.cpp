#include "guard_files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "guard_proc.h"

namespace onchip::guard {

namespace {

constexpr int deepest = 64;  // folders in folders; ours have two or three

std::array<std::atomic<char*>, 256> kept;

struct Entry {  // what getdents64 writes
    std::uint64_t inode;
    std::int64_t next;
    unsigned short length;
    unsigned char type;
    char name[1];
};

bool is_dots(const char* name) { return name[0] == '.' && (name[1] == 0 || (name[1] == '.' && name[2] == 0)); }

void remove_at(int folder, const char* name, int depth) {
    if (unlinkat(folder, name, 0) == 0 || depth > deepest) return;
    const int inside = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inside < 0) return;
    alignas(Entry) char room[4096];
    bool removed = true;
    while (removed) {  // removing moves what comes next: begin anew until nothing is there
        removed = false;
        lseek(inside, 0, SEEK_SET);
        for (long n; (n = syscall(SYS_getdents64, inside, room, sizeof room)) > 0;)
            for (long at = 0; at < n;) {
                const auto* e = reinterpret_cast<const Entry*>(room + at);
                at += e->length;
                if (is_dots(e->name)) continue;
                struct stat before, after;
                if (fstatat(inside, e->name, &before, AT_SYMLINK_NOFOLLOW) != 0) continue;
                remove_at(inside, e->name, depth + 1);
                removed |= fstatat(inside, e->name, &after, AT_SYMLINK_NOFOLLOW) != 0;
            }
    }
    close(inside);
    unlinkat(folder, name, AT_REMOVEDIR);
}

}  // namespace

bool keep(const char* path) {
    char* copy = strdup(path);
    if (copy == nullptr) return false;
    for (auto& slot : kept) {
        char* none = nullptr;
        if (slot.compare_exchange_strong(none, copy)) return true;
    }
    std::free(copy);
    return false;
}

void drop(const char* path) {
    for (auto& slot : kept) {
        char* there = slot.load();
        // Not freed: a handler on another thread may be reading it, and there are few.
        if (there != nullptr && std::strcmp(there, path) == 0 && slot.compare_exchange_strong(there, nullptr)) return;
    }
}

void remove_kept() {
    for (auto& slot : kept)
        if (const char* path = slot.load()) remove_at(AT_FDCWD, path, 0);
}

void kill_descendants() {
    // Again, for one that is killed may have started another before.
    for (int round = 0; round < 3; ++round) {
        bool any = false;
        each_child(getpid(), [&](int child) {
            each_descendant(child, [](int inner) { kill(inner, SIGKILL); }, 0);
            kill(child, SIGKILL);
            any = true;
        });
        if (!any) return;
    }
}

}  // namespace onchip::guard
