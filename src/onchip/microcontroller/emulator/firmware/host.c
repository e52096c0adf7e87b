#include "host.h"

enum { OPEN = 0x01, CLOSE = 0x02, WRITE0 = 0x04, WRITE = 0x05, READ = 0x06, SEEK = 0x0A, EXIT_EXTENDED = 0x20 };

#ifdef __riscv

/* Not inlined, and aligned: the three instructions that make the call must lie in one page. */
__attribute__((noinline, aligned(16))) static int call(int operation, const void *parameters) {
    register int a0 __asm("a0") = operation;
    register const void *a1 __asm("a1") = parameters;
    __asm volatile(
        ".option push\n.option norvc\n.balign 16\n"
        "slli x0, x0, 0x1f\nebreak\nsrai x0, x0, 7\n.option pop"
        : "+r"(a0)
        : "r"(a1)
        : "memory");
    return a0;
}

#else

static int call(int operation, const void *parameters) {
    register int r0 __asm("r0") = operation;
    register const void *r1 __asm("r1") = parameters;
    __asm volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

#endif

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

/* Digit by digit from flash: QEMU prints no text from a page of RAM that a RISC-V guard opens in part. */
void host_report(const char *name, uint32_t number) {
    static const char digits[] = "0\0001\0002\0003\0004\0005\0006\0007\0008\0009";
    uint32_t unit = 1;
    while (number / unit >= 10) unit *= 10;
    call(WRITE0, name);
    call(WRITE0, " ");
    for (; unit; unit /= 10) call(WRITE0, digits + 2 * (number / unit % 10));
    call(WRITE0, "\n");
}

void host_exit(int code) {
    const uint32_t parameters[2] = {0x20026, (uint32_t)code};
    call(EXIT_EXTENDED, parameters);
    for (;;) continue;
}
