/* Start of a program on the emulated core: memory, the guard around it, main, and what a fault says.
 *
 * With the memory protection unit on there is flash, which can be read and executed, and the linked RAM, which can
 * be written too; everything else is closed. The stack lies lowest, so that it runs into nothing of the program's
 * when it overflows. */
#include "host.h"

extern uint32_t _stack_bottom, _stack_top, _data_start, _data_end, _data_image, _bss_start, _bss_end, _ram_end;

int main(void);

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define MPU_TYPE REGISTER(0xE000ED90)
#define MPU_CTRL REGISTER(0xE000ED94)
#define MPU_RBAR REGISTER(0xE000ED9C)
#define MPU_RASR REGISTER(0xE000EDA0)
#define FAULT_STATUS REGISTER(0xE000ED28)
#define FAULT_ADDRESS REGISTER(0xE000ED34)
#define BUS_FAULT_ADDRESS REGISTER(0xE000ED38)
#define COPROCESSORS REGISTER(0xE000ED88)

#define UNUSED 0xA5A5A5A5u

enum { ADDRESS_KNOWN = 1 << 7, BUS_ADDRESS_KNOWN = 1 << 15, NO_ROOM_FOR_FRAME = 1 << 4, MOST_OVERFLOW = 1 << 16 };
enum { READ_ONLY = 5, OPEN = 3, CLOSED = 0, NORMAL_MEMORY = 1 << 17, FAULT = 70, REPORT_STACK = 64 };

/* Number of a protected region: `log2_bytes` large, at a multiple of that; `which` has a bit for each eighth that it
 * speaks of. A region of a higher number goes before one of a lower. */
static void protect(uint32_t number, uint32_t base, uint32_t log2_bytes, uint32_t rights, uint32_t which) {
    MPU_RBAR = base | 1u << 4 | number;
    MPU_RASR = rights << 24 | NORMAL_MEMORY | (~which & 0xFF) << 8 | (log2_bytes - 1) << 1 | 1u;
}

/* Opens flash, and RAM from its beginning to `end`, a multiple of 32; closes all the rest. Not inlined: what it
 * keeps on the stack would lie below main's. */
__attribute__((noinline)) static void guard(uint32_t end) {
    uint32_t number = 0;
    protect(number++, 0, 22, READ_ONLY, 0xFF);
    for (uint32_t log2_bytes = 22; log2_bytes >= 10; log2_bytes -= 3) {
        uint32_t base = end & ~((1u << log2_bytes) - 1), eighth = (end - base) >> (log2_bytes - 3);
        protect(number++, base, log2_bytes, OPEN, (1u << eighth) - 1); /* the eighth with `end` is cut finer */
    }
    uint32_t base = end & ~255u;
    protect(number++, base, 8, OPEN, (1u << ((end - base) >> 5)) - 1);
    protect(number, end, 5, CLOSED, 0xFF); /* closed already: tells QEMU that this page is not all alike */
    MPU_CTRL = 1;
    __asm volatile("dsb\n isb" ::: "memory");
}

uint32_t host_stack_used(void) {
    const uint32_t *word = &_stack_bottom;
    while (word < &_stack_top && *word == UNUSED) word++;
    return (uint32_t)((const char *)&_stack_top - (const char *)word);
}

__attribute__((noreturn, used)) static void started(void) {
    const uint32_t *from = &_data_image;
    for (uint32_t *to = &_data_start; to < &_data_end;) *to++ = *from++;
    for (uint32_t *to = &_bss_start; to < &_bss_end;) *to++ = 0;
    COPROCESSORS |= 0xFu << 20; /* the floating-point unit, where there is one */
    guard((uint32_t)&_ram_end);
    int code = main();
    host_report("stack", host_stack_used());
    host_exit(code);
}

__attribute__((naked, used)) void host_reset(void) {
    __asm volatile(
        "ldr r0, =_stack_bottom\n"
        "ldr r1, =_stack_top\n"
        "ldr r2, =0xA5A5A5A5\n"
        "1: cmp r0, r1\n"
        "bcs 2f\n"
        "str r2, [r0], #4\n"
        "b 1b\n"
        "2: b %c0\n" ::"i"(started));
}

/* The stack overflowed if what was touched lies just below it, or if nothing was but to keep this `frame`. Else the
 * frame tells who it was, if there was room for it. */
__attribute__((noreturn, used)) static void failed(const uint32_t *frame) {
    uint32_t status = FAULT_STATUS, bottom = (uint32_t)&_stack_bottom;
    uint32_t address = status & ADDRESS_KNOWN ? FAULT_ADDRESS : status & BUS_ADDRESS_KNOWN ? BUS_FAULT_ADDRESS : 0;
    host_report("fault", status);
    host_report("address", address);
    if (address ? bottom - address <= MOST_OVERFLOW : (status & NO_ROOM_FOR_FRAME) != 0) host_report("overflow", 1);
    else if ((uint32_t)frame >= bottom && !(status & NO_ROOM_FOR_FRAME)) host_report("at", frame[6]);
    host_exit(FAULT);
}

/* A fault may come from a stack that is full: then what reports it begins with a fresh one. */
__attribute__((naked, used)) static void fault(void) {
    __asm volatile(
        "mrs r0, msp\n"
        "ldr r1, =_stack_bottom + %c1\n"
        "cmp r0, r1\n"
        "it cc\n"
        "ldrcc r1, =_stack_top\n"
        "it cc\n"
        "msrcc msp, r1\n"
        "b %c0\n" ::"i"(failed), "i"(REPORT_STACK));
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    &_stack_top, (const void *)host_reset, (const void *)fault, (const void *)fault,
    (const void *)fault, (const void *)fault, (const void *)fault,
};
