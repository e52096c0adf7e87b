#include "host.h"

enum { OPEN = 0x01, CLOSE = 0x02, WRITE0 = 0x04, WRITE = 0x05, READ = 0x06, SEEK = 0x0A, EXIT_EXTENDED = 0x20 };

static int call(int operation, const void *parameters) {
    register int r0 __asm("r0") = operation;
    register const void *r1 __asm("r1") = parameters;
    __asm volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

static uint32_t length(const char *text) {
    uint32_t n = 0;
    while (text[n]) n++;
    return n;
}

static int open(const char *name, uint32_t mode) {
    const uint32_t parameters[3] = {(uint32_t)name, mode, length(name)};
    return call(OPEN, parameters);
}

int host_open_to_read(const char *name) { return open(name, 1); }
int host_open_to_write(const char *name) { return open(name, 5); }

int host_read(int file, void *bytes, uint32_t position, uint32_t size) {
    const uint32_t there[2] = {(uint32_t)file, position}, parameters[3] = {(uint32_t)file, (uint32_t)bytes, size};
    return call(SEEK, there) || call(READ, parameters) ? -1 : 0;
}

int host_write(int file, const void *bytes, uint32_t size) {
    const uint32_t parameters[3] = {(uint32_t)file, (uint32_t)bytes, size};
    return call(WRITE, parameters) ? -1 : 0;
}

void host_report(const char *name, uint32_t number) {
    char digits[12], *at = digits + sizeof digits;
    *--at = 0;
    *--at = '\n';
    do *--at = (char)('0' + number % 10);
    while (number /= 10);
    call(WRITE0, name);
    call(WRITE0, " ");
    call(WRITE0, at);
}

void host_exit(int code) {
    const uint32_t parameters[2] = {0x20026, (uint32_t)code};
    call(EXIT_EXTENDED, parameters);
    for (;;) continue;
}
