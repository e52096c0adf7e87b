/* Start of a program on a RISC-V core: the guard, and what a trap says. */
#include "host.h"

extern uint32_t _flash_base, _flash_end, _stack_bottom, _stack_top, _ram_end;

enum { READ = 1, WRITE = 2, EXECUTE = 4, UP_TO_HERE = 1 << 3, NATURAL = 3 << 3, LOCKED = 1 << 7 };
enum { FAULT = 70, REPORT_STACK = 64, MOST_OVERFLOW = 1 << 16 };

#define SET(name, value) __asm volatile(".option push\n.option arch, +zicsr\ncsrw " name ", %0\n.option pop" ::"r"(value))
#define GET(name, into) __asm volatile(".option push\n.option arch, +zicsr\ncsrr %0, " name "\n.option pop" : "=r"(into))

/* Flash can be read and executed, the linked RAM read and written, all else is closed, in machine mode too. */
void host_guard(void) {
    SET("pmpaddr0", (uint32_t)&_flash_base >> 2);
    SET("pmpaddr1", (uint32_t)&_flash_end >> 2);
    SET("pmpaddr2", (uint32_t)&_stack_bottom >> 2);
    SET("pmpaddr3", (uint32_t)&_ram_end >> 2);
    SET("pmpaddr4", 0xFFFFFFFFu);
    SET("pmpcfg0", (uint32_t)(UP_TO_HERE | READ | EXECUTE | LOCKED) << 8 | (uint32_t)(UP_TO_HERE | READ | WRITE | LOCKED) << 24);
    SET("pmpcfg1", (uint32_t)(NATURAL | LOCKED)); /* last: from here on nothing else is open */
}

/* The stack overflowed if what was touched lies just below it. */
__attribute__((noreturn, used)) void host_failed(void) {
    uint32_t cause, address, at, bottom = (uint32_t)&_stack_bottom;
    GET("mcause", cause);
    GET("mtval", address);
    GET("mepc", at);
    host_report("fault", cause);
    host_report("address", address);
    if (bottom - address - 1 < MOST_OVERFLOW) host_report("overflow", 1);
    else host_report("at", at);
    host_exit(FAULT);
}

/* A trap may come from a stack that is full: then what reports it begins with a fresh one. */
__attribute__((naked, used, aligned(4))) static void trap(void) {
    __asm volatile(
        "la t0, _stack_bottom + %0\n"
        "bgeu sp, t0, 1f\n"
        "la sp, _stack_top\n"
        "1: j host_failed\n" ::"i"(REPORT_STACK));
}

__attribute__((naked, used, section(".vectors"))) void host_reset(void) {
    __asm volatile(
        ".option push\n.option arch, +zicsr\n"
        "la sp, _stack_top\n"
        "la t0, %0\n"
        "csrw mtvec, t0\n"
        ".option pop\n"
        "la t0, _stack_bottom\n"
        "li t1, 0xA5A5A5A5\n"
        "1: bgeu t0, sp, 2f\n"
        "sw t1, 0(t0)\n"
        "addi t0, t0, 4\n"
        "j 1b\n"
        "2: j host_started\n" ::"i"(trap));
}
