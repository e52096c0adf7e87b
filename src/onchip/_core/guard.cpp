// The net below everything that asks a clock: a thread that needs no interpreter ends a process whose limit
// is long over, and a handler turns a crash of native code into one line, a log and an exit code.
//
// Only the command line starts it: inside somebody's process limits stay with the code that asks.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "bindings.h"
#include "guard.h"
#include "guard_files.h"
#include "guard_proc.h"

namespace nb = nanobind;

namespace onchip {

namespace guard {

std::atomic<bool> memory_is_full{false};

namespace {

constexpr double never = std::numeric_limits<double>::infinity();
constexpr int interrupted_code = 130;
constexpr double patience = 5.0;  // seconds that a signal may wait for the interpreter to hear it

double now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Guard {  // never destroyed: the thread that reads it ends with the process
    bool started = false;
    double began = 0, waited_before = 0;
    std::atomic<double> waited_most{0};  // a child takes what it waited with it
    std::mutex mutex;                    // of the lines
    std::string time_line, memory_line;
    std::atomic<double> time_over{never};  // own seconds since `began`
    std::atomic<std::int64_t> soft{0}, hard{0}, base{-1};
    std::atomic<double> unheard{never};  // when a signal came that the interpreter has not heard yet
    std::atomic<int> thread{0};          // the one that watches: what it waits is nobody's time
    int wake[2] = {-1, -1};

    // Seconds since the process began in which it had a core or waited for something else than one.
    double own() {
        const double waited_now = waited(getpid(), thread.load()) - waited_before;
        double most = waited_most.load();
        while (waited_now > most && !waited_most.compare_exchange_weak(most, waited_now)) {}
        return now() - began - waited_most.load();
    }
};
Guard& g = *new Guard;

struct Crash {
    char log[512] = {}, head[4096] = {}, line[1024] = {};
    int traceback = -1;
    int code = 70;
    std::atomic<bool> once{false};
} crash;

void say(const char* line) {
    // A line that was begun (a spinner on a terminal, which hides the cursor) is ended first.
    if (isatty(STDERR_FILENO)) (void)!write(STDERR_FILENO, "\r\x1b[K\x1b[?25h", 10);
    (void)!write(STDERR_FILENO, line, std::strlen(line));
}

[[noreturn]] void end(const std::string& line, int code) {
    kill_descendants();
    remove_kept();
    say((line + "\n").c_str());
    _exit(code);
}

std::int64_t family_bytes() {
    std::int64_t bytes = resident(getpid());
    each_descendant(getpid(), [&](int child) { bytes += resident(child); }, 0);
    return bytes;
}

std::string locked(const std::string& line) {
    const std::lock_guard hold(g.mutex);
    return line;
}

void check_memory() {
    const std::int64_t base = g.base.load(), soft = g.soft.load();
    if (base < 0 || soft <= 0) return;
    const std::int64_t held = family_bytes() - base;
    if (held > soft) memory_is_full.store(true);
    if (held > g.hard.load()) end(locked(g.memory_line), 1);
}

bool ends(int number) {
    return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

void watch() {
    g.thread.store(static_cast<int>(gettid()));
    double children_at = 0;
    for (;;) {
        const bool weighs = g.base.load() >= 0 && g.soft.load() > 0;
        const double limit = g.time_over.load(), signalled = g.unheard.load();
        double pause = weighs ? 0.02 : 0.2;
        if (limit != never) pause = std::min(pause, std::max(0.005, limit - (now() - g.began)));
        pollfd wake{g.wake[0], POLLIN, 0};
        if (poll(&wake, 1, static_cast<int>(pause * 1000) + 1) > 0) {
            unsigned char numbers[64];
            const auto n = read(g.wake[0], numbers, sizeof numbers);
            for (long i = 0; i < n; ++i)
                if (ends(numbers[i]) && g.unheard.load() == never) g.unheard.store(now());
        }
        if (weighs) check_memory();
        if (limit != never) {
            // Children are asked now and then, for those that are gone tell no more how long they waited.
            const bool close = now() - g.began > limit;
            if (close || now() > children_at) {
                children_at = now() + 0.2;
                if (g.own() > limit && g.time_over.load() == limit) end(locked(g.time_line), 1);
            }
        }
        if (signalled != never && g.unheard.load() == signalled && now() - signalled > patience)
            end("onchip: interrupted", interrupted_code);
    }
}

void write_all(int file, const char* text, std::size_t n) {
    while (n > 0) {
        const auto done = write(file, text, n);
        if (done <= 0) return;
        text += done, n -= static_cast<std::size_t>(done);
    }
}

const char* name_of(int number) {
    switch (number) {
        case SIGSEGV: return "SIGSEGV";
        case SIGBUS: return "SIGBUS";
        case SIGFPE: return "SIGFPE";
        case SIGILL: return "SIGILL";
        case SIGABRT: return "SIGABRT";
    }
    return "a signal";
}

// faulthandler has written the interpreter's frames by now, and raised the signal again.
void crashed(int number, siginfo_t*, void*) {
    if (crash.once.exchange(true)) _exit(crash.code);
    kill_descendants();
    remove_kept();
    const int log = open(crash.log, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (log >= 0) {
        write_all(log, crash.head, std::strlen(crash.head));
        write_all(log, name_of(number), std::strlen(name_of(number)));
        write_all(log, "\n", 1);
        char room[4096];
        if (crash.traceback >= 0 && lseek(crash.traceback, 0, SEEK_SET) == 0)
            for (ssize_t n; (n = read(crash.traceback, room, sizeof room)) > 0;)
                write_all(log, room, static_cast<std::size_t>(n));
        close(log);
    }
    say("onchip: crashed in native code (");
    say(name_of(number));
    say(crash.line);
    _exit(crash.code);
}

void copy(char* into, std::size_t size, const nb::bytes& text) { std::strncpy(into, text.c_str(), size - 1); }

}  // namespace

}  // namespace guard

// Paths and lines are bytes: names of files need not be text.
void bind_guard(nb::module_& m) {
    using namespace guard;
    m.def(
        "guard_start",
        [](double before) {
            // `before`: seconds that passed before this call and count.
            if (g.started) return g.wake[1];
            if (pipe2(g.wake, O_CLOEXEC | O_NONBLOCK) != 0) throw std::runtime_error("no pipe");
            g.started = true;
            g.began = now() - before;
            g.waited_before = waited(getpid());
            sigset_t all, old;
            sigfillset(&all);
            pthread_sigmask(SIG_SETMASK, &all, &old);  // signals are for the interpreter's thread
            std::thread(watch).detach();
            pthread_sigmask(SIG_SETMASK, &old, nullptr);
            return g.wake[1];
        },
        nb::arg("before"));
    m.def("guard_started", [] { return g.started; });
    m.def(
        "guard_time",
        [](std::optional<double> over, const nb::bytes& line) {
            const std::lock_guard hold(g.mutex);
            g.time_line = line.c_str();
            g.time_over.store(over.value_or(never));
        },
        nb::arg("over").none(), nb::arg("line"));
    m.def(
        "guard_memory",
        [](std::int64_t soft, std::int64_t hard, const nb::bytes& line) {
            const std::lock_guard hold(g.mutex);
            g.memory_line = line.c_str();
            g.hard.store(hard);
            g.soft.store(soft);
        },
        nb::arg("soft"), nb::arg("hard"), nb::arg("line"));
    m.def("guard_weigh", [](bool from_now) {
        memory_is_full.store(false);
        g.base.store(from_now ? family_bytes() : -1);
    }, nb::arg("from_now"));
    m.def("guard_own_seconds", [] { return g.started ? g.own() : 0.0; });
    m.def("guard_family_bytes", [] { return family_bytes(); });
    m.def("guard_heard", [] { g.unheard.store(never); });
    m.def("guard_keep", [](const nb::bytes& path) { return keep(path.c_str()); }, nb::arg("path"));
    m.def("guard_drop", [](const nb::bytes& path) { drop(path.c_str()); }, nb::arg("path"));
    m.def("guard_clean", [] {
        kill_descendants();
        remove_kept();
    });
    m.def(
        "guard_crash",
        [](const nb::bytes& log, const nb::bytes& head, const nb::bytes& line, int traceback, int code) {
            copy(crash.log, sizeof crash.log, log);
            copy(crash.head, sizeof crash.head, head);
            copy(crash.line, sizeof crash.line, line);
            crash.traceback = traceback;
            crash.code = code;
            struct sigaction how = {};
            how.sa_sigaction = crashed;
            how.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
            sigemptyset(&how.sa_mask);
            for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(number, &how, nullptr);
        },
        nb::arg("log"), nb::arg("head"), nb::arg("line"), nb::arg("traceback"), nb::arg("code"));
    m.def("die_with_parent", [](int parent) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);  // it was gone before that
    }, nb::arg("parent"));
}

}  // namespace onchip
